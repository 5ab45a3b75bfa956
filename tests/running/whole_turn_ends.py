"""A turn over all its stops and resumes to its answer, and what two ways to the same answer have in common."""

from __future__ import annotations

from typing import Any

from toolturn import Approval, ToolLoopApprovalRequired, ToolLoopError, ToolLoopResult, ToolLoopToolError, Turn

from .whole_turn_plans import Plan, Stop
from .whole_turn_runs import Run, begin, go_on
from .whole_turn_world import World, ample

MOST_RUNS = 80


def decisions(turn: Turn, world: World, most: int = 99) -> dict[str, Approval | bool]:
    """What is decided on the calls that wait for approval, the first ones first."""
    pending = [record for record in turn.records if record.status == "approval_required"][:most]
    return {record.call.id: world.decide(f"a{record.op[1:]}") for record in pending}


def resumed(run: Run, stopped: ToolLoopError | Turn | str, stop: Stop, *, most: int = 99, **options: Any) -> Run:
    """Resume a turn, under raised limits only where it refuses to go on otherwise.

    Args:
        run: The run before.
        stopped: The turn in some form.
        stop: How this run is interrupted.
        most: How many decisions are given on calls that wait for one.
        options: As in :func:`go_on`.
    """
    world = run.world
    if isinstance(run.turn.exit, ToolLoopApprovalRequired):
        options["approvals"] = decisions(run.turn, world, most) or None
    before = run.turn.to_json()
    try:
        return go_on(world, stopped, stop, **options)
    except ValueError as exc:
        refused = str(exc)
    assert "raise limits" in refused, refused
    assert run.turn.to_json() == before
    return go_on(world, stopped, stop, limits=ample(world.plan), **options)


def to_its_answer(run: Run) -> Run:
    """Resume a turn again and again, uninterrupted, until it has an answer."""
    for _ in range(MOST_RUNS):
        if isinstance(run.turn.exit, ToolLoopResult):
            return run
        before = run.turn.exit
        run = resumed(run, run.turn, Stop())
        if isinstance(before, ToolLoopToolError) and str(before) == str(run.turn.exit):
            # a call that is left behind at its time-out and may run again does so at each resume
            run = resumed(run, run.turn, Stop(), tool_errors="report")
    raise AssertionError(f"the turn does not come to an answer: {run.end!r}")


def outline(result: ToolLoopResult) -> tuple[Any, ...]:
    """What an interrupted run and an uninterrupted one have in common: everything but time and what it cost."""
    audit = [(r.call, r.message, r.return_direct, r.op, r.status, r.error) for r in result.tool_calls]
    return (result.content, result.messages, audit, result.iterations, result.return_direct, result.limit)


def lost(run: Run) -> set[str]:
    """The calls that an interruption left without an outcome, which their effect forbids to run again."""
    return {record.op for record in run.turn.records if record.status in ("cancelled", "outcome_unknown")}


def comparable(run: Run, straight: Run) -> bool:
    """Whether nothing but the interruptions can make a difference between two ways through a plan.

    Time and tokens differ when calls are made again, and where calls run at once, which of them had ended when the
    failure of another ended the turn.
    """
    plan = run.world.plan
    alone = plan.concurrency == 1 or plan.tool_errors == "report"
    return not plan.limits.spending and alone and lost(run) == lost(straight)


def straight_to_its_answer(plan: Plan) -> Run:
    """The uninterrupted way through a plan; where the turn ends without an answer, it is resumed."""
    return to_its_answer(begin(World(plan)))


def compare(run: Run, straight: Run) -> bool:
    """Check that an interrupted turn has ended like the uninterrupted one; return whether the two are comparable."""
    if not comparable(run, straight):
        return False
    assert isinstance(run.turn.exit, ToolLoopResult)
    assert isinstance(straight.turn.exit, ToolLoopResult)
    assert outline(run.turn.exit) == outline(straight.turn.exit)
    return True
