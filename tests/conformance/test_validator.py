"""What a strict provider refuses, a sentence each."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.conformance.validator import faults_of

USER: dict[str, Any] = {"role": "user", "content": "go"}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}


def call(call_id: Any = "c1", name: Any = "add", arguments: Any = '{"a": 1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: Any, content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(call_id: Any = "c1", content: Any = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    made = {"model": "m", "messages": [USER, *messages], "tools": [TOOL], **fields}
    return {key: value for key, value in made.items() if value is not ...}


def tool(**changed: Any) -> dict[str, Any]:
    made = copy.deepcopy(TOOL)
    made["function"].update(changed)
    made["function"] = {key: value for key, value in made["function"].items() if value is not ...}
    return made


GOOD = [
    body(),
    body(tools=...),
    body(asks(call()), result()),
    body(asks(call(), content=""), result()),
    body(asks(call(), content="Let me see."), result()),
    body(asks(call(), call("c2")), result("c2"), result()),
    body(asks(call()), result(), asks(call()), result()),
    body(asks(call()), result(content=[{"type": "text", "text": "1"}])),
    body(asks(call()), result(content="")),
    body(asks(call()), result(), {"role": "assistant", "content": "One."}, USER),
    body({"role": "assistant", "content": None, "refusal": "No."}, USER),
    body(USER, USER),
    body(messages=[{"role": "system", "content": "Be brief."}, USER]),
    body(messages=[{"role": "developer", "content": "Be brief."}, USER]),
    body(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]),
    body(stream=True, stream_options={"include_usage": True}),
    body(tool_choice="required", parallel_tool_calls=False, temperature=0, max_tokens=5, stop=["a"], seed=0),
    body(tool_choice={"type": "function", "function": {"name": "add"}}),
    body(tools=[tool(parameters=...)]),
    body(
        tools=[
            tool(
                strict=True,
                parameters={
                    "type": "object",
                    "properties": {"a": {"type": "integer"}},
                    "required": ["a"],
                    "additionalProperties": False,
                },
            )
        ]
    ),
]


@pytest.mark.parametrize("request_body", GOOD)
def test_a_good_request_has_no_fault(request_body: Any) -> None:
    assert faults_of(request_body) == []


BAD: list[tuple[Any, str]] = [
    (None, "the body is no JSON object"),
    ([], "the body is no JSON object"),
    (body(model=...), "'model' is missing or empty"),
    (body(model=""), "'model' is missing or empty"),
    (body(messages=[]), "'messages' is missing or empty"),
    (body(messages=..., tools=...), "'messages' is missing or empty"),
    (body(messages="go"), "'messages' must be a list"),
    (body(tool_calls=[]), "'tool_calls' is no field of a request"),
    (body(stream="yes"), "'stream' must be true or false"),
    (body(temperature="hot"), "'temperature' must be a number"),
    (body(max_tokens=0), "'max_tokens' must be a whole number of at least 1"),
    (body(max_tokens=True), "'max_tokens' must be a whole number of at least 1"),
    (body(stop=[]), "'stop' must be text, or a list of one to four"),
    (body(stream_options={}), "'stream_options' without 'stream'"),
    (body(max_tokens=5, max_completion_tokens=5), "'max_tokens' and 'max_completion_tokens' at once"),
    (body({"role": "user", "content": "\ud83d"}), "half a surrogate pair: the request is no valid Unicode"),
    # tools
    (body(tools=[]), "'tools' is empty; it must be absent where there is no tool"),
    (body(tools=..., tool_choice="none"), "'tool_choice' without 'tools'"),
    (body(tools=..., parallel_tool_calls=True), "'parallel_tool_calls' without 'tools'"),
    (body(asks(call()), result(), tools=...), "the messages hold tool calls, and the request has no 'tools'"),
    (body(tool_choice="any"), "'tool_choice' must be none, auto, required or a function, not 'any'"),
    (body(tool_choice={"name": "add"}), "'tool_choice' as an object must be a function with a name"),
    (
        body(tool_choice={"type": "function", "function": {"name": "sub"}}),
        "'tool_choice' names 'sub', which is none of the tools",
    ),
    (body(tools=["add"]), "tool 0: it is no object of the type 'function' with a 'function'"),
    (
        body(tools=[tool(name="a b")]),
        "tool 0: the name 'a b' is not of 1 to 64 letters, digits, underscores and hyphens",
    ),
    (body(tools=[TOOL, TOOL]), "tool 1: the name 'add' is used twice"),
    (body(tools=[tool(returns={})]), "tool 0: 'returns' is no field of a function"),
    (body(tools=[tool(description=None)]), "tool 0: the description is no text"),
    (body(tools=[tool(parameters=None)]), "tool 0: the parameters are no schema of the type 'object'"),
    (body(tools=[tool(parameters={"type": "array"})]), "tool 0: the parameters are no schema of the type 'object'"),
    (body(tools=[tool(parameters={"type": "object"})]), "tool 0: the schema has no 'properties'"),
    (
        body(tools=[tool(parameters={"type": "object", "properties": {}, "required": ["a"]})]),
        "tool 0: 'required' names what is no property",
    ),
    (body(tools=[tool(strict=True)]), "tool 0: the schema is strict and lacks 'additionalProperties': false"),
    (
        body(
            tools=[
                tool(
                    strict=True,
                    parameters={
                        "type": "object",
                        "properties": {"a": {"type": "integer"}},
                        "additionalProperties": False,
                    },
                )
            ]
        ),
        "tool 0: the schema is strict and 'required' does not name every property",
    ),
    # roles, order, content
    (body("go"), "message 1: it is no object"),
    (
        body({"role": "function", "content": "1"}),
        "message 1: the role 'function' is none of system, developer, user, assistant, tool",
    ),
    (
        body({"role": "system", "content": "Be brief."}),
        "message 1: a system message after the conversation has begun",
    ),
    (body({**USER, "id": "1"}), "message 1: 'id' is no field of a message of the role user"),
    (body({"role": "user", "content": " "}), "message 1: a message of the role user without text"),
    (
        body({"role": "user", "content": None}),
        "message 1: the content of a message of the role user is neither text nor a list of parts",
    ),
    (
        body({"role": "user", "content": [{"type": "video"}]}),
        "message 1: a part of the type 'video' in a message of the role user",
    ),
    (body({"role": "user", "content": [{"type": "text"}]}), "message 1: a part of text without text"),
    (body({"role": "assistant", "content": ""}, USER), "message 1: a message of the role assistant without text"),
    (
        body({"role": "assistant", "content": None}, USER),
        "message 1: the content of a message of the role assistant is neither text nor a list of parts",
    ),
    (
        body({"role": "assistant", "content": "Hi."}),
        "the last message is the assistant's: there is nothing to reply to",
    ),
    # calls and results
    (
        body({"role": "assistant", "content": "Hi.", "tool_calls": []}, USER),
        "message 1: 'tool_calls' is empty; it must be absent where there is no call",
    ),
    (body(asks("add"), USER), "message 1: a call that is no object of the type 'function' with a 'function'"),
    (body(asks(call("")), result("")), "message 1: a call with the id '', which is none"),
    (body(asks(call(7)), result(7)), "message 1: a call with the id 7, which is none"),
    (body(asks(call(), call()), result(), result()), "message 1: two calls with the id 'c1'"),
    (body(asks(call(name="a.b")), result()), "message 1: a call of 'a.b', which no function can be named"),
    (body(asks(call(name="")), result()), "message 1: a call of '', which no function can be named"),
    (body(asks(call(arguments={})), result()), "message 1: the arguments of a call are no text"),
    (body(asks(call(arguments="")), result()), "message 1: the arguments of a call are no valid JSON: ''"),
    (body(asks(call(arguments='{"a"')), result()), "message 1: the arguments of a call are no valid JSON: '{\"a\"'"),
    (
        body(asks(call(arguments='{"a": NaN}')), result()),
        "message 1: the arguments of a call are no valid JSON: '{\"a\": NaN}'",
    ),
    (body(asks(call(arguments="[1]")), result()), "message 1: the arguments of a call are no JSON object: '[1]'"),
    (body(asks(call())), "the calls 'c1' are not answered"),
    (body(asks(call(), call("c2")), result()), "the calls 'c2' are not answered"),
    (body(asks(call()), USER), "message 2: a message of the role user before the results of 'c1'"),
    (body(result()), "message 1: a tool message for 'c1', which is no open call"),
    (body(asks(call()), result(), result()), "message 3: a tool message for 'c1', which is no open call"),
    (body(asks(call()), result(None)), "message 2: a tool message without the id of a call"),
    (body(asks(call()), result(content=None)), "message 2: the content of a tool message is no text"),
    (
        body(asks(call()), result(content=[{"type": "image_url"}])),
        "message 2: a part of the type 'image_url' in a message of the role tool",
    ),
]


@pytest.mark.parametrize(("request_body", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_each_fault_has_a_sentence(request_body: Any, sentence: str) -> None:
    assert sentence in faults_of(request_body)


_KEYS = st.sampled_from(
    [
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "id",
        "type",
        "function",
        "name",
        "arguments",
        "messages",
        "tools",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_anything_at_all_is_judged_without_an_exception(value: Any) -> None:
    for text in faults_of(value) + faults_of({"model": "m", "messages": [value, value], "tools": [value]}):
        assert text


def test_a_server_without_the_tool_choice_none_takes_calls_without_tools() -> None:
    history = (asks(call()), result())
    assert faults_of(body(*history, tools=...), choice_none=False) == []
    assert faults_of(body(*history, tool_choice="none"), choice_none=False) == ["'tool_choice' must not be none here"]
    assert faults_of(body(*history, tool_choice="none")) == []
