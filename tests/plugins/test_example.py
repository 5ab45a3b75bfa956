"""The example of a plug-in, really installed and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
Run = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example was installed into."""
    if not EXAMPLE.is_dir():
        pytest.skip("the examples are not here")
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    command += [
        "--disable-pip-version-check",
        "--root-user-action=ignore",
        "--target",
        str(folder / "site"),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture
def example(installed: Path, run: Run) -> Run:
    path = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH"))))
    return lambda *arguments: run(*arguments, PYTHONPATH=path)


def test_its_toolbox_is_listed_and_its_tools_when_it_is_named(example: Run) -> None:
    assert "dice: a plug-in of toolturn-dice 0.1.0" in example("tools").stdout
    assert "roll_dice(count)" in example("tools", "dice").stdout


def test_its_model_calls_the_tool_of_its_toolbox(example: Run) -> None:
    done = example("ask", "--json", "--model", "dice:lucky", "--tools", "dice", "Roll 3 dice.")
    document = json.loads(done.stdout)
    assert document["ok"] is True
    (record,) = document["tool_calls"]
    assert (record["status"], len(json.loads(record["message"]["content"]))) == ("ok", 3)


def test_its_persona_puts_them_together(example: Run) -> None:
    checked = example("persona", "check", "gambler")
    assert checked.returncode == 0, checked.stdout
    assert "Model dice:lucky: runs the code of the package toolturn-dice 0.1.0." in checked.stdout
    first, second = (example("ask", "--persona", "gambler", "Roll 2 dice.") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout, "the persona names a seed"
    assert first.stdout.startswith("You rolled [")


def test_the_doctor_finds_nothing_wrong_with_it(example: Run) -> None:
    document = json.loads(example("doctor", "--load-plugins", "--json").stdout)
    assert {plugin["kind"] for plugin in document["plugins"] if plugin["loaded"]} == {"toolboxes", "models", "personas"}
    assert document["ok"] is True
