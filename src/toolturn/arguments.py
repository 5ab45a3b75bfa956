"""A model's argument text into an object, strictly.

What is refused here is refused for safety: a check and the code that runs must read the same values, so
duplicate keys, NaN and unbounded numbers are no arguments. The text of each error is short, names the place,
and never repeats what the model wrote.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pydantic import ValidationError

from .errors import InvalidToolArguments

MAX_ARGUMENT_CHARS = 1_000_000
MAX_DEPTH = 64
_MAX_FAULTS = 20
_MAX_NAME = 60
_MAX_PLACE = 120
_MAX_MESSAGE = 160


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidToolArguments("arguments must not repeat a key")
    return made


def _constant(name: str) -> NoReturn:
    raise InvalidToolArguments("arguments must not contain NaN or Infinity")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidToolArguments("arguments contain a number that is too large")
    return value


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_scan: Any = _decoder.scan_once  # type: ignore[attr-defined]


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the object that the argument text of a call holds.

    Args:
        text: JSON text as a model wrote it.

    Returns:
        The object, read once; what is checked is what runs.

    Raises:
        InvalidToolArguments: It is no JSON object, repeats a key, holds NaN, Infinity, a lone surrogate or a
            number beyond reason, nests deeper than 64 levels or is longer than a million characters.
    """
    if not isinstance(text, str):
        raise InvalidToolArguments("arguments must be JSON text")
    if len(text) > MAX_ARGUMENT_CHARS:
        raise InvalidToolArguments(f"arguments must not be longer than {MAX_ARGUMENT_CHARS:,} characters")
    # Counting is far cheaper than scanning, and only deep or large arguments have so many brackets.
    if len(text) > MAX_DEPTH and text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise InvalidToolArguments(f"arguments must not be nested deeper than {MAX_DEPTH} levels")
    try:
        # a bare object is by far the most usual, and the scanner alone reads it in half the time
        value: Any = None
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1
        if end != len(text):
            value = _decoder.decode(text)  # knows blanks around, and where a fault is
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno} column {exc.colno}"
        what = exc.msg.removesuffix(" at")
        raise InvalidToolArguments(f"arguments must be valid JSON: {what} at {where}") from None
    except InvalidToolArguments:
        raise
    except ValueError:  # the interpreter's bound on the digits of an integer
        raise InvalidToolArguments("arguments contain a number with too many digits") from None
    except RecursionError:
        raise InvalidToolArguments("arguments are nested too deeply") from None
    if type(value) is not dict:
        raise InvalidToolArguments("arguments must be a JSON object")
    if not text.isascii() or "\\u" in text:
        _refuse_surrogates(value)
    return value


def _depth(text: str) -> int:
    """The deepest nesting, counted outside strings."""
    deepest = depth = 0
    inside = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif inside:
            if char == "\\":
                escaped = True
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]":
            depth -= 1
    return deepest


def _refuse_surrogates(value: Any) -> None:
    """Refuse text that no encoder takes: it would fail later, inside a tool or a result."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidToolArguments("arguments contain half of a surrogate pair, which is no text") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_surrogates(key)
            _refuse_surrogates(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)


def describe_faults(exc: ValidationError) -> str:
    """Return what a model has to know to mend its arguments.

    Args:
        exc: What pydantic found.

    Returns:
        ``field: what is wrong`` for each fault, the declared fields first; the values themselves are left out.
    """
    faults = exc.errors(include_url=False, include_input=False)
    # Keys the model made up must not crowd out the fields it has to mend.
    faults.sort(key=lambda fault: fault["type"] == "extra_forbidden")
    lines = []
    for fault in faults[:_MAX_FAULTS]:
        place = ".".join(_short(str(step), _MAX_NAME) for step in fault["loc"]) or "arguments"
        message = fault["msg"]
        if fault["type"] == "union_tag_invalid":  # the only message of pydantic's own that repeats what was written
            known = fault["ctx"]
            message = f"{known['discriminator']} must be one of {known['expected_tags']}"
        lines.append(f"{_short(place, _MAX_PLACE)}: {_short(message, _MAX_MESSAGE)}")
    if len(faults) > _MAX_FAULTS:
        lines.append(f"and {len(faults) - _MAX_FAULTS} more")
    return "; ".join(lines)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
