"""The state of a turn: what a saved turn holds, and what can be seen of it at every moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from ..errors import ToolLoopError
from ..limits import Limits, OnLimit, Remaining
from ..messages import ChatMessage, Repair, ToolCall, ToolDef, Usage
from ..results import Approval, ToolCallRecord, ToolLoopResult, ToolStatus
from ..transcript import closing_content
from .ending import Ending
from .ops import CallModel, ToolErrors, ToolTraits
from .repeating import Repeats
from .rules import Refusal

Phase: TypeAlias = Literal["new", "model", "approval", "tools", "forced", "ended"]


class State:
    """All that a turn knows; :class:`Turn` is this with the rules by which it changes.

    Attributes:
        phase: ``new``, waiting for the ``model``, an ``approval``, ``tools`` or a ``forced`` answer, or ``ended``.
    """

    __slots__ = (
        "_accepted",
        "_approvals",
        "_asked",
        "_asks",
        "_calls",
        "_draft",
        "_driver",
        "_ending",
        "_exit",
        "_last",
        "_left",
        "_limit",
        "_messages",
        "_next",
        "_nudge",
        "_outcomes",
        "_records",
        "_remaining",
        "_repeats",
        "_retries",
        "_seen",
        "_started",
        "_unasked",
        "_value",
        "_waiting",
        "definitions",
        "iterations",
        "limits",
        "nudges",
        "on_limit",
        "phase",
        "repairs",
        "required",
        "seconds",
        "tool_errors",
        "traits",
        "turn_id",
        "typed",
        "usage",
    )

    def __init__(self, turn_id: str = "") -> None:
        self.turn_id = turn_id
        self.limits = Limits()
        self.on_limit: OnLimit = "raise"
        self.tool_errors: ToolErrors = "raise"
        self.definitions: tuple[ToolDef, ...] = ()
        self.traits: Mapping[str, ToolTraits] = {}
        self.nudges = 0
        self.required = ""
        self.typed = False
        self.usage = Usage()
        self.repairs: list[Repair] = []
        self.iterations = 0
        self.seconds = 0.0
        self.phase: Phase = "new"
        self._messages: list[ChatMessage] = []
        self._records: list[ToolCallRecord] = []
        self._seen: set[str] = set()
        self._accepted = 0
        self._driver: Callable[[str], None] | None = None
        self._asked: CallModel | None = None
        self._calls: list[ToolCall] = []
        self._outcomes: list[ToolCallRecord | None] = []
        self._asks = False
        self._approvals: list[Approval | None] = []
        self._waiting: list[int] = []
        self._unasked: list[int] = []
        self._left = 0
        self._next = 0
        self._started = 0  # a bit for each place of the batch
        self._remaining: Remaining | None = None
        self._last: Usage | None = None
        self._repeats = Repeats()
        self._nudge = ""
        self._draft = ""
        self._value: Any = None
        self._retries = 0
        self._limit: Refusal | None = None
        self._ending: Ending | None = None
        self._exit: ToolLoopResult | ToolLoopError | None = None

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The transcript, valid at every moment: calls still open appear closed in it."""
        if not self._calls:
            return tuple(self._messages)
        return (*self._messages, *(record.message for record in open_records(self)))

    @property
    def records(self) -> tuple[ToolCallRecord, ...]:
        """The audit; calls still open appear closed in it."""
        if not self._calls:
            return tuple(self._records)
        return (*self._records, *open_records(self))

    def _end(self, ending: Ending) -> None:
        """Let the turn end.

        Args:
            ending: Why.
        """
        self._ending = ending
        self._exit = None
        self.phase = "ended"


def open_records(turn: State) -> list[ToolCallRecord]:
    """Return the records of the batch, in which calls that are still open appear closed.

    Args:
        turn: The turn.
    """
    made = []
    for place, outcome in enumerate(turn._outcomes):
        if outcome is None:
            outcome = closed(turn, place, "approval_required" if place in turn._waiting else "not_executed")
        made.append(outcome)
    return made


def closed(turn: State, place: int, status: ToolStatus) -> ToolCallRecord:
    """Return the record of a call that has no outcome.

    Args:
        turn: The turn.
        place: The call's place in the batch.
        status: What is to be said of it; of one that has begun only that its outcome is not known.
    """
    call = turn._calls[place]
    if turn._started >> place & 1:
        status = "outcome_unknown"
    message = ChatMessage("tool", closing_content(status), None, call.id)
    return ToolCallRecord(call, message, False, f"t{turn.iterations}.{place}", status)
