"""What canonical keywords say of an object, and which of them belong to which type."""

from __future__ import annotations

from typing import Any

from .reader import Alternative, Trail, said_nothing
from .source import Json, canonical, same
from .words import shown

OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    "array": ("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"),
    "object": (
        "minProperties",
        "maxProperties",
        "propertyNames",
        "patternProperties",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
    ),
    "any": ("not", "if"),
}
OF_TYPE["integer"] = OF_TYPE["number"]
_SHAPES = {"array": ("items", "prefixItems"), "object": ("properties", "required", "additionalProperties")}


def extra_of(keywords: Json) -> Any:
    """What other keys an object may have; None where nothing is said about it."""
    extra = keywords.get("additionalProperties")
    if extra is None and keywords.get("unevaluatedProperties") is False:
        extra = False
    if "patternProperties" in keywords:
        return True
    return True if extra == {} else extra


def opened(keywords: Json) -> bool:
    """Whether an object explicitly takes other keys than those declared."""
    return extra_of(keywords) not in (None, False)


def implied(keywords: Json) -> list[str]:
    """The type that keywords without a type are about; empty where none is meant."""
    for kind in ("object", "array", "string", "number"):
        if any(keyword in keywords for keyword in (*_SHAPES.get(kind, ()), *OF_TYPE[kind]) if keyword != "format"):
            return [kind]
    return ["string"] if "format" in keywords else []


def telling_title(name: str, schema: Any) -> str:
    """A title that says more than the name it stands beside; most are made from that."""
    title = schema.get("title") if isinstance(schema, dict) else None
    if not isinstance(title, str) or _letters(title) == _letters(name):
        return ""
    return title.strip()


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def joined(objects: list[Alternative], words: list[str]) -> Alternative:
    """One object for a union of objects: no wire takes a union at the root."""
    properties: dict[str, list[Any]] = {}
    trail: Trail = ()
    for item in objects:
        trail += item.trail
        for name, value in item.keywords.get("properties", {}).items():
            seen = properties.setdefault(name, [])
            if not any(same(value, other) for other in seen):
                seen.append(value)
    needed = [item.keywords.get("required", []) for item in objects]
    keywords: Json = {
        "type": ["object"],
        "properties": {name: seen[0] if len(seen) == 1 else {"anyOf": seen} for name, seen in properties.items()},
        "required": [name for name in needed[0] if all(name in rest for rest in needed)],
    }
    extras = [item.keywords.get("additionalProperties") for item in objects]
    if any(opened(item.keywords) for item in objects):
        keywords["additionalProperties"] = True
    elif all(extra is False for extra in extras):
        keywords["additionalProperties"] = False
    listed = (
        ", ".join(_named(item, name) for name in names) or "none" for item, names in zip(objects, needed, strict=True)
    )
    words.append("give the arguments of one of these: " + " | ".join(dict.fromkeys(listed)))
    return Alternative(keywords, trail)


def _named(item: Alternative, name: str) -> str:
    """A property's name, with its value where there is only one."""
    schema = item.keywords.get("properties", {}).get(name)
    values: list[Any] = canonical(schema, said_nothing).get("enum", []) if isinstance(schema, dict) else []
    return f"{name} = {shown(values[0])}" if len(values) == 1 else name
