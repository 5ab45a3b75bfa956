"""The table of the lab in its three forms."""

from __future__ import annotations

import json

from toolturn.conformance.judge import Verdict
from toolturn.conformance.replies import says
from toolturn.conformance.rows import Fault, Mode
from toolturn.conformance.run import Result
from toolturn.conformance.table import as_json, as_markdown, as_text


def result(row: str, adapter: str, mode: Mode, passed: bool | None, why: str = "") -> Result:
    return Result(row, adapter, "1.2", mode, None if passed is None else Verdict(passed, why))


RESULTS = [
    result("good", "a", "plain", True, "answered 'x'"),
    result("good", "a", "stream", True, "answered 'x'"),
    result("bad", "a", "plain", False, "ran x(), which must not run"),
    result("bad", "a", "stream", False, "ran x(), which must not run"),
    result("pieces", "a", "stream", False, "answered 'a|b'"),
    result("good", "library", "plain", True),
    result("good", "library", "stream", True),
    result("bad", "library", "plain", True),
    result("bad", "library", "stream", False, "hung"),
    result("pieces", "library", "stream", None),
]


def test_the_text_has_a_line_per_row_and_one_per_failure() -> None:
    assert as_text(RESULTS) == (
        "        a    library\n"
        "good    ✓ ✓  ✓ ✓\n"
        "bad     ✗ ✗  ✓ ✗\n"
        "    a, plain: ran x(), which must not run\n"
        "    a, streamed: ran x(), which must not run\n"
        "    library, streamed: hung\n"
        "pieces    ✗    –\n"
        "    a, streamed: answered 'a|b'\n"
        "\n"
        "a 1.2: 1 of 3 rows passed, 2 of 5 turns\n"
        "library 1.2: 1 of 2 rows passed, 3 of 4 turns; not offered (–): 1 row"
    )


def test_rows_that_all_passed_can_be_left_out() -> None:
    assert "good" not in as_text(RESULTS, failures_only=True)


def test_the_markdown_has_a_cell_per_library_and_tells_equal_failures_once() -> None:
    rows = [Fault("bad", "It does | not.", (says(""),), ())]
    lines = as_markdown(RESULTS, rows).splitlines()
    assert lines[:3] == ["| fault | a 1.2 | library 1.2 |", "|---|---|---|", "| `good` | ✓ | ✓ |"]
    assert lines[3] == "| `bad` It does \\| not. | ✗ ran x(), which must not run | ✗ streamed: hung |"
    assert lines[4] == "| `pieces` | ✗ answered 'a\\|b' | – |"
    assert lines[-1].startswith("- library 1.2: 1 of 2 rows passed")


def test_the_json_has_an_entry_per_turn() -> None:
    entries = json.loads(as_json(RESULTS))
    assert len(entries) == len(RESULTS)
    assert entries[2] == {
        "row": "bad",
        "adapter": "a",
        "version": "1.2",
        "mode": "plain",
        "passed": False,
        "why": "ran x(), which must not run",
    }
    assert (entries[-1]["passed"], entries[-1]["why"]) == (None, "not offered")


def test_a_table_of_nothing_is_no_trouble() -> None:
    assert as_text([]).strip() == ""
    assert as_json([]) == "[]"
