"""One turn of an engine: its history, its tools and its model, run to an answer, to tokens or to sentences."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..drive import drive
from ..errors import (
    ToolLoopApprovalRequired,
    ToolLoopCancelledError,
    ToolLoopError,
    ToolLoopLimitError,
    ToolLoopModelError,
    ToolLoopTruncatedResponseError,
)
from ..events import Emit, Event, Iteration, Text
from ..loop import streaming
from ..messages import ChatMessage, ChatResponse, ToolCall, ToolDef, text_of
from ..model import ChatModel, ModelSettings
from ..nesting import inherited
from ..perform import Approve, Performer
from ..results import ToolLoopResult
from ..speech import answer_stream, sentences
from ..splitter import SentenceSplitter
from ..tools import ToolSet, TurnContext
from ..transcript import repair
from ..turn import ApprovalPending, AskApproval, CallModel, CallTool, Op, Outcome, Turn
from .brain_model import BrainModel
from .config import Settings
from .engine import CONTEXT
from .observations import told
from .words import found_or_not

GRACE = 2.0
"""Seconds that a tool has to clean up after a stop: somebody waits for the silence."""

NUDGES = 1


@dataclass(frozen=True, slots=True)
class Request:
    """What a turn is begun with.

    Args:
        history: The conversation; what is wrong with it is mended.
        tools: What the model may call.
        model: The model.
        settings: What the engine's section says.
        reply: How the model is to reply, or None.
        context: What the tools may know.
        approve: Decides on calls that somebody has to approve.
        relayed: Names of the tools that whoever asks runs itself.
    """

    history: Sequence[ChatMessage]
    tools: ToolSet
    model: ChatModel
    settings: Settings
    reply: ModelSettings | None
    context: TurnContext
    approve: Approve
    relayed: frozenset[str] = frozenset()


class _Perform(Performer):
    """Tells the model of failures as OpenVoiceOS's engines do, and lets calls wait that are not run here."""

    def __init__(self, request: Request) -> None:
        super().__init__(
            request.model,
            request.tools,
            context=request.context,
            settings=request.reply,
            grace=GRACE,
            approve=request.approve,
        )
        self._request_of_turn = request

    def __call__(self, op: Op, emit: Emit | None = None) -> Coroutine[Any, Any, Outcome]:
        if type(op) is AskApproval and op.call.name in self._request_of_turn.relayed:
            return _pending()
        carried_out = super().__call__(op, emit)
        return self._told(carried_out) if type(op) is CallTool else carried_out

    def _request(self, op: CallModel) -> tuple[tuple[ToolDef, ...], ModelSettings | None]:
        tools, settings = super()._request(op)
        if op.forced and isinstance(self._chat, BrainModel):
            # where there are no tools at all, else nobody would say that none may be called
            settings = replace(settings or ModelSettings(), tool_choice="none")
        return tools, settings

    async def _told(self, carried_out: Coroutine[Any, Any, Outcome]) -> Outcome:
        settings = self._request_of_turn.settings
        return told(await carried_out, causes=settings.causes, most=settings.limits.result_bytes)


async def _pending() -> Outcome:
    return ApprovalPending()


