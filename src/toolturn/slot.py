"""One running turn per session: a new one ends the old one first."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Hashable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from .tools.running import DEFAULT_GRACE

T = TypeVar("T")

OnLeft = Callable[[Any, "asyncio.Task[Any]"], None]
"""Is told of a turn that did not end within its grace: the session, and the task that still runs."""


class TurnReplaced(RuntimeError):
    """A turn was ended from outside: a newer one of its session took its place, or the session was stopped.

    What the turn raised on its way out, if anything but the cancel, is chained.

    Args:
        session: Whose turn it was.
    """

    def __init__(self, session: Hashable) -> None:
        super().__init__(f"the turn of session {session!r} was ended before it had finished")
        self.session = session

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.session,)


class TurnSlot:
    """Runs turns so that a session has one at a time, as of a voice assistant that is interrupted.

    A new turn cancels the running one of the same session and waits for its cleanup, at most ``grace`` seconds; then it
    begins, even where the old one still runs, which ``on_left`` is told. Turns of different sessions know nothing of
    each other. A session that has no turn takes no place. To be used on one event loop, by any number of tasks.

    Args:
        grace: Seconds a turn has to clean up after it was cancelled.
        on_left: Is called with the session and the task of a turn that was left behind; the loop's exception handler is
            told instead where it is None.

    Raises:
        ValueError: ``grace`` is negative.
    """

    def __init__(self, *, grace: float = DEFAULT_GRACE, on_left: OnLeft | None = None) -> None:
        if not grace >= 0:
            raise ValueError("grace must not be negative")
        self._grace = grace
        self._on_left = on_left
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[Hashable, list[_Running]] = {}  # the newest turn of a session last, then those it ends
        self._left: set[asyncio.Task[Any]] = set()

    @property
    def sessions(self) -> tuple[Hashable, ...]:
        """The sessions that have a turn."""
        return tuple(self._running)

    @property
    def left(self) -> int:
        """How many turns were left behind and still run."""
        return len(self._left)

    async def run(self, session: Hashable, turn: Coroutine[Any, Any, T]) -> T:
        """Run a turn as the only one of its session, after the one that runs has ended.

        ::

            result = await slot.run("kitchen", run_tool_loop(messages, tools, model))

        Args:
            session: Whose turn it is.
            turn: A coroutine such as :func:`run_tool_loop` makes, or one of your own that streams a turn.

        Returns:
            What the coroutine returns.

        Raises:
            TurnReplaced: A newer turn of the session, or ``stop``, ended this one; whatever it made of its cancel.
            asyncio.CancelledError: The caller was cancelled; the turn has been cleaned up, or was left behind.
            RuntimeError: The slot belongs to another event loop, or a turn would have to wait for its own end.
            Exception: What the turn raises.
        """
        try:
            self._check_loop()
            older = list(self._running.get(session, ()))
            if any(entry.task in _within.get() for entry in older):
                raise RuntimeError("a turn can not be replaced from within: it would wait for its own end")
            self._cancel(older)
        except BaseException:
            turn.close()
            raise
        task = asyncio.get_running_loop().create_task(self._after(session, older, turn))
        entry = _Running(session, task)
        self._running.setdefault(session, []).append(entry)

        def ended(_: object) -> None:
            self._forget(entry)
            self._left.discard(task)
            turn.close()  # it may never have begun
            if not task.cancelled():
                task.exception()  # of a turn that was left behind nobody asks for it

        task.add_done_callback(ended)
        try:
            await asyncio.wait((task, entry.given_up), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._cancel((entry,))
            await self._wait((entry,))
            raise
        if entry.replaced:
            raise TurnReplaced(session) from (task.exception() if task.done() and not task.cancelled() else None)
        return task.result()

    async def stop(self, session: Hashable) -> bool:
        """End the turn of a session and wait for its cleanup, at most the grace.

        From within the turn itself it does not wait.

        Args:
            session: Whose turn.

        Returns:
            Whether there was one.

        Raises:
            RuntimeError: The slot belongs to another event loop.
        """
        self._check_loop()
        return await self._stop(list(self._running.get(session, ())))

    async def aclose(self) -> None:
        """End the turns of all sessions at once and wait for their cleanup, at most the grace."""
        self._check_loop()
        await self._stop([entry for entries in self._running.values() for entry in entries])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- how -----------------------------------------------------------------------------

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed() and self._running:
                raise RuntimeError("this TurnSlot runs turns on another event loop; each loop needs its own")
            self._loop = loop
            self._running.clear()
            self._left.clear()

    async def _after(self, session: Hashable, older: Iterable[_Running], turn: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        _within.set((*(each for each in _within.get() if not each.done()), task))
        await self._wait(older)
        return await turn

    def _cancel(self, entries: Iterable[_Running]) -> None:
        """Cancel turns, each once: a second cancel would break off the cleanup that the first one began."""
        for entry in entries:
            if entry.deadline is None and not entry.task.done():
                entry.replaced = True
                entry.deadline = asyncio.get_running_loop().time() + self._grace
                entry.task.cancel()

    async def _wait(self, entries: Iterable[_Running]) -> None:
        """Wait for the end of cancelled turns, each until its grace has passed; leave those behind that still run."""
        now = asyncio.get_running_loop().time
        for entry in entries:
            if not entry.task.done() and entry.deadline is not None:
                await asyncio.wait((entry.task,), timeout=max(0.0, entry.deadline - now()))
            if not entry.task.done():
                self._leave(entry)

    async def _stop(self, entries: list[_Running]) -> bool:
        self._cancel(entries)
        own = _within.get()
        await self._wait([entry for entry in entries if entry.task not in own])
        return bool(entries)

    def _leave(self, entry: _Running) -> None:
        if entry.task in self._left:
            return
        self._left.add(entry.task)  # nobody else may hold it
        self._forget(entry)
        if not entry.given_up.done():
            entry.given_up.set_result(None)
        if self._on_left is not None:
            self._on_left(entry.session, entry.task)
            return
        message = (
            f"the turn of session {entry.session!r} did not end within {self._grace:g} seconds and was left behind"
        )
        asyncio.get_running_loop().call_exception_handler({"message": message, "task": entry.task})

    def _forget(self, entry: _Running) -> None:
        entries = self._running.get(entry.session, [])
        if entry in entries:
            entries.remove(entry)
            if not entries:
                del self._running[entry.session]


class _Running:
    """A turn that has not ended."""

    __slots__ = ("deadline", "given_up", "replaced", "session", "task")

    def __init__(self, session: Hashable, task: asyncio.Task[Any]) -> None:
        self.session = session
        self.task = task
        self.replaced = False
        self.given_up: asyncio.Future[None] = task.get_loop().create_future()
        self.deadline: float | None = None  # when its grace has passed; None where it was not cancelled


# The turns of slots that the code which runs here is a part of.
_within: contextvars.ContextVar[tuple[asyncio.Task[Any], ...]] = contextvars.ContextVar("_within", default=())
