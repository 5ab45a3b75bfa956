"""What the model is told of a call that failed: text that begins with ``Error:`` and names the cause."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ..codec import plain
from ..limits import cap_text
from ..messages import text_of
from ..results import ToolCallRecord
from ..turn import Outcome, ToolFailed

_LONGEST_CAUSE = 500


def told(outcome: Outcome, *, causes: bool, most: int | None) -> Outcome:
    """Return the outcome of a tool call with its failure told as OpenVoiceOS's engines tell it.

    Args:
        outcome: What came of an op; what is no failed call is returned as it is.
        causes: Tell the text of an exception, not its class alone.
        most: Bytes of the text at most.
    """
    if isinstance(outcome, ToolFailed):
        return ToolFailed(_told(outcome.record, outcome.error if causes else None, most), outcome.error)
    if isinstance(outcome, ToolCallRecord) and outcome.status != "ok":
        return _told(outcome, None, most)
    return outcome


def _told(record: ToolCallRecord, error: BaseException | None, most: int | None) -> ToolCallRecord:
    message = record.message
    text = f"Error: {_sentence(record, error)}"
    return replace(record, message=replace(message, content=cap_text(text, most)))


def _sentence(record: ToolCallRecord, error: BaseException | None) -> str:
    name = plain(record.call.name)
    content = text_of(record.message.content)
    found = _object(content)
    detail = found.get("detail")
    if record.status == "unknown_tool":
        there = ", ".join(map(str, found.get("available", ())))
        return f"tool '{name}' not found. " + (f"Available tools: {there}." if there else "There are no tools.")
    if record.status == "invalid_arguments":
        return f"tool '{name}' was not run, its arguments are invalid: {detail or content}"
    if error is not None and record.status == "error":
        return f"tool '{name}' failed: {_cause(error)}"
    if record.status == "error":
        return f"tool '{name}' failed: {detail or found.get('type') or content}"
    return f"tool '{name}': {detail or content}"


def _object(content: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _cause(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure
        text = ""
    if len(text) > _LONGEST_CAUSE:
        text = text[: _LONGEST_CAUSE - 1] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
