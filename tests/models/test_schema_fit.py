"""Single tools and lists of them, fitted: what is kept, said, refused, and undone in a call."""

from __future__ import annotations

import copy
import enum
import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from toolturn.messages import ChatResponse, Repair, ToolCall, ToolDef
from toolturn.models.schema import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    OPENAI_STRICT,
    FittedTool,
    Profile,
    UnusableTool,
    fit,
    fit_all,
    profile_named,
    restore_arguments,
    wire_name,
    wire_names,
)

from .schema_rules import FAULTS

Json = dict[str, Any]
PROFILES = [OPENAI, OPENAI_STRICT, ANTHROPIC, GEMINI]
everywhere = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)


def tool(parameters: Any, profile: Profile = OPENAI, description: str = "Does it.") -> FittedTool:
    fitted = fit(ToolDef("tool", description, parameters), profile)
    assert FAULTS[profile.name](fitted) == []
    return fitted


def taking(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def property_of(schema: Any, profile: Profile = OPENAI, **definitions: Any) -> Any:
    parameters = tool({**taking(p=schema), "$defs": definitions}, profile).parameters
    assert parameters is not None
    return parameters["properties"]["p"]


# --- what is no schema of arguments ---------------------------------------------------------------


@everywhere
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ([], "its schema is no object"),
        ("object", "its schema is no object"),
        (False, "its schema is no object"),
        ({"type": "string"}, "not the schema of an object"),
        ({"type": ["string", "null"]}, "not the schema of an object"),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "not the schema of an object"),
        ({"const": 1}, "not the schema of an object"),
        ({"allOf": [{"type": "object"}, {"type": "array"}]}, "not the schema of an object"),
        ({"type": "object", "properties": {"a": {"enum": [object()]}}}, "object is no JSON, at /properties/a/enum/0"),
        ({"type": "object", "properties": {1: {}}}, "a key that is no text, at /properties"),
        ({"type": "object", "properties": {"\ud83d": {}}}, "a key that is no valid text, at /properties"),
    ],
)
def test_what_is_no_schema_of_arguments_is_refused_by_name_and_place(
    profile: Profile, parameters: Any, reason: str
) -> None:
    with pytest.raises(UnusableTool) as caught:
        fit(ToolDef("odd.one", "", parameters), profile)
    assert str(caught.value) == f"tool 'odd.one' can not be offered to a model: {reason}"
    assert copy.copy(caught.value).tool == "odd.one"


@everywhere
def test_a_schema_within_itself_is_refused(profile: Profile) -> None:
    schema: Json = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    with pytest.raises(UnusableTool, match="nested too deeply, or within itself"):
        fit(ToolDef("tool", "", schema), profile)


@everywhere
def test_a_schema_of_shared_parts_that_multiply_is_refused(profile: Profile) -> None:
    part: Json = {"type": "object", "properties": {}}
    for _ in range(40):
        part = {"type": "object", "properties": {"a": part, "b": part}}
    with pytest.raises(UnusableTool, match="more than 100,000 values"):
        fit(ToolDef("tool", "", part), profile)


@everywhere
@pytest.mark.parametrize("levels", [300, 3_000, 10_000])
def test_a_schema_of_any_depth_is_refused_and_does_not_exhaust_the_stack(profile: Profile, levels: int) -> None:
    schema: Json = {"type": "object"}
    for number in range(levels):
        schema = {"type": "object", "properties": {"p": schema}} if number % 2 else {"type": "array", "items": schema}
    with pytest.raises(UnusableTool, match="nested too deeply"):
        fit(ToolDef("tool", "", taking(p=schema)), profile)


@everywhere
@pytest.mark.parametrize("parameters", [None, True, {}, {"type": "object"}, {"properties": None}, {"type": ["object"]}])
def test_a_tool_without_parameters_has_none(profile: Profile, parameters: Any) -> None:
    fitted = tool(parameters, profile)
    if profile is GEMINI:
        assert fitted.parameters is None
    elif profile is OPENAI_STRICT:
        assert fitted.parameters == {
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        }
        assert fitted.strict
    else:
        assert fitted.parameters == {"type": "object", "properties": {}}


