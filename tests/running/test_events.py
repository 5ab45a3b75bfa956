"""What a turn tells its audience: everything, once, and in the order in which it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import (
    ChatResponse,
    Delta,
    Limits,
    ToolCall,
    ToolLoopCancelledError,
    ToolLoopError,
    ToolLoopIterationLimitError,
    ToolLoopResult,
    ToolLoopToolError,
    ToolLoopTruncatedResponseError,
    Turn,
    Usage,
    resume,
    run_tool_loop,
)
from toolturn.events import (
    Answer,
    Done,
    Event,
    Iteration,
    Reasoning,
    Text,
    ToolCallStarted,
    ToolResult,
)
from toolturn.testing import Reply, ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, counting, outline, run, tool_of, types_of


async def _heard(replies: list[Any], *, streaming: bool = False, **options: Any) -> tuple[list[Event], Any]:
    events: list[Event] = []
    tools = options.pop("tools", None) or [counting()[0]]
    model = ScriptedModel(replies, streaming=streaming)
    try:
        end: Any = await run_tool_loop(HELLO, tools, model, emit=events.append, **options)
    except ToolLoopError as error:
        end = error
    return events, end


CALL = ToolCall("1", "act", "{}")


def test_a_plain_turn() -> None:
    events, result = run(_heard([ChatResponse("Let me see.", None, [CALL]), "It is done. "]))
    assert events == [
        Iteration(1, "m1"),
        Text("Let me see.", "m1"),
        ToolCallStarted(CALL, "t1.0"),
        ToolResult(result.tool_calls[0]),
        Iteration(2, "m2"),
        Text("It is done. ", "m2"),
        Answer("It is done."),
        Done(result),
    ]


def test_a_streamed_turn() -> None:
    replies = [
        Reply(ChatResponse("Let me see.", "hm", [CALL]), chunks=[Delta("hm", "reasoning"), "Let me", " see."]),
        Reply("It is done.", chunks=["It is", " done."]),
    ]
    events, result = run(_heard(replies, streaming=True))
    assert events == [
        Iteration(1, "m1"),
        Reasoning("hm", "m1"),
        Text("Let me", "m1"),
        Text(" see.", "m1"),
        ToolCallStarted(CALL, "t1.0"),
        ToolResult(result.tool_calls[0]),
        Iteration(2, "m2"),
        Text("It is", "m2"),
        Text(" done.", "m2"),
        Answer("It is done."),
        Done(result),
    ]


def test_a_model_that_does_not_stream_tells_its_reasoning_and_its_text_as_a_whole() -> None:
    events, _ = run(_heard([ChatResponse("Yes.", "Because.")]))
    assert events[1:3] == [Reasoning("Because.", "m1"), Text("Yes.", "m1")]


def test_a_stream_without_pieces_tells_its_reasoning_and_its_text_as_a_whole() -> None:
    events, _ = run(_heard([Reply(ChatResponse("Yes.", "Because."), chunks=[])], streaming=True))
    assert events[1:3] == [Reasoning("Because.", "m1"), Text("Yes.", "m1")]


def test_a_stream_of_reasoning_alone_still_tells_its_text() -> None:
    reply = Reply(ChatResponse("Yes.", "Because."), chunks=[Delta("Because.", "reasoning")])
    events, _ = run(_heard([reply], streaming=True))
    assert events[1:3] == [Reasoning("Because.", "m1"), Text("Yes.", "m1")]


def test_a_reply_of_calls_alone_tells_no_text() -> None:
    events, _ = run(_heard([calls(("act", "{}")), "done"]))
    assert types_of(events) == ["iteration", "tool_call", "tool_result", "iteration", "text", "answer", "done"]


def test_content_in_parts_is_told_as_text() -> None:
    parts: Any = [{"type": "text", "text": "It is "}, {"type": "text", "text": "done."}]
    events, result = run(_heard([ChatResponse(parts)]))
    assert events[1] == Text("It is done.", "m1")
    assert result.content == "It is done."


def test_a_direct_return() -> None:
    tool = tool_of(lambda request: None, return_direct=True)
    events, result = run(_heard([calls(("act", "{}"))], tools=[tool]))
    assert types_of(events) == ["iteration", "tool_call", "tool_result", "answer", "done"]
    assert events[-2:] == [Answer("null"), Done(result)]


def test_a_forced_answer() -> None:
    events, result = run(_heard([calls(("act", "{}")), "what I know"], limits=Limits(iterations=1), on_limit="answer"))
    assert [event for event in events if isinstance(event, Iteration)] == [
        Iteration(1, "m1"),
        Iteration(1, "f1", forced=True),
    ]
    assert events[-2:] == [Answer("what I know"), Done(result)]
    assert result.limit == "iterations"


def test_a_batch_that_is_refused_tells_of_no_call() -> None:
    events, error = run(_heard([ChatResponse("cut", None, [CALL], "length")]))
    assert isinstance(error, ToolLoopTruncatedResponseError)
    assert types_of(events) == ["iteration", "text", "done"]
    assert events[-1] == Done(error)


def test_a_limit() -> None:
    events, error = run(_heard([calls(("act", "{}"))], max_iterations=1))
    assert isinstance(error, ToolLoopIterationLimitError)
    assert types_of(events) == ["iteration", "tool_call", "tool_result", "done"]


def test_a_failing_tool_under_raise() -> None:
    def handler(request: Any) -> None:
        raise LookupError

    events, error = run(_heard([calls(("act", "{}"), ("act", "{}"))], tools=[tool_of(handler)]))
    assert isinstance(error, ToolLoopToolError)
    assert types_of(events) == ["iteration", "tool_call", "tool_result", "done"]
    (told,) = (event for event in events if isinstance(event, ToolResult))
    assert told.record == error.tool_calls[0]
    assert told.record.status == "error"


def test_calls_that_reach_no_handler_are_told_like_all_others() -> None:
    events, result = run(_heard([calls(("nobody", "{}"), ("act", "nonsense")), "done"]))
    told = [event.record for event in events if isinstance(event, ToolResult)]
    assert told == list(result.tool_calls)
    assert [record.status for record in told] == ["unknown_tool", "invalid_arguments"]


def test_a_resumed_turn_tells_of_what_is_new() -> None:
    async def main() -> None:
        tool, _ = counting()
        turn = Turn()
        with pytest.raises(LookupError):
            await run_tool_loop(HELLO, [tool], ScriptedModel([calls(("act", "{}")), LookupError()]), turn=turn)
        events: list[Event] = []
        result = await resume(turn, [tool], ScriptedModel(["done"]), emit=events.append)
        assert events == [Iteration(2, "m2"), Text("done", "m2"), Answer("done"), Done(result)]

    run(main())


class Full(Exception):
    pass


def _full_at(kind: str) -> Callable[[Event], None]:
    def emit(event: Event) -> None:
        if event.type == kind:
            raise Full

    return emit


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["iteration", "text", "reasoning", "tool_call", "tool_result", "answer", "done"])
def test_an_audience_that_raises_ends_the_turn_which_can_go_on_with_another(kind: str, streaming: bool) -> None:
    async def main() -> None:
        tool, runs = counting()
        turn = Turn()
        first = ChatResponse("Let me see.", "hm", [CALL])
        replies: list[Any] = [Reply(first, chunks=[Delta("hm", "reasoning"), "Let me see."]), "done"]
        with pytest.raises(Full):
            await run_tool_loop(
                HELLO, [tool], ScriptedModel(replies, streaming=streaming), turn=turn, emit=_full_at(kind)
            )
        assert check(turn.messages) == []
        if kind in ("answer", "done"):
            assert isinstance(turn.exit, ToolLoopResult)
            assert turn.exit.content == "done"
            return
        assert turn.exit is None
        asked = len([message for message in turn.messages if message.role == "assistant"])
        result = await resume(turn, [tool], ScriptedModel(replies[asked:]))
        assert result.content == "done"
        assert runs == [0]

    run(main())


def test_an_audience_that_raises_while_the_turn_is_cancelled_does_not_hide_the_cancel() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def handler(request: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        turn = Turn()
        model = ScriptedModel([calls(("act", "{}"))])
        task = asyncio.ensure_future(
            run_tool_loop(HELLO, [tool_of(handler)], model, turn=turn, emit=_full_at("tool_result"))
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert check(turn.messages) == []

    run(main())


@pytest.mark.parametrize("returns", [False, True])
def test_an_audience_that_cancels_the_task_cancels_the_turn_whatever_the_handler_makes_of_it(returns: bool) -> None:
    async def main() -> None:
        async def handler(request: Any) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not returns:
                    raise

        def emit(event: Event) -> None:
            if event.type == "tool_call":
                task.cancel()

        turn = Turn()
        model = ScriptedModel([calls(("act", "{}")), "done"])
        task = asyncio.ensure_future(run_tool_loop(HELLO, [tool_of(handler)], model, turn=turn, emit=emit))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["cancelled"]

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["iteration", "text", "tool_call", "tool_result"])
def test_an_audience_that_cancels_the_turn_ends_it_with_its_reason_and_it_can_go_on(kind: str, streaming: bool) -> None:
    async def main() -> None:
        tool, runs = counting()
        turn = Turn()

        def emit(event: Event) -> None:
            if event.type == kind:
                turn.cancel("somebody said stop")

        replies: list[Any] = [calls(("act", "{}"), ("act", "{}"), content="Let me see."), "done"]
        model = ScriptedModel(replies, streaming=streaming)
        with pytest.raises(ToolLoopCancelledError, match="somebody said stop") as caught:
            await run_tool_loop(HELLO, [tool], model, turn=turn, emit=emit)
        assert check(caught.value.messages) == []
        assert len(runs) <= 1
        asked = len([message for message in turn.messages if message.role == "assistant"])
        assert (await resume(turn, [tool], ScriptedModel(replies[asked:]))).content == "done"
        assert len(runs) == 2

    run(main())


texts = st.text(max_size=12)
responses = st.builds(
    ChatResponse,
    texts,
    st.none() | texts,
    st.none()
    | st.lists(
        st.builds(
            ToolCall,
            st.uuids().map(str),
            st.sampled_from(["act", "direct", "fails", "nobody"]),
            st.sampled_from(["{}", "x"]),
        ),
        max_size=3,
    ),
    st.sampled_from([None, "stop", "tool_calls", "length", "content_filter"]),
    st.none(),
    st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
)


def _fails(request: Any) -> None:
    raise LookupError("mine")


@given(
    st.lists(responses, min_size=1, max_size=4),
    st.sampled_from(["raise", "answer"]),
    st.sampled_from(["raise", "report"]),
)
def test_streamed_and_unstreamed_runs_of_the_same_replies_have_the_same_end(
    replies: list[ChatResponse], on_limit: str, tool_errors: str
) -> None:
    def ended(streaming: bool, aloud: bool) -> tuple[Any, ...]:
        tools = [
            counting()[0],
            counting("direct", return_direct=True)[0],
            tool_of(_fails, "fails", run_in_thread=False),
        ]
        events: list[Event] = []
        model = ScriptedModel([*replies, *["last"] * 5], streaming=streaming)
        emit = events.append if aloud else None
        options: Any = {"on_limit": on_limit, "tool_errors": tool_errors, "emit": emit}
        end: Any
        try:
            end = run(run_tool_loop(HELLO, tools, model, turn_id="t", **options))
        except ToolLoopError as error:
            end = error
        if aloud:
            assert events[-1] == Done(end)
            assert types_of(events).count("done") == 1
            texts = "".join(event.text for event in events if isinstance(event, Text))
            asked = "".join(reply.content for reply in [*replies, *[ChatResponse("last")] * 5][: len(model.requests)])
            assert texts == asked
        if isinstance(end, ToolLoopResult):
            return outline(end)
        return type(end), str(end), end.messages, end.iterations, end.rejected_response, end.usage

    plain = ended(streaming=False, aloud=False)
    assert ended(streaming=False, aloud=True) == plain
    assert ended(streaming=True, aloud=True) == plain
