"""Calls that have begun: a state saved while they run knows that they may have had their effect."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from toolturn import ImagePart, TextPart, ToolLoopCancelledError, Turn, Usage
from toolturn.turn import CallTool, ModelFailed, ToolTraits, Unfit, Valued
from toolturn.turn.ops import record_of as record_in
from toolturn.turn.ops import response_of as response_in

from .parts import asks, begun, call, error_of, record_of, reply, result_of, says

NAMES = "abc"


def running(*places: int, **traits: Any) -> Turn:
    """A turn with three calls, of which those of these places have begun."""
    trait = ToolTraits(parallel=True, **traits)
    turn = reply(begun(dict.fromkeys(NAMES, trait)), asks(*(call(name, name) for name in NAMES)))
    ops = turn.ops()
    for place in places:
        op = ops[place]
        assert isinstance(op, CallTool)
        turn.start(op)
    return turn


def statuses(turn: Turn) -> list[str]:
    return [record.status for record in turn.records]


def told(*places: int) -> list[str]:
    return ["outcome_unknown" if place in places else "not_executed" for place in range(3)]


@pytest.mark.parametrize("places", [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_a_call_that_has_begun_is_told_so_also_after_json(places: tuple[int, ...]) -> None:
    turn = running(*places)
    assert statuses(turn) == told(*places)
    read = Turn.from_json(turn.to_json(), turn.definitions, turn.traits)
    assert (read, statuses(read)) == (turn, told(*places))
    assert json.loads(turn.to_json())["started"] == list(places)


@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_what_may_have_had_its_effect_runs_again_only_where_that_does_no_harm(places: tuple[int, ...]) -> None:
    saved = running(*places).to_json()
    for effect, again in (("once", [place for place in range(3) if place not in places]), ("keyed", [0, 1, 2])):
        traits = dict.fromkeys(NAMES, ToolTraits(parallel=True, effect=effect))  # type: ignore[arg-type]
        turn = Turn.from_json(saved)
        turn.reopen((), traits)
        assert [op.id for op in turn.ops()] == [f"t1.{place}" for place in again]
        assert statuses(turn) == told(*places)


def test_a_call_of_the_next_batch_has_not_begun() -> None:
    turn = running(0, 1, 2)
    for op in turn.ops():
        assert isinstance(op, CallTool)
        turn.apply(op, record_of(op))
    reply(turn, asks(*(call(f"next {name}", name) for name in NAMES)))
    assert statuses(turn)[3:] == told()


def test_a_place_that_is_none_is_no_harm() -> None:
    document = json.loads(running(1).to_json())
    document["started"] = [1, 3, 70]
    assert Turn.from_json(json.dumps(document)) == running(1)


def test_time_after_the_end_stands_in_the_state_of_the_error() -> None:
    turn = begun()
    turn.tick(1.0)
    turn.cancel()
    assert type(error_of(turn)) is ToolLoopCancelledError
    turn.tick(2.0)
    assert json.loads(error_of(turn).state or "")["seconds"] == 3.0
    turn.reopen((), {})
    assert turn.exit is None


# --- what is in an outcome ---------------------------------------------------------------


def test_the_record_and_the_reply_are_found_in_whatever_came_of_an_operation() -> None:
    op = running().ops()[0]
    assert isinstance(op, CallTool)
    record = record_of(op)
    assert record_in(record) is record
    assert record_in(Valued(record, 7)) is record
    response = says("hello")
    assert response_in(response) is response
    assert response_in(Valued(response, 7)) is response
    assert response_in(Unfit(response, "no")) is response
    assert response_in(ModelFailed(RuntimeError())) is None  # type: ignore[arg-type]


def test_a_turn_that_was_made_asks_for_nothing_special() -> None:
    turn = Turn()
    assert (turn.required, turn.typed, turn.usage) == ("", False, Usage())


# --- the answer of a direct return in parts --------------------------------------------------

PNG = ImagePart("data:image/png;base64,AAAA")


@pytest.mark.parametrize(
    ("content", "answer"),
    [([TextPart("a map"), PNG], "a map"), ([PNG], "[image image/png, 3 bytes]"), ("plain", "plain"), ([], "")],
)
def test_the_answer_of_a_direct_return_is_its_text_or_else_what_its_parts_are(content: Any, answer: str) -> None:
    turn = reply(begun({"a": ToolTraits(return_direct=True)}), asks(call("a", "a")))
    (op,) = turn.ops()
    assert isinstance(op, CallTool)
    record = record_of(op, content)
    turn.apply(op, replace(record, return_direct=True))
    assert result_of(turn).content == answer