def test_mappings_tuples_and_enumerations_of_python_are_json_too() -> None:
    class Unit(str, enum.Enum):  # noqa: UP042 - its str() is another one
        C = "celsius"

    schema = MappingProxyType({"type": "object", "properties": {"u": {"type": "string", "enum": (Unit.C, "other")}}})
    fitted = fit(ToolDef("tool", "", schema), OPENAI)  # type: ignore[arg-type]
    assert fitted.parameters == {
        "type": "object",
        "properties": {"u": {"type": "string", "enum": ["celsius", "other"]}},
    }
    assert type(fitted.parameters["properties"]["u"]["enum"][0]) is str


@everywhere
def test_values_that_json_can_not_hold_do_not_get_into_the_request(profile: Profile) -> None:
    parameters = taking(
        a={"type": "number", "maximum": float("inf"), "default": float("nan")},
        b={"type": "string", "description": "cut in half \ud83d"},
        c={"type": "integer", "maximum": 10**5000},
    )
    fitted = tool(parameters, profile)
    json.dumps(fitted.parameters, allow_nan=False, ensure_ascii=False).encode()


# --- references -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/A",
        "#/definitions/B%20b",
        "#/properties/own",
        "#anchored",
        "https://example.com/schema#/$defs/A",
        "#/$defs/list/oneOf/0",
        "#/$defs/sl~1ash",
    ],
)
@everywhere
def test_a_reference_within_the_schema_is_followed(profile: Profile, reference: str) -> None:
    target = {"type": "string", "description": "It."}
    parameters = {
        "$id": "https://example.com/schema",
        **taking(p={"$ref": reference}, own=target),
        "$defs": {"A": target, "C": {**target, "$anchor": "anchored"}, "list": {"oneOf": [target]}, "sl/ash": target},
        "definitions": {"B b": target},
    }
    fitted = tool(parameters, profile)
    assert fitted.parameters is not None
    assert fitted.parameters["properties"]["p"] == target
    assert fitted.dropped == ()


@everywhere
@pytest.mark.parametrize(
    "reference", ["#/$defs/Nowhere", "other.json#/A", "https://example.com/x", "#missing", "#/$defs/n"]
)
def test_a_reference_that_leads_nowhere_is_said_and_never_fetched(profile: Profile, reference: str) -> None:
    fitted = tool({**taking(p={"$ref": reference, "description": "D"}), "$defs": {"n": 5}}, profile)
    assert fitted.parameters is not None
    assert f"see {reference}" in json.dumps(fitted.parameters)
    assert "/properties/p/$ref" in fitted.dropped


@everywhere
def test_what_stands_beside_a_reference_wins_over_what_it_leads_to(profile: Profile) -> None:
    made = property_of(
        {"$ref": "#/$defs/A", "description": "Mine"}, profile, A={"type": "string", "description": "Its"}
    )
    assert made == {"type": "string", "description": "Mine"}


@everywhere
@pytest.mark.parametrize(
    "definitions",
    [
        {"A": {"$ref": "#/$defs/A"}},
        {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
        {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]}},
        {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]}},
        {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}},
        {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        {"A": {"type": "object", "additionalProperties": {"$ref": "#/$defs/A"}}},
        {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}},
        {"A": {"$ref": "#"}},
        {f"{chr(65 + n)}": {"$ref": f"#/$defs/{chr(66 + n)}"} for n in range(5)} | {"F": {"type": "integer"}},
        {"A": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}}}},
    ],
)
def test_recursion_of_any_kind_ends(profile: Profile, definitions: Json) -> None:
    fitted = tool({**taking(p={"$ref": "#/$defs/A"}), "$defs": definitions}, profile)
    assert len(json.dumps(fitted.parameters)) < 10_000


@everywhere
def test_a_chain_of_a_thousand_references_ends(profile: Profile) -> None:
    definitions: Json = {f"D{n}": {"$ref": f"#/$defs/D{n + 1}"} for n in range(1_000)}
    tool({**taking(p={"$ref": "#/$defs/D0"}), "$defs": {**definitions, "D1000": {"type": "string"}}}, profile)


