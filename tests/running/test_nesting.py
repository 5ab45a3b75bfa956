"""A turn inside a tool spends what the turn around it has left, and is charged to it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from dataclasses import replace
from typing import Any

import pytest

from toolturn import (
    Capabilities,
    ChatResponse,
    Limits,
    ModelSettings,
    Remaining,
    Tool,
    ToolContext,
    ToolLoopCostLimitError,
    ToolLoopDeadlineError,
    ToolLoopError,
    ToolLoopTokenLimitError,
    Turn,
    Usage,
    resume,
    run_tool_loop,
    run_tool_loop_sync,
)
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, Nothing, Signal, Word, counting, run, tool_of

SOME = Usage(8, 2)


def uses(reply: ChatResponse | str, usage: Usage | None = SOME) -> ChatResponse:
    """A reply that used so much."""
    made = ChatResponse(reply, finish_reason="stop") if isinstance(reply, str) else reply
    return replace(made, usage=usage)


def asking(count: int = 1, name: str = "act") -> ChatResponse:
    return uses(calls(*[(name, "{}")] * count))


class Inner:
    """A tool that runs a turn of its own, with a model that never stops to call, and what became of those turns."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.exits: list[ToolLoopError] = []
        self.turns: list[Turn] = []

    def tool(self, **options: Any) -> Tool[Any, Any]:
        act, _ = counting(effect="none")

        async def handler(request: Nothing, context: ToolContext) -> None:
            turn = Turn()
            self.turns.append(turn)
            given = {"limits": Limits(50, 50), **self.options}
            try:
                await run_tool_loop(HELLO, [act], ScriptedModel([asking() for _ in range(60)]), turn=turn, **given)
            except ToolLoopError as error:
                self.exits.append(error)

        return tool_of(handler, "delegate", **options)


def outer(inner: Inner, limits: Limits, calls_at_once: int = 1, **options: Any) -> Turn:
    """A turn that calls that tool and then answers; it may end at a limit."""

    async def main() -> Turn:
        turn = Turn()
        model = ScriptedModel([asking(calls_at_once, "delegate"), uses("done")])
        tool = inner.tool(parallel=calls_at_once > 1)
        with contextlib.suppress(ToolLoopError):
            await run_tool_loop(HELLO, [tool], model, limits=limits, turn=turn, **options)
        return turn

    return run(main())


def test_a_turn_inside_a_tool_can_not_spend_more_tokens_than_are_left() -> None:
    inner = Inner()
    turn = outer(inner, Limits(tokens=45))
    assert [type(error) for error in inner.exits] == [ToolLoopTokenLimitError]
    assert inner.turns[0].limits.tokens == 35
    assert inner.turns[0].usage.total == 40  # over by less than one reply
    assert turn.usage.total == 50
    assert turn.records[0].usage == Usage(32, 8)
    assert type(turn.exit) is ToolLoopTokenLimitError


def test_what_a_turn_inside_used_is_counted_where_nothing_is_bounded_too() -> None:
    inner = Inner(limits=Limits(2, 9))
    turn = outer(inner, Limits())
    assert turn.usage.total == 10 + 20 + 10
    assert turn.records[0].usage == Usage(16, 4)


def test_turns_that_run_at_once_share_what_is_left() -> None:
    inner = Inner()
    limits = Limits(tokens=100)
    turn = outer(inner, limits, calls_at_once=3, concurrency=3)
    assert [type(error) for error in inner.exits] == [ToolLoopTokenLimitError] * 3
    most = limits.worst_case(SOME, at_once=3).tokens
    assert most is not None
    assert 100 <= turn.usage.total <= most


def test_what_an_earlier_call_of_the_batch_spent_is_gone_for_the_next() -> None:
    inner = Inner(limits=Limits(2, 9))
    outer(inner, Limits(tokens=1000), calls_at_once=2)
    assert [turn.limits.tokens for turn in inner.turns] == [990, 970]


def test_a_turn_inside_a_turn_inside_a_tool_is_bounded_by_all_of_them() -> None:
    innermost = Inner()

    async def middle(request: Nothing) -> None:
        model = ScriptedModel([asking(1, "delegate"), uses("done")])
        with pytest.raises(ToolLoopTokenLimitError):
            await run_tool_loop(HELLO, [innermost.tool()], model, limits=Limits(tokens=10_000))

    async def main() -> Turn:
        turn = Turn()
        model = ScriptedModel([asking(), uses("done")])
        with pytest.raises(ToolLoopTokenLimitError):
            await run_tool_loop(HELLO, [tool_of(middle)], model, limits=Limits(tokens=55), turn=turn)
        return turn

    turn = run(main())
    assert innermost.turns[0].limits.tokens == 35
    assert turn.usage.total == 10 + 10 + 40
    assert turn.records[0].usage == Usage(40, 10)


