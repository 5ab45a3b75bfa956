"""Interrupting a turn at each single point where one of its tasks waits, and the turn that is interrupted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from typing import Any

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ModelSettings,
    Tool,
    ToolCall,
    ToolContext,
    ToolDef,
    ToolHook,
    ToolInvocation,
    ToolInvocationResult,
)
from toolturn.events import Event
from toolturn.model import StreamItem

from .support import Nothing, Word


class Steps:
    """Counts the points at which the tasks of a loop wait, and strikes at one of them.

    Args:
        at: Which one, from 1.
        late: Strike when what is waited for is there already but the task has not gone on, instead of before.
        times: At how many points in a row.
    """

    def __init__(self, at: int, *, late: bool = False, times: int = 1) -> None:
        self.at = at
        self.late = late
        self.times = times
        self.count = 0
        self.strike: Callable[[], object] = lambda: None

    @property
    def reached(self) -> bool:
        return self.count >= self.at

    def install(self) -> None:
        """Watch every task that is made on the running loop from now on."""
        asyncio.get_running_loop().set_task_factory(
            lambda loop, coroutine, **options: asyncio.Task(_Stepped(coroutine, self), loop=loop, **options)
        )

    def waits(self, waited_for: Any) -> None:
        self.count += 1
        if not self.at <= self.count < self.at + self.times:
            return
        if self.late and waited_for is not None:
            waited_for.add_done_callback(lambda _: self.strike())
        else:
            asyncio.get_running_loop().call_soon(self.strike)


class _Stepped(Coroutine[Any, Any, Any]):
    def __init__(self, coroutine: Any, steps: Steps) -> None:
        self._coroutine = coroutine
        self._steps = steps

    def send(self, value: Any) -> Any:
        waited_for = self._coroutine.send(value)
        self._steps.waits(waited_for)
        return waited_for

    def throw(self, *error: Any) -> Any:
        waited_for = self._coroutine.throw(*error)
        self._steps.waits(waited_for)
        return waited_for

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def pause(times: int = 2) -> None:
    """Wait for the loop a few times."""
    for _ in range(times):
        await asyncio.sleep(0)


class World:
    """A turn of two batches in which model, hooks and tools wait at many points, and what of it ran.

    Attributes:
        open: How many handlers, hooks and model calls have begun and not ended.
        runs: The key of each handler's run, in order.
        heard: What the audience was told.
    """

    def __init__(self) -> None:
        self.open = 0
        self.runs: list[str] = []
        self.heard: list[Event] = []
        self._lock = threading.Lock()
        self.tools: list[Tool[Any, Any]] = [
            Tool("fetch", "It waits.", Nothing, Word, self._fetch, effect="none", parallel=True),
            Tool("block", "It blocks.", Nothing, Word, self._block, effect="none", parallel=True),
            Tool("serial", "It waits alone.", Nothing, Word, self._structured, effect="none", timeout=60),
        ]
        self.hooks = [ToolHook(before=self._before, after=self._after)]

    def _count(self, change: int) -> None:
        with self._lock:
            self.open += change

    @asynccontextmanager
    async def _working(self, pauses: int = 1) -> AsyncIterator[None]:
        """Something that waits while it cleans up, and counts as open until it has ended."""
        self._count(1)
        try:
            yield
        finally:
            try:
                await pause(pauses)
            finally:
                self._count(-1)

    async def _fetch(self, request: Nothing, context: ToolContext) -> Word:
        self.runs.append(context.key)
        async with self._working(2):
            await pause()
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            loop.call_soon(_settle, future)
            await future
            return Word(word=context.op)

    async def _structured(self, request: Nothing, context: ToolContext) -> Word:
        self.runs.append(context.key)
        async with self._working():
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await self._child(5)
            await asyncio.gather(self._child(1), self._child(2))
            async with asyncio.TaskGroup() as group:
                group.create_task(self._child(1))
            return Word(word=context.op)

    async def _child(self, pauses: int) -> None:
        async with self._working():
            await pause(pauses)

    def _block(self, request: Nothing, context: ToolContext) -> Word:
        self._count(1)
        try:
            self.runs.append(context.key)
            return Word(word=context.op)
        finally:
            self._count(-1)

    async def _before(self, invocation: ToolInvocation) -> None:
        async with self._working():
            await pause(1)

    async def _after(self, invocation: ToolInvocation, result: ToolInvocationResult) -> None:
        await self._before(invocation)

    async def model(self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> ChatResponse:
        async with self._working():
            await pause()
            return _reply_to(messages)


def _reply_to(messages: tuple[ChatMessage, ...]) -> ChatResponse:
    batches = [
        ["fetch", "block"],
        ["fetch", "fetch", "block", "serial"],
    ]
    number = sum(message.role == "assistant" for message in messages)
    if number == len(batches):
        return ChatResponse("done")
    wanted = [ToolCall(f"c{number}.{place}", name, "{}") for place, name in enumerate(batches[number])]
    return ChatResponse("", None, wanted)


class StreamingWorld(World, ChatModel):
    """The same turn with a model that streams."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, tools=True)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        return await self.model(messages, tools)

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        async with self._working():
            response = _reply_to(messages)
            for piece in ("do", "ne") if response.content else ():
                await pause(1)
                yield Delta(piece)
            await pause(1)
            yield response
