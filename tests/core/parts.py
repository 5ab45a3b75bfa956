"""The small things most tests of the core need: messages, replies, a few real tools, a bounded run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from toolturn import (
    ChatMessage,
    ChatResponse,
    Tool,
    ToolCall,
    ToolCallRecord,
    ToolLoopError,
    ToolLoopResult,
    Turn,
)
from toolturn.turn import CallTool, Op, ToolTraits

T = TypeVar("T")

USER = ChatMessage("user", "Hello")


class Pair(BaseModel):
    left: int
    right: int


class Total(BaseModel):
    total: int


class Text(BaseModel):
    text: str


class Nothing(BaseModel):
    pass


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own; one that hangs fails instead of waiting."""

    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await coroutine

    return asyncio.run(bounded())


# --- messages and replies ------------------------------------------------------------


def call(call_id: Any, name: Any = "add", arguments: Any = '{"left":2,"right":3}') -> ToolCall:
    return ToolCall(call_id, name, arguments)


def asks(*calls: ToolCall, content: Any = "", finish: Any = "tool_calls", **more: Any) -> ChatResponse:
    """A reply that asks for these calls."""
    return ChatResponse(content, None, list(calls), finish, **more)


def says(text: Any, finish: Any = "stop", **more: Any) -> ChatResponse:
    """A reply in text."""
    return ChatResponse(text, None, None, finish, **more)


def answered(call_id: str, content: str = "done") -> ChatMessage:
    """The tool message that answers a call."""
    return ChatMessage("tool", content, None, call_id)


# --- tools ---------------------------------------------------------------------------


def add(ran: list[Any] | None = None, **options: Any) -> Tool[Pair, Total]:
    """A tool that adds, and notes each request it ran with."""

    async def handler(request: Pair) -> Total:
        if ran is not None:
            ran.append((request.left, request.right))
        return Total(total=request.left + request.right)

    return Tool("add", "Add two whole numbers.", Pair, Total, handler, **options)


def echo(name: str = "echo", ran: list[Any] | None = None, **options: Any) -> Tool[Text, Text]:
    """A tool that gives its text back, and notes what it ran with."""

    async def handler(request: Text) -> Text:
        if ran is not None:
            ran.append((name, request.text))
        return request

    return Tool(name, "Give the text back.", Text, Text, handler, **options)


def failing(error: BaseException, name: str = "fail", **options: Any) -> Tool[Nothing, Any]:
    """A tool that raises."""

    async def handler(request: Nothing) -> None:
        raise error

    return Tool(name, "Fails.", Nothing, None, handler, **options)


# --- the machine by hand -------------------------------------------------------------


def begun(
    traits: Mapping[str, ToolTraits] | None = None, *, messages: Iterable[ChatMessage] = (USER,), **options: Any
) -> Turn:
    """A turn that has begun and waits for the model."""
    turn = Turn("turn")
    turn.begin(messages, (), {} if traits is None else traits, **options)
    return turn


def the_op(turn: Turn) -> Op:
    """The only thing the turn waits for."""
    (op,) = turn.ops()
    return op


def reply(turn: Turn, response: ChatResponse) -> Turn:
    """Give the turn the model's reply it waits for."""
    turn.apply(the_op(turn), response)
    return turn


def record_of(op: Op, content: str = "done", status: Any = "ok", direct: bool = False) -> ToolCallRecord:
    """What a call that was made gave."""
    assert isinstance(op, CallTool)
    return ToolCallRecord(op.call, ChatMessage("tool", content, None, op.call.id), direct, op.id, status)


def result_of(turn: Turn) -> ToolLoopResult:
    end = turn.exit
    assert isinstance(end, ToolLoopResult), end
    return end


def error_of(turn: Turn) -> ToolLoopError:
    end = turn.exit
    assert isinstance(end, ToolLoopError), end
    return end
