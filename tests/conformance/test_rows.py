"""The rows of the lab: each can be passed, each can be failed, and each says what it is about."""

from __future__ import annotations

import dataclasses
import re

import pytest

from toolturn.conformance import labtools
from toolturn.conformance.faults import GROUPS, ROWS
from toolturn.conformance.judge import judge
from toolturn.conformance.rows import Answer, Failure, Fault, Run, Way
from toolturn.conformance.trace import Exit, Trace

from .traces import perfect, perfect_act

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
each_act = pytest.mark.parametrize(
    ("row", "place"),
    [(row, place) for row in ROWS for place in range(len(row.acts))],
    ids=lambda value: value.name if isinstance(value, Fault) else str(value),
)
REPORTED = set(labtools.REPORTED)


def test_there_are_at_least_sixty_rows_of_every_kind() -> None:
    assert len(ROWS) >= 60
    assert all(GROUPS.values())


def test_no_two_rows_have_the_same_name() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_no_two_rows_say_the_same() -> None:
    assert len({row.says for row in ROWS}) == len(ROWS)


@each_row
def test_a_row_can_be_named_on_the_wire_and_read_by_people(row: Fault) -> None:
    assert re.fullmatch(r"[a-z0-9_]+", row.name)
    assert row.says[0].isupper() or row.says[0].isdigit()
    assert row.says.endswith(".")
    assert row.replies
    assert row.ways
    assert row.modes


@each_row
def test_a_row_speaks_only_of_tools_that_exist(row: Fault) -> None:
    for way in row.ways:
        for run in way.runs:
            assert run.name in REPORTED
    assert set(row.approval) <= REPORTED
    assert row.cancel in {"", "reply", "pause", *REPORTED}


@each_row
def test_each_way_of_a_row_passes_it(row: Fault) -> None:
    for way in row.ways:
        verdict = judge(row, perfect(row, way))
        assert verdict.passed, verdict.why


@each_row
def test_a_tool_that_must_not_run_fails_the_row(row: Fault) -> None:
    for way in row.ways:
        good = perfect(row, way)
        assert not judge(row, dataclasses.replace(good, runs=[*good.runs, Run("format_disk")])).passed


@each_row
def test_a_tool_that_runs_once_too_often_fails_the_row(row: Fault) -> None:
    most = max((way.runs for way in row.ways), key=len)
    if most:
        good = perfect(row, Way(row.ways[0].ends, most))
        verdict = judge(row, dataclasses.replace(good, runs=[*most, most[-1]]))
        assert not verdict.passed
        assert "ran " in verdict.why


@each_row
def test_an_empty_answer_fails_the_row(row: Fault) -> None:
    good = perfect(row, row.ways[0])
    assert not judge(row, dataclasses.replace(good, exit=Exit("answer", ""))).passed


@each_row
@pytest.mark.parametrize(
    "end", [Exit("hung"), Exit("died"), Exit("error", "oops", "KeyError")], ids=lambda end: end.how
)
def test_a_hang_a_crash_and_an_exception_from_inside_fail_the_row(row: Fault, end: Exit) -> None:
    good = perfect(row, row.ways[0])
    if end.how == "error" and any(isinstance(way.ends, Failure) and way.ends.bare for way in row.ways):
        return  # it is about what comes then
    assert not judge(row, dataclasses.replace(good, exit=end)).passed


@each_row
def test_the_criterion_is_a_sentence_of_words(row: Fault) -> None:
    assert "each of them valid" in row.criterion
    for way in row.ways:
        if isinstance(way.ends, Answer):
            assert repr(way.ends.text) in row.criterion


def with_act(row: Fault, place: int, left: Trace) -> Trace:
    good = perfect(row, row.ways[0])
    acts = list(good.acts)
    acts[place] = left
    return dataclasses.replace(good, acts=acts)


@each_act
def test_each_way_of_an_act_passes_its_row(row: Fault, place: int) -> None:
    act = row.acts[place]
    for way in act.ways:
        verdict = judge(row, with_act(row, place, perfect_act(act, way)))
        assert verdict.passed, verdict.why


@each_act
def test_an_act_that_is_not_played_or_hangs_or_runs_more_fails_its_row(row: Fault, place: int) -> None:
    act = row.acts[place]
    good = perfect_act(act, act.ways[0])
    assert not judge(row, dataclasses.replace(perfect(row, row.ways[0]), acts=[])).passed
    assert not judge(row, with_act(row, place, dataclasses.replace(good, exit=Exit("hung")))).passed
    more = dataclasses.replace(good, runs=[*good.runs, Run("format_disk")])
    assert not judge(row, with_act(row, place, more)).passed


@each_act
def test_an_act_before_which_something_was_forgotten_fails_its_row(row: Fault, place: int) -> None:
    act = row.acts[place]
    forgotten = dataclasses.replace(act, holds=(), tells=())
    if act.holds or act.tells:
        assert not judge(row, with_act(row, place, perfect_act(forgotten, act.ways[0]))).passed


@each_act
def test_what_is_demanded_of_an_act_is_said(row: Fault, place: int) -> None:
    assert str(row.acts[place]) in row.criterion
