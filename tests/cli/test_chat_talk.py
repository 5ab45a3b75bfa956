"""What a conversation holds, and what of it a model is shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import transcripts
from toolturn import ChatMessage, ImagePart, TextPart, ToolSet
from toolturn.cli import chat
from toolturn.cli.piped import PipedLines
from toolturn.cli.talk import Talk, messages_in
from toolturn.messages import ContentPart
from toolturn.transcript import check, rough_tokens


def ask(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def reply(text: str) -> ChatMessage:
    return ChatMessage("assistant", text)


def contents(messages: list[ChatMessage]) -> list[Any]:
    return [message.content for message in messages]


# --- what was said ---------------------------------------------------------------------


def test_a_question_without_an_answer_and_the_next_one_are_one_message() -> None:
    talk = Talk()
    for text in ("a", "a", "b"):
        talk.say(text)
    assert talk.messages == talk.shown == [ask("a\n\nb")]


def test_so_are_parts_and_text() -> None:
    parts: list[ContentPart] = [TextPart("look"), ImagePart("data:,")]
    talk = Talk([ChatMessage("user", parts)])
    talk.say("well?")
    assert contents(talk.messages) == [[*parts, TextPart("well?")]]
    assert len(parts) == 2, "what was given stays what it was"


@given(transcripts(), st.lists(st.sampled_from(["say", "undo", "instruct", "overflow", "fit"]), max_size=6))
def test_whatever_is_done_to_a_valid_conversation_it_stays_valid(
    messages: tuple[ChatMessage, ...], steps: list[str]
) -> None:
    talk = Talk(messages)
    for step in steps:
        match step:
            case "say":
                talk.say("more")
                talk.add([reply("yes")])
            case "undo":
                talk.undo()
            case "instruct":
                talk.instruct("Be brief.")
            case "overflow":
                talk.overflowed()
            case "fit":
                talk.fit()
        assert check(talk.messages) == []
        assert check(talk.shown) == []
        assert {id(message) for message in talk.shown} <= {id(message) for message in talk.messages}


@given(transcripts())
def test_undo_takes_back_what_was_said_last(messages: tuple[ChatMessage, ...]) -> None:
    talk = Talk([*messages, reply("so far")])
    talk.say("more")
    talk.add([reply("yes")])
    assert talk.undo() == ask("more")
    assert talk.messages == talk.shown == [*messages, reply("so far")]


# --- the window ------------------------------------------------------------------------

LONG = "word " * 400


def long_talk(limit: int | None) -> Talk:
    said = [message for number in range(10) for message in (ask(f"{number} {LONG}"), reply(LONG))]
    return Talk([ChatMessage("system", "Be brief."), *said], limit)


def shown_tokens(talk: Talk) -> int:
    return sum(map(rough_tokens, talk.shown))


def test_without_a_known_window_all_is_shown() -> None:
    talk = long_talk(None)
    assert talk.fit() == 0
    assert talk.shown == talk.messages


def test_before_a_turn_the_oldest_is_left_out_until_the_rest_fits_with_room_to_go_on() -> None:
    talk = long_talk(8000)
    assert talk.fit() == 10
    assert shown_tokens(talk) <= 6000
    assert talk.shown == [talk.messages[0], *talk.messages[11:]]
    talk.say("more")
    assert talk.fit() == 0, "it is cut seldom, or a model would read all of it anew each time"
    assert len(talk.messages) == 22


def test_a_window_that_turned_out_smaller_is_kept_to_from_then_on() -> None:
    talk = long_talk(None)
    tokens = shown_tokens(talk)
    assert talk.overflowed() > 0
    assert shown_tokens(talk) <= tokens / 2
    while shown_tokens(talk) < tokens * 0.9:
        talk.say(LONG)
        talk.add([reply(LONG)])
    assert talk.fit() > 0


def test_what_was_left_out_comes_back_when_there_is_room_again() -> None:
    talk = long_talk(8000)
    talk.fit()
    for _ in range(8):
        talk.undo()
    assert talk.shown == talk.messages
    assert talk.fit() == 0


def test_of_a_window_room_is_kept_for_the_tools_and_a_reply() -> None:
    assert chat._room(None, ToolSet([])) is None
    assert chat._room(8192, ToolSet([])) in range(6000, 8192 - 2048)
    assert chat._room(1024, ToolSet([])) in range(700, 1024 - 256), "of a small window a quarter is for the reply"


def test_a_question_can_be_taken_back_as_if_it_had_not_been_asked() -> None:
    talk = Talk([ask("unanswered")])
    before = talk.mark()
    talk.say("and more")
    assert talk.is_question_alone()
    talk.go_back(before)
    assert (talk.messages, talk.shown) == ([ask("unanswered")], [ask("unanswered")])


# --- files -----------------------------------------------------------------------------


@given(messages=transcripts())
def test_a_saved_conversation_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, messages: tuple[ChatMessage, ...]
) -> None:
    path = Talk(messages).save(str(tmp_path_factory.getbasetemp() / "talk.json"))
    assert messages_in(str(path)) == messages


def test_a_file_that_can_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "talk.json").mkdir()
    with pytest.raises(ValueError, match="can not be written"):
        Talk([ask("a")]).save(str(tmp_path / "talk.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]


# --- lines from a program --------------------------------------------------------------


def with_lines(work: Callable[[PipedLines, int], Awaitable[None]]) -> None:
    """Give lines whose other end is written to."""

    async def main() -> None:
        read, write = os.pipe()
        try:
            async with asyncio.timeout(20):
                await work(PipedLines(read), write)
        finally:
            os.close(write)

    asyncio.run(main())


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")).filter(bool)), st.integers(1, 7))
def test_lines_are_whole_however_they_arrive(lines: list[str], size: int) -> None:
    data = "\n".join(lines).encode()

    async def main() -> None:
        read, write = os.pipe()
        given_lines = PipedLines(read)
        for start in range(0, len(data), size):
            os.write(write, data[start : start + size])
        os.close(write)
        async with asyncio.timeout(20):
            for line in lines:
                assert await given_lines.read("> ") == line
            for _ in range(2):
                with pytest.raises(EOFError):
                    await given_lines.read("> ")
        os.close(read)

    asyncio.run(main())


def test_waiting_for_a_line_can_be_interrupted_and_goes_on_afterwards() -> None:
    async def work(lines: PipedLines, write: int) -> None:
        waiting = asyncio.ensure_future(_interrupted(lines))
        await asyncio.sleep(0)
        lines.interrupt()
        assert await waiting
        os.write(write, b"later\r\n")
        assert await lines.read("> ") == "later"

    with_lines(work)


async def _interrupted(lines: PipedLines) -> bool:
    try:
        await lines.read("> ")
    except KeyboardInterrupt:
        return True
    return False
