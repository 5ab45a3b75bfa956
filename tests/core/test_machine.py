"""The machine, one rule at a time."""

from __future__ import annotations

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
    Remaining,
    TextPart,
    ToolCallRecord,
    ToolDef,
    ToolLoopCancelledError,
    ToolLoopDeadlineError,
    ToolLoopModelError,
    ToolLoopToolError,
    Turn,
    Usage,
)
from toolturn.errors import ErrorCause
from toolturn.transcript import check, closing_content
from toolturn.turn import CallModel, CallTool, ModelFailed, ToolFailed, ToolTraits

from .parts import USER, answered, asks, begun, call, error_of, record_of, reply, result_of, says, the_op
from .strategies import Word

PARALLEL = ToolTraits(parallel=True)
DIRECT = ToolTraits(return_direct=True)


# --- before it begins ----------------------------------------------------------------


def test_a_new_turn_waits_for_nothing_and_has_no_exit() -> None:
    turn = Turn()
    assert turn.phase == "new"
    assert turn.ops() == ()
    assert turn.exit is None
    assert turn.messages == ()
    assert turn.records == ()


def test_a_new_turn_has_no_tools_and_the_policies_of_a_turn_that_is_told_nothing() -> None:
    turn = Turn()
    assert (turn.definitions, turn.traits, turn.limits) == ((), {}, Limits())
    assert (turn.on_limit, turn.tool_errors, turn.nudges) == ("raise", "raise", 0)


def test_a_turn_begins_once() -> None:
    turn = begun()
    with pytest.raises(ValueError, match="has begun already"):
        turn.begin([USER], (), {})


def test_a_turn_that_ended_can_not_begin_again() -> None:
    turn = reply(begun(), says("Hi."))
    with pytest.raises(ValueError, match="has begun already"):
        turn.begin([USER], (), {})


def test_a_turn_that_never_began_can_not_be_resumed() -> None:
    with pytest.raises(ValueError, match="has not begun"):
        Turn().reopen((), {})


def stop_and_reopen(turn: Turn, stop: str) -> None:
    getattr(turn, stop)()
    turn.reopen((), {})


@pytest.mark.parametrize("stop", ["cancel", "expire"])
def test_a_turn_that_was_stopped_before_it_began_can_not_be_resumed(stop: str) -> None:
    turn = Turn()
    with pytest.raises(ValueError, match="not begun"):
        stop_and_reopen(turn, stop)


def test_a_name_given_at_construction_is_kept() -> None:
    turn = Turn("mine")
    turn.begin([USER], (), {}, turn_id="made up")
    assert turn.turn_id == "mine"


def test_a_turn_that_is_given_no_name_has_none() -> None:
    turn = Turn()
    turn.begin([USER], (), {})
    assert turn.turn_id == ""


def test_the_machine_keeps_its_own_list_of_messages() -> None:
    history = [USER]
    turn = begun(messages=history)
    history.append(USER)
    reply(turn, says("Hi."))
    assert len(result_of(turn).messages) == 2
    assert len(history) == 2


# --- what it asks for ----------------------------------------------------------------


def test_a_begun_turn_asks_the_model_with_the_transcript_and_the_definitions() -> None:
    turn = begun()
    assert turn.ops() == (CallModel("m1", "turn", (USER,), (), False),)
    assert the_op(turn).key == "turn/m1"


def test_asking_what_is_to_be_done_changes_nothing() -> None:
    turn = begun()
    before = turn.to_json()
    assert turn.ops() == turn.ops()
    assert turn.to_json() == before


def test_calls_are_handed_out_one_after_the_other() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    op = the_op(turn)
    assert op == CallTool("t1.0", "turn", call("a"), 0, 65536, 3, 14)
    assert op.remaining == Remaining(3, 14)
    turn.apply(op, record_of(op))
    assert the_op(turn).id == "t1.1"


def test_calls_of_parallel_tools_are_handed_out_together() -> None:
    turn = reply(begun({"add": PARALLEL}), asks(call("a"), call("b"), call("c")))
    assert [op.id for op in turn.ops()] == ["t1.0", "t1.1", "t1.2"]


def test_a_tool_that_is_not_parallel_is_a_barrier() -> None:
    traits = {"fast": PARALLEL, "slow": ToolTraits()}
    turn = reply(begun(traits), asks(call("a", "fast"), call("b", "slow"), call("c", "fast"), call("d", "fast")))
    assert [op.id for op in turn.ops()] == ["t1.0"]
    turn.apply(turn.ops()[0], record_of(turn.ops()[0]))
    assert [op.id for op in turn.ops()] == ["t1.1"]
    turn.apply(turn.ops()[0], record_of(turn.ops()[0]))
    assert [op.id for op in turn.ops()] == ["t1.2", "t1.3"]


