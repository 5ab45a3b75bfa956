"""The calls of a reply in whatever form a callback or a provider gives them, as ToolCall objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...messages import ToolCall

_FUNCTION = ("function", "functionCall", "function_call", "toolUse")
_NAME = ("name", "tool_name", "toolName")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
_ID = ("call_id", "id", "tool_call_id", "toolCallId", "toolUseId")


def calls_of(given: Any) -> list[Any] | None:
    """Return calls as a list; what can not be made a ToolCall stays in it, so that the rules refuse it.

    Args:
        given: A list, one call alone as in the old ``function_call``, null, or anything else.
    """
    if given is None or given is False or (isinstance(given, (str, int, float)) and not given):
        return None
    if isinstance(given, (list, tuple)):
        items = list(given)
    elif isinstance(given, Mapping) and not given:
        return None
    else:
        items = [given]
    return [_call_of(item) for item in items if item is not None]


def _call_of(item: Any) -> Any:
    if isinstance(item, ToolCall):
        return item
    try:
        return _made(item)
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way
        return item


def _made(item: Any) -> Any:
    function: Any = None
    for key in _FUNCTION:
        if (function := _field(item, key)) is not None:
            break
    if function is None and not isinstance(item, Mapping) and _first(item, item, _NAME) is None:
        return item
    if isinstance(function, str):  # the name itself
        name, function = function, item
    else:
        function = item if function is None else function
        name = _first(function, item, _NAME)
    call_id = _first(item, function, _ID)
    return ToolCall(call_id, name, _first(function, item, _ARGUMENTS))


def _first(one: Any, other: Any, keys: tuple[str, ...]) -> Any:
    for source in (one, other):
        for key in keys:
            if (value := _field(source, key)) is not None:
                return value
    return None


def _field(source: Any, key: str) -> Any:
    if isinstance(source, Mapping):
        return source.get(key)
    return None if isinstance(source, (str, int, float, list, tuple)) else getattr(source, key, None)
