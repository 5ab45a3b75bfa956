"""A brain of OpenVoiceOS as a model: any ChatEngine, whether it calls tools by itself or only writes text."""

from __future__ import annotations

import asyncio
import inspect
import queue
from collections.abc import AsyncIterator, Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine

from ..messages import ChatMessage, ChatResponse, ToolCall, ToolDef, text_of
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from ..models.ingest import ingest, seen_ids
from ..models.ingest.reasons import known_reason
from ..tools.running import run_in_thread
from .messages import agent_call, agent_message, response_of

_MALFORMED = "malformed_function_call"
_BUSY = (408, 429, 500, 502, 503, 504, 529)
_PAUSE = 0.5
_GRACE = 0.1  # what waits for its server does not hear of a cancel: nothing is won by waiting for it


def takes_tools(brain: Any) -> bool:
    """Return whether a brain calls tools by itself.

    Args:
        brain: The brain.

    Raises:
        TypeError: It says that it does, and its ``continue_chat`` takes none.
    """
    if not getattr(brain, "supports_tools", False):
        return False
    try:
        parameters = inspect.signature(brain.continue_chat).parameters
    except (TypeError, ValueError):
        return True
    if "tools" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return True
    raise TypeError(f"the brain {type(brain).__name__} says that it supports tools, but its continue_chat takes none")


class BrainModel(ChatModel):
    """A brain as a model, for one turn.

    The brain is asked in a worker thread, with a list of its own each time: what it adds to it is seen by nobody. What
    it answered it gets back as the object it was, with what was mended. A brain that calls tools is given the
    toolboxes themselves.

    Args:
        brain: Any ChatEngine, or an object that has its ``continue_chat``.
        tools: What a brain that calls tools is given as ``tools`` while tools may be called; None for a brain that is
            asked for text.
        given: The messages of the conversation, to be handed on as they are.
        known: The same messages in our form, each in the place of its original.
        session: The session.
        language: The language, or None.
        units: The system of units, or None.
        attempts: How often it is asked where its server can not be reached or is busy.
    """

    def __init__(
        self,
        brain: Any,
        tools: Sequence[Any] | None = None,
        *,
        given: Sequence[Any] = (),
        known: Sequence[ChatMessage] = (),
        session: str = "default",
        language: str | None = None,
        units: str | None = None,
        attempts: int = 1,
    ) -> None:
        self.brain = brain
        self._tools = tools
        self._originals: dict[int, Any] = {id(mine): theirs for mine, theirs in zip(known, given, strict=True)}
        self._known = tuple(known)  # as long as these are held, no other message has the id of one
        self._answers: dict[str, AgentMessage] = {}
        self._asking = {"session_id": session, "lang": language, "units": units}
        self._attempts = attempts
        stream = getattr(type(brain), "stream_tokens", None)
        # the interface's own makes words of the whole answer and loses what stands between them
        self._streams = stream is not None and stream is not ChatEngine.stream_tokens

    @property
    def capabilities(self) -> Capabilities:
        native = self._tools is not None
        return Capabilities(streaming=self._streams, tools=native, tool_choice_none=native)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        asking: dict[str, Any] = dict(self._asking)
        if self._tools is not None:
            asking["tools"] = None if _text_only(settings) else list(self._tools)
        # what it may change is made anew for each attempt
        answer = await self._again(lambda: self.brain.continue_chat(self._theirs(messages), **asking))
        response = ingest(response_of(answer, type(self.brain).__name__), tools, seen_ids(messages))
        if known_reason(response.finish_reason) == _MALFORMED:
            # what was to be a call is nothing to be spoken, and is still there for who looks for the cause
            response = replace(response, content="", reasoning=response.reasoning or response.content)
        first = response.tool_calls[0] if response.tool_calls else None
        if isinstance(first, ToolCall) and isinstance(answer, AgentMessage):  # else the turn refuses it
            self._answers[first.id] = answer
        return response

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        if not self._streams or (self._tools is not None and not _text_only(settings)):
            yield await self.complete(messages, tools, settings=settings)
            return
        pieces: list[str] = []
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[str] = asyncio.Queue()
        stopped = queue.SimpleQueue[None]()

        def read() -> None:
            for piece in self.brain.stream_tokens(self._theirs(messages), **self._asking):
                if not stopped.empty():
                    return
                loop.call_soon_threadsafe(arrived.put_nowait, piece)

        reading = asyncio.ensure_future(run_in_thread(read, _GRACE))
        coming: asyncio.Future[str] | None = None
        try:
            while True:
                coming = asyncio.ensure_future(arrived.get())
                await asyncio.wait((coming, reading), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    break
                if piece := coming.result():
                    pieces.append(piece)
                    yield Delta(piece)
            while not arrived.empty():
                if piece := arrived.get_nowait():
                    pieces.append(piece)
                    yield Delta(piece)
            await reading
        finally:
            stopped.put(None)
            reading.cancel()
            if coming is not None:
                coming.cancel()
        yield ingest(ChatResponse("".join(pieces)), tools, seen_ids(messages))

    def _theirs(self, messages: Sequence[ChatMessage]) -> list[AgentMessage]:
        names: dict[str, str] = {}
        made: list[AgentMessage] = []
        for message in messages:
            original = self._originals.get(id(message))
            if message.tool_calls:
                names.update((call.id, call.name) for call in message.tool_calls)
                answer = self._answers.get(message.tool_calls[0].id)
                if original is None and answer is not None:
                    made.append(_same(answer, message))
                    continue
            made.append(agent_message(message, names) if original is None else copy(original))
        return made

    async def _again(self, ask: Callable[[], Any]) -> Any:
        attempt = 1
        while True:
            try:
                return await run_in_thread(ask, _GRACE)
            except Exception as exc:
                if attempt >= self._attempts or not _passes_by(exc):
                    raise
            await asyncio.sleep(_PAUSE * attempt)
            attempt += 1


def _text_only(settings: ModelSettings | None) -> bool:
    return settings is not None and settings.tool_choice == "none"


def _same(original: AgentMessage, message: ChatMessage) -> AgentMessage:
    """What a brain said itself, with its calls as they were mended."""
    calls = [agent_call(call) for call in message.tool_calls or ()]
    theirs = original.tool_calls
    if theirs == calls:
        calls = [copy(call) for call in theirs]  # of whatever class theirs are
    return replace(original, content=text_of(message.content), tool_calls=calls)


def _passes_by(error: BaseException) -> bool:
    """Whether what a brain raised says that its server was busy or not there at this moment."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    status = getattr(getattr(error, "response", None), "status_code", getattr(error, "status_code", None))
    if status is not None:
        return status in _BUSY
    return type(error).__name__ in ("ConnectionError", "ConnectTimeout", "ConnectError", "RateLimitError")
