"""Ids of calls that can not name a call."""

from __future__ import annotations

from typing import Any, Final

from ..replies import ABSENT, asks, call, says
from ..rows import AFTER, Fault, must_run, ran, runs_or_fails

_FIRST: Final = {"a": 1, "b": 2}
_SECOND: Final = {"a": 10, "b": 20}
_RUNS: Final = (ran("add", a=1, b=2), ran("add", a=10, b=20))


def _two(name: str, text: str, first: Any, second: Any) -> Fault:
    replies = (asks(call("add", _FIRST, first), call("add", _SECOND, second)), says(AFTER))
    return Fault(f"ids_{name}", text, replies, runs_or_fails(*_RUNS))


def _one(name: str, text: str, given: Any) -> Fault:
    return Fault(f"ids_{name}", text, (asks(call("add", _FIRST, given)), says(AFTER)), runs_or_fails(_RUNS[0]))


ROWS: Final = (
    _two("empty", "Two calls have an empty id.", "", ""),
    _two("null", "Two calls have null as their id.", None, None),
    _two("absent", "Two calls have no id.", ABSENT, ABSENT),
    _two("blank", "Two calls have a blank as their id.", " ", " "),
    _two("same", "Two calls have the same id.", "call_1", "call_1"),
    _two("name_as_id", "Two calls have the tool's name as their id.", "add", "add"),
    _two("one_empty", "The second call of two has an empty id.", "call_1", ""),
    _one("one_null", "The only call has null as its id.", None),
    _one("number", "The id is a number.", 7),
    Fault(
        "ids_composite",
        "The id is made of two, with a bar between them.",
        (asks(call("add", _FIRST, "call_ab12|fc_99")), says(AFTER)),
        must_run(_RUNS[0]),
    ),
    Fault(
        "ids_reused",
        "An id comes again in a later reply.",
        (asks(call("add", _FIRST, "call_1")), asks(call("add", _SECOND, "call_1")), says(AFTER)),
        must_run(*_RUNS),
    ),
    Fault(
        "ids_empty_in_rounds",
        "Each of two replies has one call with an empty id.",
        (asks(call("add", _FIRST, "")), asks(call("add", _SECOND, "")), says(AFTER)),
        runs_or_fails(*_RUNS),
    ),
)
