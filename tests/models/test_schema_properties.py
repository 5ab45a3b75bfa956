"""What holds for every schema, whoever wrote it."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolturn.messages import ToolDef
from toolturn.models.schema import UnusableTool, fit, fit_all, profile_named, restore_arguments, wire_names

from .schema_rules import FAULTS, as_json_schema
from .schema_strategies import JUNK, NAMES, ODD_NAMES, tool_schemas, values

NAMED_ODDLY = tool_schemas(names=st.one_of(NAMES, ODD_NAMES))
TELLABLE = tool_schemas(closed=False, names=st.one_of(NAMES, ODD_NAMES))
SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)

profiles = pytest.mark.parametrize("name", FAULTS)


def tool_of(parameters: Any) -> ToolDef:
    return ToolDef("tool", "Does it.", parameters)


def is_valid(schema: Any, value: Any) -> bool:
    return jsonschema_rs.validator_for(as_json_schema(schema)).is_valid(value)


@profiles
@SLOW
@given(schema=NAMED_ODDLY)
def test_a_provider_takes_what_becomes_of_a_schema(name: str, schema: dict[str, Any]) -> None:
    assert FAULTS[name](fit(tool_of(schema), profile_named(name))) == []


@profiles
@SLOW
@given(schema=JUNK)
def test_junk_is_taken_or_named_and_never_touched(name: str, schema: Any) -> None:
    before = copy.deepcopy(schema)
    try:
        tool = fit(tool_of(schema), profile_named(name))
    except UnusableTool as exc:
        told = str(exc)
    else:
        told = "tool 'tool'"
        assert FAULTS[name](tool) == []
        json.dumps(tool.parameters, allow_nan=False).encode()
    assert told.startswith("tool 'tool'")
    assert json.dumps(schema) == json.dumps(before)


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
@SLOW
@given(schema=tool_schemas(), data=st.data())
def test_arguments_of_the_own_schema_are_taken_by_the_fitted_one(
    name: str, schema: dict[str, Any], data: st.DataObject
) -> None:
    """Leaving something out only ever allows more; so the model can say all that the tool takes."""
    arguments = data.draw(values(schema, schema))
    assume(is_valid(schema, arguments))
    tool = fit(tool_of(schema), profile_named(name))
    if tool.parameters is not None:
        assert is_valid(tool.parameters, arguments)


@pytest.mark.parametrize("name", ["openai", "openai_strict", "anthropic"])
@SLOW
@given(schema=NAMED_ODDLY, data=st.data())
def test_where_nothing_was_dropped_what_a_model_may_write_satisfies_the_own_schema(
    name: str, schema: dict[str, Any], data: st.DataObject
) -> None:
    nothing_is_lost(name, schema, data)


# Gemini can not be told that an object is closed, and of most schemas something is lost.
@settings(SLOW, max_examples=max(10, settings().max_examples // 5))
@given(schema=TELLABLE, data=st.data())
def test_where_nothing_was_dropped_for_gemini_its_calls_satisfy_the_own_schema(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    nothing_is_lost("gemini", schema, data)


def nothing_is_lost(name: str, schema: dict[str, Any], data: st.DataObject) -> None:
    tool = fit(tool_of(schema), profile_named(name))
    assume(not tool.dropped and tool.parameters is not None)
    assert tool.parameters is not None
    taken = as_json_schema(tool.parameters)
    written = data.draw(values(taken, taken))
    assume(is_valid(tool.parameters, written))

    arguments = restore_arguments(written, tool)

    assert is_valid(schema, arguments), arguments


@SLOW
@given(schema=tool_schemas(), data=st.data())
def test_under_strict_every_argument_can_be_said(schema: dict[str, Any], data: st.DataObject) -> None:
    """Closed objects of which all properties are given; what was optional is null where it is left out."""
    arguments = data.draw(values(schema, schema))
    assume(is_valid(schema, arguments))
    tool = fit(tool_of(schema), profile_named("openai_strict"))
    assume(tool.strict and tool.parameters is not None and "anyOf" not in json.dumps(tool.parameters))
    assert tool.parameters is not None

    def filled(value: Any, node: Any) -> Any:
        if isinstance(value, list):
            return [filled(item, node.get("items", {})) for item in value]
        if not isinstance(value, dict):
            return value
        assume(not value.keys() - node["properties"].keys())
        return {name: filled(value.get(name), child) for name, child in node["properties"].items()}

    written = filled(arguments, tool.parameters)
    assume("$ref" not in json.dumps(tool.parameters))
    assert is_valid(tool.parameters, written)
    restored = restore_arguments(written, tool)
    assert is_valid(schema, restored)
    assert {key: value for key, value in restored.items() if value is not None} == {
        key: value for key, value in arguments.items() if value is not None
    } or any(isinstance(value, (dict, list)) for value in arguments.values())


@given(names=st.lists(st.text(max_size=80), unique=True, max_size=12))
def test_names_on_the_wire_are_unique_fit_and_do_not_depend_on_order(names: list[str]) -> None:
    import re

    aliases = wire_names(names)

    assert aliases == wire_names(reversed(names))
    assert aliases.keys() == set(names)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", alias) for alias in aliases.values())
    assert len({alias.casefold().replace("-", "_") for alias in aliases.values()}) == len(names)


@profiles
@SLOW
@given(schemas=st.lists(JUNK, max_size=4))
def test_no_tool_fails_the_others(name: str, schemas: list[Any]) -> None:
    definitions = [ToolDef(f"tool{number}", "", schema) for number, schema in enumerate(schemas)]
    definitions.append(ToolDef("fine", "", {"type": "object", "properties": {"q": {"type": "string"}}}))

    fitted = fit_all(definitions, profile_named(name))

    assert fitted.tools[-1].own_name == "fine"
    assert len(fitted.tools) + len(fitted.warnings) == len(definitions)


@given(arguments=st.dictionaries(st.sampled_from(["a", "b", "more"]), JUNK, max_size=3), schema=tool_schemas())
@SLOW
def test_arguments_of_any_kind_come_back_without_an_error(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    before = json.dumps(arguments)
    assert isinstance(restore_arguments(arguments, fit(tool_of(schema), profile_named("openai_strict"))), dict)
    assert json.dumps(arguments) == before