def test_a_call_that_has_its_outcome_is_not_handed_out_with_its_neighbours() -> None:
    turn = reply(begun({"add": PARALLEL}), asks(call("a"), call("b"), call("c")))
    middle = turn.ops()[1]
    turn.apply(middle, record_of(middle))
    assert [op.id for op in turn.ops()] == ["t1.0", "t1.2"]


def test_a_call_of_an_unknown_tool_or_of_a_name_that_is_no_text_is_never_parallel() -> None:
    turn = reply(begun({"add": PARALLEL}), asks(call("a", "nope"), call("b", 7), call("c")))
    assert [op.id for op in turn.ops()] == ["t1.0"]


def test_the_bound_of_a_result_is_handed_out_with_the_call() -> None:
    turn = reply(begun(limits=Limits(result_bytes=1000)), asks(call("a")))
    op = the_op(turn)
    assert isinstance(op, CallTool)
    assert op.result_bytes == 1000


# --- what it takes -------------------------------------------------------------------


def test_results_stand_in_emitted_order_in_whatever_order_they_came() -> None:
    turn = reply(begun({"add": PARALLEL}), asks(call("a"), call("b")))
    first, second = turn.ops()
    turn.apply(second, record_of(second, "B"))
    turn.apply(first, record_of(first, "A"))
    assert [message.content for message in turn.messages[2:]] == ["A", "B"]
    assert [record.op for record in turn.records] == ["t1.0", "t1.1"]


def test_an_outcome_is_taken_once() -> None:
    turn = begun()
    op = the_op(turn)
    turn.apply(op, asks(call("a")))
    with pytest.raises(ValueError, match="does not wait for m1"):
        turn.apply(op, says("again"))
    tool = the_op(turn)
    turn.apply(tool, record_of(tool))
    with pytest.raises(ValueError, match=r"does not wait for t1\.0"):
        turn.apply(tool, record_of(tool))


def test_an_operation_of_another_moment_is_refused() -> None:
    turn = reply(begun(), asks(call("a")))
    with pytest.raises(ValueError, match=r"does not wait for t1\.3"):
        turn.apply(CallTool("t1.3", "turn", call("a"), 3, None), record_of(the_op(turn)))
    with pytest.raises(ValueError, match="does not wait for m2"):
        turn.apply(CallModel("m2", "turn", (), ()), says("too early"))


def test_a_reply_to_another_model_call_is_refused() -> None:
    turn = begun()
    for late in ("m2", "m1~1", "f0"):
        with pytest.raises(ValueError, match=f"does not wait for {late}"):
            turn.apply(CallModel(late, "turn", (), (), late == "f0"), says("Hi."))
    assert turn == begun()


def test_an_outcome_within_a_batch_is_taken_once() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    op = the_op(turn)
    turn.apply(op, record_of(op, "first"))
    with pytest.raises(ValueError, match=r"does not wait for t1\.0"):
        turn.apply(op, record_of(op, "second"))
    assert turn.messages[2] == answered("a", "first")


def test_an_operation_and_an_outcome_that_were_written_down_and_read_again_are_taken() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    turn.apply(CallTool("t1.0", "turn", call("a"), 0, None), ToolCallRecord(call("a"), answered("a"), False, "t1.0"))
    assert the_op(turn).id == "t1.1"


def test_an_operation_with_another_call_in_it_is_refused() -> None:
    turn = reply(begun(), asks(call("a")))
    op = CallTool("t1.0", "turn", call("z"), 0, None)
    with pytest.raises(ValueError, match=r"does not wait for t1\.0"):
        turn.apply(op, record_of(op))


@pytest.mark.parametrize(
    "record",
    [
        ToolCallRecord(call("b"), answered("b"), False),
        ToolCallRecord(call("b"), answered("a"), False),
        ToolCallRecord(call("a"), answered("b"), False),
    ],
    ids=["both", "call", "message"],
)
@pytest.mark.parametrize("failed", [False, True])
def test_an_outcome_that_answers_another_call_is_refused(record: ToolCallRecord, failed: bool) -> None:
    turn = reply(begun(), asks(call("a")))
    before = turn.to_json()
    with pytest.raises(ValueError, match=r"^this is the outcome of another call than t1\.0$"):
        turn.apply(the_op(turn), ToolFailed(record, ValueError()) if failed else record)
    assert turn.to_json() == before
    assert check(turn.messages) == []


