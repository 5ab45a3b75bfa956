"""``toolturn chat`` at a real pseudo terminal: editing, history, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import json
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolturn.conformance.replies import Events, Reply, asks, call, says
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer
from toolturn.conformance.wire import delta

from .terminal import BOUND, CTRL_C, CTRL_D, ENTER, ESCAPE, LEFT, PROMPT, TAB, UP, Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")

SLOW = str(Path(__file__).with_name("slow_chat.py"))


def row(name: str, *replies: Reply) -> Fault:
    return Fault(name, "", replies, ())


ROWS = [
    row("talk", says("the first answer"), says("the second answer"), says("the third answer")),
    row("stalls", Events((delta(content="It was a dark"),), done=False, ending="stall"), says("the night is over")),
    row("digs", asks(call("dig", {"depth": 3})), says("the hole is left")),
    row("adds", asks(call("calculator", {"expression": "2 + 2"})), says("four\x1b]0;title\x07 it is")),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[LabServer]:
    with LabServer(ROWS) as server:
        yield server


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The name of this run at the server."""
    return tmp_path.name


def chat(lab: LabServer, env: dict[str, str], key: str, name: str, *options: str, program: str = "") -> Terminal:
    command = [program] if program else ["-m", "toolturn.cli"]
    model = f"{lab.base_url}#{name}"
    return Terminal([*command, "chat", "--model", model, *options], {**env, "TOOLTURN_API_KEY": key})


def sent(lab: LabServer, name: str, key: str) -> list[list[tuple[str, str]]]:
    """What the model was shown, request by request."""
    return [[(m["role"], m["content"]) for m in request.messages] for request in lab.received(name, key)]


def test_a_conversation_goes_back_and_forth_until_ctrl_d(lab: LabServer, env: dict[str, str], key: str) -> None:
    with chat(lab, env, key, "talk", "--tools", "none") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("one" + ENTER)
        terminal.wait_for("the first answer\n")
        terminal.wait_for(PROMPT)
        terminal.type("two" + ENTER)
        terminal.wait_for("the second answer\n")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert sent(lab, "talk", key)[1] == [("user", "one"), ("assistant", "the first answer"), ("user", "two")]
    assert "Traceback" not in terminal.screen


def test_a_line_is_edited_and_earlier_ones_come_back(
    lab: LabServer, env: dict[str, str], key: str, state: Path
) -> None:
    with chat(lab, env, key, "talk", "--tools", "none") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("helo" + LEFT + "l" + ENTER)
        terminal.wait_for("the first answer\n")
        terminal.wait_for(PROMPT)
        terminal.type(UP + " again" + ENTER)
        terminal.wait_for("the second answer\n")
        terminal.wait_for(PROMPT)
        terminal.type("two" + ESCAPE + ENTER + "lines" + ENTER)
        terminal.wait_for("the third answer\n")
        terminal.wait_for(PROMPT)
        terminal.type("/qu" + TAB + ENTER)
        assert terminal.end() == 0
    said = [message for request in sent(lab, "talk", key) for message in request[-1:]]
    assert said == [("user", "hello"), ("user", "hello again"), ("user", "two\nlines")]
    assert stat.S_IMODE((state / "chat-history").stat().st_mode) == 0o600

    with chat(lab, env, f"{key}-later", "talk", "--tools", "none") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type(UP * 4 + ENTER)
        terminal.wait_for("the first answer\n")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert sent(lab, "talk", f"{key}-later") == [[("user", "hello again")]], (
        "before it came a message of two lines and /quit"
    )


def test_calls_are_shown_as_they_run_and_no_model_moves_the_cursor(
    lab: LabServer, env: dict[str, str], key: str
) -> None:
    with chat(lab, env, key, "adds") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("2 + 2?" + ENTER)
        terminal.wait_for('→ calculator {"expression": "2 + 2"}')
        terminal.wait_for("← 4")
        terminal.wait_for("four␛]0;title␇ it is\n")
        terminal.wait_for(PROMPT)
        terminal.type("/audit" + ENTER)
        terminal.wait_for("t1.0  ok")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_ctrl_c_stops_an_answer_in_the_middle_and_the_conversation_goes_on(
    lab: LabServer, env: dict[str, str], key: str
) -> None:
    with chat(lab, env, key, "stalls", "--tools", "none") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("a story" + ENTER)
        terminal.wait_for("It was a dark")
        terminal.type(CTRL_C)
        terminal.wait_for("Stopped.\n")
        terminal.wait_for(PROMPT)
        terminal.type("shorter" + ENTER)
        terminal.wait_for("the night is over\n")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    requests = lab.received("stalls", key)
    assert [request.faults for request in requests] == [(), ()]
    assert sent(lab, "stalls", key)[1] == [("user", "a story\n\nshorter")], "no two messages of the user in a row"
    assert "Traceback" not in terminal.screen


def test_ctrl_c_stops_a_running_tool_and_its_call_is_closed(
    lab: LabServer, env: dict[str, str], key: str, tmp_path: Path
) -> None:
    file = tmp_path / "talk.json"
    with chat(lab, env, key, "digs", "--tools", "slow", program=SLOW) as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("dig" + ENTER)
        terminal.wait_for("· digging")
        terminal.type(CTRL_C)
        terminal.wait_for("Stopped.\n")
        terminal.wait_for(PROMPT)
        terminal.type("/audit" + ENTER)
        terminal.wait_for("t1.0  cancelled")
        terminal.wait_for(PROMPT)
        terminal.type("leave it" + ENTER)
        terminal.wait_for("the hole is left\n")
        terminal.wait_for(PROMPT)
        terminal.type(f"/save {file}" + ENTER)
        terminal.wait_for("5 messages saved")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert [request.faults for request in lab.received("digs", key)] == [(), ()]
    messages = json.loads(file.read_text())
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert json.loads(messages[2]["content"])["error"] == "cancelled"


def test_ctrl_c_at_the_prompt_says_how_to_leave_and_a_second_one_leaves(
    lab: LabServer, env: dict[str, str], key: str
) -> None:
    with chat(lab, env, key, "talk", "--tools", "none") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("not this" + CTRL_C)
        terminal.wait_for("Ctrl-C again, or Ctrl-D, leaves.")
        terminal.wait_for(PROMPT)
        terminal.type("but this" + ENTER)
        terminal.wait_for("the first answer\n")
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_C)
        terminal.wait_for("Ctrl-C again, or Ctrl-D, leaves.")
        terminal.wait_for(PROMPT)
        terminal.process.send_signal(signal.SIGINT)  # from elsewhere it means the same
        assert terminal.end() == 0
    assert sent(lab, "talk", key) == [[("user", "but this")]]


def test_a_terminal_that_is_gone_ends_the_conversation(lab: LabServer, env: dict[str, str], key: str) -> None:
    with chat(lab, env, key, "talk") as terminal:
        terminal.wait_for(PROMPT)
        terminal.hang_up()
        assert terminal.process.wait(BOUND) == -signal.SIGHUP


def test_without_its_library_one_sentence_says_how_to_get_it(
    lab: LabServer, env: dict[str, str], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.modules['prompt_toolkit'] = None\nfrom toolturn.cli import main\nmain()\n")
    with chat(lab, env, "key", "talk", program=str(program)) as terminal:
        assert terminal.end() == 1
    assert terminal.screen == "Error: chat at a terminal needs prompt_toolkit: pip install 'toolturn[cli]'\n"
