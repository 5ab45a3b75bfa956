"""ToolContext: what a handler can know of its turn, and how it speaks to the audience while it runs."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from toolturn import Tool, ToolContext, Turn, TurnContext, resume, run_tool_loop, stream_tool_loop, tool
from toolturn.events import Event, ToolProgress
from toolturn.testing import ScriptedModel, calls

from .support import BOUND, HELLO, Nothing, Signal, run, tool_of, types_of


def _keeping(seen: list[ToolContext], **options: Any) -> Tool[Any, Any]:
    async def handler(request: Nothing, context: ToolContext) -> None:
        seen.append(context)

    return Tool("act", "It acts.", Nothing, None, handler, **options)


def _seen(**options: Any) -> ToolContext:
    seen: list[ToolContext] = []
    with ScriptedModel([calls(("7", "act", "{}")), "done"]) as model:
        run(run_tool_loop(HELLO, [_keeping(seen)], model, **options))
    return seen[0]


def test_it_holds_the_turn_the_operation_and_the_call() -> None:
    context = _seen(turn_id="t")
    assert (context.turn_id, context.op, context.key) == ("t", "t1.0", "t/t1.0")
    assert context.call is not None
    assert context.call.id == "7"


def test_it_holds_what_the_caller_says_of_the_conversation() -> None:
    context = _seen(context=TurnContext(session="s", language="de-AT", data={"a": 1}))
    assert (context.session, context.language, context.data) == ("s", "de-AT", {"a": 1})


def test_anything_else_the_caller_gives_is_its_data() -> None:
    data = object()
    context = _seen(context=data)
    assert (context.session, context.language) == (None, None)
    assert context.data is data


def test_without_a_turn_it_is_empty_and_nobody_listens() -> None:
    seen: list[ToolContext] = []
    run(_keeping(seen).execute(Nothing()))
    assert seen == [ToolContext()]
    assert (seen[0].key, seen[0].call) == ("/", None)
    seen[0].emit("nobody hears this")


def test_it_can_be_given_to_a_tool_that_runs_without_a_turn() -> None:
    seen: list[ToolContext] = []
    given = ToolContext("t", "t1.0", session="s")
    run(_keeping(seen).invoke("{}", context=given))
    assert seen == [given]


def test_each_call_of_a_turn_has_a_key_of_its_own() -> None:
    seen: list[ToolContext] = []
    model = ScriptedModel([calls(("act", "{}"), ("act", "{}")), calls(("act", "{}")), "done"])
    run(run_tool_loop(HELLO, [_keeping(seen)], model, turn_id="t"))
    assert [context.key for context in seen] == ["t/t1.0", "t/t1.1", "t/t2.0"]


def test_two_turns_have_different_keys() -> None:
    assert _seen().key != _seen().key


def test_the_key_of_a_call_is_the_same_when_it_runs_again_after_a_resume() -> None:
    async def main() -> None:
        begun, keys = Signal(), []

        async def handler(request: Nothing, context: ToolContext) -> None:
            keys.append(context.key)
            if len(keys) == 2:
                begun.set()
                await asyncio.Event().wait()

        tools: list[Tool[Any, Any]] = [tool_of(handler, effect="keyed")]
        model = ScriptedModel([calls(("act", "{}"), ("act", "{}"), ("act", "{}")), "done"])
        turn = Turn()
        task = asyncio.ensure_future(run_tool_loop(HELLO, tools, model, turn=turn, turn_id="t"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        saved = turn.to_json()
        await resume(saved, tools, model)
        assert keys == ["t/t1.0", "t/t1.1", "t/t1.1", "t/t1.2"]

    run(main())


def _progress(events: list[Event]) -> list[Any]:
    return [event.data for event in events if isinstance(event, ToolProgress)]


def test_what_a_handler_emits_comes_between_its_call_and_its_result() -> None:
    @tool
    async def act(context: ToolContext) -> str:
        """It acts."""
        context.emit("half")
        context.emit({"percent": 100})
        return "done"

    events: list[Event] = []
    run(run_tool_loop(HELLO, [act], ScriptedModel([calls(("7", "act", "{}")), "done"]), emit=events.append))
    assert types_of(events)[1:5] == ["tool_call", "tool_progress", "tool_progress", "tool_result"]
    assert _progress(events) == ["half", {"percent": 100}]
    assert {(event.op, event.call.id) for event in events if isinstance(event, ToolProgress)} == {("t1.0", "7")}


def test_what_a_thread_emits_is_heard_in_order() -> None:
    @tool
    def act(context: ToolContext) -> str:
        """It acts."""
        for number in range(100):
            context.emit(number)
        return "done"

    events: list[Event] = []
    run(run_tool_loop(HELLO, [act], ScriptedModel([calls(("act", "{}")), "done"]), emit=events.append))
    assert _progress(events) == list(range(100))
    assert types_of(events)[-5:-1] == ["tool_result", "iteration", "text", "answer"]


def test_what_a_thread_emits_is_heard_while_it_runs() -> None:
    async def main() -> None:
        heard = threading.Event()

        @tool
        def act(context: ToolContext) -> str:
            """It acts."""
            time.sleep(0.05)  # so that the loop is asleep and has to be woken
            context.emit("half")
            return "heard" if heard.wait(2) else "nobody heard it"

        model = ScriptedModel([calls(("act", "{}")), "done"])
        async with stream_tool_loop(HELLO, [act], model) as events:
            async for event in events:
                if event.type == "tool_progress":
                    heard.set()
            result = await events.result()
        assert result.tool_calls[0].message.content == "heard"

    run(main())


def test_what_a_thread_emits_reaches_the_audience_on_the_thread_of_the_loop() -> None:
    threads: set[int] = set()

    @tool
    def act(context: ToolContext) -> str:
        """It acts."""
        context.emit("half")
        return "done"

    def emit(event: Event) -> None:
        threads.add(threading.get_ident())

    run(run_tool_loop(HELLO, [act], ScriptedModel([calls(("act", "{}")), "done"]), emit=emit))
    assert threads == {threading.get_ident()}


def test_what_a_thread_that_was_left_behind_emits_is_not_heard() -> None:
    async def main() -> None:
        release, ended = threading.Event(), threading.Event()

        @tool(timeout=0.03)
        def act(context: ToolContext) -> str:
            """It acts."""
            assert release.wait(BOUND)
            try:
                context.emit("too late")
            finally:
                ended.set()
            return "done"

        events: list[Event] = []
        model = ScriptedModel([calls(("act", "{}")), "done"])
        await run_tool_loop(HELLO, [act], model, tool_errors="report", grace=0.03, emit=events.append)
        release.set()
        assert await asyncio.to_thread(ended.wait, BOUND)
        await asyncio.sleep(0)
        assert _progress(events) == []
        assert events[-1].type == "done"

    run(main())


def test_what_a_task_of_the_handler_emits_after_its_call_has_ended_is_not_heard() -> None:
    async def main() -> None:
        go = asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def later(context: ToolContext) -> None:
            await go.wait()
            context.emit("too late")

        @tool
        async def act(context: ToolContext) -> str:
            """It acts."""
            tasks.append(asyncio.ensure_future(later(context)))
            return "done"

        events: list[Event] = []
        await run_tool_loop(HELLO, [act], ScriptedModel([calls(("act", "{}")), "done"]), emit=events.append)
        go.set()
        await tasks[0]
        assert _progress(events) == []

    run(main())


def test_an_audience_that_raises_at_what_a_tool_emits_ends_the_turn() -> None:
    class Full(Exception):
        pass

    @tool
    async def act(context: ToolContext) -> str:
        """It acts."""
        context.emit("half")
        return "done"

    def emit(event: Event) -> None:
        if event.type == "tool_progress":
            raise Full

    model = ScriptedModel([calls(("act", "{}")), "done"])
    with pytest.raises(Full):
        run(run_tool_loop(HELLO, [act], model, tool_errors="report", emit=emit))
