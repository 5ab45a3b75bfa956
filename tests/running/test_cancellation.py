"""Wherever a turn waits, it can be stopped: what was begun has ended, the transcript is valid, and it can go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from toolturn import ChatModel, Limits, ModelCallback, ToolLoopResult, Turn, resume, run_tool_loop, stream_tool_loop
from toolturn.transcript import check

from .stepping import Steps, StreamingWorld, World
from .support import HELLO, outline, run

MOST_STEPS = 1000


@dataclass
class Interrupted:
    """What one interrupted run left."""

    world: World
    turn: Turn
    error: BaseException | None
    open: int
    pending: int
    settled: set[str]


Way = Callable[[World, Turn, Steps, int], Awaitable[None]]


def _model(world: World) -> ChatModel | ModelCallback:
    return world if isinstance(world, ChatModel) else world.model


async def _whole(world: World, turn: Turn, concurrency: int) -> ToolLoopResult:
    return await run_tool_loop(
        HELLO,
        world.tools,
        _model(world),
        limits=Limits(deadline=60),
        turn=turn,
        turn_id="t",
        concurrency=concurrency,
        hooks=world.hooks,
        emit=world.heard.append if isinstance(world, ChatModel) else None,
    )


async def _by_cancel(world: World, turn: Turn, steps: Steps, concurrency: int) -> None:
    task = asyncio.ensure_future(_whole(world, turn, concurrency))
    steps.strike = task.cancel
    await task


async def _by_timeout(world: World, turn: Turn, steps: Steps, concurrency: int) -> None:
    async def bounded() -> None:
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(None) as scope:
            try:
                steps.strike = lambda: scope.reschedule(now())
                await _whole(world, turn, concurrency)
            finally:
                steps.strike = lambda: None

    await asyncio.ensure_future(bounded())


async def _by_cancelled_consumer(world: World, turn: Turn, steps: Steps, concurrency: int) -> None:
    async def consume() -> None:
        async with stream_tool_loop(
            HELLO, world.tools, _model(world), turn=turn, turn_id="t", concurrency=concurrency, hooks=world.hooks
        ) as events:
            async for _ in events:
                pass

    task = asyncio.ensure_future(consume())
    steps.strike = task.cancel
    await task


async def _interrupted(way: Way, world: World, steps: Steps, concurrency: int) -> Interrupted:
    turn = Turn()
    error: BaseException | None = None
    steps.install()
    try:
        await way(world, turn, steps, concurrency)
    except (asyncio.CancelledError, TimeoutError) as exc:
        error = exc
    finally:
        asyncio.get_running_loop().set_task_factory(None)
    settled = {f"t/{record.op}" for record in turn.records if record.status == "ok"}
    return Interrupted(world, turn, error, world.open, len(asyncio.all_tasks()) - 1, settled)


def _at_every_step(
    make: type[World],
    way: Way,
    concurrency: int,
    and_then: Callable[[Interrupted], Awaitable[None]],
    *,
    late: bool = False,
    times: int = 1,
) -> int:
    """Interrupt a new turn at its first step, its second, and so on to its end; return how many steps it has."""

    async def one(steps: Steps) -> None:
        await and_then(await _interrupted(way, make(), steps, concurrency))

    for at in range(1, MOST_STEPS):
        steps = Steps(at, late=late, times=times)
        try:
            run(one(steps))
        except BaseException as exc:
            exc.add_note(f"interrupted at step {at}")
            raise
        if not steps.reached:
            return at
    raise AssertionError("the turn does not end")


def _uninterrupted(make: type[World], concurrency: int) -> tuple[Any, ...]:
    return outline(run(_whole(make(), Turn(), concurrency)))


each_world = pytest.mark.parametrize("make", [World, StreamingWorld])
each_way = pytest.mark.parametrize("way", [_by_cancel, _by_timeout, _by_cancelled_consumer])
each_concurrency = pytest.mark.parametrize("concurrency", [1, 3])
each_moment = pytest.mark.parametrize("late", [False, True], ids=["before", "late"])


@each_moment
@each_concurrency
@each_way
@each_world
def test_at_every_step_an_interruption_ends_all_that_was_begun_and_leaves_a_valid_transcript(
    make: type[World], way: Way, concurrency: int, late: bool
) -> None:
    kind: type[BaseException] = TimeoutError if way is _by_timeout else asyncio.CancelledError

    async def ended(after: Interrupted) -> None:
        assert after.error is None or type(after.error) is kind
        assert after.error is None or after.turn.phase in ("new", "ended")
        assert check(after.turn.messages) == []
        assert after.open == 0, "a handler, a hook or a model call still runs"
        assert after.pending == 0, "a task still runs"

    assert _at_every_step(make, way, concurrency, ended, late=late) > 30


@each_moment
@each_concurrency
@each_world
def test_at_every_step_an_interrupted_turn_can_go_on_to_the_end_it_would_have_had(
    make: type[World], concurrency: int, late: bool
) -> None:
    expected = _uninterrupted(make, concurrency)

    async def goes_on(after: Interrupted) -> None:
        world = after.world
        if after.turn.phase == "new":
            with pytest.raises(ValueError, match="has not begun"):
                await resume(after.turn, world.tools, _model(world))
        elif after.error is not None:
            del world.runs[:]
            result = await resume(after.turn, world.tools, _model(world), concurrency=concurrency, hooks=world.hooks)
            assert outline(result) == expected
            assert not after.settled.intersection(world.runs), "a call with a result ran again"

    _at_every_step(make, _by_cancel, concurrency, goes_on, late=late)


@each_moment
@each_concurrency
def test_at_every_step_an_interrupted_turn_can_be_saved_as_json_and_go_on_elsewhere(
    concurrency: int, late: bool
) -> None:
    expected = _uninterrupted(World, concurrency)

    async def goes_on(after: Interrupted) -> None:
        if after.error is None or after.turn.phase == "new":
            return
        world = World()
        result = await resume(
            after.turn.to_json(), world.tools, world.model, concurrency=concurrency, hooks=world.hooks
        )
        assert outline(result) == expected
        assert not after.settled.intersection(world.runs), "a call with a result ran again"

    _at_every_step(World, _by_cancel, concurrency, goes_on, late=late)


@each_concurrency
@pytest.mark.parametrize("way", [_by_cancel, _by_cancelled_consumer])
@each_world
def test_at_every_step_a_second_cancel_does_not_let_go_of_what_still_cleans_up(
    make: type[World], way: Way, concurrency: int
) -> None:
    async def ended(after: Interrupted) -> None:
        assert check(after.turn.messages) == []
        assert after.open == 0, "a handler, a hook or a model call still runs"
        assert after.pending == 0, "a task still runs"

    _at_every_step(make, way, concurrency, ended, times=2)


@each_concurrency
@each_world
def test_leaving_the_stream_after_any_event_ends_all_that_was_begun(make: type[World], concurrency: int) -> None:
    async def leave_after(count: int) -> bool:
        world, turn = make(), Turn()
        seen = 0
        async with stream_tool_loop(
            HELLO, world.tools, _model(world), turn=turn, concurrency=concurrency, hooks=world.hooks
        ) as events:
            async for _ in events:
                seen += 1
                if seen == count:
                    break
        assert check(turn.messages) == []
        assert turn.phase == "ended"
        assert world.open == 0
        assert len(asyncio.all_tasks()) == 1
        return seen == count

    count = 1
    while run(leave_after(count)):
        count += 1
    assert count > 15


@each_concurrency
def test_a_turn_that_was_left_after_any_event_goes_on_to_the_end_it_would_have_had(concurrency: int) -> None:
    expected = _uninterrupted(World, concurrency)

    async def leave_after(count: int) -> bool:
        world, turn = World(), Turn()
        seen = 0
        async with stream_tool_loop(
            HELLO, world.tools, world.model, turn=turn, turn_id="t", concurrency=concurrency, hooks=world.hooks
        ) as events:
            async for event in events:
                seen += 1
                if seen == count or event.type == "answer":
                    break
        if turn.exit is None or not isinstance(turn.exit, ToolLoopResult):
            result = await resume(turn, world.tools, world.model, concurrency=concurrency, hooks=world.hooks)
            assert outline(result) == expected
        return seen == count

    count = 1
    while run(leave_after(count)):
        count += 1


def test_leaving_the_stream_before_the_first_event_leaves_nothing_behind() -> None:
    async def main() -> None:
        world, turn = World(), Turn()
        async with stream_tool_loop(HELLO, world.tools, world.model, turn=turn):
            pass
        assert check(turn.messages) == []
        assert world.open == 0

    run(main())


def test_an_exception_in_the_block_ends_the_turn_and_is_raised() -> None:
    async def main() -> None:
        world, turn = World(), Turn()

        async def watch() -> None:
            async with stream_tool_loop(HELLO, world.tools, world.model, turn=turn) as events:
                async for event in events:
                    if event.type == "tool_call":
                        raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await watch()
        assert check(turn.messages) == []
        assert turn.phase == "ended"
        assert world.open == 0

    run(main())
