"""What a screen shows of results that are no text."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from toolturn import ChatMessage, ImagePart, TextPart, ToolCall, ToolCallRecord
from toolturn.cli.chatting import shown_calls
from toolturn.cli.show import Screen
from toolturn.events import ToolResult

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
