"""The lab at work: a naive client fails what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolturn.conformance.faults import ROWS
from toolturn.conformance.run import Result, conform

NAIVE = str(Path(__file__).parent / "naive.py")

# what is slow by its nature: waits that a server asks for, and silence
_SLOW = {row.name for row in ROWS if row.waits or "timeout" in row.needs}


def played(adapter: str, prefixes: tuple[str, ...]) -> dict[tuple[str, str], Result]:
    rows = [row for row in ROWS if row.name.startswith(prefixes) and row.name not in _SLOW]
    results = conform([adapter], rows, report=lambda text: None)
    return {(result.row, result.mode): result for result in results}


def failures(results: dict[tuple[str, str], Result]) -> dict[tuple[str, str], str]:
    return {at: result.verdict.why for at, result in results.items() if result.verdict and not result.verdict.passed}


@pytest.fixture(scope="module")
def naive() -> dict[tuple[str, str], Result]:
    return played(NAIVE, ("good", "arguments", "ids", "finish", "names", "content", "leaks", "stream", "limit", "tool"))


def test_a_naive_client_passes_where_nothing_is_wrong(naive: dict[tuple[str, str], Result]) -> None:
    assert not {at: why for at, why in failures(naive).items() if at[0].startswith("good")}


@pytest.mark.parametrize(
    ("row", "mode", "phrase"),
    [
        ("finish_length_call", "plain", "ran add(a=1, b=2), which must not run"),
        ("finish_filter_call", "stream", "ran add(a=1, b=2), which must not run"),
        ("finish_length_text", "plain", "answered 'half an ans'"),
        ("finish_calls_absent", "plain", "answered 'I will look that up first.'"),
        ("arguments_no_json", "plain", "raised a bare JSONDecodeError"),
        ("arguments_wrong_type", "plain", 'ran set_lamp(room="attic", level="bright"), which must not run'),
        ("arguments_duplicate_keys", "plain", 'ran write_file(path="../secret.txt", text="x"), which must not run'),
        ("ids_empty", "plain", "request 2 is invalid: message 1: a call with the id ''"),
        ("ids_same", "stream", "request 2 is invalid: message 1: two calls with the id 'call_1'"),
        ("names_unknown", "plain", "raised a bare KeyError: \"'forecast'\""),
        ("content_empty", "plain", "answered ''"),
        ("content_blank", "stream", "answered '  \\n '"),
        ("content_think", "plain", "answered '<think>hmm</think>"),
        ("leaks_hermes", "stream", "answered '<tool_call>"),
        ("stream_same_index", "stream", "raised a bare JSONDecodeError"),
        ("stream_no_index", "stream", "raised a bare KeyError: \"'index'\""),
        ("stream_whole_after_call", "stream", 'ran get_temp(city="Faro"), which must not run'),
        ("stream_error_after_text", "stream", "raised a bare KeyError: \"'choices'\""),
        ("stream_usage_only", "stream", "raised a bare IndexError"),
        ("limit_never_stops", "plain", "answered 'pong'"),
        ("tool_raises", "plain", "raised a bare RuntimeError: 'kaboom"),
        ("tool_exits", "plain", "raised a bare SystemExit"),
    ],
)
def test_a_naive_client_fails_what_it_should_and_is_told_why(
    naive: dict[tuple[str, str], Result], row: str, mode: str, phrase: str
) -> None:
    verdict = naive[row, mode].verdict
    assert verdict is not None
    assert not verdict.passed
    assert phrase in verdict.why


def test_what_a_client_does_not_offer_is_not_held_against_it(naive: dict[tuple[str, str], Result]) -> None:
    assert naive["limit_batch_over_budget", "plain"].verdict is None
