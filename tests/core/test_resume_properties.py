"""A turn may stop anywhere: what was done stays done, and the rest goes on as if nothing had happened."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolturn import Limits, ToolCallRecord, ToolLoopCancelledError, ToolLoopError, ToolLoopResult, Turn
from toolturn import errors as all_errors
from toolturn.transcript import check, closing_content
from toolturn.turn import CallModel, CallTool, Valued

from .parts import record_of
from .strategies import Script, scripts
from .world import SAFE_TO_REPEAT, TOOLS, World, tool_of

AMPLE = Limits(iterations=50, tool_calls=500)
UNSETTLED = ("not_executed", "cancelled", "outcome_unknown")


def reopened(turn: Turn, limits: Limits | None = None) -> Turn:
    turn.reopen(TOOLS.definitions, TOOLS.traits, limits=limits)
    return turn


def by_cancel(turn: Turn) -> Turn:
    turn.cancel()
    return reopened(turn)


def by_the_json_of_a_cancel(turn: Turn) -> Turn:
    turn.cancel()
    return reopened(Turn.from_json(turn.to_json()))


def by_the_json_of_the_error(turn: Turn) -> Turn:
    turn.cancel()
    error = turn.exit
    assert isinstance(error, ToolLoopError)
    assert error.state is not None
    return reopened(Turn.from_json(error.state))


def by_json_on_its_way(turn: Turn) -> Turn:
    return reopened(Turn.from_json(turn.to_json()))


def by_pickle(turn: Turn) -> Turn:
    turn.cancel()
    unpickled: Turn = pickle.loads(pickle.dumps(turn))
    return reopened(unpickled)


def by_deepcopy(turn: Turn) -> Turn:
    turn.cancel()
    return reopened(copy.deepcopy(turn))


def by_its_deadline(turn: Turn) -> Turn:
    turn.expire()
    return reopened(turn, replace(turn.limits, deadline=turn.limits.deadline and turn.limits.deadline + 1000.0))


STOPS: dict[str, Callable[[Turn], Turn]] = {
    stop.__name__: stop
    for stop in (
        by_cancel,
        by_the_json_of_a_cancel,
        by_the_json_of_the_error,
        by_json_on_its_way,
        by_pickle,
        by_deepcopy,
        by_its_deadline,
    )
}


def end_of(turn: Turn) -> dict[str, Any]:
    """All of an exit but its state, in which the limits may differ."""
    end = turn.exit
    assert end is not None
    if isinstance(end, ToolLoopResult):
        return {"result": end}
    return {**vars(end), "class": type(end), "text": str(end), "state": None}


@pytest.mark.parametrize("stop", STOPS)
@given(script=scripts(), after=st.integers(0, 20))
def test_a_turn_stopped_after_any_step_comes_to_the_same_end(stop: str, script: Script, after: int) -> None:
    world, other = World(script), World(script)
    straight, turn = world.begin(), other.begin()
    steps = len(world.to_the_end(straight))
    for _ in range(after % steps):
        other.step(turn)
    assert turn.exit is None
    turn = STOPS[stop](turn)
    other.to_the_end(turn)
    assert end_of(turn) == end_of(straight)
    assert (other.asked, other.ran) == (world.asked, world.ran)


@given(scripts())
def test_a_turn_stopped_after_every_step_comes_to_the_same_end(script: Script) -> None:
    world, other = World(script), World(script)
    straight, turn = world.begin(), other.begin()
    world.to_the_end(straight)
    while other.step(turn) is not None and turn.exit is None:
        turn = by_the_json_of_the_error(turn)
    assert end_of(turn) == end_of(straight)
    assert (other.asked, other.ran) == (world.asked, world.ran)


@given(script=scripts(), iterations=st.integers(1, 4))
def test_a_turn_that_used_its_iterations_goes_on_under_a_raised_limit_as_if_it_had_had_it_from_the_start(
    script: Script, iterations: int
) -> None:
    script = replace(script, limits=replace(script.limits, iterations=iterations), on_limit="raise")
    ample = replace(script.limits, iterations=8)
    world, other = World(replace(script, limits=ample)), World(script)
    straight, turn = world.begin(), other.begin()
    world.to_the_end(straight)
    other.to_the_end(turn)
    assume(isinstance(turn.exit, all_errors.ToolLoopIterationLimitError))
    other.to_the_end(reopened(turn, ample))
    assert turn.to_json() == straight.to_json()
    assert (other.asked, other.ran) == (world.asked, world.ran)


@given(scripts())
def test_nothing_with_an_outcome_is_asked_for_again(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    settled: set[str] = set()
    for _ in range(60):
        ops = turn.ops()
        if not ops:
            if not isinstance(turn.exit, ToolLoopError):
                break
            reopened(turn, AMPLE)
            continue
        assert settled.isdisjoint(op.id for op in ops)
        op = world.step(turn)
        assert op is not None
        if isinstance(turn.exit, all_errors.ToolLoopModelError):
            continue  # there is no reply to keep
        known = {record.op: record.status for record in turn.records}
        if known.get(op.id) not in UNSETTLED or tool_of(op) not in SAFE_TO_REPEAT:
            settled.add(op.id)


@given(scripts())
def test_a_turn_resumed_until_it_answers_runs_a_tool_that_does_harm_once_at_most(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    for _ in range(60):
        world.to_the_end(turn)
        assert check(turn.messages) == []
        if isinstance(turn.exit, ToolLoopResult):
            break
        reopened(turn, AMPLE)
    assert isinstance(turn.exit, ToolLoopResult)
    harmful = [entry for entry in world.ran if entry[1] not in SAFE_TO_REPEAT]
    assert len(set(harmful)) == len(harmful)
    for record in turn.records:
        if record.status in ("cancelled", "outcome_unknown"):
            assert record.call.name not in SAFE_TO_REPEAT
        assert record.status != "not_executed"


@given(scripts())
def test_the_names_of_a_resumed_turn_are_given_once_but_for_what_may_be_tried_again(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    done: list[str] = []
    may_repeat: set[str] = set()
    for _ in range(60):
        for op in world.to_the_end(turn):
            done.append(op.id)
            if tool_of(op) in SAFE_TO_REPEAT:
                may_repeat.add(op.id)
        if isinstance(turn.exit, ToolLoopResult):
            break
        if isinstance(turn.exit, all_errors.ToolLoopModelError):
            may_repeat.add(done[-1])
        reopened(turn, AMPLE)
    once = [name for name in done if name not in may_repeat]
    assert len(set(once)) == len(once)


@given(scripts())
def test_a_rejected_reply_is_asked_for_again_under_a_name_of_its_own(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    rejected = 0  # replies since the last one that was accepted
    for _ in range(60):
        if not (ops := turn.ops()):
            if isinstance(turn.exit, ToolLoopResult):
                break
            reopened(turn, AMPLE)
            continue
        op, iterations, messages = ops[0], turn.iterations, len(turn.messages)
        if isinstance(op, CallModel) and not op.forced:
            first = f"m{iterations - rejected + 1}"
            assert op.id == (f"{first}~{rejected}" if rejected else first)
            world.step(turn)
            if turn.iterations > iterations:
                rejected = 0 if len(turn.messages) > messages else rejected + 1
        else:
            world.step(turn)


def before_a_call(world: World, number: int) -> Turn:
    """The turn where it waits for one of its calls; turns without any are none of the examples."""
    rehearsal = World(world.script)
    turn = rehearsal.begin()
    waiting = []
    steps = 0
    while True:
        if turn.phase == "tools":
            waiting.append(steps)
        if rehearsal.step(turn) is None:
            break
        steps += 1
    assume(waiting)
    turn = world.begin()
    for _ in range(waiting[number % len(waiting)]):
        world.step(turn)
    return turn


IN_FLIGHT = {
    "cancelled": lambda op: record_of(op, closing_content("cancelled"), "cancelled"),
    "left behind": lambda op: record_of(op, closing_content("outcome_unknown"), "outcome_unknown"),
}


@pytest.mark.parametrize("how", IN_FLIGHT)
@given(script=scripts(), after=st.integers(0, 8))
def test_a_call_stopped_while_it_ran_runs_again_only_where_its_tool_declares_that_this_does_no_harm(
    how: str, script: Script, after: int
) -> None:
    world = World(script)
    turn = before_a_call(world, after)
    op = turn.ops()[0]
    assert isinstance(op, CallTool)
    record: ToolCallRecord = IN_FLIGHT[how](op)
    turn.cancel()
    turn.apply(op, record)  # the driver tells what became of it after the turn has ended
    assert isinstance(turn.exit, ToolLoopCancelledError)
    assert record in turn.exit.tool_calls
    assert check(turn.exit.messages) == []
    turn = by_json_on_its_way(turn)
    again = [later.id for later in world.to_the_end(turn)]
    if tool_of(op) in SAFE_TO_REPEAT:
        assert op.id == again[0]
    else:
        assert op.id not in again
        assert record in turn.records


@given(script=scripts(), after=st.integers(0, 8))
def test_a_call_that_ended_although_the_turn_was_cancelled_keeps_its_outcome(script: Script, after: int) -> None:
    world, other = World(script), World(script)
    straight = world.begin()
    world.to_the_end(straight)
    turn = before_a_call(other, after)
    op = turn.ops()[0]
    outcome, interrupted = other.carry_out(op)
    assume(isinstance(outcome, (ToolCallRecord, Valued)) and not interrupted)
    turn.cancel()
    turn.apply(op, outcome)
    other.to_the_end(reopened(turn))
    assert end_of(turn) == end_of(straight)
    assert other.ran == world.ran
