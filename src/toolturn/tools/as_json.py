"""Any result as compact JSON, also what JSON has no form for by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set, ValuesView
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

_DEEPEST = 100
_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})


def json_text(value: Any) -> str:
    """Return a value as compact JSON.

    Dates are in ISO 8601, decimals and paths are texts, sets are sorted where they can be, views and ranges are
    lists, a number that JSON does not know is null, and of bytes that are no text the number is told.

    Args:
        value: A pydantic model, a dataclass, or anything made of such values.

    Raises:
        pydantic_core.PydanticSerializationError: There is no form for it.
    """
    if _has_sets(value, 0):
        value = _with_lists(value, 0)
    try:
        return _json(value)
    except PydanticSerializationError:
        return _json(_told(value, 0))


def _json(value: Any) -> str:
    return to_json(value, inf_nan_mode="null").decode()


def _has_sets(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return kind is set or kind is frozenset
    return any(type(part) in _CONTAINERS and depth < _DEEPEST and _has_sets(part, depth + 1) for part in value)


def _with_lists(value: Any, depth: int) -> Any:
    """The value with sorted lists in place of sets, whose order is another one in each process."""
    kind = type(value)
    if kind is set or kind is frozenset:
        return _in_order(value)
    if depth >= _DEEPEST or kind not in _CONTAINERS:
        return value
    if kind is dict:
        return {key: _with_lists(part, depth + 1) for key, part in value.items()}
    return [_with_lists(part, depth + 1) for part in value]


def _in_order(parts: Any) -> list[Any]:
    try:
        return sorted(parts)
    except TypeError:
        return sorted(parts, key=repr)


def _told(value: Any, depth: int) -> Any:
    """The value with forms of JSON for what has none by itself; what is still without one is left as it is."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            size = len(bytes(value))
            return "[1 byte]" if size == 1 else f"[{size} bytes]"
    if isinstance(value, PurePath):
        return str(value)
    if depth >= _DEEPEST:
        return value
    if isinstance(value, BaseModel):
        value = value.model_dump()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {
            _told(key, depth + 1) if isinstance(key, (str, bytes)) else key: _told(part, depth + 1)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple, Set, ValuesView, range, deque)):
        parts = [_told(part, depth + 1) for part in value]
        return _in_order(parts) if isinstance(value, (set, frozenset)) else parts
    return value
