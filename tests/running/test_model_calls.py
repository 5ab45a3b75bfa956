"""What a turn makes of its model: of callbacks and ChatModels, of their replies and of their failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    Limits,
    ModelContextError,
    ModelError,
    ModelRequestError,
    ModelSettings,
    ModelStreamError,
    ModelUnavailableError,
    ToolDef,
    ToolLoopModelError,
    ToolSet,
    Turn,
    resume,
    run_tool_loop,
)
from toolturn.events import Event
from toolturn.model import StreamItem
from toolturn.testing import Reply, ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, counting, run, types_of


class Simple(ChatModel):
    """A model that does the least it must."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any, Any]] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        self.asked.append((messages, tools, settings))
        return ChatResponse("done")


def test_a_callback_is_given_tuples_and_each_time_the_same_definitions() -> None:
    async def main() -> None:
        tool, _ = counting()
        tools = ToolSet([tool])
        asked: list[tuple[Any, Any]] = []

        async def model(messages: Any, definitions: Any) -> ChatResponse:
            asked.append((messages, definitions))
            return calls(("act", "{}")) if len(asked) < 3 else ChatResponse("done")

        result = await run_tool_loop(list(HELLO), tools, model)
        assert [type(messages) for messages, _ in asked] == [tuple] * 3
        assert all(definitions is tools.definitions for _, definitions in asked)
        assert asked[0][0] == HELLO
        assert asked[-1][0] == result.messages[:-1]

    run(main())


def test_any_callable_that_gives_an_awaitable_is_a_callback() -> None:
    async def main() -> None:
        def model(messages: Any, tools: Any) -> Any:
            future = asyncio.get_running_loop().create_future()
            future.set_result(ChatResponse("done"))
            return future

        assert (await run_tool_loop(HELLO, [], model)).content == "done"

    run(main())


def test_a_callback_that_is_not_async_is_a_type_error_with_the_way_out() -> None:
    def model(messages: Any, tools: Any) -> Any:
        return ChatResponse("done")

    with pytest.raises(TypeError, match="call_model must be awaitable: make it an 'async def'"):
        run(run_tool_loop(HELLO, [], model))


@pytest.mark.parametrize("reply", [None, "done", {"content": "done"}])
@pytest.mark.parametrize("aloud", [False, True])
def test_a_callback_that_gives_something_else_is_a_type_error(reply: Any, aloud: bool) -> None:
    async def model(messages: Any, tools: Any) -> Any:
        return reply

    emit = (lambda event: None) if aloud else None
    with pytest.raises(TypeError, match=f"must return a ChatResponse, not {type(reply).__name__}"):
        run(run_tool_loop(HELLO, [], model, emit=emit))


@pytest.mark.parametrize("kind", [ModelError, ModelUnavailableError, ModelContextError, ModelRequestError])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_model_error_ends_the_turn_with_the_error_chained_and_the_turn_can_go_on(
    kind: type[ModelError], streaming: bool
) -> None:
    async def main() -> None:
        tool, runs = counting()
        error = kind("out of order")
        model = ScriptedModel([calls(("act", "{}")), error, "done"], streaming=streaming)
        emit = (lambda event: None) if streaming else None
        with pytest.raises(ToolLoopModelError, match="the model failed: out of order") as caught:
            await run_tool_loop(HELLO, [tool], model, emit=emit)
        assert caught.value.__cause__ is error
        assert caught.value.cause is not None
        assert (caught.value.cause.type, caught.value.cause.text) == (kind.__name__, "out of order")
        assert check(caught.value.messages) == []
        assert [record.status for record in caught.value.tool_calls] == ["ok"]
        assert (await resume(caught.value, [tool], model, emit=emit)).content == "done"
        assert runs == [0]

    run(main())


def test_a_model_error_of_a_plain_callback_is_typed_as_well() -> None:
    async def model(messages: Any, tools: Any) -> ChatResponse:
        raise ModelUnavailableError("gone")

    with pytest.raises(ToolLoopModelError):
        run(run_tool_loop(HELLO, [], model))


