"""What a screen shows of results that are no text."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from toolturn import ChatMessage, FilePart, ImagePart, TextPart, ToolCall, ToolCallRecord
from toolturn.cli.chatting import shown_calls
from toolturn.cli.show import Screen, shown
from toolturn.events import ToolResult

DATA = base64.b64encode(b"\x89PNG" + b"secret" * 50).decode()
IMAGE = ImagePart(f"data:image/png;base64,{DATA}")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([TextPart("one"), TextPart("two")], "one\ntwo"),
        ([TextPart("a map"), IMAGE], "a map\n[image image/png, 304 bytes]"),
        ([FilePart(f"data:application/pdf;base64,{DATA}", "plan.pdf")], "[file plan.pdf application/pdf, 304 bytes]"),
        ([FilePart("data:,hello", "a.txt")], "[file a.txt text/plain, 5 bytes]"),
        ([ImagePart("https://example.org/a.png")], "[image https://example.org/a.png]"),
        (None, ""),
        ([], ""),
        ([{"text": "as it came"}], "as it came"),
    ],
)
def test_an_image_or_a_file_is_a_word_and_never_its_data(content: Any, text: str) -> None:
    assert shown(content) == text


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
