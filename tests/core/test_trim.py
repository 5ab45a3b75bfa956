"""How a transcript is made to fit a model's window."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, FilePart, ImagePart, TextPart, ToolCall
from toolturn.transcript import Trimmed, check, rough_tokens, trim

from .parts import answered, call
from .strategies import Broken, junk_messages, near_messages, transcripts

SYSTEM = ChatMessage("system", "Be brief.")


def ask(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def reply(text: str) -> ChatMessage:
    return ChatMessage("assistant", text)


def asking(*ids: str) -> ChatMessage:
    return ChatMessage("assistant", "", [call(call_id) for call_id in ids])


def one(message: ChatMessage) -> int:
    """Each message is one token, so that a budget counts messages."""
    return 1


def kept(messages: Sequence[ChatMessage], budget: int, **options: Any) -> list[int]:
    """The places of what is kept."""
    left = trim(messages, budget, one, **options).messages
    return [index for index, message in enumerate(messages) if any(message is other for other in left)]


# --- what goes, and in which order ---------------------------------------------------

TALK = [SYSTEM, ask("a"), reply("A"), ask("b"), asking("x"), answered("x"), reply("B"), ask("c"), reply("C")]


def test_what_fits_is_left_as_it_is() -> None:
    result = trim(TALK, len(TALK), one)
    assert result == Trimmed(tuple(TALK), (), len(TALK), True)


def test_the_oldest_exchange_goes_first_and_whole() -> None:
    assert kept(TALK, 8) == [0, 3, 4, 5, 6, 7, 8]
    assert kept(TALK, 7) == [0, 3, 4, 5, 6, 7, 8]


def test_a_question_goes_with_all_its_calls_and_results() -> None:
    assert kept(TALK, 6) == [0, 7, 8]


def test_no_more_goes_than_has_to() -> None:
    result = trim(TALK, 7, one)
    assert result.dropped == (TALK[1], TALK[2])
    assert (result.tokens, result.fits) == (7, True)


def test_system_messages_stay_wherever_they_stand() -> None:
    later = ChatMessage("system", "Speak French.")
    talk = [SYSTEM, ask("a"), reply("A"), later, ask("b"), reply("B")]
    assert kept(talk, 0) == [0, 3, 4, 5]


def test_what_an_assistant_said_before_the_first_question_goes_first() -> None:
    assert kept([reply("Hello!"), ask("a"), reply("A")], 2) == [1, 2]


def test_the_last_exchange_stays_and_that_it_is_too_much_is_told() -> None:
    result = trim(TALK, 1, one)
    assert result.messages == (SYSTEM, TALK[7], TALK[8])
    assert (result.tokens, result.fits) == (3, False)


def test_a_last_question_without_an_answer_is_the_last_exchange() -> None:
    assert kept([*TALK, ask("d")], 2) == [0, 9]


LONG = [SYSTEM, ask("a"), asking("w"), answered("w"), asking("x", "y"), answered("y"), answered("x"), reply("A")]


def test_of_a_last_exchange_that_is_too_long_the_older_steps_go_each_with_all_its_results() -> None:
    assert kept(LONG, 7) == [0, 1, 4, 5, 6, 7]
    assert kept(LONG, 5) == [0, 1, 7]
    assert kept(LONG, 0) == [0, 1, 7]


def test_the_last_step_of_a_turn_under_way_stays_with_its_results() -> None:
    assert kept(LONG[:-1], 0) == [0, 1, 4, 5, 6]


def test_calls_that_are_still_open_stay() -> None:
    assert kept([ask("a"), asking("w"), answered("w"), asking("x", "y"), answered("y")], 0) == [0, 3, 4]


def test_older_exchanges_go_before_a_step_of_the_last_one_does() -> None:
    assert kept([ask("z"), reply("Z"), *LONG], 8) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_nothing_at_all_fits_any_budget() -> None:
    assert trim([], 0) == Trimmed((), (), 0, True)


def test_the_messages_are_those_that_were_given() -> None:
    result = trim(TALK, 7, one)
    assert all(any(message is given for given in TALK) for message in result.messages)


# --- pins ----------------------------------------------------------------------------


def test_a_pinned_answer_stays_with_its_question() -> None:
    assert kept(TALK, 0, pin=[2]) == [0, 1, 2, 7, 8]


def test_a_pinned_question_stays_without_what_followed() -> None:
    assert kept(TALK, 0, pin=[3]) == [0, 3, 7, 8]


@pytest.mark.parametrize("place", [4, 5])
def test_a_pinned_call_or_result_stays_as_a_whole_step_with_its_question(place: int) -> None:
    assert kept(TALK, 0, pin=[place]) == [0, 3, 4, 5, 7, 8]


def test_a_step_of_the_last_exchange_can_be_pinned() -> None:
    assert kept(LONG, 0, pin=[3]) == [0, 1, 2, 3, 7]


def test_beside_a_pin_no_more_goes_than_has_to() -> None:
    assert kept(TALK, 8, pin=[1]) == [0, 1, 3, 4, 5, 6, 7, 8]


def test_places_may_be_counted_from_the_end() -> None:
    assert kept(TALK, 0, pin=[-7]) == kept(TALK, 0, pin=[2])


def test_a_pin_may_be_a_function_of_the_message() -> None:
    assert kept(TALK, 0, pin=lambda message: message.content == "A") == [0, 1, 2, 7, 8]


@pytest.mark.parametrize("place", [9, -10])
def test_a_pin_outside_of_the_transcript_is_refused(place: int) -> None:
    with pytest.raises(ValueError, match=f"message {place} can not be pinned: there are 9"):
        trim(TALK, 5, pin=[place])


# --- budgets and counts --------------------------------------------------------------


@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_a_budget_below_nothing_is_refused(budget: Any) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        trim(TALK, budget)


def test_a_count_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="gave -1 tokens for message 0"):
        trim(TALK, 5, lambda message: -1)


def test_each_message_is_counted_once() -> None:
    counted: list[ChatMessage] = []

    def counter(message: ChatMessage) -> int:
        counted.append(message)
        return 1

    trim(TALK, 3, counter)
    assert counted == TALK


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (ask(""), 4),
        (ask("four"), 5),
        (ask("fives"), 6),
        (ask("да"), 5),
        (ask("漢字漢字"), 7),
        (ask("\ud800"), 5),
        (ChatMessage("user", [TextPart("four"), ImagePart("data:image/png;base64," + "A" * 9999)]), 1005),
        (ChatMessage("user", [FilePart("data:,")]), 1004),
        (ChatMessage("assistant", "", [ToolCall("a", "add", '{"a":1}')]), 7),
        (ChatMessage("assistant", "", opaque={"k": "0123456789"}), 9),
    ],
)
def test_the_rough_count_is_a_token_for_four_bytes(message: ChatMessage, tokens: int) -> None:
    assert rough_tokens(message) == tokens


def test_fields_that_can_not_be_shown_count_somehow() -> None:
    odd: Any = Broken()
    assert rough_tokens(ChatMessage("user", odd, odd, odd, {"k": odd})) >= 4


# --- properties ----------------------------------------------------------------------

budgets = st.integers(0, 60)
pins = st.sets(st.integers(0, 10))


def places(messages: Sequence[ChatMessage], pin: set[int]) -> list[int]:
    return [place for place in pin if place < len(messages)]


@given(transcripts(), budgets, pins)
def test_a_valid_transcript_stays_valid_and_what_is_left_out_is_valid_too(
    messages: tuple[ChatMessage, ...], budget: int, pin: set[int]
) -> None:
    result = trim(messages, budget, pin=places(messages, pin))
    assert check(result.messages) == []
    assert check(result.dropped) == []


@given(st.lists(near_messages | junk_messages, max_size=8), budgets, pins)
def test_it_never_grows_and_loses_nothing_whatever_it_is_given(
    messages: list[ChatMessage], budget: int, pin: set[int]
) -> None:
    result = trim(messages, budget, pin=places(messages, pin))
    left, out = list(result.messages), list(result.dropped)
    for message in messages:
        source = left if left and left[0] is message else out
        assert source.pop(0) is message, "kept and left out are what was given, each in its order"
    assert not left
    assert not out
    assert result.tokens == sum(map(rough_tokens, result.messages))
    assert result.fits == (result.tokens <= budget)


@given(transcripts(), budgets, budgets, pins)
def test_a_smaller_budget_never_keeps_what_a_larger_one_leaves_out(
    messages: tuple[ChatMessage, ...], one_budget: int, other: int, pin: set[int]
) -> None:
    small, large = sorted((one_budget, other))
    pinned = places(messages, pin)
    more = {id(message) for message in trim(messages, large, pin=pinned).messages}
    assert {id(message) for message in trim(messages, small, pin=pinned).messages} <= more


@given(transcripts(), budgets)
def test_what_was_trimmed_is_not_trimmed_further(messages: tuple[ChatMessage, ...], budget: int) -> None:
    once = trim(messages, budget)
    assert trim(once.messages, budget).dropped == ()
    assert trim(messages, budget) == once


@given(transcripts(), budgets, pins)
def test_system_messages_pins_and_the_last_question_always_stay(
    messages: tuple[ChatMessage, ...], budget: int, pin: set[int]
) -> None:
    pinned = places(messages, pin)
    left = {id(message) for message in trim(messages, budget, pin=pinned).messages}
    must = [message for message in messages if message.role == "system"] + [messages[place] for place in pinned]
    must += [message for message in messages if message.role == "user"][-1:]
    assert {id(message) for message in must} <= left


@given(transcripts(), budgets)
def test_the_window_begins_with_a_question_where_the_transcript_does(
    messages: tuple[ChatMessage, ...], budget: int
) -> None:
    talk = [ask("first"), *messages]
    left = [message.role for message in trim(talk, budget).messages if message.role != "system"]
    assert left[0] == "user"


def test_the_time_grows_with_the_length_and_not_faster() -> None:
    def seconds(exchanges: int) -> float:
        talk = [message for _ in range(exchanges) for message in (ask("a"), asking("x"), answered("x"), reply("A"))]
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            trim(talk, 100, one)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(20_000) < 30 * seconds(2_000), "ten times as long; a hundred times would be quadratic"