def test_a_turn_inside_wants_its_last_answer_out_of_what_is_left_around() -> None:
    inner = Inner(on_limit="answer")
    act, _ = counting(effect="none")

    async def handler(request: Nothing) -> Word:
        model = ScriptedModel([asking(), asking(), uses("so far")])
        return Word(word=(await run_tool_loop(HELLO, [act], model, limits=Limits(50), on_limit="answer")).content)

    async def main() -> Any:
        model = ScriptedModel([asking(), uses("done")])
        tool = tool_of(handler, result_model=Word)
        return await run_tool_loop(HELLO, [tool], model, limits=Limits(tokens=60))

    result = run(main())
    assert "so far" in result.tool_calls[0].message.content
    assert result.usage.total == 50
    assert inner.exits == []


def test_a_turn_inside_costs_what_the_price_around_says_where_it_has_none() -> None:
    inner = Inner()
    turn = outer(inner, Limits(cost=5.0), price=lambda usage: usage.total / 10)
    assert [type(error) for error in inner.exits] == [ToolLoopCostLimitError]
    assert turn.usage.cost == 5.0
    assert turn.records[0].usage == Usage(32, 8, cost=4.0)


def test_a_turn_inside_may_have_a_price_of_its_own() -> None:
    inner = Inner(price=lambda usage: 1.5)
    turn = outer(inner, Limits(cost=4.0), price=lambda usage: 1.0)
    assert turn.usage.cost == 4.0


def test_a_turn_inside_a_blocking_tool_is_bounded_too() -> None:
    ended: list[BaseException] = []

    def handler(request: Nothing) -> None:
        act, _ = counting(effect="none")
        try:
            run_tool_loop_sync(HELLO, [act], ScriptedModel([asking() for _ in range(60)]), limits=Limits(50, 50))
        except ToolLoopError as error:
            ended.append(error)

    async def main() -> Any:
        turn = Turn()
        with pytest.raises(ToolLoopTokenLimitError):
            await run_tool_loop(
                HELLO, [tool_of(handler)], ScriptedModel([asking()]), limits=Limits(tokens=30), turn=turn
            )
        return turn

    turn = run(main())
    assert [type(error) for error in ended] == [ToolLoopTokenLimitError]
    assert turn.usage.total == 30


def test_a_turn_inside_has_no_more_time_than_is_left() -> None:
    inner = Inner()
    outer(inner, Limits(deadline=15.0))
    deadline = inner.turns[0].limits.deadline
    assert deadline is not None
    assert 0 < deadline <= 15.0
    own = Inner(limits=Limits(50, 50, deadline=3.0))
    outer(own, Limits(deadline=15.0))
    assert own.turns[0].limits.deadline == 3.0


def test_a_blocking_turn_that_was_left_behind_ends_by_the_deadline_it_inherited() -> None:
    async def main() -> None:
        over = Signal()
        ended: list[BaseException] = []

        def handler(request: Nothing) -> None:
            async def never(*_: Any) -> ChatResponse:
                await asyncio.Event().wait()
                raise AssertionError

            try:
                run_tool_loop_sync(HELLO, [], never)
            except BaseException as error:
                ended.append(error)
            over.set()

        with pytest.raises(ToolLoopDeadlineError):
            await run_tool_loop(
                HELLO, [tool_of(handler)], ScriptedModel([asking()]), limits=Limits(deadline=0.2), grace=0.0
            )
        await over.wait()
        assert [type(error) for error in ended] == [ToolLoopDeadlineError]

    run(main())


def test_a_turn_that_is_resumed_inside_a_tool_is_narrowed_anew() -> None:
    seen: list[int | None] = []

    async def handler(request: Nothing) -> None:
        act, _ = counting(effect="none")
        turn = Turn()
        with pytest.raises(ToolLoopError):
            await run_tool_loop(HELLO, [act], ScriptedModel([asking()]), limits=Limits(1), turn=turn)
        seen.append(turn.limits.tokens)
        await resume(turn, [act], ScriptedModel([uses("done")]), limits=Limits(2))
        seen.append(turn.limits.tokens)

    async def main() -> None:
        model = ScriptedModel([asking(), uses("done")])
        await run_tool_loop(HELLO, [tool_of(handler)], model, limits=Limits(tokens=100))

    run(main())
    assert seen == [90, 90]  # of the second, 10 are used already


