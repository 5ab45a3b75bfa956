"""Everything toolturn raises on purpose.

::

    RuntimeError
    ├── ToolLoopError                          a turn ended without an answer
    │   ├── ToolLoopLimitError                 a limit was reached
    │   │   ├── ToolLoopIterationLimitError
    │   │   ├── ToolLoopToolCallLimitError
    │   │   ├── ToolLoopTokenLimitError
    │   │   ├── ToolLoopCostLimitError
    │   │   ├── ToolLoopRepeatError
    │   │   └── ToolLoopDeadlineError
    │   ├── ToolLoopTruncatedResponseError     the model's reply was cut off; nothing of it ran
    │   ├── ToolLoopFilteredResponseError      the provider filtered or refused; nothing of it ran
    │   ├── ToolLoopEmptyResponseError         neither calls nor text
    │   ├── ToolLoopDirectReturnError          a direct-return tool was not alone in its batch
    │   ├── ToolLoopMalformedResponseError     calls announced but absent, or unusable ids
    │   ├── ToolLoopModelError                 the model failed; the ModelError is chained
    │   ├── ToolLoopToolError                  a tool failed under ``tool_errors="raise"``; the cause is chained
    │   ├── ToolLoopApprovalRequired           calls wait for a person's approval, and nobody could be asked
    │   └── ToolLoopCancelledError             the turn was cancelled
    └── ModelError                             a model could not be asked or did not reply
        ├── ModelUnavailableError              not reachable, not loadable, not there
        │   └── ModelOverloadedError           it is there but can not serve now
        ├── ModelRequestError                  the request is refused as it is
        │   ├── ModelAuthenticationError       no key, a wrong one, or one that may not use this model
        │   └── ModelContextError              the messages do not fit into the model's window
        ├── ModelRateLimitError                too many requests or tokens in too short a time
        ├── ModelTimeoutError                  no reply, or no further piece of it, in time
        ├── ModelStreamError                   a stream broke off before the reply was complete
        └── ModelProtocolError                 what replied is no model server, or says what none would
    Exception
    └── ToolError                              raised by a tool: its text is shown to the model

Every ``ToolLoopError`` carries a valid transcript, the audit, the usage and the turn's state; it can be pickled,
copied, and written as JSON with :func:`toolturn.codec.error_to_json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .messages import ChatMessage, ChatResponse, Repair, Usage
from .results import ToolCallRecord


@dataclass(frozen=True, slots=True)
class ErrorCause:
    """The exception behind an error, in a form that outlives the process.

    Args:
        type: The class's name.
        text: The exception's text.
    """

    type: str
    text: str


class ToolLoopError(RuntimeError):
    """A turn ended without an answer.

    Args:
        message: One sentence for people.
        messages: The valid transcript up to here; a rejected reply is not in it.
        tool_calls: The audit.
        iterations: Model calls made, the one of a rejected reply included.
        rejected_response: The reply that was refused, where one was.
        usage: Tokens and cost of all model calls, those of turns inside its tools included.
        turn_id: The name of the turn.
        state: The turn as JSON, which ``resume`` continues; None where there is none.
        cause: The exception behind it, where there is one; the live one is chained as ``__cause__``.
        repairs: What was mended in the model's replies.
    """

    def __init__(
        self,
        message: str,
        *,
        messages: Sequence[ChatMessage],
        tool_calls: Sequence[ToolCallRecord],
        iterations: int,
        rejected_response: ChatResponse | None = None,
        usage: Usage | None = None,
        turn_id: str = "",
        state: str | None = None,
        cause: ErrorCause | None = None,
        repairs: Sequence[Repair] = (),
    ) -> None:
        super().__init__(message)
        self.messages: tuple[ChatMessage, ...] = tuple(messages)
        self.tool_calls: tuple[ToolCallRecord, ...] = tuple(tool_calls)
        self.iterations = iterations
        self.rejected_response = rejected_response
        self.usage = Usage() if usage is None else usage
        self.turn_id = turn_id
        self.state = state
        self.cause = cause
        self.repairs: tuple[Repair, ...] = tuple(repairs)

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone.
        attributes = dict(self.__dict__)
        rejected = self.rejected_response
        if rejected is not None and not _portable(rejected.raw):
            attributes["rejected_response"] = replace(rejected, raw=f"<{type(rejected.raw).__name__}>")
        return _rebuild, (type(self), str(self), attributes)


def _portable(raw: Any) -> bool:
    """Whether a provider's object can be pickled."""
    import pickle

    try:
        pickle.dumps(raw)
    except Exception:  # noqa: BLE001 - whatever stands in the way
        return False
    return True


