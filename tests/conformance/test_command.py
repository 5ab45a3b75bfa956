"""``toolturn conform`` and ``toolturn probe`` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .pretend import pretend

NAIVE = str(Path(__file__).parent / "naive.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolturn.cli", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=55,
        check=False,
    )


def test_the_table_of_an_adapter_is_printed_and_a_failure_is_the_exit_code() -> None:
    done = run("conform", "--adapter", NAIVE, "--row", "good_answer", "--row", "content_blank")
    assert done.returncode == 1, done.stderr
    assert "good_answer    ✓ ✓" in done.stdout
    assert "    naive, plain: answered '  \\n '" in done.stdout
    assert "naive: 1 of 2 rows passed, 2 of 4 turns" in done.stdout


def test_toolturn_is_put_to_the_test_by_default() -> None:
    done = run("conform", "--row", "good_", "--mode", "stream", "--failures")
    assert done.returncode == 0, done.stdout
    assert "toolturn " in done.stdout


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_other_forms(form: str) -> None:
    done = run("conform", "--adapter", NAIVE, "--row", "good_answer", form)
    assert done.returncode == 0
    if form == "--json":
        assert [entry["passed"] for entry in json.loads(done.stdout)] == [True, True]
    else:
        assert done.stdout.startswith("| fault | naive |")


def test_the_rows_are_listed_with_what_they_demand() -> None:
    done = run("conform", "--list", "--row", "finish_length_call")
    assert done.returncode == 0
    assert "The reply was cut off, yet the arguments of its call are complete." in done.stdout
    assert "Demanded: nothing ran, answers 'after all'" in done.stdout
    listed = json.loads(run("conform", "--list", "--json").stdout)
    assert len(listed) >= 60
    assert set(listed[0]) == {"row", "says", "modes", "criterion"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--row", "nonsense"), 2, "no row begins with nonsense"),
        (("--adapter", "nobody"), 1, "there is no adapter 'nobody'"),
        (("--server", "http://127.0.0.1:9/v1"), 2, "--server needs --model"),
        (("--server", "nowhere", "--model", "m"), 1, "is no address of a server"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = run("conform", *arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_without_its_library_one_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['h11'] = None; from toolturn.cli import main; sys.argv[1:] = ['conform']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: the fault lab needs the library h11: pip install h11\n"


def test_a_real_server_is_looked_at() -> None:
    with pretend() as url:
        done = run("conform", "--server", url, "--model", "good")
        assert done.returncode == 0, done.stdout
        assert "✓ streamed call: fine" in done.stdout
        other = run("conform", "--server", url, "--model", "other", "--json")
    assert other.returncode == 1
    assert {
        "check": "models",
        "ok": False,
        "says": "The model 'other' is not among the 1 that are listed.",
    } in json.loads(other.stdout)


def test_a_model_is_probed_in_ten_lines() -> None:
    with pretend() as url:
        done = run("probe", f"{url}#good")
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 10
        assert "parallel calls  yes, 2 in one reply" in done.stdout
        assert len(json.loads(run("probe", f"{url}#good", "--json").stdout)) == 10


def test_a_model_that_can_not_be_reached_is_told() -> None:
    done = run("probe", "http://127.0.0.1:9/v1#m")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
