"""The content of a reply: text, parts or null into text, with what the model thought taken out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...codec import dumps, plain
from ...messages import text_of

_MAX_DEPTH = 8
_THOUGHTS = frozenset(
    (
        "thinking",
        "redacted_thinking",
        "reasoning",
        "reasoning_content",
        "reasoning_text",
        "summary_text",
        "thought",
        "think",
    )
)
_CALLS = frozenset(
    ("tool_use", "tool_call", "function_call", "toolCall", "tool-call", "toolUse", "functionCall", "function")
)
_KEYS = ("type", "text", "thinking", "reasoning", "refusal", "thought", "id", "name", "input", "arguments", "args")

_TAG = re.compile(
    r"(?P<fence>```)"
    r"|<(?P<end>/)?(?P<name>think|thinking|thought|reasoning|seed:think)>"
    r"|\[(?P<end2>/)?THINK\]"
    r"|◁(?P<end3>/)?think▷",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Said:
    """What a reply's content holds.

    Args:
        text: The pieces of its text.
        thoughts: The pieces of what the model thought.
        calls: Calls that stood among the parts, in a provider's form.
        refused: A part says that the model refused.
    """

    text: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    refused: bool = False


def said(content: Any) -> Said:
    """Return what a content of any form holds.

    Args:
        content: Text, null, a part, a list of parts, or anything else.
    """
    found = Said()
    try:
        _take(content, found, 0)
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way
        found.text.append(_safe_text(content))
    return found


def thought_of(given: Any) -> str:
    """Return a reasoning of any form as text.

    Args:
        given: Text, null, a part, or a list of parts.
    """
    found: list[str] = []
    try:
        _take_thought(given, found, 0)
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way
        return ""
    return "".join(found)


def _safe_text(content: Any) -> str:
    try:
        return text_of(content)
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way
        return ""


def _take(content: Any, found: Said, depth: int) -> None:
    if content is None or depth > _MAX_DEPTH:
        return
    if isinstance(content, str):
        found.text.append(str.__str__(content))
    elif isinstance(content, (bytes, bytearray)):
        found.text.append(bytes(content).decode("utf-8", "replace"))
    elif isinstance(content, (list, tuple)):
        for part in content:
            _take(part, found, depth + 1)
    elif isinstance(content, Mapping):
        _take_part(content, found, depth)
    elif isinstance(content, (bool, int, float)):
        found.text.append(dumps(plain(content)))
    else:
        part = {key: value for key in _KEYS if (value := getattr(content, key, None)) is not None}
        if part:
            _take_part(part, found, depth)
        elif depth == 0:
            found.text.append(_safe_text(content))


def _take_part(part: Mapping[Any, Any], found: Said, depth: int) -> None:
    kind = part.get("type")
    kind = kind if isinstance(kind, str) else None
    if kind in _THOUGHTS or part.get("thought") is True:
        _take_thought(part, found.thoughts, depth)
    elif kind in _CALLS or "functionCall" in part or "toolUse" in part:
        found.calls.append(part)
    elif kind == "refusal" or (kind is None and isinstance(part.get("refusal"), str)):
        found.refused = True
        _take(part.get("refusal"), found, depth + 1)
    elif "text" in part:
        text = part["text"]
        _take(text.get("value") if isinstance(text, Mapping) else text, found, depth + 1)
    elif kind is None and "thinking" in part:
        _take_thought(part, found.thoughts, depth)
    elif "parts" in part:
        _take(part["parts"], found, depth + 1)
    elif "content" in part:
        _take(part["content"], found, depth + 1)
    elif kind is None and depth == 0:
        found.text.append(dumps(plain(part)))  # an answer that a callback has parsed already


def _take_thought(given: Any, found: list[str], depth: int) -> None:
    if given is None or depth > _MAX_DEPTH:
        return
    if isinstance(given, str):
        found.append(str.__str__(given))
    elif isinstance(given, (list, tuple)):
        for part in given:
            _take_thought(part, found, depth + 1)
    elif isinstance(given, Mapping):
        for key in ("thinking", "reasoning", "reasoning_content", "text", "summary", "content"):
            if given.get(key):
                _take_thought(given[key], found, depth + 1)
                return
    else:
        for key in ("thinking", "reasoning", "text", "summary"):
            if isinstance(value := getattr(given, key, None), (str, list, tuple, Mapping)):
                _take_thought(value, found, depth + 1)
                return


def without_thoughts(text: str) -> tuple[str, str]:
    """Return a text without the marked thoughts in it, and the thoughts.

    A mark counts where it begins a line, outside code; what has no end goes to the end of the text. An end
    without a beginning means that this stood in the prompt.

    Args:
        text: The text of a reply.
    """
    kept: list[str] = []
    thoughts: list[str] = []
    inside: str | None = None
    fenced = opened = False
    begin = done = previous = 0  # where the thought begins, up to where text is taken, where the last mark ends
    for mark in _TAG.finditer(text):
        start, end = mark.span()
        if mark["fence"]:
            if inside is None:
                fenced = not fenced
            previous = end
            continue
        name = (mark["name"] or mark[0].strip("[]◁▷/")).lower()
        closing = bool(mark["end"] or mark["end2"] or mark["end3"])
        if inside is not None:
            if closing and name == inside:
                thoughts.append(text[begin:start])
                inside, done = None, end
        elif not fenced and not closing:
            if _begins_line(text, start, previous, done):
                kept.append(text[done:start])
                inside, begin = name, end
            else:
                opened = True
        elif not fenced and not opened and not is_quoted(text, start):
            thoughts.extend((*kept, text[done:start]))
            kept, done = [], end
        previous = end
    if inside is not None:
        thoughts.append(text[begin:])
        done = len(text)
    kept.append(text[done:])
    if not thoughts:
        return text, ""
    return "".join(kept).lstrip(), "\n".join(piece for thought in thoughts if (piece := thought.strip()))


def is_quoted(text: str, place: int) -> bool:
    """Return whether a backquote stands before a place, which is not the end of a block of code.

    Args:
        text: The text.
        place: Where a mark begins.
    """
    return text.endswith("`", 0, place) and not text.endswith("```", 0, place)


def _begins_line(text: str, place: int, previous: int, done: int) -> bool:
    # never looks back beyond the last mark, so that many marks in one line cost no more than one
    while place > previous and text[place - 1] in " \t":
        place -= 1
    return place == 0 or text[place - 1] == "\n" or (place == done and done > 0)


def mentions_thoughts(text: str) -> bool:
    """Return whether marks of thoughts are left in a text.

    Args:
        text: The text of a reply.
    """
    return any(mark["fence"] is None for mark in _TAG.finditer(text))
