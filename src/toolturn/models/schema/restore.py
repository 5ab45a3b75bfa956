"""Arguments that a model wrote for a fitted schema, back into those of the tool's own schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .changes import ROOT, Change, inside
from .source import same, type_of

_MAX_DEPTH = 200
_MAX_STEPS = 50_000


def restore(arguments: dict[str, Any], parameters: Mapping[str, Any], changes: Mapping[str, Change]) -> dict[str, Any]:
    """Return arguments in the form of the tool's own schema.

    Args:
        arguments: What the model wrote.
        parameters: The fitted schema.
        changes: What was changed in it.
    """
    if not changes:
        return arguments
    try:
        restored = _Restoring(parameters, changes).value(arguments, parameters, "", 0)
    except _TooMuch:
        # alternatives within alternatives; the tool's own schema will say what it thinks of it
        return arguments
    return restored if isinstance(restored, dict) else arguments


class _TooMuch(Exception):
    """More steps than any sensible arguments need."""


class _Restoring:
    def __init__(self, root: Mapping[str, Any], changes: Mapping[str, Change]) -> None:
        self._root = root
        self._changes = changes
        self._steps = _MAX_STEPS

    def value(self, value: Any, schema: Any, pointer: str, depth: int) -> Any:
        if depth > _MAX_DEPTH or not isinstance(schema, Mapping) or not isinstance(value, (dict, list)):
            return value
        reference = schema.get("$ref")
        if reference is not None:
            pointer = reference[1:]
            return self.value(value, self._root["$defs"][pointer.rpartition("/")[2]], pointer, depth + 1)
        for number, branch in enumerate(schema.get("anyOf", ())):
            if self._fits(value, branch, depth):
                return self.value(value, branch, f"{pointer}/anyOf/{number}", depth + 1)
        if isinstance(value, list):
            return self._items(value, schema, pointer, depth)
        return self._object(value, schema, pointer, depth)

    def _items(self, values: list[Any], schema: Mapping[str, Any], pointer: str, depth: int) -> list[Any]:
        first = schema.get("prefixItems", ())
        made = []
        for number, value in enumerate(values):
            if number < len(first):
                made.append(self.value(value, first[number], f"{pointer}/prefixItems/{number}", depth + 1))
            else:
                made.append(self.value(value, schema.get("items"), f"{pointer}/items", depth + 1))
        return made

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], pointer: str, depth: int) -> Any:
        change = self._changes.get(pointer, _NOTHING)
        properties = schema.get("properties", {})
        if change.unwrap:
            inner = value.get(ROOT)
            # some models leave the wrapping out
            return inner if isinstance(inner, dict) and len(value) == 1 else value
        made = {}
        for name, item in value.items():
            if item is None and name in change.optional:
                continue
            if name in properties:
                item = self.value(item, properties[name], inside(pointer, "properties", name), depth + 1)
            else:
                item = self.value(
                    item, schema.get("additionalProperties"), f"{pointer}/additionalProperties", depth + 1
                )
            own = change.names.get(name, name)
            if own == name or own not in value:
                made[own] = item
        return made

    def _fits(self, value: Any, schema: Mapping[str, Any], depth: int) -> bool:
        """Whether a value is meant by a branch: its type, its keys, and the tags by which branches differ."""
        self._steps -= 1
        if self._steps < 0:
            raise _TooMuch
        if depth > _MAX_DEPTH:
            return False
        if "$ref" in schema:
            return self._fits(value, self._root["$defs"][schema["$ref"].rpartition("/")[2]], depth + 1)
        if "anyOf" in schema:
            return any(self._fits(value, branch, depth + 1) for branch in schema["anyOf"])
        kinds = schema.get("type")
        if value is None:
            return kinds is None or kinds == "null" or "null" in kinds or bool(schema.get("nullable"))
        if kinds is not None:
            kind = type_of(value)
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if kind not in kinds and not (kind == "integer" and "number" in kinds):
                return False
        if "enum" in schema and not any(same(value, item) for item in schema["enum"]):
            return False
        if isinstance(value, list):
            items = schema.get("items")
            return not isinstance(items, Mapping) or all(self._fits(item, items, depth + 1) for item in value)
        if not isinstance(value, dict):
            return True
        properties = schema.get("properties", {})
        if any(name not in value for name in schema.get("required", ())):
            return False
        if schema.get("additionalProperties") is False and value.keys() - properties.keys():
            return False
        return all(self._fits(item, properties[name], depth + 1) for name, item in value.items() if name in properties)


_NOTHING = Change({})
