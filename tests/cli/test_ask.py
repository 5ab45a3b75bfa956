"""``toolturn ask`` and ``toolturn resume`` with the real embedded model."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run

pytestmark = [pytest.mark.model, pytest.mark.timeout(200)]


@pytest.fixture(autouse=True)
def _needs_weights() -> None:
    from toolturn.local.weights import WeightsError, find

    try:
        find()
    except WeightsError as exc:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(exc))


def test_piped_output_is_the_answer_alone_and_the_calls_are_on_standard_error(run: Run) -> None:
    done = run("ask", "--tools", "math", "What is 17 * 24?")
    assert done.returncode == 0, done.stderr
    assert "408" in done.stdout
    assert done.stdout.count("\n") == 1
    assert "→ calculator" in done.stderr
    assert "← 408" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_one_document_with_the_whole_audit(run: Run) -> None:
    done = run("ask", "--json", "--tools", "math", "What is 17 * 24?")
    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert document["model"] == "local"
    assert document["tool_calls"][0]["message"]["content"] == "408"
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert document["usage"]["output"] > 0
    assert done.stderr == ""


def test_a_question_comes_from_standard_input_too(run: Run) -> None:
    done = run("ask", "-q", "--tools", "none", given="Reply with one word: yes or no?\n")
    assert done.returncode == 0
    assert done.stdout.strip()
    assert done.stderr == ""


def test_a_conversation_goes_on_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    file.write_text(
        json.dumps([{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello Ada!"}])
    )
    done = run("ask", "--json", "--tools", "none", "--messages", str(file), "What is my name?")
    assert "Ada" in json.loads(done.stdout)["content"]


def test_at_the_limit_there_is_a_last_answer_without_tools(run: Run) -> None:
    done = run("ask", "--json", "--tools", "math", "--max-iterations", "1", "What is 17 * 24?")
    document = json.loads(done.stdout)
    assert (document["ok"], document["limit"], document["iterations"]) == (True, "iterations", 1)
    assert "408" in document["content"]


def test_a_turn_that_fails_is_saved_and_resume_continues_it(run: Run, state: Path) -> None:
    failed = run("ask", "--tools", "math", "--max-iterations", "1", "--on-limit", "raise", "What is 17 * 24?")
    assert failed.returncode == 1
    (file,) = state.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"toolturn resume {file}" in failed.stderr

    again = run("resume", str(file))
    assert again.returncode == 1
    assert "give a higher --max-iterations" in again.stderr
    assert file.exists()

    done = run("resume", "--json", "--max-iterations", "2", str(file))
    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert [record["op"] for record in document["tool_calls"]] == ["t1.0"], "the call did not run again"
    assert "408" in document["content"]
    assert not file.exists()


def test_a_failure_as_json_names_the_file(run: Run, state: Path) -> None:
    done = run("ask", "--json", "--tools", "math", "--max-iterations", "1", "--on-limit", "raise", "What is 17 * 24?")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert document["class"] == "ToolLoopIterationLimitError"
    assert Path(document["saved"]).parent == state


def test_the_deadline_ends_a_long_reply(run: Run, state: Path) -> None:
    done = run("ask", "--tools", "none", "--timeout", "3", "Count from 1 to 1000 in words.")
    assert done.returncode == 1
    assert "did not finish within 3" in done.stderr
    assert len(list(state.iterdir())) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_turn_is_saved_and_says_how_to_go_on(
    env: dict[str, str], state: Path, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "toolturn.cli", "ask", "--tools", "none", "Count from 1 to 1000 in words."]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True, env=env)
    try:
        assert process.stderr is not None
        line = ""
        while "call 1" not in line:  # the model is asked now
            line = process.stderr.readline()
            assert line, "the turn began"
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, stderr
    (file,) = state.iterdir()
    assert f"toolturn resume {file}" in stderr
    assert "Traceback" not in stderr
    assert json.loads(file.read_text())["turn"]["ending"]["class"] == "ToolLoopCancelledError"


def test_on_a_terminal_the_answer_appears_while_it_is_made(env: dict[str, str]) -> None:
    import pty

    main, side = pty.openpty()
    command = [sys.executable, "-m", "toolturn.cli", "ask", "--tools", "none", "Count from one to five in words."]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=side, stderr=subprocess.DEVNULL, env=env)
    os.close(side)
    pieces = []
    with contextlib.suppress(OSError):  # a terminal whose other side is closed gives an error, not an end
        while piece := os.read(main, 4096):
            pieces.append(piece)
    os.close(main)
    assert process.wait(60) == 0
    assert len(pieces) > 2, "it came piece by piece"
    assert re.search(rb"three", b"".join(pieces), re.IGNORECASE)
