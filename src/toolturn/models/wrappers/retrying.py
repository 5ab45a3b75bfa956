"""A model that is asked again when its server could not serve."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from ...errors import ModelError, ModelOverloadedError, ModelRateLimitError, ModelTimeoutError, ModelUnavailableError
from ...messages import ChatMessage, ChatResponse, ToolDef
from ...model import Capabilities, ChatModel, ModelSettings, StreamItem

_AGAIN = (ModelRateLimitError, ModelOverloadedError, ModelTimeoutError)


class Retrying(ChatModel):
    """Asks a model again after failures that pass by: too many requests, an overload, a time-out, a lost connection.

    The pause doubles from attempt to attempt and is jittered; where the server says how long to wait, that is kept
    to. A stream is asked for again only while nothing of it was handed on. A turn's deadline ends the waiting too.

    Args:
        model: The model.
        attempts: How often it is asked at most, at least 1; a server that is not there is asked twice at most.
        pause: Seconds before the second attempt, about.
        longest: Seconds of a single pause at most; a server that wants a longer one ends the attempts at once.
        sleep: Waits; for tests.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 5,
        pause: float = 0.5,
        longest: float = 60.0,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self.model = model
        self._attempts = attempts
        self._pause = pause
        self._longest = longest
        self._sleep = sleep

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        attempt = 1
        while True:
            try:
                return await self.model.complete(messages, tools, settings=settings)
            except ModelError as error:
                pause = self._before_next(error, attempt)
                if pause is None:
                    raise
            await self._sleep(pause)
            attempt += 1

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        attempt = 1
        while True:
            told = False
            try:
                stream: Any = self.model.stream(messages, tools, settings=settings)
                async with aclosing(stream):
                    async for item in stream:
                        told = True
                        yield item
                return
            except ModelError as error:
                pause = None if told else self._before_next(error, attempt)
                if pause is None:
                    raise
            await self._sleep(pause)
            attempt += 1

    def _before_next(self, error: ModelError, attempt: int) -> float | None:
        """Seconds until the next attempt; None where there is none."""
        # not there at all: a wrong name or address stays wrong, a refused connection may pass by
        lost = type(error) is ModelUnavailableError and error.status is None
        if attempt >= (min(2, self._attempts) if lost else self._attempts) or not (lost or isinstance(error, _AGAIN)):
            return None
        wanted = error.retry_after
        if wanted is not None:
            return wanted if wanted <= self._longest else None
        pause: float = self._pause * 2 ** (attempt - 1)
        return min(pause, self._longest) * random.uniform(0.75, 1.25)

    async def aclose(self) -> None:
        await self.model.aclose()
