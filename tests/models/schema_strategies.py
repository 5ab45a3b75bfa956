"""JSON Schemas, and values that satisfy them, for property-based tests."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

# parameters may be called like keywords
NAMES = st.sampled_from(["a", "b", "title", "type", "properties", "items", "default", "enum", "required", "x-1"])
ODD_NAMES = st.sampled_from(["a", "o k", "o_k", "é", "$ref", "1st", "n" * 70, "a/b", "a~b", ""])
_SCALARS = st.one_of(st.text("abc", max_size=3), st.integers(-3, 3), st.booleans(), st.none(), st.just(0.5))


@st.composite
def _string(draw: st.DrawFn) -> Json:
    schema: Json = {"type": "string"}
    if draw(st.booleans()):
        schema |= draw(
            st.sampled_from(
                [{"minLength": 1}, {"maxLength": 3}, {"format": "date"}, {"format": "uri"}, {"pattern": "^[a-c]*$"}]
            )
        )
    return schema


@st.composite
def _number(draw: st.DrawFn) -> Json:
    schema: Json = {"type": draw(st.sampled_from(["integer", "number"]))}
    if draw(st.booleans()):
        schema |= draw(
            st.sampled_from([{"minimum": 0}, {"exclusiveMaximum": 2}, {"multipleOf": 2}, {"exclusiveMinimum": -1.5}])
        )
    return schema


@st.composite
def _constants(draw: st.DrawFn) -> Json:
    if draw(st.booleans()):
        return {"const": draw(_SCALARS)}
    return {"enum": draw(st.lists(_SCALARS, min_size=1, max_size=4))}


def leaves(references: tuple[str, ...] = ()) -> st.SearchStrategy[Json]:
    kinds: list[st.SearchStrategy[Json]] = [
        _string(),
        _number(),
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        _constants(),
        st.sampled_from([{"type": ["string", "null"]}, {"type": ["integer", "string"]}]),
    ]
    if references:
        kinds.append(st.sampled_from([{"$ref": reference} for reference in references]))
    return st.one_of(kinds)


@st.composite
def objects(
    draw: st.DrawFn,
    inner: st.SearchStrategy[Json],
    *,
    closed: bool | None = None,
    names: st.SearchStrategy[str] = NAMES,
) -> Json:
    properties = draw(st.dictionaries(names, inner, max_size=4))
    schema: Json = {"type": "object", "properties": properties}
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    if required:
        schema["required"] = required
    shut = draw(st.booleans()) if closed is None else closed
    if shut:
        schema["additionalProperties"] = False
    return schema


def _wider(
    inner: st.SearchStrategy[Json], closed: bool | None, names: st.SearchStrategy[str]
) -> st.SearchStrategy[Json]:
    described = st.builds(lambda schema: {**schema, "description": "D", "title": "T"}, inner)
    arrays = st.builds(lambda item, more: {"type": "array", "items": item, **more}, inner, _sizes())
    tuples = st.builds(
        lambda members: {
            "type": "array",
            "prefixItems": members,
            "minItems": len(members),
            "maxItems": len(members),
        },
        st.lists(inner, min_size=1, max_size=3),
    )
    maps = st.builds(lambda value: {"type": "object", "additionalProperties": value}, inner)
    unions = st.builds(
        lambda keyword, branches: {keyword: branches},
        st.sampled_from(["anyOf", "oneOf"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    both = st.builds(
        lambda one, other: {"allOf": [one, other]}, objects(inner, closed=False), objects(inner, closed=False)
    )
    conditions = st.sampled_from(
        [
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"const": 1}}}]},
            {"not": {"required": ["a"]}},
            {"patternProperties": {"^b": {"type": "integer"}}},
            {"propertyNames": {"maxLength": 3}},
            {"dependentRequired": {"a": ["b"]}},
            {"minProperties": 1},
            {"unevaluatedProperties": False},
            {"type": ["object", "null", "string"], "minLength": 1},
            {"allOf": [{"properties": {"a": {"type": ["string", "integer"]}}}, {"required": ["a"]}]},
        ]
    )
    conditional = st.builds(lambda schema, more: {**schema, **more}, objects(inner, closed=closed), conditions)
    return st.one_of(
        objects(inner, closed=closed, names=names), conditional, arrays, tuples, maps, unions, both, described
    )


def _sizes() -> st.SearchStrategy[Json]:
    return st.sampled_from([{}, {"maxItems": 2}, {"minItems": 1}, {"uniqueItems": True}])


@cache
def _parts(count: int, closed: bool | None, names: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    """Schemas that may refer to so many definitions; made once, for making a strategy takes longer than drawing."""
    references = tuple(f"#/$defs/D{number}" for number in range(count))
    return st.recursive(leaves(references), lambda parts: _wider(parts, closed, names), max_leaves=6)


@cache
def _tools(count: int, closed: bool | None, names: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    parts = _parts(count, closed, names)
    root = objects(parts, closed=closed, names=names)
    if not count:
        return root
    definitions = st.fixed_dictionaries({f"D{number}": parts for number in range(count)})
    return st.builds(lambda schema, defined: {**schema, "$defs": defined}, root, definitions)


def tool_schemas(*, closed: bool | None = None, names: st.SearchStrategy[str] = NAMES) -> st.SearchStrategy[Json]:
    """The schema of a tool such as people write, with definitions that may refer to each other and themselves."""
    return st.one_of([_tools(count, closed, names) for count in range(3)])


@st.composite
def values(draw: st.DrawFn, schema: Any, root: Json, depth: int = 0) -> Any:
    """A value that is likely to satisfy a schema."""
    if depth > 8 or not isinstance(schema, dict) or not schema:
        return draw(_SCALARS)
    if "$ref" in schema:
        key = schema["$ref"].rpartition("/")[2]
        return draw(values(root["$defs"][key], root, depth + 1))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return draw(values(draw(st.sampled_from(schema[keyword])), root, depth + 1))
    if "allOf" in schema:
        made: Json = {}
        for part in schema["allOf"]:
            value = draw(values(part, root, depth + 1))
            if isinstance(value, dict):
                made |= value
        return made
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kinds = schema.get("type", ["string", "object"])
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "string":
        return draw(st.sampled_from(["", "a", "ab", "abc", "2024-02-29"]))
    if kind in ("integer", "number"):
        return draw(st.sampled_from([-1, 0, 1, 2] + ([0.5] if kind == "number" else [])))
    if kind == "boolean":
        return draw(st.booleans())
    if kind == "null":
        return None
    if kind == "array":
        first = schema.get("prefixItems", [])
        made_items = [draw(values(member, root, depth + 1)) for member in first]
        items = schema.get("items", not first)
        if items is not False and len(made_items) < schema.get("maxItems", 3):
            most = min(schema.get("maxItems", 3), 3) - len(made_items)
            count = draw(st.integers(max(min(schema.get("minItems", 0), most), 0), max(most, 0)))
            made_items += [draw(values(items, root, depth + 1)) for _ in range(count)]
        return made_items
    result: Json = {}
    required = schema.get("required", ())
    for name, child in schema.get("properties", {}).items():
        if name in required or (depth < 4 and draw(st.booleans())):
            result[name] = draw(values(child, root, depth + 1))
    extra = schema.get("additionalProperties")
    if extra not in (None, False) and draw(st.booleans()):
        result["more"] = draw(values(extra, root, depth + 1))
    return result


_KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "enum", "const"),
        *("additionalProperties", "prefixItems", "minimum", "exclusiveMaximum", "pattern", "format", "description"),
        *("not", "if", "nullable", "default", "propertyNames", "patternProperties", "$id", "$anchor", "minItems"),
    ]
)
_WORDS = st.sampled_from(
    [
        "string",
        "object",
        "array",
        "null",
        "dict",
        "Foo",
        "#",
        "#/$defs/a",
        "#/properties/a",
        "#a",
        "http://x/y",
        "(",
        "",
    ]
)
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.floats(), st.text(max_size=3), _WORDS, st.just(10**400)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(_KEYWORDS, st.sampled_from(["a", "b"])), inner, max_size=6),
    ),
    max_leaves=30,
)
