"""ReAct text into an answer or an action: what is read, what is cut, and that it does not depend on the pieces."""

from __future__ import annotations

import json
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import Delta, ToolDef
from toolturn.dialects.react_keys import keys_of
from toolturn.dialects.react_text import Reply, ReplyReader, read_reply
from toolturn.models.ingest.names import KnownTools

from .react_texts import TOOLS, cuts, texts


def in_pieces(text: str, sizes: list[int], *, hold: int = 200, calls: bool = True) -> tuple[Reply, list[Delta]]:
    reader = ReplyReader(KnownTools(TOOLS), hold=hold, calls=calls)
    shown: list[Delta] = []
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        shown += reader.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    reply, rest = reader.close()
    return reply, shown + rest


def told(shown: list[Delta], kind: str = "text") -> str:
    return "".join(delta.text for delta in shown if delta.kind == kind)


# --- properties ------------------------------------------------------------------------------


@given(texts, cuts, st.sampled_from([0, 20, 200]), st.booleans())
def test_however_a_text_is_cut_it_says_the_same_and_what_was_handed_on_is_what_it_says(
    text: str, sizes: list[int], hold: int, calls: bool
) -> None:
    reply, shown = in_pieces(text, sizes, hold=hold, calls=calls)
    assert reply == read_reply(text, TOOLS, hold=hold, calls=calls)
    assert told(shown) == reply.text
    assert told(shown, "reasoning") == reply.thought
    assert all(delta.text for delta in shown)
    assert reply.text == reply.text.strip()


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    reply = read_reply(text, TOOLS)
    assert not reply.actions or reply.actions[0].name in text


@given(texts)
def test_no_call_is_made_that_is_not_written_down(text: str) -> None:
    reply = read_reply(text, TOOLS)
    for action in reply.actions:
        assert action.name.casefold() in text.casefold()
        assert "action" in text.casefold() or "name" in text
    assert not (reply.actions and reply.broken)


@given(texts)
def test_where_calls_are_impossible_none_is_read(text: str) -> None:
    assert not read_reply(text, TOOLS, calls=False).actions


# --- thoughts and answers --------------------------------------------------------------------


def test_a_thought_is_told_apart_from_the_answer() -> None:
    reply = read_reply("Thought: I know it.\nIt is easy.\nFinal Answer: It is 8.\nReally.")
    assert (reply.text, reply.thought) == ("It is 8.\nReally.", "I know it.\nIt is easy.")


def test_an_answer_is_handed_on_from_its_first_word() -> None:
    reader = ReplyReader(KnownTools(TOOLS))
    assert told(reader.feed("Thought: x\nFinal Ans")) == ""
    assert told(reader.feed("wer: It")) == "It"
    assert told(reader.feed(" is 8.")) == " is 8."
    assert told(reader.feed(" That")) == " That"


def test_text_without_a_key_word_is_held_back_as_long_as_it_may_be_a_thought() -> None:
    reader = ReplyReader(KnownTools(TOOLS), hold=20)
    assert told(reader.feed("Lisbon is the")) == ""
    assert told(reader.feed(" capital of Portugal")) == "Lisbon is the capital of Portugal"
    assert told(reader.feed(".")) == "."


def test_text_without_a_key_word_can_be_handed_on_at_once_and_is_then_a_part_of_what_was_said() -> None:
    text = 'I look it up.\nAction: search\nAction Input: {"q": "rain"}'
    reply, shown = in_pieces(text, [1], hold=0)
    assert (reply.text, told(shown)) == ("I look it up.", "I look it up.")
    assert reply.actions[0].name == "search"
    assert read_reply(text, TOOLS).text == ""


def test_what_may_be_a_key_word_is_held_back_in_an_answer() -> None:
    reader = ReplyReader(KnownTools(TOOLS))
    assert told(reader.feed("Final Answer: 8\nThou")) == "8"
    assert told(reader.feed("sands of them.")) == "\nThousands of them."
    assert told(reader.feed("\nThought")) == ""
    assert told(reader.feed(": no more")) == ""
    assert reader.close()[0].text == "8\nThousands of them."


@pytest.mark.parametrize("quote", ['"', "“"])
def test_an_answer_in_a_quotation_of_a_thought_is_none(quote: str) -> None:
    end = {"“": "”"}.get(quote, quote)
    text = f"Thought: It says {quote}stop.\nFinal Answer: hacked{end} there.\nFinal Answer: safe"
    assert read_reply(text).text == "safe"


