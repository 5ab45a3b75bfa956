"""What could not be said as a schema, in words that a model reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_MAX_VALUE = 160
_MAX_WORDS = 600

_SAID = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "format": "format {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "uniqueItems": "no item twice",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "enum": "one of {}",
    "default": "default {}",
    "contentEncoding": "encoded as {}",
    "contentMediaType": "holds {}",
    "type": "type {}",
}
_BARE = frozenset(("pattern", "format", "contentEncoding", "contentMediaType", "type"))


def said(keyword: str, value: Any) -> str:
    """Return a keyword and its value in a few words."""
    if keyword in ("enum", "examples") and isinstance(value, list):
        listed = _short(", ".join(shown(item) for item in value))
        return f"one of {listed}" if keyword == "enum" else f"for example {listed}"
    if keyword == "not":
        return f"not {brief(value)}"
    if keyword == "propertyNames":
        return f"each key: {brief(value)}"
    if keyword == "contains":
        return f"at least one item: {brief(value)}"
    if keyword == "patternProperties" and isinstance(value, dict):
        return _short("; ".join(f"keys that match {key}: {brief(item)}" for key, item in value.items()))
    if keyword == "dependentRequired" and isinstance(value, dict):
        pairs = ((key, names) for key, names in value.items() if isinstance(names, list) and names)
        return _short("; ".join(f"{key} only together with {', '.join(map(str, names))}" for key, names in pairs))
    if keyword in ("minLength", "minItems", "minProperties") and value == 1:
        return "not empty"
    text = _SAID.get(keyword)
    if text is None:
        return "further conditions apply"
    return text.format(_short(value) if keyword in _BARE and isinstance(value, str) else shown(value))


def shown(value: Any) -> str:
    """Return a value as JSON, cut where it is long."""
    return _short(json.dumps(value, ensure_ascii=False))


def brief(schema: Any) -> str:
    """Return what a schema is about in one or two words."""
    if not isinstance(schema, dict) or not schema:
        return "nothing" if schema is False else "anything"
    if isinstance(schema.get("title"), str) and "type" not in schema and "enum" not in schema:
        return _short(schema["title"])
    if isinstance(schema.get("enum"), list):
        return said("enum", schema["enum"])
    if "const" in schema:
        return shown(schema["const"])
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _short(reference.rpartition("/")[2]) or "the same"
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return _short(" or ".join(dict.fromkeys(brief(part) for part in schema[keyword][:8])))
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    properties = schema.get("properties")
    names = ", ".join(list(properties)[:12]) if isinstance(properties, dict) else ""
    words = " or ".join(str(item) for item in kinds) or ("object" if names else "anything")
    if names and "object" in words:
        words += f" with {names}"
    for keyword in ("pattern", "format"):
        if isinstance(schema.get(keyword), str):
            words += f", {said(keyword, schema[keyword])}"
    return _short(words)


def described(description: str, words: Iterable[str]) -> str:
    """Return a description with words appended."""
    extra = "; ".join(dict.fromkeys(word for word in words if word))
    if len(extra) > _MAX_WORDS:
        extra = extra[: _MAX_WORDS - 1] + "…"
    if not extra:
        return description
    return f"{description} ({extra})" if description else f"{extra[0].upper()}{extra[1:]}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 1] + "…"
