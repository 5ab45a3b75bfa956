"""One long-lived event loop in a thread, for callers that have none."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """One event loop in a daemon thread, for callers that have none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def forget(self) -> None:
        """Start anew in a forked child, where the thread does not exist."""
        self.__init__()  # type: ignore[misc]

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run_for_ever, args=(loop,), name="toolturn", daemon=True)
                self._thread.start()
                self._loop = loop
            return self._loop

    @property
    def stands_still(self) -> bool:
        """Whether the loop can not go on before the code that asks has returned."""
        return threading.current_thread() is self._thread or _waits_for_background.get()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        loop = self.loop()
        if self.stands_still:
            # a tool on the background loop runs a turn of its own: waiting here would wait for itself
            return _in_new_thread(coroutine)
        context = contextvars.copy_context()
        started: list[asyncio.Task[T | _Stop]] = []
        done = threading.Event()

        def start() -> None:
            task = loop.create_task(_contained(coroutine), context=context)
            started.append(task)
            task.add_done_callback(lambda _: done.set())

        def cancel() -> None:
            if started:
                started[0].cancel()
            else:
                coroutine.close()
                done.set()

        try:
            # Within the try: the turn may run, and Ctrl-C come, before this call has returned.
            loop.call_soon_threadsafe(start)
            done.wait()
        except BaseException:  # Ctrl-C: the turn is cancelled and cleaned up before it goes on
            loop.call_soon_threadsafe(cancel)
            done.wait()
            if started and not started[0].cancelled():
                started[0].exception()
            raise
        outcome = started[0].result()
        if isinstance(outcome, _Stop):
            raise outcome.error
        return outcome


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except BaseException:  # noqa: BLE001 - a task raised what ends a program: its caller is told, others go on
            continue
        return


class _Stop:
    """What would end the event loop if a task raised it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _contained(coroutine: Coroutine[Any, Any, T]) -> T | _Stop:
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as exc:
        return _Stop(exc)


# Whether the background loop stands still until the code that runs here returns.
_waits_for_background: contextvars.ContextVar[bool] = contextvars.ContextVar("_waits_for_background", default=False)


def _in_new_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []
    context = contextvars.copy_context()
    context.run(_waits_for_background.set, True)

    def work() -> None:
        try:
            outcome.append(context.run(asyncio.run, coroutine))
        except BaseException as exc:  # noqa: BLE001 - raised again where it belongs
            failure.append(exc)

    thread = threading.Thread(target=work, name="toolturn-nested", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


background = Background()
"""The loop that all of a process share."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.forget)