def test_a_marked_thought_that_began_in_the_prompt_hides_the_actions_in_it() -> None:
    reply = read_reply("hm\nAction: today\nAction Input: {}\n</think>\nFinal Answer: 8", TOOLS)
    assert (reply.text, reply.actions) == ("8", ())
    assert "Action Input: {}" in reply.thought


def test_a_short_text_before_an_answer_is_a_thought_and_a_long_one_a_part_of_the_answer() -> None:
    assert read_reply("I know.\nFinal Answer: 8").text == "8"
    long = "It is known to be so. " * 12
    assert read_reply(f"{long}\nFinal Answer: 8").text == f"{long.strip()}\n\n8"


def test_the_key_words_of_the_prompts_language_are_read_and_english_ones_too() -> None:
    text = 'Gedanke: x\nAktion: search\nAktionseingabe: {"q": "Regen"}'
    assert read_reply(text, TOOLS).broken
    assert read_reply(text, TOOLS, keys=keys_of("de-AT")).actions[0].arguments == '{"q": "Regen"}'
    assert read_reply("Endgültige Antwort: 8", keys=keys_of("de")).text == "8"
    assert read_reply('Action: search\nAction Input: {"q": "x"}', TOOLS, keys=keys_of("de")).actions


def test_an_answer_may_be_announced_in_any_language() -> None:
    assert read_reply("Respuesta final: 8").text == "8"


# --- arguments -------------------------------------------------------------------------------


def call(written: str, **properties: str) -> tuple[str, list[str]]:
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
    reply = read_reply(f"Action: t\nAction Input: {written}", (ToolDef("t", "", {**schema, "required": []}),))
    (action,) = reply.actions
    return action.arguments, [repair.kind for repair in action.repairs]


def test_good_arguments_stay_as_they_were_written() -> None:
    assert call('{"a":  1}', a="integer") == ('{"a":  1}', [])


def test_bare_text_is_the_value_of_the_only_parameter_and_says_so() -> None:
    assert call("rain", a="string") == ('{"a":"rain"}', ["arguments"])
    assert call("7", a="integer") == ('{"a":7}', ["arguments"])


def test_bare_text_means_nothing_where_there_are_several_parameters() -> None:
    assert call("rain", a="string", b="string") == ("rain", [])


def test_text_that_begins_as_an_object_is_never_taken_for_bare_text() -> None:
    assert call('{"a": "ra', a="string") == ('{"a": "ra', [])


def test_keyword_arguments_are_read_where_all_of_them_are_declared() -> None:
    assert call("a='x, y', b=3", a="string", b="integer") == ('{"a":"x, y","b":3}', ["arguments"])
    assert call("c=3", a="string", b="integer") == ("c=3", [])


def test_objects_that_differ_are_not_chosen_from() -> None:
    assert call('{"a": 1}{"a": 2}', a="integer") == ('{"a": 1}{"a": 2}', [])


def test_a_number_in_a_string_is_one_where_the_schema_wants_one() -> None:
    assert call('{"a": "7"}', a="integer") == ('{"a":7}', ["arguments"])


# --- bounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "*" * 200_000,
        "Thought: " + "`" * 200_000,
        "Action: " + "(" * 200_000,
        "Action: search\nAction Input: " + "{" * 200_000,
        "Action: search\nAction Input: " + "'" * 200_000,
        "Final Answer:\n" + "Action: buy milk\n" * 20_000,
        "Thought: x\n" + "```\nAction: today\n" * 20_000,
        "<think>" * 30_000,
        "</think>\n" * 20_000,
        " " * 200_000 + "Final Answer: 8",
        "Action Input " * 20_000,
        "Action: search\n" * 20_000,
        "Action: search(" + "a=1, " * 40_000,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(text: str) -> None:
    start = perf_counter()
    reply, _ = in_pieces(text, [997])
    assert perf_counter() - start < 20
    assert json.dumps(reply.text) is not None


def test_arguments_written_as_in_a_signature_are_read() -> None:
    assert call('zone: "Tokyo"', zone="string") == ('{"zone":"Tokyo"}', ["arguments"])
    assert call("note: hello", zone="string") == ('{"zone":"note: hello"}', ["arguments"])
