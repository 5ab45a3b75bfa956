"""Any replies at all: an answer of a type is one, within the same limits, and so it is after a stop and a resume."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolturn import (
    ChatMessage,
    ChatResponse,
    Limits,
    ToolCall,
    ToolLoopError,
    ToolLoopResult,
    Turn,
    resume,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.testing import ScriptedModel
from toolturn.transcript import check

from .test_answers import BAD, GOOD, ROME, Structured, Weather, look

USER = [ChatMessage("user", "?")]
TEXTS = ["", "   ", "null", "{}", "[]", "sunny", GOOD, BAD, f"```json\n{GOOD}\n```", '{"place":"Rome"', "NaN"]
ARGUMENTS = ["", "null", "{}", GOOD, BAD, '{"place":"Rome","degrees":"hot"}', "[1]", '{"place":']
NAMES = ["final_answer", "look", "Final_Answer", "unknown"]


@st.composite
def replies(draw: st.DrawFn) -> ChatResponse:
    """A reply of any kind; ids are made unique later."""
    wanted = draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS)), max_size=3))
    made = [ToolCall("", name, arguments) for name, arguments in wanted] or None
    finish = draw(st.sampled_from(["stop", "tool_calls", None, "stop", "tool_calls", "length", "content_filter"]))
    return ChatResponse(draw(st.sampled_from(TEXTS)), None, made, finish)


@st.composite
def scripts(draw: st.DrawFn) -> list[ChatResponse]:
    """Replies for a whole turn."""
    made = draw(st.lists(replies(), min_size=1, max_size=8))
    for number, reply in enumerate(made):
        for place, call in enumerate(reply.tool_calls or ()):
            assert reply.tool_calls is not None
            reply.tool_calls[place] = ToolCall(f"{number}.{place}", call.name, call.arguments)
    return [*made, *(ChatResponse("the end of the script") for _ in range(8))]


def model_of(kind: str, script: list[ChatResponse], *, streaming: bool = False) -> ScriptedModel:
    return (
        ScriptedModel(script, streaming=streaming)
        if kind == "tool"
        else Structured(script, streaming=streaming, answers=kind)
    )


async def outcome(model: ScriptedModel, turn: Turn, **options: Any) -> ToolLoopResult | ToolLoopError:
    try:
        return await run_tool_loop(USER, [look], model, turn=turn, answer_type=Weather, **options)
    except ToolLoopError as error:
        return error


KINDS = st.sampled_from(["tool", "alone", "beside_tools"])
POLICIES = st.sampled_from(["raise", "answer"])


@given(KINDS, scripts(), st.integers(1, 6), POLICIES)
def test_whatever_a_model_replies_the_answer_is_of_the_type_or_there_is_none(
    kind: str, script: list[ChatResponse], most: int, on_limit: Any
) -> None:
    turn = Turn()
    model = model_of(kind, script)
    end = asyncio.run(outcome(model, turn, max_iterations=most, on_limit=on_limit))
    assert check(end.messages) == []
    assert end.iterations <= most
    assert len(model.requests) <= most + (on_limit == "answer")
    if isinstance(end, ToolLoopResult):
        assert end.value == ROME
        assert Weather.model_validate_json(end.content) == ROME
    again = Turn.from_json(turn.to_json())
    assert again == turn


@given(KINDS, scripts(), st.integers(1, 6), POLICIES)
def test_a_streamed_turn_comes_to_the_same_end(kind: str, script: list[ChatResponse], most: int, on_limit: Any) -> None:
    async def streamed() -> ToolLoopResult | ToolLoopError:
        options: Any = {"max_iterations": most, "on_limit": on_limit, "answer_type": Weather}
        try:
            async with stream_tool_loop(USER, [look], model_of(kind, script, streaming=True), **options) as events:
                async for _ in events:
                    pass
                return await events.result()
        except ToolLoopError as error:
            return error

    plain = asyncio.run(outcome(model_of(kind, script), Turn(), max_iterations=most, on_limit=on_limit))
    watched = asyncio.run(streamed())
    assert type(watched) is type(plain)
    assert (watched.messages, watched.iterations) == (plain.messages, plain.iterations)
    assert getattr(watched, "value", None) == getattr(plain, "value", None)


@given(KINDS, scripts(), st.integers(1, 5))
def test_stopped_at_each_limit_and_resumed_it_comes_to_the_same_end(
    kind: str, script: list[ChatResponse], most: int
) -> None:
    straight = asyncio.run(outcome(model_of(kind, script), Turn(), max_iterations=most + 1))
    model = model_of(kind, script)
    turn = Turn()
    end = asyncio.run(outcome(model, turn, max_iterations=most))
    if (
        isinstance(end, ToolLoopError)
        and end.iterations >= most
        and type(end).__name__ == "ToolLoopIterationLimitError"
    ):
        # what did not fit when the iterations ran out is not shown again: the request is the same, the reply another
        rest = model_of(kind, script[len(model.requests) :])
        try:
            end = asyncio.run(resume(end, [look], rest, limits=Limits(most + 1), answer_type=Weather))
        except ToolLoopError as error:
            end = error
        assert type(end) is type(straight)
        assert end.messages == straight.messages
