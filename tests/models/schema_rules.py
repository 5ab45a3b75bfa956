"""What each provider's documents and refusals say of a tool's declaration, checked without the library's own tables.

Each checker returns the faults it finds, so that a failing test says what a provider would have said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs

from toolturn.models.schema import FittedTool

Json = dict[str, Any]

# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
_STRICT_KEYWORDS = {
    *(
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "description",
        "$ref",
        "$defs",
    ),
    *("pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("minItems", "maxItems"),
}
_STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

# https://ai.google.dev/api/caching#Schema
_GEMINI_KEYWORDS = {
    *("type", "format", "description", "nullable", "enum", "properties", "required", "items", "anyOf"),
    *("minItems", "maxItems", "minimum", "maximum"),
}
_GEMINI_FORMATS = {
    "string": {"date-time"},
    "integer": {"int32", "int64"},
    "number": {"float", "double"},
}


def places(node: Any, path: str = "", level: int = 1) -> Iterator[tuple[str, Any, int]]:
    """Each schema in a schema, with where it is and in how many objects and arrays."""
    yield path, node, level
    if not isinstance(node, dict):
        return
    for keyword in ("properties", "$defs", "patternProperties"):
        for name, child in node.get(keyword, {}).items():
            yield from places(child, f"{path}/{keyword}/{name}", level + (keyword != "$defs"))
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        if isinstance(node.get(keyword), dict):
            yield from places(node[keyword], f"{path}/{keyword}", level + 1)
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, child in enumerate(node.get(keyword, ())):
            yield from places(child, f"{path}/{keyword}/{number}", level + (keyword == "prefixItems"))


def openai_faults(tool: FittedTool) -> list[str]:
    """What OpenAI refuses in a function that is not strict, and servers that speak its wire with it."""
    faults = _common_faults(tool)
    root = tool.parameters
    if root is None:
        return [*faults, "no parameters"]
    faults += [f"{key} at the root" for key in ("anyOf", "oneOf", "allOf", "not", "enum", "$ref") if key in root]
    if len(tool.description) > 1024:
        faults.append("description too long")
    for path, node, _ in places(root):
        if not isinstance(node, dict):
            faults.append(f"{path}: a boolean for a schema")
            continue
        kinds = node.get("type", [])
        if "array" in kinds and not isinstance(node.get("items"), dict):
            faults.append(f"{path}: array schema missing items")
        if "object" in kinds and not isinstance(node.get("properties"), dict):
            faults.append(f"{path}: object schema missing properties")
        if "$ref" in node or "$defs" in node:
            faults.append(f"{path}: a reference, which many servers do not follow")
    return faults


def strict_faults(tool: FittedTool) -> list[str]:
    """What OpenAI refuses with ``strict``; a tool that is not strict is judged as one that is not."""
    if not tool.strict:
        return openai_faults(tool) + ([] if tool.not_strict else ["not strict, and no reason given"])
    faults = _common_faults(tool)
    root = tool.parameters
    if root is None:
        return [*faults, "no parameters"]
    if "anyOf" in root or "$ref" in root:
        faults.append("a union or reference at the root")
    properties = values = 0
    for path, node, level in places(root):
        if not isinstance(node, dict):
            faults.append(f"{path}: a boolean for a schema")
            continue
        unknown = node.keys() - _STRICT_KEYWORDS
        if unknown:
            faults.append(f"{path}: {sorted(unknown)} not permitted")
        if "$ref" in node:
            if node.keys() != {"$ref"}:
                faults.append(f"{path}: $ref cannot have keywords")
            if node["$ref"].removeprefix("#/$defs/") not in root.get("$defs", {}):
                faults.append(f"{path}: {node['$ref']} leads nowhere")
            continue
        if "type" not in node and "anyOf" not in node:
            faults.append(f"{path}: schema must have a 'type' key")
        kinds = node.get("type", [])
        if "object" in kinds:
            properties += len(node.get("properties", {}))
            if node.get("additionalProperties") is not False:
                faults.append(f"{path}: 'additionalProperties' is required to be supplied and to be false")
            if sorted(node.get("required", ["?"])) != sorted(node.get("properties", {})):
                faults.append(f"{path}: 'required' must include every key in properties")
            if level > 5:
                faults.append(f"{path}: {level} levels of nesting exceeds limit of 5")
        if "array" in kinds and not isinstance(node.get("items"), dict):
            faults.append(f"{path}: array schema missing items")
        if node.get("format", "date") not in _STRICT_FORMATS:
            faults.append(f"{path}: format {node['format']} is not valid")
        if re.search(r"\(\?[=!<]", node.get("pattern", "")):
            faults.append(f"{path}: look-around in a pattern")
        values += len(node.get("enum", ()))
    if properties > 100 or values > 500:
        faults.append("too many properties or enumerated values")
    return faults


def anthropic_faults(tool: FittedTool) -> list[str]:
    """What Anthropic refuses in ``input_schema``."""
    faults = _common_faults(tool)
    root = tool.parameters
    if root is None:
        return [*faults, "no input_schema"]
    faults += [f"{key} at the root" for key in ("anyOf", "oneOf", "allOf") if key in root]
    for path, node, _ in places(root):
        if not isinstance(node, dict):
            continue
        for name in node.get("properties", {}):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
                faults.append(f"{path}: property key {name!r}")
        if "$ref" in node or "$defs" in node:
            faults.append(f"{path}: a reference")
    return faults


def gemini_faults(tool: FittedTool) -> list[str]:
    """What Gemini refuses in the ``parameters`` of a function declaration."""
    faults = _common_faults(tool)
    root = tool.parameters
    if root is None:
        return faults
    if not root.get("properties"):
        faults.append("parameters.properties: should be non-empty for OBJECT type")
    for path, node, level in places(root):
        if not isinstance(node, dict):
            faults.append(f"{path}: a boolean for a schema")
            continue
        unknown = node.keys() - _GEMINI_KEYWORDS
        if unknown:
            faults.append(f"{path}: unknown name {sorted(unknown)}")
        if "anyOf" in node:
            if node.keys() != {"anyOf"}:
                faults.append(f"{path}: anyOf is not the only field set")
            continue
        kind = node.get("type")
        if kind not in ("string", "integer", "number", "boolean", "array", "object"):
            faults.append(f"{path}: type {kind!r}")
        if "enum" in node and (kind != "string" or not all(isinstance(item, str) and item for item in node["enum"])):
            faults.append(f"{path}: enum only allowed for STRING type, and not empty")
        if "format" in node and node["format"] not in _GEMINI_FORMATS.get(str(kind), set()):
            faults.append(f"{path}: format {node['format']}")
        if kind == "array" and not isinstance(node.get("items"), dict):
            faults.append(f"{path}.items: missing field")
        if set(node.get("required", ())) - node.get("properties", {}).keys():
            faults.append(f"{path}.required: property is not defined")
        if kind == "object" and level > 5:
            faults.append(f"{path}: exceeds the maximum allowed nesting depth")
    return faults


def _common_faults(tool: FittedTool) -> list[str]:
    faults = []
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", tool.name):
        faults.append(f"name {tool.name!r}")
    if tool.parameters is not None:
        if tool.parameters.get("type") != "object":
            faults.append("the root is no object")
        if not jsonschema_rs.meta.is_valid(tool.parameters):
            faults.append("no valid JSON Schema")
        for path, node, _ in places(tool.parameters):
            if isinstance(node, dict) and not all(isinstance(key, str) for key in node):
                faults.append(f"{path}: a key that is no text")
    return faults


FAULTS: dict[str, Callable[[FittedTool], list[str]]] = {
    "openai": openai_faults,
    "openai_strict": strict_faults,
    "anthropic": anthropic_faults,
    "gemini": gemini_faults,
}


def as_json_schema(node: Any) -> Any:
    """A fitted schema with OpenAPI's ``nullable`` written as JSON Schema."""
    if isinstance(node, list):
        return [as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {
        key: {name: as_json_schema(child) for name, child in value.items()}
        if key in ("properties", "$defs")
        else value
        if key in ("enum", "required", "default", "nullable")
        else as_json_schema(value)
        for key, value in node.items()
    }
    if made.get("nullable") is not True:
        return made
    del made["nullable"]
    return {"anyOf": [made, {"type": "null"}]}
