"""Reported conversations that could not go on: however a turn stops, the next one begins with its messages."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    Limits,
    ModelUnavailableError,
    ToolLoopApprovalRequired,
    ToolLoopError,
    Turn,
    messages_from_json,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.conformance.validator import faults_of
from toolturn.models.servers import UNKNOWN
from toolturn.models.wires.openai_request import Encoder
from toolturn.testing import Reply, ScriptedModel, calls
from toolturn.transcript import check, repair

from .support import HELLO, Nothing, counting, run, tool_of

Stop = Callable[[Turn], Awaitable[Any]]
THREE = calls(("a", "act", "{}"), ("b", "slow", "{}"), ("c", "act", "{}"))


async def _slow(request: Nothing) -> None:
    await asyncio.Event().wait()


def _tools(**options: Any) -> list[Any]:
    return [counting()[0], tool_of(_slow, "slow", **options)]


async def cancelled_in_a_tool(turn: Turn) -> None:
    task = asyncio.ensure_future(run_tool_loop(HELLO, _tools(), ScriptedModel([THREE]), turn=turn))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def stopped_by_the_user(turn: Turn) -> None:
    task = asyncio.ensure_future(run_tool_loop(HELLO, _tools(), ScriptedModel([THREE]), turn=turn))
    await asyncio.sleep(0)
    turn.cancel("the user said stop")
    with pytest.raises(ToolLoopError):
        await task


async def left_while_it_streamed(turn: Turn) -> None:
    model = ScriptedModel([THREE], streaming=True)
    async with stream_tool_loop(HELLO, _tools(), model, turn=turn) as events:
        async for event in events:
            if event.type == "tool_call":
                break


async def failed_in_a_tool(turn: Turn) -> None:
    async def slow(request: Nothing) -> None:
        raise OSError("no")

    with pytest.raises(ToolLoopError):
        await run_tool_loop(HELLO, [counting()[0], tool_of(slow, "slow")], ScriptedModel([THREE]), turn=turn)


async def timed_out(turn: Turn) -> None:
    with pytest.raises(ToolLoopError):
        await run_tool_loop(HELLO, _tools(timeout=0.01), ScriptedModel([THREE]), turn=turn)


async def stopped_at_the_deadline(turn: Turn) -> None:
    with pytest.raises(ToolLoopError):
        await run_tool_loop(HELLO, _tools(), ScriptedModel([THREE]), turn=turn, limits=Limits(deadline=0.02))


async def stopped_at_the_budget(turn: Turn) -> None:
    with pytest.raises(ToolLoopError):
        await run_tool_loop(HELLO, _tools(), ScriptedModel([THREE]), turn=turn, max_tool_calls=2)


async def stopped_for_approval(turn: Turn) -> None:
    with pytest.raises(ToolLoopApprovalRequired):
        await run_tool_loop(HELLO, _tools(approval=True), ScriptedModel([THREE]), turn=turn)


async def lost_its_model(turn: Turn) -> None:
    model = ScriptedModel([calls(("act", "{}")), ModelUnavailableError("gone")])
    with pytest.raises(ToolLoopError):
        await run_tool_loop(HELLO, _tools(), model, turn=turn)


async def lost_its_stream(turn: Turn) -> None:
    model = ScriptedModel([calls(("act", "{}")), Reply(None, chunks=["half an ans"])], streaming=True)
    with pytest.raises(ToolLoopError):
        async with stream_tool_loop(HELLO, _tools(), model, turn=turn) as events:
            await events.result()


async def was_interrupted(turn: Turn) -> None:
    async def slow(request: Nothing) -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        await run_tool_loop(HELLO, [counting()[0], tool_of(slow, "slow")], ScriptedModel([THREE]), turn=turn)


STOPS: list[Stop] = [
    cancelled_in_a_tool,
    stopped_by_the_user,
    left_while_it_streamed,
    failed_in_a_tool,
    timed_out,
    stopped_at_the_deadline,
    stopped_at_the_budget,
    stopped_for_approval,
    lost_its_model,
    lost_its_stream,
    was_interrupted,
]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.__name__)
def test_a_conversation_goes_on_after_a_turn_that(stop: Stop) -> None:
    """https://github.com/pydantic/pydantic-ai/issues/7977, https://github.com/xxynet/KiraAI/issues/118 and others."""

    async def main() -> None:
        turn = Turn()
        await stop(turn)
        history = (*turn.messages, ChatMessage("user", "never mind"))
        assert check(history) == []
        pieces, _ = Encoder(UNKNOWN.wishes, "https://here", {}).encode(list(history))
        offered = [
            {"type": "function", "function": {"name": "act", "parameters": {"type": "object", "properties": {}}}}
        ]
        assert faults_of({"model": "m", "messages": list(map(json.loads, pieces)), "tools": offered}) == []
        act, runs = counting()
        with ScriptedModel([calls(("act", "{}")), "as you like"]) as model:
            result = await run_tool_loop(history, [act], model)
        assert result.content == "as you like"
        assert result.messages[: len(history)] == history
        assert runs == [0]

    run(main())


def test_calls_of_a_process_that_was_killed_are_told_as_unknown_and_are_not_made_again() -> None:
    """https://github.com/earendil-works/pi/issues/8378: there was no way to end the turn of a stored conversation."""
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    stored = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    history = messages_from_json(json.dumps(stored))
    pay, runs = counting("pay")

    async def main() -> None:
        with pytest.raises(ValueError, match="repair mends them"):
            await run_tool_loop(history, [pay], ScriptedModel([]))
        mended = repair(history)
        assert len(mended.changes) == 1
        with ScriptedModel(["I do not know whether it was paid."]) as model:
            result = await run_tool_loop(mended.messages, [pay], model)
        assert result.messages[2].role == "tool"
        assert "unknown" in str(result.messages[2].content)

    run(main())
    assert runs == []


def test_results_stand_in_the_order_of_their_calls_whichever_is_ready_first() -> None:
    """https://github.com/maximhq/bifrost/pull/4410: every tenth conversation was refused."""
    finished: list[str] = []

    async def main() -> None:
        events = {name: asyncio.Event() for name in "abc"}

        def waiting(name: str, after: str | None) -> Any:
            async def handler(request: Nothing) -> None:
                if after is not None:
                    await events[after].wait()
                finished.append(name)
                events[name].set()

            return tool_of(handler, name, parallel=True)

        tools = [waiting("a", "c"), waiting("b", "a"), waiting("c", None)]
        with ScriptedModel([calls(("1", "a", "{}"), ("2", "b", "{}"), ("3", "c", "{}")), "done"]) as model:
            result = await run_tool_loop(HELLO, tools, model, concurrency=3)
        assert [message.tool_call_id for message in result.messages if message.role == "tool"] == ["1", "2", "3"]
        assert [record.call.name for record in result.tool_calls] == ["a", "b", "c"]

    run(main())
    assert finished == ["c", "a", "b"]