def _rebuild(cls: type[ToolLoopError], message: str, attributes: dict[str, Any]) -> ToolLoopError:
    error = cls(message, messages=(), tool_calls=(), iterations=0)
    error.__dict__.update(attributes)
    return error


class ToolLoopLimitError(ToolLoopError):
    """A limit of the turn was reached."""


class ToolLoopIterationLimitError(ToolLoopLimitError):
    """The model did not answer within the allowed number of model calls."""


class ToolLoopToolCallLimitError(ToolLoopLimitError):
    """A batch would have passed the allowed number of tool calls, of all or of one tool; none of it ran."""


class ToolLoopTokenLimitError(ToolLoopLimitError):
    """The turn has used up its tokens; what it had not begun did not run."""


class ToolLoopCostLimitError(ToolLoopLimitError):
    """The turn has used up what it may cost; what it had not begun did not run."""


class ToolLoopRepeatError(ToolLoopLimitError):
    """The model made the same call with the same result again and again, although it was told."""


class ToolLoopDeadlineError(ToolLoopLimitError):
    """The turn ran out of time."""


class ToolLoopTruncatedResponseError(ToolLoopError):
    """The model's reply was cut off; nothing of it ran."""


class ToolLoopFilteredResponseError(ToolLoopError):
    """The provider filtered the reply or the model refused; nothing of it ran."""


class ToolLoopEmptyResponseError(ToolLoopError):
    """The model returned neither calls nor text."""


class ToolLoopDirectReturnError(ToolLoopError):
    """A direct-return tool was not the only call of its batch; nothing of it ran."""


class ToolLoopMalformedResponseError(ToolLoopError):
    """Calls were announced but absent, or their ids are unusable; nothing of it ran."""


class ToolLoopModelError(ToolLoopError):
    """The model failed; the :class:`ModelError` is chained."""


class ToolLoopToolError(ToolLoopError):
    """A tool failed under ``tool_errors="raise"``; the exception is chained and its text is in this one."""


class ToolLoopApprovalRequired(ToolLoopError):
    """Calls wait for approval and nobody could be asked: ``resume(error, approvals={...})`` goes on, also days later.

    Nothing of the batch has run.
    """

    @property
    def pending(self) -> tuple[ToolCallRecord, ...]:
        """The calls that wait, with their names and arguments."""
        return tuple(record for record in self.tool_calls if record.status == "approval_required")


class ToolLoopCancelledError(ToolLoopError):
    """The turn was cancelled before it had an answer."""


class ModelError(RuntimeError):
    """A model could not be asked or did not give a usable reply.

    Args:
        message: One sentence for people, with the provider's own words; never a key.
        status: The HTTP status, where a server replied.
        request_id: The provider's name for the request, which its support asks for.
        retry_after: Seconds after which the provider wants to be asked again, where it says so.
        partial: The text that had arrived when a stream broke off.
    """

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.partial = partial


class ModelUnavailableError(ModelError):
    """The model is not reachable, can not be loaded, or is not there."""


class ModelOverloadedError(ModelUnavailableError):
    """The model's server is there but can not serve now."""


class ModelRequestError(ModelError):
    """The model refused the request as it is; asking again the same way is of no use."""


class ModelAuthenticationError(ModelRequestError):
    """There is no key, or it is wrong, or it may not use this model."""


class ModelContextError(ModelRequestError):
    """The messages do not fit into the model's window."""


class ModelRateLimitError(ModelError):
    """Too many requests or tokens in too short a time."""


class ModelTimeoutError(ModelError):
    """No reply, or no further piece of it, came in time."""


class ModelStreamError(ModelError):
    """A stream broke off, or told of an error, before the reply was complete."""


class ModelProtocolError(ModelError):
    """What replied is no model server, or its reply is none that a model's wire knows."""


class ToolError(Exception):
    """Raised by a tool to tell the model what went wrong; its text is shown to the model as it is."""


class ToolTimeoutError(TimeoutError):
    """A tool did not finish in its time.

    Attributes:
        tool: The tool whose time-out it was.
    """

    tool: object = None


class InvalidToolArguments(ValueError):
    """The arguments of a call do not fit the tool; the text is fit for the model and holds no value of it."""
