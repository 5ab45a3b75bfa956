"""Turns that are cancelled, as a program does it: with ``cancel()`` of the task; then the user says something more."""

from __future__ import annotations

from typing import Any, Final

from ..replies import Both, Events, Http, Reply, asks, call
from ..rows import Cancelled, Failure, Fault, Mode, Run, Way, goes_on, ran
from ..wire import delta

_TEMP: Final = call("get_temp", {"city": "Faro"})
_TEMP_RAN: Final = ran("get_temp", city="Faro")
_TEMP_TOLD: Final = "21 degrees in Faro"
_SEND: Final = call("send_message", {"to": "ann", "text": "hi"})
_WAIT: Final = call("wait_long", {})
_WAITED: Final = (ran("wait_long"), ran("clean_up"))
_SILENCE: Final = Http(200, b"", {}, "stall")
_BEGUN: Final = Events(
    (delta(role="assistant", content=""), delta(content="The way to do it is")), done=False, ending="stall"
)
_CALLING: Final = Events(
    (
        delta(role="assistant", content=None),
        delta(
            tool_calls=[
                {
                    "index": 0,
                    "id": "call_x",
                    "type": "function",
                    "function": {"name": "send_message", "arguments": '{"to": "ann", "text": "hi"}'},
                }
            ]
        ),
    ),
    done=False,
    ending="stall",
)


def _row(
    name: str,
    text: str,
    *replies: Reply,
    runs: tuple[Run, ...] = (),
    cancel: str = "reply",
    told: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
    modes: tuple[Mode, ...] = ("plain", "stream"),
    within: float = 1.0,
    **more: Any,
) -> Fault:
    return Fault(
        f"cancel_{name}",
        text,
        replies,
        (Way(Cancelled(), runs),),
        modes,
        ("go_on", *needs),
        cancel=cancel,
        within=within,
        requests=len(replies),
        acts=(goes_on(*told),),
        **more,
    )


ROWS: Final = (
    _row("first_reply", "The turn is cancelled while the first reply is awaited.", _SILENCE),
    _row(
        "reply_after_tool",
        "The turn is cancelled while a reply is awaited, after a tool has run.",
        asks(_TEMP),
        _SILENCE,
        runs=(_TEMP_RAN,),
        told=(_TEMP_TOLD,),
    ),
    _row(
        "within_body",
        "The turn is cancelled when half of a reply has come.",
        Both(Http(200, b'{"id": "chatcmpl-1", "object": "chat', {}, "stall"), _BEGUN),
    ),
    _row(
        "within_text",
        "The turn is cancelled within the text of a stream, after a tool has run.",
        asks(_TEMP),
        _BEGUN,
        runs=(_TEMP_RAN,),
        told=(_TEMP_TOLD,),
        modes=("stream",),
    ),
    _row(
        "within_call",
        "The turn is cancelled in a stream after a call that looks complete: it does not run.",
        _CALLING,
        modes=("stream",),
    ),
    Fault(
        "cancel_between_attempts",
        "The server wants to be asked again after twenty seconds, and meanwhile the turn is cancelled.",
        (Http(429, {"error": {"message": "slow down", "type": "rate_limit"}}, {"retry-after": "20"}),),
        (Way(Cancelled()), Way(Failure("rate_limit"))),
        needs=("go_on",),
        cancel="pause",
        within=1.0,
        requests=1,
        acts=(goes_on(),),
    ),
    _row(
        "tool",
        "The turn is cancelled while a tool runs, which needs a moment to clean up.",
        asks(_WAIT),
        cancel="wait_long",
        runs=_WAITED,
    ),
    _row(
        "second_tool",
        "The turn is cancelled while the second tool of a batch runs: the first one has its result.",
        asks(_TEMP, _WAIT),
        cancel="wait_long",
        runs=(_TEMP_RAN, *_WAITED),
        told=(_TEMP_TOLD,),
        needs=("sequential",),
    ),
    _row(
        "between_tools",
        "The turn is cancelled when the first tool of a batch has just done its work: the second one does not run.",
        asks(call("stop_here", {}), _SEND),
        cancel="stop_here",
        runs=(ran("stop_here"),),
        needs=("sequential",),
    ),
    _row(
        "tool_before_others",
        "The turn is cancelled while the first tool of a batch runs: the others do not run.",
        asks(_WAIT, _SEND, _TEMP),
        cancel="wait_long",
        runs=_WAITED,
        needs=("sequential",),
    ),
    _row(
        "tool_in_second_round",
        "The turn is cancelled while a tool of the second reply runs; one of the first reply had its result.",
        asks(_TEMP),
        asks(_WAIT),
        cancel="wait_long",
        runs=(_TEMP_RAN, *_WAITED),
        told=(_TEMP_TOLD,),
    ),
    _row(
        "blocking_tool",
        "The turn is cancelled while a tool blocks its thread for four seconds; one second is allowed for that.",
        asks(call("block", {})),
        cancel="block",
        runs=(ran("block"),),
        within=2.5,
    ),
)
