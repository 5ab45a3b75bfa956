"""What is said where the model has no words."""

from __future__ import annotations

from typing import Any

import pytest

from toolturn.messages import ChatMessage, ToolCall
from toolturn.ovos.words import found_or_not
from toolturn.results import ToolCallRecord


def record(content: str, status: Any = "ok") -> ToolCallRecord:
    return ToolCallRecord(ToolCall("a", "f", "{}"), ChatMessage("tool", content, None, "a"), False, status=status)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"result": 391.0, "expression": "17*23", "error": null}', "result 391, expression 17*23"),
        ('{"text": "it rains."}', "it rains"),
        ("18 degrees\nand rain.", "18 degrees and rain"),
        ('["red", "blue"]', "red, blue"),
        ('{"place": {"city_name": "Graz"}, "ok": true, "days": [1, 2]}', "city name Graz, days 1, days 2"),
        ("391", "391"),
    ],
)
def test_a_result_is_told_without_what_is_for_machines(content: str, said: str) -> None:
    assert found_or_not([record(content)], "en-US") == f"This is what I found: {said}."


def test_only_results_count_each_once_and_not_without_end() -> None:
    records = [record("ok"), record("four"), record("Error: no", "error"), record("four"), record("word " * 1000)]
    said = found_or_not(records, None)
    assert said.startswith("This is what I found: four; word word")
    assert len(said) < 400
    assert "Error" not in said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("de-AT", "Darauf habe ich keine Antwort gefunden."),
        ("no", "Jeg fant ikke noe svar på det."),
        ("xx", "I could not"),
    ],
)
def test_without_a_result_that_is_said_in_the_language_of_the_session(language: str, said: str) -> None:
    assert found_or_not([], language).startswith(said)
