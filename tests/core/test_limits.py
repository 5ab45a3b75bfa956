"""Limits: what they are, what is out of range, and how a long result is cut."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import Limits, Turn
from toolturn.limits import DEFAULT_RESULT_BYTES, cap_text

from .parts import begun, error_of


def test_the_defaults_are_four_iterations_and_sixteen_calls() -> None:
    assert Limits() == Limits(iterations=4, tool_calls=16, deadline=None, result_bytes=64 * 1024)
    assert DEFAULT_RESULT_BYTES == 64 * 1024


def test_limits_are_one_frozen_value() -> None:
    limits = Limits()
    with pytest.raises(FrozenInstanceError):
        limits.iterations = 5  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(limits)) == limits
    assert hash(limits) == hash(Limits())


@pytest.mark.parametrize("iterations", [0, -1, -100])
def test_there_must_be_one_iteration_at_least(iterations: int) -> None:
    with pytest.raises(ValueError, match=r"^max_iterations must be at least 1$"):
        Limits(iterations=iterations)


def test_the_budget_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match=r"^max_tool_calls must not be negative$"):
        Limits(tool_calls=-1)
    assert Limits(tool_calls=0).tool_calls == 0


@pytest.mark.parametrize("deadline", [0, -1.0, math.inf, math.nan])
def test_a_deadline_is_a_positive_number_of_seconds(deadline: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        Limits(deadline=deadline)


def test_a_result_may_not_be_cut_to_less_than_the_marker_needs() -> None:
    with pytest.raises(ValueError, match="at least 256"):
        Limits(result_bytes=255)
    assert Limits(result_bytes=256).result_bytes == 256
    assert Limits(result_bytes=None).result_bytes is None


@pytest.mark.parametrize("value", [math.inf, math.nan, 1000.5, True, "1000"])
@pytest.mark.parametrize("field", ["iterations", "tool_calls", "deadline", "result_bytes"])
def test_limits_that_are_accepted_never_stand_in_the_way_of_an_exit_or_of_its_state(field: str, value: Any) -> None:
    try:
        limits = Limits(**{field: value})
    except (ValueError, TypeError):
        return
    turn = begun(limits=limits)
    turn.cancel()
    state = error_of(turn).state
    assert state is not None
    assert Turn.from_json(state).limits == limits


# --- cutting -------------------------------------------------------------------------

long_texts = st.one_of(
    st.text(min_size=0, max_size=400),
    st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=12), st.integers(1, 300)),
    st.builds(lambda char, times: char * times, st.sampled_from("aü€😀\n\x00"), st.integers(1, 3000)),
)
bounds = st.integers(256, 2000)


@given(long_texts, bounds)
def test_a_cut_text_is_never_over_the_limit(text: str, limit: int) -> None:
    assert len(cap_text(text, limit).encode()) <= limit


@given(long_texts, bounds)
def test_a_text_that_fits_is_the_same_object(text: str, limit: int) -> None:
    if len(text.encode()) <= limit:
        assert cap_text(text, limit) is text


@given(long_texts, bounds)
def test_a_cut_text_keeps_its_head_and_its_tail_and_says_how_to_narrow(text: str, limit: int) -> None:
    size = len(text.encode())
    cut = cap_text(text, limit)
    if size <= limit:
        return
    head, marker, tail = cut.partition(
        f"\n[… cut: the result has {size} bytes, {limit} are shown at most; ask for a smaller part of it …]\n"
    )
    assert marker
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) > 36  # 40 bytes, less what is left of a character
    assert tail


@given(st.text(alphabet=st.sampled_from("a€\ud800\udfff"), max_size=600), bounds)
def test_halves_of_surrogate_pairs_do_not_stand_in_the_way(text: str, limit: int) -> None:
    cut = cap_text(text, limit)
    if cut is not text:
        assert len(cut.encode()) <= limit


def test_no_limit_cuts_nothing() -> None:
    text = "x" * 1_000_000
    assert cap_text(text, None) is text


def test_the_smallest_limit_still_shows_something_of_the_largest_text() -> None:
    cut = cap_text("x" * 10_000_000, 256)
    assert cut.startswith("x" * 40)
    assert cut.endswith("x" * 10)
    assert len(cut.encode()) <= 256


def test_an_ascii_text_is_cut_from_a_quarter_before_its_end() -> None:
    cut = cap_text("a" * 3000 + "b" * 3000, 1000)
    assert len(cut.encode()) == 1000
    assert cut.count("a") > cut.count("b") > 100
