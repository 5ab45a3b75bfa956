"""Hand-written traces: what a perfect client of a row would leave."""

from __future__ import annotations

from typing import Any

from toolturn.conformance.judge import Exit, Trace
from toolturn.conformance.rows import Answer, Fault, Way
from toolturn.conformance.server import Received
from toolturn.conformance.validator import faults_of

TOOLS = [{"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}]


def received(messages: list[dict[str, Any]], at: float = 0.0, **fields: Any) -> Received:
    body = {"model": "m", "messages": messages, "tools": TOOLS, **fields}
    return Received("m", body, tuple(faults_of(body)), at)


def exit_of(way: Way) -> Exit:
    if isinstance(way.ends, Answer):
        return Exit("answer", way.ends.text)
    kind = way.ends.kind or "other"
    return Exit("error", f"it failed: {way.ends.says}", "OwnError", True, kind, len(way.runs))


def perfect(row: Fault, way: Way) -> Trace:
    """What a client leaves that takes this way: with a second request that says all that has to be said."""
    first = [{"role": "user", "content": "go"}]
    requests = [received(first)]
    if row.requests > 1:
        told = [{"role": "user", "content": f"again, and mind: {' '.join(row.tells)}"}]
        requests.append(received([*first, *told], at=row.waits))
    return Trace(exit_of(way), way.runs, requests)