@everywhere
@pytest.mark.parametrize("keyword", ["properties", "anyOf", "allOf", "prefixItems"])
def test_references_that_multiply_are_kept_within_a_budget(profile: Profile, keyword: str) -> None:
    definitions: Json = {"D30": {"type": "object", "properties": {"x": {"type": "string"}}}}
    for n in range(30):
        twice = [{"$ref": f"#/$defs/D{n + 1}"}, {"$ref": f"#/$defs/D{n + 1}"}]
        definitions[f"D{n}"] = (
            {"type": "object", "properties": {"a": twice[0], "b": twice[1]}}
            if keyword == "properties"
            else {keyword: twice}
        )
    parameters = {**taking(p={"$ref": "#/$defs/D0"}, q={"type": "string"}), "$defs": definitions}
    try:
        fitted = fit(ToolDef("tool", "", parameters), profile)
    except UnusableTool as exc:
        told = str(exc)
        assert keyword != "properties", told
    else:
        assert FAULTS[profile.name](fitted) == []
        assert len(json.dumps(fitted.parameters)) < 500_000


def test_a_recursive_schema_stays_recursive_under_strict() -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
        "required": ["name"],
    }
    fitted = tool({**taking(p={"$ref": "#/$defs/N"}), "$defs": {"N": node}}, OPENAI_STRICT)
    assert fitted.strict
    assert fitted.dropped == ()
    assert fitted.parameters is not None
    assert fitted.parameters["$defs"]["N"]["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}


def test_a_schema_that_refers_to_its_root_stays_recursive_under_strict() -> None:
    parameters = {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#"}}}}
    fitted = tool(parameters, OPENAI_STRICT)
    assert fitted.strict
    assert restore_arguments({"and": [{"and": None}, {"and": [{"and": None}]}]}, fitted) == {"and": [{}, {"and": [{}]}]}


# --- combinations ---------------------------------------------------------------------------------


def test_all_of_is_one_object() -> None:
    made = property_of(
        {
            "allOf": [
                {"$ref": "#/$defs/Base"},
                {"type": "object", "properties": {"b": {"type": "integer", "minimum": 1}}, "required": ["b"]},
            ],
            "properties": {"b": {"maximum": 5}},
            "unevaluatedProperties": False,
        },
        Base={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    )
    assert made == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer", "minimum": 1, "maximum": 5}},
        "required": ["b", "a"],
        "additionalProperties": False,
    }


def test_closed_objects_that_are_combined_take_the_properties_of_all() -> None:
    parts = [{"type": "object", "properties": {n: {"type": "string"}}, "additionalProperties": False} for n in "ab"]
    fitted = tool(taking(p={"allOf": parts}))
    assert fitted.parameters is not None
    assert fitted.parameters["properties"]["p"]["properties"].keys() == {"a", "b"}
    assert fitted.parameters["properties"]["p"]["additionalProperties"] is False
    assert fitted.dropped


def test_what_stands_beside_a_union_holds_for_each_alternative() -> None:
    made = property_of(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
    )
    assert [branch["required"] for branch in made["anyOf"]] == [["a"], ["b"]]
    assert all(branch["properties"].keys() == {"a", "b"} for branch in made["anyOf"])


def test_alternatives_that_can_not_hold_are_left_out() -> None:
    assert property_of({"type": "string", "anyOf": [{"type": "integer"}, {"minLength": 2}]}) == {
        "type": "string",
        "minLength": 2,
    }


def test_one_of_alternatives_that_overlap_is_a_loss_that_is_said() -> None:
    apart = tool(taking(p={"oneOf": [{"type": "string"}, {"type": "integer"}]}))
    overlapping = tool(taking(p={"oneOf": [{"type": "integer"}, {"type": "number"}]}))
    assert apart.dropped == ()
    assert overlapping.dropped == ("/properties/p/oneOf",)
    assert "exactly one of the alternatives" in json.dumps(overlapping.parameters).lower()


def test_very_many_alternatives_are_not_multiplied() -> None:
    choice = {"anyOf": [{"required": [f"a{n}"]} for n in range(20)]}
    fitted = tool(taking(p={"type": "object", "properties": {}, "allOf": [choice, choice, choice]}))
    assert "/properties/p/allOf" in fitted.dropped


@everywhere
def test_conditions_are_said_and_leave_the_rest_alone(profile: Profile) -> None:
    parameters = {
        **taking(p={"type": "string", "not": {"enum": ["x"]}}),
        "if": {"properties": {"p": {"const": "a"}}},
        "then": {"required": ["q"]},
        "dependentRequired": {"q": ["p"]},
    }
    fitted = tool(parameters, profile)
    assert "further conditions apply" in fitted.description
    assert "q only together with p" in fitted.description
    assert fitted.parameters is not None
    assert fitted.parameters["properties"]["p"]["description"] == 'Not one of "x"'
    assert {"/if", "/dependentRequired", "/properties/p/not"} <= set(fitted.dropped)


@everywhere
def test_a_union_at_the_root_is_one_object_and_its_alternatives_are_said(profile: Profile) -> None:
    by_id = {
        "type": "object",
        "properties": {"by": {"const": "id"}, "value": {"type": "integer"}},
        "required": ["by", "value"],
    }
    by_name = {
        "type": "object",
        "properties": {"by": {"const": "name"}, "value": {"type": "string"}},
        "required": ["by"],
    }
    fitted = tool({"oneOf": [{"$ref": "#/$defs/I"}, by_name], "$defs": {"I": by_id}}, profile)
    assert fitted.parameters is not None
    assert fitted.parameters["properties"]["by"] == {"type": "string", "enum": ["id", "name"]}
    assert fitted.description == 'Does it. (give the arguments of one of these: by = "id", value | by = "name")'
    assert fitted.dropped == ("/oneOf",)


# --- types and values -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("dict", "object"),
        ("float", "number"),
        ("int", "integer"),
        ("STRING", "string"),
        ("Boolean", "boolean"),
        ("ArrayList", "array"),
        ("long", "integer"),
    ],
)
@everywhere
def test_types_of_other_languages_are_understood(profile: Profile, written: str, means: str) -> None:
    fitted = tool({**taking(p={"type": written, "properties": {}}), "type": "dict"}, profile)
    assert fitted.parameters is not None
    assert fitted.parameters["properties"]["p"]["type"] == means


