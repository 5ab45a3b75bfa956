"""The work that every adapter does: a scripted conversation, the tool, and what is counted to check it.

Standard library only, because it is imported inside the environment of each library.

    user:      "start"
    assistant: `batch` calls of lookup(index=k)      (iteration k = 0 .. n-1)
    tool:      a string of `result_size` characters
    ...
    assistant: "done"

The scripted model holds no state: it finds its place, at a constant cost, from the id of the last tool result.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

PROMPT = "start"
FINAL = "done"
TOOL_NAME = "lookup"
TOOL_DESCRIPTION = "Return the stored record with this index."
TOOL_SCHEMA = {
    "type": "object",
    "properties": {"index": {"type": "integer", "minimum": 0}},
    "required": ["index"],
}
API_KEY = "not-a-key"
MODEL_NAME = "scripted"


@dataclass(frozen=True)
class Spec:
    """One turn: n iterations of `batch` tool calls, then a final answer."""

    n: int = 10
    result_size: int = 20
    model_delay: float = 0.0  # seconds the model takes for each request
    batch: int = 1  # tool calls in one model reply
    tool_sleep: float = 0.0  # seconds each tool call takes
    stream: bool = False  # HTTP only: ask for server-sent events
    pieces: int = 0  # HTTP only: chunks of a streamed reply, each written by itself; 0 for a few in one write
    sync_tool: bool = False  # register a plain function although async ones are supported
    events: str = ""  # in process only: one of the adapter's EVENTS, "" for nobody listens

    def with_(self, **changes: Any) -> Spec:
        return replace(self, **changes)

    def row(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def model_requests(self) -> int:
        return self.n + 1

    def path(self, *, final: str = "text", mark: str = "tool") -> str:
        """URL path that tells the fake server which conversation to play.

        final="final_answer" ends by a call of a tool of that name instead of text; mark="text" is for libraries that
        send calls and results as plain text.
        """
        pieces = f",pieces={self.pieces}" if self.pieces else ""
        return f"/s/n={self.n},batch={self.batch},delay={self.model_delay:g},final={final},mark={mark}{pieces}"


class Counters:
    """What is checked after each turn, so that no adapter can leave out work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.calls: list[int] = []  # the argument of each tool call: appending is safe from any thread
        self.running = 0  # calls under way, kept only for tools that take time
        self.most_running = 0
        self.first_start = 0.0
        self.last_end = 0.0

    @property
    def tool_calls(self) -> int:
        return len(self.calls)

    def enter(self) -> None:
        with self._lock:
            self.first_start = self.first_start or time.perf_counter()
            self.running += 1
            self.most_running = max(self.most_running, self.running)

    def leave(self) -> None:
        with self._lock:
            self.last_end = time.perf_counter()
            self.running -= 1


counters = Counters()
_payloads: dict[int, str] = {}


def payload(size: int) -> str:
    if size not in _payloads:
        _payloads[size] = "x" * size
    return _payloads[size]


# --- the tool --------------------------------------------------------------------------


def tool_body(spec: Spec, index: int) -> str:
    if type(index) is not int:
        raise TypeError("this argument was to be validated")
    counters.calls.append(index)
    return payload(spec.result_size)


def make_async_tool(spec: Spec):
    async def lookup(index: int) -> str:
        """Return the stored record with this index.

        Args:
            index: Which record.
        """
        if spec.tool_sleep:
            counters.enter()
            await asyncio.sleep(spec.tool_sleep)
            counters.leave()
        return tool_body(spec, index)

    return lookup


def make_sync_tool(spec: Spec):
    def lookup(index: int) -> str:
        """Return the stored record with this index.

        Args:
            index: Which record.
        """
        if spec.tool_sleep:
            counters.enter()
            time.sleep(spec.tool_sleep)
            counters.leave()
        return tool_body(spec, index)

    return lookup


def make_tool(spec: Spec):
    return make_sync_tool(spec) if spec.sync_tool else make_async_tool(spec)


# --- the scripted model ----------------------------------------------------------------


def call_id(k: int, b: int) -> str:
    return f"c{k}_{b}"


def step_after(last_call_id: str | None) -> int:
    """The iteration that comes next, given the id of the last tool result, or None."""
    if not last_call_id:
        return 0
    return int(last_call_id[1:].split("_", 1)[0]) + 1


def script(spec: Spec, last_call_id: str | None) -> list[tuple[str, str, str]] | None:
    """Return (id, name, arguments as JSON text) of each call, or None for the final answer."""
    k = step_after(last_call_id)
    if k >= spec.n:
        return None
    return [(call_id(k, b), TOOL_NAME, f'{{"index": {k}}}') for b in range(spec.batch)]


async def think(spec: Spec) -> None:
    if spec.model_delay:
        await asyncio.sleep(spec.model_delay)


def think_sync(spec: Spec) -> None:
    if spec.model_delay:
        time.sleep(spec.model_delay)


def loads(text: str) -> Any:
    return json.loads(text)