@pytest.mark.parametrize("outcome", [7, "text", answered("a"), {"content": "x"}])
def test_what_is_no_outcome_is_refused_and_changes_nothing(outcome: Any) -> None:
    turn = begun()
    before = turn.to_json()
    kind = type(outcome).__name__
    with pytest.raises(TypeError, match=f"^{kind} is no outcome of a model call$"):
        turn.apply(the_op(turn), outcome)
    assert turn.to_json() == before
    reply(turn, asks(call("a")))
    before = turn.to_json()
    with pytest.raises(TypeError, match=f"^{kind} is no outcome of a tool call$"):
        turn.apply(the_op(turn), outcome)
    assert turn.to_json() == before


def test_outcomes_of_the_other_kind_are_refused() -> None:
    turn = begun()
    with pytest.raises(TypeError, match="is no outcome of a model call"):
        turn.apply(the_op(turn), ToolCallRecord(call("a"), answered("a"), False))
    reply(turn, asks(call("a")))
    with pytest.raises(TypeError, match="is no outcome of a tool call"):
        turn.apply(the_op(turn), says("text"))


def test_what_is_no_operation_is_refused() -> None:
    op: Any = "m1"
    with pytest.raises(TypeError, match="str is no op of a turn"):
        begun().apply(op, says("Hi."))


@pytest.mark.parametrize("calls", [7, True, 1.5])
def test_a_call_list_that_is_no_list_leaves_the_turn_with_a_typed_exit(calls: Any) -> None:
    turn = reply(begun(), ChatResponse("", tool_calls=calls))
    assert str(error_of(turn))


# --- the transcript on its way -------------------------------------------------------


def test_calls_that_are_still_open_appear_closed_as_not_executed() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    first = the_op(turn)
    turn.apply(first, record_of(first, "A"))
    assert turn.messages[2:] == (answered("a", "A"), answered("b", closing_content("not_executed")))
    assert [(record.op, record.status) for record in turn.records] == [("t1.0", "ok"), ("t1.1", "not_executed")]
    assert not turn.records[1].return_direct


def test_the_model_never_sees_a_call_without_its_result() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    while isinstance(op := turn.ops()[0], CallTool):
        turn.apply(op, record_of(op))
    assert isinstance(op, CallModel)
    assert check(op.messages) == []
    assert op.messages == turn.messages


def test_content_in_parts_becomes_text_in_the_transcript() -> None:
    content: Any = [TextPart("a"), {"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    turn = reply(begun(), says(content))
    assert result_of(turn).messages[-1] == ChatMessage("assistant", "ab")


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ({"n": 1}, None, ('{"n":1}', "null")),
        (7, "{}", ("7", "{}")),
        ("add", {"left": 2}, ("add", '{"left":2}')),
        (Word("add"), ["x"], ("add", '["x"]')),
        (7, Word("{}"), ("7", "{}")),
    ],
    ids=["both", "name", "arguments", "name of another class", "arguments of another class"],
)
def test_names_and_arguments_that_are_no_text_become_text_in_the_transcript_only(
    name: Any, arguments: Any, shown: tuple[str, str]
) -> None:
    odd = call("a", name, arguments)
    turn = reply(begun(), asks(odd))
    op = the_op(turn)
    assert isinstance(op, CallTool)
    assert op.call is odd
    calls = turn.messages[1].tool_calls
    assert calls is not None
    assert calls == [call("a", *shown)]
    assert check(turn.messages) == []


def test_a_call_of_text_stands_in_the_transcript_as_the_object_that_the_model_gave() -> None:
    asked = call("a")
    calls = reply(begun(), asks(asked)).messages[1].tool_calls
    assert calls is not None
    assert calls[0] is asked


def test_the_transcript_has_a_call_list_of_its_own() -> None:
    response = asks(call("a"))
    turn = reply(begun(), response)
    assert response.tool_calls is not None
    response.tool_calls.append(call("b"))
    assert turn.messages[1].tool_calls == [call("a")]
    assert len(turn.records) == 1


def test_usage_is_summed_over_all_replies_the_rejected_one_included() -> None:
    turn = begun()
    reply(turn, asks(call("a"), usage=Usage(10, 1, 2, 0)))
    op = the_op(turn)
    turn.apply(op, record_of(op))
    reply(turn, says("", usage=Usage(20, 2, 3, 1)))
    assert error_of(turn).usage == Usage(30, 3, 5, 1)