def test_a_type_nobody_knows_takes_anything() -> None:
    assert property_of({"type": "Frobnicator", "description": "D"}) == {"description": "D"}
    assert property_of({"type": "any"}) == {}


@everywhere
def test_enumerations_keep_their_values_apart(profile: Profile) -> None:
    made = property_of({"enum": [1, True, 1.0, "1", None, "1"]}, profile)
    text = json.dumps(made)
    assert '"1"' in text
    assert "true" in text


def test_constants_with_a_shape_are_said() -> None:
    made = property_of({"enum": [{"a": 1}, [2]]}, GEMINI)
    assert [branch["type"] for branch in made["anyOf"]] == ["object", "array"]
    assert made["anyOf"][0]["description"] == 'One of {"a": 1}'


def test_a_property_that_must_not_be_there_is_not_offered() -> None:
    fitted = tool({"type": "object", "properties": {"a": {"type": "string"}, "b": False}})
    assert fitted.parameters == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert fitted.dropped == ("/properties/b",)


@everywhere
def test_keywords_whose_values_make_no_sense_are_left_out(profile: Profile) -> None:
    parameters = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": "2", "enum": "xy", "pattern": 5, "required": True},
            "b": {"type": "array", "items": 5, "minItems": -1},
            "c": {"anyOf": [], "type": 7},
            "d": "string",
            "e": {"type": "object", "properties": [], "required": "x"},
        },
        "required": ["a", "a", "zz", 5],
        "$defs": [],
    }
    tool(parameters, profile)


@pytest.mark.parametrize(
    ("pattern", "openai", "strict"),
    [
        ("^[a-z]+$", True, True),
        ("[a-z]", False, True),
        (r"^\d+$", False, True),
        (r"^(?!x).*$", False, False),
        (r"^(?P<year>\d{4})$", False, False),
        (r"^(a)\1$", False, False),
        ("^(unclosed$", False, False),
        (r"^\p{L}+$", False, False),
        ("^(?:a|b)$", False, True),
    ],
)
def test_patterns_are_handed_on_only_to_engines_that_know_them(pattern: str, openai: bool, strict: bool) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert ("pattern" in property_of(schema, OPENAI)) is openai
    assert ("pattern" in property_of(schema, OPENAI_STRICT)) is strict
    said = property_of(schema, GEMINI)
    assert said == {"type": "string", "description": f"Matches {pattern}"}


