"""For tests: a model that plays a script and fails when the script and the turn do not agree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from .messages import ChatMessage, ChatResponse, ToolCall, ToolDef, text_of
from .model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem

Expectation: TypeAlias = Callable[[tuple[ChatMessage, ...], tuple[ToolDef, ...]], Any]
"""Looks at a request; it may assert, and a False it returns is a failure."""


class ScriptError(AssertionError):
    """The turn did something else than the script says."""


class Reply:
    """One step of a script.

    Args:
        response: The reply as a whole; text stands for an answer.
        chunks: The same reply in pieces for a streaming request; made of the response's text where None.
        expect: Looks at the request before the reply is given.
        error: What to raise instead of replying.
    """

    def __init__(
        self,
        response: ChatResponse | str | None = None,
        *,
        chunks: Sequence[Delta | str] | None = None,
        expect: Expectation | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.response = ChatResponse(response, finish_reason="stop") if isinstance(response, str) else response
        self.chunks = chunks
        self.expect = expect
        self.error = error


def calls(*wanted: tuple[str, str] | tuple[str, str, str], content: str = "") -> ChatResponse:
    """Return a response that asks for tools.

    Args:
        wanted: ``(name, arguments)`` or ``(id, name, arguments)`` of each call; ids are made up where absent.
        content: Text beside the calls.
    """
    made = []
    for wish in wanted:
        if len(wish) == 3:
            made.append(ToolCall(*wish))
        else:
            made.append(ToolCall(f"call_{next(_numbers)}", *wish))
    return ChatResponse(content, None, made, "tool_calls")


def _count() -> Iterable[int]:
    number = 0
    while True:
        number += 1
        yield number


_numbers = iter(_count())


class ScriptedModel(ChatModel):
    """Plays replies in order, plain or as a stream.

    Used as a context manager it fails at the end when replies are left over; ``done()`` does the same at any time.

    Args:
        replies: Responses, texts, exceptions to raise, or :class:`Reply` objects.
        streaming: Whether it offers streams.

    Attributes:
        requests: What it was asked: the messages and definitions of each request.
        settings: The settings of each request.
    """

    def __init__(
        self, replies: Iterable[ChatResponse | str | BaseException | Reply], *, streaming: bool = False
    ) -> None:
        self._replies = [_as_reply(reply) for reply in replies]
        self._streaming = streaming
        self.requests: list[tuple[tuple[ChatMessage, ...], tuple[ToolDef, ...]]] = []
        self.settings: list[ModelSettings | None] = []

    @property
    def capabilities(self) -> Capabilities:
        """It calls tools, and streams when it was made to."""
        return Capabilities(streaming=self._streaming, tools=True)

    def _next(
        self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], settings: ModelSettings | None
    ) -> Reply:
        number = len(self.requests)
        self.requests.append((messages, tools))
        self.settings.append(settings)
        if number >= len(self._replies):
            raise ScriptError(f"request {number + 1} was not expected: the script has {len(self._replies)} replies")
        reply = self._replies[number]
        if reply.expect is not None and reply.expect(messages, tools) is False:
            raise ScriptError(f"request {number + 1} is not what the script expects")
        if reply.error is not None:
            raise reply.error
        return reply

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        """Return the next reply.

        Raises:
            ScriptError: There is none, or the request is not the expected one.
        """
        response = self._next(messages, tools, settings).response
        if response is None:
            raise ScriptError("this reply has pieces for a stream only, and the request is a plain one")
        return response

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Yield the next reply in pieces and then as a whole; without a response the stream breaks off.

        Raises:
            ScriptError: There is none, or the request is not the expected one.
        """
        reply = self._next(messages, tools, settings)
        response = reply.response
        chunks = reply.chunks
        if chunks is None:
            if response is None:
                raise ScriptError("this reply has neither a response nor pieces")
            thought = [Delta(response.reasoning, "reasoning")] if response.reasoning else []
            chunks = [*thought, *(Delta(word) for word in _pieces(text_of(response.content)))]
        for chunk in chunks:
            yield Delta(chunk) if isinstance(chunk, str) else chunk
        if response is not None:
            yield response

    def done(self) -> None:
        """Check that the whole script was played.

        Raises:
            ScriptError: Replies are left over.
        """
        left = len(self._replies) - len(self.requests)
        if left > 0:
            raise ScriptError(f"{left} of {len(self._replies)} replies were not asked for")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.done()


def _as_reply(reply: ChatResponse | str | BaseException | Reply) -> Reply:
    if isinstance(reply, Reply):
        return reply
    return Reply(error=reply) if isinstance(reply, BaseException) else Reply(reply)


def _pieces(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]
