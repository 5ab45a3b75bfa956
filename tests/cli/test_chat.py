"""``toolturn chat`` with lines from a program: what it says, what it saves, and what it survives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn.conformance.replies import Http, Reply, asks, call, says
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer

from .conftest import Run

TOO_LONG = Http(400, {"error": {"message": "maximum context length is 4096 tokens", "code": "context_length_exceeded"}})
ADD = call("calculator", {"expression": "2 + 2"})


def row(name: str, *replies: Reply) -> Fault:
    return Fault(name, "", replies, ())


ROWS = [
    row("talk", says("one"), says("two"), says("three")),
    row("adds", asks(ADD), says("four"), says("more")),
    row("full", TOO_LONG, says("it fits"), says("and goes on")),
    row("fills", asks(ADD), TOO_LONG, says("four")),
    row("full for good", TOO_LONG),
    row("refuses once", Http(400, {"error": {"message": "no"}}), says("yes")),
    row("never ends", asks(ADD)),
    row("digs", asks(call("dig", {"depth": 3})), says("it is left")),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[LabServer]:
    with LabServer(ROWS) as server:
        yield server


class Talk:
    """Conversations of one test with the server's models."""

    def __init__(self, lab: LabServer, run: Run, key: str) -> None:
        self._lab = lab
        self._run = run
        self.key = key

    def __call__(self, name: str, *options: str, given: str) -> subprocess.CompletedProcess[str]:
        return self._run("chat", "--model", self.model(name), *options, given=given, TOOLTURN_API_KEY=self.key)

    def documents(self, name: str, *options: str, given: str) -> list[dict[str, Any]]:
        done = self(name, "--json", *options, given=given)
        assert done.stderr == ""
        return [json.loads(line) for line in done.stdout.splitlines()]

    def model(self, name: str) -> str:
        return f"{self._lab.base_url}#{name}"

    def sent(self, name: str) -> list[list[tuple[str, str]]]:
        """What the model was shown, request by request."""
        requests = self._lab.received(name, self.key)
        assert [request.faults for request in requests] == [()] * len(requests)
        return [[(m["role"], m["content"]) for m in request.messages] for request in requests]


@pytest.fixture
def talk(lab: LabServer, run: Run, tmp_path: Path) -> Talk:
    return Talk(lab, run, tmp_path.name)


# --- a conversation --------------------------------------------------------------------


def test_each_line_is_a_message_of_one_conversation_and_standard_output_holds_the_answers_alone(talk: Talk) -> None:
    done = talk("talk", "--tools", "none", given="first\r\n\n  \nsecond")
    assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
    assert talk.sent("talk") == [
        [("user", "first")],
        [("user", "first"), ("assistant", "one"), ("user", "second")],
    ]
    assert "\x1b" not in done.stdout + done.stderr


def test_calls_are_shown_on_standard_error(talk: Talk) -> None:
    done = talk("adds", given="2 + 2?\n/audit\n")
    assert done.stdout == "four\n"
    assert '→ calculator {"expression": "2 + 2"}' in done.stderr
    assert "t1.0  ok" in done.stderr
    assert talk("adds", "-q", given="2 + 2?\n").stderr == ""


