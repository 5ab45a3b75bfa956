"""Where a turn stands at a limit: it ends, or asks for a last answer in which no tools are offered."""

from __future__ import annotations

from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    Limits,
    ModelUnavailableError,
    ToolLoopIterationLimitError,
    ToolLoopModelError,
    ToolLoopToolCallLimitError,
    Turn,
    Usage,
)
from toolturn.turn import CallModel, ModelFailed

from .parts import USER, asks, begun, call, error_of, record_of, reply, result_of, says, the_op


def used_up(**options: Any) -> Turn:
    """A turn that has used its one iteration."""
    turn = reply(begun(limits=Limits(iterations=1), **options), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, record_of(op))
    return turn


def test_the_tools_of_the_last_iteration_run_and_then_the_limit_is_the_exit() -> None:
    turn = used_up()
    assert turn.ops() == ()
    error = error_of(turn)
    assert type(error) is ToolLoopIterationLimitError
    assert str(error) == "model did not produce a final answer within 1 iterations"
    assert error.rejected_response is None
    assert (error.iterations, len(error.tool_calls)) == (1, 1)


def test_a_last_answer_is_asked_for_without_tools_and_is_no_iteration() -> None:
    turn = used_up(on_limit="answer")
    assert turn.ops() == (CallModel("f1", "turn", turn.messages, (), True),)
    reply(turn, says(" So far so good. ", usage=Usage(5, 5)))
    result = result_of(turn)
    assert (result.content, result.limit, result.iterations) == ("So far so good.", "iterations", 1)
    assert result.messages[-1] == ChatMessage("assistant", " So far so good. ")
    assert result.usage == Usage(5, 5)


def test_calls_in_a_last_answer_never_run_and_do_not_enter_the_transcript() -> None:
    turn = used_up(on_limit="answer")
    reply(turn, asks(call("z"), content="an answer"))
    assert result_of(turn).messages[-1] == ChatMessage("assistant", "an answer")
    assert len(result_of(turn).tool_calls) == 1


@pytest.mark.parametrize(
    "unusable",
    [says(""), says("  "), asks(call("z")), says("cut off", "length"), says("hidden", " SAFETY "), says(None)],
    ids=["empty", "blank", "calls only", "truncated", "filtered", "null"],
)
def test_a_last_answer_without_usable_text_is_that_limits_error(unusable: ChatResponse) -> None:
    turn = used_up(on_limit="answer")
    reply(turn, unusable)
    error = error_of(turn)
    assert type(error) is ToolLoopIterationLimitError
    assert str(error) == "model did not produce a final answer within 1 iterations"
    assert error.rejected_response is unusable
    assert error.messages == turn.messages
    assert error.iterations == 1


def test_a_batch_over_the_budget_runs_nothing() -> None:
    turn = begun(limits=Limits(tool_calls=1))
    batch = asks(call("a"), call("b"))
    reply(turn, batch)
    error = error_of(turn)
    assert type(error) is ToolLoopToolCallLimitError
    assert str(error) == "model batch would exceed the 1 tool-call limit"
    assert error.rejected_response is batch
    assert (error.messages, error.tool_calls, error.iterations) == ((USER,), (), 1)


def test_a_batch_over_the_budget_may_lead_to_a_last_answer() -> None:
    turn = reply(begun(limits=Limits(tool_calls=0), on_limit="answer"), asks(call("a")))
    op = the_op(turn)
    assert isinstance(op, CallModel)
    assert (op.id, op.forced, op.messages) == ("f1", True, (USER,))
    reply(turn, says("Without tools, then."))
    assert result_of(turn).limit == "tool_calls"
    assert result_of(turn).tool_calls == ()


def test_which_limit_was_reached_is_kept_in_the_json_of_the_turn() -> None:
    turn = reply(begun(limits=Limits(tool_calls=0), on_limit="answer"), asks(call("a")))
    copied = Turn.from_json(turn.to_json())
    assert result_of(reply(copied, says("Without tools, then."))).limit == "tool_calls"
    copied = Turn.from_json(turn.to_json())
    assert type(error_of(reply(copied, says("")))) is ToolLoopToolCallLimitError


def test_a_model_that_fails_at_the_last_answer_fails_the_turn() -> None:
    turn = used_up(on_limit="answer")
    turn.apply(the_op(turn), ModelFailed(ModelUnavailableError("gone")))
    assert type(error_of(turn)) is ToolLoopModelError
