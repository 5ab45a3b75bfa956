"""Continuing a turn that stopped: what runs again, what does not, and what has to be raised first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    Limits,
    ModelUnavailableError,
    Tool,
    ToolDef,
    ToolLoopCancelledError,
    ToolLoopError,
    ToolLoopToolError,
    Turn,
    error_to_json,
    resume,
    run_tool_loop,
)
from toolturn.testing import ScriptedModel
from toolturn.transcript import closing_content
from toolturn.turn import CallModel, ModelFailed, ToolFailed, ToolTraits
from toolturn.turn.ops import Effect

from .parts import (
    USER,
    Nothing,
    answered,
    asks,
    begun,
    call,
    echo,
    error_of,
    failing,
    record_of,
    reply,
    result_of,
    run,
    says,
    the_op,
)

MORE = Limits(iterations=10, tool_calls=100)
EFFECTS: dict[Effect, bool] = {"none": True, "keyed": True, "once": False}


def names(turn: Turn) -> list[str]:
    return [op.id for op in turn.ops()]


def reopened(turn: Turn, **options: Any) -> Turn:
    turn.reopen(turn.definitions, turn.traits, **options)
    return turn


WAYS: dict[str, Callable[[Turn], Turn]] = {
    "in place": lambda turn: turn,
    "through JSON": lambda turn: Turn.from_json(turn.to_json(), turn.definitions, turn.traits),
}


# --- calls ---------------------------------------------------------------------------


def test_a_call_that_had_not_begun_runs_under_its_own_name() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    op = the_op(turn)
    turn.apply(op, record_of(op))
    turn.cancel()
    assert names(reopened(turn)) == ["t1.1"]


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_call_that_was_closed_as_not_executed_runs_whatever_its_effect(effect: Effect) -> None:
    turn = reply(begun({"add": ToolTraits(effect=effect)}), asks(call("a")))
    op = the_op(turn)
    turn.cancel()
    turn.apply(op, record_of(op, closing_content("not_executed"), "not_executed"))
    assert names(reopened(turn)) == ["t1.0"]


@pytest.mark.parametrize("status", ["cancelled", "outcome_unknown"])
@pytest.mark.parametrize(("effect", "again"), EFFECTS.items())
def test_a_call_that_was_stopped_runs_again_by_its_effect(status: str, effect: Effect, again: bool) -> None:
    turn = reply(begun({"add": ToolTraits(effect=effect)}), asks(call("a"), call("b")))
    op = the_op(turn)
    turn.cancel()
    turn.apply(op, record_of(op, closing_content(status), status))
    reopened(turn)
    assert names(turn) == (["t1.0"] if again else ["t1.1"])


@pytest.mark.parametrize("way", WAYS)
def test_a_call_left_behind_while_the_turn_went_on_runs_again_before_those_that_are_open(way: str) -> None:
    turn = reply(begun({"add": ToolTraits(effect="none")}), asks(call("a"), call("b"), call("c")))
    op = the_op(turn)
    turn.apply(op, record_of(op, closing_content("outcome_unknown"), "outcome_unknown"))
    assert names(turn) == ["t1.1"]
    turn.cancel()
    assert names(reopened(WAYS[way](turn))) == ["t1.0"]


def test_a_stopped_call_of_a_tool_that_is_gone_does_not_run_again() -> None:
    turn = reply(begun({"add": ToolTraits(effect="none")}), asks(call("a")))
    op = the_op(turn)
    turn.cancel()
    turn.apply(op, record_of(op, closing_content("cancelled"), "cancelled"))
    turn.reopen((), {})
    assert names(turn) == ["m2"]


def test_a_stopped_call_runs_again_also_after_one_that_has_its_outcome() -> None:
    turn = reply(begun({"add": ToolTraits(effect="none", parallel=True)}), asks(call("a"), call("b")))
    first, second = turn.ops()
    turn.apply(first, record_of(first))
    turn.cancel()
    turn.apply(second, record_of(second, closing_content("cancelled"), "cancelled"))
    assert names(reopened(turn)) == ["t1.1"]


def test_a_stopped_call_under_a_name_that_is_no_text_does_not_run_again() -> None:
    turn = reply(begun({"add": ToolTraits(effect="none")}), asks(call("a", {"name": "add"})))
    op = the_op(turn)
    turn.cancel()
    turn.apply(op, record_of(op, closing_content("cancelled"), "cancelled"))
    assert names(reopened(turn)) == ["m2"]


@pytest.mark.parametrize("status", ["ok", "error", "timeout", "refused", "invalid_arguments", "unknown_tool"])
def test_a_call_with_an_outcome_never_runs_again(status: str) -> None:
    turn = reply(begun({"add": ToolTraits(effect="none")}), asks(call("a"), call("b")))
    op = the_op(turn)
    turn.apply(op, record_of(op, "told", status))
    turn.cancel()
    assert names(reopened(turn)) == ["t1.1"]
    assert turn.messages[2] == answered("a", "told")


def test_a_failure_is_an_outcome() -> None:
    turn = reply(begun({"add": ToolTraits(effect="none")}), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, ToolFailed(record_of(op, "failed", "error"), ValueError()))
    assert names(reopened(turn)) == ["m2"]
    assert turn.messages[-1] == answered("a", "failed")


def test_a_direct_result_that_came_after_the_cancel_is_the_answer_at_the_resume() -> None:
    turn = reply(begun({"add": ToolTraits(return_direct=True)}), asks(call("a")))
    op = the_op(turn)
    turn.cancel()
    turn.apply(op, record_of(op, "five", direct=True))
    assert isinstance(turn.exit, ToolLoopCancelledError)
    assert reopened(turn).ops() == ()
    assert (result_of(turn).content, result_of(turn).return_direct) == ("five", True)


# --- model calls ---------------------------------------------------------------------


def test_a_model_that_failed_is_asked_again_under_the_same_name() -> None:
    turn = begun()
    turn.apply(the_op(turn), ModelFailed(ModelUnavailableError("gone")))
    assert names(reopened(turn)) == ["m1"]
    assert turn.iterations == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_rejected_reply_is_asked_for_again_under_a_new_name_and_counts_as_an_iteration(way: str) -> None:
    turn = WAYS[way](reply(begun(), says("cut", "length")))
    assert names(reopened(turn)) == ["m1~1"]
    turn = WAYS[way](reply(turn, says("")))
    assert names(reopened(turn)) == ["m1~2"]
    reply(turn, asks(call("a")))
    assert (turn.iterations, names(turn)) == (3, ["t3.0"])
    op = the_op(turn)
    turn.apply(op, record_of(op))
    assert names(turn) == ["m4"]


def test_a_last_answer_that_was_cut_short_is_asked_for_again() -> None:
    turn = reply(begun(limits=Limits(tool_calls=0), on_limit="answer"), asks(call("a")))
    assert names(turn) == ["f1"]
    turn.cancel()
    assert names(reopened(turn)) == ["f1"]
    turn.apply(the_op(turn), ModelFailed(ModelUnavailableError("gone")))
    assert names(reopened(turn)) == ["f1"]
    reply(turn, says("done"))
    assert (result_of(turn).content, result_of(turn).limit) == ("done", "tool_calls")


def test_a_last_answer_that_was_cut_short_is_asked_for_again_also_where_the_policy_is_another_now() -> None:
    turn = at_the_iteration_limit(on_limit="answer")
    turn.cancel()
    assert names(reopened(turn, on_limit="raise")) == ["f1"]


def test_a_last_answer_is_not_asked_for_any_more_when_there_are_more_iterations() -> None:
    turn = at_the_iteration_limit(on_limit="answer")
    turn.cancel()
    assert names(reopened(turn, limits=Limits(iterations=2))) == ["m2"]


def test_a_last_answer_that_was_unusable_leaves_the_turn_at_its_limit() -> None:
    limits = Limits(tool_calls=0)
    turn = reply(reply(begun(limits=limits, on_limit="answer"), asks(call("a"))), says(""))
    with pytest.raises(ValueError, match=r"the limit of 0 tool calls; raise limits\.tool_calls"):
        reopened(turn)
    assert names(reopened(turn, limits=replace(limits, tool_calls=1))) == ["m1~1"]


def test_a_last_answer_that_ran_out_of_time_is_asked_for_again() -> None:
    limits = Limits(tool_calls=0, deadline=1.0)
    turn = reply(begun(limits=limits, on_limit="answer"), asks(call("a")))
    turn.tick(1.0)
    assert names(turn) == []
    assert names(reopened(turn, limits=replace(limits, deadline=2.0))) == ["f1"]


@pytest.mark.parametrize("limits", [Limits(tool_calls=5), Limits(iterations=9, tool_calls=5)])
def test_a_last_answer_is_not_asked_for_any_more_when_the_limit_behind_it_was_raised(limits: Limits) -> None:
    turn = reply(begun(limits=Limits(tool_calls=0), on_limit="answer"), asks(call("a")))
    turn.cancel()
    assert names(reopened(turn, limits=limits)) == ["m1~1"]


# --- limits --------------------------------------------------------------------------


def at_the_iteration_limit(**options: Any) -> Turn:
    turn = reply(begun(limits=Limits(iterations=1), **options), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, record_of(op))
    turn.ops()
    return turn


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_used_its_iterations_needs_more_of_them(way: str) -> None:
    turn = WAYS[way](at_the_iteration_limit())
    before = turn.to_json()
    with pytest.raises(ValueError, match=r"used 1 of 1 iterations; raise limits\.iterations"):
        reopened(turn)
    assert turn.to_json() == before
    assert names(reopened(turn, limits=MORE)) == ["m2"]


def test_a_turn_rejected_at_its_last_iteration_needs_more_of_them() -> None:
    turn = reply(begun(limits=Limits(iterations=1)), says("cut", "length"))
    with pytest.raises(ValueError, match=r"raise limits\.iterations"):
        reopened(turn)
    assert names(reopened(turn, limits=MORE)) == ["m1~1"]


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_over_its_budget_needs_a_larger_one(way: str) -> None:
    turn = WAYS[way](reply(begun(limits=Limits(tool_calls=1)), asks(call("a"), call("b"))))
    with pytest.raises(ValueError, match=r"the limit of 1 tool calls; raise limits\.tool_calls"):
        reopened(turn)
    assert names(reopened(turn, limits=Limits(tool_calls=2))) == ["m1~1"]


def test_a_turn_whose_time_is_up_needs_more_time() -> None:
    turn = begun(limits=Limits(deadline=1.0))
    turn.tick(3.0)
    assert turn.ops() == ()
    with pytest.raises(ValueError, match=r"used 3\.0 of 1\.0 seconds; raise limits\.deadline"):
        reopened(turn)
    with pytest.raises(ValueError, match=r"raise limits\.deadline"):
        reopened(turn, limits=Limits(deadline=3.0))
    assert names(reopened(turn, limits=Limits(deadline=3.5))) == ["m1"]


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_was_told_its_time_is_up_needs_more_time(way: str) -> None:
    turn = begun(limits=Limits(deadline=1.0))
    turn.expire()
    turn = WAYS[way](turn)
    with pytest.raises(ValueError, match=r"raise limits\.deadline"):
        reopened(turn)


def test_an_answer_can_not_be_resumed() -> None:
    turn = reply(begun(), says("Hi."))
    with pytest.raises(ValueError, match="has its answer"):
        reopened(turn)


def test_the_tools_are_those_that_the_resume_is_given() -> None:
    turn = begun({"add": ToolTraits()})
    definitions = (ToolDef("other", "Another.", {}),)
    turn.reopen(definitions, {"other": ToolTraits(parallel=True)})
    op = the_op(turn)
    assert isinstance(op, CallModel)
    assert op.tools is definitions
    assert [op.id for op in reply(turn, asks(call("a", "other"), call("b", "other"))).ops()] == ["t1.0", "t1.1"]


def test_policies_stay_unless_others_are_given() -> None:
    turn = begun(on_limit="answer", tool_errors="report")
    turn.cancel()
    reopened(turn)
    assert (turn.on_limit, turn.tool_errors) == ("answer", "report")
    turn.cancel()
    reopened(turn, on_limit="raise", tool_errors="raise")
    assert (turn.on_limit, turn.tool_errors) == ("raise", "raise")


# --- from outside --------------------------------------------------------------------


def stopped_by_a_tool() -> tuple[ToolLoopToolError, list[Any]]:
    """A turn whose second call of three failed."""
    ran: list[Any] = []
    tools: list[Tool[Any, Any]] = [echo(ran=ran), failing(ValueError("out of order"))]
    batch = asks(
        call("a", "echo", '{"text":"1"}'), call("b", "fail", "{}"), call("c", "echo", '{"text":"3"}'), finish="stop"
    )
    with pytest.raises(ToolLoopToolError) as caught:
        run(run_tool_loop([USER], tools, ScriptedModel([batch]), turn_id="the turn"))
    return caught.value, ran


@pytest.mark.parametrize("form", ["error", "json of the error", "state", "turn"])
def test_an_error_a_state_and_a_turn_can_be_resumed_alike(form: str) -> None:
    error, ran = stopped_by_a_tool()
    assert error.state is not None
    forms: dict[str, ToolLoopError | Turn | str] = {
        "error": error,
        "json of the error": error_to_json(error),
        "state": error.state,
        "turn": Turn.from_json(error.state),
    }
    model = ScriptedModel(["All done."])
    tools: list[Tool[Any, Any]] = [echo(ran=ran), failing(ValueError("out of order"))]
    result = run(resume(forms[form], tools, model))
    assert ran == [("echo", "1"), ("echo", "3")]
    assert (result.content, result.turn_id, result.iterations) == ("All done.", "the turn", 2)
    assert [record.status for record in result.tool_calls] == ["ok", "error", "ok"]
    assert model.requests[0][0] == result.messages[:-1]


def test_a_state_that_holds_a_providers_own_word_error_is_still_a_state() -> None:
    turn = reply(begun(), says("cut", "length", raw={"kind": "error"}))
    result = run(resume(turn.to_json(), [], ScriptedModel(["Now whole."])))
    assert result.content == "Now whole."


def test_an_error_without_a_state_can_not_be_resumed() -> None:
    error = ToolLoopError("by hand", messages=(), tool_calls=(), iterations=0)
    with pytest.raises(ValueError, match="carries no state"):
        run(resume(error, [], ScriptedModel([])))


@pytest.mark.parametrize("text", ["", "{}", "[]", "not JSON", '{"kind":"turn"}', '{"kind":"error","v":1}'])
def test_what_is_no_saved_turn_is_refused_with_one_sentence(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        run(resume(text, [], ScriptedModel([])))
    assert "\n" not in str(caught.value)


def test_a_harmless_tool_that_was_cancelled_runs_again_when_the_turn_is_resumed() -> None:
    """The call is the only one of its batch, so that its outcome completes the batch."""
    ran: list[str] = []
    started = asyncio.Event()

    async def handler(request: Nothing) -> None:
        ran.append("look")
        if len(ran) == 1:
            started.set()
            await asyncio.Event().wait()

    look: Tool[Nothing, Any] = Tool("look", "Looks.", Nothing, None, handler, effect="none")
    turn = Turn()

    async def stopped_and_resumed() -> Any:
        model = ScriptedModel([asks(call("a", "look", "{}"))])
        task = asyncio.ensure_future(run_tool_loop([USER], [look], model, turn=turn))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        error = error_of(turn)
        assert error.tool_calls[0].status == "cancelled"
        return await resume(error, [look], ScriptedModel(["Seen."]))

    result = run(stopped_and_resumed())
    assert ran == ["look", "look"]
    assert result.messages[-2:] == (answered("a", "null"), ChatMessage("assistant", "Seen."))
    assert [record.status for record in result.tool_calls] == ["ok"]
