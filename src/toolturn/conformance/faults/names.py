"""Names of tools that are not quite, or not at all, the name of a tool."""

from __future__ import annotations

from typing import Any, Final

from ..replies import asks, call, says
from ..rows import AFTER, FAILS, REFUSED, Fault, Way, either, ran

_RAN: Final = ran("get_temp", city="Faro")


def _row(name: str, text: str, written: Any, ways: tuple[Way, ...], **more: Any) -> Fault:
    replies = (asks(call(written, {"city": "Faro"})), says(AFTER))
    return Fault(f"names_{name}", text, replies, ways, told=True, **more)


ROWS: Final = (
    _row("unknown", "The model calls a tool that does not exist.", "forecast", REFUSED, tells=("forecast", "get_temp")),
    _row("near", "The name is one letter off: it is another name.", "get_tempo", REFUSED),
    _row("class_like", "The name looks like a class made for the tool.", "GetTempTool", REFUSED),
    _row("glued", "The type of the content is glued to the name.", "get_tempjson", REFUSED),
    _row("empty", "The name is empty.", "", REFUSED),
    _row("null", "The name is null.", None, REFUSED),
    _row(
        "sentence",
        "The name is a line of a shell, with blanks and 90 characters.",
        "git commit -m " + "x" * 76,
        REFUSED,
    ),
    _row("capitals", "The name is written in capitals.", "GET_TEMP", either(_RAN)),
    _row("hyphen", "The name has a hyphen for the underscore.", "get-temp", either(_RAN)),
    _row("blanks", "There are blanks around the name.", " get_temp ", either(_RAN)),
    _row("prefix", "The name has a prefix that some models were trained with.", "functions.get_temp", either(_RAN)),
    _row("special_token", "A special token leaked into the name.", "get_temp<|channel|>commentary", either(_RAN)),
    Fault(
        "names_one_unknown_of_two",
        "One call of two names a tool that does not exist.",
        (asks(call("get_temp", {"city": "Faro"}), call("forecast", {"city": "Faro"})), says(AFTER)),
        either(_RAN),
        told=True,
    ),
    Fault(
        "names_unknown_for_ever",
        "Every reply calls a tool that does not exist.",
        (asks(call("forecast", {})),),
        FAILS,
        requests=5,
    ),
)
