"""Hand-written traces: what a perfect client of a row would leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolturn.conformance.rows import Act, Answer, Cancelled, Failure, Fault, Refused, Waits, Way
from toolturn.conformance.server import Received
from toolturn.conformance.trace import Exit, Trace
from toolturn.conformance.validator import faults_of

TOOLS = [{"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}]


def received(messages: list[dict[str, Any]], at: float = 0.0, **fields: Any) -> Received:
    body = {"model": "m", "messages": messages, "tools": TOOLS, **fields}
    body = {name: value for name, value in body.items() if value is not None}
    return Received("m", body, tuple(faults_of(body)), at)


def exit_of(way: Way, saved: str | None = None) -> Exit:
    match way.ends:
        case Answer(text):
            return Exit("answer", text, saved=saved)
        case Failure(kind, text):
            return Exit("error", f"it failed: {text}", "OwnError", True, kind or "other", len(way.runs), saved=saved)
        case Waits(names):
            pending = [{"id": f"c{place}", "name": name, "arguments": "{}"} for place, name in enumerate(names)]
            return Exit("waits", pending=pending, saved=saved)
        case Cancelled():
            return Exit("cancelled", saved=saved)
        case Refused():
            return Exit("error", "no", "ValueError", saved=saved)


def perfect(row: Fault, way: Way) -> Trace:
    """What a client leaves that takes this way: with a second request that says all that has to be said."""
    first = [{"role": "user", "content": "go"}]
    requests = [received(first)]
    if row.requests > 1:
        told = [{"role": "user", "content": f"again, and mind: {' '.join(row.tells)}"}]
        allowed = {"max_tokens": row.last_left} if row.last_left else {}
        requests.append(received([*first, *told], at=row.waits, **allowed))
    cancelled = 0.0
    if row.cancel == "reply":
        cancelled = 5.0
        requests[-1] = replace(requests[-1], gone=5.1)
    seen = [tuple(text.split()) for text in row.order]
    if row.spoken is not None:
        seen.append(("text", row.spoken))
    end = exit_of(way, "{}" if row.acts else None)
    acts = [perfect_act(act, act.ways[0]) for act in row.acts]
    return Trace(end, way.runs, requests, seen, cancelled, acts)


def perfect_act(act: Act, way: Way) -> Trace:
    """What a client leaves of an act: one request that holds all that has to be told."""
    call = {"id": "c0", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": " ".join(act.tells) or "done"},
        {"role": "user", "content": f"all that happened: {' '.join(act.holds)}"},
    ]
    return Trace(exit_of(way), way.runs, [received(messages)] if act.requests else [])
