"""Ops until the turn exits: the only asynchronous loop, where concurrency, cancellation and the clock live."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, Literal, NoReturn, TypeAlias

from .errors import ToolLoopError
from .events import Answer, ApprovalAsked, Done, Emit, Iteration, Repaired, ToolCallStarted, ToolResult
from .perform import OpInterrupted, Perform
from .results import Approval, ToolCallRecord, ToolLoopResult
from .turn import AskApproval, CallModel, CallTool, Op, Outcome, Turn
from .turn.batch import denied
from .turn.ops import record_of, response_of

CANCELLED = "the turn was cancelled"


Siblings: TypeAlias = Literal["cancel", "finish"]
"""What becomes of calls that run beside one that ends the turn: they are cancelled, or may finish."""

Limiter: TypeAlias = AbstractAsyncContextManager[Any]
"""A place for each running call, such as an ``asyncio.Semaphore``; one may be shared by many turns of a loop."""


# The limiters in which the code that runs here has a place: waiting for a second one could wait for itself.
_places: ContextVar[tuple[Limiter, ...]] = ContextVar("toolturn_places", default=())


async def drive(
    turn: Turn,
    perform: Perform,
    emit: Emit | None = None,
    *,
    concurrency: int = 1,
    siblings: Siblings = "cancel",
    limiter: Limiter | None = None,
) -> ToolLoopResult:
    """Perform the turn's ops until it exits.

    Args:
        turn: One that has begun.
        perform: Carries out one op.
        emit: Is told of everything that happens, in order.
        concurrency: How many calls of parallel tools may run at once, at least 1.
        siblings: What becomes of the calls beside one whose failure ends the turn; none begins any more.
        limiter: Is entered for each tool call; a turn inside a tool uses the place that the tool has.

    Returns:
        The result of the turn.

    Raises:
        ToolLoopError: The turn ended without an answer; the error says why and carries the transcript.
        ValueError: The turn has not begun, the concurrency is below 1, or ``siblings`` is no such policy.
        asyncio.CancelledError: The task was cancelled; handlers have been cleaned up and ``turn`` holds the state.
        Exception: What a plain model callback raised, unchanged; ``turn`` holds the state and can be resumed.
    """
    if turn.phase == "new":
        raise ValueError("the turn has not begun")
    if concurrency < 1:
        raise ValueError("concurrency must be at least 1")
    if siblings not in ("cancel", "finish"):
        raise ValueError("siblings must be 'cancel' or 'finish'")
    end = await _Drive(turn, perform, emit, concurrency, siblings, limiter).to_exit()
    if emit is not None:
        if isinstance(end, ToolLoopResult):
            emit(Answer(end.content))
        emit(Done(end))
    if isinstance(end, ToolLoopError):
        try:
            raise end
        finally:
            del end  # or the traceback would keep the error in a cycle with this frame
    return end


class _Drive:
    """One run of the loop over one turn."""

    __slots__ = (
        "_cancels",
        "_concurrency",
        "_emit",
        "_interrupted",
        "_limiter",
        "_loop",
        "_perform",
        "_scope",
        "_siblings",
        "_since",
        "_task",
        "_thread",
        "_turn",
    )

    def __init__(
        self,
        turn: Turn,
        perform: Perform,
        emit: Emit | None,
        concurrency: int,
        siblings: Siblings,
        limiter: Limiter | None,
    ) -> None:
        self._turn = turn
        self._perform = perform
        self._emit = emit
        self._concurrency = concurrency
        self._siblings = siblings
        self._limiter = limiter
        self._interrupted: list[tuple[Op, ToolCallRecord]] = []
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancels = task.cancelling()
        self._since = self._loop.time()
        limit = turn.limits.deadline
        # Both the deadline and a cancel of the turn end this scope, and with it whatever is awaited within.
        self._scope = asyncio.timeout_at(None if limit is None else self._since + limit - turn.seconds)

    async def to_exit(self) -> ToolLoopResult | ToolLoopError:
        turn = self._turn
        turn.driven(self._cancel)
        try:
            try:
                async with self._scope:
                    await self._until_exit()
            except Exception:
                # what ended this way may raise anything while it cleans up: why it ended is the exit all the same
                if not self._scope.expired():
                    raise
                turn.expire()
        except asyncio.CancelledError:
            turn.close(CANCELLED)
            raise
        except BaseException as exc:
            # another exception leaves the turn open, unless calls beside it were cut short
            if isinstance(exc, KeyboardInterrupt) or self._interrupted:
                turn.close("the turn was interrupted")
            raise
        finally:
            turn.driven(None)
            turn.tick(self._loop.time() - self._since)
            # What became of the calls that were running is told after the turn has ended: before, the last one of
            # a batch would complete it.
            for op, record in self._interrupted:
                turn.apply(op, record)
                if self._emit is not None:
                    with contextlib.suppress(Exception):  # an audience that fails must not hide the cancel
                        self._emit(ToolResult(record))
        end = turn.exit
        assert end is not None
        return end

    def _cancel(self, reason: str) -> None:
        """Take a cancel of the turn from any task or thread."""
        if threading.get_ident() == self._thread:
            self._stop(reason)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing runs any more
                self._loop.call_soon_threadsafe(self._stop, reason)

    def _stop(self, reason: str) -> None:
        turn = self._turn
        if turn.phase == "ended":
            return
        turn.close(reason)
        with contextlib.suppress(RuntimeError):  # the scope is left already, or its time is up at this moment
            self._scope.reschedule(self._loop.time())

    async def _until_exit(self) -> None:
        turn, perform, emit = self._turn, self._perform, self._emit
        task, before = self._task, self._cancels
        plain = emit is None and turn.limits.deadline is None  # nobody is told, and there is no clock to look at
        while ops := turn.ops():
            if self._concurrency == 1 or len(ops) == 1:
                for op in ops:
                    if self._limiter is not None and type(op) is CallTool:
                        await self._in_its_place(op, self._limiter)
                    else:
                        if emit is not None:
                            self._announce(op, emit)
                        if type(op) is CallTool:
                            turn.start(op)
                        try:
                            outcome = await perform(op, emit)
                        except OpInterrupted as exc:
                            self._interrupt(op, exc)
                        if plain and turn.phase != "ended":
                            turn.apply(op, outcome)
                        else:
                            self._take(op, outcome)
                    if turn.phase == "ended":
                        break
                    if task.cancelling() > before or (
                        emit is not None and turn.phase == "tools" and type(op) is CallTool
                    ):
                        # a cancel that was asked for comes before the next call begins, and so does an audience that
                        # leaves when it hears of this one
                        await asyncio.sleep(0)
            else:
                await self._together(ops)

    def _announce(self, op: Op, emit: Emit) -> None:
        if isinstance(op, CallModel):
            emit(Iteration(self._turn.iterations + (not op.forced), op.id, op.forced))
        elif isinstance(op, AskApproval):
            emit(ApprovalAsked(op.call, op.id))
        else:
            emit(ToolCallStarted(op.call, op.id))

    def _interrupt(self, op: Op, interrupted: OpInterrupted) -> NoReturn:
        if interrupted.settled or self._turn.phase == "ended":
            self._take(op, interrupted.outcome)
        else:
            self._interrupted.append((op, interrupted.outcome))
        raise interrupted.interruption from None

    def _take(self, op: Op, outcome: Outcome) -> None:
        turn = self._turn
        if turn.phase == "ended" and type(op) is not CallTool:
            return  # the turn was cancelled while the model, or whoever approves, was asked
        turn.apply(op, outcome)
        emit = self._emit
        if emit is not None:
            if type(op) is CallTool:
                emit(ToolResult(record_of(outcome)))
            elif type(op) is AskApproval:
                if isinstance(outcome, Approval) and not outcome.approved:
                    emit(ToolResult(denied(f"t{op.id[1:]}", op.call, outcome)))
            elif (response := response_of(outcome)) is not None and response.repairs:
                for repair in turn.repairs[-len(response.repairs) :]:
                    emit(Repaired(repair))
        if turn.limits.deadline is not None:
            self._look_at_the_clock(turn.limits.deadline)

    def _look_at_the_clock(self, deadline: float) -> None:
        # a model or tool may swallow the cancel at the deadline; nothing more is started after it all the same
        now = asyncio.get_running_loop().time()
        self._turn.tick(now - self._since)
        self._since = now
        if self._turn.seconds >= deadline:
            self._turn.expire()

    async def _in_its_place(self, op: Op, limiter: Limiter) -> None:
        """Carry out a call when there is a place for it; one that never had its place has not begun."""
        held = _places.get()
        async with contextlib.nullcontext() if any(limiter is one for one in held) else limiter:
            if self._turn.phase == "ended":
                return  # meanwhile another call ended the turn
            if self._emit is not None:
                self._announce(op, self._emit)
            if type(op) is CallTool:
                self._turn.start(op)
            token = _places.set((*held, limiter))
            try:
                outcome = await self._perform(op, self._emit)
            except OpInterrupted as exc:
                self._interrupt(op, exc)
            finally:
                _places.reset(token)
            self._take(op, outcome)

    async def _together(self, ops: tuple[Op, ...]) -> None:
        """Run these calls at once, as many as may be; when one ends the turn, the policy decides on the others."""
        turn, perform, emit = self._turn, self._perform, self._emit
        waiting = iter(ops)

        async def work() -> None:
            for op in waiting:
                if self._limiter is not None and type(op) is CallTool:
                    await self._in_its_place(op, self._limiter)
                else:
                    if emit is not None:
                        self._announce(op, emit)
                    if type(op) is CallTool:
                        turn.start(op)
                    try:
                        outcome = await perform(op, emit)
                    except OpInterrupted as exc:
                        self._interrupt(op, exc)
                    self._take(op, outcome)
                if turn.phase == "ended" or self._task.cancelling() > self._cancels:
                    return
                if emit is not None:
                    await asyncio.sleep(0)

        tasks = [asyncio.ensure_future(work()) for _ in range(min(self._concurrency, len(ops)))]
        left: Iterable[asyncio.Task[None]] = tasks
        try:
            while left:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                if turn.phase == "ended" and self._siblings == "cancel":
                    break
        finally:
            await end_tasks(tasks)


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel what still runs and wait for its end, which each handler's grace bounds.

    Args:
        tasks: The tasks; what they raise is of no interest any more.

    Raises:
        asyncio.CancelledError: The caller was cancelled meanwhile; all tasks have ended all the same.
    """
    cancelled: asyncio.CancelledError | None = None
    for task in tasks:
        task.cancel()
    while left := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as exc:
            cancelled = exc
    for task in tasks:
        if not task.cancelled():
            task.exception()
    if cancelled is not None:
        raise cancelled