@pytest.mark.parametrize(
    "error", [LookupError("mine"), TimeoutError(), SystemExit(3), ExceptionGroup("e", [OSError()])]
)
def test_a_foreign_exception_passes_unchanged_and_the_turn_can_go_on(error: BaseException) -> None:
    turn = Turn()
    tool, runs = counting()

    async def main() -> None:
        await run_tool_loop(HELLO, [tool], ScriptedModel([calls(("act", "{}")), error]), turn=turn)

    with pytest.raises(type(error)) as caught:
        asyncio.run(main())
    assert caught.value is error
    assert turn.exit is None
    assert check(turn.messages) == []
    result = run(resume(turn, [tool], ScriptedModel(["done"])))
    assert result.content == "done"
    assert runs == [0]


def test_a_cancel_from_inside_the_model_is_a_cancel() -> None:
    turn = Turn()
    with pytest.raises(asyncio.CancelledError):
        run(run_tool_loop(HELLO, [], ScriptedModel([asyncio.CancelledError()]), turn=turn))
    assert turn.phase == "ended"


def test_a_stream_that_ends_without_a_response_is_a_model_error() -> None:
    events: list[Event] = []
    model = ScriptedModel([Reply(chunks=["half an "])], streaming=True)
    with pytest.raises(ToolLoopModelError, match="the model's stream ended before the reply was complete") as caught:
        run(run_tool_loop(HELLO, [], model, emit=events.append))
    assert isinstance(caught.value.__cause__, ModelStreamError)
    assert caught.value.messages == HELLO
    assert caught.value.iterations == 0
    assert types_of(events) == ["iteration", "text", "done"]


def test_a_stream_that_breaks_off_with_an_error_is_that_error() -> None:
    class Breaking(Simple):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(streaming=True)

        async def stream(self, messages: Any, tools: Any = (), *, settings: Any = None) -> AsyncIterator[StreamItem]:
            yield Delta("half an ")
            raise ModelStreamError("the line is dead")

    with pytest.raises(ToolLoopModelError, match="the line is dead"):
        run(run_tool_loop(HELLO, [], Breaking(), emit=lambda event: None))


def test_a_stream_is_closed_before_its_reply_is_acted_upon() -> None:
    order: list[str] = []

    class Watched(Simple):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(streaming=True)

        async def stream(self, messages: Any, tools: Any = (), *, settings: Any = None) -> AsyncIterator[StreamItem]:
            try:
                yield calls(("act", "{}")) if len(messages) == 1 else ChatResponse("done")
            finally:
                order.append("closed")

    def emit(event: Event) -> None:
        order.append(event.type)

    run(run_tool_loop(HELLO, [counting()[0]], Watched(), emit=emit))
    assert order[:3] == ["iteration", "closed", "tool_call"]


def test_a_stream_may_be_any_async_iterator() -> None:
    class Pieces:
        def __init__(self) -> None:
            self.left: list[StreamItem] = [Delta("done"), ChatResponse("done")]

        def __aiter__(self) -> Pieces:
            return self

        async def __anext__(self) -> StreamItem:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    class Iterating(Simple):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(streaming=True)

        def stream(self, messages: Any, tools: Any = (), *, settings: Any = None) -> AsyncIterator[StreamItem]:
            return Pieces()

    events: list[Event] = []
    assert run(run_tool_loop(HELLO, [], Iterating(), emit=events.append)).content == "done"
    assert types_of(events) == ["iteration", "text", "answer", "done"]


def test_a_stream_is_asked_for_only_where_somebody_listens_and_the_model_can() -> None:
    asked: list[str] = []

    class Both(Simple):
        def __init__(self, streaming: bool) -> None:
            super().__init__()
            self.streaming = streaming

        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(streaming=self.streaming)

        async def stream(self, messages: Any, tools: Any = (), *, settings: Any = None) -> AsyncIterator[StreamItem]:
            asked.append("stream")
            yield await self.complete(messages, tools, settings=settings)

    run(run_tool_loop(HELLO, [], Both(streaming=True)))
    run(run_tool_loop(HELLO, [], Both(streaming=False), emit=lambda event: None))
    assert asked == []
    run(run_tool_loop(HELLO, [], Both(streaming=True), emit=lambda event: None))
    assert asked == ["stream"]


