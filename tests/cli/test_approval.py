"""Calls that wait for approval: asked in place at a terminal, saved without one, decided on the command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn.conformance.replies import Call, Chat
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer

from ..plugins.packages import install
from .conftest import Run
from .terminal import CTRL_C, ENTER, PROMPT, Terminal

TOOLS = """
import os
from toolturn import tool

@tool(approval=True)
def pay(to: str, euros: int = 1) -> str:
    \"\"\"Pay somebody.\"\"\"
    with open(os.environ["PAID"], "a") as file:
        file.write(f"{to} {euros}\\n")
    print("from the tool")
    return f"paid {to}"

def tools(**config):
    return [pay]
"""

_ONE = Chat(None, (Call("pay", '{"to": "Ada", "euros": 5}', "call_a"),), "tool_calls")
_TWO = Chat(None, (Call("pay", '{"to": "Ada"}', "call_a"), Call("pay", '{"to": "Bob"}', "call=b")), "tool_calls")
ROWS = [Fault("one", "", (_ONE, Chat("Done.")), ()), Fault("two", "", (_TWO, Chat("Done.")), ())]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LabServer(ROWS) as lab:
        yield lab.base_url


@pytest.fixture
def env(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The command line with a tool that wants approval, which writes down whom it paid."""
    install(tmp_path / "site", "bank-pack", TOOLS, toolboxes={"bank": "tools"})
    path = os.pathsep.join(filter(None, (str(tmp_path / "site"), env.get("PYTHONPATH"))))
    # the key tells the server whose replies it gives out
    return {**env, "PYTHONPATH": path, "PAID": str(tmp_path / "paid"), "TOOLTURN_API_KEY": tmp_path.name}


@pytest.fixture
def paid(tmp_path: Path) -> Any:
    """Whom the tool paid, in order."""
    file = tmp_path / "paid"
    return lambda: file.read_text().splitlines() if file.exists() else []


def ask(run: Run, address: str, row: str, *more: str) -> Any:
    return run("ask", "--model", f"{address}#{row}", "--tools", "bank", *more, "Pay!")


def saved(state: Path) -> str:
    (file,) = state.iterdir()
    return str(file)


def test_without_a_terminal_the_turn_is_saved_and_says_how_to_go_on(
    run: Run, address: str, state: Path, paid: Any
) -> None:
    done = ask(run, address, "one")
    assert (done.returncode, done.stdout, paid()) == (1, "", [])
    file = saved(state)
    assert "Error: calls wait for approval: pay." in done.stderr
    assert '  ? t1.0  pay {"to": "Ada", "euros": 5}' in done.stderr
    assert f"'toolturn resume {file}' asks at a terminal, with --approve-all it lets them run" in done.stderr

    again = run("resume", file)
    assert again.returncode == 1
    assert again.stderr == (
        "Error: a call waits for approval: t1.0 (pay); give --approve-all, or --approve or --deny with a name\n"
    )
    assert Path(file).exists()

    done = run("resume", "--approve-all", file)
    assert (done.returncode, done.stdout, paid()) == (0, "Done.\n", ["Ada 5"])
    assert not Path(file).exists()


def test_what_a_tool_prints_does_not_mix_with_the_answer(run: Run, address: str, state: Path) -> None:
    ask(run, address, "one")
    done = run("resume", "--json", "--approve-all", saved(state))
    assert json.loads(done.stdout)["content"] == "Done."
    assert "from the tool" in done.stderr
    talked = run("chat", "--model", f"{address}#two", "--tools", "bank", "--quiet", given="Pay!\ny\ny\n")
    assert (talked.returncode, talked.stdout) == (0, "Done.\n")
    assert "from the tool" in talked.stderr


@pytest.mark.parametrize("name", ["call_a", "t1.0", "a1.0"])
def test_a_call_is_named_by_its_id_or_its_operation(run: Run, address: str, state: Path, paid: Any, name: str) -> None:
    ask(run, address, "two")
    first = run("resume", "--approve", name, saved(state))
    assert (first.returncode, paid()) == (1, []), "of a batch nothing runs before all is decided"
    assert "  ? t1.1  pay" in first.stderr
    assert "t1.0" not in first.stderr, "what was decided is kept"
    done = run("resume", "--approve", "call=b", saved(state))
    assert (done.returncode, paid()) == (0, ["Ada 1", "Bob 1"])


