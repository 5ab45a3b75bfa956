"""What holds after every step of every turn, whatever models and tools do."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import (
    ChatMessage,
    ToolCallRecord,
    ToolLoopError,
    ToolLoopResult,
    Turn,
    TurnContext,
    error_from_json,
    error_to_json,
    result_from_json,
    result_to_json,
    run_tool_loop,
)
from toolturn import errors as all_errors
from toolturn.transcript import check
from toolturn.turn import AskApproval, CallModel, CallTool, ToolFailed

from .parts import run
from .strategies import Script, scripts
from .world import OP_NAME, TOOLS, World

LISTED = tuple(cls for cls in vars(all_errors).values() if isinstance(cls, type) and issubclass(cls, ToolLoopError))


def through_json(turn: Turn) -> Turn:
    return Turn.from_json(turn.to_json(), turn.definitions, turn.traits)


def through_pickle(turn: Turn) -> Turn:
    copied: Turn = pickle.loads(pickle.dumps(turn))
    return copied


COPIES: dict[str, Callable[[Turn], Turn]] = {
    "json": through_json,
    "pickle": through_pickle,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def every_moment(script: Script) -> list[Turn]:
    """The turn before its first step and after each, as copies."""
    world = World(script)
    turn = world.begin()
    moments = [through_json(turn)]
    while world.step(turn) is not None:
        moments.append(through_json(turn))
    return moments


def in_emitted_order(messages: tuple[ChatMessage, ...]) -> bool:
    """Whether the results of each batch stand in the order of its calls."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not waiting or message.tool_call_id != waiting.pop(0):
                return False
        elif waiting:
            return False
        else:
            waiting = [call.id for call in message.tool_calls or ()]
    return not waiting


