"""SentenceSplitter: text that comes in pieces, sentences that leave with the character that proves their end."""

from __future__ import annotations

import doctest
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolturn.splitter
from toolturn.splitter import SentenceSplitter

DATA = Path(__file__).parents[1] / "data" / "sentences.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in DATA.read_text(encoding="utf-8").split("\n") if line]
IDS = [f"{row['language']}-{row['kind']}-{number}" for number, row in enumerate(ROWS)]


def split(text: str, language: str | None, step: int = 1, **options: Any) -> list[str]:
    splitter = SentenceSplitter(language, **options)
    pieces = [piece for i in range(0, len(text), step) for piece in splitter.feed(text[i : i + step])]
    return pieces + splitter.flush()


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_sentences_of_many_languages_are_found(row: dict[str, Any]) -> None:
    assert split("".join(row["pieces"]), row["language"], 10_000) == row["pieces"]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_cut_at_any_place_changes_nothing(row: dict[str, Any]) -> None:
    text = "".join(row["pieces"])
    assert split(text, row["language"]) == row["pieces"]
    for place in range(len(text) + 1):
        splitter = SentenceSplitter(row["language"])
        got = splitter.feed(text[:place]) + splitter.feed(text[place:]) + splitter.flush()
        assert got == row["pieces"], place


def test_where_the_language_is_not_known_nearly_all_are_found_too() -> None:
    wrong = [row for row in ROWS if split("".join(row["pieces"]), None) != row["pieces"]]
    assert len(wrong) <= len(ROWS) // 50, wrong


def test_the_data_has_hundreds_of_sentences_in_many_languages() -> None:
    assert sum(len(row["pieces"]) for row in ROWS) >= 600
    assert len({row["language"] for row in ROWS}) >= 30


# The characters and words that rules speak of, so that random texts are not all plain.
PARTS = st.sampled_from(
    [
        *"aBIdz15.!?…。！।؟;,:«»“”\"'`~()[]*#-—| \n\r\t日を\u200d\u0301",
        "Dr",
        "U.S",
        "p",
        "No",
        "```",
        "~~~",
        "1. ",
        "- ",
        "etc",
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PARTS, max_size=80).map("".join))
LANGUAGES = st.sampled_from(["en", "de", "fr", "el", "ja", "xx", None])


@given(text=TEXTS, language=LANGUAGES, longest=st.sampled_from([16, 25, 240]), data=st.data())
def test_the_pieces_joined_are_the_text_and_depend_on_no_cut(
    text: str, language: str | None, longest: int, data: st.DataObject
) -> None:
    splitter = SentenceSplitter(language, longest=longest)
    pieces: list[str] = []
    place = 0
    while place < len(text):
        end = data.draw(st.integers(place + 1, len(text)), "cut")
        pieces += splitter.feed(text[place:end])
        assert "".join(pieces) + splitter.pending == text[:end]
        place = end
    pieces += splitter.flush()
    assert "".join(pieces) == text
    assert all(pieces)
    assert pieces == split(text, language, len(text) + 1, longest=longest)
    assert splitter.pending == ""


@given(text=TEXTS, language=LANGUAGES, data=st.data())
def test_what_settles_loses_nothing_either(text: str, language: str | None, data: st.DataObject) -> None:
    splitter = SentenceSplitter(language)
    pieces: list[str] = []
    for letter in text:
        pieces += splitter.feed(letter)
        if data.draw(st.booleans()):
            pieces += splitter.settle()
    assert "".join(pieces + splitter.flush()) == text


# --- when ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "proof", "sentence"),
    [
        ("It rains. ", "T", "It rains. "),
        ("It rains.", "\n", "It rains.\n"),
        ("Really? ", "Y", "Really? "),
        ("No way! ", "1", "No way! "),
        ('"Yes." ', '"', '"Yes." '),
        ("今天下雨。", "请", "今天下雨。"),
        ("「はい。」", "次", "「はい。」"),
        ("बारिश है।", " ", "बारिश है। "),
        ("كيف حالك؟", " ", "كيف حالك؟ "),
        ("# Weather", "\n", "# Weather\n"),
        ("- apples", "\n", "- apples\n"),
        ("A paragraph\n", "\n", "A paragraph\n"),
        ("A line\n", "N", "A line\n"),
        ("He lives in the U.S. He", " ", "He lives in the U.S. "),
        ("```\na. B\n```", "\n", "```\na. B\n```\n"),
    ],
)
def test_a_sentence_leaves_with_the_character_that_proves_its_end(before: str, proof: str, sentence: str) -> None:
    splitter = SentenceSplitter("en")
    for letter in before:
        assert splitter.feed(letter) == []
    assert splitter.feed(proof) == [sentence]


