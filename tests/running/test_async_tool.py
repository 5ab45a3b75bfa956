"""AsyncTool: chunks for a program as they are made, and a finite tool for a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from toolturn import AsyncTool, Tool, ToolContext, run_tool_loop
from toolturn.events import Event, ToolProgress
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, Number, Signal, Word, record_of, run


async def _words(request: Number) -> AsyncIterator[Any]:
    for number in range(request.n):
        await asyncio.sleep(0)
        yield Word(word=str(number))


def _tool(handler: Any = _words) -> AsyncTool[Number, Word]:
    return AsyncTool("words", "Make words.", Number, Word, handler)


async def _all(stream: AsyncIterator[Word]) -> list[str]:
    return [chunk.word async for chunk in stream]


def test_chunks_come_one_by_one() -> None:
    assert run(_all(_tool().stream(Number(n=3)))) == ["0", "1", "2"]


def test_a_request_may_be_a_mapping() -> None:
    assert run(_all(_tool().stream({"n": "2"}))) == ["0", "1"]


def test_a_request_that_does_not_fit_is_an_error_for_the_consumer() -> None:
    with pytest.raises(ValidationError):
        run(_all(_tool().stream({"n": "two"})))


def test_chunks_are_validated() -> None:
    class Other(BaseModel):
        word: str

    async def dictionaries(request: Number) -> AsyncIterator[Any]:
        yield {"word": "a"}
        yield {"word": 7}

    async def foreign(request: Number) -> AsyncIterator[Any]:
        yield Other(word="a")

    async def main() -> None:
        stream = _tool(dictionaries).stream(Number())
        assert await anext(stream) == Word(word="a")
        with pytest.raises(ValidationError):
            await anext(stream)
        with pytest.raises(ValidationError):
            await _all(_tool(foreign).stream(Number()))

    run(main())


def test_a_chunk_that_does_not_fit_closes_the_handler() -> None:
    closed: list[str] = []

    async def handler(request: Number) -> AsyncIterator[Any]:
        try:
            yield None
        finally:
            await asyncio.sleep(0)
            closed.append("closed")

    with pytest.raises(ValidationError):
        run(_all(_tool(handler).stream(Number())))
    assert closed == ["closed"]


@pytest.mark.parametrize(
    "error", [LookupError("mine"), BaseExceptionGroup("two", [KeyboardInterrupt()]), asyncio.CancelledError()]
)
def test_an_exception_keeps_its_type_and_comes_after_the_chunks_before_it(error: BaseException) -> None:
    async def handler(request: Number) -> AsyncIterator[Any]:
        yield Word(word="a")
        raise error

    async def main() -> None:
        stream = _tool(handler).stream(Number())
        assert (await anext(stream)).word == "a"
        with pytest.raises(type(error)) as caught:
            await anext(stream)
        assert caught.value is error

    run(main())


def _watched(order: list[str]) -> AsyncTool[Number, Word]:
    async def handler(request: Number) -> AsyncIterator[Any]:
        try:
            while True:
                yield Word(word="a")
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)
            order.append("closed")

    return _tool(handler)


def test_closing_the_stream_closes_the_handler_before_control_returns() -> None:
    async def main() -> None:
        order: list[str] = []
        async with aclosing(_watched(order).stream(Number())) as stream:  # type: ignore[type-var]
            async for _ in stream:
                break
        order.append("after")
        assert order == ["closed", "after"]

    run(main())


def test_cancelling_the_consumer_closes_the_handler_before_it_ends() -> None:
    async def main() -> None:
        order: list[str] = []
        begun = Signal()

        async def consume() -> None:
            async with aclosing(_watched(order).stream(Number())) as stream:  # type: ignore[type-var]
                async for _ in stream:
                    begun.set()
                    await asyncio.Event().wait()

        task = asyncio.ensure_future(consume())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert order == ["closed"]

    run(main())


def test_an_iterator_that_can_not_be_closed_will_do() -> None:
    class Counter:
        def __init__(self, request: Number) -> None:
            self.left = request.n

        def __aiter__(self) -> Counter:
            return self

        async def __anext__(self) -> Word:
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return Word(word=str(self.left))

    assert run(_all(_tool(Counter).stream(Number(n=2)))) == ["1", "0"]


def test_the_handler_may_take_a_context() -> None:
    async def handler(request: Number, context: ToolContext) -> AsyncIterator[Any]:
        yield Word(word=context.key)

    assert run(_all(_tool(handler).stream(Number()))) == ["/"]
    assert run(_all(_tool(handler).stream(Number(), context=ToolContext("t", "t1.0")))) == ["t/t1.0"]
    assert record_of([_tool(handler).as_tool()], "words", "{}", turn_id="u").message.content == '{"word":"u/t1.0"}'


def test_its_names_follow_the_rules_of_tools() -> None:
    with pytest.raises(ValueError, match="tool name must not be empty"):
        AsyncTool("", "Make words.", Number, Word, _words)
    with pytest.raises(ValueError, match="tool 'words' needs a description"):
        AsyncTool("words", "", Number, Word, _words)
    assert repr(_tool()) == "<AsyncTool words>"


def test_as_a_tool_its_chunks_are_progress_and_the_last_one_is_the_result() -> None:
    events: list[Event] = []
    made = _tool().as_tool(effect="none")
    assert isinstance(made, Tool)
    assert made.traits.effect == "none"
    with ScriptedModel([calls(("1", "words", '{"n":3}')), "done"]) as model:
        result = run(run_tool_loop(HELLO, [made], model, emit=events.append))
    assert result.tool_calls[0].message.content == '{"word":"2"}'
    progress = [event for event in events if isinstance(event, ToolProgress)]
    assert [event.data for event in progress] == [Word(word=str(n)) for n in range(3)]
    assert {(event.call.id, event.op) for event in progress} == {("1", "t1.0")}


def test_as_a_tool_without_a_chunk_it_fails() -> None:
    record = record_of([_tool().as_tool()], "words", '{"n":0}')
    assert record.error == "ValueError: tool 'words' gave no chunk"


def test_as_a_tool_what_it_raises_is_a_failure_of_its_call() -> None:
    async def handler(request: Number) -> AsyncIterator[Any]:
        yield Word(word="a")
        raise LookupError("mine")

    assert record_of([_tool(handler).as_tool()], "words", "{}").error == "LookupError: mine"


def test_as_a_tool_it_is_closed_when_the_turn_is_cancelled() -> None:
    async def main() -> None:
        order: list[str] = []
        begun = Signal()

        def emit(event: Event) -> None:
            if event.type == "tool_progress":
                begun.set()

        model = ScriptedModel([calls(("words", "{}"))])
        task = asyncio.ensure_future(run_tool_loop(HELLO, [_watched(order).as_tool()], model, emit=emit))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert order == ["closed"]

    run(main())


def test_as_a_tool_its_time_may_be_bounded() -> None:
    order: list[str] = []
    record = record_of([_watched(order).as_tool(timeout=0.03)], "words", "{}")
    assert record.status == "timeout"
    assert order == ["closed"]