class EngineTurn:
    """A turn that has begun.

    Args:
        request: What it is begun with.

    Attributes:
        turn: The turn.
        given: How many messages of its transcript were there before.
    """

    def __init__(self, request: Request) -> None:
        self._settings = request.settings
        self._context = request.context
        self._relayed = request.relayed
        self._perform = _Perform(request)
        history = repair(request.history).messages
        self.given = len(history)
        self.turn = Turn()
        self.turn.begin(
            history,
            request.tools.definitions,
            request.tools.traits,
            turn_id=os.urandom(16).hex(),
            limits=inherited(request.settings.limits),
            on_limit="answer",
            tool_errors="report",
            nudges=NUDGES,
        )

    async def answer(self) -> tuple[str, list[ToolCall]]:
        """Run the turn and return its answer, and calls of tools that are not run here.

        Raises:
            ToolLoopError: There is none, and nothing that could be said instead.
            Exception: What a brain raised.
        """
        CONTEXT.set(self._context)
        try:
            result = await drive(self.turn, self._perform, concurrency=self._settings.concurrency)
        except ToolLoopApprovalRequired as error:
            calls = [record.call for record in error.pending if record.call.name in self._relayed]
            last = next(message for message in reversed(error.messages) if message.role == "assistant")
            return text_of(last.content), calls
        except ToolLoopError as error:
            return self._instead_of(error), []
        # as it was said: blanks around it are the brain's own
        said = text_of(result.messages[-1].content)
        return said if said.strip() == result.content else result.content, []

    @property
    def calls(self) -> tuple[ChatMessage, ...]:
        """The calls of a turn that has ended well, and their results."""
        end = self.turn.exit
        return end.messages[self.given : -1] if isinstance(end, ToolLoopResult) else ()

    def _instead_of(self, error: ToolLoopError) -> str:
        """What to say where the model has given no answer; the error where another handler may know one."""
        if isinstance(error, (ToolLoopModelError, ToolLoopCancelledError)):
            raise error
        if isinstance(error, ToolLoopTruncatedResponseError) and (text := _without_calls(error.rejected_response)):
            return f"{text}…"
        if isinstance(error, ToolLoopLimitError) or any(record.status == "ok" for record in error.tool_calls):
            return found_or_not(error.tool_calls, self._context.language)
        raise error

    async def tokens(self) -> AsyncGenerator[str]:
        """Yield the answer as it is made, and before it, where the settings say so, what is said before calls.

        Raises:
            ToolLoopError: As of :meth:`answer`.
        """
        CONTEXT.set(self._context)
        said = _Said()
        async with streaming(self.turn, self._perform, concurrency=self._settings.concurrency) as events:
            try:
                async for text in answer_stream(_apart(events), preamble=self._settings.preamble):
                    said.text += text
                    yield text
            except ToolLoopError as error:
                if rest := said.rest(self._instead_of(error)):
                    yield rest

    async def sentences(self) -> AsyncGenerator[str]:
        """Yield the answer sentence by sentence.

        Raises:
            ToolLoopError: As of :meth:`answer`.
        """
        CONTEXT.set(self._context)
        said = _Said()
        language = self._context.language
        async with streaming(self.turn, self._perform, concurrency=self._settings.concurrency) as events:
            spoken = sentences(_apart(events), preamble=self._settings.preamble, language=language)
            try:
                async for sentence in spoken:
                    said.text += sentence
                    yield sentence
            except ToolLoopError as error:
                splitter = SentenceSplitter(language)
                for sentence in splitter.feed(said.rest(self._instead_of(error))) + splitter.flush():
                    yield sentence


def _without_calls(response: ChatResponse | None) -> str:
    return "" if response is None or response.tool_calls else text_of(response.content).strip()


class _Said:
    """What was handed on before a turn failed: it is not said again."""

    def __init__(self) -> None:
        self.text = ""

    def rest(self, answer: str) -> str:
        said = self.text.strip()
        if said and answer.startswith(said):
            return answer[len(said) :]
        return f" {answer}" if said else answer


async def _apart(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """The same events, with a blank between the texts of two replies."""
    told = fresh = False
    async for event in events:
        if isinstance(event, Iteration):
            fresh = True
        elif isinstance(event, Text) and event.text:
            if told and fresh and not event.text[0].isspace():
                event = replace(event, text=f" {event.text}")
            told, fresh = True, False
        yield event


def with_prompt(prompt: str, history: list[ChatMessage]) -> list[ChatMessage]:
    """Return a conversation that begins with a system message, which it may have had before.

    Args:
        prompt: The text; nothing is done where it is empty.
        history: The conversation.
    """
    if not prompt or any(prompt in text_of(each.content) for each in history if each.role == "system"):
        return history
    first = history[0] if history else None
    if first is not None and first.role == "system":
        return [ChatMessage("system", f"{prompt}\n\n{text_of(first.content)}"), *history[1:]]
    return [ChatMessage("system", prompt), *history]


def context_of(session: str, language: str | None, units: str | None) -> TurnContext:
    """Return what the tools of a turn may know.

    Args:
        session: The session.
        language: Its language.
        units: Its system of units, which is the ``units`` of the context's ``data``.
    """
    data: dict[str, Any] = {"units": units}
    return TurnContext(session, language, data)