def test_it_takes_microseconds_from_the_proof_to_the_sentence() -> None:
    text = "It is 21.5 degrees in Graz, Dr. Who, and it will stay so until 5 p.m. at least. "
    worst = []
    for _ in range(5):
        splitter = SentenceSplitter("en")
        slowest = 0.0
        for letter in text * 20:
            start = time.thread_time()
            splitter.feed(letter)
            slowest = max(slowest, time.thread_time() - start)
        worst.append(slowest)
    assert min(worst) < 0.005  # of the processor's time: other programs are none of its business


@pytest.mark.parametrize(
    "text",
    ["It rains a lot. ", "x", " ", "\n", ".", "a. ", "日", "`", '!"', "```\nx = 1. Y\n", "- a\n", "(", "Dr. "],
)
@pytest.mark.parametrize("step", [1, 1_000_000])
def test_the_time_it_takes_grows_with_the_length_of_the_text_alone(text: str, step: int) -> None:
    def seconds(size: int) -> float:
        long = text * (size // len(text))
        best = []
        for _ in range(3):
            start = time.thread_time()
            split(long, "en", step)
            best.append(time.thread_time() - start)
        return min(best)

    # four times the text takes four times as long, and would take sixteen times were it quadratic
    assert seconds(16_000) < 10 * seconds(4_000) + 0.02


def test_a_pause_settles_what_looks_whole() -> None:
    splitter = SentenceSplitter("en")
    assert splitter.settled
    splitter.feed("Let me check.")
    assert splitter.settled
    assert splitter.settle() == ["Let me check."]
    assert splitter.feed(" It is late. N") == [" It is late. "]
    assert not splitter.settled
    assert splitter.settle() == []
    assert splitter.flush() == ["N"]


@pytest.mark.parametrize(
    "text", ["Hello", "Dr.", "It costs 3.", "See e.g.", "J.", "the U.S.", "```\nA.", "so a`b.", " "]
)
def test_a_pause_settles_nothing_else(text: str) -> None:
    splitter = SentenceSplitter("en")
    splitter.feed(text)
    assert splitter.settle() == []
    assert splitter.flush() == [text]


# --- without an end --------------------------------------------------------------------


def test_a_long_sentence_is_cut_at_a_clause_so_that_speech_begins() -> None:
    text = "It was cold, " + "and it went on and on " * 20
    pieces = split(text, "en", longest=60)
    assert "".join(pieces) == text
    assert all(len(piece) <= 61 for piece in pieces)
    assert split("one two three, four five six seven", "en", longest=20)[0] == "one two three, "


def test_where_there_is_no_clause_it_is_cut_at_a_blank_and_where_there_is_no_blank_at_the_second_bound() -> None:
    assert split("one two three four five six seven", "en", longest=20)[0] == "one two three four "
    assert [len(piece) for piece in split("x" * 100, "en", longest=20)] == [39, 39, 22]
    assert split("日" * 10 + "、" + "本" * 20, "ja", longest=16)[0] == "日" * 10 + "、"


def test_a_letter_and_its_accents_stay_together_where_a_text_has_no_blank() -> None:
    pieces = split("e\u0301" * 40, "en", longest=17)
    assert all(piece[0] == "e" for piece in pieces)


def test_a_bound_too_small_to_speak_is_refused() -> None:
    with pytest.raises(ValueError, match="longest must be at least 16"):
        SentenceSplitter(longest=15)


def test_code_that_is_never_closed_is_one_piece() -> None:
    assert split("So:\n```py\na. B\n\nc. D", "en") == ["So:\n", "```py\na. B\n\nc. D"]
    assert split("```", "en") == ["```"]


def test_a_splitter_can_be_used_again_after_its_end() -> None:
    splitter = SentenceSplitter("en")
    assert splitter.feed("```\nx") == []
    assert splitter.flush() == ["```\nx"]
    assert splitter.flush() == []
    assert splitter.feed("One. Two") == ["One. "]


def test_a_region_and_a_language_that_is_not_known_are_no_hindrance() -> None:
    assert split("Am 3. Mai kam er. Gut.", "de-AT") == ["Am 3. Mai kam er. ", "Gut."]
    assert split("Am 3. Mai kam er. Gut.", "DE_at") == ["Am 3. Mai kam er. ", "Gut."]
    assert split("Dr. Who. Yes.", "tlh") == ["Dr. Who. ", "Yes."]
    assert split("Dr. Who. Yes.", "") == ["Dr. Who. ", "Yes."]


def test_the_examples_of_the_docstring_are_right() -> None:
    failed, tried = doctest.testmod(toolturn.splitter)
    assert (failed, tried > 0) == (0, True)
