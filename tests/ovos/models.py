"""Models of the tests that say when they go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from toolturn.messages import ChatMessage, ChatResponse, ToolDef
from toolturn.model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem


class Gate:
    """Lets an event loop wait until a thread opens it, for ten seconds at most."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    async def wait(self) -> None:
        self.reached.set()
        for _ in range(2000):
            if self._open.is_set():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("nobody opened the gate")


class StepModel(ChatModel):
    """Streams replies made of pieces, gates between them, and at the end perhaps a response with calls."""

    def __init__(self, *replies: Sequence[str | Gate | ChatResponse], tools: bool = True) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[tuple[ChatMessage, ...], tuple[ToolDef, ...], ModelSettings | None]] = []
        self.closed = threading.Event()
        self._tools = tools

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, tools=self._tools, tool_choice_none=self._tools)

    async def complete(self, messages: Any, tools: Any = (), *, settings: Any = None) -> ChatResponse:
        async for item in self.stream(messages, tools, settings=settings):
            if isinstance(item, ChatResponse):
                return item
        raise AssertionError

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        self.requests.append((messages, tools, settings))
        text = ""
        try:
            for step in self.replies.pop(0):
                if isinstance(step, Gate):
                    await step.wait()
                elif isinstance(step, ChatResponse):
                    yield step
                    return
                else:
                    text += step
                    yield Delta(step)
            yield ChatResponse(text, finish_reason="stop")
        finally:
            self.closed.set()
