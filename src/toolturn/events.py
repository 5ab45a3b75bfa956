"""What a running turn tells its audience, in the order in which it happens.

While tools are offered, text is provisional until the reply ends without calls; ``Answer`` holds what is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from .errors import ToolLoopError
from .frozen import frozen
from .messages import Repair, ToolCall
from .results import ToolCallRecord, ToolLoopResult


@frozen
class Iteration:
    """A model call begins.

    Args:
        number: Which one, from 1; of a forced answer the number of iterations so far.
        op: The name of the operation.
        forced: Whether it is the last answer at a limit.
    """

    type: ClassVar[str] = "iteration"
    number: int
    op: str
    forced: bool = False


@frozen
class Text:
    """A piece of the model's reply; provisional while tools are offered.

    Args:
        text: The piece.
        op: The model call it belongs to.
    """

    type: ClassVar[str] = "text"
    text: str
    op: str


@frozen
class Reasoning:
    """A piece of what the model thought; never part of the answer.

    Args:
        text: The piece.
        op: The model call it belongs to.
    """

    type: ClassVar[str] = "reasoning"
    text: str
    op: str


@frozen
class ApprovalAsked:
    """Somebody is asked whether a call may run.

    Args:
        call: The call as the model made it.
        op: The name of the operation.
    """

    type: ClassVar[str] = "approval"
    call: ToolCall
    op: str


@frozen
class ToolCallStarted:
    """A tool call begins.

    Args:
        call: The call as the model made it.
        op: The name of the operation.
    """

    type: ClassVar[str] = "tool_call"
    call: ToolCall
    op: str


@frozen
class ToolProgress:
    """A running tool tells how far it is.

    Args:
        call: The call as the model made it.
        op: The name of the operation.
        data: Whatever the tool said.
    """

    type: ClassVar[str] = "tool_progress"
    call: ToolCall
    op: str
    data: Any


@frozen
class ToolResult:
    """A tool call has ended.

    Args:
        record: The call and how it ended.
    """

    type: ClassVar[str] = "tool_result"
    record: ToolCallRecord


@frozen
class Repaired:
    """Something in the model's reply was mended.

    Args:
        repair: What, and in the reply to which operation.
    """

    type: ClassVar[str] = "repair"
    repair: Repair


@frozen
class Answer:
    """The answer is certain.

    Args:
        content: The whole of it.
    """

    type: ClassVar[str] = "answer"
    content: str


@frozen
class Done:
    """The turn has ended; nothing follows.

    Args:
        exit: The result or the error.
    """

    type: ClassVar[str] = "done"
    exit: ToolLoopResult | ToolLoopError


Event: TypeAlias = (
    Iteration
    | Text
    | Reasoning
    | Repaired
    | ApprovalAsked
    | ToolCallStarted
    | ToolProgress
    | ToolResult
    | Answer
    | Done
)
Emit: TypeAlias = Callable[[Event], None]
"""Takes an event at once; it must not block, and what it raises ends the turn."""