def test_examples_and_defaults_are_said_where_they_are_not_taken() -> None:
    schema = {"type": "integer", "description": "How many.", "default": 3, "examples": [1, 2]}
    assert property_of(schema, GEMINI)["description"] == "How many. (default 3; for example 1, 2)"
    assert property_of(schema, OPENAI) == {
        "type": "integer",
        "default": 3,
        "description": "How many. (for example 1, 2)",
    }


def test_endless_words_are_cut() -> None:
    made = property_of({"type": "integer", "enum": list(range(5_000))}, GEMINI)
    assert len(made["description"]) < 300


def test_an_enumeration_that_takes_null_holds_it_too() -> None:
    schema = {"type": ["string", "null"], "enum": ["a", None]}
    assert property_of(schema, OPENAI) == schema
    assert property_of({"type": "string", "enum": ["a"]}, OPENAI_STRICT) == {"type": "string", "enum": ["a"]}
    optional = tool({"type": "object", "properties": {"p": {"enum": ["a"]}}}, OPENAI_STRICT)
    assert optional.parameters is not None
    assert optional.parameters["properties"]["p"] == schema


def test_of_two_bounds_the_tighter_one_holds() -> None:
    parts = [{"type": "string", "minLength": 3, "maxLength": 9}, {"minLength": 1, "maxLength": 5}]
    assert property_of({"allOf": parts}) == {"type": "string", "minLength": 3, "maxLength": 5}


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"exclusiveMinimum": 0}, {"minimum": 1}),
        ({"exclusiveMinimum": -1.5}, {"minimum": -1}),
        ({"exclusiveMaximum": 10}, {"maximum": 9}),
        ({"exclusiveMaximum": 10, "maximum": 5}, {"maximum": 5}),
    ],
)
def test_exclusive_bounds_of_whole_numbers_are_said_as_inclusive_ones(bounds: Json, expected: Json) -> None:
    fitted = tool(taking(p={"type": "integer", **bounds}), GEMINI)
    assert fitted.parameters is not None
    assert fitted.parameters["properties"]["p"] == {"type": "integer", **expected}
    assert fitted.dropped == ()


def test_keys_by_pattern_keep_an_object_open() -> None:
    schema = {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert property_of(schema, ANTHROPIC)["additionalProperties"] is True
    assert not tool(taking(p=schema), OPENAI_STRICT).strict


def test_a_title_that_tells_something_is_a_description() -> None:
    assert property_of({"type": "integer", "title": "Number of results"}) == {
        "type": "integer",
        "description": "Number of results",
    }
    assert property_of({"type": "integer", "title": "P"}) == {"type": "integer"}
    assert property_of({"type": "integer", "title": "T", "description": "D"}) == {"type": "integer", "description": "D"}


@everywhere
def test_an_enumeration_whose_values_are_not_of_the_type_is_said(profile: Profile) -> None:
    made = property_of({"type": "string", "enum": [1, 2]}, profile)
    assert made == {"type": "string", "description": "One of 1, 2"}


def test_a_required_property_that_is_not_declared_is_said() -> None:
    made = property_of({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b", "a"]})
    assert made["required"] == ["a"]
    assert made["description"] == "Also needs b"


def test_a_description_of_a_recursion_is_kept_under_strict() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "The next one."}}}
    fitted = tool({**taking(p={"$ref": "#/$defs/N"}), "$defs": {"N": node}}, OPENAI_STRICT)
    assert fitted.strict
    assert fitted.parameters is not None
    assert fitted.parameters["$defs"]["N"]["properties"]["next"] == {
        "anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}],
        "description": "The next one.",
    }


@everywhere
def test_an_alias_of_a_union_says_its_own_name(profile: Profile) -> None:
    parameters = tool(taking(**{"o k?": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}), profile).parameters
    assert parameters is not None
    ((name, schema),) = parameters["properties"].items()
    assert (name == "o k?") is (profile in (OPENAI, OPENAI_STRICT))
    assert ('its own name is "o k?"' in str(schema).replace("I", "i")) is (name != "o k?")


