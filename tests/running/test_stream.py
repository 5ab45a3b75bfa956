"""stream_tool_loop: the events of a turn as they happen, and its end for who waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolturn import (
    ChatResponse,
    Limits,
    ToolLoopDeadlineError,
    ToolLoopError,
    ToolLoopResult,
    ToolLoopToolError,
    ToolLoopTruncatedResponseError,
    Turn,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.events import Event
from toolturn.testing import Reply, ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, Word, counting, outline, run, tool_of, types_of

TRUNCATED = ChatResponse("cut", None, None, "length")


def test_the_events_are_those_that_emit_is_told() -> None:
    async def main() -> None:
        tool, _ = counting()
        replies: list[Any] = [calls(("1", "act", "{}"), content="Let me see."), Reply("done", chunks=["do", "ne"])]
        told: list[Event] = []
        model = ScriptedModel(replies, streaming=True)
        plain = await run_tool_loop(HELLO, [tool], model, turn_id="t", emit=told.append)
        model = ScriptedModel(replies, streaming=True)
        async with stream_tool_loop(HELLO, [tool], model, turn_id="t") as events:
            seen = [event async for event in events]
            result = await events.result()
        assert types_of(seen) == types_of(told)
        assert outline(result) == outline(plain)
        assert events.turn.exit is result

    run(main())


def test_an_event_is_there_before_the_next_thing_happens() -> None:
    async def main() -> None:
        order: list[str] = []

        async def handler(request: Nothing) -> None:
            await asyncio.sleep(0)
            order.append("handler")

        model = ScriptedModel([calls(("act", "{}")), "done"])
        async with stream_tool_loop(HELLO, [tool_of(handler)], model) as events:
            async for event in events:
                order += [event.type]
        assert order.index("tool_call") < order.index("handler") < order.index("tool_result")

    run(main())


def test_the_result_can_be_waited_for_without_looking_at_any_event() -> None:
    async def main() -> None:
        async with stream_tool_loop(HELLO, [], ScriptedModel(["done"])) as events:
            assert (await events.result()).content == "done"
            assert (await events.result()).content == "done"

    run(main())


def test_the_error_of_the_turn_is_raised_by_the_iteration_after_the_last_event_and_by_the_result() -> None:
    async def main() -> None:
        seen: list[Event] = []
        async with stream_tool_loop(HELLO, [], ScriptedModel([TRUNCATED])) as events:
            seen += [await anext(events) for _ in range(3)]
            with pytest.raises(ToolLoopTruncatedResponseError):
                await anext(events)
            with pytest.raises(ToolLoopTruncatedResponseError):
                await events.result()
        assert types_of(seen) == ["iteration", "text", "done"]

    run(main())


def test_the_error_of_the_turn_that_nobody_catches_leaves_the_block() -> None:
    async def main() -> None:
        async def watch() -> None:
            async with stream_tool_loop(HELLO, [], ScriptedModel([TRUNCATED])) as events:
                async for _ in events:
                    pass

        with pytest.raises(ToolLoopTruncatedResponseError):
            await watch()

    run(main())


def test_an_error_that_nobody_waits_for_is_not_complained_of() -> None:
    async def main() -> None:
        async with stream_tool_loop(HELLO, [], ScriptedModel([TRUNCATED])) as events:
            async for event in events:
                if event.type == "done":
                    break
            await asyncio.sleep(0)

    run(main())


def test_an_exception_of_the_callback_is_raised_unchanged() -> None:
    async def main() -> None:
        error = LookupError("mine")
        async with stream_tool_loop(HELLO, [], ScriptedModel([error])) as events:
            with pytest.raises(LookupError) as caught:
                async for _ in events:
                    pass
        assert caught.value is error

    run(main())


def test_a_second_iteration_ends_at_once() -> None:
    async def main() -> None:
        async with stream_tool_loop(HELLO, [], ScriptedModel(["done"])) as events:
            assert len([event async for event in events]) == 4
            assert [event async for event in events] == []

    run(main())


def test_the_iteration_can_be_taken_up_where_it_was_left() -> None:
    async def main() -> None:
        async with stream_tool_loop(HELLO, [], ScriptedModel(["done"])) as events:
            first = await anext(events)
            rest = [event async for event in events]
        assert types_of([first, *rest]) == ["iteration", "text", "answer", "done"]

    run(main())


def test_waiting_for_the_result_no_longer_does_not_cancel_the_turn() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def handler(request: Nothing) -> None:
            await go.wait()

        model = ScriptedModel([calls(("act", "{}")), "done"])
        async with stream_tool_loop(HELLO, [tool_of(handler)], model) as events:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(events.result(), 0.02)
            go.set()
            assert (await events.result()).content == "done"

    run(main())


def test_its_messages_are_valid_at_every_event() -> None:
    async def main() -> None:
        tool, _ = counting()
        model = ScriptedModel([calls(("act", "{}"), ("act", "{}")), "done"])
        async with stream_tool_loop(HELLO, [tool], model) as events:
            async for _ in events:
                assert check(events.turn.messages) == []

    run(main())


def test_it_takes_what_run_tool_loop_takes() -> None:
    async def main() -> None:
        def fails(request: Nothing) -> None:
            raise LookupError

        turn = Turn()
        model = ScriptedModel([calls(("act", "{}")), "what I know"])
        async with stream_tool_loop(
            HELLO,
            [tool_of(fails)],
            model,
            limits=Limits(iterations=1),
            on_limit="answer",
            tool_errors="report",
            turn=turn,
            turn_id="t",
        ) as events:
            result = await events.result()
        assert (result.content, result.limit, result.turn_id) == ("what I know", "iterations", "t")
        assert events.turn is turn

    run(main())


def test_what_run_tool_loop_refuses_is_refused_on_entering() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="max_iterations must be at least 1"):
            async with stream_tool_loop(HELLO, [], ScriptedModel([]), max_iterations=0):
                raise AssertionError

    run(main())


@pytest.mark.parametrize("error", [ToolLoopToolError, ToolLoopDeadlineError])
def test_its_errors_are_those_of_run_tool_loop(error: type[ToolLoopError]) -> None:
    async def main() -> None:
        async def handler(request: Nothing) -> Word:
            if error is ToolLoopToolError:
                raise LookupError
            await asyncio.Event().wait()
            raise AssertionError

        model = ScriptedModel([calls(("act", "{}"))])
        async with stream_tool_loop(HELLO, [tool_of(handler)], model, limits=Limits(deadline=0.05)) as events:
            with pytest.raises(error):
                async for _ in events:
                    pass
            assert isinstance(events.turn.exit, error)

    run(main())


def test_two_streams_run_beside_each_other() -> None:
    async def main() -> None:
        meeting = asyncio.Barrier(2)

        async def handler(request: Nothing) -> None:
            await asyncio.wait_for(meeting.wait(), 5)

        async def one() -> Any:
            model = ScriptedModel([calls(("act", "{}")), "done"])
            async with stream_tool_loop(HELLO, [tool_of(handler)], model) as events:
                return [event.type async for event in events]

        first, second = await asyncio.gather(one(), one())
        assert first == second

    run(main())


def test_a_turn_that_was_cancelled_by_its_own_tool_ends_the_iteration_with_the_cancel() -> None:
    async def main() -> ToolLoopResult | None:
        async def handler(request: Nothing) -> None:
            raise asyncio.CancelledError

        async with stream_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))])) as events:
            with pytest.raises(asyncio.CancelledError):
                async for _ in events:
                    pass
            assert events.turn.phase == "ended"
        return None

    run(main())
