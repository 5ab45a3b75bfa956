"""Schemas in the manner of the generators behind tool servers, and a call of each through every wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from toolturn.messages import ToolDef
from toolturn.models.schema import FittedTool, fit, fit_all, profile_named, restore_arguments

from .schema_rules import FAULTS, as_json_schema

SERVERS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "schema_servers.jsonl").read_text(encoding="utf-8").splitlines()
]
every_server = pytest.mark.parametrize("row", SERVERS, ids=lambda row: row["name"])
every_provider = pytest.mark.parametrize("name", FAULTS)


def fitted(row: dict[str, Any], name: str) -> FittedTool:
    return fit(ToolDef("tool", row["description"], row["schema"]), profile_named(name))


def on_the_wire(value: Any, schema: Any, root: Any, tool: FittedTool, pointer: str = "") -> Any:
    """The arguments as a model would write them: by the names it was told, null for what can not be left out."""
    if "$ref" in schema:
        pointer = schema["$ref"][1:]
        return on_the_wire(value, root["$defs"][pointer.rpartition("/")[2]], root, tool, pointer)
    for number, branch in enumerate(schema.get("anyOf", ())):
        try:
            made = on_the_wire(value, branch, root, tool, f"{pointer}/anyOf/{number}")
        except (KeyError, TypeError):
            continue
        if jsonschema_rs.validator_for({**as_json_schema(branch), "$defs": root.get("$defs", {})}).is_valid(made):
            return made
    if isinstance(value, list):
        return [on_the_wire(item, schema["items"], root, tool, f"{pointer}/items") for item in value]
    if not isinstance(value, dict) or not schema.get("properties"):
        return value
    change = tool.changes.get(pointer)
    aliases = {own: alias for alias, own in change.names.items()} if change else {}
    made = {}
    for own, item in value.items():
        alias = aliases.get(own, own)
        made[alias] = on_the_wire(item, schema["properties"][alias], root, tool, f"{pointer}/properties/{alias}")
    for alias in schema.get("required", ()):
        made.setdefault(alias, None)
    return made


@every_server
@every_provider
def test_every_provider_takes_it(name: str, row: dict[str, Any]) -> None:
    assert FAULTS[name](fitted(row, name)) == []


@every_server
@every_provider
def test_a_call_can_be_written_and_comes_back_as_the_server_wants_it(name: str, row: dict[str, Any]) -> None:
    assert jsonschema_rs.validator_for(row["schema"]).is_valid(row["arguments"])
    tool = fitted(row, name)
    if tool.parameters is None:
        return
    written = on_the_wire(row["arguments"], tool.parameters, tool.parameters, tool)
    assert jsonschema_rs.validator_for(as_json_schema(tool.parameters)).is_valid(written)

    arguments = restore_arguments(written, tool)

    assert arguments == row["arguments"]
    assert jsonschema_rs.validator_for(row["schema"]).is_valid(arguments)


@every_provider
def test_all_of_them_together_lose_no_tool(name: str) -> None:
    definitions = [ToolDef(row["name"], row["description"], row["schema"]) for row in SERVERS]
    together = fit_all(definitions, profile_named(name))
    assert together.warnings == ()
    assert len({tool.name for tool in together.tools}) == len(SERVERS)