@pytest.mark.parametrize(
    ("denied", "told"),
    [
        ("call_a", "the user did not allow it"),
        ("call_a=too much = never", "the user did not allow it: too much = never"),
        ("t1.0=", "the user did not allow it"),
    ],
)
def test_a_denial_is_told_to_the_model_with_its_reason(
    run: Run, address: str, state: Path, paid: Any, denied: str, told: str
) -> None:
    ask(run, address, "two")
    done = run("resume", "--json", "--deny", denied, "--approve", "t1.1", saved(state))
    assert (done.returncode, paid()) == (0, ["Bob 1"])
    first, second = json.loads(done.stdout)["tool_calls"]
    assert (first["status"], second["status"]) == ("denied", "ok")
    assert json.loads(first["message"]["content"])["detail"] == told


def test_all_may_run_but_the_denied(run: Run, address: str, state: Path, paid: Any) -> None:
    ask(run, address, "two")
    done = run("resume", "--approve-all", "--deny", "call=b=no", saved(state))
    assert (done.returncode, paid()) == (0, ["Ada 1"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--approve", "call_x"), "no call waits as 'call_x'; these wait: t1.0 (pay), t1.1 (pay)"),
        (("--deny", "call_x=no"), "no call waits as 'call_x'"),
        (("--approve", "call_a", "--deny", "t1.0"), "about t1.0 something was decided already"),
    ],
)
def test_a_decision_that_fits_no_call_is_wrong_usage(
    run: Run, address: str, state: Path, paid: Any, options: tuple[str, ...], words: str
) -> None:
    ask(run, address, "two")
    done = run("resume", *options, saved(state))
    assert (done.returncode, paid()) == (2, [])
    assert words in done.stderr


def test_a_decision_where_nothing_waits_is_wrong_usage(run: Run, address: str, state: Path) -> None:
    run("ask", "--model", f"{address}#nothing", "--tools", "none", "Hello?")
    for options in (["--approve-all"], ["--approve", "t1.0"]):
        done = run("resume", *options, saved(state))
        assert done.returncode == 2
        assert "waits" in done.stderr


def test_programs_get_the_calls_as_data(run: Run, address: str, state: Path, paid: Any) -> None:
    call = {"op": "t1.0", "id": "call_a", "name": "pay", "arguments": '{"to": "Ada", "euros": 5}'}
    done = ask(run, address, "one", "--json")
    for result in (done, run("resume", "--json", saved(state))):
        document = json.loads(result.stdout)
        assert (result.returncode, document["ok"], document["class"]) == (1, False, "ToolLoopApprovalRequired")
        assert document["pending"] == [call]
        assert document["saved"] == saved(state)
    assert paid() == []


# --- at a terminal -------------------------------------------------------------------------

terminal_only = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")


@terminal_only
def test_at_a_terminal_ask_asks_in_place(env: dict[str, str], address: str, paid: Any, state: Path) -> None:
    command = ["-m", "toolturn.cli", "ask", "--model", f"{address}#one", "--tools", "bank", "Pay!"]
    with Terminal(command, env) as terminal:
        terminal.wait_for('? pay {"to": "Ada", "euros": 5}')
        terminal.wait_for(PROMPT)
        terminal.type("y" + ENTER)
        terminal.wait_for("paid Ada")
        terminal.wait_for("Done.")
        assert terminal.end() == 0
    assert paid() == ["Ada 5"]
    assert not state.exists()


@terminal_only
def test_at_a_terminal_resume_asks_about_what_is_not_decided(
    env: dict[str, str], run: Run, address: str, paid: Any, state: Path
) -> None:
    ask(run, address, "two")
    command = ["-m", "toolturn.cli", "resume", "--approve", "call_a", saved(state)]
    with Terminal(command, env) as terminal:
        terminal.wait_for('? pay {"to": "Bob"}')
        terminal.wait_for(PROMPT)
        terminal.type("not him" + ENTER)
        terminal.wait_for("Done.")
        assert terminal.end() == 0
        assert '? pay {"to": "Ada"}' not in terminal.screen
    assert paid() == ["Ada 1"]


@terminal_only
def test_ctrl_c_at_the_question_saves_the_turn_and_it_is_asked_again(
    env: dict[str, str], run: Run, address: str, paid: Any, state: Path
) -> None:
    command = ["-m", "toolturn.cli", "ask", "--model", f"{address}#one", "--tools", "bank", "Pay!"]
    with Terminal(command, env) as terminal:
        terminal.wait_for("? pay")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_C)
        terminal.wait_for("interrupted")
        assert terminal.end() == 130
    assert paid() == []
    with Terminal(["-m", "toolturn.cli", "resume", saved(state)], env) as terminal:
        terminal.wait_for("? pay")
        terminal.wait_for(PROMPT)
        terminal.type("yes" + ENTER)
        terminal.wait_for("Done.")
        assert terminal.end() == 0
    assert paid() == ["Ada 5"]
