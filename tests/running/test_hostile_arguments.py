"""Whatever a model writes as arguments, it gets an observation it can act on, and nothing else happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from toolturn import (
    ChatResponse,
    Tool,
    ToolCall,
    ToolLoopError,
    ToolLoopResult,
    ToolLoopToolError,
    error_to_json,
    messages_to_json,
    run_tool_loop,
    tool,
    tool_from_schema,
)
from toolturn.arguments import MAX_ARGUMENT_CHARS, MAX_DEPTH
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, Number, counting, record_of, run

SHORT = 500
"""Characters of an observation that a model reads with profit."""


class Anything(BaseModel):
    n: Any = None


def _nested(depth: int) -> str:
    return '{"n":' * depth + "1" + "}" * depth


HOSTILE: dict[str, Any] = {
    "an integer of 5,000 digits": '{"n":' + "9" * 5000 + "}",
    "a negative integer of 5,000 digits": '{"n":-' + "9" * 5000 + "}",
    "100,000 lists in each other": '{"n":' + "[" * 100_000 + "]" * 100_000 + "}",
    "100,000 objects in each other": _nested(100_000),
    "100,000 lists that are never closed": "[" * 100_000,
    "one level too many": _nested(MAX_DEPTH + 1),
    "an escaped lone surrogate": '{"n":"\\ud800"}',
    "an escaped lone surrogate in capitals": '{"n":"\\uDFFF"}',
    "a raw lone surrogate": '{"n":"\ud800"}',
    "a lone surrogate as a key": '{"\\udfff":1}',
    "a lone surrogate deep inside": '{"n":[{"a":[1,"\\ud83d"]}]}',
    "two halves in the wrong order": '{"n":"\\ude00\\ud83d"}',
    "NaN": '{"n":NaN}',
    "Infinity": '{"n":Infinity}',
    "negative Infinity": '{"n":-Infinity}',
    "a number beyond all": '{"n":1e999}',
    "a negative number beyond all": '{"n":-1e999}',
    "null": "null",
    "a list": "[1]",
    "a string": '"n"',
    "a number": "3",
    "nothing": "",
    "blanks": " \n\t ",
    "no JSON": "n = 1",
    "a Python literal": "{'n': 1}",
    "half an object": '{"n":',
    "an object and more": '{"n":1} and more',
    "two objects": '{"n":1}{"n":2}',
    "a byte order mark": '\ufeff{"n":1}',
    "a NUL": "\x00",
    "a raw line feed in a string": '{"n":"a\nb"}',
    "a key twice": '{"n":1,"n":2}',
    "the same pair twice": '{"n":1,"n":1}',
    "a key twice deep inside": '{"n":[{"a":1,"a":2}]}',
    "2 MB": '{"n":"' + "x" * 2_000_000 + '"}',
    "2 MB of brackets": "[{" * 1_000_000,
    "None": None,
    "a dictionary": {"n": 1},
    "a list object": [1],
    "an int": 7,
    "bytes": b'{"n":1}',
}


@pytest.mark.parametrize("policy", ["raise", "report"])
@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_arguments_that_are_no_sound_object_are_answered_and_never_run(arguments: Any, policy: str) -> None:
    runs: list[Any] = []
    tool = Tool("act", "It acts.", Anything, None, runs.append)
    record = record_of([tool], "act", arguments, tool_errors=policy)
    assert record.status == "invalid_arguments"
    assert runs == []
    told = json.loads(str(record.message.content))
    assert told["error"] == "invalid_tool_arguments"
    assert told["detail"].startswith("arguments ")
    assert len(str(record.message.content)) < SHORT


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_the_transcript_with_hostile_arguments_is_valid_and_can_be_saved(arguments: Any) -> None:
    tool, _ = counting()
    result = run(run_tool_loop(HELLO, [tool], ScriptedModel([calls(("act", arguments)), "done"])))
    assert check(result.messages) == []
    assert json.loads(messages_to_json(result.messages))


SOUND: dict[str, tuple[str, Any]] = {
    "brackets in a string": (json.dumps({"n": "[{" * 50_000}), "[{" * 50_000),
    "brackets between escaped quotes": (json.dumps({"n": '"[' * 50_000}), '"[' * 50_000),
    "brackets after a backslash": (json.dumps({"n": '\\"[' * 1000}), '\\"[' * 1000),
    "as deep as may be": (_nested(MAX_DEPTH), json.loads(_nested(MAX_DEPTH))["n"]),
    "many shallow lists": (json.dumps({"n": [[]] * 1000}), [[]] * 1000),
    "a whole surrogate pair": ('{"n":"\\ud83d\\ude00"}', "😀"),
    "raw text beyond ASCII": ('{"n":"😀 é"}', "😀 é"),
    "an integer of 4,000 digits": ('{"n":' + "9" * 4000 + "}", int("9" * 4000)),
    "as long as may be": ('{"n":"' + "x" * (MAX_ARGUMENT_CHARS - 8) + '"}', "x" * (MAX_ARGUMENT_CHARS - 8)),
    "blanks around": (' \n{"n":1}\t ', 1),
    "the words NaN and null in a string": ('{"n":"NaN null"}', "NaN null"),
}


@pytest.mark.parametrize(("arguments", "value"), SOUND.values(), ids=SOUND)
def test_sound_arguments_that_look_hostile_reach_the_handler_unchanged(arguments: str, value: Any) -> None:
    seen: list[Any] = []
    tool = Tool("act", "It acts.", Anything, None, lambda request: seen.append(request.n))
    assert record_of([tool], "act", arguments).status == "ok"
    assert seen == [value]


NAMES: dict[str, Any] = {
    "None": None,
    "a number": 7,
    "a float that is none": float("nan"),
    "bytes": b"act",
    "a list": ["act"],
    "a dictionary": {"name": "act"},
    "an object": object(),
    "nothing": "",
    "another case": "ACT",
    "a blank more": "act ",
    "a lone surrogate": "\ud800",
    "100,000 characters": "a" * 100_000,
}


@pytest.mark.parametrize("policy", ["raise", "report"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_is_none_of_the_tools_is_answered_with_the_names_there_are(name: Any, policy: str) -> None:
    tool, runs = counting()
    result = run(
        run_tool_loop(HELLO, [tool], ScriptedModel([calls((name, "{}")), "done"]), tool_errors=policy)  # type: ignore[arg-type]
    )
    record = result.tool_calls[0]
    assert record.status == "unknown_tool"
    assert runs == []

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    told = json.loads(str(record.message.content), parse_constant=refuse)
    assert told["error"] == "unknown_tool"
    assert told["available"] == ["act"]
    assert len(str(record.message.content)) < SHORT
    assert check(result.messages) == []
    assert json.loads(messages_to_json(result.messages))


def test_of_many_tools_the_answer_to_an_unknown_name_lists_so_many_that_it_stays_short() -> None:
    tools = [counting(f"tool_{number}")[0] for number in range(1000)]
    record = record_of(tools, "nobody", "{}")
    told = json.loads(str(record.message.content))
    assert told["available"] == [f"tool_{number}" for number in range(50)]


def test_what_is_refused_can_be_mended_by_the_model() -> None:
    tool, runs = counting()
    with ScriptedModel([calls(("act", "nonsense")), calls(("act", "{}")), "done"]) as model:
        result = run(run_tool_loop(HELLO, [tool], model))
    assert [record.status for record in result.tool_calls] == ["invalid_arguments", "ok"]
    assert runs == [0]


@pytest.mark.parametrize("policy", ["raise", "report"])
def test_a_validator_that_recurses_without_end_is_a_failure_of_the_tool(policy: str) -> None:
    class Deep(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def endless(cls, value: int) -> int:
            return cls.endless(value)

    tool = Tool("act", "It acts.", Deep, None, lambda request: None)
    loop = run_tool_loop(
        HELLO,
        [tool],
        ScriptedModel([calls(("act", '{"n":1}')), "done"]),
        tool_errors=policy,  # type: ignore[arg-type]
    )
    if policy == "raise":
        with pytest.raises(ToolLoopToolError, match="RecursionError") as caught:
            run(loop)
        assert check(caught.value.messages) == []
    else:
        record = run(loop).tool_calls[0]
        assert json.loads(str(record.message.content)) == {
            "error": "tool_failed",
            "tool": "act",
            "type": "RecursionError",
        }


@tool
def typed(n: int, names: list[str] | None = None) -> str:
    """Take some arguments."""
    return "ok"


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "names": {"items": {"type": "string"}}}}
KINDS = [
    Tool("act", "It acts.", Number, None, lambda request: None),
    typed,
    tool_from_schema("act", "It acts.", SCHEMA, lambda arguments: "ok"),
]

every_text = st.text(st.characters(exclude_categories=()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | every_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(every_text | st.just("n"), inner, max_size=4),
    max_leaves=12,
)


def _mangled(text: str, cut: int, put: str) -> str:
    place = cut % (len(text) + 1)
    return text[:place] + put + text[place + 1 :]


argument_texts = (
    every_text
    | json_values.map(json.dumps)
    | st.fixed_dictionaries({"n": json_values}).map(json.dumps)
    | st.builds(_mangled, json_values.map(json.dumps), st.integers(min_value=0), every_text)
)


@given(st.sampled_from(KINDS), argument_texts)
def test_no_text_of_arguments_makes_a_turn_raise(tool: Tool[Any, Any], arguments: str) -> None:
    result = run(run_tool_loop(HELLO, [tool], ScriptedModel([calls((tool.name, arguments)), "done"])))
    record = result.tool_calls[0]
    assert record.status in ("ok", "invalid_arguments")
    if record.status == "invalid_arguments":
        assert json.loads(str(record.message.content))["error"] == "invalid_tool_arguments"
    assert check(result.messages) == []


junk = st.none() | st.booleans() | st.integers() | st.floats() | every_text | st.binary() | st.lists(every_text)
hostile_calls = st.builds(
    ToolCall,
    st.sampled_from(["1", "2", "3"]) | junk,
    st.sampled_from(["act", "direct"]) | junk,
    st.sampled_from(["{}", "null"]) | junk | argument_texts,
)
hostile_responses: st.SearchStrategy[ChatResponse] = st.builds(
    ChatResponse,
    every_text | junk,
    st.none() | every_text,
    st.none() | st.lists(hostile_calls | junk, max_size=4),
    st.sampled_from(["stop", "tool_calls", "length"]) | junk,
)


@given(st.lists(hostile_responses, min_size=1, max_size=4), st.sampled_from(["raise", "answer"]), st.booleans())
def test_no_response_of_a_model_makes_a_turn_raise_anything_but_its_own_errors(
    responses: list[ChatResponse], on_limit: Any, aloud: bool
) -> None:
    tools = [counting("act")[0], counting("direct", return_direct=True)[0]]
    emit = (lambda event: None) if aloud else None
    model = ScriptedModel([*responses, *["done"] * 5])
    end: ToolLoopResult | ToolLoopError
    try:
        end = run(run_tool_loop(HELLO, tools, model, on_limit=on_limit, tool_errors="report", emit=emit))
    except ToolLoopError as error:
        end = error
    assert check(end.messages) == []
    assert json.loads(messages_to_json(end.messages))
    if isinstance(end, ToolLoopError):
        assert error_to_json(end)


def test_a_request_without_fields_takes_an_object_with_any_keys() -> None:
    tool = Tool("act", "It acts.", Nothing, None, lambda request: None)
    assert record_of([tool], "act", '{"anything":[1,2,3]}').status == "ok"
