"""Hooks: each call is seen before it runs, each result before the model does; the first hook is outermost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolturn import (
    Tool,
    ToolError,
    ToolHook,
    ToolInvocation,
    ToolInvocationResult,
    ToolLoopResult,
    ToolLoopToolError,
    Turn,
    run_tool_loop,
)
from toolturn.events import Event, ToolProgress
from toolturn.messages import text_of
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Number, Signal, Word, run

Result = ToolInvocationResult
RUNS: list[int] = []


async def _handler(request: Number) -> Word:
    RUNS.append(request.n)
    return Word(word=str(request.n))


ACT = Tool("act", "It acts.", Number, Word, _handler)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RUNS.clear()


def _turn(hooks: list[ToolHook], *wanted: tuple[str, str, str], **options: Any) -> ToolLoopResult:
    batch = wanted or (("1", "act", '{"n":1}'),)
    with ScriptedModel([calls(*batch), "done"]) as model:
        return run(run_tool_loop(HELLO, [ACT], model, hooks=hooks, **options))


def _content(result: ToolLoopResult) -> str:
    return str(result.tool_calls[0].message.content)


def test_a_hook_that_does_nothing_changes_nothing() -> None:
    assert _content(_turn([ToolHook()])) == '{"word":"1"}'
    assert _content(_turn([ToolHook(lambda call: None, lambda call, result: None)])) == '{"word":"1"}'
    assert RUNS == [1, 1]


def test_before_and_after_run_around_the_call_from_the_outermost_to_the_innermost_and_back() -> None:
    order: list[str] = []

    def hook(name: str) -> ToolHook:
        def before(call: ToolInvocation) -> None:
            order.append(f"before {name} {RUNS}")

        async def after(call: ToolInvocation, result: Result) -> None:
            await asyncio.sleep(0)
            order.append(f"after {name} {RUNS} {result.content}")

        return ToolHook(before, after)

    _turn([hook("outer"), hook("inner")])
    assert order == [
        "before outer []",
        "before inner []",
        'after inner [1] {"word":"1"}',
        'after outer [1] {"word":"1"}',
    ]


def test_a_hook_sees_the_call_the_tool_the_validated_request_and_the_context() -> None:
    seen: list[ToolInvocation] = []
    result = _turn([ToolHook(seen.append)], ("7", "act", '{"n":"3"}'), turn_id="t", context="mine")
    (invocation,) = seen
    assert invocation.name == "act"
    assert invocation.tool is ACT
    assert invocation.call is result.tool_calls[0].call
    assert invocation.request == Number(n=3)
    assert (invocation.context.key, invocation.context.data) == ("t/t1.0", "mine")


def test_what_is_checked_is_what_runs() -> None:
    def before(call: ToolInvocation) -> None:
        call.request.n = 9

    assert _content(_turn([ToolHook(before)])) == '{"word":"9"}'


def test_a_hook_knows_the_call_by_the_name_in_the_set() -> None:
    seen: list[ToolInvocation] = []
    model = ScriptedModel([calls(("alias", "{}")), "done"])
    from toolturn import ToolSet

    run(run_tool_loop(HELLO, ToolSet({"alias": ACT}), model, hooks=[ToolHook(seen.append)]))
    assert (seen[0].name, seen[0].tool.name) == ("alias", "act")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_result_given_before_replaces_the_call(asynchronous: bool) -> None:
    given = Result("from the cache", False)

    async def later(call: ToolInvocation) -> Result:
        await asyncio.sleep(0)
        return given

    result = _turn([ToolHook(later if asynchronous else lambda call: given)])
    assert _content(result) == "from the cache"
    assert result.tool_calls[0].status == "ok"
    assert RUNS == []


def test_a_result_given_before_passes_the_hooks_further_in_and_is_seen_by_those_further_out() -> None:
    order: list[str] = []

    def see(name: str) -> ToolHook:
        return ToolHook(
            lambda call: order.append(f"before {name}"),
            lambda call, result: order.append(f"after {name} {result.content}"),
        )

    given = ToolHook(lambda call: Result("cached", False), lambda call, result: order.append("after itself"))
    _turn([see("outer"), given, see("inner")])
    assert order == ["before outer", "after itself", "after outer cached"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_result_given_after_replaces_that_of_the_call(asynchronous: bool) -> None:
    def mask(call: ToolInvocation, result: Result) -> Result:
        return Result(text_of(result.content).replace("1", "*"), result.return_direct)

    async def later(call: ToolInvocation, result: Result) -> Result:
        return mask(call, result)

    result = _turn([ToolHook(after=later if asynchronous else mask)])
    assert _content(result) == '{"word":"*"}'
    assert RUNS == [1]


def test_results_given_after_are_passed_on_outwards() -> None:
    def add(letter: str) -> ToolHook:
        return ToolHook(after=lambda call, result: Result(text_of(result.content) + letter, False))

    assert _content(_turn([add("a"), add("b")])) == '{"word":"1"}ba'


@pytest.mark.parametrize("policy", ["raise", "report"])
def test_a_tool_error_before_refuses_the_call_with_a_reason_for_the_model(policy: str) -> None:
    async def refuse(call: ToolInvocation) -> None:
        raise ToolError("not on a Sunday")

    result = _turn([ToolHook(refuse)], tool_errors=policy)
    record = result.tool_calls[0]
    assert record.status == "refused"
    assert json.loads(str(record.message.content)) == {"error": "refused", "detail": "not on a Sunday"}
    assert record.error is None
    assert RUNS == []


def test_a_refusal_is_seen_by_the_hooks_further_out_which_may_change_it() -> None:
    def refuse(call: ToolInvocation) -> None:
        raise ToolError("no")

    seen: list[str] = []

    def soften(call: ToolInvocation, result: Result) -> Result:
        seen.append(result.status)
        return Result("maybe later", False, "refused")

    result = _turn([ToolHook(after=soften), ToolHook(refuse)])
    assert seen == ["refused"]
    assert (_content(result), result.tool_calls[0].status) == ("maybe later", "refused")


def test_a_refusal_of_one_call_leaves_the_others_alone() -> None:
    def refuse(call: ToolInvocation) -> None:
        if call.request.n == 2:
            raise ToolError("no")

    wanted = [(str(n), "act", f'{{"n":{n}}}') for n in (1, 2, 3)]
    result = _turn([ToolHook(refuse)], *wanted)
    assert [record.status for record in result.tool_calls] == ["ok", "refused", "ok"]
    assert RUNS == [1, 3]


def _raises(*_: Any) -> Any:
    raise LookupError("mine")


async def _raises_later(*_: Any) -> Any:
    raise LookupError("mine")


def _text(*_: Any) -> Any:
    return "text"


async def _text_later(*_: Any) -> Any:
    return "text"


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize(
    ("function", "error"),
    [
        (_raises, "LookupError: mine"),
        (_raises_later, "LookupError: mine"),
        (_text, "TypeError: a hook must return a ToolInvocationResult or None, not str"),
        (_text_later, "TypeError: a hook must return a ToolInvocationResult or None, not str"),
    ],
)
def test_a_hook_that_raises_or_returns_something_else_is_a_failure_of_the_call(
    place: str, function: Any, error: str
) -> None:
    hook = ToolHook(**{place: function})
    record = _turn([hook], tool_errors="report").tool_calls[0]
    assert record.status == "error"
    assert record.error == error
    with pytest.raises(ToolLoopToolError, match=f"tool 'act' failed: {error}") as caught:
        _turn([hook], tool_errors="raise")
    assert check(caught.value.messages) == []
    assert [record.status for record in caught.value.tool_calls] == ["error"]


def test_a_tool_error_after_speaks_to_the_model() -> None:
    def after(call: ToolInvocation, result: Result) -> None:
        raise ToolError("the result may not be shown")

    record = _turn([ToolHook(after=after)]).tool_calls[0]
    assert record.status == "error"
    assert json.loads(str(record.message.content)) == {
        "error": "tool_error",
        "detail": "the result may not be shown",
    }


def test_a_call_that_never_reaches_its_tool_is_not_seen() -> None:
    seen: list[Any] = []
    _turn([ToolHook(seen.append)], ("1", "nobody", "{}"), ("2", "act", "nonsense"))
    assert seen == []


def test_a_hook_may_make_a_result_the_answer() -> None:
    model = ScriptedModel([calls(("act", "{}"))])
    hook = ToolHook(after=lambda call, result: Result("the answer", True))
    result = run(run_tool_loop(HELLO, [ACT], model, hooks=[hook]))
    assert (result.content, result.return_direct) == ("the answer", True)


def test_a_hook_may_keep_the_result_of_a_direct_tool_from_being_the_answer() -> None:
    direct = Tool("act", "It acts.", Number, Word, _handler, return_direct=True)
    hook = ToolHook(after=lambda call, result: Result(result.content, False))
    with ScriptedModel([calls(("act", "{}")), "done"]) as model:
        result = run(run_tool_loop(HELLO, [direct], model, hooks=[hook]))
    assert (result.content, result.return_direct) == ("done", False)


@pytest.mark.parametrize("run_in_thread", [True, False])
def test_what_a_hook_emits_is_heard_before_the_result(run_in_thread: bool) -> None:
    def blocking(request: Number) -> Word:
        return Word(word="hi")

    hook = ToolHook(
        lambda call: call.context.emit("before"),
        lambda call, result: call.context.emit("after"),
    )
    given = ToolHook(lambda call: Result("given", False) if call.request.n == 2 else None)
    events: list[Event] = []
    tool = Tool("act", "It acts.", Number, Word, blocking, run_in_thread=run_in_thread)
    with ScriptedModel([calls(("act", '{"n":1}'), ("act", '{"n":2}')), "done"]) as model:
        run(run_tool_loop(HELLO, [tool], model, hooks=[hook, given], emit=events.append))
    said = [event.data if isinstance(event, ToolProgress) else event.type for event in events]
    assert said[1:9] == ["tool_call", "before", "after", "tool_result"] * 2


def test_hooks_see_the_calls_of_a_parallel_batch_each_by_itself() -> None:
    async def main() -> None:
        together = asyncio.Barrier(3)
        seen: list[int] = []

        async def before(call: ToolInvocation) -> None:
            await asyncio.wait_for(together.wait(), 5)
            seen.append(call.request.n)

        tool = Tool("act", "It acts.", Number, Word, _handler, parallel=True)
        wanted = [("act", f'{{"n":{n}}}') for n in range(3)]
        with ScriptedModel([calls(*wanted), "done"]) as model:
            await run_tool_loop(HELLO, [tool], model, hooks=[ToolHook(before)], concurrency=3)
        assert sorted(seen) == [0, 1, 2]

    run(main())


def test_a_cancel_while_a_hook_waits_ends_the_hook_and_leaves_a_valid_transcript() -> None:
    async def main() -> None:
        begun, order, turn = Signal(), [], Turn()

        async def before(call: ToolInvocation) -> None:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                order.append("ended")

        model = ScriptedModel([calls(("act", "{}"))])
        task = asyncio.ensure_future(run_tool_loop(HELLO, [ACT], model, hooks=[ToolHook(before)], turn=turn))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert order == ["ended"]
        assert check(turn.messages) == []
        assert RUNS == []

    run(main())
