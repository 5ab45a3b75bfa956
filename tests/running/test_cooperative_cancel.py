"""``turn.cancel(reason)`` from a task, a thread, a tool or the audience ends a turn that is driven, and says why."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from toolturn import (
    ChatModel,
    ChatResponse,
    Limits,
    ToolContext,
    ToolLoopCancelledError,
    ToolLoopResult,
    Turn,
    resume,
    run_tool_loop,
    run_tool_loop_sync,
)
from toolturn.events import Event
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .stepping import Steps, StreamingWorld, World
from .support import HELLO, Nothing, Signal, counting, outline, run, tool_of

MOST_STEPS = 1000


async def for_ever(*_: Any) -> Any:
    await asyncio.Event().wait()


async def cancelled(tools: list[Any], model: Any, when: asyncio.Event | Signal, **options: Any) -> tuple[Turn, Any]:
    """A turn that is cancelled at this moment, and its error."""
    turn = Turn()

    async def stop() -> None:
        await when.wait()
        turn.cancel("the user said stop")

    stopper = asyncio.ensure_future(stop())
    with pytest.raises(ToolLoopCancelledError, match="the user said stop") as caught:
        await run_tool_loop(HELLO, tools, model, turn=turn, **options)
    await stopper
    assert check(turn.messages) == []
    assert turn.phase == "ended"
    return turn, caught.value


def test_a_model_that_is_being_asked_is_let_go() -> None:
    async def main() -> None:
        asked, closed = asyncio.Event(), []

        async def model(messages: Any, tools: Any) -> ChatResponse:
            asked.set()
            try:
                await for_ever()
            finally:
                closed.append("closed")
            raise AssertionError

        await cancelled([], model, asked)
        assert closed == ["closed"]
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    run(main())


def test_a_tool_that_runs_is_cancelled_and_those_after_it_do_not_begin() -> None:
    async def main() -> None:
        began, cleaned = asyncio.Event(), []

        async def handler(request: Nothing) -> None:
            began.set()
            try:
                await for_ever()
            finally:
                await asyncio.sleep(0)
                cleaned.append("cleaned")

        model = ScriptedModel([calls(("act", "{}"), ("act", "{}"))])
        _, error = await cancelled([tool_of(handler)], model, began)
        assert [record.status for record in error.tool_calls] == ["cancelled", "not_executed"]
        assert cleaned == ["cleaned"]

    run(main())


def test_a_handler_that_refuses_to_end_is_left_behind_after_its_grace() -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def handler(request: Nothing) -> None:
            began.set()
            while True:
                with suppress(asyncio.CancelledError):
                    await for_ever()

        _, error = await cancelled([tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), began, grace=0.01)
        assert [record.status for record in error.tool_calls] == ["outcome_unknown"]

    run(main())


def test_a_blocking_handler_is_left_behind_after_its_grace() -> None:
    async def main() -> None:
        began, let_go = Signal(), threading.Event()

        def handler(request: Nothing) -> None:
            began.set()
            let_go.wait(20)

        _, error = await cancelled([tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), began, grace=0.0)
        assert [record.status for record in error.tool_calls] == ["outcome_unknown"]
        let_go.set()

    run(main())


@pytest.mark.parametrize("where", ["model", "tool"])
def test_what_is_raised_while_cleaning_up_does_not_hide_the_cancel(where: str) -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def fails(*_: Any) -> Any:
            began.set()
            try:
                await for_ever()
            finally:
                raise LookupError("mine")

        if where == "model":
            await cancelled([], fails, began)
        else:

            async def handler(request: Nothing) -> None:
                await fails()

            await cancelled([tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), began)

    run(main())


def test_a_model_that_refuses_to_end_is_left_behind_after_its_grace() -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def model(messages: Any, tools: Any) -> ChatResponse:
            asked.set()
            while True:
                with suppress(asyncio.CancelledError):
                    await for_ever()

        await cancelled([], model, asked, grace=0.01)

    run(main())


def test_all_tools_that_run_at_once_are_cancelled() -> None:
    async def main() -> None:
        began, running = asyncio.Event(), []

        async def handler(request: Nothing, context: ToolContext) -> None:
            running.append(context.op)
            if len(running) == 3:
                began.set()
            await for_ever()

        model = ScriptedModel([calls(*[("act", "{}")] * 4)])
        _, error = await cancelled([tool_of(handler, parallel=True)], model, began, concurrency=3)
        assert [record.status for record in error.tool_calls] == ["cancelled"] * 3 + ["not_executed"]

    run(main())


def test_another_thread_may_cancel_a_turn_that_is_driven() -> None:
    async def main() -> None:
        turn, asked = Turn(), threading.Event()

        async def model(messages: Any, tools: Any) -> ChatResponse:
            asked.set()
            await for_ever()
            raise AssertionError

        def stop() -> None:
            asked.wait(20)
            turn.cancel("from a thread")

        thread = threading.Thread(target=stop)
        thread.start()
        with pytest.raises(ToolLoopCancelledError, match="from a thread"):
            await run_tool_loop(HELLO, [], model, turn=turn)
        thread.join()

    run(main())


def test_a_turn_that_runs_in_the_background_of_synchronous_code_can_be_cancelled() -> None:
    turn, asked = Turn(), threading.Event()

    async def model(messages: Any, tools: Any) -> ChatResponse:
        asked.set()
        await for_ever()
        raise AssertionError

    def stop() -> None:
        asked.wait(20)
        turn.cancel("from another thread")

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(ToolLoopCancelledError, match="from another thread"):
        run_tool_loop_sync(HELLO, [], model, turn=turn)
    thread.join()


def test_a_tool_may_cancel_its_own_turn() -> None:
    turn = Turn()
    later, runs = counting("later")

    async def handler(request: Nothing) -> None:
        turn.cancel("the tool has seen enough")

    model = ScriptedModel([calls(("act", "{}"), ("later", "{}"))])
    with pytest.raises(ToolLoopCancelledError, match="seen enough") as caught:
        run(run_tool_loop(HELLO, [tool_of(handler), later], model, turn=turn))
    assert [record.status for record in caught.value.tool_calls] == ["ok", "not_executed"]
    assert runs == []


def test_the_audience_may_cancel_the_turn_at_any_event() -> None:
    def heard_until(count: int) -> bool:
        turn, seen = Turn(), 0
        act, _ = counting(effect="none")

        def emit(event: Event) -> None:
            nonlocal seen
            seen += 1
            if seen == count:
                turn.cancel("heard enough")

        model = ScriptedModel([calls(("act", "{}")), "done"], streaming=True)
        with suppress(ToolLoopCancelledError):
            run(run_tool_loop(HELLO, [act], model, turn=turn, emit=emit))
        assert seen < count or isinstance(turn.exit, ToolLoopResult) or str(turn.exit) == "heard enough"
        assert check(turn.messages) == []
        return seen >= count

    count = 1
    while heard_until(count):
        count += 1
    assert count > 6


def test_a_cancel_of_the_task_wins_over_one_of_the_turn() -> None:
    async def main() -> None:
        turn, asked = Turn(), asyncio.Event()

        async def model(messages: Any, tools: Any) -> ChatResponse:
            asked.set()
            await for_ever()
            raise AssertionError

        task = asyncio.ensure_future(run_tool_loop(HELLO, [], model, turn=turn))
        await asked.wait()
        turn.cancel("stop")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(turn.exit, ToolLoopCancelledError)

    run(main())


def test_a_turn_that_has_its_answer_stays_answered() -> None:
    turn = Turn()
    result = run(run_tool_loop(HELLO, [], ScriptedModel(["done"]), turn=turn))
    turn.cancel("too late")
    assert turn.exit is result


def test_a_turn_cancelled_under_a_deadline_is_cancelled_and_not_late() -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def model(messages: Any, tools: Any) -> ChatResponse:
            asked.set()
            await for_ever()
            raise AssertionError

        await cancelled([], model, asked, limits=Limits(deadline=20.0))

    run(main())


# --- wherever it waits -----------------------------------------------------------------


async def _whole(world: World, turn: Turn, concurrency: int) -> ToolLoopResult:
    return await run_tool_loop(
        HELLO,
        world.tools,
        world if isinstance(world, ChatModel) else world.model,
        turn=turn,
        turn_id="t",
        concurrency=concurrency,
        hooks=world.hooks,
        emit=world.heard.append if isinstance(world, ChatModel) else None,
    )


@pytest.mark.parametrize("late", [False, True], ids=["before", "late"])
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("make", [World, StreamingWorld])
def test_at_every_step_a_cancelled_turn_ends_typed_with_all_ended_and_goes_on_to_the_end_it_would_have_had(
    make: type[World], concurrency: int, late: bool
) -> None:
    expected = outline(run(_whole(make(), Turn(), concurrency)))

    async def one(steps: Steps) -> None:
        world, turn = make(), Turn()
        steps.strike = lambda: turn.cancel("stop")
        steps.install()
        try:
            task = asyncio.ensure_future(_whole(world, turn, concurrency))
            try:
                result = await task
            except ToolLoopCancelledError:
                result = None
        finally:
            asyncio.get_running_loop().set_task_factory(None)
        assert result is not None or str(turn.exit) == "stop"
        assert check(turn.messages) == []
        assert world.open == 0, "a handler, a hook or a model call still runs"
        assert len(asyncio.all_tasks()) == 1, "a task still runs"
        if result is None:
            settled = {f"t/{record.op}" for record in turn.records if record.status == "ok"}
            del world.runs[:]
            model = world if isinstance(world, ChatModel) else world.model
            result = await resume(turn, world.tools, model, concurrency=concurrency, hooks=world.hooks)
            assert not settled.intersection(world.runs), "a call with a result ran again"
        assert outline(result) == expected

    for at in range(1, MOST_STEPS):
        steps = Steps(at, late=late)
        try:
            run(one(steps))
        except BaseException as exc:
            exc.add_note(f"cancelled at step {at}")
            raise
        if not steps.reached:
            break
    assert at > 30
