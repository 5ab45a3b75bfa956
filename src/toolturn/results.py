"""What comes out of a turn: one tool result, one line of the audit, the result of the whole."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, TypeAlias

from .frozen import frozen
from .messages import ChatMessage, Repair, ToolCall, Usage

ToolStatus: TypeAlias = Literal[
    "ok",
    "invalid_arguments",
    "unknown_tool",
    "error",
    "timeout",
    "refused",
    "denied",
    "approval_required",
    "not_executed",
    "cancelled",
    "outcome_unknown",
]
"""How a call ended.

``ok``, ``error`` (the tool failed or said so), ``timeout`` and ``refused`` (by a hook) are outcomes of a
call that was made; ``invalid_arguments`` and ``unknown_tool`` never reached a handler; ``denied`` ones were not
approved, ``approval_required`` ones wait for it; ``not_executed`` calls were still waiting when the turn ended;
``cancelled`` ones ended by a cancel, ``outcome_unknown`` ones were left behind while they ran.
"""


@frozen
class Approval:
    """Whether a call may run.

    Args:
        approved: It may.
        reason: Why not, for the model; or whatever the audit shall know of a yes.
        digest: Of the call it was given for, as :func:`toolturn.turn.digest_of` gives it; one that was given for
            another name or other arguments is refused. Where None it is the call that waits.
    """

    approved: bool
    reason: str = ""
    digest: str | None = None


@frozen
class ToolCallResult:
    """What one call gave.

    Args:
        message: The tool message that answers the call.
        return_direct: Whether the content is the turn's answer.
    """

    message: ChatMessage
    return_direct: bool


@frozen
class ToolCallRecord:
    """One line of the audit: a call and how it ended.

    Args:
        call: The call as the model made it.
        message: The tool message that answers it.
        return_direct: Whether the content was the turn's answer.
        op: The name of the operation, such as ``t1.0``; ``turn_id/op`` is the idempotency key.
        status: How the call ended.
        started: Seconds since the epoch when it began, 0 where it never did.
        seconds: How long it took.
        error: Class and text of the exception behind a failure, for people, never shown to the model.
        usage: What turns used that ran inside this call; None where there were none.
        loop_key: What makes a repetition of this call, where the tool says so itself.
    """

    call: ToolCall
    message: ChatMessage
    return_direct: bool
    op: str = ""
    status: ToolStatus = "ok"
    started: float = 0.0
    seconds: float = 0.0
    error: str | None = None
    usage: Usage | None = None
    loop_key: str | None = None


@frozen
class ToolLoopResult:
    """The result of a turn that ended with an answer.

    Args:
        content: The answer: the model's last text, stripped, or the content of a direct-return tool.
        messages: The whole transcript, the given messages first.
        tool_calls: The audit, one record per call in emitted order.
        iterations: Model calls that were made, a forced answer excluded.
        return_direct: Whether a tool gave the answer.
        usage: Tokens and cost of all model calls, those of turns inside its tools included.
        turn_id: The name of the turn.
        limit: Which limit forced the answer, or None.
        repairs: What was mended in the model's replies.
        value: The object that the answer holds: of the ``answer_type`` that was asked for, or what the direct-return
            tool gave; None for any other answer. Read from JSON it is in JSON's own types.
    """

    content: str
    messages: tuple[ChatMessage, ...]
    tool_calls: tuple[ToolCallRecord, ...]
    iterations: int
    return_direct: bool
    usage: Usage = field(default_factory=Usage)
    turn_id: str = ""
    limit: str | None = None
    repairs: tuple[Repair, ...] = ()
    value: Any = None
