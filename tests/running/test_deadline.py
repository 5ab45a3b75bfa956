"""The deadline bounds the seconds in which a turn is driven, whatever it is doing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from toolturn import (
    ChatResponse,
    Limits,
    ToolLoopDeadlineError,
    ToolLoopModelError,
    Turn,
    resume,
    run_tool_loop,
)
from toolturn.errors import ModelUnavailableError
from toolturn.events import Event
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import BOUND, HELLO, Nothing, counting, run, tool_of, types_of

SHORT = Limits(deadline=0.05)
LONG = Limits(deadline=BOUND)


async def _for_ever(*_: Any) -> None:
    await asyncio.Event().wait()


def test_a_model_that_takes_too_long_ends_the_turn_at_its_deadline() -> None:
    closed: list[str] = []

    async def model(messages: Any, tools: Any) -> ChatResponse:
        try:
            await _for_ever()
        finally:
            closed.append("closed")
        raise AssertionError

    with pytest.raises(ToolLoopDeadlineError, match=r"did not finish within 0\.05 seconds") as caught:
        run(run_tool_loop(HELLO, [], model, limits=SHORT))
    assert closed == ["closed"]
    assert caught.value.messages == HELLO
    assert caught.value.iterations == 0


def test_a_tool_that_takes_too_long_ends_the_turn_at_its_deadline_with_what_became_of_each_call() -> None:
    good, runs = counting("good")
    with pytest.raises(ToolLoopDeadlineError) as caught:
        run(
            run_tool_loop(
                HELLO,
                [good, tool_of(_for_ever)],
                ScriptedModel([calls(("good", "{}"), ("act", "{}"), ("good", "{}"))]),
                limits=SHORT,
            )
        )
    error = caught.value
    assert runs == [0]
    assert [record.status for record in error.tool_calls] == ["ok", "cancelled", "not_executed"]
    assert check(error.messages) == []


def test_tools_that_run_together_all_end_at_the_deadline() -> None:
    closed: list[int] = []

    async def handler(request: Nothing) -> None:
        try:
            await _for_ever()
        finally:
            await asyncio.sleep(0)
            closed.append(1)

    with pytest.raises(ToolLoopDeadlineError) as caught:
        run(
            run_tool_loop(
                HELLO,
                [tool_of(handler, parallel=True)],
                ScriptedModel([calls(*[("act", "{}")] * 4)]),
                limits=SHORT,
                concurrency=3,
            )
        )
    assert closed == [1, 1, 1]
    assert [r.status for r in caught.value.tool_calls] == ["cancelled"] * 3 + ["not_executed"]
    assert check(caught.value.messages) == []


def test_no_call_starts_after_the_deadline_even_when_the_model_swallows_the_cancel() -> None:
    tool, runs = counting()

    async def model(messages: Any, tools: Any) -> ChatResponse:
        if len(messages) > 1:
            return ChatResponse("done")
        with suppress(asyncio.CancelledError):
            await _for_ever()
        return calls(("act", "{}"))

    with pytest.raises(ToolLoopDeadlineError) as caught:
        run(run_tool_loop(HELLO, [tool], model, limits=SHORT))
    assert runs == []
    assert check(caught.value.messages) == []


def test_a_turn_in_time_does_not_feel_its_deadline() -> None:
    tool, _ = counting()
    result = run(run_tool_loop(HELLO, [tool], ScriptedModel([calls(("act", "{}")), "done"]), limits=LONG))
    assert result.content == "done"


def test_a_timeout_of_the_model_itself_is_not_the_deadline() -> None:
    async def model(messages: Any, tools: Any) -> ChatResponse:
        raise TimeoutError("the server")

    with pytest.raises(TimeoutError, match="the server"):
        run(run_tool_loop(HELLO, [], model, limits=LONG))


def test_a_model_error_within_the_deadline_stays_a_model_error() -> None:
    with pytest.raises(ToolLoopModelError):
        run(run_tool_loop(HELLO, [], ScriptedModel([ModelUnavailableError("gone")]), limits=LONG))


def test_an_answer_given_while_the_deadline_passes_is_not_lost() -> None:
    async def model(messages: Any, tools: Any) -> ChatResponse:
        with suppress(asyncio.CancelledError):
            await _for_ever()
        return ChatResponse("just in time")

    assert run(run_tool_loop(HELLO, [], model, limits=SHORT)).content == "just in time"


def test_the_seconds_that_were_used_count_on_resume() -> None:
    async def main() -> None:
        tool, _ = counting()
        turn = Turn()
        model = ScriptedModel([calls(("act", "{}")), LookupError("mine"), calls(("act", "{}"))])
        with pytest.raises(LookupError):
            await run_tool_loop(HELLO, [tool], model, turn=turn, limits=LONG)
        assert 0 < turn.seconds < BOUND
        turn.tick(BOUND - 0.05 - turn.seconds)
        with pytest.raises(ToolLoopDeadlineError) as caught:
            await resume(turn, [tool_of(_for_ever)], model)
        assert BOUND - 0.01 <= turn.seconds < BOUND + 5
        assert check(caught.value.messages) == []
        assert [record.status for record in caught.value.tool_calls] == ["ok", "cancelled"]

    run(main())


def test_a_turn_whose_time_is_used_up_goes_on_only_with_more_of_it() -> None:
    async def main() -> None:
        tool, _ = counting()
        with pytest.raises(ToolLoopDeadlineError) as caught:
            await run_tool_loop(
                HELLO, [tool_of(_for_ever, effect="none")], ScriptedModel([calls(("act", "{}"))]), limits=SHORT
            )
        with pytest.raises(ValueError, match=r"raise limits\.deadline to resume"):
            await resume(caught.value, [tool], ScriptedModel([]))
        with ScriptedModel(["done"]) as model:
            result = await resume(caught.value, [tool], model, limits=LONG)
        assert result.content == "done"

    run(main())


def test_the_time_between_a_stop_and_a_resume_does_not_count() -> None:
    async def main() -> None:
        turn = Turn()
        with pytest.raises(LookupError):
            await run_tool_loop(HELLO, [], ScriptedModel([LookupError()]), turn=turn, limits=Limits(deadline=0.1))
        await asyncio.sleep(0.15)
        result = await resume(turn, [], ScriptedModel(["done"]))
        assert result.content == "done"

    run(main())


def test_the_audience_is_told_of_the_end_at_the_deadline() -> None:
    events: list[Event] = []
    with pytest.raises(ToolLoopDeadlineError) as caught:
        run(
            run_tool_loop(
                HELLO,
                [tool_of(_for_ever)],
                ScriptedModel([calls(("act", "{}"))]),
                limits=SHORT,
                emit=events.append,
            )
        )
    assert types_of(events) == ["iteration", "tool_call", "tool_result", "done"]
    assert getattr(events[-1], "exit", None) is caught.value
