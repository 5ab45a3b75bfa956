"""One value per event loop: connections belong to the loop that made them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes a value for each event loop that asks, and closes it when that loop ends.

    ``asyncio.run`` and ``asyncio.Runner`` close the asynchronous generators of their loop before they close it; a
    generator that waits for this is the one hook there is. A loop that is closed without it leaves the value behind.

    Args:
        make: Makes a value, in the loop it is for.
        close: Closes it there.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._values: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]] = {}
        self._lock = threading.Lock()

    def get(self) -> T:
        """Return the value of the running loop."""
        entry = self._values.get(asyncio.get_running_loop())
        return self._new() if entry is None else entry[0]

    def _new(self) -> T:
        loop = asyncio.get_running_loop()
        value = self._make()
        keeper = self._until_the_loop_ends(loop)
        with contextlib.suppress(StopIteration):
            keeper.asend(None).send(None)
        with self._lock:
            for other in [other for other in self._values if other.is_closed()]:
                del self._values[other]
            self._values[loop] = (value, keeper)
        return value

    async def _until_the_loop_ends(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with self._lock:
                entry = self._values.pop(loop, None)
            if entry is not None:
                await self._close(entry[0])

    async def aclose(self) -> None:
        """Close the value of the running loop at once, and those of other loops in their threads."""
        own = asyncio.get_running_loop()
        with self._lock:
            loops = list(self._values)
        for loop in loops:
            with self._lock:
                entry = self._values.get(loop)
            if entry is None:
                continue
            if loop is own:
                await entry[1].aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(entry[1].aclose(), loop)
