"""Objects that fail when they are looked at, as plain data: the last resort of what must never fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...messages import ChatResponse, ToolCall

_MAX_DEPTH = 32


def tamed(response: ChatResponse) -> ChatResponse:
    """Return a reply whose fields are made of JSON's own types and of ToolCall objects.

    Nothing is asked of an object but its type; one of another type stands there by its type's name.

    Args:
        response: A reply that could not be read.
    """
    fields = ("content", "reasoning", "tool_calls", "finish_reason", "usage", "repairs")
    tame: dict[str, Any] = {name: _tame(getattr(response, name), 0) for name in fields}
    return replace(response, **{**tame, "usage": None, "repairs": ()})


def _tame(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    if kind is ToolCall:
        return ToolCall(*(_tame(part, depth + 1) for part in (value.id, value.name, value.arguments)))
    if depth < _MAX_DEPTH:
        if issubclass(kind, dict):
            return {key: _tame(item, depth + 1) for key, item in dict.items(value) if type(key) is str}
        if issubclass(kind, list):
            return [_tame(item, depth + 1) for item in list.__iter__(value)]
        if issubclass(kind, tuple):
            return [_tame(item, depth + 1) for item in tuple.__iter__(value)]
    return f"<{kind.__name__}>"
