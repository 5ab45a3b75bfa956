"""What is not there, or goes away: an extra, a file, the user. One sentence says so, and none is a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run

_WITHOUT = "import sys; sys.modules |= dict.fromkeys({!r}); from toolturn.cli import main; sys.argv[1:] = {!r}; main()"


def _without(modules: str, env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    code = _WITHOUT.format(modules.split(), list(arguments))
    return subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )


@pytest.fixture
def weights(tmp_path: Path) -> str:
    """A file that looks like weights; nothing gets so far as to read it."""
    file = tmp_path / "any.gguf"
    file.write_bytes(b"GGUF")
    return str(file)


def test_a_question_without_the_runtime_of_the_embedded_model_names_the_extra(
    env: dict[str, str], state: Path, weights: str
) -> None:
    done = _without("xllamacpp", env, "ask", "--model", weights, "hi")
    assert done.returncode == 1
    assert "Error: the embedded model needs the extra 'local': pip install 'toolturn[local]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(state.iterdir())) == 1  # with the extra it goes on


def test_a_missing_extra_is_told_as_json_too(env: dict[str, str], weights: str) -> None:
    done = _without("xllamacpp", env, "ask", "--json", "--model", weights, "hi")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert "the extra 'local'" in json.dumps(document)


@pytest.mark.parametrize("command", [("ask", "hi"), ("probe",)])
def test_a_server_without_the_extra_http_is_one_sentence(env: dict[str, str], command: tuple[str, ...]) -> None:
    address = "http://127.0.0.1:9/v1#x"
    arguments = (*command, address) if command == ("probe",) else (*command, "--model", address)
    done = _without("httptools httpx2", env, *arguments)
    assert done.returncode == 1
    assert "models behind HTTP need the extra 'http': pip install 'toolturn[http]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_named_once(run: Run) -> None:
    done = run("ask", "--messages", "/nosuch", "hi")
    assert done.returncode == 1
    assert done.stderr == "Error: /nosuch can not be read: No such file or directory\n"


def test_a_persona_that_is_not_there_is_told_without_a_place_in_it(run: Run) -> None:
    done = run("ask", "--persona", "/nosuch.json", "hi")
    assert done.stderr == "Error: /nosuch.json: it can not be read: No such file or directory\n"


def test_a_toolbox_that_tools_does_not_know_is_told_as_one_of_its_names(run: Run) -> None:
    done = run("tools", "maths")
    assert done.returncode == 2
    assert "Invalid value for NAMES: there is no toolbox 'maths'; did you mean 'math'?" in done.stderr


def test_a_dash_for_the_question_reads_it_from_standard_input(run: Run) -> None:
    done = run("ask", "-", given="  \n")
    assert done.returncode == 2
    assert "there is no question" in done.stderr


def test_ctrl_c_while_the_question_is_read_ends_with_130(env: dict[str, str]) -> None:
    code = (
        "import signal, sys\n"
        "class Interrupted:\n"
        "    isatty = staticmethod(lambda: False)\n"
        "    read = staticmethod(lambda: signal.raise_signal(signal.SIGINT))\n"
        "sys.stdin, sys.argv[1:] = Interrupted(), ['ask']\n"
        "from toolturn.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "Error: interrupted.\n")
