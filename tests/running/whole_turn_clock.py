"""An event loop whose clock jumps to the next timer when nothing is left to do: hours pass in no time.

Threads are real. While one of them works the clock stands still and the loop waits for it; one that says it hangs is
waited for no longer. So every run of the same turn goes through the same moments in the same order.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import selectors
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest import mock

from toolturn import nesting, perform
from toolturn.tools import running

T = TypeVar("T")

BOUND = 20.0
"""Real seconds after which a thread that should work is given up."""


class Stuck(AssertionError):
    """Everything waits and nothing will ever happen."""


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: VirtualLoop) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for threads only; time that nobody uses is skipped."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._clock.works:
            ready = super().select(BOUND)
            if not ready:
                raise Stuck("a thread does not end")
            return ready
        if timeout is None:
            raise Stuck("every task waits, and there is nothing that could wake one")
        self._clock.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own, which starts at 0."""

    def __init__(self) -> None:
        self.now = 0.0
        self.works = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Work:
    """A function in a thread; all but :meth:`hold` is called by the loop.

    Args:
        loop: The loop of the turn that waits for the thread.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.ended = threading.Event()
        self._released = threading.Event()
        self._counted = False
        self._over = False
        self.count()

    def count(self) -> None:
        """The clock stands still for it, unless nobody waits for it any more."""
        if not self._counted and not self._over:
            self._counted = True
            self._loop.works += 1

    def discount(self) -> None:
        """The clock goes on."""
        if self._counted:
            self._counted = False
            self._loop.works -= 1

    def over(self, _: object) -> None:
        """It has ended, or was left behind."""
        self.discount()
        self._over = True

    def hold(self, seconds: float) -> None:
        """Called by the thread: wait until the clock of the loop has gone on so far."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._begin, seconds)
        assert self._released.wait(BOUND), "nobody released the thread"

    def _begin(self, seconds: float) -> None:
        self.discount()
        self._loop.call_later(seconds, self.release)

    def let_go(self) -> None:
        """The thread goes on although its loop has ended."""
        self._over = True
        self.release()

    def release(self) -> None:
        """The thread goes on."""
        if not self._released.is_set():
            self.count()
            self._released.set()


_begun: set[_Work] = set()
"""What has begun in a thread since everything was released the last time."""

_here = threading.local()


def hold(seconds: float) -> None:
    """Have this thread hang until so many seconds have passed on the clock of the loop it works for."""
    work: _Work = _here.work
    work.hold(seconds)


def release_all() -> None:
    """Let go on what still hangs, when its loop has ended."""
    while _begun:
        work = _begun.pop()
        work.let_go()
        assert work.ended.wait(BOUND), "a thread does not end"


def clock() -> VirtualLoop:
    """The running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


@contextmanager
def _one_clock() -> Iterator[None]:
    """Have what else looks at a clock look at that of the loop, and count the threads that work."""
    start = running._start

    def counted(loop: Any, future: asyncio.Future[Any], function: Callable[[], Any]) -> None:
        work = _Work(loop)
        _begun.add(work)
        future.add_done_callback(work.over)

        def run() -> Any:
            _here.work = work
            try:
                return function()
            finally:
                work.ended.set()

        start(loop, future, run)

    def now() -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    with (
        mock.patch.object(running, "_start", counted),
        mock.patch.object(nesting, "perf_counter", now),
        mock.patch.object(perform, "perf_counter", now),
        mock.patch.object(perform, "time", now),
    ):
        yield


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on such a loop; no task may be left over, and the loop may complain of nothing."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        try:
            return await main
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks are left over: {left}"

    with _one_clock(), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        try:
            return runner.run(watched())
        finally:
            if complaints:
                gc.collect()
            assert not complaints, complaints
