"""How a handler is run: in a thread where it blocks, and with a bounded time to clean up when it is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any
from weakref import WeakKeyDictionary

DEFAULT_GRACE = 5.0
MAX_THREADS = 64

_unclosable: list[Coroutine[Any, Any, Any]] = []


class LeftBehind(asyncio.CancelledError):
    """A handler was cancelled and did not end within its grace; what becomes of it is not known."""


class Guarded:
    """Awaits a coroutine in the task of the caller; once cancelled it has ``grace`` seconds to clean up.

    A plain ``await`` would let a handler that refuses to end hold its caller for ever, and a task of its own would
    cost more than all else that happens in an iteration. So the coroutine is stepped here: nothing is added on the
    way, and after the grace it is closed.

    Args:
        coroutine: What to await; never started before.
        grace: Seconds between the cancel and the end.
    """

    __slots__ = ("_coroutine", "_grace", "left_behind")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], grace: float) -> None:
        self._coroutine = coroutine
        self._grace = grace
        self.left_behind = False

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine = self._coroutine
        try:
            waits_for = coroutine.send(None)
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    coroutine.close()
                    raise
                except asyncio.CancelledError as cancel:
                    return (yield from self._clean_up(cancel))
                except BaseException as exc:  # noqa: BLE001 - passed on to where it belongs
                    waits_for = coroutine.throw(exc)
                else:
                    waits_for = coroutine.send(sent)
        except StopIteration as stop:
            return stop.value

    def _clean_up(self, cancel: asyncio.CancelledError) -> Generator[Any, Any, Any]:
        """Hand the cancel to the coroutine and wait for its end; the cancel wins whatever it does."""
        coroutine = self._coroutine
        task = asyncio.current_task()
        assert task is not None
        up = False

        def time_is_up() -> None:
            nonlocal up
            up = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(self._grace, time_is_up)
        try:
            waits_for = coroutine.throw(cancel)
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    coroutine.close()
                    raise
                except asyncio.CancelledError as again:
                    if up:
                        task.uncancel()
                        self._close()
                        break
                    waits_for = coroutine.throw(again)
                else:
                    waits_for = coroutine.send(sent)
        except (GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException:  # noqa: BLE001 - returned, or raised while cleaning up: it has ended
            pass
        finally:
            timer.cancel()
        raise cancel

    def _close(self) -> None:
        self.left_behind = True
        for _ in range(3):
            try:
                self._coroutine.close()
            except RuntimeError:  # it awaited again instead of ending
                continue
            except BaseException:  # noqa: BLE001 - it has ended, with an error nobody waits for
                pass
            return
        _unclosable.append(self._coroutine)  # or its finaliser would complain somewhere else


# --- threads ---------------------------------------------------------------------------
# The standard pool joins its threads when the interpreter exits and keeps a place for each that hangs. A handler that
# never returns must do neither, so these are daemons that are forgotten when they are left behind.


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True, name="toolturn-handler")
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.inbox.get()()
            _idle.append(self)


_idle: list[_Worker] = []
_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads do not survive a fork


async def run_in_thread(function: Callable[[], Any], grace: float) -> Any:
    """Run a blocking function in a worker thread with the caller's context variables.

    Args:
        function: Takes nothing.
        grace: Seconds to wait for its end after a cancel; then it is left behind.

    Returns:
        What the function returns; what it raises is raised.

    Raises:
        LeftBehind: It was cancelled and still runs.
    """
    loop = asyncio.get_running_loop()
    places = _places.get(loop)
    if places is None:
        places = _places[loop] = asyncio.Semaphore(MAX_THREADS)
    async with places:
        future = loop.create_future()
        _start(loop, future, function)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not future.done():
                await asyncio.wait((future,), timeout=grace)
            if not future.done():
                future.cancel()  # so that nobody is told of what comes too late
                raise LeftBehind from None
            if not future.cancelled():
                future.exception()  # it is of no interest any more
            raise


def _start(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], function: Callable[[], Any]) -> None:
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):  # no future takes one
            future.set_exception(RuntimeError("a handler raised StopIteration"))
        else:
            future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as exc:  # noqa: BLE001 - it belongs to the caller, not to this thread
            error = exc
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.inbox.put(work)
