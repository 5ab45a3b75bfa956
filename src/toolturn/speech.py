"""What of a running turn is for people: the answer alone, or sentences fit to be spoken."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .drive import end_tasks
from .errors import ToolLoopError
from .events import Answer, Done, Event, Iteration, Reasoning, Text, ToolProgress, ToolResult
from .splitter import DEFAULT_LONGEST, SentenceSplitter

Preamble: TypeAlias = Literal["speak", "hold"]
"""What becomes of text that may turn out to stand before tool calls: handed on at once, or held until it is certain."""

DEFAULT_PATIENCE = 0.5


@dataclass(frozen=True, slots=True)
class Speech:
    """What a tool says to the user while it runs: ``context.emit(Speech("One moment."))``.

    :func:`sentences` hands it on at its place. A sentence that was said this way is left out once where the rest of the
    turn repeats it, so a direct-return tool may speak its result while it makes it.

    Args:
        text: What to say.
        more: Whether the same sentence goes on in the next one; text that streams may be cut anywhere.

    Raises:
        TypeError: The text is no string.
    """

    text: str
    more: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"what a tool says must be text, not {type(self.text).__name__}")


async def answer_stream(events: AsyncIterable[Event], *, preamble: Preamble = "hold") -> AsyncIterator[str]:
    """Yield the text of the answer, and nothing else of the turn.

    While tools are offered, a text is known to be the answer only when the reply ends without calls. ``hold`` keeps it
    until then and drops what was said before calls; ``speak`` hands everything on as it comes. The last answer that a
    limit forces is certain from its first character and streams either way. Reasoning never comes out.

    Args:
        events: A TurnStream, or any other iterator of events.
        preamble: ``hold`` or ``speak``.

    Raises:
        ToolLoopError: The turn ended without an answer.
        ValueError: ``preamble`` is neither of the two.
    """
    reply = _Reply(preamble)
    failure: ToolLoopError | None = None
    async for event in events:
        if text := reply.text_of(event):
            yield text
        if isinstance(event, Done) and isinstance(event.exit, ToolLoopError):
            failure = event.exit
    if failure is not None:  # a TurnStream has raised it by now
        raise failure


async def sentences(
    events: AsyncIterable[Event],
    *,
    preamble: Preamble = "speak",
    language: str | None = None,
    longest: int = DEFAULT_LONGEST,
    patience: float | None = DEFAULT_PATIENCE,
) -> AsyncIterator[str]:
    """Yield what a turn says in sentences, each as soon as its end is proven.

    The pieces joined are the text with its blanks; only blanks at the very end are left out, since there is nothing in
    them to say. What a model says before it calls tools is spoken too by default: speech cannot be taken back, but such
    a text is fit to be heard. Sentences that tools say themselves (:class:`Speech`) come at their place, under
    either policy, and each is left out once where a later text of the turn repeats it: as a whole sentence, whatever
    its case, blanks and last stop. When the turn fails, what was no whole sentence yet is not handed on.

    Args:
        events: A TurnStream, or any other iterator of events.
        preamble: ``speak`` or ``hold``.
        language: A BCP 47 tag such as ``de-AT``; where it is None, abbreviations of many languages are known.
        longest: Characters after which a sentence without an end is cut, at a clause or a blank.
        patience: Seconds after which a text that pauses behind a stop is handed on, though its end is not proven:
            while a model writes the arguments of a call, no text comes that could prove it. None waits for ever.

    Raises:
        ToolLoopError: The turn ended without an answer.
        ValueError: ``preamble`` is neither of the two, or ``longest`` is below 16.
    """
    reply = _Reply(preamble)
    voice = _Voice(SentenceSplitter(language, longest=longest), {}, language, longest)
    failure: ToolLoopError | None = None
    iterator = aiter(events)
    while True:
        event: Event | None
        if patience is not None and voice.may_settle:
            coming = asyncio.ensure_future(_next(iterator))
            try:
                if not (await asyncio.wait((coming,), timeout=patience))[0]:
                    for sentence in voice.settle():
                        yield sentence
                event = await coming
            finally:
                if not coming.done():
                    await end_tasks((coming,))
        else:
            event = await _next(iterator)
        if event is None:
            break
        if isinstance(event, Done) and isinstance(event.exit, ToolLoopError):
            failure = event.exit
            continue
        if failure is None:
            for sentence in voice.hear(event, reply.text_of(event)):
                yield sentence
    if failure is not None:  # a TurnStream has raised it by now
        raise failure
    for sentence in voice.end():
        yield sentence


async def _next(iterator: AsyncIterator[Event]) -> Event | None:
    """Return the next event, or None: no task can end with a StopAsyncIteration."""
    try:
        return await anext(iterator)
    except StopAsyncIteration:
        return None


class _Reply:
    """Decides which text of a turn is handed on, and when."""

    __slots__ = ("_direct", "_speak", "_speaks", "_told")

    def __init__(self, preamble: Preamble) -> None:
        if preamble not in ("speak", "hold"):
            raise ValueError("preamble must be 'speak' or 'hold'")
        self._speak = preamble == "speak"
        self._speaks = self._speak
        self._direct = False
        self._told: list[str] = []

    def text_of(self, event: Event) -> str:
        """Return the text that may be handed on now."""
        if isinstance(event, Text):
            if self._speaks:
                self._told.append(event.text)
                return event.text
        elif isinstance(event, Iteration):
            self._speaks = self._speak or event.forced
            self._direct = False
            self._told.clear()
        elif isinstance(event, ToolResult):
            self._direct = event.record.return_direct
        elif isinstance(event, Answer):
            if self._direct:
                return event.content
            return _rest_of(event.content, "".join(self._told))
        return ""


def _rest_of(content: str, told: str) -> str:
    """Return what of the answer was not told yet; a reply that was mended is not told a second time."""
    told = told.lstrip()
    if not told.strip():
        return content
    return content[len(told) :] if content.startswith(told) else ""


class _Voice:
    """Makes sentences of what the model and the tools say, and leaves out what was said before."""

    __slots__ = ("_blanks", "_language", "_longest", "_said", "_splitter", "_tools")

    def __init__(
        self, splitter: SentenceSplitter, tools: dict[str, SentenceSplitter], language: str | None, longest: int
    ) -> None:
        self._splitter = splitter
        self._tools = tools  # of calls that speak in pieces
        self._language = language
        self._longest = longest
        self._said: Counter[str] = Counter()
        self._blanks = ""

    @property
    def may_settle(self) -> bool:
        splitter = self._splitter
        return bool(splitter.pending) and splitter.settled

    def settle(self) -> list[str]:
        return self._new(self._splitter.settle())

    def end(self) -> list[str]:
        return self._new(self._splitter.flush())

    def hear(self, event: Event, text: str) -> list[str]:
        """Take an event, and the text of it that may be spoken."""
        if isinstance(event, Text):
            return self._new(self._splitter.feed(text)) if text else []
        if isinstance(event, Reasoning):
            return []
        if isinstance(event, ToolProgress):
            data: Any = event.data
            return self.end() + self._say(event.op, data) if isinstance(data, Speech) else []
        pieces = [] if isinstance(event, Answer) else self.end()  # the reply is over
        if isinstance(event, ToolResult) and (speaker := self._tools.pop(event.record.op, None)) is not None:
            pieces += self._aloud(speaker.flush())
        if isinstance(event, Answer):
            pieces += self._new(self._splitter.feed(text) if text else []) + self.end()
        return pieces

    def _say(self, op: str, speech: Speech) -> list[str]:
        speaker = self._tools.get(op)
        if speaker is None:
            speaker = self._tools[op] = SentenceSplitter(self._language, longest=self._longest)
        pieces = speaker.feed(speech.text)
        if not speech.more:
            pieces += speaker.flush()
        return self._aloud(pieces)

    def _aloud(self, pieces: list[str]) -> list[str]:
        said = [piece for piece in pieces if not piece.isspace()]
        self._said.update(map(_plain, said))
        return said

    def _new(self, pieces: list[str]) -> list[str]:
        """Return the sentences that no tool has said, each with the blanks before it that nothing was in."""
        new = []
        for piece in pieces:
            if piece.isspace():
                self._blanks += piece
                continue
            if self._said and self._said[plain := _plain(piece)] > 0:
                self._said[plain] -= 1
                continue
            new.append(self._blanks + piece)
            self._blanks = ""
        return new


def _plain(sentence: str) -> str:
    return " ".join(sentence.split()).rstrip(" .!?…。！？").casefold()