# --- sizes ----------------------------------------------------------------------------------------


def test_more_properties_than_strict_allows_are_sent_without_it() -> None:
    fitted = tool(taking(**{f"p{n}": {"type": "string"} for n in range(101)}), OPENAI_STRICT)
    assert not fitted.strict
    assert fitted.not_strict == "/: more than 100 properties"
    raised = replace(OPENAI_STRICT, max_properties=5_000, max_depth=10)
    assert fit(ToolDef("tool", "", taking(**{f"p{n}": {"type": "string"} for n in range(101)})), raised).strict


def test_more_enumerated_values_than_strict_allows_are_sent_without_it() -> None:
    fitted = tool(taking(p={"type": "string", "enum": [f"v{n}" for n in range(501)]}), OPENAI_STRICT)
    assert not fitted.strict
    assert "500 enumerated values" in fitted.not_strict


@everywhere
def test_depth_beyond_the_profile_is_said_and_open(profile: Profile) -> None:
    schema: Json = {"type": "object", "properties": {"leaf": {"type": "string"}}}
    for _ in range(25):
        schema = {"type": "object", "properties": {"p": schema, "q": {"type": "string"}}}
    fitted = tool(schema, profile)
    assert not fitted.strict
    assert "Holds p (object with p, q), q (string)" in json.dumps(fitted.parameters)


def test_a_description_too_long_for_openai_goes_on_in_the_parameters() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    fitted = tool(taking(p={"type": "string"}), OPENAI, text)
    assert len(fitted.description) <= 1024
    assert fitted.parameters is not None
    rest = fitted.parameters["description"]
    assert f"{fitted.description.rstrip('…')} {rest.removeprefix('…')}" == text
    assert tool(taking(p={"type": "string"}), ANTHROPIC, text).description == text


def test_a_description_that_stands_in_both_places_is_sent_once() -> None:
    fitted = tool({**taking(p={"type": "string"}), "description": "Does it."})
    assert fitted.parameters is not None
    assert "description" not in fitted.parameters
    assert tool({**taking(p={"type": "string"}), "description": "More."}).parameters["description"] == "More."  # type: ignore[index]


# --- arguments back -------------------------------------------------------------------------------


def test_nulls_that_stand_for_left_out_are_left_out_at_every_depth() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "n": {"type": "integer", "default": 5},
            "maybe": {"type": ["string", "null"]},
            "inner": {"type": "object", "properties": {"x": {"enum": [1, 2]}, "y": {"type": "number"}}},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"z": {"type": "string"}}}},
        },
        "required": ["q"],
    }
    fitted = tool(parameters, OPENAI_STRICT)
    assert fitted.strict
    written: Json = {
        "q": "a",
        "n": None,
        "maybe": None,
        "inner": {"x": None, "y": 2},
        "rows": [{"z": None}, {"z": "z"}],
    }
    before = copy.deepcopy(written)

    assert restore_arguments(written, fitted) == {"q": "a", "maybe": None, "inner": {"y": 2}, "rows": [{}, {"z": "z"}]}
    assert written == before


def test_a_null_for_what_is_required_stays_for_the_tool_to_refuse() -> None:
    fitted = tool(taking(q={"type": "string"}), OPENAI_STRICT)
    assert restore_arguments({"q": None}, fitted) == {"q": None}


def test_properties_get_their_own_names_back_at_every_depth() -> None:
    filters = {"type": "object", "properties": {"filter[id]": {"type": "string"}, "filter.id": {"type": "string"}}}
    fitted = tool(
        {"type": "object", "properties": {"o k": filters, "o_k": {"type": "array", "items": filters}}}, ANTHROPIC
    )
    assert fitted.parameters is not None
    outer = {change for change in fitted.parameters["properties"] if change != "o_k"}.pop()
    inner = next(name for name in fitted.parameters["properties"]["o_k"]["items"]["properties"] if name != "filter.id")

    written = {outer: {inner: "1", "filter.id": "2"}, "o_k": [{inner: "3"}]}

    assert restore_arguments(written, fitted) == {
        "o k": {"filter[id]": "1", "filter.id": "2"},
        "o_k": [{"filter[id]": "3"}],
    }


