"""Arguments to the tool's schema, where a value stands in a string that the schema does not want."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...arguments import parse_arguments
from ...errors import InvalidToolArguments

_MAX_DEPTH = 16
_MAX_DIGITS = 400
_integer = re.compile(r"-?[0-9]+")


def may_need_fitting(arguments: dict[str, Any]) -> bool:
    """Return whether a look at the schema can be of use; most often it can not.

    Args:
        arguments: The parsed arguments.
    """
    for value in arguments.values():
        kind = type(value)
        if kind is str:
            if value and value[0] in " \t\r\n[{-0123456789":
                return True
        elif kind is dict or kind is list:
            return True
    return False


def fit_arguments(arguments: dict[str, Any], schema: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments with arrays, objects and integers taken out of strings where the schema wants them.

    A string is left as it is wherever the schema allows a string, whatever it looks like, and where what it holds is
    not what is wanted. An integer keeps all its digits.

    Args:
        arguments: The parsed arguments; they are not changed.
        schema: The JSON Schema of the tool's arguments.

    Returns:
        The arguments, the same object where nothing was to be done; and what was done.
    """
    notes: list[str] = []
    fitted = _fit(arguments, schema, schema, notes, 0)
    return fitted, tuple(dict.fromkeys(notes))


def _fit(value: Any, schema: Any, root: Any, notes: list[str], depth: int) -> Any:
    schema = _resolved(schema, root)
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return value
    if type(value) is str:
        return _fit_text(value, schema, root, notes, depth)
    schema = _one_branch(schema, root)
    if type(value) is dict:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return value
        fitted = {
            key: _fit(item, properties[key], root, notes, depth + 1) if key in properties else item
            for key, item in value.items()
        }
        return value if all(fitted[key] is value[key] for key in value) else fitted
    if type(value) is list:
        items = schema.get("items")
        fitted_items = [_fit(item, items, root, notes, depth + 1) for item in value]
        return value if all(new is old for new, old in zip(fitted_items, value, strict=True)) else fitted_items
    return value


def _fit_text(text: str, schema: Mapping[str, Any], root: Any, notes: list[str], depth: int) -> Any:
    if schema.get("type") == "string":
        return text
    wanted = _types(schema, root)
    if "string" in wanted:
        return text
    if "integer" in wanted and len(text) <= _MAX_DIGITS and _integer.fullmatch(text):
        notes.append("an integer was taken out of a string")
        return int(text)
    start = text.lstrip()[:1]
    kind = {"{": "object", "[": "array"}.get(start)
    if kind is None or kind not in wanted:
        return text
    try:
        # the reader of arguments knows what to refuse
        found = parse_arguments(f'{{"v":{text}}}')
    except InvalidToolArguments:
        return text
    value = found.get("v")
    if len(found) != 1 or type(value) is not (dict if kind == "object" else list):
        return text
    notes.append(f"an {kind} was taken out of a string")
    return _fit(value, schema, root, notes, depth + 1)


def _resolved(schema: Any, root: Any) -> Any:
    for _ in range(8):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for step in reference[2:].split("/"):
            schema = schema.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(schema, Mapping) else None
    return None


def _one_branch(schema: Mapping[str, Any], root: Any) -> Mapping[str, Any]:
    """The only branch of a union that is not null, such as that of an optional value."""
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, (list, tuple)):
            real = [branch for item in branches if not _is_null(branch := _resolved(item, root))]
            if len(real) == 1 and isinstance(real[0], Mapping):
                return real[0]
    return schema


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _types(schema: Any, root: Any) -> set[str]:
    """The types a schema allows; where that is not plain, a string is among them."""
    wanted: set[str] = set()
    waiting = [schema]
    seen: set[int] = set()  # a union may hold itself
    while waiting:
        about = _resolved(waiting.pop(), root)
        if id(about) in seen:
            continue
        seen.add(id(about))
        declared = about.get("type") if isinstance(about, Mapping) else None
        branches = None if not isinstance(about, Mapping) else about.get("anyOf") or about.get("oneOf")
        if isinstance(declared, str):
            wanted.add(declared)
        elif isinstance(declared, (list, tuple)):
            wanted.update(name for name in declared if isinstance(name, str))
        elif isinstance(branches, (list, tuple)):
            waiting.extend(branches)
        elif isinstance(about, Mapping) and isinstance(about.get("properties"), Mapping):
            wanted.add("object")
        else:
            wanted.add("string")
    return wanted or {"string"}


def text_to_value(text: str, schema: object, name: str) -> Any:
    """Return the value of a parameter that was written as bare text, as markup does it.

    Args:
        text: What was written.
        schema: The JSON Schema of the tool's arguments.
        name: The parameter.

    Returns:
        The text, or what it holds where the schema wants no string.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    about = properties.get(name) if isinstance(properties, Mapping) else None
    if "string" in _types(about, schema):
        return text
    bare = text.strip()
    written = {"True": "true", "False": "false", "None": "null"}.get(bare, bare)
    try:
        found = parse_arguments(f'{{"v":{written}}}')
    except InvalidToolArguments:
        return text
    return found["v"] if found.keys() == {"v"} else text


def as_text(arguments: dict[str, Any]) -> str:
    """Return parsed arguments as JSON text that every strict reader takes.

    Args:
        arguments: The arguments.
    """
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
