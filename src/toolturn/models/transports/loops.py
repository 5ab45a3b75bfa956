"""One value per event loop: connections belong to the loop that made them."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

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
        self._values: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None], int]] = {}
        self._lock = threading.Lock()
        _all.add(self)

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
            self._values[loop] = (value, keeper, os.getpid())
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
        entry = self._values.get(asyncio.get_running_loop())
        if entry is not None:
            await entry[1].aclose()
        self.close_elsewhere()

    def close_elsewhere(self) -> list[Future[None]]:
        """Have the values of loops that run in other threads closed there; return what tells when that is done."""
        own = os.getpid()
        with self._lock:
            # what a forked child has of its parent's loops only looks as if it ran
            entries = [
                (loop, keeper) for loop, (_, keeper, pid) in self._values.items() if pid == own and loop.is_running()
            ]
        under_way = []
        for loop, keeper in entries:
            closing = _closed(keeper)
            try:
                under_way.append(asyncio.run_coroutine_threadsafe(closing, loop))
            except RuntimeError:
                # it ended this moment, and closed what it had
                closing.close()
        return under_way


async def _closed(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


_all: weakref.WeakSet[PerLoop[Any]] = weakref.WeakSet()
_EXIT_SECONDS = 0.5


@atexit.register
def _at_exit() -> None:
    """Close what loops in daemon threads have, such as the one of synchronous turns: those loops never end."""
    waiting = [future for values in list(_all) for future in values.close_elsewhere()]
    wait(waiting, _EXIT_SECONDS)