def test_the_own_name_works_too_where_a_model_writes_that() -> None:
    fitted = tool(taking(**{"o k": {"type": "string"}}), ANTHROPIC)
    assert restore_arguments({"o k": "x"}, fitted) == {"o k": "x"}
    assert restore_arguments({"o_k": "y", "o k": "x"}, fitted) == {"o k": "x"}


def test_a_map_at_the_root_is_unwrapped() -> None:
    fitted = tool({"type": "object", "additionalProperties": {"type": "integer"}}, GEMINI)
    assert restore_arguments({"arguments": {"a": 1}}, fitted) == {"a": 1}
    assert restore_arguments({"a": 1}, fitted) == {"a": 1}


def test_arguments_with_nothing_to_undo_are_returned_themselves() -> None:
    arguments = {"q": "x"}
    assert restore_arguments(arguments, tool(taking(q={"type": "string"}))) is arguments
    assert restore_arguments(arguments, tool({}, GEMINI)) is arguments


def test_arguments_that_take_endless_guessing_come_back_as_they_are() -> None:
    branch: Json = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/N"}, "x": {"type": "integer"}},
        "required": ["next"],
    }
    other = {**branch, "properties": {**branch["properties"], "x": {"type": "integer", "minimum": 1}}}
    parameters = {
        **taking(p={"$ref": "#/$defs/N"}),
        "$defs": {"N": {"anyOf": [branch, other, {"type": "string"}]}},
    }
    fitted = tool(parameters, OPENAI_STRICT)
    assert fitted.strict
    value: Any = 5
    for _ in range(60):
        value = {"next": value, "x": None}
    assert restore_arguments({"p": value}, fitted) == {"p": value}


# --- lists of tools -------------------------------------------------------------------------------


def test_a_bad_tool_is_left_out_and_named() -> None:
    fitted = fit_all(
        [ToolDef("good", "", {}), ToolDef("bad", "", {"type": "string"}), ToolDef("good", "again", {})], OPENAI
    )
    assert [item.name for item in fitted.tools] == ["good"]
    assert fitted.warnings == (
        "tool 'bad' can not be offered to a model: not the schema of an object",
        "tool 'good' can not be offered to a model: another tool has the same name",
    )


def test_a_name_that_is_no_text_is_a_bad_tool() -> None:
    fitted = fit_all([ToolDef(None, "", {}), ToolDef(7, "", {})], OPENAI)  # type: ignore[arg-type]
    assert fitted.tools == ()
    assert len(fitted.warnings) == 2


def test_no_tools_are_none() -> None:
    fitted = fit_all((), GEMINI)
    assert (fitted.tools, fitted.aliases, fitted.warnings) == ((), {}, ())


def test_names_are_aliased_both_ways() -> None:
    fitted = fit_all([ToolDef("math.factorial", "", {}), ToolDef("plain", "", {})], OPENAI)
    assert [item.name for item in fitted.tools] == ["math_factorial", "plain"]
    assert fitted.aliases == {"math.factorial": "math_factorial", "plain": "plain"}
    assert fitted.own_names == {"math_factorial": "math.factorial", "plain": "plain"}
    assert fitted.own_name("math_factorial") == "math.factorial"
    assert fitted.own_name("Math-Factorial") == "math.factorial"
    assert fitted.own_name(" functions.math_factorial") == "math.factorial"
    assert fitted.own_name("other") == "other"


def test_a_reply_gets_own_names_and_arguments_back() -> None:
    definition = ToolDef("my tool", "", {"type": "object", "properties": {"n": {"type": "integer"}}})
    fitted = fit_all([definition], OPENAI_STRICT)
    reply = ChatResponse("", tool_calls=[ToolCall("1", "my_tool", '{"n": null}'), ToolCall("2", "my_tool", "{n")])

    calls = fitted.unalias(reply).tool_calls

    assert calls == [ToolCall("1", "my tool", "{}"), ToolCall("2", "my tool", "{n")]
    assert reply.tool_calls is not None
    assert reply.tool_calls[0].name == "my_tool"


