"""Bounds on what a turn may use: tokens, time, single tools, the size of a result, the same thing again and again.

Each reply of the lab uses 15 tokens, 5 of them for the reply itself.
"""

from __future__ import annotations

from typing import Final

from ..replies import Http, Slow, asks, call, says
from ..rows import AFTER, Answer, Failure, Fault, Run, Way, goes_on, must_run, ran

_LOOP: Final = asks(call("ping", {}))
_TEMP: Final = call("get_temp", {"city": "Faro"})
_TEMP_RAN: Final = ran("get_temp", city="Faro")
_TEMP_TOLD: Final = "21 degrees in Faro"
_ADDS: Final = tuple(call("add", {"a": number, "b": number}) for number in (1, 2, 3))
_SILENCE: Final = Http(200, b"", {}, "stall")


def _pings(*numbers: int) -> tuple[Way, ...]:
    """An error of the kind limit, with what the tools gave."""
    return tuple(Way(Failure("limit", transcript=True), (ran("ping"),) * number) for number in numbers)


def _limit(*runs: Run) -> tuple[Way, ...]:
    return (Way(Failure("limit"), runs),)


ROWS: Final = (
    Fault(
        "budget_tokens",
        "40 tokens are allowed in all, each reply takes 15, and the model makes a call in every one.",
        (_LOOP,),
        _pings(2, 3),
        needs=("tokens",),
        limits={"tokens": 40},
        max_iterations=10,
        requests=3,
    ),
    Fault(
        "budget_tokens_used_up",
        "30 tokens are allowed in all and two replies have taken them: a third one can only pass the limit.",
        (_LOOP,),
        _pings(1, 2),
        needs=("tokens",),
        limits={"tokens": 30},
        max_iterations=10,
        requests=2,
    ),
    Fault(
        "budget_tokens_left",
        "22 tokens are allowed in all and 7 are left: a further request must not allow the model more.",
        (_LOOP,),
        _pings(0, 1, 2),
        needs=("tokens",),
        limits={"tokens": 22},
        max_iterations=10,
        requests=2,
        last_left=7,
    ),
    Fault(
        "budget_tokens_enough",
        "45 tokens are allowed in all, and the third reply, which takes the last of them, is the answer.",
        (_LOOP, _LOOP, says("done")),
        (Way(Answer("done"), (ran("ping"),) * 2),),
        needs=("tokens",),
        limits={"tokens": 45},
        max_iterations=10,
    ),
    Fault(
        "budget_cost",
        "A turn may cost 0.40, each reply costs 0.15, and the model makes a call in every one.",
        (_LOOP,),
        _pings(2, 3),
        needs=("cost",),
        limits={"cost": 0.4},
        max_iterations=10,
        requests=3,
    ),
    Fault(
        "budget_cost_enough",
        "A turn may cost 0.50, and the third reply, with which it comes to 0.45, is the answer.",
        (_LOOP, _LOOP, says("done")),
        (Way(Answer("done"), (ran("ping"),) * 2),),
        needs=("cost",),
        limits={"cost": 0.5},
        max_iterations=10,
    ),
    Fault(
        "budget_deadline_silence",
        "The turn has 0.6 seconds, a tool has run, and then no reply comes.",
        (asks(_TEMP), _SILENCE),
        _limit(_TEMP_RAN),
        needs=("deadline", "go_on"),
        limits={"deadline": 0.6},
        requests=2,
        within=2.6,
        acts=(goes_on(_TEMP_TOLD),),
    ),
    Fault(
        "budget_deadline_slow_replies",
        "The turn has 0.8 seconds; each reply takes 0.25, holds a call, and is in time by itself.",
        (Slow(_LOOP, 0.25),),
        _pings(1, 2, 3),
        needs=("deadline",),
        limits={"deadline": 0.8},
        max_iterations=20,
        requests=4,
        within=2.8,
    ),
    Fault(
        "budget_deadline_tool",
        "The turn has 0.6 seconds, and a tool takes a minute; it cleans up when it is stopped.",
        (asks(_TEMP), asks(call("wait_long", {})), says(AFTER)),
        _limit(_TEMP_RAN, ran("wait_long"), ran("clean_up")),
        needs=("deadline", "go_on"),
        limits={"deadline": 0.6},
        requests=2,
        within=2.6,
        acts=(goes_on(_TEMP_TOLD),),
    ),
    Fault(
        "budget_deadline_enough",
        "The turn has 20 seconds and needs a moment.",
        (_LOOP, says("done")),
        must_run(ran("ping"), text="done"),
        needs=("deadline",),
        limits={"deadline": 20.0},
    ),
    Fault(
        "budget_per_tool",
        "One tool may be called twice, and the model calls it in each of three replies.",
        (_LOOP, _LOOP, _LOOP, says(AFTER)),
        (*_pings(2), Way(Answer(AFTER), (ran("ping"),) * 2)),
        needs=("per_tool",),
        limits={"per_tool": {"ping": 2}},
        max_iterations=10,
    ),
    Fault(
        "budget_per_tool_batch",
        "One tool may be called once, and a reply calls it twice, beside another one: nothing of that runs.",
        (asks(_TEMP, *_ADDS[:2]), says(AFTER)),
        (*_limit(), Way(Answer(AFTER))),
        needs=("per_tool",),
        limits={"per_tool": {"add": 1}},
    ),
    Fault(
        "budget_per_tool_others",
        "One tool may not be called at all; the model calls another one.",
        (asks(_ADDS[0]), says("done")),
        must_run(ran("add", a=1, b=1), text="done"),
        needs=("per_tool",),
        limits={"per_tool": {"ping": 0}},
    ),
    Fault(
        "budget_batch_runs_nothing",
        "Two calls are allowed in all, and the model makes three in one reply: nothing of that runs.",
        (asks(*_ADDS), says(AFTER)),
        (*_limit(), Way(Answer(AFTER))),
        needs=("max_tool_calls",),
        max_tool_calls=2,
    ),
    Fault(
        "budget_result_size",
        "A tool returns five megabytes, and 20,000 bytes of a result are allowed.",
        (asks(call("big", {})), says(AFTER)),
        must_run(ran("big")),
        needs=("result_bytes",),
        limits={"result_bytes": 20_000},
        largest=20_000,
    ),
    Fault(
        "budget_repeats",
        "The model makes the same call with the same result again and again; three times are allowed.",
        (_LOOP,),
        _pings(3, 4),
        needs=("repeats",),
        limits={"repeats": 3},
        max_iterations=20,
        requests=5,
    ),
    Fault(
        "budget_repeats_with_change",
        "The model makes the same call again and again, and each time the result is another one.",
        (*(asks(call("count", {})),) * 5, says("done")),
        (Way(Answer("done"), (ran("count"),) * 5),),
        needs=("repeats",),
        limits={"repeats": 3},
        max_iterations=20,
    ),
    Fault(
        "budget_repeats_with_others",
        "The model makes two calls in turn, each with a result of its own.",
        (_LOOP, asks(_TEMP), _LOOP, asks(_TEMP), says("done")),
        (Way(Answer("done"), (ran("ping"), _TEMP_RAN) * 2),),
        needs=("repeats",),
        limits={"repeats": 3},
        max_iterations=20,
    ),
)
