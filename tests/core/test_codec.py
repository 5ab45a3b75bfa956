"""JSON of everything a turn is made of: it writes whatever a model sent, and reads what it wrote and nothing else."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolturn import (
    ChatMessage,
    ChatResponse,
    FilePart,
    ImagePart,
    Limits,
    Repair,
    TextPart,
    ToolCall,
    ToolCallRecord,
    ToolLoopResult,
    Turn,
    Usage,
    codec,
    messages_from_json,
    messages_to_json,
    result_from_json,
    result_to_json,
)
from toolturn.codec import dumps, plain

from .parts import USER, answered, asks, begun, call, error_of, reply, says
from .strategies import Broken, json_values, junk, junk_messages, junk_responses, nested, texts, transcripts


def parsed(value: Any) -> Any:
    """What a reader of the written JSON gets; raises for what is no JSON."""
    text = dumps(value)
    assert text.isascii()
    return json.loads(text, parse_constant=pytest.fail)


# --- it writes anything --------------------------------------------------------------


@given(junk)
@example(nested(100))
@example({1: "a", "1": "b", None: "c", (1, 2): "d"})
@example([10**5000, -(10**5000), math.nan, math.inf, b"\xff", "\ud800", True])
def test_anything_at_all_can_be_written(value: Any) -> None:
    parsed(plain(value))


def test_what_is_nested_beyond_reason_can_be_written() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    parsed(plain(deep))
    while deep:  # taken apart by hand, or its end would need as deep a stack
        deep = deep[0]


def test_what_holds_itself_can_be_written() -> None:
    knot: dict[str, Any] = {}
    knot["self"] = knot
    parsed(plain(knot))


@given(json_values)
def test_json_is_written_as_it_is(value: Any) -> None:
    assert parsed(plain(value)) == value


@given(junk)
def test_what_was_written_is_written_the_same_again(value: Any) -> None:
    once = plain(value)
    assert plain(once) == once
    assert dumps(plain(parsed(once))) == dumps(once)


@given(junk)
def test_no_value_without_a_form_in_json_takes_more_than_a_few_hundred_characters(value: Any) -> None:
    if not isinstance(value, (str, int, float, list, tuple, dict)) and value is not None:
        assert len(plain(value)) <= 500


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_becomes_text(number: float) -> None:
    assert plain(number) == str(number)
    with pytest.raises(ValueError):
        dumps(number)  # rather than something that is no JSON


def test_an_integer_beyond_reason_becomes_text() -> None:
    assert plain(10**3999) == 10**3999
    assert plain(-(10**5000)) == f"an integer of {(10**5000).bit_length()} bits"


def test_an_object_is_written_as_its_repr_or_says_that_it_has_none() -> None:
    assert plain({1, 2}) == "{1, 2}"
    assert plain(Broken()) == "<Broken whose repr raised RuntimeError>"
    assert len(plain(b"x" * 1000)) == 500
    assert plain(b"x" * 1000).endswith("…")


def test_a_key_that_is_no_text_becomes_text() -> None:
    assert plain({1: "a", None: "b"}) == {"1": "a", "None": "b"}


class Role(str, enum.Enum):  # noqa: UP042 - its str() is not its value, unlike that of a StrEnum
    USER = "user"


class Kind(enum.StrEnum):
    ADD = "add"


class Level(enum.IntEnum):
    HIGH = 3


def test_an_enumeration_of_texts_or_numbers_is_written_by_its_value() -> None:
    assert plain(Level.HIGH) == 3
    assert plain(Kind.ADD) == "add"
    assert plain(Role.USER) == "user"
    (message,) = messages_from_json(messages_to_json([ChatMessage(Role.USER, "Hi.")]))
    assert message == ChatMessage("user", "Hi.")


@given(st.lists(junk_messages, max_size=3))
def test_messages_of_any_content_can_be_written(messages: list[ChatMessage]) -> None:
    parsed([codec.message_to_dict(message) for message in messages])


@given(junk_responses)
def test_whatever_a_model_sent_can_be_written(response: ChatResponse) -> None:
    parsed(codec.response_to_dict(response))


@given(junk_responses)
@example(ChatResponse([TextPart(nested(64))]))  # type: ignore[arg-type]
@example(ChatResponse([ImagePart(nested(64))]))  # type: ignore[arg-type]
def test_a_turn_that_was_given_anything_can_be_saved_and_comes_back_equal(response: ChatResponse) -> None:
    turn = begun()
    reply(turn, response)
    saved = turn.to_json()
    assert Turn.from_json(saved).to_json() == saved
    if turn.exit is None:
        turn.cancel()
    error_of(turn) if not isinstance(turn.exit, ToolLoopResult) else result_to_json(turn.exit)


# --- it reads what it wrote ----------------------------------------------------------


@given(transcripts())
def test_messages_come_back_as_they_were(messages: tuple[ChatMessage, ...]) -> None:
    assert messages_from_json(messages_to_json(messages)) == messages


@given(texts, texts, texts)
def test_a_call_comes_back_as_it_was(call_id: str, name: str, arguments: str) -> None:
    one = ToolCall(call_id, name, arguments)
    assert codec.call_from_dict(parsed(codec.call_to_dict(one))) == one


@pytest.mark.parametrize("call_id", [7, None, 1.5, True, "", ["a"], {"a": 1}])
def test_an_id_of_any_json_type_comes_back_as_it_was(call_id: Any) -> None:
    one = codec.call_from_dict(parsed(codec.call_to_dict(ToolCall(call_id, "add", "{}"))))
    assert (one.id, type(one.id)) == (call_id, type(call_id))


def test_half_a_surrogate_pair_comes_back_as_it_was() -> None:
    message = ChatMessage("user", "a \ud800 half")
    assert messages_from_json(messages_to_json([message])) == (message,)


PARTS: list[Any] = [
    [TextPart("a"), ImagePart("https://example.org/a.png")],
    [{"type": "text", "text": "a"}],
    [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
    [{"type": "image_url", "image_url": {"url": "data:,"}}],
    [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}],
    [{"text": "a"}, "b", 7, None],
    [],
]


@pytest.mark.parametrize("content", PARTS)
def test_content_in_parts_of_any_kind_comes_back_with_all_it_holds(content: Any) -> None:
    messages = [ChatMessage("user", content)]
    (message,) = messages_from_json(messages_to_json(messages))
    assert messages_to_json([message]) == messages_to_json(messages)


@pytest.mark.parametrize("content", PARTS)
def test_a_turn_with_content_in_parts_is_equal_to_what_comes_back(content: Any) -> None:
    turn = begun(messages=[ChatMessage("user", content)])
    assert Turn.from_json(turn.to_json()) == turn


def test_a_response_comes_back_with_all_it_holds() -> None:
    response = ChatResponse(
        "Hi.", "a thought", [call("a")], "stop", {"id": 7}, Usage(1, 2, 3, 4), (Repair("id", "made up"),)
    )
    assert codec.response_from_dict(parsed(codec.response_to_dict(response))) == response


def test_a_record_comes_back_with_all_it_holds() -> None:
    record = ToolCallRecord(call("a"), answered("a"), True, "t1.0", "timeout", 12.5, 0.25, "TimeoutError: ")
    assert codec.record_from_dict(parsed(codec.record_to_dict(record))) == record


def test_limits_come_back_as_they_were() -> None:
    limits = Limits(7, 0, 1.5, None)
    assert codec.limits_from_dict(parsed(codec.limits_to_dict(limits))) == limits


def test_a_result_comes_back_with_all_it_holds() -> None:
    record = ToolCallRecord(call("a"), answered("a"), False, "t1.0")
    result = ToolLoopResult("Hi.", (USER,), (record,), 2, True, Usage(1, 2), "turn", "iterations")
    assert result_from_json(result_to_json(result)) == result


def test_a_document_is_compact_and_says_what_it_is_and_which_version() -> None:
    text = result_to_json(ToolLoopResult("Hi.", (USER,), (), 1, False))
    assert text.startswith('{"v":1,"kind":"result",')
    assert ", " not in text
    assert begun().to_json().startswith('{"v":1,"kind":"turn",')


# --- messages from elsewhere ---------------------------------------------------------


def test_messages_in_the_form_of_openai_are_read() -> None:
    text = json.dumps(
        {
            "model": "any",
            "messages": [
                {"role": "user", "content": "Add."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "a", "content": "5"},
                {"role": "assistant", "tool_calls": [{"id": "b", "name": "add", "arguments": "{}"}]},
            ],
        }
    )
    assert messages_from_json(text) == (
        ChatMessage("user", "Add."),
        ChatMessage("assistant", None, [ToolCall("a", "add", "{}")]),  # type: ignore[arg-type]
        ChatMessage("tool", "5", None, "a"),
        ChatMessage("assistant", None, [ToolCall("b", "add", "{}")]),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("text", ["", "no JSON", "[" * 100_000, "\ud800"])
def test_messages_that_are_no_json_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^the messages are not JSON$"):
        messages_from_json(text)


@pytest.mark.parametrize("thing", [None, 7, b"\xff", [{"role": "user", "content": "Hi."}]])
def test_what_is_no_text_holds_no_messages(thing: Any) -> None:
    with pytest.raises(ValueError, match=r"^the messages are not JSON$"):
        messages_from_json(thing)


@pytest.mark.parametrize("text", ["{}", "7", '"text"', "null", '{"messages": {}}'])
def test_messages_that_are_no_list_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a JSON list"):
        messages_from_json(text)


@pytest.mark.parametrize(
    "item",
    [
        7,
        "text",
        None,
        [],
        {},
        {"content": "no role"},
        {"role": "assistant", "tool_calls": 7},
        {"role": "assistant", "tool_calls": [7]},
        {"role": "assistant", "tool_calls": [{}]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": None}]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "add"}}]},
    ],
)
def test_the_item_that_is_no_message_is_named(item: Any) -> None:
    with pytest.raises(ValueError, match=r"^message 1 is no chat message$"):
        messages_from_json(json.dumps([{"role": "user", "content": "Hi."}, item]))


# --- causes --------------------------------------------------------------------------


def test_a_cause_is_type_and_text_whatever_the_exception_does() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    cause = codec.cause_of(KeyError("a"))
    assert (cause.type, cause.text) == ("KeyError", "'a'")
    cause = codec.cause_of(Mute())
    assert (cause.type, cause.text) == ("Mute", "")


def test_a_reply_with_usage_and_calls_survives_in_the_state_of_a_turn() -> None:
    turn = reply(begun(), asks(call("a"), usage=Usage(1, 2)))
    assert Turn.from_json(turn.to_json()).usage == Usage(1, 2)
    assert Turn.from_json(turn.to_json()).ops() == turn.ops()
    assert Turn.from_json(reply(begun(), says("Hi.")).to_json()).exit is not None


def test_what_a_provider_wants_back_goes_from_its_reply_through_a_saved_turn_into_the_transcript() -> None:
    opaque = {"reasoning_content": "I should add.", "calls": {"c1": {"signature": "S"}}}
    turn = Turn("t")
    turn.begin([ChatMessage("user", "go")], (), {})
    reply = ChatResponse("", None, [ToolCall("c1", "add", "{}")], "tool_calls", opaque=opaque)
    turn.apply(turn.ops()[0], reply)
    again = Turn.from_json(turn.to_json())
    assert again == turn
    assert again.messages[1].opaque == opaque


def test_a_rejected_response_keeps_what_the_provider_wants_back() -> None:
    response = ChatResponse("", opaque={"reasoning_content": "r"})
    assert codec.response_from_dict(codec.response_to_dict(response)) == response


def test_a_file_in_a_message_comes_back_as_it_was() -> None:
    message = ChatMessage("user", [FilePart("data:application/pdf;base64,AA==", "a.pdf")])
    assert codec.message_from_dict(codec.message_to_dict(message)) == message


def test_calls_that_stand_among_the_parts_of_a_content_are_read_as_calls_behind_the_text() -> None:
    parts = [{"type": "tool_use", "id": "c1", "name": "a", "input": {"x": 1}}, {"type": "text", "text": "and then"}]
    (message,) = messages_from_json(json.dumps([{"role": "assistant", "content": parts}]))
    assert message == ChatMessage("assistant", [TextPart("and then")], [ToolCall("c1", "a", '{"x":1}')])
