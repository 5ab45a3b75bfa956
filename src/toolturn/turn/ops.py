"""What a turn can ask for, and what can come of it.

Names do not depend on the provider: model call ``m<i>``, asked again after a resume ``m<i>~<n>``, approval ``a<i>.<k>``
and tool ``t<i>.<k>`` (iteration, place in the batch), forced answer ``f<i>`` (iterations so far). Within one turn each
is given once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..codec import dumps, plain
from ..errors import ModelError
from ..frozen import frozen
from ..limits import Remaining
from ..messages import ChatMessage, ChatResponse, ToolCall, ToolDef
from ..results import Approval, ToolCallRecord

Effect: TypeAlias = Literal["none", "keyed", "once"]
"""What running a call again would do: nothing, nothing when given the same key, or harm."""

ToolErrors: TypeAlias = Literal["raise", "report"]
"""A failing tool ends the turn with ToolLoopToolError, or is an observation for the model."""


@frozen
class ToolTraits:
    """All that the machine knows of a tool.

    Args:
        return_direct: A good result is the turn's answer.
        effect: What running a call again would do.
        parallel: Its calls may run beside those of other parallel tools.
        approval: Its calls, or some of them, run only when somebody approves.
        repeats: It is meant to be called again with the same result, as one that polls.
    """

    return_direct: bool = False
    effect: Effect = "once"
    parallel: bool = False
    repeats: bool = False
    approval: bool = False


@frozen
class CallModel:
    """Ask the model.

    Args:
        id: ``m<i>``, ``m<i>~<n>`` or ``f<i>``.
        turn_id: The name of the turn.
        messages: The transcript to send.
        tools: The definitions to offer; empty for a forced answer.
        forced: Whether only text will do: calls of this reply never run.
        max_tokens: Tokens of the reply at most: what is left of the limit of tokens, where there is one.
        required: The tool that has to be called now for the turn to end in it; empty where that has time.
    """

    id: str
    turn_id: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDef, ...]
    forced: bool = False
    max_tokens: int | None = None
    required: str = ""

    @property
    def key(self) -> str:
        """The idempotency key, stable over retry, crash and resume."""
        return f"{self.turn_id}/{self.id}"


@frozen
class AskApproval:
    """Ask whether a call may run.

    Args:
        id: ``a<i>.<k>``.
        turn_id: The name of the turn.
        call: The call as the model made it.
        place: Its place in the batch, from 0.
        remaining: What is left to the turn.
    """

    id: str
    turn_id: str
    call: ToolCall
    place: int
    remaining: Remaining

    @property
    def key(self) -> str:
        """The name of the question, stable over retry, crash and resume."""
        return f"{self.turn_id}/{self.id}"

    @property
    def digest(self) -> str:
        """What the approval is bound to: the call's name and arguments."""
        return digest_of(self.call)


def digest_of(call: ToolCall) -> str:
    """Return the digest of a call's name and arguments.

    Args:
        call: The call as the model made it.
    """
    from hashlib import sha256  # costly to import, and needed where something is approved only

    return sha256(dumps([plain(call.name), plain(call.arguments)]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """Nobody could be asked; the turn stops until somebody decides."""


@frozen
class CallTool:
    """Run a tool.

    Args:
        id: ``t<i>.<k>``.
        turn_id: The name of the turn.
        call: The call as the model made it.
        place: Its place in the batch, from 0.
        result_bytes: Bytes of the result at most.
        iterations_left: Model calls that may still be made.
        calls_left: Calls that may still be accepted, this batch counted as made.
        spending: What is left to the turn, where it has other bounds too.
    """

    id: str
    turn_id: str
    call: ToolCall
    place: int
    result_bytes: int | None
    iterations_left: int = 0
    calls_left: int = 0
    spending: Remaining | None = None

    @property
    def remaining(self) -> Remaining:
        """What is left to the turn, the call's batch counted as made."""
        # most calls do not ask, so it is not made for each
        return self.spending or Remaining(self.iterations_left, self.calls_left)

    @property
    def key(self) -> str:
        """The idempotency key, stable over retry, crash and resume."""
        return f"{self.turn_id}/{self.id}"


Op: TypeAlias = CallModel | AskApproval | CallTool


@frozen
class ModelFailed:
    """The model did not reply.

    Args:
        error: Why.
    """

    error: ModelError


@frozen
class OuterLimit:
    """The model was not asked: the turn that this one runs in has used up what they share.

    Args:
        limit: ``tokens`` or ``cost``.
    """

    limit: str


@frozen
class ToolFailed:
    """A handler, a renderer or a hook raised, or the result is of the wrong kind.

    Args:
        record: The call closed with an observation that names the exception's class only.
        error: The exception, for a turn that ends on it.
    """

    record: ToolCallRecord
    error: BaseException


@frozen
class Valued:
    """An outcome with the object that it holds: that of a typed answer, or of a direct-return tool.

    Args:
        outcome: The reply or the record.
        value: The object, which does not outlive the process; the outcome's text does.
    """

    outcome: ChatResponse | ToolCallRecord
    value: Any


@frozen
class Unfit:
    """A reply whose answer is not of the type that was asked for.

    Args:
        response: The reply.
        detail: What the model has to mend.
    """

    response: ChatResponse
    detail: str


Outcome: TypeAlias = (
    ChatResponse | Valued | Unfit | ModelFailed | OuterLimit | Approval | ApprovalPending | ToolCallRecord | ToolFailed
)


def record_of(outcome: Outcome) -> ToolCallRecord:
    """Return the record in what came of a tool call.

    Args:
        outcome: One that ``Turn.apply`` has taken for a CallTool.
    """
    if isinstance(outcome, ToolFailed):
        return outcome.record
    made = outcome.outcome if isinstance(outcome, Valued) else outcome
    assert isinstance(made, ToolCallRecord)
    return made


def response_of(outcome: Outcome) -> ChatResponse | None:
    """Return the reply in what came of a model call; None where there was none.

    Args:
        outcome: One that ``Turn.apply`` has taken for a CallModel.
    """
    made = outcome.outcome if isinstance(outcome, Valued) else outcome
    made = made.response if isinstance(made, Unfit) else made
    return made if isinstance(made, ChatResponse) else None
