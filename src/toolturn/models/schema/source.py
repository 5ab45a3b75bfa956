"""A JSON Schema as somebody wrote it: made plain, checked to be finite, its references looked up.

Nothing here knows a provider. Keywords are canonical afterwards: ``type`` is a list of known types, ``const`` is an
``enum`` of one, a list of ``items`` is ``prefixItems``, bounds are numbers, and a keyword whose value makes no sense
is not there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

MAX_SOURCE_DEPTH = 128
MAX_SOURCE_NODES = 100_000
_MAX_PLACE = 200

Json = dict[str, Any]

ANNOTATIONS = ("description", "default", "examples")
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")

# Names that people and other languages give to types.
_TYPE_NAMES = {
    **{name: name for name in TYPES},
    **dict.fromkeys(("str", "text", "char"), "string"),
    **dict.fromkeys(("int", "long", "short", "int32", "int64"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("dict", "map", "hashmap"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
    **dict.fromkeys(("none", "nil", "nonetype"), "null"),
}


class SchemaFault(ValueError):
    """A schema no tool can be called by.

    Args:
        place: Where, as a JSON pointer.
        reason: What is wrong there.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place or '/'}: {reason}")
        self.place = place
        self.reason = reason


def step(place: str, key: object) -> str:
    """Return the JSON pointer of something inside a place."""
    made = f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}"
    return made if len(made) <= _MAX_PLACE else made[: _MAX_PLACE - 1] + "…"


