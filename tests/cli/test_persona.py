"""Personas on the command line: checked, asked, talked with, resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn.conformance.replies import Call, Chat, Http
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer

from ..plugins.packages import TOOLS, install
from .conftest import Run

ENGINE = "toolturn-native-toolcall-loop"
_SUM = Chat(None, (Call("calculator", '{"expression": "17 * 24"}'),), "tool_calls")
_READ = Chat(None, (Call("read_file", '{"path": "notes/a.txt"}'),), "tool_calls")
ROWS = [
    Fault("adds", "", (_SUM, Chat("408.")), ()),
    Fault("breaks", "", (_SUM, Http(400, {"error": {"message": "out of order"}}), Chat("408.")), ()),
    Fault("greets", "", (Chat("Hello."),), ()),
    Fault("reads", "", (_READ, Http(400, {"error": {"message": "out of order"}}), Chat("It says: milk.")), ()),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[LabServer]:
    with LabServer(ROWS) as lab:
        yield lab


@pytest.fixture
def env(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**env, "TOOLTURN_API_KEY": tmp_path.name}


@pytest.fixture
def write(tmp_path: Path, lab: LabServer) -> Any:
    """Write a persona whose model plays a row, and return its file."""

    def made(row: str, **engine: Any) -> str:
        file = tmp_path / "persona.json"
        section = {"brain": "toolturn-brain", "toolturn-brain": {"model": f"{lab.base_url}#{row}"}, **engine}
        file.write_text(json.dumps({"name": "Ada", "handlers": [ENGINE], ENGINE: section}))
        return str(file)

    return made


def asked(lab: LabServer, row: str, tmp_path: Path) -> Any:
    return lab.received(row, tmp_path.name)[-1].body


def test_a_persona_gives_model_tools_and_prompt(run: Run, write: Any, lab: LabServer, tmp_path: Path) -> None:
    file = write("adds", toolboxes=["math"], system_prompt="Be short.", max_iterations=3)
    done = run("ask", "--persona", file, "What is 17 * 24?")
    assert (done.returncode, done.stdout) == (0, "408.\n"), done.stderr
    body = asked(lab, "adds", tmp_path)
    assert body["messages"][0] == {"role": "system", "content": "Be short."}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["calculator"]


def test_options_replace_what_the_persona_says(run: Run, write: Any, lab: LabServer, tmp_path: Path) -> None:
    file = write("adds", toolboxes=["math"], system_prompt="Be short.")
    options = ["--model", f"{lab.base_url}#greets", "--tools", "clock", "--system", "Be long."]
    done = run("ask", "--persona", file, *options, "Hello?")
    assert done.stdout == "Hello.\n"
    body = asked(lab, "greets", tmp_path)
    assert body["messages"][0]["content"] == "Be long."
    assert "calculator" not in json.dumps(body["tools"])


def test_a_turn_of_a_persona_is_resumed_with_it(run: Run, write: Any, state: Path) -> None:
    failed = run("ask", "--persona", write("breaks", toolboxes=["math"]), "What is 17 * 24?")
    assert (failed.returncode, "out of order" in failed.stderr) == (1, True)
    (file,) = state.iterdir()
    done = run("resume", "--json", str(file))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["content"], document["tools"]) == ("408.", ["calculator"])
    assert document["messages"][0]["role"] == "user"


def test_a_persona_that_is_gone_is_told_when_its_turn_is_resumed(run: Run, write: Any, state: Path) -> None:
    persona = write("breaks", toolboxes=["math"])
    run("ask", "--persona", persona, "What is 17 * 24?")
    Path(persona).unlink()
    (file,) = state.iterdir()
    done = run("resume", str(file))
    assert done.returncode == 1
    assert f"{persona}: it can not be read: No such file" in done.stderr


def test_one_talks_with_a_persona(run: Run, write: Any, lab: LabServer, tmp_path: Path) -> None:
    done = run(
        "chat", "--persona", write("greets", toolboxes=["math"], system_prompt="P."), given="Hi\n/tools\n/system\n"
    )
    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
    assert "calculator(expression)" in done.stderr
    assert "the system message is: P." in done.stderr
    assert asked(lab, "greets", tmp_path)["messages"][0]["content"] == "P."


def test_warnings_are_told_and_problems_are_refused(run: Run, write: Any) -> None:
    done = run("ask", "--persona", write("greets", max_iteration=2), "Hi")
    assert done.returncode == 0
    assert f"[persona] $[\"{ENGINE}\"].max_iteration: there is no key 'max_iteration'; did you mean" in done.stderr
    done = run("ask", "--persona", write("greets", max_iterations=-2), "Hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "max_iterations must be at least 0" in done.stderr


def test_folders_of_files_stand_beside_other_tools(run: Run, lab: LabServer, tmp_path: Path, state: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("milk")
    failed = run(
        "ask", "--model", f"{lab.base_url}#reads", "--tools", "math", "--files", str(notes), "What does it say?"
    )
    assert "← milk" in failed.stderr
    (file,) = state.iterdir()
    done = run("resume", "--json", str(file))
    assert json.loads(done.stdout)["tools"] == ["calculator", "list_files", "read_file", "search_files"]
    wrong = run("ask", "--files", "/nowhere/at/all", "Hi")
    assert wrong.returncode in (1, 2)
    assert "Traceback" not in wrong.stderr


# --- check ---------------------------------------------------------------------------------


def test_check_says_what_is_wrong_and_what_the_tools_may_do(run: Run, write: Any, lab: LabServer) -> None:
    mcp = {"command": "python", "args": ["-m", "mcp_server_time"]}
    file = write("adds", toolboxes=["math", "mcp"], mcp=mcp, max_iteration=4)
    done = run("persona", "check", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"warning $[\"{ENGINE}\"].max_iteration: there is no key 'max_iteration'; did you mean 'max_iterations'?",
        "Ada can be used.",
        f"Model {lab.base_url}#adds: sends the conversation to {lab.base_url.split('/')[2]}.",
        "At most 10 model calls and 64 tool calls a turn.",
        "Tools",
        "  math: computes",
        "    calculator: effect none",
        "  time: starts the program python -m mcp_server_time, which may do whatever you may",
        "    its tools are known when it runs",
    ]


def test_check_ends_with_1_where_there_is_a_problem(run: Run, write: Any, tmp_path: Path) -> None:
    done = run("persona", "check", write("adds", toolboxes=["maths"]))
    assert done.returncode == 1
    assert "problem" in done.stdout
    assert done.stdout.endswith("can not be used.\n")
    broken = tmp_path / "broken.json"
    broken.write_text('{"name":')
    done = run("persona", "check", "--json", str(broken))
    assert done.returncode == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["level"], finding["line"], finding["column"]) == ("problem", 1, 9)


def test_check_as_json_holds_everything(run: Run, write: Any) -> None:
    document = json.loads(run("persona", "check", "--json", write("adds", toolboxes=["math"])).stdout)
    assert (document["ok"], document["name"], document["dialect"]) == (True, "Ada", "native")
    assert document["limits"]["iterations"] == 10
    assert document["abilities"] == [
        {"name": "math", "may": "computes", "tools": [{"name": "calculator", "effect": "none", "approval": "never"}]}
    ]


def test_check_names_a_plugin_that_fails_and_goes_on(run: Run, write: Any, tmp_path: Path, env: dict[str, str]) -> None:
    site = tmp_path / "site"
    install(site, "good-pack", TOOLS, toolboxes={"good": "tools"})
    install(site, "bad-pack", "import nothing_of_this_name", toolboxes={"bad": "tools"})
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    done = run("persona", "check", "--json", write("adds", toolboxes=["bad", "good"]), PYTHONPATH=path)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    (finding,) = document["findings"]
    assert finding["place"] == f'$["{ENGINE}"].toolboxes[0]'
    assert "of the package bad-pack can not be imported: ModuleNotFoundError" in finding["text"]
    assert [ability["may"] for ability in document["abilities"]] == ["runs the code of the package good-pack 1.0"]
