"""Turns that end without an answer, after a tool has run: the user says something more, and nothing is lost."""

from __future__ import annotations

from typing import Any, Final

from ..replies import Http, Raw, Reply, asks, call, says
from ..rows import AFTER, Answer, Failure, Fault, Run, Way, goes_on, ran

_TEMP: Final = call("get_temp", {"city": "Faro"})
_TEMP_RAN: Final = ran("get_temp", city="Faro")
_TOLD: Final = "21 degrees in Faro"
_BOOM: Final = ran("boom", x=1)
_ERROR: Final = {"error": {"message": "the request is too hot", "type": "invalid_request_error"}}


def _row(name: str, text: str, *replies: Reply, runs: tuple[Run, ...] = (_TEMP_RAN,), **more: Any) -> Fault:
    needs = ("go_on", *more.pop("needs", ()))
    ways = more.pop("ways", (Way(Failure(), runs),))
    return Fault(f"after_{name}", text, replies, ways, needs=needs, acts=(goes_on(_TOLD),), **more)


_EITHER: Final = tuple(Way(end, (_TEMP_RAN, _BOOM)) for end in (Failure(bare=True), Answer(AFTER)))

ROWS: Final = (
    _row("answer", "The turn had its answer.", asks(_TEMP), says(AFTER), ways=(Way(Answer(AFTER), (_TEMP_RAN,)),)),
    _row("refused_request", "The next request was refused.", asks(_TEMP), Http(400, _ERROR)),
    _row(
        "wrong_key",
        "The key was revoked.",
        asks(_TEMP),
        Http(401, {"error": {"message": "wrong key", "type": "authentication_error"}}),
    ),
    _row("no_reply", "The connection closed without a reply, always.", asks(_TEMP), Raw()),
    _row(
        "silence",
        "No reply came within a second.",
        asks(_TEMP),
        Http(200, b"", {}, "stall"),
        needs=("timeout",),
        timeout=1.0,
    ),
    _row(
        "truncated_call",
        "The next reply was cut off within its call, always.",
        asks(_TEMP),
        asks(call("write_file", '{"path": "a.txt", "te'), finish="length"),
        ways=(Way(Failure(), (_TEMP_RAN,)), Way(Answer(AFTER), (_TEMP_RAN,))),
    ),
    _row(
        "filtered",
        "The next reply was filtered, always.",
        asks(_TEMP),
        says(None, "content_filter"),
    ),
    _row(
        "tool_failure",
        "The next tool failed.",
        asks(_TEMP),
        asks(call("boom", {"x": 1})),
        says(AFTER),
        ways=_EITHER,
    ),
    _row(
        "tool_failure_in_a_batch",
        "The second tool of a batch failed.",
        asks(_TEMP, call("boom", {"x": 1})),
        says(AFTER),
        ways=_EITHER,
        needs=("sequential",),
    ),
    _row(
        "iteration_limit",
        "The replies that were allowed were used up by calls.",
        asks(_TEMP),
        asks(call("ping", {})),
        ways=tuple(Way(Failure("limit"), (_TEMP_RAN, *(ran("ping"),) * number)) for number in (0, 1)),
        max_iterations=2,
        requests=2,
    ),
    _row(
        "call_limit",
        "A batch would have passed the calls that were allowed.",
        asks(_TEMP),
        asks(call("ping", {}), call("ping", {})),
        ways=(Way(Failure("limit"), (_TEMP_RAN,)), Way(Failure("limit"), (_TEMP_RAN, ran("ping")))),
        needs=("max_tool_calls",),
        max_tool_calls=2,
    ),
    _row(
        "token_limit",
        "The tokens that were allowed were used up.",
        asks(_TEMP),
        asks(call("ping", {})),
        ways=tuple(Way(Failure("limit"), (_TEMP_RAN, *(ran("ping"),) * number)) for number in (0, 1)),
        needs=("tokens",),
        limits={"tokens": 25},
        max_iterations=10,
    ),
)
