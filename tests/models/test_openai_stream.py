"""The pieces of a streamed reply make the body it would have been, however a server tells its calls apart."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.model import Delta
from toolturn.models.wires.openai_stream import Assembler

NAMES = ("get_temp", "ping", "write_file")
CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data/stream_cases.jsonl").read_text().splitlines()]


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


def called(*fragments: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)})


def fragment(name: str | None = None, arguments: str | None = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def assembled(*chunks: Any) -> tuple[dict[str, Any], list[Delta]]:
    assembler = Assembler(NAMES)
    deltas = [delta for item in chunks for delta in assembler.feed(item)]
    return assembler.body(), deltas


def message(*chunks: Any) -> Any:
    return assembled(*chunks)[0]["choices"][0]["message"]


def calls(*chunks: Any) -> list[tuple[Any, str, str]]:
    found = message(*chunks).get("tool_calls", [])
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in found]


@pytest.mark.parametrize(
    "case", [case for case in CASES if "calls" in (case["oracle"] or {})], ids=lambda case: case["name"]
)
def test_calls_are_told_apart_as_in_the_reported_streams(case: dict[str, Any]) -> None:
    made = calls(*case["input"]["chunks"])
    assert [name for _, name, _ in made] == [name for name, _ in case["oracle"]["calls"]]
    for (_, _, text), (_, arguments) in zip(made, case["oracle"]["calls"], strict=True):
        # identical copies are folded, and nothing made of an empty text, where arguments are mended
        assert text == "" or json.JSONDecoder().raw_decode(text)[0] == arguments


def test_text_is_handed_on_piece_by_piece_and_makes_the_content() -> None:
    body, deltas = assembled(
        chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop")
    )
    assert deltas == [Delta("Hel"), Delta("lo")]
    assert body["choices"][0]["message"]["content"] == "Hello"
    assert body["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_thoughts_of_every_spelling_are_reasoning_and_never_text(field: str) -> None:
    body, deltas = assembled(chunk({field: "Let me "}), chunk({field: "see."}), chunk({"content": "Yes."}, "stop"))
    assert deltas == [Delta("Let me ", "reasoning"), Delta("see.", "reasoning"), Delta("Yes.")]
    assert body["choices"][0]["message"]["reasoning_content"] == "Let me see."


def test_content_in_parts_is_text_and_thoughts_are_told_apart() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    body, deltas = assembled(chunk({"content": [thinking]}), chunk({"content": [{"type": "text", "text": "Yes."}]}))
    assert deltas == [Delta("Hm.", "reasoning"), Delta("Yes.")]
    assert body["choices"][0]["message"]["content"] == "Yes."


def test_a_name_repeated_with_every_fragment_stays_one_call() -> None:
    assert calls(
        called(fragment("get_temp", '{"ci', index=0, id="a")),
        called(fragment("get_temp", 'ty":"Faro"}', index=0, id="a")),
    ) == [("a", "get_temp", '{"city":"Faro"}')]


def test_calls_in_one_delta_without_index_and_id_are_told_apart_by_their_names() -> None:
    made = calls(called(fragment("ping", "{}"), fragment("get_temp", '{"city":"Faro"}')))
    assert [name for _, name, _ in made] == ["ping", "get_temp"]


def test_a_numbered_continuation_finds_its_unnumbered_beginning_by_id() -> None:
    made = calls(called(fragment("ping", "{", id="a")), called(fragment(None, "}", id="a", index=0)))
    assert made == [("a", "ping", "{}")]


@pytest.mark.parametrize("call_id", ["a", " ", "ping"])
def test_calls_with_different_numbers_are_two_although_their_ids_are_the_same(call_id: str) -> None:
    made = calls(
        called(fragment("ping", "{}", index=0, id=call_id)),
        called(fragment("ping", '{"a":1}', index=1, id=call_id)),
    )
    assert [text for _, _, text in made] == ["{}", '{"a":1}']


def test_arguments_that_come_as_an_object_are_text_again() -> None:
    made = calls(called({"index": 0, "id": "a", "function": {"name": "ping", "arguments": {"x": 1}}}))
    assert json.loads(made[0][2]) == {"x": 1}


def test_further_fields_of_a_call_are_kept() -> None:
    found = message(called(fragment("ping", "{}", index=0, id="a", extra_content={"google": {"s": 1}})))
    assert found["tool_calls"][0]["extra_content"] == {"google": {"s": 1}}


def test_the_legacy_function_call_is_one_call() -> None:
    made = calls(
        chunk({"function_call": {"name": "ping", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}})
    )
    assert made == [(None, "ping", "{}")]


def test_an_empty_legacy_call_in_a_stream_is_none() -> None:
    assert calls(chunk({"content": "hi", "function_call": {"name": "", "arguments": ""}})) == []


def thinking(**piece: Any) -> dict[str, Any]:
    return chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, **piece}]})


def test_blocks_of_thoughts_are_put_together_with_their_signature() -> None:
    made = message(
        thinking(text="Look", format="f"),
        thinking(text=" it up.", format=None),
        thinking(signature="s1"),
        thinking(text="Again."),
        chunk({"reasoning_details": [{"type": "reasoning.summary", "index": 1, "summary": "Lo"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.summary", "index": 1, "summary": "ng"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 2, "data": "a"}, "odd"]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 2, "data": "b"}]}),
    )
    assert made["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "Look it up.", "format": "f", "signature": "s1"},
        {"type": "reasoning.text", "index": 0, "text": "Again."},
        {"type": "reasoning.summary", "index": 1, "summary": "Long"},
        {"type": "reasoning.encrypted", "index": 2, "data": "a"},
        "odd",
        {"type": "reasoning.encrypted", "index": 2, "data": "b"},
    ]


def test_usage_of_the_last_chunk_is_in_the_body() -> None:
    body, _ = assembled(chunk({"content": "hi"}, "stop"), {"choices": [], "usage": {"total_tokens": 9}})
    assert body["usage"] == {"total_tokens": 9}


def test_a_refusal_and_log_probabilities_are_kept_whole() -> None:
    log = {"content": [{"token": "a"}]}
    body, _ = assembled(
        {"choices": [{"index": 0, "delta": {"refusal": "I can"}, "logprobs": log}]},
        {"choices": [{"index": 0, "delta": {"refusal": "not."}, "logprobs": log}]},
    )
    choice = body["choices"][0]
    assert choice["message"]["refusal"] == "I cannot."
    assert choice["logprobs"]["content"] == [{"token": "a"}] * 2


def test_other_choices_than_the_first_are_passed_over() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}}]}
    assert message(chunk({"content": "yes"}), other)["content"] == "yes"


def test_a_whole_message_in_the_stream_counts_where_no_piece_of_it_came() -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    assert message(whole)["content"] == "Hello"
    assert message(chunk({"content": "Hello"}), whole)["content"] == "Hello"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "index",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "content",
                    "x",
                    "type",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(junk, max_size=5))
def test_no_chunk_of_whatever_kind_raises(chunks: list[Any]) -> None:
    body, deltas = assembled(*chunks)
    json.dumps(body)
    assert all(isinstance(delta.text, str) for delta in deltas)


@given(st.data())
def test_cutting_arguments_anywhere_gives_the_same_calls(data: st.DataObject) -> None:
    texts = ['{"city":"Faro"}', '{"city":"Braga","note":"}{"}']
    chunks = []
    for index, text in enumerate(texts):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        bounds = [0, *cuts, len(text)]
        for place, (start, end) in enumerate(itertools.pairwise(bounds)):
            head = {"id": f"c{index}"} if place == 0 else {}
            chunks.append(called(fragment("get_temp" if place == 0 else None, text[start:end], index=index, **head)))
    assert [text for _, _, text in calls(*chunks)] == texts