def test_json_is_one_document_for_each_line_with_what_is_new_in_it(talk: Talk) -> None:
    first, audit, second = talk.documents("adds", given="2 + 2?\n/audit\nand?\n")
    assert (first["ok"], first["content"], first["iterations"]) == (True, "four", 2)
    assert [message["role"] for message in first["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert first["tool_calls"][0]["message"]["content"] == "4"
    assert first["usage"]["input"] == 20
    assert (audit["ok"], audit["command"], audit["data"]) == (True, "/audit", first["tool_calls"])
    assert [message["content"] for message in second["messages"]] == ["and?", "more"]
    assert second["tool_calls"] == []


def test_lines_that_are_no_text_are_read_all_the_same(lab: LabServer, env: dict[str, str], talk: Talk) -> None:
    command = [sys.executable, "-m", "toolturn.cli", "chat", "--model", talk.model("talk"), "--tools", "none"]
    given = b"\xff\xfe" + "ü".encode() + b"\n"
    done = subprocess.run(
        command, input=given, capture_output=True, env={**env, "TOOLTURN_API_KEY": talk.key}, timeout=60, check=False
    )
    assert done.stdout == b"one\n"
    assert talk.sent("talk") == [[("user", "\ufffd\ufffdü")]]


def test_without_any_line_there_is_nothing_to_do(talk: Talk) -> None:
    done = talk("talk", given="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("shell", "code", "says"),
    [
        ("{} <&-", 2, "standard input is closed"),
        ("echo first | {} >&-", 0, ""),
        ("(echo first; echo second) | {} | head -c 0", 0, ""),
    ],
)
def test_streams_that_are_closed_are_no_tracebacks(
    env: dict[str, str], talk: Talk, shell: str, code: int, says: str
) -> None:
    command = f"{sys.executable} -m toolturn.cli chat -q --tools none --model '{talk.model('talk')}'"
    done = subprocess.run(
        ["sh", "-c", shell.format(command)], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


# --- what goes wrong -------------------------------------------------------------------


def test_an_error_is_one_sentence_and_the_conversation_goes_on(talk: Talk) -> None:
    done = talk("refuses once", "-q", "--tools", "none", given="first\nsecond\n")
    assert done.stdout == "yes\n"
    assert done.stderr.startswith("Error: the model failed: ")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1, "a question was not answered"
    assert talk.sent("refuses once")[1] == [("user", "first\n\nsecond")]


def test_a_question_that_is_asked_again_is_not_doubled(talk: Talk) -> None:
    talk("refuses once", "--tools", "none", given="again\nagain\n")
    assert talk.sent("refuses once")[1] == [("user", "again")]


def test_a_server_that_is_gone_is_one_sentence(run: Run) -> None:
    done = run("chat", "-q", "--tools", "none", "--model", "http://127.0.0.1:9/v1#m", given="hello\n/audit\n")
    error, audit = done.stderr.splitlines()
    assert error.startswith("Error: ")
    assert audit == "the last turn called no tools"
    assert done.returncode == 1


def test_a_limit_is_one_sentence_and_what_ran_stays_in_the_conversation(talk: Talk) -> None:
    options = ["--tools", "math", "--max-iterations", "1", "--on-limit", "raise"]
    failed, undone = talk.documents("never ends", *options, given="2 + 2?\n/undo\n")
    assert (failed["ok"], failed["class"]) == (False, "ToolLoopIterationLimitError")
    assert failed["message"] == "model did not produce a final answer within 1 iterations"
    assert [message["role"] for message in failed["messages"]] == ["user", "assistant", "tool"]
    assert "state" not in failed
    assert (undone["ok"], undone["text"]) == (True, "undone: 2 + 2?")


def test_an_interrupted_turn_is_told_and_the_next_line_goes_on(lab: LabServer, env: dict[str, str], talk: Talk) -> None:
    program = Path(__file__).with_name("slow_chat.py")
    command = [sys.executable, str(program), "chat", "--tools", "slow", "--model", talk.model("digs")]
    process = subprocess.Popen(
        command, stdin=-1, stdout=-1, stderr=-1, text=True, env={**env, "TOOLTURN_API_KEY": talk.key}
    )
    try:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("dig\n")
        process.stdin.flush()
        line = ""
        while "digging" not in line:
            line = process.stderr.readline()
            assert line, "the tool began"
        process.send_signal(signal.SIGINT)
        while "Stopped" not in line:
            line = process.stderr.readline()
            assert line, "it is told"
        stdout, stderr = process.communicate("leave it\n", timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert stdout == "it is left\n"
    assert talk.sent("digs")[1][-1] == ("user", "leave it")
    assert "Traceback" not in stderr
    assert process.returncode == 1, "a question was not answered"


def test_an_interrupt_while_a_line_is_waited_for_ends_the_program(
    lab: LabServer, env: dict[str, str], talk: Talk
) -> None:
    command = [sys.executable, "-m", "toolturn.cli", "chat", "--json", "--model", talk.model("talk")]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True, env=env)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("/tools\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        # standard input stays open: nothing may wait for it
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


# --- commands --------------------------------------------------------------------------


def test_a_saved_conversation_is_what_messages_and_load_read(talk: Talk, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text("older")
    file.chmod(0o644)
    talk("talk", "--tools", "none", "--system", "Be brief.", given=f"first\n/save {file}\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"], "nothing is left beside it"

    talk("talk", "--tools", "none", "--messages", str(file), "--system", "Be kind.", given="second\n")
    talk("talk", "--tools", "none", given=f"forgotten\n/load {file}\nthird\n")
    before = [("user", "first"), ("assistant", "one")]
    requests = talk.sent("talk")
    assert requests[1] == [("system", "Be kind."), *before, ("user", "second")]
    assert requests[3] == [("system", "Be brief."), *before, ("user", "third")]


def test_undo_removes_the_last_exchange_whole(talk: Talk) -> None:
    given = "2 + 2?\n/undo\nfirst\nsecond\n/undo\n/undo\n/undo\n"
    documents = talk.documents("adds", given=given)
    assert [d["text"] for d in documents if d.get("command")] == [
        "undone: 2 + 2?",
        "undone: second",
        "undone: first",
        "there is nothing to undo",
    ]
    assert documents[-1]["ok"] is False
    assert talk.sent("adds")[2] == [("user", "first")]


def test_the_system_message_is_set_and_replaced(talk: Talk) -> None:
    given = "/system\n/system Be brief.\nfirst\n/system Be kind.\n/system\nsecond\n"
    documents = talk.documents("talk", "--tools", "none", given=given)
    assert [d["data"] if "data" in d else d["text"] for d in documents if d.get("command")] == [
        "there is no system message",
        "Be brief.",
        "Be kind.",
        "Be kind.",
    ]
    first, second = talk.sent("talk")
    assert first[0] == ("system", "Be brief.")
    assert [entry for entry in second if entry[0] == "system"] == [("system", "Be kind.")]


def test_another_model_goes_on_with_the_same_conversation(talk: Talk) -> None:
    other = talk.model("refuses once")
    given = f"first\n/model\n/model nowhere:x\n/model {other}\nsecond\n"
    documents = talk.documents("talk", "--tools", "none", given=given)
    assert documents[1]["data"] == talk.model("talk")
    assert documents[2]["ok"] is False
    assert "there is no server 'nowhere'" in documents[2]["text"]
    assert documents[4]["model"] == other
    assert talk.sent("refuses once") == [[("user", "first"), ("assistant", "one"), ("user", "second")]]


def test_tools_and_help_list_what_there_is(talk: Talk) -> None:
    tools, none, told = (
        *talk.documents("talk", "--tools", "math", given="/tools\n"),
        *talk.documents("talk", "--tools", "none", given="/tools\n/help\n"),
    )
    assert (tools["data"], none["text"]) == (["calculator"], "there are no tools")
    for command in ("/save FILE", "/load FILE", "/tools", "/undo", "/audit", "/model NAME", "/system TEXT"):
        assert f"{command} " in told["text"]


def test_what_can_not_be_done_is_told_in_one_sentence_each(talk: Talk) -> None:
    told = {
        "/tool": "there is no /tool (did you mean /tools?); /help lists the commands",
        "/etc/hosts": "there is no /etc/hosts; /help lists the commands, // begins a message with /",
        "/": "there is no /;",
        "/save": "/save needs a file",
        "/load": "/load needs a file",
        "/save /nowhere/x.json": "/nowhere/x.json can not be written: No such file or directory",
        "/load /nowhere/x.json": "/nowhere/x.json can not be read: No such file or directory",
        "/save /": "can not be written",
        "/load /": "can not be read",
        "/save a\0b": "can not be written",
        "/load a\0b": "can not be read",
        "/save ~nobody-of-this-name/x": "can not be written",
        "/load ~nobody-of-this-name/x": "can not be read",
    }
    done = talk("talk", "--tools", "none", given="".join(f"{line}\n" for line in told))
    for words, line in zip(told.values(), done.stderr.splitlines(), strict=True):
        assert words in line
    assert (done.stdout, done.returncode) == ("", 0)


def test_two_slashes_begin_a_message_with_one(talk: Talk) -> None:
    talk("talk", "--tools", "none", given="//etc/hosts is what?\n")
    assert talk.sent("talk") == [[("user", "/etc/hosts is what?")]]


@pytest.mark.parametrize("word", ["/quit", "/exit"])
def test_a_word_leaves_before_the_lines_end(talk: Talk, word: str) -> None:
    assert talk("talk", "--tools", "none", given=f"first\n{word}\nsecond\n").stdout == "one\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"nonsense", "the messages are not JSON"),
        (b'[{"role": "tool", "content": "x", "tool_call_id": "a"}]', "message 0: a tool message that answers no"),
        (b'[{"role": "user", "content": "\xff"}]', "no text in UTF-8"),
    ],
)
def test_a_conversation_that_can_not_be_used_is_named_and_the_one_there_is_stays(
    talk: Talk, tmp_path: Path, content: bytes, says: str
) -> None:
    file = tmp_path / "talk.json"
    file.write_bytes(content)
    done = talk("talk", "-q", "--tools", "none", given=f"first\n/load {file}\nsecond\n")
    assert says in done.stderr
    assert len(talk.sent("talk")[1]) == 3
    started = talk("talk", "--messages", str(file), given="first\n")
    assert (started.returncode, started.stderr.count("\n")) == (1, 1)
    assert says in started.stderr


@pytest.mark.parametrize(
    "option", [("--max-iterations", "0"), ("--timeout", "0"), ("--messages", "-"), ("--tools", "x"), ("more",)]
)
def test_wrong_usage_has_its_own_exit_code(run: Run, option: tuple[str, ...]) -> None:
    done = run("chat", "--model", "http://127.0.0.1:9/v1#m", *option, given="")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


# --- the window ------------------------------------------------------------------------

STORY = "Once upon a time there was a very long story. " * 20


def test_where_the_window_is_full_the_older_half_is_left_out_and_the_model_asked_once_more(
    talk: Talk, tmp_path: Path
) -> None:
    file = tmp_path / "talk.json"
    older = [{"role": role, "content": f"{number}: {STORY}"} for number in range(4) for role in ("user", "assistant")]
    file.write_text(json.dumps([{"role": "system", "content": "Be brief."}, *older]))
    again = tmp_path / "again.json"
    done = talk("full", "--tools", "none", "--messages", str(file), given=f"now\nand now?\n/save {again}\n")
    assert done.stdout == "it fits\nand goes on\n"
    assert "6 older messages are not shown to it" in done.stderr
    whole, half, after = talk.sent("full")
    assert len(whole) == 10
    assert half == [whole[0], *whole[7:]], "the system message and the newest"
    assert after[: len(half)] == half, "the beginning stays as it was"
    assert len(json.loads(again.read_text())) == 13, "the conversation itself loses nothing"


def test_calls_that_ran_before_the_window_was_full_do_not_run_again(talk: Talk, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"role": "user", "content": STORY}, {"role": "assistant", "content": STORY}]))
    options = ["--tools", "math", "--messages", str(file), "--max-tool-calls", "1"]
    (document,) = talk.documents("fills", *options, given="2 + 2?\n")
    assert (document["ok"], document["content"], document["left_out"]) == (True, "four", 2)
    assert [record["op"] for record in document["tool_calls"]] == ["t1.0"]
    assert document["iterations"] == 2
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [role for role, _ in talk.sent("fills")[2]] == ["user", "assistant", "tool"]


