"""The vocabulary validates nothing, compares by value, and keeps its hidden slot to itself."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given

from toolturn import ChatMessage, ChatResponse, FilePart, ImagePart, Repair, TextPart, ToolCall, ToolDef, Usage
from toolturn.codec import message_to_dict
from toolturn.messages import ContentPart, text_of

from .strategies import junk_contents


def test_messages_take_their_fields_in_the_published_order() -> None:
    assert [field.name for field in fields(ChatMessage)][:4] == ["role", "content", "tool_calls", "tool_call_id"]
    assert [field.name for field in fields(ToolCall)] == ["id", "name", "arguments"]
    assert [field.name for field in fields(ToolDef)] == ["name", "description", "parameters"]
    published = ["content", "reasoning", "tool_calls", "finish_reason", "raw"]
    assert [field.name for field in fields(ChatResponse)][:5] == published


def test_what_comes_after_the_published_fields_has_a_default() -> None:
    assert ChatMessage("user", "Hi.") == ChatMessage("user", "Hi.", None, None)
    response = ChatResponse("Hi.", None, None, None, {})
    assert (response.usage, response.repairs) == (None, ())
    assert ChatResponse("Hi.") == ChatResponse("Hi.", None, None, None, None, None, ())


@pytest.mark.parametrize("value", [None, 7, "", ["a"]])
def test_nothing_is_validated(value: Any) -> None:
    for kind in (ToolCall, ChatMessage, ChatResponse):
        made: Any = kind(value, value, value)
        assert [getattr(made, field.name) for field in fields(kind)][:3] == [value] * 3


def test_a_response_keeps_the_list_it_was_given() -> None:
    calls = [ToolCall("a", "add", "{}")]
    assert ChatResponse("", None, calls, "tool_calls", {}).tool_calls is calls


@pytest.mark.parametrize(
    "value", [ToolCall("a", "b", "c"), ChatMessage("user", "Hi."), ToolDef("a", "b", {}), ChatResponse("Hi."), Usage()]
)
def test_the_vocabulary_is_frozen(value: Any) -> None:
    name = fields(value)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "other")
    assert not hasattr(value, "__dict__")


def test_a_definition_has_the_form_of_openai() -> None:
    parameters = {"type": "object", "properties": {"title": {"type": "string"}}}
    assert ToolDef("add", "Adds.", parameters).to_openai() == {
        "type": "function",
        "function": {"name": "add", "description": "Adds.", "parameters": parameters},
    }


def test_usages_add_up() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)
    assert Usage() + Usage() == Usage(0, 0, 0, 0)


def encoded(message: ChatMessage, value: str) -> ChatMessage:
    object.__setattr__(message, "_encoded", value)
    return message


def test_the_encoded_form_takes_no_part_in_comparison_and_printing() -> None:
    message, other = encoded(ChatMessage("user", "Hi."), "kept"), ChatMessage("user", "Hi.")
    assert message == other
    assert hash(message) == hash(other)
    assert "kept" not in repr(message)
    assert "_encoded" not in [field.name for field in fields(message)]
    with pytest.raises(TypeError):
        ChatMessage("user", "Hi.", _encoded="kept")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: replace(m, content="Hi.")],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_the_encoded_form_does_not_go_along(again: Any) -> None:
    copied = again(encoded(ChatMessage("user", "Hi."), "kept"))
    assert copied == ChatMessage("user", "Hi.")
    assert not hasattr(copied, "_encoded")


def test_a_printed_part_shows_its_address_and_never_its_data() -> None:
    assert repr(ImagePart("https://x.org/a.png")) == "ImagePart(url='https://x.org/a.png')"
    parts: list[ContentPart] = [
        ImagePart("data:image/png;base64,AAAA"),
        FilePart("data:application/pdf;base64,AAAA", "a.pdf"),
    ]
    assert str(ChatMessage("tool", parts)).count("base64,… 4 characters'") == 2
    assert "AAAA" not in str(parts)
    assert repr(ImagePart("data:")) == "ImagePart(url='data:')"
    assert repr(ImagePart(7)) == "ImagePart(url=7)"  # type: ignore[arg-type]


def test_the_encoded_form_is_not_written() -> None:
    assert message_to_dict(encoded(ChatMessage("user", "Hi."), "kept")) == {"role": "user", "content": "Hi."}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is ", "as it is "),
        (None, ""),
        ([], ""),
        ((), ""),
        ([TextPart("a"), ImagePart("data:,"), TextPart("b")], "ab"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"text": None}], "a"),
        (["a", "b", 7], "ab"),
        (7, "7"),
        ({"text": "a"}, "{'text': 'a'}"),
    ],
)
def test_the_text_of_a_content_is_found_in_every_form(content: Any, text: str) -> None:
    assert text_of(content) == text


@given(junk_contents)
def test_the_text_of_a_content_is_always_text(content: Any) -> None:
    assert isinstance(text_of(content), str)


def test_a_mend_says_what_was_mended() -> None:
    assert Repair("id", "a missing id was made up") == Repair(kind="id", detail="a missing id was made up")
