"""What goes out fits the strictest server, whatever stands in the transcript; each message is encoded once."""

from __future__ import annotations

import gc
import json
import pickle
import re
import weakref
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, FilePart, ImagePart, TextPart, ToolCall
from toolturn.messages import ContentPart
from toolturn.model import ModelSettings
from toolturn.models.schema import wire_name
from toolturn.models.servers import SERVERS, Wishes
from toolturn.models.wires.openai_request import EMPTY_RESULT, Encoder, settings_fields, wire_id

USER = ChatMessage("user", "go")
PLAIN = Wishes()


def sent(*messages: ChatMessage, wishes: Wishes = PLAIN, aliases: dict[str, str] | None = None) -> list[Any]:
    return [json.loads(piece) for piece in Encoder(wishes, "https://here", aliases or {}).encode(messages)[0]]


def asking(*calls: ToolCall, text: str = "", **more: Any) -> ChatMessage:
    return ChatMessage("assistant", text, list(calls), None, **more)


PING = ToolCall("c1", "ping", "{}")


def test_a_message_is_encoded_once_for_one_server() -> None:
    encoder = Encoder(PLAIN, "https://here", {})
    message = ChatMessage("user", "go")
    ((first,), _) = encoder.encode([message])
    ((second,), _) = encoder.encode([message])
    assert first is second


def test_of_a_growing_transcript_only_the_new_messages_are_looked_at() -> None:
    encoder = Encoder(PLAIN, "https://here", {})
    messages = [USER]
    for number in range(5):
        pieces, ids = encoder.encode(tuple(messages))
        assert [json.loads(piece) for piece in pieces] == sent(*[replace(message) for message in messages])
        assert ids == {f"c{n}" for n in range(number)}
        messages += [asking(ToolCall(f"c{number}", "ping", "{}")), ChatMessage("tool", "ok", None, f"c{number}")]
    # another branch, another beginning, and the same once more
    for other in ([*messages[:3], USER], [ChatMessage("user", "no"), *messages[1:]], messages, messages, messages[:3]):
        pieces, ids = encoder.encode(tuple(other))
        assert [json.loads(piece) for piece in pieces] == sent(*[replace(message) for message in other])
        assert ids == {message.tool_call_id for message in other if message.role == "tool"}


def test_what_was_encoded_does_not_keep_itself_alive() -> None:
    class Counted(str):
        pass

    encoder = Encoder(PLAIN, "https://here", {})
    text = Counted("go")
    gone = weakref.ref(text)
    gc.disable()
    try:
        messages = [ChatMessage("user", text), ChatMessage("assistant", "hi")]
        encoder.encode(tuple(messages))
        messages.append(ChatMessage("user", "more"))
        encoder.encode(tuple(messages))
        del messages, text
        assert gone() is None
    finally:
        gc.enable()


def test_another_server_encodes_anew() -> None:
    message = asking(PING)
    assert sent(message)[0]["content"] is None
    assert sent(message, wishes=Wishes(beside_calls="empty"))[0]["content"] == ""
    assert sent(message)[0]["content"] is None


def test_what_is_kept_is_no_part_of_the_message() -> None:
    message = ChatMessage("user", "go")
    Encoder(PLAIN, "https://here", {}).encode([message])
    assert message == ChatMessage("user", "go")
    assert not hasattr(pickle.loads(pickle.dumps(message)), "_encoded")
    assert not hasattr(replace(message, content="stop"), "_encoded")


@pytest.mark.parametrize(
    ("form", "shown"), [("null", {"content": None}), ("empty", {"content": ""}), ("omit", {})], ids=str
)
def test_beside_calls_content_is_null_empty_or_left_out_as_the_server_wishes(form: Any, shown: dict[str, Any]) -> None:
    (message,) = sent(asking(PING), wishes=Wishes(beside_calls=form))
    assert {key: value for key, value in message.items() if key == "content"} == shown


def test_text_beside_calls_stays() -> None:
    (message,) = sent(asking(PING, text="Let me see."))
    assert message["content"] == "Let me see."


def test_an_empty_list_of_calls_is_not_sent() -> None:
    assert "tool_calls" not in sent(ChatMessage("assistant", "hi", []))[0]


def test_a_call_and_its_result_keep_one_id() -> None:
    call, result = sent(asking(ToolCall("call_1740|x", "ping", "{}")), ChatMessage("tool", "ok", None, "call_1740|x"))
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] != "call_1740|x"


@given(st.text() | st.integers() | st.none())
def test_any_id_has_a_form_that_fits(call_id: Any) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", wire_id(call_id, PLAIN))
    assert re.fullmatch(r"[A-Za-z0-9]{9}", wire_id(call_id, Wishes(ids="nine")))


def test_an_id_that_fits_is_sent_as_it_is() -> None:
    assert wire_id("call_AbC-9", PLAIN) == "call_AbC-9"
    assert wire_id("AbC123xyz", Wishes(ids="nine")) == "AbC123xyz"


def test_long_ids_that_differ_in_the_middle_stay_different() -> None:
    first, second = ("p" * 32 + digit + "s" * 32 for digit in "12")
    for wishes in (PLAIN, Wishes(ids="nine")):
        assert wire_id(first, wishes) != wire_id(second, wishes)


@given(st.text(max_size=200))
def test_any_name_of_a_past_call_has_a_form_that_fits(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire_name(name))


