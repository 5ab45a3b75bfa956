"""answer_stream and sentences: what of a running turn is for people, at the moment when it may be told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import (
    AsyncTool,
    ChatResponse,
    Delta,
    Limits,
    Tool,
    ToolContext,
    ToolLoopIterationLimitError,
    ToolLoopTruncatedResponseError,
    stream_tool_loop,
)
from toolturn.errors import ToolLoopError
from toolturn.events import Answer, Done, Event, Iteration, Text, ToolProgress, ToolResult
from toolturn.speech import Preamble, Speech, answer_stream, sentences
from toolturn.testing import Reply, ScriptedModel, calls

from ..running.support import HELLO, Nothing, Word, run


def tool_that_says(*speeches: Speech, returns: str = "ok", direct: bool = False) -> Tool[Any, Any]:
    async def act(request: Nothing, context: ToolContext) -> Word:
        for speech in speeches:
            context.emit(speech)
        return Word(word=returns)

    return Tool("act", "Act.", Nothing, Word, act, return_direct=direct, render_result=lambda result: result.word)


CALL = calls(("1", "act", "{}"), content="Let me see. One mo")
PREAMBLE = Reply(CALL, chunks=["Let me", " see. O", "ne mo"])
FINAL = Reply("It is 21.5 degrees. Take care.", chunks=["It is 21", ".5 degrees", ". Tak", "e care."])


def answered(
    replies: Sequence[Any],
    tools: Sequence[Tool[Any, Any]] = (),
    *,
    preamble: Preamble = "hold",
    streaming: bool = True,
    **options: Any,
) -> list[str]:
    async def main() -> list[str]:
        model = ScriptedModel(replies, streaming=streaming)
        async with stream_tool_loop(HELLO, tools, model, **options) as events:
            return [piece async for piece in answer_stream(events, preamble=preamble)]

    return run(main())


def spoken(
    replies: Sequence[Any],
    tools: Sequence[Tool[Any, Any]] = (),
    *,
    preamble: Preamble = "speak",
    streaming: bool = True,
    **options: Any,
) -> list[str]:
    async def main() -> list[str]:
        model = ScriptedModel(replies, streaming=streaming)
        async with stream_tool_loop(HELLO, tools, model, **options) as events:
            return [piece async for piece in sentences(events, preamble=preamble, language="en")]

    return run(main())


# --- the answer ------------------------------------------------------------------------


def test_the_answer_is_held_until_it_is_certain_and_what_was_said_before_calls_is_dropped() -> None:
    assert answered([PREAMBLE, FINAL], [tool_that_says()]) == ["It is 21.5 degrees. Take care."]


def test_speaking_at_once_hands_on_what_is_said_before_calls_too() -> None:
    pieces = answered([PREAMBLE, FINAL], [tool_that_says()], preamble="speak")
    assert pieces == ["Let me", " see. O", "ne mo", "It is 21", ".5 degrees", ". Tak", "e care."]


@pytest.mark.parametrize("preamble", ["hold", "speak"])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_forced_answer_is_certain_from_its_first_character(preamble: Preamble, streaming: bool) -> None:
    options: dict[str, Any] = {"limits": Limits(iterations=1), "on_limit": "answer", "streaming": streaming}
    pieces = answered([calls(("1", "act", "{}")), FINAL], [tool_that_says()], preamble=preamble, **options)
    assert len(pieces) == (4 if streaming else 1)
    assert "".join(pieces) == "It is 21.5 degrees. Take care."


@pytest.mark.parametrize("preamble", ["hold", "speak"])
def test_the_result_of_a_direct_return_tool_is_the_answer(preamble: Preamble) -> None:
    pieces = answered([PREAMBLE], [tool_that_says(returns="Done it.", direct=True)], preamble=preamble)
    assert pieces[-1] == "Done it."
    assert "".join(pieces[:-1]) == ("" if preamble == "hold" else "Let me see. One mo")


@pytest.mark.parametrize("preamble", ["hold", "speak"])
def test_reasoning_never_comes_out(preamble: Preamble) -> None:
    reply = Reply(ChatResponse("Yes.", "Hmm. Well."), chunks=[Delta("Hmm. Well.", "reasoning"), "Yes."])
    assert answered([reply], preamble=preamble) == ["Yes."]
    assert spoken([reply], preamble=preamble) == ["Yes."]


def test_what_a_tool_says_is_not_the_answer() -> None:
    assert answered([CALL, "Yes."], [tool_that_says(Speech("One moment."))]) == ["Yes."]


@pytest.mark.parametrize("listen", [answer_stream, sentences])
def test_the_error_of_the_turn_is_raised(listen: Any) -> None:
    async def main() -> list[str]:
        pieces = []
        model = ScriptedModel([ChatResponse("One. Two. Thr", finish_reason="length")], streaming=True)
        async with stream_tool_loop(HELLO, [], model) as events:
            with pytest.raises(ToolLoopTruncatedResponseError) as caught:  # noqa: PT012 - the pieces before are kept
                async for piece in listen(events):
                    pieces.append(piece)  # noqa: PERF401
            with pytest.raises(ToolLoopTruncatedResponseError) as again:
                await events.result()
            assert caught.value is again.value
        return pieces

    # what was no whole sentence when the turn failed is not spoken
    assert run(main()) == ([] if listen is answer_stream else ["One. ", "Two. "])


@pytest.mark.parametrize("listen", [answer_stream, sentences])
def test_the_error_is_raised_from_recorded_events_too(listen: Any) -> None:
    error = ToolLoopIterationLimitError("too many", messages=(), tool_calls=(), iterations=1)

    async def recorded() -> AsyncIterator[Event]:
        yield Iteration(1, "m1")
        yield Text("Hello. And", "m1")
        yield Done(error)

    async def main() -> None:
        with pytest.raises(ToolLoopError) as caught:
            async for _ in listen(recorded()):
                pass
        assert caught.value is error

    run(main())


@pytest.mark.parametrize("listen", [answer_stream, sentences])
def test_an_unknown_policy_is_refused(listen: Any) -> None:
    async def main() -> None:
        async with stream_tool_loop(HELLO, [], ScriptedModel(["Yes."])) as events:
            with pytest.raises(ValueError, match="preamble must be 'speak' or 'hold'"):
                await anext(listen(events, preamble="never"))

    run(main())


def test_an_answer_that_was_mended_after_it_streamed_is_not_told_twice() -> None:
    async def events(told: str, content: str) -> AsyncIterator[Event]:
        yield Iteration(1, "m1")
        yield Text(told, "m1")
        yield Answer(content)

    async def main(told: str, content: str) -> list[str]:
        return [piece async for piece in answer_stream(events(told, content), preamble="speak")]

    assert run(main("\n Yes. ", "Yes.")) == ["\n Yes. "]
    assert run(main("Yes", "Yes, it is.")) == ["Yes", ", it is."]
    assert run(main("<x>Yes.", "Yes.")) == ["<x>Yes."]
    assert run(main(" ", "Yes.")) == [" ", "Yes."]


# --- sentences -------------------------------------------------------------------------


def test_sentences_come_whole_and_a_reply_ends_its_last_one() -> None:
    pieces = spoken([PREAMBLE, FINAL], [tool_that_says()])
    assert pieces == ["Let me see. ", "One mo", "It is 21.5 degrees. ", "Take care."]


def test_held_sentences_are_those_of_the_answer() -> None:
    assert spoken([PREAMBLE, FINAL], [tool_that_says()], preamble="hold") == ["It is 21.5 degrees. ", "Take care."]


def test_a_plain_model_is_spoken_as_one_that_streams() -> None:
    pieces = spoken([CALL, "It is 21.5 degrees. Take care."], [tool_that_says()], streaming=False)
    assert pieces == ["Let me see. ", "One mo", "It is 21.5 degrees. ", "Take care."]


def test_blanks_between_sentences_are_kept_and_blanks_alone_are_not_spoken() -> None:
    assert spoken(["One.\n\n\nTwo.\n\n"]) == ["One.\n", "\n\nTwo.\n"]


def test_the_sentence_is_there_before_the_next_piece_is_asked_for() -> None:
    async def main() -> None:
        asked: list[str] = []

        async def events() -> AsyncIterator[Event]:
            for piece in ("It rains", ". ", "T", "ake care"):
                asked.append(piece)
                yield Text(piece, "m1")

        stream = sentences(events(), language="en", patience=None)
        assert await anext(stream) == "It rains. "
        assert asked == ["It rains", ". ", "T"]
        assert [piece async for piece in stream] == ["Take care"]

    run(main())


def test_a_sentence_is_handed_on_within_milliseconds_of_its_proof() -> None:
    async def main() -> float:
        sent = 0.0

        async def events() -> AsyncIterator[Event]:
            nonlocal sent
            for _ in range(300):
                for piece in ("It is 21", ".5 degrees, Dr", ". Who. "):
                    sent = time.perf_counter()
                    yield Text(piece, "m1")

        waits = [time.perf_counter() - sent async for _ in sentences(events(), language="en")]
        assert len(waits) == 300
        return sorted(waits)[len(waits) // 2]

    assert run(main()) < 0.005


def test_a_text_that_pauses_behind_a_stop_is_handed_on_after_a_while() -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        async def events() -> AsyncIterator[Event]:
            yield Text("Let me check.", "m1")
            await go_on.wait()
            yield Text(" It is 3.", "m1")
            yield Text("14. Bye", "m1")

        stream = sentences(events(), language="en", patience=0.001)
        assert await anext(stream) == "Let me check."
        go_on.set()
        assert [piece async for piece in stream] == [" It is 3.14. ", "Bye"]

    run(main())


def test_who_stops_listening_during_a_pause_leaves_nothing_behind() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        async def events() -> AsyncIterator[Event]:
            try:
                yield Text("Let me check.", "m1")
                await asyncio.Event().wait()
            finally:
                closed.set()

        stream = sentences(events(), patience=0.001)
        assert await anext(stream) == "Let me check."
        await stream.aclose()  # type: ignore[attr-defined]
        assert closed.is_set()

    run(main())


def test_a_cancel_during_a_pause_is_passed_on() -> None:
    async def main() -> None:
        waiting = asyncio.Event()

        async def events() -> AsyncIterator[Event]:
            yield Text("Let me check.", "m1")
            waiting.set()
            await asyncio.Event().wait()

        async def listen() -> None:
            async for _ in sentences(events(), patience=1000):
                pass

        task = asyncio.ensure_future(listen())
        await waiting.wait()
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()

    run(main())


# --- what tools say --------------------------------------------------------------------


@pytest.mark.parametrize("preamble", ["hold", "speak"])
def test_what_a_tool_says_comes_at_its_place(preamble: Preamble) -> None:
    pieces = spoken([PREAMBLE, FINAL], [tool_that_says(Speech("One moment …"))], preamble=preamble)
    before = [] if preamble == "hold" else ["Let me see. ", "One mo"]
    assert pieces == [*before, "One moment …", "It is 21.5 degrees. ", "Take care."]


def test_it_is_there_while_the_tool_still_runs() -> None:
    async def main() -> None:
        heard = asyncio.Event()

        async def act(request: Nothing, context: ToolContext) -> Word:
            context.emit(Speech("One moment."))
            await heard.wait()
            return Word(word="ok")

        model = ScriptedModel([calls(("1", "act", "{}")), "Yes."])
        async with stream_tool_loop(HELLO, [Tool("act", "Act.", Nothing, Word, act)], model) as events:
            pieces = []
            async for piece in sentences(events):
                pieces.append(piece)
                heard.set()
        assert pieces == ["One moment.", "Yes."]

    run(main())


def test_a_direct_return_tool_that_spoke_its_result_does_not_speak_it_twice() -> None:
    said = [Speech("I see a ta", more=True), Speech("ble. And a ch", more=True), Speech("air", more=True)]
    tool = tool_that_says(*said, returns="I see a table. And a chair.", direct=True)
    assert spoken([CALL], [tool], preamble="hold") == ["I see a table. ", "And a chair"]


def test_what_a_direct_return_tool_did_not_say_is_spoken() -> None:
    tool = tool_that_says(Speech("I see a table."), returns="I see a table. It is red.", direct=True)
    assert spoken([CALL], [tool], preamble="hold") == ["I see a table.", "It is red."]


def test_a_model_that_repeats_what_a_tool_said_is_not_heard_twice_but_a_third_time_is() -> None:
    tool = tool_that_says(Speech("It is red."))
    assert spoken([CALL, "it is  red! It is red. Yes."], [tool], preamble="hold") == [
        "It is red.",
        "It is red. ",
        "Yes.",
    ]


def test_what_the_model_said_before_the_tool_is_no_repetition() -> None:
    first = calls(("1", "act", "{}"), content="It is red.")
    assert spoken([first, "Yes."], [tool_that_says(Speech("It is red."))]) == ["It is red.", "It is red.", "Yes."]


def test_speech_that_is_no_text_is_the_tools_failure() -> None:
    with pytest.raises(TypeError, match="must be text, not int"):
        Speech(5)  # type: ignore[arg-type]


# --- a tool whose result comes in pieces -----------------------------------------------


class Chunk(BaseModel):
    seen: str


def test_the_chunks_of_a_tool_are_progress_and_the_last_one_is_what_the_model_reads() -> None:
    async def look(request: Nothing, context: ToolContext) -> AsyncIterator[Chunk]:
        for word in ("a table", "a table and a chair"):
            context.emit(Speech(f"I see {word}."))
            yield Chunk(seen=word)

    async def main() -> None:
        tool = AsyncTool("look", "Look.", Nothing, Chunk, look).as_tool()
        model = ScriptedModel([calls(("1", "look", "{}")), "Done."], streaming=True)
        seen: list[Event] = []

        async def watched(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
            async for event in events:
                seen.append(event)
                yield event

        async with stream_tool_loop(HELLO, [tool], model) as events:
            pieces = [piece async for piece in sentences(watched(aiter(events)))]
            result = await events.result()
        chunks = [event.data for event in seen if isinstance(event, ToolProgress) and isinstance(event.data, Chunk)]
        assert chunks == [Chunk(seen="a table"), Chunk(seen="a table and a chair")]
        (record,) = [event.record for event in seen if isinstance(event, ToolResult)]
        assert record.message.content == '{"seen":"a table and a chair"}'
        assert result.messages[-2] == record.message
        assert pieces == ["I see a table.", "I see a table and a chair.", "Done."]

    run(main())
