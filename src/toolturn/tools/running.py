"""How a handler is run: in a thread where it blocks, and with a bounded time to clean up when it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any
from weakref import WeakKeyDictionary

DEFAULT_GRACE = 5.0
MAX_THREADS = 64
MAX_WAIT = 1.0


class LeftBehind(Exception):
    """The cause of a CancelledError: a handler did not end within its grace, what becomes of it is not known.

    A cause and no subclass, because asyncio's own time-outs know a cancel by its exact class.
    """


def left_behind(exc: BaseException | None) -> bool:
    """Return whether this cancel left a handler behind."""
    return exc is not None and isinstance(exc.__cause__, LeftBehind)


class Guarded:
    """Awaits a coroutine in the task of the caller; once cancelled it has ``grace`` seconds to clean up.

    A plain ``await`` would let a handler that refuses to end hold its caller for ever, and a task of its own would
    cost more than all else that happens in an iteration. So the coroutine is stepped here: nothing is added on the
    way, and after the grace it is closed.

    Args:
        coroutine: What to await; it has been started.
        waits_for: What it waits for.
        grace: Seconds between the cancel and the end.
        keep: A value that is given in spite of a cancel is kept, as of a model whose reply came all the same.
    """

    __slots__ = ("_coroutine", "_forgotten", "_grace", "_keep", "_waits_for")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], waits_for: Any, grace: float, *, keep: bool = False
    ) -> None:
        self._keep = keep
        self._coroutine = coroutine
        self._waits_for = waits_for
        self._grace = grace
        self._forgotten: tuple[Any, ...] = ()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Step the coroutine to its end.

        A time-out or task group inside the coroutine cancels this task too, and takes it back when it has done with
        it; then nothing has been. A cancel that is not taken back wins, whatever the coroutine makes of it.
        """
        coroutine = self._coroutine
        task = asyncio.current_task()
        assert task is not None
        # a cancel that was asked for in this very step has not been delivered: it is not one from before
        before = task.cancelling() - bool(getattr(task, "_must_cancel", False))
        cancel: asyncio.CancelledError | None = None
        deadline: float | None = None
        error: BaseException | None = None
        waits_for = self._waits_for
        started = True
        while True:
            try:
                if started:
                    started = False
                else:
                    waits_for = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                if cancel is None or self._keep or task.cancelling() <= before:
                    return stop.value
                raise cancel from None
            except (GeneratorExit, KeyboardInterrupt):
                raise
            except BaseException:
                if cancel is None or task.cancelling() <= before:
                    raise
                raise cancel from None
            error = None
            if cancel is not None and task.cancelling() <= before:
                cancel = deadline = None
            try:
                if cancel is None and (waits_for is None or type(waits_for) is asyncio.Future):
                    yield waits_for
                    continue
                # Other things, such as a task that cleans up slowly, do not end at once when they are cancelled, and
                # after a cancel the end of the grace has to be heard: those are waited for through a future of ours.
                while error is None:
                    if deadline is not None and asyncio.get_running_loop().time() >= deadline:
                        assert cancel is not None
                        self._close()
                        if task.cancelling() <= before:
                            raise _OwnTimeIsUp
                        raise _TimeIsUp
                    error = yield from _wait(waits_for, deadline)
                    if error is None:
                        if waits_for is None or waits_for.done():
                            break
                    elif waits_for is not None and waits_for.cancel():
                        # as a task does: what is waited for is cancelled, and where it can not be, the coroutine is
                        if cancel is None and self._is_cancelled(task, before):
                            cancel, deadline = error, asyncio.get_running_loop().time() + self._grace
                        error = None
            except GeneratorExit:
                coroutine.close()
                raise
            except _OwnTimeIsUp:
                raise TimeoutError("a time-out inside the handler cleaned up for longer than the grace") from None
            except _TimeIsUp:
                assert cancel is not None
                raise cancel from LeftBehind()
            except BaseException as exc:  # noqa: BLE001 - passed on to where it belongs
                error = exc
            if isinstance(error, asyncio.CancelledError) and cancel is None and self._is_cancelled(task, before):
                cancel, deadline = error, asyncio.get_running_loop().time() + self._grace

    def _is_cancelled(self, task: asyncio.Task[Any], before: int) -> bool:
        """Whether the cancel that comes now is one that the coroutine will not take back by itself."""
        if task.cancelling() > before and _GROUP_EXIT is not None:
            for group in _groups_that_wait(self._coroutine):
                if group._parent_task is task and group._parent_cancel_requested and group not in self._forgotten:
                    self._forgotten += (group,)
                    task.uncancel()
        return task.cancelling() > before

    def _close(self) -> None:
        # closing does not reach an async generator that the coroutine waits in, an exception does
        try:
            self._coroutine.throw(asyncio.CancelledError())
        except BaseException:  # noqa: BLE001 - it has ended
            return
        for _ in range(3):
            try:
                self._coroutine.close()
            except RuntimeError:  # it awaited again instead of ending
                continue
            except BaseException:  # noqa: BLE001 - it has ended, with an error nobody waits for
                pass
            return
        _keep_for_ever(self._coroutine)


