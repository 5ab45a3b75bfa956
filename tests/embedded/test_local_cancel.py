"""A cancel while the embedded model replies: the caller is free at once, and the generation ends within two tokens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.running.support import environment

pytestmark = [pytest.mark.model, pytest.mark.timeout(120)]

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reaction.py"


def test_the_caller_is_free_at_once_and_the_generation_ends_within_two_tokens() -> None:
    code = (
        "import asyncio, json, runpy\n"
        f"print(json.dumps(asyncio.run(runpy.run_path({str(SCRIPT)!r})['generation'](4))))\n"
    )
    known = {**os.environ, **environment()}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=known, check=False)
    assert done.returncode == 0, done.stderr
    rows = [row for row in json.loads(done.stdout) if row["kind"] == "generation"]
    assert len(rows) == 4
    assert median(row["seconds"] for row in rows) < 0.1
    # the server counts what it made itself; a text may have come of each token, so none can be made without it
    assert all(0 <= row["tokens_after"] <= 2 for row in rows), rows


def test_a_cancel_while_the_prompt_is_read_is_heard_before_all_of_it_is_read() -> None:
    code = (
        "import asyncio, json, runpy\n"
        f"print(json.dumps(asyncio.run(runpy.run_path({str(SCRIPT)!r})['reading'](1200))))\n"
    )
    known = {**os.environ, **environment()}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, env=known, check=False)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["seconds"] < 0.1
    assert row["read"] <= 600, "a batch and what stands around the message"
