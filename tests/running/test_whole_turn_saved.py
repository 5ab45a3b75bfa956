"""A saved turn, as it is or as somebody made it, runs nothing that needs an approval before somebody has been asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from toolturn import (
    Approval,
    ChatMessage,
    ChatResponse,
    Performer,
    ToolCallRecord,
    ToolLoopApprovalRequired,
    ToolLoopError,
    Turn,
)
from toolturn.drive import drive
from toolturn.perform import Perform
from toolturn.transcript import check
from toolturn.turn import AskApproval, CallTool

from .support import HELLO
from .whole_turn_clock import run_virtual
from .whole_turn_plans import Plan, Say, wants
from .whole_turn_world import World

State = dict[str, Any]


def _open_again(state: State) -> None:
    """Have it wait for its tools, as if nothing had to be asked."""
    state.update(phase="tools", ending=None, waiting=[])


def _without_approvals(state: State) -> None:
    _open_again(state)
    state["approvals"] = []


def _with_no_approval_given(state: State) -> None:
    _open_again(state)
    state["approvals"] = [None] * len(state["calls"])


def _without_the_denials(state: State) -> None:
    _with_no_approval_given(state)
    for place, record in enumerate(state["outcomes"]):
        if record is not None and record["status"] == "denied":
            state["outcomes"][place] = None


def _as_if_nothing_had_run(state: State) -> None:
    _with_no_approval_given(state)
    state["outcomes"] = [None] * len(state["calls"])


def _as_it_is(state: State) -> None:
    pass


FORGERIES: dict[str, Callable[[State], None]] = {
    forgery.__name__.strip("_").replace("_", " "): forgery
    for forgery in (
        _as_it_is,
        _open_again,
        _without_approvals,
        _with_no_approval_given,
        _without_the_denials,
        _as_if_nothing_had_run,
    )
}


@dataclass(frozen=True)
class Saved:
    """How far a batch had come when it was saved.

    Args:
        calls: The tools it calls, and the number each is called with.
        decisions: What was decided on those that needed an approval; the rest is still open.
        done: How many calls had run.
        cancelled: Whether the turn was cancelled then.
        asked: Whether the tools of who saved it asked for approvals at all.
    """

    calls: tuple[tuple[str, int], ...]
    decisions: tuple[bool, ...]
    done: int
    cancelled: bool
    asked: bool


_calls = st.tuples(st.sampled_from(["ask", "ask", "ask_if", "look", "once"]), st.integers(0, 1))
saved = st.builds(
    Saved,
    st.lists(_calls, min_size=1, max_size=4).map(tuple),
    st.lists(st.booleans(), max_size=4).map(tuple),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)


def _state(how: Saved) -> State:
    """The state of a turn that has come so far."""
    world = World(Plan(()))
    traits = world.tools.traits
    if not how.asked:
        traits = {name: replace(trait, approval=False) for name, trait in traits.items()}
    turn = Turn("turn")
    turn.begin(HELLO, world.tools.definitions, traits)
    made = [wants(f"c0_{place}", name, n=n) for place, (name, n) in enumerate(how.calls)]
    turn.apply(turn.ops()[0], ChatResponse("", None, made))
    for decision in how.decisions:
        (op, *_) = turn.ops()
        if isinstance(op, AskApproval):
            turn.apply(op, Approval(decision))
    for _ in range(how.done):
        if turn.phase == "tools" and isinstance(op := turn.ops()[0], CallTool):
            message = ChatMessage("tool", "done", None, op.call.id)
            turn.apply(op, ToolCallRecord(op.call, message, False, op.id))
    if how.cancelled:
        turn.cancel()
    state: State = json.loads(turn.to_json())
    return state


async def _step_by_hand(turn: Turn, perform: Perform) -> None:
    """Do what the turn asks for, in a loop as anybody may write it."""
    while ops := turn.ops():
        turn.apply(ops[0], await perform(ops[0], None))
        assert check(turn.messages) == []


async def _drive(turn: Turn, perform: Perform) -> None:
    """Have it driven, without a resume."""
    with suppress(ToolLoopError):
        await drive(turn, perform)


@pytest.mark.parametrize("forgery", FORGERIES)
@given(how=saved, by=st.sampled_from([_step_by_hand, _drive]))
def test_a_saved_turn_asks_before_it_runs_what_needs_an_approval(
    forgery: str, how: Saved, by: Callable[[Turn, Perform], Coroutine[Any, Any, None]]
) -> None:
    state = _state(how)
    FORGERIES[forgery](state)
    # in this world only that is approved which the document says is
    world = World(Plan((Say("Done."),)))
    for place, approval in enumerate(state["approvals"]):
        if approval is not None and approval["approved"]:
            world.allowed.add(f"t1.{place}")
    try:
        turn = world.turn = Turn.from_json(json.dumps(state), world.tools.definitions, world.tools.traits)
    except ValueError:
        return
    if turn.phase == "ended":
        return
    needed = {
        f"t1.{place}"
        for place, (name, n) in enumerate(how.calls)
        if (name == "ask" or (name == "ask_if" and n)) and state["outcomes"][place : place + 1] == [None]
    }
    run_virtual(by(turn, Performer(world.model, world.tools)))
    assert world.wrong == []
    if state["calls"] and needed - world.allowed:
        assert isinstance(turn.exit, ToolLoopApprovalRequired)
        event("it had to ask")


def test_a_saved_turn_waits_for_the_approvals_that_the_tools_it_is_loaded_with_want() -> None:
    world = World(Plan(()))
    state = _state(Saved((("ask", 0), ("look", 0)), (), 0, cancelled=False, asked=False))
    assert state["phase"] == "tools"
    turn = Turn.from_json(json.dumps(state), world.tools.definitions, world.tools.traits)
    assert [op.id for op in turn.ops()] == ["a1.0"]
