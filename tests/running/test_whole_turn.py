"""Any turn, interrupted anywhere and resumed in any way: it keeps every bound, and ends as it would have ended."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from toolturn import Approval, ToolLoopApprovalRequired, ToolLoopError, ToolLoopResult, Turn
from toolturn.codec import error_to_json
from toolturn.transcript import check

from .whole_turn_ends import compare, resumed, straight_to_its_answer, to_its_answer
from .whole_turn_plans import Plan, Stop, plans, stops
from .whole_turn_runs import Run, begin, go_on
from .whole_turn_world import World


def _as_it_is(run: Run) -> Turn | ToolLoopError | str:
    return run.turn


def _json_of_turn(run: Run) -> Turn | ToolLoopError | str:
    return run.turn.to_json()


def _its_error(run: Run) -> Turn | ToolLoopError | str:
    return run.turn.exit if isinstance(run.turn.exit, ToolLoopError) else run.turn


def _json_of_error(run: Run) -> Turn | ToolLoopError | str:
    return error_to_json(run.turn.exit) if isinstance(run.turn.exit, ToolLoopError) else run.turn.to_json()


def _pickled(run: Run) -> Turn | ToolLoopError | str:
    loaded: Turn | ToolLoopError | str = pickle.loads(pickle.dumps(_its_error(run)))
    return loaded


def _copied(run: Run) -> Turn | ToolLoopError | str:
    return copy.deepcopy(run.turn)


def _as_it_was_saved_when_its_process_died(run: Run) -> Turn | ToolLoopError | str:
    if run.saved is None:
        return run.turn
    state, begun = run.saved
    run.world.died(Turn.from_json(state), begun)
    return state


FORMS: list[Callable[[Run], Turn | ToolLoopError | str]] = [
    _as_it_is,
    _json_of_turn,
    _its_error,
    _json_of_error,
    _pickled,
    _copied,
    _as_it_was_saved_when_its_process_died,
]


class WholeTurn(RuleBasedStateMachine):
    """One turn, from its beginning over stops and resumes to its answer; each run checks all that has to hold."""

    run: Run

    @initialize(plan=plans(), stop=stops, aloud=st.booleans())
    def begins(self, plan: Plan, stop: Stop, aloud: bool) -> None:
        self.run = begin(World(plan), stop, aloud=aloud)

    @property
    def turn(self) -> Turn:
        return self.run.turn

    def is_open(self) -> bool:
        return self.turn.phase != "new" and not isinstance(self.turn.exit, ToolLoopResult)

    @rule(stop=stops, aloud=st.booleans(), form=st.sampled_from(FORMS), most=st.sampled_from([99, 99, 1, 0]))
    def goes_on(self, stop: Stop, aloud: bool, form: Callable[[Run], Any], most: int) -> None:
        if self.is_open():
            self.run = resumed(self.run, form(self.run), stop, aloud=aloud, most=most)
            return
        before = self.turn.to_json()
        with pytest.raises(ValueError, match="nothing to resume"):
            go_on(self.run.world, form(self.run), stop)
        assert self.turn.to_json() == before

    @rule(reason=st.sampled_from(["enough", ""]))
    def is_cancelled_while_nobody_drives_it(self, reason: str) -> None:
        ended = self.turn.exit
        self.turn.cancel(reason)
        assert self.turn.phase in ("new", "ended")
        assert ended is None or self.turn.exit is ended

    @rule(digest=st.sampled_from(["0" * 64, ""]))
    def an_approval_of_another_call_is_refused(self, digest: str) -> None:
        if not isinstance(self.turn.exit, ToolLoopApprovalRequired):
            return
        before = self.turn.to_json()
        waits = next(record for record in self.turn.records if record.status == "approval_required")
        wrong: list[dict[str, Approval | bool]] = [
            {waits.call.id: Approval(True, "", digest)},
            {"another": True},
            {waits.call.id: Approval(True), "a9.9": True},
        ]
        for approvals in wrong:
            with pytest.raises(ValueError, match="approval"):
                go_on(self.run.world, self.turn, approvals=approvals)
            assert self.turn.to_json() == before

    @invariant()
    def its_transcript_is_valid(self) -> None:
        assert check(self.turn.messages) == []

    def teardown(self) -> None:
        if not hasattr(self, "run") or self.turn.phase == "new":
            return
        run = to_its_answer(self.run)
        if compare(run, straight_to_its_answer(run.world.plan)):
            event("ended like the uninterrupted one")


TestWholeTurn = WholeTurn.TestCase
TestWholeTurn.settings = settings(max_examples=3 * settings().max_examples, stateful_step_count=8)


def _alike(run: Run) -> tuple[Any, ...]:
    """All that two runs of the same plan have in common, time included."""
    turn, end = run.turn, run.end
    outcome = end.content if isinstance(end, ToolLoopResult) else (type(end), str(end))
    return (outcome, turn.messages, turn.records, turn.usage, turn.iterations, turn.seconds, run.world.started)


@given(plans())
def test_a_turn_that_is_watched_goes_like_one_that_is_not(plan: Plan) -> None:
    unheard, heard, streamed = World(plan), World(plan), World(plan)
    expected = _alike(begin(unheard, aloud=False))
    assert _alike(begin(heard)) == expected
    assert _alike(begin(streamed, Stop("leave", at=10**6))) == expected