# --- how it ends ---------------------------------------------------------------------


def test_a_direct_result_is_the_answer() -> None:
    turn = reply(begun({"add": DIRECT}), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, record_of(op, " as it is ", direct=True))
    result = result_of(turn)
    assert (result.content, result.return_direct, result.iterations) == (" as it is ", True, 1)
    assert result.messages[-1] == answered("a", " as it is ")


def test_a_failing_tool_ends_a_turn_that_raises_and_closes_the_calls_after_it() -> None:
    turn = reply(begun(), asks(call("a"), call("b")))
    op = the_op(turn)
    failure = ValueError("out of order")
    turn.apply(op, ToolFailed(record_of(op, "failed", "error"), failure))
    error = error_of(turn)
    assert type(error) is ToolLoopToolError
    assert str(error) == "tool 'add' failed: ValueError: out of order"
    assert error.__cause__ is failure
    assert error.cause == ErrorCause("ValueError", "out of order")
    assert [record.status for record in error.tool_calls] == ["error", "not_executed"]


def test_a_failure_without_a_text_is_told_by_its_class() -> None:
    turn = reply(begun(), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, ToolFailed(record_of(op, "failed", "error"), KeyError()))
    assert str(error_of(turn)) == "tool 'add' failed: KeyError"


def test_a_failing_tool_is_an_observation_in_a_turn_that_reports() -> None:
    turn = reply(begun(tool_errors="report"), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, ToolFailed(record_of(op, "failed", "error"), ValueError()))
    assert the_op(turn).id == "m2"
    assert turn.messages[-1] == answered("a", "failed")


def test_a_second_failure_of_the_same_batch_is_recorded_beside_the_first() -> None:
    turn = reply(begun({"add": PARALLEL}), asks(call("a"), call("b")))
    first, second = turn.ops()
    turn.apply(first, ToolFailed(record_of(first, "A", "error"), ValueError("first")))
    turn.apply(second, ToolFailed(record_of(second, "B", "error"), ValueError("second")))
    error = error_of(turn)
    assert "first" in str(error)
    assert [record.message.content for record in error.tool_calls] == ["A", "B"]


def test_what_comes_after_the_end_is_still_told_in_the_transcript() -> None:
    turn = reply(begun(), asks(call("a")))
    op = the_op(turn)
    turn.cancel()
    before = error_of(turn)
    assert before.tool_calls[0].status == "not_executed"
    turn.apply(op, record_of(op, "late"))
    after = error_of(turn)
    assert type(after) is ToolLoopCancelledError
    assert after.messages[-1] == answered("a", "late")


@pytest.mark.parametrize("status", ["cancelled", "outcome_unknown"])
def test_a_call_that_was_left_behind_is_an_observation_when_the_turn_goes_on(status: str) -> None:
    turn = reply(begun(tool_errors="report"), asks(call("a")))
    op = the_op(turn)
    turn.apply(op, record_of(op, closing_content(status), status))
    assert the_op(turn).id == "m2"
    assert turn.messages[-1] == answered("a", closing_content(status))


def test_a_failing_model_ends_the_turn_with_the_cause_chained() -> None:
    turn = begun()
    failure = ModelUnavailableError("nobody there")
    turn.apply(the_op(turn), ModelFailed(failure))
    error = error_of(turn)
    assert type(error) is ToolLoopModelError
    assert str(error) == "the model failed: nobody there"
    assert error.__cause__ is failure
    assert error.cause == ErrorCause("ModelUnavailableError", "nobody there")
    assert error.iterations == 0


def test_a_failure_that_can_not_even_say_why_ends_the_turn_all_the_same() -> None:
    class Mute(ModelUnavailableError):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    turn = begun()
    turn.apply(the_op(turn), ModelFailed(Mute()))
    cause = error_of(turn).cause
    assert cause is not None
    assert (cause.type, cause.text) == ("Mute", "")


def test_cancelling_ends_the_turn_and_says_why() -> None:
    turn = begun()
    turn.cancel("the user hung up")
    error = error_of(turn)
    assert type(error) is ToolLoopCancelledError
    assert str(error) == "the user hung up"
    assert turn.ops() == ()


def test_a_cancel_of_a_driven_turn_is_its_drivers_to_carry_out() -> None:
    turn = begun()
    told: list[str] = []
    turn.driven(told.append)
    turn.cancel("enough")
    assert (told, turn.phase) == (["enough"], "model")
    turn.close("enough")
    assert str(error_of(turn)) == "enough"