def test_a_name_that_only_nearly_fits_is_recorded_and_only_where_tools_were_renamed() -> None:
    fitted = fit_all([ToolDef("my tool", "", {}), ToolDef("plain", "", {})], OPENAI)
    reply = fitted.unalias(ChatResponse("", tool_calls=[ToolCall("1", "My-Tool", "{}"), ToolCall("2", "Plain", "{}")]))
    assert reply.tool_calls == [ToolCall("1", "my tool", "{}"), ToolCall("2", "Plain", "{}")]
    assert reply.repairs == (Repair("name", "'My-Tool' was read as 'my tool'"),)


def test_what_was_offered_is_named_as_the_model_knows_it() -> None:
    fitted = fit_all([ToolDef("my tool", "D", {}), ToolDef("x", "", taking(**{"o k": {"type": "string"}}))], ANTHROPIC)
    assert [definition.name for definition in fitted.offered] == ["my_tool", "x"]
    assert list(fitted.offered[1].parameters["properties"]) == ["o_k"]
    assert fit_all([ToolDef("x", "", {})], GEMINI).offered == (ToolDef("x", "", {"type": "object"}),)


@pytest.mark.parametrize(
    "arguments", ['{"n": null, "n": 1}', '{"n": NaN}', "[null]", "", "null", '{"n": null} {"n": 2}']
)
def test_arguments_that_must_be_refused_are_not_made_better(arguments: str) -> None:
    definition = ToolDef("tool", "", {"type": "object", "properties": {"n": {"type": "integer"}}})
    fitted = fit_all([definition], OPENAI_STRICT)
    reply = ChatResponse("", tool_calls=[ToolCall("1", "tool", arguments)])
    assert fitted.unalias(reply) is reply


def test_a_reply_with_nothing_to_undo_is_returned_itself() -> None:
    fitted = fit_all([ToolDef("plain", "", {})], OPENAI)
    for reply in (
        ChatResponse("text"),
        ChatResponse("", tool_calls=[ToolCall("1", "plain", "{}"), ToolCall("2", "unknown", "{}")]),
        ChatResponse("", tool_calls=[ToolCall("1", None, None)]),  # type: ignore[arg-type]
    ):
        assert fitted.unalias(reply) is reply


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("get_weather", "get_weather"),
        ("get-weather", "get-weather"),
        ("_private", "_private"),
        ("math.factorial", "math_factorial"),
        ("ns:do it", "ns_do_it"),
        ("café/find", "cafe_find"),
        ("1st lookup", "_1st_lookup"),
        ("a" * 64, "a" * 64),
    ],
)
def test_a_name_is_changed_as_little_as_possible(name: str, alias: str) -> None:
    assert wire_name(name) == alias
    assert wire_names([name, "another"])[name] == alias


@pytest.mark.parametrize("name", ["", "查询", "查詢", "…", "a" * 65, "b" * 200, "x" * 64 + "é", "\ud800", "søk"])
def test_a_name_that_loses_something_gets_a_digest(name: str) -> None:
    alias = wire_name(name)
    assert alias != name
    assert len(alias) <= 64
    assert alias[-9] == "_"


def test_what_a_name_becomes_does_not_depend_on_tools_that_do_not_collide() -> None:
    names = ["a.b", "查询", "x" * 80, "fine", "Über uns"]
    alone = {name: wire_name(name) for name in names}
    assert wire_names([*names, "other", "more.of_it", "y" * 90]) == {
        **alone,
        "other": "other",
        "more.of_it": "more_of_it",
        "y" * 90: wire_name("y" * 90),
    }


def test_names_that_collide_stay_apart_and_those_that_fit_keep_theirs() -> None:
    aliases = wire_names(["a.b", "a b", "a_b", "a-b", "A_B"])
    assert aliases["A_B"] == "A_B"
    assert len({alias.casefold().replace("-", "_") for alias in aliases.values()}) == 5
    assert wire_names(["a.b", "a_b"])["a_b"] == "a_b"


def test_profiles_have_names() -> None:
    assert [profile_named(profile.name) for profile in PROFILES] == PROFILES
    with pytest.raises(ValueError, match="no schema profile 'cohere'; there are openai"):
        profile_named("cohere")