# A task group whose child fails while the group waits for it cancels its own task; before Python 3.13 it never takes
# that back (https://github.com/python/cpython/issues/116720), and it would look like a cancel from outside.
_GROUP_EXIT = asyncio.TaskGroup.__aexit__.__code__ if sys.version_info < (3, 13) else None


def _groups_that_wait(coroutine: Any) -> Iterator[Any]:
    """The task groups at whose end a coroutine waits, the outermost first."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        # one that was left by an exception, its own cancel among them, has taken that back or never made one
        if frame is not None and frame.f_code is _GROUP_EXIT and frame.f_locals["et"] is None:
            yield frame.f_locals["self"]
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)


def _keep_for_ever(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Never finalise a coroutine that can not be closed: it would go on where nobody could stop it."""
    # A list is not enough: it is emptied when the interpreter ends.
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coroutine))


class _TimeIsUp(BaseException):
    """The grace of a cancelled coroutine has passed."""


class _OwnTimeIsUp(BaseException):
    """It has passed, but the cancel was one of the coroutine's own."""


def _wait(waits_for: Any, deadline: float | None) -> Generator[Any, Any, asyncio.CancelledError | None]:
    """Wait for what a coroutine waits for, or the deadline; return the cancel that comes instead."""
    loop = asyncio.get_running_loop()
    wake = loop.create_future()

    def go_on(_: object = None) -> None:
        if not wake.done():
            wake.set_result(None)

    timer = None if deadline is None else loop.call_at(deadline, go_on)
    if waits_for is None:  # a bare yield, as of sleep(0)
        loop.call_soon(go_on)
    else:
        waits_for._asyncio_future_blocking = False  # as a task does with what it is given
        waits_for.add_done_callback(go_on)
    try:
        yield from wake
    except asyncio.CancelledError as cancel:
        return cancel
    finally:
        if timer is not None:
            timer.cancel()
        if waits_for is not None:
            waits_for.remove_done_callback(go_on)
    return None


# --- threads ---------------------------------------------------------------------------
# The standard pool joins its threads when the interpreter exits and keeps a place for each that hangs. A handler that
# never returns must do neither, so these are daemons that are forgotten when they are left behind.


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True, name="toolturn-handler")
        self.inbox: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            tell = self.inbox.get()()
            _idle.append(self)  # before the result is told, or the next call would find no thread
            tell()


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
        asyncio.CancelledError: The caller was cancelled; caused by LeftBehind when the function still runs.
    """
    loop = asyncio.get_running_loop()
    places = _places.get(loop)
    if places is None:
        places = _places[loop] = asyncio.Semaphore(MAX_THREADS)
    held = await _take_place(places)
    try:
        future = loop.create_future()
        _start(loop, future, function)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError as cancel:
            if not future.done():
                with contextlib.suppress(asyncio.CancelledError):  # a second one does not wait for the grace
                    await asyncio.wait((future,), timeout=grace)
            if not future.done():
                future.cancel()  # so that nobody is told of what comes too late
                raise cancel from LeftBehind()
            if not future.cancelled():
                future.exception()  # it is of no interest any more
            raise
    finally:
        if held:
            places.release()


async def _take_place(places: asyncio.Semaphore) -> bool:
    """Wait for a place, but not for ever: those who hold them may wait for the one who asks."""
    if not places.locked():
        await places.acquire()
        return True
    try:
        await asyncio.wait_for(places.acquire(), MAX_WAIT)
    except TimeoutError:
        return False
    return True


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

    def work() -> Callable[[], None]:
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as exc:  # noqa: BLE001 - it belongs to the caller, not to this thread
            error = exc

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, result, error)

        return tell

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.inbox.put(work)
