"""Approvals in the machine: all of a batch are gathered before anything of it runs, and are bound to their call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolturn import Approval, Limits, ToolCall, ToolLoopApprovalRequired, ToolLoopCancelledError, Turn
from toolturn.codec import error_from_json, error_to_json
from toolturn.transcript import check
from toolturn.turn import ApprovalPending, AskApproval, Op, ToolTraits, digest_of

from .parts import answered, asks, begun, call, error_of, record_of, reply, result_of, says, the_op

TRAITS = {"pay": ToolTraits(approval=True), "look": ToolTraits(effect="none", parallel=True)}
YES, NO = Approval(True), Approval(False, "too dear")


def waiting(*names: str, **options: Any) -> Turn:
    """A turn whose model has asked for these calls."""
    calls = [call("abcdef"[place], name) for place, name in enumerate(names or ("look", "pay", "pay"))]
    return reply(begun(TRAITS, **options), asks(*calls))


def ids(turn: Turn) -> list[str]:
    return [op.id for op in turn.ops()]


def decided(turn: Turn, *outcomes: Any) -> Turn:
    for outcome in outcomes:
        turn.apply(the_op(turn), outcome)
    return turn


def stopped(*names: str) -> Turn:
    """A turn that has stopped because nobody could be asked."""
    turn = waiting(*names)
    while turn.ops():
        decided(turn, ApprovalPending())
    return turn


def reopened(turn: Turn, **options: Any) -> Turn:
    turn.reopen((), TRAITS, **options)
    return turn


def statuses(turn: Turn) -> list[str]:
    return [record.status for record in turn.records]


def test_all_approvals_of_a_batch_are_asked_for_before_anything_runs() -> None:
    turn = waiting()
    assert ids(turn) == ["a1.1"]
    assert ids(decided(turn, YES)) == ["a1.2"]
    assert ids(decided(turn, YES)) == ["t1.0"]
    assert turn.phase == "tools"


def test_a_question_tells_the_call_and_what_it_is_bound_to() -> None:
    op = the_op(waiting())
    assert isinstance(op, AskApproval)
    assert (op.key, op.call, op.place) == ("turn/a1.1", call("b", "pay"), 1)
    assert op.digest == digest_of(op.call)
    assert op.remaining.iterations == 3


def test_a_call_that_is_denied_is_closed_with_the_reason_and_the_others_run() -> None:
    turn = decided(waiting(), NO, YES)
    assert ids(turn) == ["t1.0"]
    decided(turn, record_of(the_op(turn)))
    assert ids(turn) == ["t1.2"]
    assert statuses(turn) == ["ok", "denied", "not_executed"]
    content = json.loads(str(turn.messages[3].content))
    assert content == {"error": "denied", "detail": "too dear"}


def test_a_denial_is_the_outcome_of_the_call_as_it_was_made() -> None:
    turn = decided(waiting(), YES, NO)
    assert turn.exit is None
    denied = turn.records[2]
    assert (denied.call, denied.op, denied.status) == (call("c", "pay"), "t1.2", "denied")
    assert denied.return_direct is False
    assert (denied.message.role, denied.message.tool_calls, denied.message.tool_call_id) == ("tool", None, "c")
    assert denied.message == turn.messages[4]


def test_a_denial_without_a_reason_says_that_it_was_not_approved() -> None:
    turn = decided(waiting("pay"), Approval(False))
    assert "was not approved" in str(turn.messages[2].content)


def test_where_all_calls_are_denied_the_model_goes_on() -> None:
    turn = decided(waiting("pay", "pay"), NO, NO)
    assert ids(turn) == ["m2"]
    assert statuses(turn) == ["denied", "denied"]
    assert result_of(reply(turn, says("Then not."))).content == "Then not."


def test_where_nobody_can_be_asked_the_turn_stops_before_anything_ran() -> None:
    turn = stopped()
    error = error_of(turn)
    assert type(error) is ToolLoopApprovalRequired
    assert str(error) == "calls wait for approval: pay, pay"
    assert statuses(turn) == ["not_executed", "approval_required", "approval_required"]
    assert [(record.op, record.call.id) for record in error.pending] == [("t1.1", "b"), ("t1.2", "c")]
    assert check(error.messages) == []


def test_what_is_pending_survives_json() -> None:
    error = error_of(stopped())
    again = error_from_json(error_to_json(error))
    assert isinstance(again, ToolLoopApprovalRequired)
    assert isinstance(error, ToolLoopApprovalRequired)
    assert again.pending == error.pending
    assert again.state == error.state


@pytest.mark.parametrize("keys", [("b", "c"), ("a1.1", "a1.2"), ("t1.1", "t1.2")], ids=["id", "question", "call"])
def test_decisions_made_while_it_was_stopped_are_taken(keys: tuple[str, str]) -> None:
    turn = Turn.from_json(error_of(stopped()).state or "")
    reopened(turn, approvals=dict(zip(keys, (YES, False), strict=True)))
    assert ids(turn) == ["t1.0"]
    assert statuses(turn) == ["not_executed", "not_executed", "denied"]


def test_what_was_not_decided_is_asked_again() -> None:
    turn = reopened(stopped(), approvals={"b": True})
    assert ids(turn) == ["a1.2"]
    decided(turn, ApprovalPending())
    error = error_of(turn)
    assert isinstance(error, ToolLoopApprovalRequired)
    assert [record.call.id for record in error.pending] == ["c"]
    assert ids(reopened(turn, approvals={"c": True})) == ["t1.0"]


def test_a_turn_that_goes_on_without_decisions_asks_all_again() -> None:
    turn = reopened(stopped())
    assert ids(turn) == ["a1.1"]
    assert ids(decided(turn, YES, YES)) == ["t1.0"]


@pytest.mark.parametrize("key", ["a", "t1.0", "m1", "zzz", ""])
def test_a_decision_on_a_call_that_does_not_wait_is_refused_and_nothing_changes(key: str) -> None:
    turn = stopped()
    before = turn.to_json()
    with pytest.raises(ValueError, match="no call waits for an approval"):
        reopened(turn, approvals={"b": True, key: True})
    assert turn.to_json() == before


def test_a_decision_on_a_turn_without_calls_is_refused() -> None:
    turn = begun(TRAITS)
    turn.cancel()
    with pytest.raises(ValueError, match="no call waits"):
        reopened(turn, approvals={"b": True})


def test_something_that_is_no_decision_is_refused() -> None:
    odd: Any = "yes"
    with pytest.raises(TypeError, match="an Approval or a bool, not str"):
        reopened(stopped(), approvals={"b": odd})
    turn = waiting()
    with pytest.raises(TypeError, match="ChatResponse is no outcome of an approval"):
        turn.apply(the_op(turn), says("yes"))


def test_an_approval_is_good_for_exactly_the_call_it_was_given_for() -> None:
    turn = stopped("pay")
    right = digest_of(call("b", "pay"))  # whatever its id
    wrong = digest_of(ToolCall("a", "pay", '{"left":2,"right":4}'))
    with pytest.raises(ValueError, match="given for another call than pay"):
        reopened(turn, approvals={"a": Approval(True, digest=wrong)})
    assert ids(reopened(turn, approvals={"a": Approval(True, digest=right)})) == ["t1.0"]
    turn = waiting("pay")
    with pytest.raises(ValueError, match="given for another call"):
        turn.apply(the_op(turn), Approval(True, digest=wrong))


def test_an_approval_is_not_good_for_another_tool_with_the_same_arguments() -> None:
    other = digest_of(call("a", "look"))
    assert other != digest_of(call("a", "pay"))
    with pytest.raises(ValueError, match="given for another call than pay, or for other arguments"):
        reopened(stopped("pay"), approvals={"a": Approval(True, digest=other)})


def changed(turn: Turn, change: Any) -> str:
    data = json.loads(turn.to_json())
    change(data)
    return json.dumps(data)


def other_arguments(data: Any) -> None:
    data["calls"][0]["arguments"] = data["messages"][1]["tool_calls"][0]["arguments"] = '{"left":1000}'


def denied_as_open(data: Any) -> None:
    data["approvals"][0]["approved"] = False


def nobody_waits(data: Any) -> None:
    data["waiting"] = []


@pytest.mark.parametrize(
    ("turn", "change"),
    [
        (decided(waiting("pay"), YES), other_arguments),
        (decided(waiting("pay"), YES), denied_as_open),
        (decided(waiting("pay"), YES), lambda data: data.update(waiting=[0])),
        (decided(waiting("pay"), YES), lambda data: data.update(approvals=[None, None])),
        (waiting("pay"), lambda data: data.update(phase="tools")),
        (waiting("pay"), nobody_waits),
        (waiting("pay"), lambda data: data.update(waiting=[1])),
        (waiting("pay"), lambda data: data.update(waiting=[0, 0])),
    ],
    ids=["arguments", "denied", "waiting", "too many", "runs unasked", "nobody waits", "another", "twice"],
)
def test_a_state_in_which_another_call_would_run_than_was_approved_is_refused(turn: Turn, change: Any) -> None:
    with pytest.raises(ValueError, match="do not agree"):
        Turn.from_json(changed(turn, change), (), TRAITS)


def test_a_denial_is_kept_in_the_json_of_the_turn_while_the_others_run() -> None:
    turn = decided(waiting(), NO, YES)
    copied = Turn.from_json(turn.to_json(), (), TRAITS)
    assert copied == turn
    assert statuses(copied) == ["not_executed", "denied", "not_executed"]
    assert ids(copied) == ["t1.0"]


def test_a_turn_that_waits_for_an_approval_waits_for_it_after_json_too() -> None:
    turn = Turn.from_json(waiting().to_json(), (), TRAITS)
    assert ids(turn) == ["a1.1"]
    assert ids(decided(turn, YES)) == ["a1.2"]


def test_a_question_that_was_not_answered_is_asked_again_by_who_has_no_tools_too() -> None:
    assert ids(Turn.from_json(waiting().to_json())) == ["a1.1"]


def test_what_was_approved_stays_approved_when_the_turn_is_cancelled_and_goes_on() -> None:
    turn = decided(waiting(), YES)
    turn.cancel("later")
    assert type(error_of(turn)) is ToolLoopCancelledError
    assert statuses(turn) == ["not_executed", "not_executed", "approval_required"]
    turn = reopened(Turn.from_json(turn.to_json()))
    assert ids(turn) == ["a1.2"]


def test_an_approved_call_that_was_cut_short_runs_again_only_as_its_effect_allows_and_is_not_asked_again() -> None:
    traits = {"pay": ToolTraits(approval=True, effect="keyed")}
    turn = reply(begun(traits), asks(call("a", "pay")))
    op = the_op(decided(turn, YES))
    turn.cancel()
    turn.apply(op, record_of(op, "cut short", "cancelled"))
    turn.reopen((), traits)
    assert ids(turn) == ["t1.0"]


def test_a_tool_that_wants_approval_only_now_is_asked_for() -> None:
    turn = reply(begun({}), asks(call("a", "pay"), call("b", "look")))
    turn.cancel()
    assert ids(reopened(turn)) == ["a1.0"]


@pytest.mark.parametrize("names", [("pay",), ("look", "pay"), ("pay", "pay")])
def test_a_turn_saved_among_its_tools_asks_for_the_approvals_that_the_tools_of_its_reader_want(
    names: tuple[str, ...],
) -> None:
    turn = reply(begun({}), asks(*(call("ab"[place], name) for place, name in enumerate(names))))
    assert turn.phase == "tools"
    read = Turn.from_json(turn.to_json(), (), TRAITS)
    assert ids(read) == [f"a1.{names.index('pay')}"]
    assert read.phase == "approval"


def test_a_turn_saved_between_approvals_asks_for_the_one_that_its_document_left_out() -> None:
    document = json.loads(waiting("pay", "pay").to_json())
    document["waiting"] = [1]
    assert ids(Turn.from_json(json.dumps(document), (), TRAITS)) == ["a1.0"]


def test_a_tool_that_wants_approval_only_now_can_be_approved_as_the_turn_goes_on() -> None:
    turn = reply(begun({}), asks(call("a", "pay"), call("b", "look")))
    turn.cancel()
    assert ids(reopened(turn, approvals={"a": True})) == ["t1.0"]


def test_calls_that_come_after_a_resume_are_asked_about_as_the_tools_of_the_resume_want_it() -> None:
    turn = begun({})
    turn.cancel()
    assert ids(reply(reopened(turn), asks(call("a", "pay")))) == ["a1.0"]
    turn = begun(TRAITS)
    turn.cancel()
    turn.reopen((), {})
    assert ids(reply(turn, asks(call("a", "pay")))) == ["t1.0"]


def test_a_call_that_waits_can_not_be_run() -> None:
    early: Op = the_op(decided(waiting("pay"), YES))
    turn = waiting("pay")
    with pytest.raises(ValueError, match=r"t1\.0 waits for approval"):
        turn.apply(early, record_of(early))


def test_a_question_is_answered_once() -> None:
    turn = waiting()
    op = the_op(turn)
    turn.apply(op, YES)
    with pytest.raises(ValueError, match=r"does not wait for a1\.1"):
        turn.apply(op, NO)


def test_time_runs_out_while_a_call_waits() -> None:
    turn = waiting(limits=Limits(deadline=5.0))
    turn.tick(5.0)
    assert turn.ops() == ()
    assert statuses(turn) == ["not_executed", "approval_required", "approval_required"]


def test_a_batch_over_the_budget_is_not_asked_about() -> None:
    turn = waiting(limits=Limits(tool_calls=2))
    assert turn.ops() == ()
    assert turn.records == ()


def test_the_transcript_is_valid_while_a_call_waits() -> None:
    turn = waiting("pay")
    assert check(turn.messages) == []
    assert turn.messages[-1] != answered("a")
    assert statuses(turn) == ["approval_required"]
