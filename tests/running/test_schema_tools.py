"""tool_from_schema: a JSON Schema decides what reaches the handler, alone and without a network."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import pytest

from toolturn import ToolContext, tool_from_schema
from toolturn.tools.json_schema import SchemaTool

from .support import Word, record_of, run

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "unit": {"enum": ["C", 1, None, 2.5, True, ["F"], {"a": 1}]},
        "place": {"$ref": "#/$defs/place"},
        "days": {"type": "integer", "minimum": 1},
    },
    "required": ["place"],
    "additionalProperties": False,
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "near": {"type": "array", "items": {"$ref": "#/$defs/place"}}},
            "required": ["city"],
        }
    },
}


def _forecast(handler: Any = lambda arguments: arguments, **options: Any) -> SchemaTool:
    return tool_from_schema("forecast", "Tell the weather.", SCHEMA, handler, **options)


def _asked(tool: SchemaTool, **arguments: Any) -> str:
    record = record_of([tool], tool.name, json.dumps(arguments))
    assert record.status == "ok", record
    return str(record.message.content)


def _detail(tool: SchemaTool, **arguments: Any) -> str:
    record = record_of([tool], tool.name, json.dumps(arguments))
    assert record.status == "invalid_arguments", record
    return str(json.loads(str(record.message.content))["detail"])


def test_the_model_is_shown_the_schema_as_it_was_given() -> None:
    assert _forecast().definition().parameters == SCHEMA
    assert repr(_forecast()) == "<SchemaTool forecast>"


def test_the_handler_is_given_the_arguments_as_a_dictionary() -> None:
    seen: list[Any] = []
    _asked(_forecast(seen.append), place={"city": "Graz"}, days=2)
    assert seen == [{"place": {"city": "Graz"}, "days": 2}]


def test_nothing_is_converted_and_no_default_is_put_in() -> None:
    tool = tool_from_schema(
        "act",
        "It acts.",
        {"type": "object", "properties": {"n": {"type": "integer", "default": 5}}},
        lambda arguments: arguments,
    )
    assert _asked(tool) == "{}"
    assert _detail(tool, n="1").startswith("n: ")


@pytest.mark.parametrize("unit", ["C", 1, None, 2.5, True, ["F"], {"a": 1}], ids=repr)
def test_an_enum_may_hold_values_of_any_type(unit: Any) -> None:
    assert json.loads(_asked(_forecast(), place={"city": "Graz"}, unit=unit))["unit"] == unit


@pytest.mark.parametrize("unit", ["F", 2, False, [], {"a": 2}], ids=repr)
def test_what_is_not_in_the_enum_is_refused(unit: Any) -> None:
    assert _detail(_forecast(), place={"city": "Graz"}, unit=unit).startswith("unit: the value is not one of ")


def test_references_within_the_schema_hold_at_every_depth() -> None:
    near = {"city": "Wien", "near": [{"city": "Linz", "near": [{"city": 7}]}]}
    detail = _detail(_forecast(), place={"city": "Graz", "near": [near]})
    assert detail.startswith("place.near.0.near.0.near.0.city: the value is not of type")


def test_each_fault_is_told_with_its_place() -> None:
    detail = _detail(_forecast(), place={}, days=0, more=1)
    assert "days: the value is less than the minimum of 1" in detail
    assert 'place: "city" is a required property' in detail
    assert "'more' was unexpected" in detail


def test_of_many_faults_the_first_twenty_are_told() -> None:
    schema = {"type": "object", "properties": {"numbers": {"items": {"type": "integer"}}}}
    tool = tool_from_schema("act", "It acts.", schema, lambda arguments: None)
    detail = _detail(tool, numbers=["a"] * 1000)
    assert detail.count("numbers.") == 20
    assert detail.endswith("; and more")


def test_a_key_is_named_where_no_key_is_allowed() -> None:
    tool = tool_from_schema(
        "act", "It acts.", {"type": "object", "additionalProperties": False}, lambda arguments: None
    )
    assert "more" in _detail(tool, more=1)


@pytest.mark.parametrize("parameters", [{}, {"type": "object"}, {"properties": {}}])
def test_a_schema_that_says_little_takes_every_object(parameters: Any) -> None:
    assert _asked(tool_from_schema("act", "It acts.", parameters, lambda arguments: arguments), a=1) == '{"a":1}'


def test_text_is_passed_on_and_all_else_is_compact_json() -> None:
    for result, content in (("hi", "hi"), (Word(word="hi"), '{"word":"hi"}'), (None, "null")):
        assert _asked(_forecast(lambda arguments, result=result: result), place={"city": "Graz"}) == content


def test_a_handler_may_be_async_and_be_given_a_context() -> None:
    async def handler(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"{context.op} {arguments['place']['city']}"

    assert _asked(_forecast(handler), place={"city": "Graz"}) == "t1.0 Graz"


def test_it_takes_the_options_of_a_tool() -> None:
    tool = _forecast(render_result=lambda result: "rendered", effect="none", parallel=True, timeout=5)
    assert (tool.traits.effect, tool.traits.parallel, tool.timeout) == ("none", True, 5)
    assert _asked(tool, place={"city": "Graz"}) == "rendered"


@pytest.mark.parametrize("number", [10**30, -(10**30), 10**4000], ids=["1e30", "-1e30", "1e4000"])
def test_numbers_of_any_size_are_compared(number: int) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": -5, "maximum": 5}}}
    tool = tool_from_schema("act", "It acts.", schema, lambda arguments: None)
    assert _detail(tool, n=number).startswith("n: the value is ")


BROKEN: dict[str, Any] = {
    "a type that is none": {"type": "object", "properties": {"a": {"type": "nonsense"}}},
    "properties that are none": {"type": "object", "properties": 3},
    "a pattern that is none": {"type": "object", "properties": {"a": {"pattern": "("}}},
    "a reference to nothing": {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}},
    "a reference to another file": {"type": "object", "properties": {"a": {"$ref": "other.json"}}},
    "a reference to a file of this machine": {"type": "object", "properties": {"a": {"$ref": "file:///etc/hosts"}}},
    "a schema language that is unknown": {"$schema": "https://schemas.invalid/language", "type": "object"},
    "keys that are no text": {"type": "object", "properties": {7: {}}},
    "a value that json can not hold": {"type": "object", "default": object()},
    "a list": {"type": "array"},
    "a list of types": {"type": ["object", "null"]},
    "no schema": ["object"],
    "text": "object",
    "None": None,
}


@pytest.mark.parametrize("parameters", BROKEN.values(), ids=BROKEN)
def test_a_schema_that_is_none_is_refused_by_the_name_of_the_tool(parameters: Any) -> None:
    with pytest.raises(ValueError, match="the schema of tool 'forecast'") as caught:
        tool_from_schema("forecast", "Tell the weather.", parameters, lambda arguments: None)
    assert caught.value.__cause__ is None


def test_why_a_schema_is_refused_stands_in_one_line() -> None:
    with pytest.raises(ValueError, match="the schema of tool 'forecast' is not valid: ") as caught:
        tool_from_schema("forecast", "Tell the weather.", BROKEN["a reference to nothing"], lambda arguments: None)
    assert "\n" not in str(caught.value)


def test_a_reference_over_the_network_is_refused_without_asking_it() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for parameters in (
            {"$ref": address},
            {"type": "object", "properties": {"a": {"$ref": address + "#/$defs/a"}}},
            {"$schema": address, "type": "object"},
            {"$id": address, "type": "object", "properties": {"a": {"$ref": "/other.json"}}},
        ):
            with pytest.raises(ValueError, match="the schema of tool 'act' is not valid"):
                tool_from_schema("act", "It acts.", parameters, lambda arguments: None)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_references_that_only_refer_to_each_other_harm_nobody() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    }
    tool = tool_from_schema("act", "It acts.", schema, lambda arguments: "ran")
    assert record_of([tool], "act", '{"a":{"b":1}}').status in ("ok", "invalid_arguments")


def test_the_rules_for_names_and_descriptions_are_those_of_every_tool() -> None:
    with pytest.raises(ValueError, match="tool name must not be empty"):
        tool_from_schema("", "It acts.", {}, lambda arguments: None)
    with pytest.raises(ValueError, match="tool 'act' needs a description"):
        tool_from_schema("act", "", {}, lambda arguments: None)


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(ImportError) as caught:
        _forecast()
    assert str(caught.value) == ("what has a JSON Schema needs the extra 'schema': pip install 'toolturn[schema]'")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_invoking_it_without_a_turn_works_alike() -> None:
    assert run(_forecast().invoke('{"place":{"city":"Graz"}}')).content == '{"place":{"city":"Graz"}}'
