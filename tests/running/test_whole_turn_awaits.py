"""At each single point where something waits, or is heard, a turn of each kind can be stopped, saved, and go on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolturn import Limits, ToolLoopResult

from ..conftest import PROFILE
from .whole_turn_ends import compare, resumed, straight_to_its_answer, to_its_answer
from .whole_turn_plans import Plan, Say, Stop, wants
from .whole_turn_runs import Run, begin
from .whole_turn_world import World

MOST_STEPS = 600


def _asks(number: int, *calls: tuple[str, str, int], text: str = "Let me see.", delay: float | None = 0.0) -> Say:
    made = tuple(wants(f"c{number}_{place}", name, do, n) for place, (name, do, n) in enumerate(calls))
    return Say(text, made, "tool_calls", delay=delay)


DONE = Say("It is done.", delay=1.0)

TURNS = {
    "one call after the other": Plan(
        (_asks(0, ("look", "ok", 1), ("once", "wait", 0)), _asks(1, ("plain", "ok", 0), ("send", "fail", 0)), DONE)
    ),
    "calls at once": Plan(
        (_asks(0, ("look", "wait", 0), ("send", "ok", 0), ("pay", "wait", 1), ("block", "wait", 1)), DONE),
        concurrency=3,
    ),
    "handlers that clean up slowly": Plan(
        (_asks(0, ("look", "slow", 0), ("once", "slow", 0), ("look", "too slow", 0)), DONE), concurrency=2
    ),
    "handlers that refuse to end": Plan(
        (_asks(0, ("look", "refuse", 0), ("pay", "refuse", 0)), _asks(1, ("once", "refuse", 0)), DONE), concurrency=2
    ),
    "handlers that raise, or give a result, while they clean up": Plan(
        (_asks(0, ("look", "messy", 0), ("send", "give", 0), ("once", "messy", 0)), DONE), concurrency=2
    ),
    "handlers in threads": Plan(
        (_asks(0, ("block", "hang", 0), ("block_once", "wait", 0), ("block", "fail", 0)), DONE),
        concurrency=2,
        model="callback",
    ),
    "approvals and hooks": Plan(
        (_asks(0, ("ask", "ok", 1), ("ask_if", "ok", 1), ("ask_if", "ok", 0), ("look", "ok", 3)), DONE),
        hooks=True,
    ),
    "approvals by somebody who blocks": Plan(
        (_asks(0, ("ask", "ok", 1)), _asks(1, ("ask", "ok", 1), ("ask_if", "wait", 1)), DONE), approve="blocking"
    ),
    "approvals by nobody": Plan(
        (_asks(0, ("ask", "wait", 1), ("look", "ok", 0)), _asks(1, ("ask", "ok", 1)), DONE), approve="nobody"
    ),
    "turns inside of turns": Plan(
        (_asks(0, ("nested", "slow", 2), ("nested", "ok", 1), ("nested", "too slow", 0)), DONE), concurrency=2
    ),
    "a model that cleans up slowly": Plan((_asks(0, ("look", "ok", 0), delay=1.0), DONE), cleanup="slow"),
    "a model that cleans up for too long": Plan((_asks(0, ("look", "ok", 0), delay=1.0), DONE), cleanup="too slow"),
    "a model that raises while it cleans up": Plan(
        (_asks(0, ("look", "ok", 0), delay=1.0), DONE), cleanup="raises", model="plain"
    ),
    "time-outs and tasks inside of handlers": Plan(
        (_asks(0, ("brief", "hang", 0), ("look", "group", 0), ("brief", "too slow", 0), ("brief", "wait", 0)), DONE),
        concurrency=2,
        hooks=True,
    ),
    "a last answer at a limit": Plan(
        (_asks(0, ("look", "ok", 0)), _asks(1, ("once", "ok", 0), ("look", "ok", 1)), DONE),
        Say("The last word.", (wants("forced", "once"),), delay=1.0),
        Limits(iterations=2),
        on_limit="answer",
        model="keeps tools",
    ),
    "a failure that ends the turn, in few places": Plan(
        (_asks(0, ("look", "wait", 0), ("send", "fail", 0), ("look", "ok", 0), ("pay", "wait", 0)), DONE),
        tool_errors="raise",
        concurrency=3,
        places=2,
        siblings="finish",
    ),
    "broken streams": Plan(
        (Say("Let me see.", (wants("c0_0", "once"),), "tool_calls", fault="cut", cut=2), Say("Done.", fault="ends")),
        nudges=1,
    ),
}

STOPS = {
    "by a cancel of its task": Stop("task"),
    "by a late cancel of its task": Stop("task", late=True),
    "by two cancels of its task": Stop("task", times=2),
    "by a cancel of the turn": Stop("turn"),
    "by a late cancel of the turn": Stop("turn", late=True),
    "by a cancel from another thread": Stop("thread"),
    "by a time-out around it": Stop("timeout"),
    "by leaving its stream": Stop("leave"),
    "by an audience that fails": Stop("audience"),
}
QUICK = ("by a cancel of its task", "by a late cancel of its task", "by a cancel of the turn", "by leaving its stream")
HOW = STOPS if PROFILE == "nightly" else QUICK


def _stopped(plan: Plan, stop: Stop) -> Run:
    """A run that is stopped: the first one, or where it only ends to wait for approvals, the one that has them."""
    run = begin(World(plan), Stop() if plan.approve == "nobody" else stop)
    return resumed(run, run.turn, stop) if plan.approve == "nobody" else run


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("what", TURNS)
def test_a_turn_stopped_anywhere_can_be_saved_and_ends_as_it_would_have_ended(what: str, how: str) -> None:
    plan, kind = TURNS[what], STOPS[how]
    straight = straight_to_its_answer(plan)
    stopped = alike = 0
    for at in range(1, MOST_STEPS):
        try:
            run = _stopped(plan, replace(kind, at=at))
            reached = run.reached
            if run.struck and run.turn.phase != "new" and not isinstance(run.turn.exit, ToolLoopResult):
                stopped += 1
                alike += compare(to_its_answer(resumed(run, run.turn.to_json(), Stop())), straight)
        except BaseException as exc:
            exc.add_note(f"stopped at {at}")
            raise
        if not reached:
            break
    else:
        raise AssertionError("the turn does not end")
    assert stopped > 1
    assert alike > 0 or plan.tool_errors == "raise"
