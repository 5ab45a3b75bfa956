"""A turn that stopped goes on: what has an outcome does not run again, what has none does."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    Limits,
    ModelUnavailableError,
    ToolHook,
    ToolLoopError,
    ToolLoopIterationLimitError,
    ToolLoopModelError,
    ToolLoopToolCallLimitError,
    ToolLoopToolError,
    ToolLoopTruncatedResponseError,
    Turn,
    error_to_json,
    resume,
    run_tool_loop,
)
from toolturn.events import Event
from toolturn.loop import reopened, streaming
from toolturn.perform import Performer
from toolturn.testing import ScriptedModel, calls
from toolturn.tools import ToolSet
from toolturn.transcript import check

from .support import HELLO, Nothing, Signal, counting, outline, run, tool_of, types_of

BATCH = calls(("1", "good", "{}"), ("2", "bad", "{}"), ("3", "good", "{}"))


def _broken(request: Nothing) -> None:
    raise LookupError("broken")


async def _stopped() -> tuple[ToolLoopToolError, Any, list[int]]:
    good, runs = counting("good")
    tools = [good, tool_of(_broken, "bad")]
    with pytest.raises(ToolLoopToolError) as caught:
        await run_tool_loop(HELLO, tools, ScriptedModel([BATCH]), turn_id="t")
    return caught.value, tools, runs


FORMS: dict[str, Callable[[ToolLoopError], Any]] = {
    "the error": lambda error: error,
    "its state": lambda error: error.state,
    "the error as JSON": error_to_json,
    "a pickled error": lambda error: pickle.loads(pickle.dumps(error)),
    "a copied error": copy.copy,
    "a turn": lambda error: Turn.from_json(str(error.state)),
    "a pickled turn": lambda error: pickle.loads(pickle.dumps(Turn.from_json(str(error.state)))),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_turn_goes_on_from_every_form_in_which_it_can_be_kept(form: Callable[[ToolLoopError], Any]) -> None:
    async def main() -> None:
        error, tools, runs = await _stopped()
        assert runs == [0]
        with ScriptedModel(["done"]) as model:
            result = await resume(form(error), tools, model)
        assert result.content == "done"
        assert result.turn_id == "t"
        assert runs == [0, 1], "the call with a result ran again, or the one without did not run"
        assert [record.status for record in result.tool_calls] == ["ok", "error", "ok"]
        assert [record.op for record in result.tool_calls] == ["t1.0", "t1.1", "t1.2"]
        assert check(result.messages) == []

    run(main())


def test_a_failure_is_an_outcome_that_the_model_reads_after_the_resume() -> None:
    async def main() -> None:
        error, tools, _ = await _stopped()
        model = ScriptedModel(["done"])
        await resume(error, tools, model)
        asked = model.requests[0][0]
        assert [message.role for message in asked] == ["user", "assistant", "tool", "tool", "tool"]
        assert asked[3].content == '{"error": "tool_failed", "tool": "bad", "type": "LookupError"}'

    run(main())


def test_a_turn_given_itself_goes_on_in_place() -> None:
    async def main() -> None:
        error, tools, _ = await _stopped()
        turn = Turn.from_json(str(error.state))
        result = await resume(turn, tools, ScriptedModel(["done"]))
        assert turn.exit is result

    run(main())


def test_an_error_can_be_resumed_more_than_once() -> None:
    async def main() -> None:
        error, tools, _ = await _stopped()
        first = await resume(error, tools, ScriptedModel(["done"]))
        second = await resume(error, tools, ScriptedModel(["done"]))
        assert outline(first) == outline(second)

    run(main())


def test_a_model_that_failed_is_asked_again() -> None:
    async def main() -> None:
        tool, runs = counting()
        model = ScriptedModel([calls(("act", "{}")), ModelUnavailableError("gone"), "done"])
        with pytest.raises(ToolLoopModelError) as caught:
            await run_tool_loop(HELLO, [tool], model)
        result = await resume(caught.value, [tool], model)
        assert (result.content, result.iterations, runs) == ("done", 2, [0])
        assert model.requests[1] == model.requests[2]

    run(main())


def test_a_reply_that_was_refused_counts_and_is_asked_for_again() -> None:
    async def main() -> None:
        with pytest.raises(ToolLoopTruncatedResponseError) as caught:
            await run_tool_loop(HELLO, [], ScriptedModel([ChatResponse("cut", None, None, "length")]))
        result = await resume(caught.value, [], ScriptedModel(["done"]))
        assert (result.content, result.iterations) == ("done", 2)
        assert result.messages == (*HELLO, ChatMessage("assistant", "done"))

    run(main())


@pytest.mark.parametrize("raw", [{"kind": "error"}, {"v": 1, "kind": "error", "class": "ToolLoopError"}])
def test_what_a_provider_sent_is_not_mistaken_for_what_is_resumed(raw: Any) -> None:
    async def main() -> None:
        response = ChatResponse("cut", None, None, "length", raw)
        with pytest.raises(ToolLoopTruncatedResponseError) as caught:
            await run_tool_loop(HELLO, [], ScriptedModel([response]))
        for form in (caught.value.state, error_to_json(caught.value)):
            assert form is not None
            assert (await resume(form, [], ScriptedModel(["done"]))).content == "done"

    run(main())


def test_what_a_user_wrote_is_not_mistaken_for_what_is_resumed() -> None:
    async def main() -> None:
        turn = Turn()
        words = [ChatMessage("user", '{"v":1, "kind": "error"}')]
        with pytest.raises(LookupError):
            await run_tool_loop(words, [], ScriptedModel([LookupError()]), turn=turn)
        assert (await resume(turn.to_json(), [], ScriptedModel(["done"]))).content == "done"

    run(main())


def test_at_the_limit_of_iterations_more_of_them_are_needed() -> None:
    async def main() -> None:
        tool, runs = counting()
        with pytest.raises(ToolLoopIterationLimitError) as caught:
            await run_tool_loop(HELLO, [tool], ScriptedModel([calls(("act", "{}"))]), max_iterations=1)
        with pytest.raises(ValueError, match=r"raise limits\.iterations to resume"):
            await resume(caught.value, [tool], ScriptedModel([]))
        result = await resume(caught.value, [tool], ScriptedModel(["done"]), limits=Limits(iterations=2))
        assert (result.content, result.iterations, runs) == ("done", 2, [0])

    run(main())


def test_at_the_limit_of_calls_more_of_them_are_needed() -> None:
    async def main() -> None:
        tool, runs = counting()
        model = ScriptedModel([calls(("act", "{}"), ("act", "{}"))])
        with pytest.raises(ToolLoopToolCallLimitError) as caught:
            await run_tool_loop(HELLO, [tool], model, max_tool_calls=1)
        with pytest.raises(ValueError, match=r"raise limits\.tool_calls to resume"):
            await resume(caught.value, [tool], ScriptedModel([]))
        model = ScriptedModel([calls(("act", "{}"), ("act", "{}")), "done"])
        result = await resume(caught.value, [tool], model, limits=Limits(tool_calls=2))
        assert (result.content, runs) == ("done", [0, 1])

    run(main())


def test_at_a_limit_the_policy_may_be_changed_to_an_answer() -> None:
    async def main() -> None:
        tool, _ = counting()
        with pytest.raises(ToolLoopToolError) as caught:
            await run_tool_loop(HELLO, [tool_of(_broken)], ScriptedModel([calls(("act", "{}"))]), max_iterations=1)
        result = await resume(caught.value, [tool], ScriptedModel(["what I know"]), on_limit="answer")
        assert (result.content, result.limit) == ("what I know", "iterations")

    run(main())


def test_the_policy_for_failures_may_be_changed() -> None:
    async def main() -> None:
        bad = tool_of(_broken)
        model = ScriptedModel([calls(("act", "{}")), calls(("act", "{}")), "done"])
        with pytest.raises(ToolLoopToolError) as caught:
            await run_tool_loop(HELLO, [bad], model)
        result = await resume(caught.value, [bad], model, tool_errors="report")
        assert [record.status for record in result.tool_calls] == ["error", "error"]

    run(main())


def test_what_else_a_turn_is_run_with_is_given_anew() -> None:
    async def main() -> None:
        error, tools, _ = await _stopped()
        seen: list[Any] = []
        hook = ToolHook(lambda call: seen.append(call.context.data))
        events: list[Any] = []
        await resume(error, tools, ScriptedModel(["done"]), hooks=[hook], context="mine", emit=events.append)
        assert seen == ["mine"]
        assert types_of(events) == ["tool_call", "tool_result", "iteration", "text", "answer", "done"]

    run(main())


def test_a_tool_that_is_no_longer_there_is_unknown() -> None:
    async def main() -> None:
        error, tools, _ = await _stopped()
        result = await resume(error, tools[1:], ScriptedModel(["done"]))
        assert [record.status for record in result.tool_calls] == ["ok", "error", "unknown_tool"]

    run(main())


@pytest.mark.parametrize("effect", ["none", "keyed", "once"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_call_that_was_cancelled_runs_again_only_where_its_tool_says_that_this_does_no_harm(
    place: int, effect: str
) -> None:
    async def main() -> None:
        begun = Signal()
        ran: list[str] = []

        async def slow(request: Nothing) -> None:
            ran.append("slow")
            begun.set()
            if ran.count("slow") == 1:
                await asyncio.Event().wait()

        async def quick(request: Nothing) -> None:
            ran.append("quick")

        tools = [tool_of(slow, "slow", effect=effect), tool_of(quick, "quick")]
        wanted = [("quick", "{}"), ("quick", "{}")]
        wanted.insert(place, ("slow", "{}"))
        model = ScriptedModel([calls(*wanted), "done"])
        turn = Turn()
        task = asyncio.ensure_future(run_tool_loop(HELLO, tools, model, turn=turn))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        expected = ["ok"] * place + ["cancelled"] + ["not_executed"] * (2 - place)
        assert [record.status for record in turn.records] == expected
        result = await resume(turn, tools, model)
        again = effect != "once"
        assert ran.count("slow") == (2 if again else 1)
        assert ran.count("quick") == 2
        statuses = ["ok", "ok"]
        statuses.insert(place, "ok" if again else "cancelled")
        assert [record.status for record in result.tool_calls] == statuses

    run(main())


@pytest.mark.parametrize("place", [0, 1])
def test_a_call_that_was_cancelled_because_the_audience_failed_beside_it_runs_again(place: int) -> None:
    class Full(Exception):
        pass

    async def main() -> None:
        begun = Signal()
        ran: list[str] = []

        async def slow(request: Nothing) -> None:
            ran.append("slow")
            begun.set()
            if len(ran) == 1:
                await asyncio.Event().wait()

        async def quick(request: Nothing) -> None:
            await begun.wait()

        def emit(event: Event) -> None:
            if event.type == "tool_result":
                raise Full

        slow_tool = tool_of(slow, "slow", parallel=True, effect="none")
        tools = [slow_tool, tool_of(quick, "quick", parallel=True)]
        wanted = [("quick", "{}")]
        wanted.insert(place, ("slow", "{}"))
        model = ScriptedModel([calls(*wanted), "done"])
        turn = Turn()
        with pytest.raises(Full):
            await run_tool_loop(HELLO, tools, model, turn=turn, concurrency=2, emit=emit)
        result = await resume(turn, tools, model)
        assert ran == ["slow", "slow"]
        assert [record.status for record in result.tool_calls] == ["ok", "ok"]

    run(main())


def test_a_cancelled_model_call_is_made_again() -> None:
    async def main() -> None:
        begun = Signal()
        asked: list[int] = []

        async def model(messages: Any, tools: Any) -> ChatResponse:
            asked.append(len(messages))
            if len(asked) == 1:
                begun.set()
                await asyncio.Event().wait()
            return ChatResponse("done")

        turn = Turn()
        task = asyncio.ensure_future(run_tool_loop(HELLO, [], model, turn=turn))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        result = await resume(turn, [], model)
        assert (result.content, result.iterations, asked) == ("done", 1, [1, 1])

    run(main())


def test_a_reopened_turn_can_be_watched() -> None:
    async def main() -> None:
        error, tools, _ = await _stopped()
        known = ToolSet(tools)
        turn = reopened(error, known)
        async with streaming(turn, Performer(ScriptedModel(["done"]), known)) as events:
            kinds = [event.type async for event in events]
        assert kinds == ["tool_call", "tool_result", "iteration", "text", "answer", "done"]

    run(main())


def test_where_there_is_nothing_to_resume_it_says_so() -> None:
    async def main() -> None:
        model = ScriptedModel(["done"])
        with pytest.raises(ValueError, match="has not begun"):
            await resume(Turn(), [], model)
        turn = Turn()
        await run_tool_loop(HELLO, [], model, turn=turn)
        with pytest.raises(ValueError, match="has its answer"):
            await resume(turn, [], model)
        with pytest.raises(ValueError, match="carries no state"):
            await resume(ToolLoopError("mine", messages=(), tool_calls=(), iterations=0), [], model)
        for text in ("", "nonsense", "{}", "[]", '{"kind":"error"}', '{"kind":"turn"}'):
            with pytest.raises(ValueError, match="saved"):
                await resume(text, [], model)

    run(main())


def test_a_turn_that_has_not_begun_can_not_be_driven() -> None:
    from toolturn import drive

    with pytest.raises(ValueError, match="the turn has not begun"):
        run(drive(Turn(), Performer(ScriptedModel([]), ToolSet())))
