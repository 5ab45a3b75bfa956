"""What is told of a turn while it runs: the text of the answer alone, and events in order."""

from __future__ import annotations

from typing import Any, Final

from ..replies import Reply, asks, call, says
from ..rows import FORCED, Answer, Fault, Run, Way, ran

_TEMP: Final = call("get_temp", {"city": "Faro"})
_TEMP_RAN: Final = ran("get_temp", city="Faro")
_ADD: Final = call("add", {"a": 1, "b": 2})
_ADD_RAN: Final = ran("add", a=1, b=2)
_WARM: Final = "It is warm in Faro, and it will stay so until the evening."


def _text(name: str, text: str, *replies: Reply, runs: tuple[Run, ...] = (), answer: str = _WARM, **more: Any) -> Fault:
    needs = ("answer_stream", *more.pop("needs", ()))
    return Fault(f"told_{name}", text, replies, (Way(Answer(answer), runs),), ("stream",), needs, spoken=answer, **more)


def _events(name: str, text: str, *replies: Reply, runs: tuple[Run, ...], order: tuple[str, ...], **more: Any) -> Fault:
    needs = ("events", *more.pop("needs", ()))
    return Fault(f"told_{name}", text, replies, (Way(Answer(_WARM), runs),), ("stream",), needs, order=order, **more)


ROWS: Final = (
    _text("answer", "The answer comes at once.", says(_WARM)),
    _text("answer_after_call", "A call comes before the answer.", asks(_TEMP), says(_WARM), runs=(_TEMP_RAN,)),
    _text(
        "preamble",
        "The model says something beside its call: that is not the answer.",
        asks(_TEMP, text="I will look that up first."),
        says(_WARM),
        runs=(_TEMP_RAN,),
    ),
    _text(
        "preambles",
        "The model says something beside each of two calls.",
        asks(_TEMP, text="Let me see."),
        asks(_ADD, text="Now the sum."),
        says(_WARM),
        runs=(_TEMP_RAN, _ADD_RAN),
    ),
    _text(
        "answer_at_limit",
        "The answer is made at the limit, after a preamble.",
        asks(_TEMP, text="Let me see."),
        runs=(_TEMP_RAN,),
        answer=FORCED,
        forced=says(FORCED),
        needs=("answer",),
        max_iterations=1,
    ),
    _events(
        "one_call",
        "A call, its result and the answer are told in this order.",
        asks(_TEMP),
        says(_WARM),
        runs=(_TEMP_RAN,),
        order=("call get_temp", "result get_temp", "answer"),
    ),
    _events(
        "rounds",
        "What is told of two replies with a call each is told in order.",
        asks(_TEMP),
        asks(_ADD),
        says(_WARM),
        runs=(_TEMP_RAN, _ADD_RAN),
        order=("call get_temp", "result get_temp", "call add", "result add", "answer"),
    ),
)