@given(scripts())
def test_the_transcript_is_valid_after_every_step(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    while True:
        messages = turn.messages
        assert check(messages) == []
        assert messages[: len(script.history)] == script.history
        assert in_emitted_order(messages[len(script.history) :])
        assert [record.message for record in turn.records] == [
            message for message in messages[len(script.history) :] if message.role == "tool"
        ]
        if world.step(turn) is None:
            break


@given(scripts())
def test_an_exit_has_the_transcript_and_the_audit_of_its_turn(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    end = turn.exit
    assert end is not None
    assert end.messages == turn.messages
    assert end.tool_calls == turn.records
    assert end.iterations == turn.iterations
    assert end.usage == turn.usage
    assert end.turn_id == turn.turn_id == "turn"


@given(scripts())
def test_no_bound_is_passed(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    forced = [op for op in world.asked if op.startswith("f")]
    assert len(world.asked) - len(forced) <= script.limits.iterations
    assert len(forced) <= (script.on_limit == "answer")
    assert turn.iterations <= script.limits.iterations
    assert len(turn.records) <= script.limits.tool_calls
    assert len(world.ran) <= script.limits.tool_calls
    ran = [name for _, name in world.ran]
    assert all(ran.count(name) <= most for name, most in script.limits.per_tool.items())
    bound = script.limits.result_bytes
    if bound is not None:
        assert all(len(str(record.message.content).encode()) <= bound for record in turn.records)


@given(scripts())
def test_each_operation_has_one_name_which_tells_its_place(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    names: list[str] = []
    while ops := turn.ops():
        for place, op in enumerate(ops):
            assert OP_NAME.fullmatch(op.id)
            assert op.key == f"turn/{op.id}"
            if isinstance(op, CallTool):
                assert op.id == f"t{turn.iterations}.{op.place}"
                assert op.place >= ops[0].place + place  # type: ignore[union-attr]
            elif isinstance(op, AskApproval):
                assert op.id == f"a{turn.iterations}.{op.place}"
            else:
                assert op.id == (f"f{turn.iterations}" if op.forced else f"m{turn.iterations + 1}")
                assert (op.tools == ()) == op.forced
        done = world.step(turn)
        assert done is not None
        names.append(done.id)
    assert len(set(names)) == len(names)


@given(scripts())
def test_the_definitions_are_offered_as_the_same_object_each_time(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    offered = [op.tools for op in world.to_the_end(turn) if isinstance(op, CallModel) and not op.forced]
    assert all(tools is TOOLS.definitions for tools in offered)


@given(scripts())
def test_a_call_runs_only_from_a_reply_that_was_accepted(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    accepted = {record.op for record in turn.records}
    assert {op for op, _ in world.ran} <= accepted
    end = turn.exit
    rejected = end.rejected_response if isinstance(end, ToolLoopError) else None
    if rejected is not None and not isinstance(end, all_errors.ToolLoopLimitError):
        assert not any(op.startswith(f"t{turn.iterations}.") for op, _ in world.ran)


@given(scripts())
def test_a_tool_runs_at_most_once_for_each_call(script: Script) -> None:
    world = World(script)
    world.to_the_end(world.begin())
    assert len(set(world.ran)) == len(world.ran)


@given(scripts(tool_errors="report"))
def test_a_failing_tool_does_not_end_a_turn_that_reports(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    assert not isinstance(turn.exit, all_errors.ToolLoopToolError)


@given(scripts(tool_errors="raise"))
def test_a_failing_tool_ends_a_turn_that_raises_and_nothing_runs_after_it(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.turn = turn
    while ops := turn.ops():
        outcome, interrupted = world.carry_out(ops[0])
        if interrupted:
            turn.cancel()
        turn.apply(ops[0], outcome)
        if isinstance(outcome, ToolFailed):
            assert isinstance(turn.exit, all_errors.ToolLoopToolError)
            assert turn.exit.__cause__ is outcome.error
            assert turn.ops() == ()


@pytest.mark.parametrize("way", COPIES)
@given(script=scripts())
def test_a_turn_is_equal_to_its_copy_at_every_moment(way: str, script: Script) -> None:
    for turn in every_moment(script):
        copied = COPIES[way](turn)
        assert copied == turn
        assert copied is not turn
        assert copied.to_json() == turn.to_json()
        assert copied.ops() == turn.ops()
        assert copied.messages == turn.messages
        assert copied.records == turn.records
        assert copied.phase == turn.phase


@pytest.mark.parametrize("way", COPIES)
@given(script=scripts(), after=st.integers(0, 12))
def test_a_copy_goes_on_to_the_same_end(way: str, script: Script, after: int) -> None:
    world, other = World(script), World(script)
    straight, turn = world.begin(), other.begin()
    world.to_the_end(straight)
    for _ in range(after):
        other.step(turn)
    copied = COPIES[way](turn)
    other.to_the_end(copied)
    assert copied.to_json() == straight.to_json()
    assert (other.asked, other.ran) == (world.asked, world.ran)


@pytest.mark.parametrize("way", COPIES)
@given(script=scripts())
def test_what_happens_to_a_copy_leaves_the_original_as_it_is(way: str, script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.step(turn)
    before = turn.to_json()
    copied = COPIES[way](turn)
    world.to_the_end(copied)
    copied.cancel()
    assert turn.to_json() == before


@given(scripts())
def test_every_exit_is_a_result_or_one_of_the_listed_errors(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    end = turn.exit
    assert isinstance(end, ToolLoopResult) or type(end) in LISTED
    assert turn.phase == "ended"
    assert turn.ops() == ()
    assert turn.exit is end


@given(scripts())
def test_an_error_survives_pickle_copies_and_json_with_all_it_carries(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    error = turn.exit
    if not isinstance(error, ToolLoopError):
        return
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
    read = error_from_json(error_to_json(error))
    assert type(read) is type(error)
    assert str(read) == str(error)
    assert vars(read) == vars(error)


@given(scripts())
def test_a_result_survives_pickle_copies_and_json(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    result = turn.exit
    if not isinstance(result, ToolLoopResult):
        return
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert again == result
    read = result_from_json(result_to_json(result))
    assert replace(read, value=None) == replace(result, value=None)
    assert (read.value is None) == (result.value is None)


@given(scripts())
def test_the_state_in_an_error_is_the_turn(script: Script) -> None:
    world = World(script)
    turn = world.begin()
    world.to_the_end(turn)
    error = turn.exit
    if isinstance(error, ToolLoopError):
        assert error.state is not None
        assert Turn.from_json(error.state, turn.definitions, turn.traits) == turn


@given(script=scripts(tool_errors="report"), places=st.lists(st.integers(0, 3), max_size=20))
def test_parallel_results_stand_in_emitted_order_whatever_order_they_came_in(script: Script, places: list[int]) -> None:
    world, other = World(script), World(script)
    straight, turn = world.begin(), other.begin()
    world.to_the_end(straight)
    for place in places:
        other.step(turn, place)
    other.to_the_end(turn)
    if isinstance(straight.exit, all_errors.ToolLoopCancelledError):
        return  # which calls had begun before the interruption does depend on the order
    assert turn.to_json() == straight.to_json()


@given(script=scripts(), concurrency=st.sampled_from([1, 3]))
def test_the_loop_comes_to_the_end_the_machine_comes_to(script: Script, concurrency: int) -> None:
    """Where parallel calls may overtake each other, only a turn that nothing interrupts has one end."""
    world, other = World(script), World(script)
    straight = world.begin()
    world.to_the_end(straight)
    want = straight.exit
    turn = other.turn = Turn("turn")
    got: ToolLoopResult | ToolLoopError | None
    try:
        got = run(
            run_tool_loop(
                script.history,
                TOOLS,
                other.model,
                limits=script.limits,
                on_limit=script.on_limit,
                tool_errors=script.tool_errors,
                concurrency=concurrency,
                approve=other.approve,
                turn=turn,
                context=TurnContext(data=other),
            )
        )
    except ToolLoopError as error:
        got = error
    except asyncio.CancelledError:
        got = turn.exit
    assert got is not None
    assert want is not None
    if concurrency > 1 and isinstance(want, ToolLoopError):
        return
    assert type(got) is type(want)
    assert str(getattr(got, "content", got)) == str(getattr(want, "content", want))
    assert got.messages == want.messages
    assert [_timeless(record) for record in got.tool_calls] == list(want.tool_calls)
    assert (got.iterations, got.usage) == (want.iterations, want.usage)


def _timeless(record: ToolCallRecord) -> ToolCallRecord:
    return replace(record, started=0.0, seconds=0.0)
