"""What a screen shows of results that are no text, and of text that a terminal would obey."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolturn import ChatMessage, ImagePart, Repair, TextPart, ToolCall, ToolCallRecord
from toolturn.cli.approving import waiting_as_text
from toolturn.cli.chatting import shown_calls
from toolturn.cli.show import Screen
from toolturn.events import Repaired, ToolCallStarted, ToolProgress, ToolResult

from .conftest import Run

DATA = base64.b64encode(b"\x89PNG" + b"secret" * 50).decode()
IMAGE = ImagePart(f"data:image/png;base64,{DATA}")


def record(content: Any) -> ToolCallRecord:
    return ToolCallRecord(
        ToolCall("a", "draw", "{}"), ChatMessage("tool", content, None, "a"), False, "t1.0", "ok", 1.0
    )


def test_neither_progress_nor_the_audit_hold_base64(capsys: pytest.CaptureFixture[str]) -> None:
    seen = record([TextPart("a map"), IMAGE])
    Screen("model")(ToolResult(seen))
    told = capsys.readouterr().err + shown_calls([seen, record([IMAGE])])
    assert "[image image/png, 304 bytes]" in told
    assert DATA[:20] not in told


CLEAR = "\x1b[2J\x9b31m\x07\x08\x7f"


def screened(*events: Any, capsys: pytest.CaptureFixture[str]) -> str:
    screen = Screen("model")
    for event in events:
        screen(event)
    told = capsys.readouterr()
    return told.out + told.err


def test_a_terminal_obeys_nothing_of_what_a_tool_or_a_model_says(capsys: pytest.CaptureFixture[str]) -> None:
    call = ToolCall("a", f"dr{CLEAR}aw", f'{{"x": "{CLEAR}"}}')
    events = (
        ToolCallStarted(call, "t1.0"),
        ToolProgress(call, "t1.0", CLEAR),
        ToolResult(replace(record(CLEAR), error=CLEAR)),
        Repaired(Repair(CLEAR, CLEAR, "m1")),
    )
    told = screened(*events, capsys=capsys)
    assert not set(told) & set("\x1b\x9b\x07\x08\x7f")
    assert "␛[2J" in told


def test_what_is_approved_is_seen_also_where_a_terminal_would_hide_it_or_turn_it_around() -> None:
    call = ToolCall("a", "pay", '{"to": "Ada\u202e\u200b\u2066"}')
    waiting = replace(record(""), call=call)
    assert '{"to": "Ada\\u202e\\u200b\\u2066"}' in waiting_as_text([waiting])


def test_an_error_that_quotes_others_is_printed_harmlessly(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps({"name": "x", "handlers": [CLEAR]}))
    for command in (["ask", "--persona", str(tmp_path / "p.json"), "go"], ["ask", "--model", CLEAR, "go"]):
        done = run(*command)
        assert done.returncode in (1, 2)
        assert not set(done.stderr) & set("\x1b\x9b\x07\x08\x7f")
