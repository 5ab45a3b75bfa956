"""Ops until the turn exits: the only asynchronous loop, where concurrency, cancellation and the clock live."""

from __future__ import annotations

import asyncio

from .errors import ToolLoopError
from .events import Answer, Done, Emit, Iteration, ToolCallStarted, ToolResult
from .perform import OpInterrupted, Perform
from .results import ToolLoopResult
from .turn import CallModel, CallTool, Op, Outcome, ToolFailed, Turn


async def drive(turn: Turn, perform: Perform, emit: Emit | None = None, *, concurrency: int = 1) -> ToolLoopResult:
    """Perform the turn's ops until it exits.

    Args:
        turn: One that has begun.
        perform: Carries out one op.
        emit: Is told of everything that happens, in order.
        concurrency: How many calls of parallel tools may run at once.

    Returns:
        The result of the turn.

    Raises:
        ToolLoopError: The turn ended without an answer; the error says why and carries the transcript.
        asyncio.CancelledError: The task was cancelled; the handlers have been cleaned up and ``turn`` holds the state.
        Exception: What a plain model callback raised, unchanged; ``turn`` holds the state and can be resumed.
    """
    if turn.phase == "new":
        raise ValueError("the turn has not begun")
    loop = asyncio.get_running_loop()
    start = loop.time()
    limit = turn.limits.deadline
    try:
        if limit is None:
            await _until_exit(turn, perform, emit, concurrency)
        else:
            scope = asyncio.timeout_at(start + limit - turn.seconds)
            try:
                async with scope:
                    await _until_exit(turn, perform, emit, concurrency)
            except TimeoutError:
                if not scope.expired():
                    raise
                turn.expire()
    except (asyncio.CancelledError, KeyboardInterrupt) as exc:
        turn.cancel("the turn was interrupted" if isinstance(exc, KeyboardInterrupt) else "the turn was cancelled")
        raise
    finally:
        turn.tick(loop.time() - start)
    end = turn.exit
    assert end is not None
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


async def _until_exit(turn: Turn, perform: Perform, emit: Emit | None, concurrency: int) -> None:
    while ops := turn.ops():
        if concurrency == 1 or len(ops) == 1:
            for op in ops:
                if emit is not None:
                    _announce(turn, op, emit)
                try:
                    outcome = await perform(op, emit)
                except OpInterrupted as exc:
                    turn.apply(op, exc.outcome)
                    if emit is not None:
                        emit(ToolResult(exc.outcome))
                    raise exc.interruption from None
                _take(turn, op, outcome, emit)
                if turn.phase == "ended":
                    break
        else:
            await _together(turn, ops, perform, emit, concurrency)


def _announce(turn: Turn, op: Op, emit: Emit) -> None:
    if isinstance(op, CallModel):
        emit(Iteration(turn.iterations if op.forced else turn.iterations + 1, op.id, op.forced))
    else:
        emit(ToolCallStarted(op.call, op.id))


def _take(turn: Turn, op: Op, outcome: Outcome, emit: Emit | None) -> None:
    turn.apply(op, outcome)
    if emit is not None and type(op) is CallTool:
        record = outcome.record if isinstance(outcome, ToolFailed) else outcome
        emit(ToolResult(record))  # type: ignore[arg-type]  # apply has refused anything else


async def _together(turn: Turn, ops: tuple[Op, ...], perform: Perform, emit: Emit | None, concurrency: int) -> None:
    """Run these calls at once, at most ``concurrency`` of them; when one ends the turn, the others are cancelled."""
    waiting = iter(ops)
    running: set[asyncio.Task[None]] = set()
    interruption: BaseException | None = None

    async def work() -> None:
        for op in waiting:
            if emit is not None:
                _announce(turn, op, emit)
            try:
                outcome = await perform(op, emit)
            except OpInterrupted as exc:
                turn.apply(op, exc.outcome)
                if emit is not None:
                    emit(ToolResult(exc.outcome))
                raise exc.interruption from None
            _take(turn, op, outcome, emit)
            if turn.phase == "ended":
                return

    try:
        running = {asyncio.ensure_future(work()) for _ in range(min(concurrency, len(ops)))}
        left = running
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            broken = next((task for task in done if task.cancelled() or task.exception() is not None), None)
            if broken is not None:
                interruption = asyncio.CancelledError() if broken.cancelled() else broken.exception()
            if broken is not None or turn.phase == "ended":
                break
    finally:
        unfinished = [task for task in running if not task.done()]
        for task in unfinished:
            task.cancel()
        if unfinished:
            # each handler has its own bounded time to clean up, so this ends
            await asyncio.wait(unfinished)
        for task in running:
            if not task.cancelled():
                task.exception()
    if interruption is not None:
        raise interruption
