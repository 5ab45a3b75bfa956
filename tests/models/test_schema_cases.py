"""Declarations that providers were reported to refuse; each is data with its source and what must come of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolturn.messages import ToolDef
from toolturn.models.schema import OPENAI, FittedTool, Profile, fit, fit_all, profile_named, wire_names

from .schema_rules import FAULTS, places

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "schema_cases.jsonl").read_text(encoding="utf-8").splitlines()
]


def of_kind(kind: str) -> pytest.MarkDecorator:
    rows = [case for case in CASES if case["kind"] == kind]
    assert rows
    return pytest.mark.parametrize("case", rows, ids=lambda case: case["name"])


def profile_of(case: dict[str, Any]) -> Profile:
    return OPENAI if case["profile"] == "inline_refs" else profile_named(case["profile"])


def all_keywords(schema: Any) -> set[str]:
    return {keyword for _, node, _ in places(schema) if isinstance(node, dict) for keyword in node}


def check(tool: FittedTool, oracle: dict[str, Any]) -> None:
    schema = tool.parameters
    for key, wanted in oracle.items():
        if key == "left_out":
            assert (schema is None) is wanted
            continue
        if key == "strict":
            assert tool.strict is wanted
            continue
        if key == "said":
            text = tool.description + json.dumps(schema, ensure_ascii=False)
            assert wanted in text
            continue
        assert schema is not None
        if key == "no_ref":
            assert not all_keywords(schema) & {"$ref", "$defs"}
        elif key == "absent":
            assert not all_keywords(schema) & set(wanted)
        elif key == "root_absent":
            assert not schema.keys() & set(wanted)
        elif key == "arrays_have_items":
            assert all("items" in node for _, node, _ in places(schema) if node.get("type") == "array")
        elif key == "property_names":
            assert list(schema["properties"]) == wanted
        elif key in ("properties", "required", "additionalProperties", "type"):
            assert schema[key] == wanted
        elif key == "parameters":
            assert schema == wanted
        else:
            raise AssertionError(f"an oracle nobody checks: {key}")


@of_kind("schema")
def test_a_reported_schema_becomes_one_the_provider_takes(case: dict[str, Any]) -> None:
    profile = profile_of(case)
    before = json.dumps(case["schema"])

    tool = fit(ToolDef("tool", "Does it.", case["schema"]), profile)

    check(tool, case["oracle"])
    assert FAULTS[profile.name](tool) == []
    assert json.dumps(case["schema"]) == before


@of_kind("schema")
def test_a_reported_schema_is_taken_by_every_other_provider_too(case: dict[str, Any]) -> None:
    for name, faults in FAULTS.items():
        assert faults(fit(ToolDef("tool", "Does it.", case["schema"]), profile_named(name))) == []


@of_kind("names")
def test_reported_names_become_names_every_provider_takes(case: dict[str, Any]) -> None:
    import re

    aliases = wire_names(case["names"])

    oracle = case["oracle"]
    assert list(aliases) == sorted(aliases, key=list(aliases).index)
    assert aliases.keys() == set(case["names"])
    for alias in aliases.values():
        assert re.fullmatch(oracle.get("name_regex", ".*"), alias)
        assert len(alias) <= oracle.get("name_max", 64)
    assert len({alias.casefold().replace("-", "_") for alias in aliases.values()}) == len(aliases)


@of_kind("tools")
@pytest.mark.parametrize("name", FAULTS)
def test_reported_input_schemas_become_objects(case: dict[str, Any], name: str) -> None:
    definitions = [ToolDef(tool["name"], "", tool.get("inputSchema")) for tool in case["tools"]]

    fitted = fit_all(definitions, profile_named(name))

    assert fitted.warnings == ()
    assert [tool.own_name for tool in fitted.tools] == [definition.name for definition in definitions]
    for tool in fitted.tools:
        assert FAULTS[name](tool) == []
        if tool.parameters is not None:
            assert tool.parameters["type"] == case["oracle"]["type"]


@of_kind("deep")
@pytest.mark.parametrize("name", FAULTS)
def test_a_very_deep_schema_costs_that_tool_and_no_other(case: dict[str, Any], name: str) -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(case["levels"]):
        schema = {"type": "object", "properties": {"p": schema}}

    fitted = fit_all([ToolDef("deep", "", schema), ToolDef("fine", "", {"type": "object"})], profile_named(name))

    assert [tool.name for tool in fitted.tools] == ["fine"]
    assert len(fitted.warnings) == 1
    assert "'deep'" in fitted.warnings[0]