def test_a_turn_that_is_not_driven_any_more_is_cancelled_at_once() -> None:
    turn = begun()
    turn.driven(lambda reason: None)
    turn.driven(None)
    turn.cancel("enough")
    assert str(error_of(turn)) == "enough"


def test_cancelling_without_a_reason_says_just_that() -> None:
    turn = begun()
    turn.cancel()
    assert str(error_of(turn)) == "the turn was cancelled"


def test_time_that_is_up_ends_the_turn() -> None:
    turn = begun(limits=Limits(deadline=2.5))
    turn.tick(2.0)
    assert turn.ops()
    turn.tick(0.5)
    assert turn.ops() == ()
    error = error_of(turn)
    assert type(error) is ToolLoopDeadlineError
    assert str(error) == "the turn did not finish within 2.5 seconds"


@pytest.mark.parametrize("stop", ["cancel", "expire"])
def test_a_turn_that_has_ended_can_not_be_stopped_any_more(stop: str) -> None:
    turn = reply(begun(), says("Hi."))
    end = turn.exit
    getattr(turn, stop)()
    assert turn.exit is end


def test_an_answer_stays_an_answer_when_the_time_is_up_afterwards() -> None:
    turn = reply(begun(limits=Limits(deadline=1.0)), says("Hi."))
    turn.tick(5.0)
    assert turn.ops() == ()
    assert result_of(turn).content == "Hi."


# --- as a value ----------------------------------------------------------------------


def test_turns_are_equal_when_their_states_are() -> None:
    assert begun() == begun()
    assert begun() != reply(begun(), says("Hi."))
    assert begun() != "a turn"


def test_an_answer_and_an_error_name_their_turn() -> None:
    assert result_of(reply(begun(), says("Hi."))).turn_id == "turn"
    assert error_of(reply(begun(), says("cut", "length"))).turn_id == "turn"


def test_an_exit_is_made_anew_of_the_json_of_its_turn() -> None:
    direct = reply(begun({"add": DIRECT}), asks(call("a")))
    op = the_op(direct)
    direct.apply(op, record_of(op, "five", direct=True))
    assert Turn.from_json(direct.to_json()).exit == direct.exit
    answer = reply(begun(), says("Hi."))
    assert Turn.from_json(answer.to_json()).exit == answer.exit
    rejected = reply(begun(), says("cut", "length"))
    again = error_of(Turn.from_json(rejected.to_json()))
    assert type(again) is type(rejected.exit)
    assert vars(again) == vars(error_of(rejected))


def test_the_cause_of_an_error_is_kept_in_the_json_of_its_turn_without_the_exception() -> None:
    turn = begun()
    turn.apply(the_op(turn), ModelFailed(ModelUnavailableError("nobody there")))
    again = error_of(Turn.from_json(turn.to_json()))
    assert again.cause == ErrorCause("ModelUnavailableError", "nobody there")
    assert again.__cause__ is None


def test_nothing_of_a_turn_is_lost_in_its_json() -> None:
    limits = Limits(7, 8, 9.5, 1000)
    turn = begun(limits=limits, on_limit="answer", tool_errors="report")
    reply(turn, asks(call("a"), usage=Usage(1, 2, 3, 4)))
    turn.tick(1.25)
    copied = Turn.from_json(turn.to_json())
    assert (copied.turn_id, copied.phase, copied.iterations) == ("turn", "tools", 1)
    assert (copied.limits, copied.on_limit, copied.tool_errors) == (limits, "answer", "report")
    assert (copied.seconds, copied.usage) == (1.25, Usage(1, 2, 3, 4))
    assert (copied.messages, copied.records) == (turn.messages, turn.records)
    assert (copied.definitions, copied.traits) == ((), {})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda turn: pickle.loads(pickle.dumps(turn))])
def test_a_copy_of_a_turn_knows_the_tools_too(copied: Callable[[Turn], Turn]) -> None:
    turn = Turn("turn")
    turn.begin([USER], (ToolDef("add", "Add.", {}),), {"add": PARALLEL})
    again = copied(turn)
    assert again == turn
    assert again is not turn
    assert (again.definitions, again.traits) == (turn.definitions, turn.traits)


def test_a_turn_can_not_be_hashed() -> None:
    with pytest.raises(TypeError):
        hash(begun())


def test_a_turn_shows_its_name_and_where_it_stands() -> None:
    assert repr(begun()) == "<Turn turn model, 0 iterations>"
    assert repr(Turn()) == "<Turn (unnamed) new, 0 iterations>"