def test_a_turn_that_begins_after_its_call_has_ended_is_no_part_of_it() -> None:
    async def main() -> None:
        context: list[contextvars.Context] = []

        async def handler(request: Nothing) -> None:
            context.append(contextvars.copy_context())

        model = ScriptedModel([asking(), uses("done")])
        result = await run_tool_loop(HELLO, [tool_of(handler)], model, limits=Limits(tokens=100))
        later = Turn()
        loop = asyncio.get_running_loop()
        await loop.create_task(run_tool_loop(HELLO, [], ScriptedModel([uses("hi")]), turn=later), context=context[0])
        assert later.limits.tokens is None
        assert result.usage.total == 20

    run(main())


def test_a_tool_sees_what_is_left() -> None:
    seen: list[Remaining | None] = []

    async def handler(request: Nothing, context: ToolContext) -> None:
        seen.append(context.remaining)

    async def main() -> None:
        model = ScriptedModel([asking(), uses("done")])
        await run_tool_loop(HELLO, [tool_of(handler)], model, limits=Limits(3, 5, tokens=100, per_tool={"act": 2}))
        await run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([asking(), uses("done")]))

    run(main())
    assert seen == [Remaining(2, 4, 90, None, None, 1), Remaining(3, 15)]


# --- price and names -------------------------------------------------------------------


def test_a_limit_of_cost_needs_a_price() -> None:
    with pytest.raises(ValueError, match="needs a price"):
        run(run_tool_loop(HELLO, [], ScriptedModel([]), limits=Limits(cost=1.0)))


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), None, "1"])
def test_a_price_that_is_no_amount_is_refused(price: Any) -> None:
    with pytest.raises(ValueError, match="the price of a reply must be"):
        run(run_tool_loop(HELLO, [], ScriptedModel([uses("hi")]), price=lambda usage: price))


def test_the_cost_of_a_turn_is_told_where_there_is_a_price() -> None:
    result = run(run_tool_loop(HELLO, [], ScriptedModel([uses("hi")]), price=lambda usage: usage.output * 2))
    assert result.usage == Usage(8, 2, cost=4.0)


def test_the_price_is_given_again_when_a_turn_is_resumed() -> None:
    async def main() -> None:
        act, _ = counting(effect="none")
        turn = Turn()
        with pytest.raises(ToolLoopCostLimitError):
            await run_tool_loop(
                HELLO, [act], ScriptedModel([asking()]), limits=Limits(cost=1.0), price=lambda _: 1.0, turn=turn
            )
        state, more = turn.to_json(), Limits(cost=5.0)
        with pytest.raises(ValueError, match="needs a price"):
            await resume(state, [act], ScriptedModel([]), limits=more)
        result = await resume(state, [act], ScriptedModel([uses("done")]), limits=more, price=lambda _: 2.0)
        assert result.usage.cost == 3.0

    run(main())


def test_a_budget_of_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="names 'atc', which is none of the tools"):
        run(run_tool_loop(HELLO, [counting()[0]], ScriptedModel([]), limits=Limits(per_tool={"atc": 1})))


# --- what the model is asked -----------------------------------------------------------


class Able(ScriptedModel):
    """A model that takes tools together with the tool choice ``none``."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, tool_choice_none=True)


@pytest.mark.parametrize("streaming", [False, True])
def test_tools_stay_in_the_last_request_where_the_model_can_have_them_unused(streaming: bool) -> None:
    act, _ = counting()
    model = Able([asking(), uses("so far")], streaming=streaming)
    settings = ModelSettings(temperature=0.5, tool_choice="required")
    heard: list[Any] = []
    run(run_tool_loop(HELLO, [act], model, max_iterations=1, on_limit="answer", settings=settings, emit=heard.append))
    assert model.requests[1][1] is model.requests[0][1]
    assert model.settings == [settings, replace(settings, tool_choice="none")]


def test_tools_are_left_out_of_the_last_request_where_it_can_not() -> None:
    act, _ = counting()
    model = ScriptedModel([asking(), uses("so far")])
    settings = ModelSettings(temperature=0.5, tool_choice="required")
    run(run_tool_loop(HELLO, [act], model, max_iterations=1, on_limit="answer", settings=settings))
    assert model.requests[1][1] == ()
    assert model.settings[1] == ModelSettings(temperature=0.5)


def test_a_reply_may_be_as_long_as_tokens_are_left_and_no_longer_than_the_settings_say() -> None:
    act, _ = counting()
    model = ScriptedModel([asking(), asking(), uses("done")])
    limits = Limits(tokens=100)
    run(run_tool_loop(HELLO, [act], model, limits=limits, settings=ModelSettings(max_tokens=85)))
    assert [settings and settings.max_tokens for settings in model.settings] == [85, 85, 80]
    model = ScriptedModel([asking(), uses("done")])
    run(run_tool_loop(HELLO, [act], model, limits=limits))
    assert [settings and settings.max_tokens for settings in model.settings] == [100, 90]
