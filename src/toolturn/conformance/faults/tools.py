"""Tools that fail, and results that are hard to send."""

from __future__ import annotations

from typing import Final

from ..replies import asks, call, says
from ..rows import AFTER, Answer, Failure, Fault, Run, Way, must_run, ran


def _told(*runs: Run) -> tuple[Way, ...]:
    """A failed tool is told to the model, or ends the turn with an error that keeps the transcript."""
    return Way(Answer(AFTER), runs), Way(Failure(transcript=True), runs)


_BOOM: Final = ran("boom", x=1)
_ADD: Final = call("add", {"a": 1, "b": 2})

ROWS: Final = (
    Fault("tool_raises", "A tool raises an exception.", (asks(call("boom", {"x": 1})), says(AFTER)), _told(_BOOM)),
    Fault(
        "tool_raises_a_secret",
        "A tool raises an exception whose text holds a password that nobody meant for the model.",
        (asks(call("boom", {"x": 1})), says(AFTER)),
        _told(_BOOM),
        hides=("hunter2",),
    ),
    Fault(
        "tool_raises_after_another",
        "The second tool of a batch raises an exception: the first one has run.",
        (asks(_ADD, call("boom", {"x": 1})), says(AFTER)),
        _told(ran("add", a=1, b=2), _BOOM),
    ),
    Fault(
        "tool_raises_before_another",
        "The first tool of a batch raises an exception.",
        (asks(call("boom", {"x": 1}), _ADD), says(AFTER)),
        (*_told(_BOOM, ran("add", a=1, b=2)), Way(Failure(transcript=True), (_BOOM,))),
    ),
    Fault("tool_exits", "A tool calls sys.exit.", (asks(call("leave", {})), says(AFTER)), _told(ran("leave"))),
    Fault(
        "tool_returns_none",
        "A tool returns nothing.",
        (asks(call("nothing", {})), says(AFTER)),
        must_run(ran("nothing")),
    ),
    Fault(
        "tool_returns_empty",
        "A tool returns an empty text.",
        (asks(call("blank", {})), says(AFTER)),
        must_run(ran("blank")),
    ),
    Fault(
        "tool_returns_half_a_character",
        "A tool returns a text with half a surrogate pair, as some file names are.",
        (asks(call("file_name", {})), says(AFTER)),
        _told(ran("file_name")),
    ),
    Fault(
        "tool_fails_for_ever",
        "A tool raises an exception each time, and the model calls it each time.",
        (asks(call("boom", {"x": 1})),),
        tuple(
            Way(end, (_BOOM,) * number) for number in (1, 2, 3, 4) for end in (Failure(transcript=True), Answer(AFTER))
        ),
        forced=says(AFTER),
        requests=5,
    ),
)
