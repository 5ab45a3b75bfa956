"""The JSON of a persona file, with the place where it is none and the keys that stand there twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checking import Finding, below

MAX_BYTES = 4 * 1024 * 1024


class _Object(dict[str, Any]):
    """An object of the file that knows which of its keys stood there more than once."""

    twice: tuple[str, ...] = ()


def read_file(path: str | Path) -> tuple[Mapping[str, Any] | None, list[Finding]]:
    """Return what stands in a persona file, and what is wrong with it as a file and as JSON.

    Args:
        path: The file.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as exc:  # a name with a null, a home that is not known
        return None, [Finding("problem", "$", f"it can not be read: {getattr(exc, 'strerror', None) or exc}")]
    if len(data) > MAX_BYTES:
        return None, [Finding("problem", "$", f"it is no persona file: it has more than {MAX_BYTES:,} bytes")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        column = exc.start - (data.rfind(b"\n", 0, exc.start) + 1) + 1
        return None, [Finding("problem", "$", "it is no text in UTF-8", line, column)]
    return parse(text)


def parse(text: str) -> tuple[Mapping[str, Any] | None, list[Finding]]:
    """Return the object that a text holds, and what is wrong with it as JSON.

    Args:
        text: The text.
    """
    odd: list[str] = []
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=odd.append)
    except json.JSONDecodeError as exc:
        return None, [Finding("problem", "$", f"it is no JSON: {exc.msg}", exc.lineno, exc.colno)]
    except (RecursionError, ValueError):  # of a number with too many digits, too
        return None, [Finding("problem", "$", "it is no JSON that can be read: it is nested too deeply, or too long")]
    if odd:
        return None, [Finding("problem", "$", f"it is no JSON: {odd[0]} is no number of JSON")]
    if not isinstance(document, Mapping):
        return None, [Finding("problem", "$", "it must be an object")]
    found: list[Finding] = []
    _twice(document, "$", found)
    return document, found


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        made.twice = tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return made


def _twice(value: Any, place: str, found: list[Finding]) -> None:
    if isinstance(value, _Object):
        found += [
            Finding("warning", below(place, key), f"{key} stands there twice; the last one counts")
            for key in value.twice
        ]
        for key, item in value.items():
            _twice(item, below(place, key), found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _twice(item, below(place, index), found)
