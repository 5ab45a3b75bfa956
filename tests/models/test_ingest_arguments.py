"""Arguments on the way in: strict text for the transcript, the schema's types for the tool, parsed once."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import ChatMessage, ChatResponse, Tool, ToolCall, ToolDef, run_tool_loop
from toolturn.arguments import arguments_of, parse_arguments
from toolturn.models import ingest
from toolturn.models.ingest.fit import fit_arguments, text_to_value
from toolturn.tools.json_schema import tool_from_schema

from .edge import play

TOOLS = (ToolDef("act", "act", {"type": "object"}),)


def took(arguments: Any, parameters: Any = None) -> tuple[Any, list[str]]:
    """What is stored of a call with these arguments, and what was mended."""
    tools = TOOLS if parameters is None else (ToolDef("act", "act", parameters),)
    response = ingest(ChatResponse("", None, [ToolCall("a", "act", arguments)], "tool_calls"), tools, ())
    assert response.tool_calls is not None
    return response.tool_calls[0].arguments, [repair.detail for repair in response.repairs]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (None, "{}"),
        ("", "{}"),
        ({}, "{}"),
        ({"a": 1}, '{"a":1}'),
        ('{"a": 1,}', '{"a":1}'),
        ("{'a': True}", '{"a":true}'),
        ('{"a":1}{"a":1}', '{"a":1}'),
        ('```json\n{"a":"é"}\n```', '{"a":"é"}'),
        ('"{\\"a\\":1}"', '{"a":1}'),
        ('{"a":"x\ny"}', '{"a":"x\\ny"}'),
    ],
)
def test_mended_arguments_are_stored_as_strict_json(arguments: Any, text: str) -> None:
    assert took(arguments)[0] == text
    parse_arguments(text)


@pytest.mark.parametrize("text", ['{"a": 1}', " { } ", '{"a":"\\u00e9"}', '{"b":1.0e2,"a":[ ]}'])
def test_good_arguments_stay_as_they_were_written(text: str) -> None:
    assert took(text) == (text, [])


@pytest.mark.parametrize(
    "text", ['{"a":1}{"a":2}', '{"a":1,"a":2}', '{"a":NaN}', "[1]", "text", '{"a":"unfin', "[]", "0"]
)
def test_arguments_that_can_not_be_read_stay_as_they_are(text: str) -> None:
    assert took(text) == (text, [])


@pytest.mark.parametrize(("given", "text"), [([{"a": 1}], '[{"a":1}]'), (7, "7"), (True, "true"), (b"{}", "\"b'{}'\"")])
def test_arguments_that_are_neither_text_nor_an_object_become_text_that_the_tool_refuses(given: Any, text: str) -> None:
    assert took(given) == (text, [])


def test_an_object_of_a_library_is_a_call() -> None:
    function = SimpleNamespace(name="act", arguments='{"a":1,}')
    for call in (
        SimpleNamespace(id="a", type="function", function=function),
        {"id": "a", "type": "function", "function": {"name": "act", "arguments": {"a": 1}}},
        {"id": "a", "name": "act", "args": {"a": 1}, "type": "tool_call"},
        {"id": "a", "type": "tool_use", "name": "act", "input": {"a": 1}},
        {"call_id": "a", "id": "fc_1", "type": "function_call", "name": "act", "arguments": '{"a":1}'},
        {"toolUse": {"toolUseId": "a", "name": "act", "input": {"a": 1}}},
        {"id": "a", "functionCall": {"name": "act", "args": {"a": 1}}},
        SimpleNamespace(id="a", name="act", input={"a": 1}),
    ):
        given: Any = [call]
        response = ingest(ChatResponse("", None, given, "tool_calls"), TOOLS, ())
        assert response.tool_calls == [ToolCall("a", "act", '{"a":1}')]


def test_one_call_alone_is_a_list_of_one() -> None:
    given: Any = {"name": "act", "arguments": "{}"}
    response = ingest(ChatResponse("", None, given, "function_call"), TOOLS, ())
    assert response.tool_calls is not None
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("act", "{}")]
    given = (ToolCall("a", "act", "{}"),)
    assert ingest(ChatResponse("", None, given), TOOLS, ()).tool_calls == [ToolCall("a", "act", "{}")]


def test_calls_among_the_parts_of_the_content_are_calls_where_there_are_no_others() -> None:
    parts: Any = [{"type": "text", "text": "I act."}, {"type": "tool_use", "id": "a", "name": "act", "input": {}}]
    response = ingest(ChatResponse(parts, None, None, "tool_use"), TOOLS, ())
    assert (response.content, response.tool_calls) == ("I act.", [ToolCall("a", "act", "{}")])
    given = [ToolCall("b", "act", "{}")]
    assert ingest(ChatResponse(parts, None, given, "tool_use"), TOOLS, ()).tool_calls is given


@pytest.mark.parametrize("junk", [7, "x", [7], ["x"], [None, 7], [ToolCall("a", "act", "{}"), "x"], {1}, object()])
def test_what_is_no_call_is_left_to_the_turn_to_refuse(junk: Any) -> None:
    response = ingest(ChatResponse("", None, junk, "tool_calls"), TOOLS, ())
    assert type(response.tool_calls) is list
    assert not all(isinstance(call, ToolCall) for call in response.tool_calls)
    assert response.repairs == ()


@pytest.mark.parametrize("arguments", ['{"a":1}{"a":2}', '{"a":NaN}', '{"a":"unfin', "[1]", "text"])
def test_the_tool_answers_unreadable_arguments_and_the_turn_goes_on(arguments: str) -> None:
    calls = [{"id": "a", "function": {"name": "act", "arguments": arguments}}]
    seen = play({"replies": [{"tool_calls": calls, "finish_reason": "tool_calls"}]})
    assert seen.executed == []
    assert json.loads(seen.observations[0])["error"] == "invalid_tool_arguments"
    assert seen.result is not None
    assert seen.result.content == "done"


# --- the schema ------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "$defs": {"Item": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}},
    "properties": {
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "object": {"type": "object"},
        "item": {"$ref": "#/$defs/Item"},
        "maybe": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "array"}, {"type": "string"}]},
        "types": {"type": ["object", "null"]},
        "any": {},
        "choice": {"enum": ["[]", "{}"]},
        "number": {"type": "integer"},
        "few": {"type": ["integer", "null"]},
        "float": {"type": "number"},
        "flag": {"type": "boolean"},
        "implied": {"properties": {"n": {"type": "integer"}}},
    },
}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"list": '[{"n": 1}]'}, {"list": [{"n": 1}]}),
        ({"list": ' [{"n": "1", "s": "2"}] '}, {"list": [{"n": 1, "s": "2"}]}),
        ({"list": ['{"n": 1}']}, {"list": [{"n": 1}]}),
        ({"object": '{"a": "[1]"}'}, {"object": {"a": "[1]"}}),
        ({"item": '{"n": "7"}'}, {"item": {"n": 7}}),
        ({"item": {"n": "7", "s": "7"}}, {"item": {"n": 7, "s": "7"}}),
        ({"maybe": "[1]"}, {"maybe": [1]}),
        ({"maybe": ["1", 2]}, {"maybe": [1, 2]}),
        ({"types": "{}"}, {"types": {}}),
        ({"number": "1234567890123456789"}, {"number": 1234567890123456789}),
        ({"number": "-5"}, {"number": -5}),
        ({"few": "3"}, {"few": 3}),
        ({"implied": '{"n": "3"}'}, {"implied": {"n": 3}}),
    ],
)
def test_a_string_is_unwrapped_where_the_schema_wants_something_else(given: Any, wanted: Any) -> None:
    before = json.dumps(given)
    found, notes = fit_arguments(given, SCHEMA)
    assert found == wanted
    assert json.dumps(found) == json.dumps(wanted)
    assert notes
    assert json.dumps(given) == before
    text, repairs = took(json.dumps(given), SCHEMA)
    assert json.loads(text) == wanted
    assert repairs == [f"call 1: {note}" for note in notes]


@pytest.mark.parametrize(
    "given",
    [
        {"text": "[draft]"},
        {"text": '{"a": 1}'},
        {"text": "42"},
        {"either": "[1]"},
        {"any": "[1]"},
        {"choice": "[]"},
        {"unknown": "[1]"},
        {"list": "{}"},
        {"object": "[]"},
        {"list": "[1"},
        {"list": "[draft]"},
        {"list": "[1], [2]"},
        {"list": '[1],"x":[2]'},
        {"object": '{"a":1,"a":2}'},
        {"object": '{"a":NaN}'},
        {"object": ""},
        {"number": "3.5"},
        {"number": "1e3"},
        {"number": "0x10"},
        {"number": " 3"},
        {"number": "٣"},
        {"number": ""},
        {"number": "9" * 401},
        {"number": 3},
        {"float": "3"},
        {"flag": "true"},
        {"list": [{"n": 1}], "object": {"a": [{}]}},
    ],
)
def test_every_other_value_is_left_as_it_is(given: Any) -> None:
    found, notes = fit_arguments(given, SCHEMA)
    assert found is given
    assert notes == ()


@pytest.mark.parametrize(
    "schema",
    [
        None,
        7,
        [],
        {},
        True,
        {"properties": None},
        {"properties": {"a": None}},
        {"properties": {"a": {"type": 7}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "https://example.org/schema"}}},
        {"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}},
        {"properties": {"a": {"anyOf": 7}}},
        {"$ref": "#"},
    ],
)
def test_no_schema_is_an_obstacle(schema: Any) -> None:
    given = {"a": "[1]", "b": [["1"]]}
    assert fit_arguments(given, schema)[0] is given
    assert text_to_value("[1]", schema, "a") == "[1]"


def test_a_schema_that_holds_itself_many_times_costs_no_more() -> None:
    itself = {"$ref": "#/$defs/T"}
    schema: Any = {"$defs": {"T": {"anyOf": [itself] * 20 + [{"type": "array", "items": itself}]}}}
    schema["properties"] = {"a": itself}
    assert fit_arguments({"a": "[" * 10 + "]" * 10}, schema)[0] == {"a": json.loads("[" * 10 + "]" * 10)}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("3", "number", 3),
        (" 3\n", "number", 3),
        ("true", "flag", True),
        ("True", "flag", True),
        ("None", "few", None),
        ("3.5", "float", 3.5),
        ('["a"]', "list", ["a"]),
        ("3", "text", "3"),
        ("3", "unknown", "3"),
        ("three", "number", "three"),
        ('3,"x":4', "number", '3,"x":4'),
        ("", "number", ""),
    ],
)
def test_a_parameter_of_bare_text_has_the_type_of_the_schema(text: str, name: str, value: Any) -> None:
    found = text_to_value(text, SCHEMA, name)
    assert (found, type(found)) == (value, type(value))


# --- parsed once -----------------------------------------------------------------------------


class Numbers(BaseModel):
    """A request."""

    n: int
    items: list[int] = []


def run_once(response: ChatResponse, *tools: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
    """Ingest a reply, run it, and return what was parsed after the edge."""
    parsed: list[str] = []

    def parse(text: str) -> dict[str, Any]:
        parsed.append(text)
        return parse_arguments(text)

    replies = [ingest(response, tuple(tool.definition() for tool in tools), ()), ChatResponse("done")]
    for module in ("toolturn.arguments", "toolturn.tools.tool"):
        monkeypatch.setattr(sys.modules[module], "parse_arguments", parse)

    async def model(messages: Any, definitions: Any) -> ChatResponse:
        return replies.pop(0)

    result = asyncio.run(run_tool_loop([ChatMessage("user", "go")], list(tools), model))
    return parsed, result.content


@pytest.mark.parametrize("arguments", ['{"n":1}', '{"n":1,}', '{"n":"1","items":"[1,2]"}'])
def test_what_was_parsed_at_the_edge_is_what_the_tool_gets(arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    tool = Tool("act", "Acts.", Numbers, None, lambda request: got.append(request), run_in_thread=False)
    schema = Numbers.model_json_schema()
    other = tool_from_schema("other", "Acts.", schema, lambda given: got.append(given), run_in_thread=False)
    calls = [ToolCall("a", "act", arguments), ToolCall("b", "other", arguments)]
    parsed, _ = run_once(ChatResponse("", None, calls, "tool_calls"), tool, other, monkeypatch=monkeypatch)
    assert parsed == []
    assert got[0].n == got[1]["n"] == 1


def test_a_handler_that_changes_its_arguments_changes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []

    def handle(given: dict[str, Any]) -> str:
        got.append(json.dumps(given))
        given.clear()
        return "ok"

    tool = tool_from_schema("act", "Acts.", {"type": "object"}, handle, run_in_thread=False)
    call = ToolCall("a", "act", '{"n":1}')
    parsed, _ = run_once(ChatResponse("", None, [call], "tool_calls"), tool, monkeypatch=monkeypatch)
    assert parsed == []
    monkeypatch.undo()
    assert got == ['{"n": 1}']
    assert arguments_of(call) == {"n": 1}


def test_a_call_that_is_no_part_of_a_good_batch_keeps_nothing_that_differs_from_its_text() -> None:
    calls = [ToolCall("a", "act", '{"n":"1"}'), ToolCall("a", "act", '{"n":1,}')]
    tools = (ToolDef("act", "act", {"type": "object", "properties": {"n": {"type": "integer"}}}),)
    response = ingest(ChatResponse("", None, calls, "tool_calls"), tools, ())
    assert response.tool_calls is not None
    for call in (*calls[:1], *response.tool_calls):
        assert arguments_of(call) == json.loads(call.arguments)
