"""A body of chat completions is read as it came: all its spellings, nothing judged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from toolturn import ChatResponse, ToolCall, Usage
from toolturn.errors import ModelProtocolError
from toolturn.models.wires.openai_reply import read_body, usage_of, with_opaque_by_id

from .test_openai_stream import junk


def read(message: Any, reason: Any = "stop", *, echo: tuple[str, ...] = (), **more: Any) -> ChatResponse:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": reason}], **more}
    return read_body(body, "the server", "https://here", echo)


CALL = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}


def test_a_reply_holds_text_calls_reason_usage_and_the_whole_body() -> None:
    response = read({"content": "hi", "tool_calls": [CALL]}, "tool_calls", usage={"prompt_tokens": 3}, model="m")
    assert response.content == "hi"
    assert response.tool_calls == [ToolCall("c1", "ping", "{}")]
    assert response.finish_reason == "tool_calls"
    assert response.usage == Usage(3)
    assert response.raw["model"] == "m"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_thoughts_are_found_under_every_spelling(field: str) -> None:
    assert read({"content": "hi", field: "Hm."}).reasoning == "Hm."


def test_thoughts_are_found_in_details_and_in_parts() -> None:
    details = [{"type": "reasoning.text", "text": "Hm"}, {"type": "reasoning.summary", "summary": "."}]
    assert read({"content": "hi", "reasoning_details": details}).reasoning == "Hm."
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "hi"}]
    response = read({"content": parts})
    content: Any = response.content
    assert (response.reasoning, content) == ("Hm.", [{"type": "text", "text": "hi"}])


def test_a_refusal_is_the_reason() -> None:
    response = read({"content": None, "refusal": "I cannot."})
    assert (response.finish_reason, response.content) == ("refusal", "I cannot.")


def test_the_legacy_function_call_is_a_call_without_id() -> None:
    response = read({"content": None, "function_call": {"name": "ping", "arguments": "{}"}}, "function_call")
    calls: Any = response.tool_calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [(None, "ping", "{}")]


def test_an_empty_legacy_call_beside_the_others_or_alone_is_none() -> None:
    empty = {"name": "", "arguments": ""}
    assert read({"content": "hi", "function_call": empty, "tool_calls": None}).tool_calls is None
    assert read({"content": "hi", "function_call": empty, "tool_calls": [CALL]}).tool_calls == [
        ToolCall("c1", "ping", "{}")
    ]


@pytest.mark.parametrize("body", [None, [], "hi", {}, {"choices": []}, {"choices": [None]}, {"choices": [{}]}])
def test_a_body_without_a_choice_is_no_model_server(body: Any) -> None:
    with pytest.raises(ModelProtocolError, match="does not speak OpenAI's chat completions"):
        read_body(body, "the server", "", ())


def test_fields_a_server_wants_back_are_kept_with_their_origin() -> None:
    message = {"content": "", "reasoning_content": "r", "tool_calls": [{**CALL, "extra_content": {"s": 1}}]}
    response = with_opaque_by_id(read(message, echo=("reasoning_content", "extra_content")))
    assert response.opaque == {
        "origin": "https://here",
        "message": {"reasoning_content": "r"},
        "calls": {"c1": {"extra_content": {"s": 1}}},
    }
    assert read(message).opaque is None
    assert read({"content": "hi"}, echo=("reasoning_content",)).opaque is None


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, Usage(10, 5)),
        ({"input_tokens": 10, "output_tokens": 5}, Usage(10, 5)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(10, 0, 4)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, Usage(10, 0, 4)),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}, Usage(0, 9, 0, 7)),
        ({"prompt_tokens": 10, "num_cached_tokens": 4}, Usage(10, 0, 4)),
        # a part is never more than the whole, whatever a server counts
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 12}}, Usage(10, 0, 10)),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 10}}, Usage(0, 9, 0, 9)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, Usage(10, 30)),
        ({"total_tokens": 9}, Usage(9)),
        ({"prompt_tokens": None, "completion_tokens": "5", "total_tokens": True}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": float("nan")}, Usage()),
    ],
    ids=str,
)
def test_usage_is_told_in_our_words(usage: dict[str, Any], known: Usage) -> None:
    assert usage_of(usage) == known


@pytest.mark.parametrize("usage", [None, [], 7, "9"])
def test_usage_that_is_none_is_not_known(usage: Any) -> None:
    assert usage_of(usage) is None


@given(junk)
def test_any_message_is_read_without_an_error_of_its_own(message: Any) -> None:
    body = {"choices": [{"message": message, "finish_reason": message}], "usage": message}
    try:
        response = read_body(body, "the server", "", ("id", "x"))
    except ModelProtocolError:
        assert not isinstance(message, dict)
    else:
        json.dumps(response.raw)
