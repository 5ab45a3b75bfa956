"""What has to hold after each run of a turn, however it ended."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolturn import ToolCallRecord, ToolLoopError, ToolLoopResult, Turn
from toolturn import errors as all_errors
from toolturn.codec import error_from_json, error_to_json, result_from_json, result_to_json
from toolturn.events import Event, Iteration, Text, ToolCallStarted, ToolResult
from toolturn.transcript import check

from .whole_turn_plans import GRACE, LARGEST
from .whole_turn_world import Broken, OwnError

if TYPE_CHECKING:
    from .whole_turn_runs import Run

LISTED = (
    all_errors.ToolLoopIterationLimitError,
    all_errors.ToolLoopToolCallLimitError,
    all_errors.ToolLoopTokenLimitError,
    all_errors.ToolLoopCostLimitError,
    all_errors.ToolLoopRepeatError,
    all_errors.ToolLoopDeadlineError,
    all_errors.ToolLoopTruncatedResponseError,
    all_errors.ToolLoopFilteredResponseError,
    all_errors.ToolLoopEmptyResponseError,
    all_errors.ToolLoopDirectReturnError,
    all_errors.ToolLoopMalformedResponseError,
    all_errors.ToolLoopModelError,
    all_errors.ToolLoopToolError,
    all_errors.ToolLoopApprovalRequired,
    all_errors.ToolLoopCancelledError,
)
NEVER_BEGUN = ("not_executed", "approval_required", "denied", "unknown_tool", "invalid_arguments")


def look(run: Run, used: Any) -> None:
    """Check all that has to hold after a run, however it ended.

    Args:
        run: The run.
        used: What the world had used before it.
    """
    world, turn = run.world, run.turn
    faults = run.faults + world.wrong
    assert not faults, faults
    assert check(turn.messages) == []
    again = Turn.from_json(turn.to_json(), turn.definitions, turn.traits)
    assert again == turn
    assert again.messages == turn.messages
    if turn.phase == "new":
        return
    _look_at_the_end(run)
    _look_at_the_calls(run)
    _look_at_the_bounds(run)
    _look_at_the_usage(run)
    if run.events is not None:
        _look_at_the_events(run, run.events)


def _look_at_the_end(run: Run) -> None:
    turn, end, kind = run.turn, run.end, run.stop.kind
    known = turn.exit
    if isinstance(end, ToolLoopResult):
        assert end == known
        assert replace(result_from_json(result_to_json(end)), value=end.value) == end
        assert pickle.loads(pickle.dumps(end)) == end
        assert check(end.messages) == []
        return
    if isinstance(end, ToolLoopError):
        assert type(end) in LISTED
        assert type(end) is type(known)
        assert end.messages == turn.messages
        assert end.tool_calls == turn.records
        _look_at_an_error(end, turn)
        if isinstance(end, all_errors.ToolLoopCancelledError):
            assert kind in ("turn", "thread")
        return
    if isinstance(known, ToolLoopError):
        _look_at_an_error(known, turn)
    match end:
        case None:
            assert kind == "leave"
            assert turn.phase == "ended"
        case asyncio.CancelledError():
            assert kind == "task"
            assert turn.phase == "ended"
        case TimeoutError():
            assert kind == "timeout"
            assert turn.phase == "ended"
        case Broken():
            assert kind == "audience"
        case OwnError():
            assert any(say.fault == "own" for say in (*run.world.plan.replies, run.world.plan.forced))
        case _:
            raise AssertionError(f"this is no exit of a turn: {end!r}") from end


def _look_at_an_error(error: ToolLoopError, turn: Turn) -> None:
    assert check(error.messages) == []
    assert error.state is not None
    assert Turn.from_json(error.state, turn.definitions, turn.traits) == turn
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), error_from_json(error_to_json(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def _look_at_the_calls(run: Run) -> None:
    """Each call is answered once, in emitted order, and one that began does not appear as one that did not."""
    world, turn = run.world, run.turn
    called = [call.id for message in turn.messages for call in message.tool_calls or ()]
    answered = [message.tool_call_id for message in turn.messages if message.role == "tool"]
    assert answered == called
    assert [record.call.id for record in turn.records] == called
    assert [record.message for record in turn.records] == [m for m in turn.messages if m.role == "tool"]
    assert len(set(called)) == len(called)
    status = {record.op: record.status for record in turn.records}
    assert len(status) == len(called)
    sizes = Counter(op.partition(".")[0] for op in status)
    assert all(sizes[record.op.partition(".")[0]] == 1 for record in turn.records if record.call.name == "direct")
    if "approval_required" in status.values():
        batch = f"t{turn.iterations}."
        assert not any(op.startswith(batch) for op, _ in world.started), "a part of a batch ran before it was approved"
    for op, name in world.started:
        told = status.get(op, "not told")
        assert told not in (*NEVER_BEGUN, "not told"), f"{op}, a call of {name}, had begun and is told as {told}"


def _look_at_the_bounds(run: Run) -> None:
    world, turn, plan = run.world, run.turn, run.world.plan
    limits = turn.limits
    worst = limits.worst_case(LARGEST, on_limit=plan.on_limit, at_once=plan.concurrency, grace=GRACE)
    assert turn.iterations <= limits.iterations
    assert world.asked <= worst.model_calls
    assert len(dict(world.started)) <= worst.tool_calls
    accepted = Counter(record.call.name for record in turn.records if isinstance(record.call.name, str))
    assert accepted.total() <= limits.tool_calls
    for name, most in limits.per_tool.items():
        assert accepted[name] <= most
    if worst.tokens is not None:
        assert turn.usage.total <= worst.tokens
    if worst.cost is not None:
        assert turn.usage.cost <= worst.cost
    if worst.seconds is not None:
        assert turn.seconds <= worst.seconds + 1e-6
    if limits.result_bytes is not None:
        sizes = [len(record.message.content.encode()) for record in turn.records]  # type: ignore[union-attr]
        assert max(sizes, default=0) <= limits.result_bytes
        assert worst.result_bytes is not None
        assert sum(sizes) <= worst.result_bytes
    if limits.repeats is not None:
        assert _most_repeats(turn.records) <= limits.repeats + 1


def _most_repeats(records: tuple[ToolCallRecord, ...]) -> int:
    """How many batches in a row hold the same call with the same result, the hint aside; of tools without a key."""
    batches: dict[str, set[tuple[Any, ...]]] = {}
    for record in records:
        if record.call.name not in ("poll", "keyed"):
            content = str(record.message.content).partition("\n[This is the same result")[0]
            mark = (str(record.call.name), record.call.arguments, content)
            batches.setdefault(record.op.partition(".")[0], set()).add(mark)
    most, before = 0, Counter[tuple[Any, ...]]()
    for marks in batches.values():
        before = Counter({mark: before[mark] + 1 for mark in marks})
        most = max([most, *before.values()])
    return most


def _look_at_the_usage(run: Run) -> None:
    """It is what the model reported; the one reply that came when the turn had been stopped may be missing."""
    world, usage = run.world, run.turn.usage
    if usage != world.used and run.struck:
        assert usage + world.last == world.used
        world.used = usage
    assert usage == world.used


def _look_at_the_events(run: Run, events: list[Event]) -> None:
    world, turn = run.world, run.turn
    types = [event.type for event in events]
    assert "done" not in types[:-1]
    asked = sum(isinstance(event, Iteration) for event in events)
    if isinstance(run.end, Broken) and isinstance(events[-1], Iteration):
        asked -= 1
    assert asked == world.asked or (run.end is None and asked < world.asked)
    results = Counter(event.record.op for event in events if isinstance(event, ToolResult))
    started = [event.op for event in events if isinstance(event, ToolCallStarted)]
    assert len(set(started)) == len(started)
    assert set(results.values()) <= {1}
    ended = isinstance(run.end, (ToolLoopResult, ToolLoopError))
    if ended or isinstance(run.end, asyncio.CancelledError | TimeoutError):
        assert set(started) <= results.keys()
    if ended:
        (done,) = [event for event in events if event.type == "done"]
        assert events[-1] is done
        assert done.exit == run.end  # type: ignore[union-attr]
    if isinstance(run.end, ToolLoopResult) and not run.end.return_direct:
        op = [event.op for event in events if isinstance(event, Iteration)][-1]
        heard = "".join(event.text for event in events if isinstance(event, Text) and event.op == op)
        assert heard.strip() == run.end.content
        assert types[-2] == "answer"
    for event in events:
        if isinstance(event, ToolResult) and run.end is not None and turn.exit is not None:
            kept = [record for record in turn.records if record.op == event.record.op]
            assert len(kept) == 1
            assert kept[0].status == event.record.status
