"""An asynchronous iterator read by synchronous code, as OpenVoiceOS's interfaces want it."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any, TypeVar, cast

from ..background import background

T = TypeVar("T")

BEAT = 0.2
"""Seconds without an item after which ``idle`` is asked."""


LONGEST_CLEANUP = 10.0


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def iterate(make: Callable[[], AsyncGenerator[T]], *, idle: Callable[[], T | None] | None = None) -> Iterator[T]:
    """Yield what an asynchronous generator yields, each item as soon as it is there.

    It runs on the background loop with the caller's context variables; from within that loop, which can not wait for
    itself, on one of its own. Closing the iterator cancels it and waits for its cleanup.

    Args:
        make: Makes the asynchronous generator.
        idle: Is asked for an item each time nothing has come for a while; None where there is none.

    Raises:
        Exception: Whatever the generator raises.
    """
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()
    tasks: list[asyncio.Task[None]] = []
    own = background.stands_still
    loop = _loop_of_its_own() if own else background.loop()
    context = contextvars.copy_context()

    async def work() -> None:
        async with aclosing(make()) as generator:
            async for item in generator:
                items.put(item)

    def ended(task: asyncio.Task[None]) -> None:
        items.put(_End(None if task.cancelled() else task.exception()))
        if own:
            loop.stop()

    def start() -> None:
        task = loop.create_task(work(), context=context)
        task.add_done_callback(ended)
        tasks.append(task)

    loop.call_soon_threadsafe(start)
    over = False
    try:
        while True:
            try:
                item = items.get(timeout=None if idle is None else BEAT)
            except queue.Empty:
                if idle is not None and (meanwhile := idle()) is not None:
                    yield meanwhile
                continue
            if isinstance(item, _End):
                over = True
                if item.error is not None:
                    raise item.error
                return
            yield cast(T, item)
    finally:
        if not over:
            loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            # an iterator that nobody closed may be collected anywhere, on the loop itself too
            if own or not background.stands_still:
                with suppress(queue.Empty):
                    while not isinstance(items.get(timeout=LONGEST_CLEANUP), _End):
                        pass


def _loop_of_its_own() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    threading.Thread(target=run, name="toolturn-nested", daemon=True).start()
    return loop
