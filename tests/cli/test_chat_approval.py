"""How somebody in a conversation decides whether a call may run."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from toolturn import Limits, ToolCall, ToolSet, tool
from toolturn.cli.chatting import Chat
from toolturn.cli.piped import PipedLines
from toolturn.testing import ScriptedModel, calls

from .terminal import BOUND, CTRL_C, CTRL_D, ENTER, PROMPT, UP, Terminal

CALL = ToolCall("a", "pay", '{"to": "Ada",\n "amount": 5}')
DENIED = "the user did not allow it"


def decide(answer: bytes, *, as_json: bool = False) -> str | None:
    async def main() -> str | None:
        chat = Chat(ScriptedModel([]), "model", ToolSet(), limits=Limits(), as_json=as_json)
        read, write = os.pipe()
        os.write(write, answer)
        os.close(write)
        try:
            chat.lines = PipedLines(read)
            async with asyncio.timeout(BOUND):
                return await chat.decide(CALL)
        finally:
            os.close(read)

    return asyncio.run(main())


@pytest.mark.parametrize("answer", [b"y\n", b" YES \r\n", b"y"])
def test_only_a_plain_yes_allows_a_call(answer: bytes) -> None:
    assert decide(answer) is None


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"No\n", b""])
def test_everything_else_does_not_and_neither_does_silence(answer: bytes) -> None:
    assert decide(answer) == DENIED


def test_a_reason_is_passed_on() -> None:
    assert decide(b"yes, but pay Bob\n") == f"{DENIED}: yes, but pay Bob"


@pytest.mark.parametrize(
    ("answer", "ran", "status"), [(b"y\n", ["Ada"], "ok"), (b"no, too much\n", [], "denied")], ids=["yes", "no"]
)
def test_a_tool_that_wants_approval_runs_in_a_conversation_only_after_a_yes(
    answer: bytes, ran: list[str], status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paid: list[str] = []

    @tool(approval=True)
    async def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return "paid"

    async def main() -> Chat:
        model = ScriptedModel([calls(("pay", '{"to": "Ada"}')), "Done."])
        chat = Chat(model, "model", ToolSet([pay]), limits=Limits())
        read, write = os.pipe()
        os.write(write, answer)
        os.close(write)
        try:
            chat.lines = PipedLines(read)
            async with asyncio.timeout(BOUND):
                await chat.ask("Pay Ada.")
        finally:
            os.close(read)
        return chat

    chat = asyncio.run(main())
    assert paid == ran
    assert [record.status for record in chat.records] == [status]
    assert "Done." in capsys.readouterr().out


def test_where_nobody_can_be_asked_nothing_is_allowed() -> None:
    chat = Chat(ScriptedModel([]), "model", ToolSet(), limits=Limits())
    assert asyncio.run(chat.decide(CALL)) == DENIED


def test_the_whole_call_is_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    decide(b"y\n")
    told = capsys.readouterr()
    assert told.err == '  ? pay {"to": "Ada", "amount": 5}\n  may it run? [y/N, or why not] \n'
    assert told.out == ""


def test_and_to_programs_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert decide(b"y\n", as_json=True) is None
    told = capsys.readouterr()
    assert json.loads(told.out) == {
        "kind": "approval",
        "call": {"id": "a", "name": "pay", "arguments": CALL.arguments},
    }
    assert told.err == ""


_PROGRAM = """
import asyncio, sys
from pathlib import Path
from toolturn import Limits, ToolCall, ToolSet, tool
from toolturn.cli.chatting import Chat
from toolturn.cli.typed import TypedLines
from toolturn.testing import ScriptedModel, calls

async def main():
    chat = Chat(ScriptedModel([]), "model", ToolSet(), limits=Limits())
    chat.lines = TypedLines(Path(sys.argv[1]), [])
    for number in range(5):
        try:
            print("decided:", await chat.decide(ToolCall("a", "pay", "{}")))
        except asyncio.CancelledError:
            print("decided: stopped")
    print("said:", await chat.lines.read("> "))

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_at_a_terminal_the_answer_is_typed_and_not_remembered(env: dict[str, str], tmp_path: Path) -> None:
    with Terminal(["-c", _PROGRAM, str(tmp_path / "history")], env) as terminal:
        for keys, told in [
            ("y" + ENTER, "None"),
            (UP + ENTER, DENIED),
            ("not now" + ENTER, f"{DENIED}: not now"),
            (CTRL_C, "stopped"),
            (CTRL_D, DENIED),
        ]:
            terminal.wait_for("? pay {}")
            terminal.wait_for(PROMPT)
            terminal.type(keys)
            terminal.wait_for(f"decided: {told}\n")
        terminal.wait_for(PROMPT)
        terminal.type(UP + "this" + ENTER)
        terminal.wait_for("said: this\n")
        assert terminal.end() == 0
