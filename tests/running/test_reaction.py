"""How soon a turn reacts, within bounds that a busy machine keeps too; ``benchmarks/run.py`` has the exact ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from .support import environment

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reaction.py"
LOOSE = 10  # times the exact bound


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), "--json"],
        capture_output=True,
        text=True,
        timeout=50,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


@pytest.mark.parametrize("kind", ["tool", "tools", "cooperative", "request", "stream"])
def test_a_cancel_gives_control_back_at_once(rows: list[dict[str, Any]], kind: str) -> None:
    took = [row["seconds"] for row in rows if row["kind"] == kind]
    assert len(took) >= 10
    assert median(took) < 0.010 * LOOSE


def test_a_sentence_is_handed_on_soon_after_its_last_character(rows: list[dict[str, Any]]) -> None:
    took = [row["seconds"] for row in rows if row["kind"] == "sentence"]
    assert len(took) >= 10
    assert median(took) < 0.005 * LOOSE


def test_eight_calls_beside_each_other_take_little_longer_than_one(rows: list[dict[str, Any]]) -> None:
    (row,) = [row for row in rows if row["kind"] == "beside"]
    assert row["ratio"] < 3  # one after the other they take 8 times as long