def test_a_tool_with_an_alias_is_named_by_it_in_the_history() -> None:
    (message,) = sent(asking(ToolCall("c1", "math.add", "{}")), aliases={"math.add": "math_add"})
    assert message["tool_calls"][0]["function"]["name"] == "math_add"


@pytest.mark.parametrize("text", ['{"a": 1', "", "NaN", "[1]", '{"a": NaN}', "\ud800", '{"a":1}{"a":2}'])
def test_arguments_that_are_no_object_are_shown_inside_one(text: str) -> None:
    (message,) = sent(asking(ToolCall("c1", "ping", text)))
    arguments = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert list(arguments) == ["invalid_arguments"]


def test_arguments_that_are_an_object_are_sent_as_the_model_wrote_them() -> None:
    (message,) = sent(asking(ToolCall("c1", "ping", '{ "a" :1}')))
    assert message["tool_calls"][0]["function"]["arguments"] == '{ "a" :1}'


def test_an_empty_result_says_so() -> None:
    assert sent(ChatMessage("tool", "", None, "c1"))[0]["content"] == EMPTY_RESULT


def test_images_of_results_follow_all_results_in_a_message_of_the_user() -> None:
    image = ImagePart("data:image/png;base64,AA==")
    first = ChatMessage("tool", [TextPart("a map"), image], None, "c1")
    second = ChatMessage("tool", "ok", None, "c2")
    calls = asking(PING, ToolCall("c2", "ping", "{}"))
    for last in ([], [ChatMessage("assistant", "Nice.")]):
        made = sent(calls, first, second, *last)
        assert [message["role"] for message in made][1:4] == ["tool", "tool", "user"]
        assert made[1]["content"].startswith("a map")
        assert made[3]["content"][-1] == {"type": "image_url", "image_url": {"url": image.url}}


def test_images_and_files_of_the_user_are_parts() -> None:
    pdf = FilePart("data:application/pdf;base64,AA==", "a.pdf")
    parts: list[ContentPart] = [TextPart("see"), ImagePart("https://x/y.png"), pdf]
    (message,) = sent(ChatMessage("user", parts))
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "file"]
    assert message["content"][2]["file"] == {"file_data": pdf.url, "filename": "a.pdf"}


def test_instructions_take_the_role_the_server_wishes() -> None:
    assert sent(ChatMessage("system", "be brief"))[0]["role"] == "system"
    assert sent(ChatMessage("system", "be brief"), wishes=Wishes(system="developer"))[0]["role"] == "developer"


OPAQUE = {
    "origin": "https://here",
    "message": {"reasoning_content": "r"},
    "calls": {"c1": {"extra_content": {"google": {"thought_signature": "S"}}}},
}


def test_what_a_server_wants_back_goes_back_to_it_unchanged() -> None:
    (message,) = sent(asking(PING, opaque=OPAQUE))
    assert message["reasoning_content"] == "r"
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "S"}}


def test_what_a_server_wants_back_goes_to_no_other_one() -> None:
    (message,) = sent(asking(PING, opaque={**OPAQUE, "origin": "https://elsewhere"}))
    assert "reasoning_content" not in message
    assert "extra_content" not in message["tool_calls"][0]


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.sampled_from(["user", "assistant", "tool", "system", "x"]),
    anything,
    st.none() | st.lists(st.builds(ToolCall, anything, st.text(), st.text()), max_size=3),
    anything,
)
def test_any_message_has_a_form_that_is_json(role: str, content: Any, calls: Any, call_id: Any) -> None:
    for message in sent(ChatMessage(role, content, calls, call_id)):
        json.dumps(message, allow_nan=False)


def test_settings_become_the_fields_of_the_server() -> None:
    settings = ModelSettings(0.5, 100, ("END",), "required", 7, {"top_p": 0.9, "parallel_tool_calls": False})
    names = {"ping": "ping"}
    fields = settings_fields(settings, PLAIN, names, tools=True)
    assert fields == {
        "temperature": 0.5,
        "max_tokens": 100,
        "stop": ["END"],
        "seed": 7,
        "tool_choice": "required",
        "top_p": 0.9,
        "parallel_tool_calls": False,
    }
    wishes = Wishes(max_tokens="max_completion_tokens", required="any", parallel_calls=False)
    fields = settings_fields(settings, wishes, names, tools=True)
    assert fields["max_completion_tokens"] == 100
    assert fields["tool_choice"] == "any"
    assert "parallel_tool_calls" not in fields


def test_without_tools_nothing_about_tools_is_sent() -> None:
    settings = ModelSettings(tool_choice="none", extra={"parallel_tool_calls": True})
    assert settings_fields(settings, PLAIN, {}, tools=False) == {}


def test_one_tool_is_demanded_by_its_alias_or_as_any_where_a_server_knows_no_more() -> None:
    settings = ModelSettings(tool_choice="math.add")
    names = {"math.add": "math_add"}
    fields = settings_fields(settings, PLAIN, names, tools=True)
    assert fields["tool_choice"] == {"type": "function", "function": {"name": "math_add"}}
    assert settings_fields(settings, Wishes(named="required"), names, tools=True)["tool_choice"] == "required"


def test_a_tool_choice_that_names_no_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="is none of auto, none, required and the tools offered"):
        settings_fields(ModelSettings(tool_choice="fly"), PLAIN, {"ping": "ping"}, tools=True)


def test_no_server_has_two_entries() -> None:
    names = [server.name for server in SERVERS]
    assert len(names) == len(set(names))
