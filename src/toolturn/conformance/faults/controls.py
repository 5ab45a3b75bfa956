"""No fault at all: what any client has to get right before the rest says anything about it."""

from __future__ import annotations

from typing import Final

from ..replies import asks, call, says
from ..rows import Answer, Fault, Way, must_run, ran

_ADD: Final = call("add", {"a": 1, "b": 2})

ROWS: Final = (
    Fault(
        "good_answer",
        "The model answers at once.",
        (says("Grüße, all is well."),),
        (Way(Answer("Grüße, all is well.")),),
    ),
    Fault(
        "good_call",
        "The model makes one call.",
        (asks(_ADD), says("three")),
        must_run(ran("add", a=1, b=2), text="three"),
    ),
    Fault(
        "good_batch",
        "The model makes two calls in one reply.",
        (asks(_ADD, call("get_temp", {"city": "Faro"})), says("done")),
        must_run(ran("add", a=1, b=2), ran("get_temp", city="Faro"), text="done"),
    ),
    Fault(
        "good_rounds",
        "The model makes a call in each of three replies.",
        (asks(_ADD), asks(call("add", {"a": 3, "b": 3})), asks(call("add", {"a": 6, "b": 4})), says("ten")),
        must_run(ran("add", a=1, b=2), ran("add", a=3, b=3), ran("add", a=6, b=4), text="ten"),
    ),
    Fault(
        "good_text_beside_call",
        "The model says something beside its call.",
        (asks(_ADD, text="Let me add."), says("three")),
        must_run(ran("add", a=1, b=2), text="three"),
    ),
    Fault(
        "good_equal_calls",
        "The model makes the same call twice in one reply, with two ids: both are meant.",
        (asks(call("ping", {}), call("ping", {})), says("twice")),
        must_run(ran("ping"), ran("ping"), text="twice"),
    ),
    Fault(
        "good_unicode",
        "Arguments and answer hold letters of several scripts and signs beyond the basic plane.",
        (asks(call("get_temp", '{"city": "Kōbe 神戸 \\ud83c\\udf26"}')), says("21° 🌦")),
        must_run(ran("get_temp", city="Kōbe 神戸 🌦"), text="21° 🌦"),
    ),
    Fault(
        "good_large_arguments",
        "A call has 60,000 characters of text.",
        (asks(call("write_file", {"path": "a.txt", "text": "word " * 12_000})), says("written")),
        must_run(ran("write_file", path="a.txt", text="word " * 12_000), text="written"),
    ),
)