def test_a_model_that_can_not_stream_yields_its_reply_as_a_whole() -> None:
    async def main() -> None:
        model = Simple()
        assert [item async for item in model.stream(HELLO)] == [ChatResponse("done")]
        assert await model(HELLO, ()) == ChatResponse("done")
        await model.aclose()

    run(main())


@pytest.mark.parametrize("aloud", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
def test_settings_reach_the_model_at_each_call(aloud: bool, streaming: bool) -> None:
    settings = ModelSettings(temperature=0, max_tokens=5)
    tool, _ = counting()
    model = ScriptedModel([calls(("act", "{}")), "done"], streaming=streaming)
    emit = (lambda event: None) if aloud else None
    run(run_tool_loop(HELLO, [tool], model, settings=settings, emit=emit))
    assert model.settings == [settings, settings]


def test_settings_for_a_plain_callback_are_refused() -> None:
    async def model(messages: Any, tools: Any) -> ChatResponse:
        return ChatResponse("done")

    with pytest.raises(TypeError, match="settings need a ChatModel"):
        run(run_tool_loop(HELLO, [], model, settings=ModelSettings()))


def test_a_forced_answer_is_asked_for_without_tools() -> None:
    tool, _ = counting()
    model = ScriptedModel([calls(("act", "{}")), "what I know"])
    result = run(run_tool_loop(HELLO, [tool], model, limits=Limits(iterations=1), on_limit="answer"))
    assert [len(tools) for _, tools in model.requests] == [1, 0]
    assert (result.content, result.iterations) == ("what I know", 1)


def test_a_list_of_raw_dictionaries_instead_of_calls_is_a_malformed_response() -> None:
    from toolturn import ToolLoopMalformedResponseError

    raw: Any = [{"id": "1", "type": "function", "function": {"name": "act", "arguments": "{}"}}]
    with pytest.raises(ToolLoopMalformedResponseError, match="tool calls must be ToolCall objects") as caught:
        run(run_tool_loop(HELLO, [], ScriptedModel([ChatResponse("", None, raw, "tool_calls")])))
    assert check(caught.value.messages) == []
    assert caught.value.state is not None


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no iterations": ({"max_iterations": 0}, "max_iterations must be at least 1"),
    "negative calls": ({"max_tool_calls": -1}, "max_tool_calls must not be negative"),
    "an unknown policy at a limit": ({"on_limit": "shrug"}, "on_limit must be 'raise' or 'answer'"),
    "no concurrency": ({"concurrency": 0}, "concurrency must be at least 1"),
    "an unknown policy for failures": ({"tool_errors": "shrug"}, "tool_errors must be 'raise' or 'report'"),
}


@pytest.mark.parametrize(("options", "text"), OPTIONS.values(), ids=OPTIONS)
def test_options_out_of_their_range_are_refused_before_the_model_is_asked(options: Any, text: str) -> None:
    model = ScriptedModel([])
    with pytest.raises(ValueError, match=text):
        run(run_tool_loop(HELLO, [], model, **options))
    assert model.requests == []


def test_messages_that_no_provider_takes_are_refused_before_the_model_is_asked() -> None:
    with pytest.raises(ValueError, match="no valid transcript: message 1: a tool message that answers no open call"):
        run(run_tool_loop([*HELLO, ChatMessage("tool", "x", None, "1")], [], ScriptedModel([])))


def test_a_turn_that_was_used_before_is_refused() -> None:
    turn = Turn()
    run(run_tool_loop(HELLO, [], ScriptedModel(["done"]), turn=turn))
    with pytest.raises(ValueError, match="this turn has begun already"):
        run(run_tool_loop(HELLO, [], ScriptedModel(["done"]), turn=turn))
