"""What a tool can know of the turn it runs in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..limits import Remaining
from ..messages import ToolCall


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What the caller of a turn tells its tools.

    Args:
        session: Whose conversation it is.
        language: A BCP 47 tag such as ``de-AT``.
        data: Anything else.
    """

    session: str | None = None
    language: str | None = None
    data: Any = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a handler with a parameter annotated ``ToolContext`` is given.

    Args:
        turn_id: The name of the turn; empty when the tool runs outside of one.
        op: The name of the operation, such as ``t1.0``.
        call: The call as the model made it; None outside of a turn.
        session: Whose conversation it is.
        language: A BCP 47 tag such as ``de-AT``.
        data: What the caller of the turn gave as ``context``.
        listener: Takes what ``emit`` is given; None when nobody listens.
        remaining: What is left to the turn when the call begins, its batch counted as made; None outside of a turn.
    """

    turn_id: str = ""
    op: str = ""
    call: ToolCall | None = None
    session: str | None = None
    language: str | None = None
    data: Any = None
    listener: Callable[[Any], None] | None = None
    remaining: Remaining | None = None

    @property
    def key(self) -> str:
        """The idempotency key of the call: the same at each retry, resume and after a crash."""
        return f"{self.turn_id}/{self.op}"

    def emit(self, data: Any) -> None:
        """Tell the audience of the turn how far the tool is.

        To be called from the thread or task the handler runs in; it does nothing when nobody listens.

        Args:
            data: Anything.
        """
        if self.listener is not None:
            self.listener(data)