def test_a_message_that_does_not_fit_by_itself_is_one_sentence(talk: Talk) -> None:
    done = talk("full for good", "-q", "--tools", "none", given="first\n")
    assert done.stderr.count("\n") == 1
    assert "too small a window" in done.stderr
    assert len(talk.sent("full for good")) == 1


def test_it_is_asked_only_once_more(talk: Talk, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"role": "user", "content": STORY}, {"role": "assistant", "content": STORY}]))
    done = talk("full for good", "-q", "--tools", "none", "--messages", str(file), given="first\n")
    assert done.stderr.count("\n") == 1
    assert len(talk.sent("full for good")) == 2


# --- what it costs ---------------------------------------------------------------------


def test_lines_from_a_program_and_help_do_not_load_the_editor() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from toolturn.cli.commands import toolturn\n"
        "assert CliRunner().invoke(toolturn, ['chat', '--help']).exit_code == 0\n"
        "print([name for name in sys.modules if name.startswith('prompt_toolkit')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the embedded model ----------------------------------------------------------------


@pytest.mark.model
@pytest.mark.timeout(200)
def test_the_embedded_model_remembers_and_calls_tools(run: Run) -> None:
    from toolturn.local.weights import WeightsError, find

    try:
        find()
    except WeightsError as exc:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(exc))
    with contextlib.suppress(KeyError):
        del os.environ["TOOLTURN_API_KEY"]
    done = run("chat", "--json", "--tools", "math", given="What is 17 * 24?\nMy name is Ada.\nWhat is my name?\n")
    first, _, last = (json.loads(line) for line in done.stdout.splitlines())
    assert first["tool_calls"][0]["message"]["content"] == "408"
    assert "408" in first["content"]
    assert "Ada" in last["content"]
    assert done.returncode == 0
