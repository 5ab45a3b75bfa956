"""Runs a case of the edge: replies as a server sends them, through ``normalized``, in a turn."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolturn import ChatMessage, ChatResponse, ToolLoopError, ToolLoopResult, run_tool_loop
from toolturn.models import normalized
from toolturn.tools.json_schema import SchemaTool, tool_from_schema
from toolturn.transcript import check

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "edge_cases.jsonl").read_text(encoding="utf-8").splitlines()
]

# The tools that a model writes into its text; a case that needs others says so.
LEAKABLE: dict[str, dict[str, Any]] = {
    "get_temp": {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}},
    "note_add": {"text": {"type": "string"}},
    "bash": {"c": {"type": "string"}},
    "ping": {},
}


@dataclass
class Seen:
    """What came of a case.

    Args:
        executed: Names and arguments of the calls that ran, in order.
        messages: The transcript.
        result: The result, or None.
        error: The error, or None.
        asked: How often the model was asked.
    """

    executed: list[tuple[str, Any]] = field(default_factory=list)
    messages: tuple[ChatMessage, ...] = ()
    result: ToolLoopResult | None = None
    error: ToolLoopError | None = None
    asked: int = 0

    @property
    def ids(self) -> list[str]:
        return [call.id for message in self.messages for call in message.tool_calls or ()]

    @property
    def observations(self) -> list[str]:
        return [str(message.content) for message in self.messages if message.role == "tool"]

    @property
    def said(self) -> list[str]:
        return [str(message.content) for message in self.messages if message.role == "assistant"]


def reply_of(data: dict[str, Any]) -> ChatResponse:
    """A reply with everything in it as it came: null, dictionaries, a call alone."""
    given: Any = ChatResponse
    calls = data.get("tool_calls", data.get("function_call"))
    for call in calls if isinstance(calls, list) else ():
        if call and (built := call["function"].pop("built", None)):
            begin, piece, times, end = built
            call["function"]["arguments"] = begin + piece * times + end
    response: ChatResponse = given(data.get("content"), data.get("reasoning_content"), calls, data.get("finish_reason"))
    return response


def tools_of(case: dict[str, Any], seen: Seen) -> list[SchemaTool]:
    """Tools that record, with the case's schema; they take anything where it has none."""
    names = case.get("tools") or []
    schemas: dict[str, Any] = {name: {"type": "object"} for name in names}
    for reply in case["replies"]:
        calls = reply.get("tool_calls") or [{"function": reply["function_call"]} if "function_call" in reply else None]
        for call in filter(None, calls):
            name = call["function"].get("name")
            if name and not names:
                schemas[name] = case.get("schema", {"type": "object"})
    if not schemas:
        schemas = {name: {"type": "object", "properties": known} for name, known in LEAKABLE.items()}

    def make(name: str, schema: dict[str, Any]) -> SchemaTool:
        def handle(arguments: dict[str, Any]) -> str:
            seen.executed.append((name, arguments))
            return "ok"

        return tool_from_schema(name, f"The tool {name}.", schema, handle, run_in_thread=False)

    return [make(name, schema) for name, schema in schemas.items()]


def play(case: dict[str, Any], *, strict: bool = False, nudges: int = 0) -> Seen:
    """Run a turn over the replies of a case; then the model answers ``done``."""
    seen = Seen()
    replies = [reply_of(reply) for reply in json.loads(json.dumps(case["replies"]))]

    async def model(messages: Any, tools: Any) -> ChatResponse:
        seen.asked += 1
        if seen.asked <= len(replies):
            return replies[seen.asked - 1]
        return replies[-1] if case.get("repeat_last") else ChatResponse("done", finish_reason="stop")

    async def main() -> None:
        tools = tools_of(case, seen)
        hello = [ChatMessage("user", "hello")]
        try:
            seen.result = await run_tool_loop(hello, tools, normalized(model, strict=strict), nudges=nudges)
            seen.messages = seen.result.messages
        except ToolLoopError as exc:
            seen.error = exc
            seen.messages = exc.messages

    asyncio.run(main())
    assert check(seen.messages) == []
    json.dumps([str(message.content) for message in seen.messages], ensure_ascii=False).encode()
    return seen
