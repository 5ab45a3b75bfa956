"""The answer at a limit: one last request in which tools are not allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..replies import Http, Reply, asks, call, says
from ..rows import FORCED, Answer, Failure, Fault, Way, goes_on, ran

_LOOP: Final = asks(call("ping", {}))
_TEMP: Final = asks(call("get_temp", {"city": "Faro"}))
_TEMP_RAN: Final = ran("get_temp", city="Faro")
_TEMP_TOLD: Final = "21 degrees in Faro"
_ADDS: Final = tuple(call("add", {"a": number, "b": number}) for number in (1, 2, 3))


def _row(
    name: str,
    text: str,
    *replies: Reply,
    ways: tuple[Way, ...],
    forced: Reply | None = None,
    needs: tuple[str, ...] = (),
    limits: Mapping[str, Any] | None = None,
    **more: Any,
) -> Fault:
    forced = says(FORCED) if forced is None else forced
    return Fault(
        f"last_{name}", text, replies, ways, forced=forced, needs=("answer", *needs), limits=limits or {}, **more
    )


def _answers(*numbers: int) -> tuple[Way, ...]:
    return tuple(Way(Answer(FORCED), (ran("ping"),) * number) for number in numbers)


_FAILS: Final = (Way(Failure(), (_TEMP_RAN,)),)

ROWS: Final = (
    _row(
        "iterations",
        "The model makes a call in every reply; two are allowed, and then an answer.",
        _LOOP,
        ways=_answers(1, 2),
        max_iterations=2,
        requests=3,
    ),
    _row(
        "calls",
        "Two calls are allowed, the model makes three in one reply, and then an answer.",
        asks(*_ADDS),
        ways=(Way(Answer(FORCED)),),
        needs=("max_tool_calls",),
        max_tool_calls=2,
        requests=2,
    ),
    _row(
        "calls_in_rounds",
        "Two calls are allowed, the model makes one in each reply, and then an answer.",
        *(asks(each) for each in _ADDS),
        ways=(Way(Answer(FORCED), (ran("add", a=1, b=1), ran("add", a=2, b=2))),),
        needs=("max_tool_calls",),
        max_tool_calls=2,
        requests=4,
    ),
    _row(
        "tokens",
        "60 tokens are allowed, each reply takes 15, and the last of four is an answer.",
        _LOOP,
        ways=_answers(1, 2, 3),
        needs=("tokens",),
        limits={"tokens": 60},
        max_iterations=10,
        requests=4,
    ),
    _row(
        "per_tool",
        "One tool may be called once, the model calls it in each reply, and then an answer.",
        _LOOP,
        ways=_answers(1),
        needs=("per_tool",),
        limits={"per_tool": {"ping": 1}},
        requests=3,
    ),
    _row(
        "repeats",
        "The model makes the same call with the same result again and again, and then an answer.",
        _LOOP,
        ways=_answers(3, 4),
        needs=("repeats",),
        limits={"repeats": 3},
        max_iterations=20,
        requests=6,
    ),
    _row(
        "keeps_tools",
        "The server takes tools with the tool choice none, and no calls without tools.",
        _LOOP,
        ways=_answers(1, 2),
        max_iterations=2,
        requests=3,
        keeps_tools=True,
    ),
    _row(
        "leaves_out_tools",
        "The server refuses the tool choice none: the tools have to be left out.",
        _LOOP,
        ways=_answers(1, 2),
        max_iterations=2,
        requests=3,
        choice_none=False,
        keeps_tools=False,
    ),
    _row(
        "calls_again",
        "The last reply, in which tools are not allowed, is a call all the same: it does not run.",
        _TEMP,
        ways=_FAILS,
        forced=asks(call("send_message", {"to": "ann", "text": "hi"})),
        needs=("go_on",),
        max_iterations=1,
        requests=2,
        acts=(goes_on(_TEMP_TOLD),),
    ),
    _row(
        "says_nothing",
        "The last reply is empty.",
        _TEMP,
        ways=_FAILS,
        forced=says(""),
        needs=("go_on",),
        max_iterations=1,
        requests=2,
        acts=(goes_on(_TEMP_TOLD),),
    ),
    _row(
        "refused",
        "The server refuses the request for the last reply.",
        _TEMP,
        ways=_FAILS,
        forced=Http(400, {"error": {"message": "the request is too hot", "type": "invalid_request_error"}}),
        needs=("go_on",),
        max_iterations=1,
        acts=(goes_on(_TEMP_TOLD),),
    ),
    _row(
        "goes_on",
        "After an answer at the limit the conversation goes on.",
        _TEMP,
        ways=(Way(Answer(FORCED), (_TEMP_RAN,)),),
        needs=("go_on",),
        max_iterations=1,
        requests=2,
        acts=(goes_on(_TEMP_TOLD, FORCED),),
    ),
    _row(
        "goes_on_after_a_refused_batch",
        "After an answer at the limit of calls, which a batch would have passed, the conversation goes on.",
        asks(*_ADDS),
        ways=(Way(Answer(FORCED)),),
        needs=("max_tool_calls", "go_on"),
        max_tool_calls=2,
        requests=2,
        acts=(goes_on(FORCED),),
    ),
)
