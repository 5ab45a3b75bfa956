"""A handler may use timeouts, task groups and turns of its own: what they cancel inside stays inside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolturn import (
    ChatResponse,
    Limits,
    ToolLoopDeadlineError,
    ToolTimeoutError,
    Turn,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, Nothing, Signal, one_call, run, tool_of


async def _for_ever() -> None:
    await asyncio.Event().wait()


def test_a_timeout_inside_a_handler_is_the_handlers_own_matter() -> None:
    async def handler(request: Nothing) -> None:
        try:
            async with asyncio.timeout(0.01):
                await _for_ever()
        except TimeoutError:
            return

    assert one_call(handler).status == "ok"


def test_a_wait_for_inside_a_handler_is_the_handlers_own_matter() -> None:
    async def handler(request: Nothing) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_for_ever(), 0.01)

    assert one_call(handler).status == "ok"


def test_a_timeout_inside_that_nobody_catches_is_a_failure_of_the_tool() -> None:
    async def handler(request: Nothing) -> None:
        async with asyncio.timeout(0.01):
            await _for_ever()

    record = one_call(handler)
    assert record.status == "error"
    assert record.error == "TimeoutError: "


def test_a_timeout_inside_is_no_timeout_of_the_tool() -> None:
    async def handler(request: Nothing) -> None:
        async with asyncio.timeout(0.01):
            await _for_ever()

    assert one_call(handler, tool_options={"timeout": 60}).status == "error"


def test_a_cleanup_inside_that_takes_longer_than_the_grace_fails_the_tool_and_not_the_turn() -> None:
    # who cancelled, the handler's own time-out or somebody outside, can not be told before the cleanup has ended
    async def slow() -> None:
        try:
            await _for_ever()
        finally:
            await asyncio.sleep(0.1)

    async def handler(request: Nothing) -> None:
        try:
            async with asyncio.timeout(0.01):
                await slow()
        except TimeoutError:
            return

    record = one_call(handler, grace=0.02)
    assert record.status == "error"
    assert "cleaned up for longer than the grace" in str(record.error)


def test_a_task_group_whose_child_fails_is_a_failure_of_the_tool() -> None:
    async def fails() -> None:
        raise LookupError("child")

    async def handler(request: Nothing) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            await _for_ever()

    record = one_call(handler)
    assert record.status == "error"
    assert record.error is not None
    assert record.error.startswith("ExceptionGroup")


def test_a_handler_that_cancels_a_task_of_its_own_goes_on() -> None:
    async def handler(request: Nothing) -> None:
        task = asyncio.ensure_future(_for_ever())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert one_call(handler).status == "ok"


def test_the_timeout_of_a_tool_that_a_handler_runs_is_told_without_a_hole() -> None:
    async def slow(request: Nothing) -> None:
        await _for_ever()

    inner = tool_of(slow, "inner", timeout=0.01)

    async def handler(request: Nothing) -> None:
        await inner.execute(request)

    record = one_call(handler)
    assert record.status in ("error", "timeout")
    assert "None" not in str(record.message.content)
    assert "inner" in str(record.error)


def test_a_handler_may_catch_the_timeout_of_a_tool_that_it_runs() -> None:
    async def slow(request: Nothing) -> None:
        await _for_ever()

    inner = tool_of(slow, "inner", timeout=0.01)

    async def handler(request: Nothing) -> None:
        with pytest.raises(ToolTimeoutError, match="inner"):
            await inner.execute(request)

    assert one_call(handler).status == "ok"


def test_a_turn_inside_a_handler_may_reach_its_deadline() -> None:
    async def never(messages: Any, tools: Any) -> ChatResponse:
        await _for_ever()
        raise AssertionError

    async def handler(request: Nothing) -> None:
        with pytest.raises(ToolLoopDeadlineError):
            await run_tool_loop(HELLO, [], never, limits=Limits(deadline=0.01))

    assert one_call(handler).status == "ok"


def test_a_stream_inside_a_handler_may_be_left_early() -> None:
    async def handler(request: Nothing) -> None:
        tool = tool_of(lambda request: None, "inner")
        model = ScriptedModel([calls(("inner", "{}")), "done"])
        async with stream_tool_loop(HELLO, [tool], model) as events:
            async for event in events:
                if event.type == "tool_call":
                    break

    assert one_call(handler).status == "ok"


def test_a_cancel_from_outside_wins_over_a_timeout_inside() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            async with asyncio.timeout(60):
                begun.set()
                await _for_ever()

        turn = Turn()
        task = asyncio.ensure_future(
            run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["cancelled"]

    run(main())


def test_a_timeout_inside_that_was_caught_leaves_the_next_cancel_its_force() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await _for_ever()
            begun.set()
            await _for_ever()

        turn = Turn()
        task = asyncio.ensure_future(
            run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["cancelled"]
        assert turn.phase == "ended"

    run(main())


def test_a_handler_that_raises_a_cancel_of_its_own_cancels_the_turn() -> None:
    async def main() -> None:
        async def handler(request: Nothing) -> None:
            raise asyncio.CancelledError

        turn = Turn()
        with pytest.raises(asyncio.CancelledError):
            await run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn)
        assert [record.status for record in turn.records] == ["cancelled"]
        assert turn.phase == "ended"

    run(main())
