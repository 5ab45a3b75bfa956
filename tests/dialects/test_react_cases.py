"""Reported ReAct texts, each with what has to come of it in a turn, however the text arrives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ModelSettings,
    ToolDef,
    ToolLoopEmptyResponseError,
    ToolLoopMalformedResponseError,
    ToolLoopResult,
    ToolSet,
    run_tool_loop,
    stream_tool_loop,
    tool_from_schema,
)
from toolturn.dialects.react import ReActTools
from toolturn.errors import ModelRequestError
from toolturn.model import StreamItem

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "react_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
TEXTS = [
    pytest.param(case, text, id=f"{case['name']}-{n}")
    for case in CASES
    for n, text in enumerate(case["input"]["texts"])
]


def schema(**properties: Any) -> dict[str, Any]:
    required = [name for name in properties if not name.startswith("pages")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class Recorder:
    """Tools that note how they were called."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.tools = ToolSet(
            [
                self._tool("search", schema(q={"type": "string"}, pages={"type": "array"})),
                self._tool("calc", schema(e={"type": ["string", "object"]})),
                self._tool("today", schema()),
            ]
        )

    def _tool(self, name: str, parameters: dict[str, Any]) -> Any:
        def handler(arguments: dict[str, Any]) -> str:
            self.ran.append((name, arguments))
            return "done"

        return tool_from_schema(name, f"The tool {name}.", parameters, handler)


class Writer(ChatModel):
    """Writes a text and then says that it has finished; it may refuse a stop text."""

    def __init__(self, text: str, *, piece: int, refuses: str = "") -> None:
        self.texts = [text, "Final Answer: finished"]
        self.piece = piece
        self.refuses = refuses
        self.asked: list[tuple[ChatMessage, ...]] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        if self.refuses and settings is not None and settings.stop:
            raise ModelRequestError(self.refuses, status=400)
        self.asked.append(messages)
        return ChatResponse(self.texts.pop(0), finish_reason="stop")

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        response = await self.complete(messages, tools, settings=settings)
        for at in range(0, len(response.content), self.piece):
            yield Delta(response.content[at : at + self.piece])
        yield response


async def turn(writer: Writer, tools: ToolSet, *, streamed: bool) -> ToolLoopResult:
    messages = [ChatMessage("user", "What is it?")]
    model = ReActTools(writer)
    if not streamed:
        return await run_tool_loop(messages, tools, model, tool_errors="report")
    async with stream_tool_loop(messages, tools, model, tool_errors="report") as stream:
        async for _ in stream:
            pass
        return await stream.result()


@pytest.mark.parametrize("piece", [0, 1, 7])
@pytest.mark.parametrize(("case", "text"), TEXTS)
def test_a_reported_text_has_the_outcome_its_oracle_says(case: dict[str, Any], text: str, piece: int) -> None:
    oracle, outcome = case["oracle"], case["outcome"]
    recorder = Recorder()
    writer = Writer(text, piece=piece or 1, refuses=oracle.get("refuses", ""))

    async def go() -> ToolLoopResult:
        return await turn(writer, recorder.tools, streamed=piece > 0)

    if outcome == "nudge":
        with pytest.raises((ToolLoopEmptyResponseError, ToolLoopMalformedResponseError)) as raised:
            asyncio.run(go())
        assert not recorder.ran
        rejected = raised.value.rejected_response
        assert rejected is not None
        assert not rejected.content
        return
    result = asyncio.run(go())
    if outcome == "answer":
        assert (result.content, recorder.ran) == (oracle["text"], [])
        return
    assert result.content == "finished"
    (record,) = result.tool_calls
    assert record.call.name == oracle["tool"]
    if outcome == "call":
        assert recorder.ran == [(oracle["tool"], oracle["args"])]
    elif outcome == "refused":
        assert not recorder.ran
        assert oracle["result"] in record.message.content
    else:
        assert outcome == "invalid"
        assert (recorder.ran, record.status) == ([], "invalid_arguments")
    if (nowhere := oracle.get("nowhere")) is not None:
        assert nowhere not in json.dumps([str(message) for message in (*result.messages, *writer.asked[1])])
