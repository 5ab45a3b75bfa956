"""Tools that want approval: asked in place, or the turn stops and goes on another day."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolturn import (
    Approval,
    ToolCall,
    ToolContext,
    ToolLoopApprovalRequired,
    ToolLoopCancelledError,
    Turn,
    TurnContext,
    resume,
    run_tool_loop,
    tool,
)
from toolturn.codec import error_to_json
from toolturn.events import Event
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, Nothing, Number, Signal, counting, run, tool_of, types_of


def paying(**options: Any) -> tuple[Any, list[tuple[int, str]]]:
    """A tool that pays, and what it paid."""
    paid: list[tuple[int, str]] = []

    @tool(**{"approval": True, **options})
    async def pay(amount: int, to: str = "Ann") -> str:
        """Pay somebody."""
        paid.append((amount, to))
        return "paid"

    return pay, paid


def model(*amounts: int, answer: str = "done") -> ScriptedModel:
    return ScriptedModel([calls(*[("pay", f'{{"amount": {amount}}}') for amount in amounts]), answer])


@pytest.mark.parametrize("kind", ["async", "plain", "returns an awaitable"])
def test_whoever_approves_is_given_the_call_its_parsed_arguments_and_the_context(kind: str) -> None:
    seen: list[Any] = []

    def plain(call: ToolCall, arguments: Any, context: ToolContext) -> bool:
        seen.append((call.arguments, arguments, context.session, context.op, threading.get_ident()))
        return True

    async def asynchronous(*about: Any) -> bool:
        return plain(*about)

    pay, paid = paying()
    approve: Any = {"async": asynchronous, "plain": plain, "returns an awaitable": lambda *a: asynchronous(*a)}[kind]
    run(run_tool_loop(HELLO, [pay], model(5), approve=approve, context=TurnContext("kitchen")))
    assert paid == [(5, "Ann")]
    assert [entry[:4] for entry in seen] == [('{"amount": 5}', {"amount": 5, "to": "Ann"}, "kitchen", "a1.0")]
    assert (seen[0][4] == threading.get_ident()) == (kind != "plain")


def test_a_tool_with_models_is_judged_by_its_request() -> None:
    seen: list[Any] = []

    async def handler(request: Number) -> None:
        pass

    async def approve(call: ToolCall, arguments: Any, context: ToolContext) -> bool:
        seen.append(arguments)
        return True

    from toolturn import Tool

    act = Tool("act", "It acts.", Number, None, handler, approval=lambda request: seen.append(request.n) or True)  # type: ignore[func-returns-value]
    run(run_tool_loop(HELLO, [act], ScriptedModel([calls(("act", '{"n":3}')), "done"]), approve=approve))
    assert seen == [3, Number(n=3)]


def test_a_denial_is_told_to_the_model_and_nothing_runs() -> None:
    pay, paid = paying()

    async def approve(*about: Any) -> Approval:
        return Approval(False, "ask me tomorrow")

    result = run(run_tool_loop(HELLO, [pay], model(5), approve=approve))
    assert paid == []
    assert [record.status for record in result.tool_calls] == ["denied"]
    assert "ask me tomorrow" in str(result.messages[2].content)


def test_all_are_asked_before_the_first_runs() -> None:
    order: list[str] = []

    @tool(approval=True)
    async def pay(amount: int) -> None:
        """Pay."""
        order.append(f"paid {amount}")

    async def approve(call: ToolCall, arguments: Any, context: ToolContext) -> bool:
        order.append(f"asked {arguments['amount']}")
        return bool(arguments["amount"] != 2)

    run(run_tool_loop(HELLO, [pay], model(1, 2, 3), approve=approve))
    assert order == ["asked 1", "asked 2", "asked 3", "paid 1", "paid 3"]


def test_a_function_of_the_arguments_says_which_calls_need_it() -> None:
    pay, paid = paying(approval=lambda given: given["amount"] > 10)
    with pytest.raises(ToolLoopApprovalRequired) as caught:
        run(run_tool_loop(HELLO, [pay], model(5, 50)))
    assert [record.call.arguments for record in caught.value.pending] == ['{"amount": 50}']
    assert paid == []
    assert run(run_tool_loop(HELLO, [pay], model(5))).content == "done"
    assert paid == [(5, "Ann")]


def test_a_function_that_fails_lets_nothing_through() -> None:
    pay, paid = paying(approval=lambda given: given["nothing of that name"])
    with pytest.raises(ToolLoopApprovalRequired):
        run(run_tool_loop(HELLO, [pay], model(5)))
    assert paid == []


def test_an_asynchronous_function_may_say_so_too() -> None:
    async def always(given: Any) -> bool:
        return True

    pay, _ = paying(approval=always)
    with pytest.raises(ToolLoopApprovalRequired):
        run(run_tool_loop(HELLO, [pay], model(5)))


@pytest.mark.parametrize("arguments", ['{"amount": "much"}', "{}", "not json"])
def test_calls_that_can_not_run_are_not_asked_about(arguments: str) -> None:
    pay, _ = paying()
    script = ScriptedModel([calls(("pay", arguments)), "done"])
    result = run(run_tool_loop(HELLO, [pay], script))
    assert [record.status for record in result.tool_calls] == ["invalid_arguments"]


def test_days_later_in_another_process_the_turn_goes_on() -> None:
    pay, paid = paying()
    look, looked = counting("look")
    script = ScriptedModel([calls(("look", "{}"), ("pay", '{"amount": 5}'), ("pay", '{"amount": 6}'))])
    with pytest.raises(ToolLoopApprovalRequired) as caught:
        run(run_tool_loop(HELLO, [pay, look], script))
    assert (paid, looked) == ([], [])
    text = error_to_json(caught.value)
    first, second = (record.call.id for record in caught.value.pending)
    result = run(
        resume(text, [pay, look], ScriptedModel(["done"]), approvals={first: Approval(True), second: Approval(False)})
    )
    assert result.content == "done"
    assert (paid, looked) == ([(5, "Ann")], [0])
    assert [record.status for record in result.tool_calls] == ["ok", "ok", "denied"]


def test_a_turn_that_stopped_may_be_asked_about_in_place_when_it_goes_on() -> None:
    pay, paid = paying()
    with pytest.raises(ToolLoopApprovalRequired) as caught:
        run(run_tool_loop(HELLO, [pay], model(5)))
    result = run(resume(caught.value, [pay], ScriptedModel(["done"]), approve=lambda *about: True))
    assert (result.content, paid) == ("done", [(5, "Ann")])


def test_what_was_approved_is_the_object_that_runs() -> None:
    seen: list[Any] = []

    async def handler(request: Number) -> None:
        seen.append(request)

    async def approve(call: ToolCall, arguments: Any, context: ToolContext) -> bool:
        seen.append(arguments)
        return True

    from toolturn import Tool

    act = Tool("act", "It acts.", Number, None, handler, approval=True)
    run(run_tool_loop(HELLO, [act], ScriptedModel([calls(("act", '{"n":3}')), "done"]), approve=approve))
    assert seen[0] is seen[1]


def test_what_an_approver_raises_passes_unchanged_and_the_turn_can_go_on() -> None:
    pay, paid = paying()
    turn = Turn()

    async def approve(*about: Any) -> bool:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(run_tool_loop(HELLO, [pay], model(5), approve=approve, turn=turn))
    assert turn.phase == "approval"
    assert run(resume(turn, [pay], ScriptedModel(["done"]), approve=lambda *about: True)).content == "done"
    assert paid == [(5, "Ann")]


@pytest.mark.parametrize("odd", [None, "yes", 1])
def test_an_approver_that_gives_no_decision_is_refused(odd: Any) -> None:
    pay, paid = paying()
    with pytest.raises(TypeError, match="approve must return an Approval or a bool"):
        run(run_tool_loop(HELLO, [pay], model(5), approve=lambda *about: odd))
    assert paid == []


def test_a_turn_can_be_cancelled_while_somebody_is_asked() -> None:
    async def main() -> None:
        pay, paid = paying()
        turn, asked = Turn(), asyncio.Event()

        async def approve(*about: Any) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

        task = asyncio.ensure_future(run_tool_loop(HELLO, [pay], model(5), approve=approve, turn=turn))
        await asked.wait()
        turn.cancel("never mind")
        with pytest.raises(ToolLoopCancelledError, match="never mind"):
            await task
        result = await resume(turn, [pay], ScriptedModel(["done"]), approvals={"t1.0": True})
        assert (result.content, paid) == ("done", [(5, "Ann")])

    run(main())


def test_a_turn_can_be_cancelled_while_a_blocking_approver_waits() -> None:
    async def main() -> None:
        pay, _ = paying()
        turn, asked, let_go = Turn(), Signal(), threading.Event()

        def approve(*about: Any) -> bool:
            asked.set()
            return let_go.wait(20)

        task = asyncio.ensure_future(run_tool_loop(HELLO, [pay], model(5), approve=approve, turn=turn, grace=0.0))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        let_go.set()

    run(main())


def test_the_audience_is_told_of_the_question_and_of_the_denial() -> None:
    pay, _ = paying()
    heard: list[Event] = []
    run(run_tool_loop(HELLO, [pay], model(5), approve=lambda *about: False, emit=heard.append))
    assert types_of(heard) == ["iteration", "approval", "tool_result", "iteration", "text", "answer", "done"]
    assert heard[2].record.status == "denied"  # type: ignore[union-attr]


def test_tools_of_one_batch_still_run_at_once_after_all_are_approved() -> None:
    async def main() -> None:
        both = asyncio.Barrier(2)

        async def handler(request: Nothing) -> None:
            await both.wait()

        act = tool_of(handler, approval=True, parallel=True)
        script = ScriptedModel([calls(("act", "{}"), ("act", "{}")), "done"])
        result = await run_tool_loop(HELLO, [act], script, approve=lambda *about: True, concurrency=2)
        assert [record.status for record in result.tool_calls] == ["ok", "ok"]

    run(main())