def plain(value: Any) -> Any:
    """Return a copy of a schema that is JSON and nothing else.

    Raises:
        SchemaFault: It is cyclic, deeper or larger than any real schema, or holds something that is no JSON.
    """
    left = MAX_SOURCE_NODES
    path: list[object] = []

    def fault(reason: str) -> SchemaFault:
        place = ""
        for key in path:
            place = step(place, key)
        return SchemaFault(place, reason)

    def copied(value: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise SchemaFault("", f"more than {MAX_SOURCE_NODES:,} values")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            if value.isascii() and type(value) is str:
                return value
            # Text that was cut in the middle of a pair of surrogates would fail in the request's encoder.
            return str.__str__(value).encode("utf-8", "replace").decode()
        if isinstance(value, int):
            return int(value) if value.bit_length() <= 1000 else ("-Infinity" if value < 0 else "Infinity")
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if len(path) >= MAX_SOURCE_DEPTH:
            raise fault("nested too deeply, or within itself")
        if isinstance(value, Mapping):
            return {key_of(key): inside(key, item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [inside(number, item) for number, item in enumerate(value)]
        raise fault(f"{type(value).__name__} is no JSON")

    def inside(key: object, value: Any) -> Any:
        path.append(key)
        made = copied(value)
        path.pop()
        return made

    def key_of(key: object) -> str:
        if not isinstance(key, str):
            raise fault("a key that is no text")
        key = str.__str__(key)
        if not key.isascii():
            try:
                key.encode()
            except UnicodeEncodeError:
                raise fault("a key that is no valid text") from None
        return key

    return copied(value)


def reference_to(pointer: str) -> str:
    """Return the reference that leads to a canonical pointer."""
    return pointer if pointer.startswith("#") else f"#{quote(pointer, safe='/~')}"


class Source:
    """A plain schema whose references can be looked up.

    Args:
        root: The schema, as :func:`plain` gives it.
    """

    def __init__(self, root: Json) -> None:
        self.root = root
        identity = root.get("$id")
        self._base = identity.partition("#")[0] if isinstance(identity, str) else ""
        self._anchors: dict[str, Any] | None = None

    def find(self, reference: str) -> tuple[str, Any] | None:
        """Return the canonical pointer and the schema a reference stands for; None where there is none."""
        if self._base and reference.startswith(self._base):
            reference = reference[len(self._base) :]
        if reference in ("", "#"):
            return "", self.root
        if not reference.startswith("#"):
            return None
        if not reference.startswith("#/"):
            anchors = self._anchored()
            return (reference, anchors[reference[1:]]) if reference[1:] in anchors else None
        found: Any = self.root
        pointer = ""
        for part in unquote(reference[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and len(key) < 8 and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
            pointer += f"/{part}"
        return (pointer, found) if isinstance(found, (dict, bool)) else None

    def _anchored(self) -> dict[str, Any]:
        if self._anchors is None:
            self._anchors = {}
            waiting: list[Any] = [self.root]
            while waiting:
                value = waiting.pop()
                if isinstance(value, dict):
                    name = value.get("$anchor")
                    if isinstance(name, str):
                        self._anchors.setdefault(name, value)
                    waiting.extend(value.values())
                elif isinstance(value, list):
                    waiting.extend(value)
        return self._anchors


def canonical(schema: Json, dropped: Callable[[str], None]) -> Json:
    """Return the keywords of one schema, references and combinations left aside.

    Args:
        schema: A plain schema.
        dropped: Told each keyword that constrained something in a way that is not understood.
    """
    made: Json = {}
    for keyword, value in schema.items():
        sensible = _SENSIBLE.get(keyword)
        if sensible is None:
            continue
        if sensible(value):
            made[keyword] = value
        elif keyword in _CONSTRAINTS and not isinstance(value, bool):
            dropped(keyword)
    for bound, keyword in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        # up to draft 4 these were flags beside the bound
        if schema.get(keyword) is True and bound in made:
            made[keyword] = made.pop(bound)
    _canonical_items(schema, made)
    _canonical_values(schema, made, dropped)
    if isinstance(schema.get("example"), (str, int, float)) and "examples" not in made:
        made["examples"] = [schema["example"]]
    return made


def _canonical_items(schema: Json, made: Json) -> None:
    items = schema.get("items")
    if isinstance(items, list):
        made["prefixItems"] = items
        items = schema.get("additionalItems")
    if isinstance(items, (dict, bool)):
        made["items"] = items
    if not made.get("prefixItems", True):
        del made["prefixItems"]


def _canonical_values(schema: Json, made: Json, dropped: Callable[[str], None]) -> None:
    """Types and enumerations."""
    given = schema.get("type")
    kinds = given if isinstance(given, list) else [given]
    known = [_TYPE_NAMES.get(kind.lower()) if isinstance(kind, str) else None for kind in kinds]
    types = list(dict.fromkeys(kind for kind in known if kind))
    # a type nobody knows may be anything
    if types and None not in known:
        made["type"] = types
    elif given is not None and given != [] and str(given).lower() != "any":
        dropped("type")
    values = schema.get("enum")
    if isinstance(values, list) and values:
        made["enum"] = unique(values)
    if "const" in schema:
        value = schema["const"]
        if "enum" in made and not any(same(value, item) for item in made["enum"]):
            dropped("const")
        else:
            made["enum"] = [value]
    if schema.get("nullable") is True:
        if "type" in made and "null" not in made["type"]:
            made["type"] = [*made["type"], "null"]
        if "enum" in made and not any(item is None for item in made["enum"]):
            made["enum"] = [*made["enum"], None]


def type_of(value: Any) -> str:
    """Return the type of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def is_of(value: Any, types: list[str]) -> bool:
    """Whether a JSON value is of one of the types."""
    kind = type_of(value)
    return kind in types or (kind == "integer" and "number" in types)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in the sense of JSON, in which ``1`` is not ``true``."""
    if isinstance(one, (dict, list)) or isinstance(other, (dict, list)):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def unique(values: list[Any]) -> list[Any]:
    """Return the values, each once."""
    kept: dict[Any, Any] = {}
    for value in values:
        key = json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else (type(value) is bool, value)
        kept.setdefault(key, value)
    return list(kept.values())


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and value == int(value)


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


_SENSIBLE: dict[str, Callable[[Any], bool]] = {
    "description": _is(str),
    "default": lambda value: True,
    "examples": lambda value: isinstance(value, list) and bool(value),
    "properties": _is(dict),
    "required": _names,
    "additionalProperties": _is(dict, bool),
    "unevaluatedProperties": _is(dict, bool),
    "patternProperties": lambda value: isinstance(value, dict) and bool(value),
    "propertyNames": _is(dict, bool),
    "dependentRequired": _is(dict),
    "dependentSchemas": _is(dict),
    "dependencies": _is(dict),
    "prefixItems": lambda value: isinstance(value, list) and bool(value),
    "contains": _is(dict, bool),
    "unevaluatedItems": _is(dict, bool),
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
    "multipleOf": lambda value: _number(value) and value > 0,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minContains", "maxContains"), _count),
    "uniqueItems": lambda value: value is True,
    "pattern": _is(str),
    "format": _is(str),
    "contentEncoding": _is(str),
    "contentMediaType": _is(str),
    **dict.fromkeys(("not", "if"), _is(dict, bool)),
}
_CONSTRAINTS = frozenset(_SENSIBLE) - {*ANNOTATIONS}
