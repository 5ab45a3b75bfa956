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

from .support import HELLO, Nothing, Signal, Word, one_call, run, tool_of


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


async def _fails_soon() -> None:
    await asyncio.sleep(0)
    raise LookupError("child")


def test_a_task_group_whose_child_fails_while_it_is_waited_for_is_a_failure_of_the_tool() -> None:
    async def handler(request: Nothing) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_fails_soon())

    record = one_call(handler)
    assert record.status == "error"
    assert str(record.error).startswith("ExceptionGroup")


def test_a_handler_may_deal_with_a_child_that_fails_while_it_is_waited_for() -> None:
    left: list[int] = []

    async def inner() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_fails_soon())
            group.create_task(_for_ever())

    async def handler(request: Nothing) -> dict[str, str]:
        for _ in range(2):
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(inner())
                    group.create_task(_for_ever())
            except* LookupError:
                task = asyncio.current_task()
                assert task is not None
                left.append(task.cancelling())
        await asyncio.sleep(0)
        return {"word": "dealt with"}

    record = one_call(handler, tool_options={"result_model": Word})
    assert record.message.content == '{"word":"dealt with"}'
    assert left == [0, 0]


def test_a_cancel_from_outside_is_one_while_a_group_whose_child_has_failed_waits_for_the_others() -> None:
    async def main() -> None:
        cleans, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            try:
                await _for_ever()
            finally:
                cleans.set()
                await go_on.wait()

        async def handler(request: Nothing) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(slow())
                group.create_task(_fails_soon())

        turn = Turn()
        model = ScriptedModel([calls(("act", "{}"))])
        task = asyncio.ensure_future(run_tool_loop(HELLO, [tool_of(handler)], model, turn=turn))
        await cleans.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["cancelled"]

    run(main())


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
