"""What the command line does without a model."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import toolturn

from .conftest import Run


def test_help_lists_every_command_and_costs_little(run: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    for command in ("ask", "resume", "tools", "persona", "model"):
        assert f"\n  {command} " in done.stdout
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert cpu < 1.5, "0.3 s on an idle machine; this bound only catches a heavy import"


def test_help_loads_neither_a_runtime_nor_a_toolbox() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from toolturn.cli.commands import toolturn\n"
        "assert CliRunner().invoke(toolturn, ['--help']).exit_code == 0\n"
        "heavy = ('xllamacpp', 'pint', 'simpleeval', 'jsonschema_rs', 'toolturn.local')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["ask", "resume", "tools", "model"])
def test_each_command_explains_itself(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").stdout == f"toolturn {toolturn.__version__}\n"


def test_without_the_extra_one_sentence_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['click'] = None; from toolturn.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "the command line needs the extra 'cli': pip install 'toolturn[cli]'\n"


def test_tools_lists_each_toolbox_with_its_tools(run: Run) -> None:
    done = run("tools")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line and not line.startswith(" ")] == [
        "clock",
        "math",
        "units",
    ]
    assert "calculator(expression)" in done.stdout


def test_tools_as_json_hold_the_schemas(run: Run) -> None:
    document = json.loads(run("tools", "math", "--json").stdout)
    assert list(document) == ["math"]
    assert document["math"][0]["parameters"]["type"] == "object"


def test_an_unknown_toolbox_is_wrong_usage_that_names_the_known_ones(run: Run) -> None:
    done = run("ask", "--tools", "maths", "Hi")
    assert done.returncode == 2
    assert "math" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_question_is_needed(run: Run) -> None:
    done = run("ask")
    assert done.returncode == 2
    assert "there is no question" in done.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("nonsense", "the messages are not JSON"),
        ("{}", "a JSON list"),
        ('[{"content": "x"}]', "message 0 is no chat message"),
        ("[1]", "message 0 is no chat message"),
        (
            '[{"role": "tool", "content": "x", "tool_call_id": "a"}]',
            "message 0: a tool message that answers no open call",
        ),
    ],
)
def test_messages_that_can_not_be_used_are_named(run: Run, tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "messages.json"
    file.write_text(content)
    done = run("ask", "--messages", str(file), "Hi")
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_is_not_there_is_one_sentence(run: Run, tmp_path: Path) -> None:
    done = run("ask", "Hi", TOOLTURN_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "toolturn model pull" in done.stderr


@pytest.mark.parametrize(
    "content", ["", "{}", "nonsense", '{"v": 1, "kind": "saved turn"}', '{"v": 9, "kind": "saved turn"}']
)
def test_a_file_that_is_no_saved_turn_is_refused_in_one_sentence(run: Run, tmp_path: Path, content: str) -> None:
    file = tmp_path / "turn.json"
    file.write_text(content)
    done = run("resume", str(file))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


def test_a_saved_turn_that_is_not_there_is_one_sentence(run: Run) -> None:
    done = run("resume", "nowhere.json")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "option", [("--max-iterations", "0"), ("--max-tool-calls", "-1"), ("--timeout", "0"), ("--on-limit", "no")]
)
def test_a_limit_out_of_range_is_wrong_usage(run: Run, option: tuple[str, str]) -> None:
    assert run("ask", *option, "Hi").returncode == 2
