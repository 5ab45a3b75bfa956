"""Whether a run of a row kept its bounds: time, size, order, what the model is allowed; pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .rows import CLOSED_WITHIN, Fault
from .server import Received
from .trace import Trace


def further(row: Fault, trace: Trace) -> list[str]:
    """Return what of a run passes a bound of its row, in phrases.

    Args:
        row: The row.
        trace: What the run left.
    """
    wrong = list(_time(row, trace))
    if trace.requests:
        wrong += _allowed(row, trace.requests)
    if row.largest:
        sizes = (len(str(message.get("content"))) for request in trace.requests for message in request.messages)
        largest = max(sizes, default=0)
        if largest > row.largest:
            wrong.append(f"sent a message of {largest} characters")
    return wrong + list(_told(row, trace.seen))


def _time(row: Fault, trace: Trace) -> Iterator[str]:
    if row.within and trace.exit.how not in ("hung", "died") and trace.exit.took > row.within:
        yield f"control was back after {trace.exit.took:.1f} s"
    if row.cancel != "reply" or not trace.cancelled or not trace.requests:
        return
    gone = trace.requests[-1].gone
    if gone is None:
        yield "left the connection open after the cancel"
    elif gone - trace.cancelled > CLOSED_WITHIN:
        yield f"closed the connection {gone - trace.cancelled:.1f} s after the cancel"


def _allowed(row: Fault, requests: Sequence[Received]) -> Iterator[str]:
    if row.keeps_tools is not None:
        for number, request in enumerate(requests, 1):
            if not request.tools_allowed and bool(request.body.get("tools")) is not row.keeps_tools:
                yield f"request {number} {'leaves out' if row.keeps_tools else 'holds'} the tools"
                break
    if row.last_left and len(requests) > 1:
        body: dict[str, Any] = requests[-1].body or {}
        most = body.get("max_completion_tokens", body.get("max_tokens"))
        if not isinstance(most, int) or most > row.last_left:
            allowed = "any number of" if most is None else most
            yield f"the last request allows {allowed} tokens where {row.last_left} are left"


def _told(row: Fault, seen: Sequence[Sequence[str]]) -> Iterator[str]:
    if row.order:
        wanted = list(row.order)
        told = [text for what in seen if (text := " ".join(what)) in wanted]
        if told != wanted:
            yield f"told {', '.join(told) or 'nothing'} instead of {', '.join(wanted)}"
    if row.spoken is not None:
        spoken = "".join(what[1] for what in seen if what[0] == "text")
        if spoken.strip() != row.spoken.strip():
            text = repr(spoken)
            yield f"the stream of the answer gave {text if len(text) <= 72 else f'{text[:68]}…{text[-1]}'}"
