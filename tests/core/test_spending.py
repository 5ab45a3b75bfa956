"""Tokens, cost and the budgets of single tools: no call starts at or over a limit, and what that can come to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import (
    Limits,
    Remaining,
    ToolLoopCostLimitError,
    ToolLoopTokenLimitError,
    ToolLoopToolCallLimitError,
    Turn,
    Usage,
    WorstCase,
)
from toolturn.turn import CallModel, CallTool, OuterLimit

from .parts import USER, asks, begun, call, error_of, record_of, reply, result_of, says, the_op

SOME = Usage(20, 10, cost=3.0)


def with_calls(usage: Usage | None = SOME, names: tuple[str, ...] = ("add",), **options: Any) -> Turn:
    """A turn whose model has asked for these calls, in a reply that used so much."""
    calls = [call(f"c{place}", name) for place, name in enumerate(names)]
    return reply(begun(**options), asks(*calls, usage=usage))


def done(turn: Turn, **changes: Any) -> Turn:
    """The turn after its next call has given a result."""
    op = turn.ops()[0]
    turn.apply(op, replace(record_of(op), **changes))
    return turn


# --- what starts, and what does not ----------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "error"),
    [(Limits(tokens=30), ToolLoopTokenLimitError), (Limits(cost=3.0), ToolLoopCostLimitError)],
    ids=["tokens", "cost"],
)
@pytest.mark.parametrize("on_limit", ["raise", "answer"])
def test_no_call_starts_at_the_limit(limits: Limits, error: type[Exception], on_limit: Any) -> None:
    turn = with_calls(limits=limits, on_limit=on_limit)
    assert turn.ops() == ()
    assert type(error_of(turn)) is error
    assert [record.status for record in turn.records] == ["not_executed"]
    assert error_of(turn).rejected_response is None


@pytest.mark.parametrize(
    ("limits", "name", "text"),
    [
        (Limits(tokens=30), "tokens", "the turn has used up its 30 tokens"),
        (Limits(cost=3.0), "cost", "the turn has used up what it may cost, 3.0"),
    ],
    ids=["tokens", "cost"],
)
def test_the_error_and_its_state_say_which_limit_was_used_up(limits: Limits, name: str, text: str) -> None:
    turn = with_calls(limits=limits)
    assert turn.ops() == ()
    error = error_of(turn)
    assert str(error) == text
    assert json.loads(error.state or "")["ending"]["limit"] == name


def test_a_turn_that_has_not_begun_is_not_ended_by_a_limit() -> None:
    turn = Turn()
    turn.limits = Limits(deadline=1.0)
    turn.tick(2.0)
    assert turn.ops() == ()
    assert turn.phase == "new"


@pytest.mark.parametrize("limits", [Limits(tokens=31), Limits(cost=3.1)], ids=["tokens", "cost"])
def test_below_the_limit_calls_and_the_next_reply_are_asked_for(limits: Limits) -> None:
    turn = with_calls(limits=limits)
    assert the_op(turn).id == "t1.0"
    assert the_op(done(turn)).id == "m2"


def test_an_answer_that_passes_the_limit_is_an_answer() -> None:
    turn = reply(begun(limits=Limits(tokens=10, cost=1.0)), says("Hi.", usage=SOME))
    assert result_of(turn).content == "Hi."
    assert result_of(turn).limit is None


def test_a_reply_is_bounded_by_what_is_left() -> None:
    turn = begun(limits=Limits(tokens=100))
    op = the_op(turn)
    assert isinstance(op, CallModel)
    assert op.max_tokens == 100
    op = the_op(done(reply(turn, asks(call("a"), usage=SOME))))
    assert isinstance(op, CallModel)
    assert op.max_tokens == 70
    op = the_op(begun())
    assert isinstance(op, CallModel)
    assert op.max_tokens is None


def test_a_reply_cut_off_because_no_more_tokens_were_left_stands_at_that_limit() -> None:
    cut = says("Hi", "length", usage=SOME)
    error = error_of(reply(begun(limits=Limits(tokens=30)), cut))
    assert type(error) is ToolLoopTokenLimitError
    assert error.rejected_response is cut


def test_a_reply_that_does_not_tell_its_usage_may_answer_but_not_go_on() -> None:
    limits = Limits(tokens=30)
    assert result_of(reply(begun(limits=limits), says("Hi."))).content == "Hi."
    error = error_of(with_calls(None, limits=limits, on_limit="answer"))
    assert type(error) is ToolLoopTokenLimitError
    assert "did not tell" in str(error)
    assert error_of(with_calls(None, limits=Limits(cost=1.0))).rejected_response is not None


def test_a_reply_that_tells_no_usage_goes_on_where_only_time_and_calls_are_bounded() -> None:
    assert the_op(with_calls(None, limits=Limits(deadline=5.0))).id == "t1.0"


# --- a last answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "what"), [(Limits(tokens=89), "tokens"), (Limits(cost=8.9), "cost")], ids=["tokens", "cost"]
)
def test_so_much_is_kept_that_a_last_answer_can_be_had(limits: Limits, what: str) -> None:
    turn = done(with_calls(limits=limits, on_limit="answer"))
    op = the_op(turn)
    assert isinstance(op, CallModel)
    assert (op.id, op.forced) == ("f1", True)
    result = result_of(reply(turn, says("So far.", usage=SOME)))
    assert (result.content, result.limit) == ("So far.", what)


@pytest.mark.parametrize("limits", [Limits(tokens=90), Limits(cost=9.0)], ids=["tokens", "cost"])
def test_where_both_can_be_had_a_further_call_is_made(limits: Limits) -> None:
    assert the_op(done(with_calls(limits=limits, on_limit="answer"))).id == "m2"


def test_a_turn_that_raises_keeps_nothing() -> None:
    assert the_op(done(with_calls(limits=Limits(tokens=31, cost=3.1)))).id == "m2"


def test_a_last_answer_is_bounded_by_what_is_left() -> None:
    op = the_op(done(with_calls(limits=Limits(tokens=80), on_limit="answer")))
    assert isinstance(op, CallModel)
    assert (op.forced, op.max_tokens) == (True, 50)


# --- the budgets of single tools -------------------------------------------------------

OWN = Limits(per_tool={"add": 2, "pay": 0})


def test_a_batch_over_a_tools_own_budget_is_refused_as_a_whole() -> None:
    turn = with_calls(names=("echo", "add", "add", "add"), limits=OWN)
    error = error_of(turn)
    assert type(error) is ToolLoopToolCallLimitError
    assert str(error) == "model batch would exceed the limit of 2 calls of add"
    assert error.rejected_response is not None
    assert error.messages == (USER,)


def test_a_tools_own_budget_is_counted_over_the_whole_turn() -> None:
    turn = done(done(with_calls(names=("add", "add"), limits=OWN)))
    assert type(error_of(reply(turn, asks(call("z"))))) is ToolLoopToolCallLimitError
    turn = done(done(with_calls(names=("add", "add"), limits=OWN)))
    assert the_op(reply(turn, asks(call("z", "echo")))).id == "t2.0"


def test_a_later_batch_of_several_calls_is_counted_with_the_earlier_ones() -> None:
    turn = done(done(with_calls(names=("add", "add"), limits=OWN)))
    error = error_of(reply(turn, asks(call("y", "echo"), call("z"))))
    assert str(error) == "model batch would exceed the limit of 2 calls of add"


def test_a_single_call_over_its_tools_budget_is_refused_too() -> None:
    assert (
        str(error_of(with_calls(names=("pay",), limits=OWN))) == "model batch would exceed the limit of 0 calls of pay"
    )


def test_a_refused_batch_leaves_its_ids_free() -> None:
    turn = with_calls(names=("pay",), limits=OWN)
    turn.reopen((), {}, limits=Limits(per_tool={"pay": 1}))
    assert the_op(reply(turn, asks(call("c0", "pay")))).id == "t2.0"


def test_at_a_tools_own_budget_a_last_answer_may_be_asked_for() -> None:
    turn = with_calls(names=("pay",), limits=OWN, on_limit="answer")
    assert result_of(reply(turn, says("Without paying."))).limit == "per_tool.pay"


def test_calls_whose_name_is_no_text_count_for_no_tool() -> None:
    odd: Any = {"name": "add"}
    assert the_op(reply(begun(limits=OWN), asks(call("a", odd)))).id == "t1.0"


# --- what is left ----------------------------------------------------------------------


def left(turn: Turn) -> Remaining:
    op = turn.ops()[0]
    assert isinstance(op, CallTool)
    return op.remaining


def test_a_call_is_told_what_is_left() -> None:
    limits = Limits(5, 7, deadline=10.0, tokens=100, cost=9.0, per_tool={"add": 3})
    turn = with_calls(names=("add", "echo"), limits=limits)
    turn.tick(4.0)
    assert left(turn) == Remaining(4, 5, 70, 6.0, 6.0, 2)
    assert left(done(turn)) == Remaining(4, 5, 70, 6.0, 6.0, None)


def test_where_only_calls_are_bounded_the_rest_is_none() -> None:
    assert left(with_calls(limits=Limits(5, 7))) == Remaining(4, 6)


def test_a_call_is_told_what_is_left_to_the_last_fraction() -> None:
    turn = with_calls(limits=Limits(deadline=10.0, cost=3.5))
    turn.tick(9.75)
    assert (left(turn).seconds, left(turn).cost) == (0.25, 0.5)


def test_what_turns_inside_a_call_use_is_not_taken_from_what_its_neighbours_are_told() -> None:
    turn = with_calls(names=("add", "add"), limits=Limits(tokens=100, cost=9.0))
    told = left(turn)
    assert (told.tokens, told.cost) == (70, 6.0)
    assert left(done(turn, usage=SOME)) == told


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(5, 7, tokens=100), Remaining(4, 6, tokens=70)),
        (Limits(5, 7, per_tool={"add": 3}), Remaining(4, 6, this_tool=2)),
    ],
    ids=["tokens", "per tool"],
)
def test_a_call_is_told_of_the_one_bound_that_there_is(limits: Limits, expected: Remaining) -> None:
    assert left(with_calls(limits=limits)) == expected


def test_what_turns_inside_a_call_used_is_charged() -> None:
    turn = done(with_calls(names=("add", "add"), limits=Limits(tokens=60)), usage=SOME)
    assert turn.usage == SOME + SOME
    assert turn.ops() == ()
    assert type(error_of(turn)) is ToolLoopTokenLimitError


def test_a_turn_whose_surrounding_turn_has_used_up_what_they_share_ends() -> None:
    turn = begun()
    turn.apply(the_op(turn), OuterLimit("cost"))
    error = error_of(turn)
    assert type(error) is ToolLoopCostLimitError
    assert str(error) == "the turn that this one runs in has used up what it may cost"
    assert json.loads(error.state or "")["ending"]["limit"] is None
    assert (turn.iterations, turn.usage) == (0, Usage())


def test_it_can_go_on_elsewhere_under_the_limits_it_has() -> None:
    turn = begun(limits=Limits(tokens=50))
    turn.apply(the_op(turn), OuterLimit("tokens"))
    assert str(error_of(turn)) == "the turn that this one runs in has used up its tokens"
    turn.reopen(turn.definitions, turn.traits)
    assert the_op(turn).id == "m1"


def test_limits_are_narrowed_to_what_is_left_around() -> None:
    own = Limits(9, 99, deadline=50.0, tokens=500)
    around = own.within(Remaining(1, 1, tokens=100, cost=2.0, seconds=60.0))
    assert around == Limits(9, 99, deadline=50.0, tokens=100, cost=2.0)
    again = own.within(Remaining(1, 1, tokens=100, cost=2.0, seconds=6.0), Usage(30, 20, cost=1.0), 4.0)
    assert again == Limits(9, 99, deadline=10.0, tokens=150, cost=3.0)
    assert own.within(Remaining(0, 0)) == own


def test_limits_narrowed_to_nothing_let_nothing_start_again() -> None:
    nothing = Limits().within(Remaining(1, 1, 0, 0.0, 0.0), Usage(10, cost=1.0), 1.0)
    assert nothing.tokens == 11
    assert nothing.cost == pytest.approx(1.0)
    assert nothing.deadline == pytest.approx(1.0)


# --- going on --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "enough", "why"),
    [
        (Limits(tokens=30), Limits(tokens=31), "used 30 of 30 tokens"),
        (Limits(cost=3.0), Limits(cost=3.1), "cost 3 of 3;"),
    ],
    ids=["tokens", "cost"],
)
def test_a_turn_at_a_limit_goes_on_only_with_a_raised_one_and_its_calls_run_then(
    limits: Limits, enough: Limits, why: str
) -> None:
    turn = with_calls(limits=limits)
    assert turn.ops() == ()
    with pytest.raises(ValueError, match=why):
        turn.reopen((), {})
    turn.reopen((), {}, limits=enough)
    assert the_op(turn).id == "t1.0"


@pytest.mark.parametrize(
    ("limits", "enough", "why"),
    [
        (Limits(tokens=30), Limits(tokens=31), r"used 30 of 30 tokens; raise limits\.tokens to resume"),
        (Limits(cost=3.0), Limits(cost=3.1), r"cost 3 of 3; raise limits\.cost to resume"),
    ],
    ids=["tokens", "cost"],
)
def test_a_turn_that_was_cancelled_can_not_go_on_at_or_over_its_limit(limits: Limits, enough: Limits, why: str) -> None:
    turn = with_calls()
    turn.cancel()
    with pytest.raises(ValueError, match=why):
        turn.reopen((), {}, limits=limits)
    turn.reopen((), {}, limits=enough)
    assert the_op(turn).id == "t1.0"


@pytest.mark.parametrize(
    ("limits", "enough", "why"),
    [
        (Limits(tokens=89), Limits(tokens=90), "used 30 of 89 tokens"),
        (Limits(cost=8.9), Limits(cost=9.0), r"cost 3 of 8\.9;"),
    ],
    ids=["tokens", "cost"],
)
def test_a_limit_of_which_some_was_kept_for_a_last_answer_is_to_be_raised_too(
    limits: Limits, enough: Limits, why: str
) -> None:
    turn = done(with_calls(limits=limits, on_limit="answer"))
    reply(turn, says(""))
    with pytest.raises(ValueError, match=why):
        turn.reopen((), {})
    turn.reopen((), {}, limits=enough)
    assert the_op(turn).id == "m2"


@pytest.mark.parametrize("limits", [Limits(tokens=31), Limits(cost=3.1)], ids=["tokens", "cost"])
def test_a_turn_that_was_cancelled_below_its_limit_goes_on_under_the_same_one(limits: Limits) -> None:
    turn = with_calls(limits=limits)
    turn.cancel()
    turn.reopen((), {})
    assert the_op(turn).id == "t1.0"


def test_a_budget_of_a_tool_is_to_be_raised_too() -> None:
    turn = with_calls(names=("pay",), limits=OWN)
    with pytest.raises(ValueError, match=r"calls of pay; raise limits\.per_tool"):
        turn.reopen((), {}, limits=Limits(per_tool={"add": 9, "pay": 0}))
    turn.reopen((), {}, limits=Limits())
    assert the_op(turn).id == "m1~1"


def test_a_budget_of_a_tool_that_was_taken_away_meanwhile_does_not_hold_a_turn_back() -> None:
    turn = with_calls(names=("pay",), limits=Limits(1, per_tool={"pay": 0}), on_limit="answer")
    turn.cancel()
    turn.reopen((), {}, limits=Limits(1))
    assert the_op(turn).id == "f1"
    turn.cancel()
    turn.reopen((), {}, limits=Limits(3, tool_calls=1))
    assert the_op(turn).id == "m1~1"


def test_what_was_used_is_in_the_json_of_the_turn() -> None:
    turn = done(with_calls(names=("add", "add"), limits=Limits(tokens=150, cost=9.0), on_limit="answer"), usage=SOME)
    copied = Turn.from_json(turn.to_json())
    assert copied == turn
    assert copied.usage == SOME + SOME
    assert copied.records[0].usage == SOME
    assert the_op(done(copied)).id == the_op(done(turn)).id == "f1"


# --- the worst case --------------------------------------------------------------------


def test_the_worst_case_says_by_how_much_what_can_be_exceeded() -> None:
    limits = Limits(4, 16, deadline=30.0, result_bytes=1000, tokens=10_000, cost=1.0)
    largest = Usage(8000, 1000, cost=0.5)
    assert limits.worst_case(largest) == WorstCase(5, 16, 18_999, 1.5, 35.0, 16_000)
    assert limits.worst_case(largest, on_limit="raise", at_once=2, grace=1.0) == WorstCase(
        4, 16, 27_999, 2.0, 31.0, 16_000
    )
    assert Limits(result_bytes=None).worst_case() == WorstCase(5, 16, None, None, None, None)


usages = st.builds(
    lambda read, written, cost: Usage(read, written, cost=cost),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from([0.0, 0.25, 1.0, 3.0]),
)
bounds = st.builds(
    lambda iterations, tool_calls, tokens, cost, own: Limits(
        iterations, tool_calls, tokens=tokens, cost=cost, per_tool=own
    ),
    st.integers(1, 6),
    st.integers(0, 8),
    st.none() | st.integers(1, 300),
    st.none() | st.sampled_from([0.5, 1.0, 5.0]),
    st.sampled_from([{}, {"add": 2}, {"echo": 1, "add": 3}]),
)


@given(
    bounds,
    st.sampled_from(["raise", "answer"]),
    st.lists(st.tuples(usages, st.lists(st.sampled_from(["add", "echo"]), max_size=3)), max_size=12),
    st.lists(st.none() | usages, min_size=1, max_size=5),
)
def test_no_run_exceeds_its_worst_case(limits: Limits, on_limit: Any, replies: Any, inside: Any) -> None:
    turn = begun(limits=limits, on_limit=on_limit)
    model_calls = tool_calls = 0
    largest = [Usage()]
    while ops := turn.ops():
        assert limits.tokens is None or turn.usage.total < limits.tokens
        assert limits.cost is None or turn.usage.cost < limits.cost
        op = ops[0]
        if isinstance(op, CallTool):
            usage = inside[tool_calls % len(inside)]
            tool_calls += 1
            largest.append(usage or Usage())
            turn.apply(op, replace(record_of(op), usage=usage))
            continue
        usage, names = replies[model_calls] if model_calls < len(replies) else (Usage(), [])
        model_calls += 1
        largest.append(usage)
        calls = [call(f"{model_calls}.{place}", name) for place, name in enumerate(names)]
        turn.apply(op, asks(*calls, usage=usage) if calls else says("Done.", usage=usage))
    most = Usage(max(u.total for u in largest), cost=max(u.cost for u in largest))
    worst = limits.worst_case(most, on_limit=on_limit)
    assert model_calls <= worst.model_calls
    assert tool_calls <= worst.tool_calls
    assert worst.tokens is None or turn.usage.total <= worst.tokens
    assert worst.cost is None or turn.usage.cost < worst.cost or turn.usage.cost == 0
    made = [record.call.name for record in turn.records]
    assert all(made.count(name) <= most_of for name, most_of in limits.per_tool.items())


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": 0},
        {"tokens": 1.5},
        {"tokens": True},
        {"cost": 0},
        {"cost": float("inf")},
        {"cost": True},
        {"cost": "1"},
        {"per_tool": {"add": -1}},
        {"per_tool": {"add": True}},
        {"per_tool": {1: 1}},
        {"per_tool": None},
        {"per_tool": ["add"]},
    ],
    ids=str,
)
def test_a_bound_out_of_its_range_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=f"limits.{name} must"):
        Limits(**wrong)


def test_the_budgets_of_tools_are_the_limits_own_copy() -> None:
    given_ = {"add": 1}
    limits = Limits(per_tool=given_)
    given_["add"] = 99
    assert limits.per_tool == {"add": 1}
    assert hash(limits) == hash(Limits(per_tool={"add": 2}))
    assert limits != Limits(per_tool={"add": 2})
