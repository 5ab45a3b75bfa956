"""Limits: models that never stop, batches that pass the budget."""

from __future__ import annotations

from typing import Final

from ..replies import asks, call, says
from ..rows import AFTER, FORCED, Answer, Failure, Fault, Way, ran

_LOOP: Final = asks(call("ping", {}))
_ONE: Final = call("add", {"a": 1, "b": 1})
_TWO: Final = call("add", {"a": 2, "b": 2})
_THREE: Final = call("add", {"a": 3, "b": 3})
_RUNS: Final = (ran("add", a=1, b=1), ran("add", a=2, b=2), ran("add", a=3, b=3))


def _pings(*numbers: int) -> tuple[Way, ...]:
    """At the limit: an error with the transcript, or an answer made without tools."""
    return tuple(
        Way(end, (ran("ping"),) * number)
        for number in numbers
        for end in (Failure("limit", transcript=True), Answer(FORCED))
    )


ROWS: Final = (
    Fault(
        "limit_never_stops",
        "The model makes a call in every reply; four replies are allowed.",
        (_LOOP,),
        _pings(3, 4),
        forced=says(FORCED),
        requests=5,
    ),
    Fault(
        "limit_never_stops_at_all",
        "The model makes a call in every reply, even where tools are not allowed.",
        (_LOOP,),
        (
            Way(Failure("limit", transcript=True), (ran("ping"),) * 3),
            Way(Failure("limit", transcript=True), (ran("ping"),) * 4),
        ),
        requests=5,
    ),
    Fault(
        "limit_of_one",
        "One reply is allowed, and the model makes a call in it.",
        (_LOOP,),
        _pings(0, 1),
        max_iterations=1,
        forced=says(FORCED),
        requests=2,
    ),
    Fault(
        "limit_answer_at_the_last",
        "The model answers in the last reply that is allowed.",
        (_LOOP, _LOOP, _LOOP, says("done")),
        (Way(Answer("done"), (ran("ping"),) * 3),),
        requests=4,
    ),
    Fault(
        "limit_batch_over_budget",
        "Two calls are allowed in all, and the model makes three in one reply.",
        (asks(_ONE, _TWO, _THREE), says(AFTER)),
        (
            Way(Failure("limit", transcript=True)),
            Way(Answer(AFTER)),
            Way(Failure("limit", transcript=True), _RUNS[:2]),
            Way(Answer(AFTER), _RUNS[:2]),
        ),
        needs=("max_tool_calls",),
        max_tool_calls=2,
        forced=says(AFTER),
    ),
    Fault(
        "limit_budget_in_rounds",
        "Two calls are allowed in all, and the model makes one in each of three replies.",
        (asks(_ONE), asks(_TWO), asks(_THREE), says(AFTER)),
        (Way(Failure("limit", transcript=True), _RUNS[:2]), Way(Answer(AFTER), _RUNS[:2])),
        needs=("max_tool_calls",),
        max_tool_calls=2,
        forced=says(AFTER),
    ),
    Fault(
        "limit_budget_used_up",
        "Two calls are allowed in all, and the model makes two and answers.",
        (asks(_ONE), asks(_TWO), says("done")),
        (Way(Answer("done"), _RUNS[:2]),),
        needs=("max_tool_calls",),
        max_tool_calls=2,
    ),
    Fault(
        "limit_no_calls",
        "No call is allowed, and the model makes one.",
        (asks(_ONE), says(AFTER)),
        (Way(Failure("limit")), Way(Answer(AFTER))),
        needs=("max_tool_calls",),
        max_tool_calls=0,
        forced=says(AFTER),
    ),
)
