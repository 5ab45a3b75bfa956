"""The ReAct dialect: a model of text calls tools by writing ``Action:`` and ``Action Input:``.

It needs nothing of a model but text. Calls become structured, results go back as observations, thoughts are reasoning
and never text, so that a turn does not know that its model has no tools of its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from ..arguments import parse_arguments
from ..content import as_text
from ..errors import InvalidToolArguments, ModelRequestError
from ..messages import (
    ChatMessage,
    ChatResponse,
    Content,
    Repair,
    TextPart,
    ToolCall,
    ToolDef,
    text_of,
)
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from ..models.ingest import ingest
from ..models.ingest.ids import seen_ids
from ..models.ingest.names import known_tools
from .react_keys import keys_of
from .react_prompt import ReActPrompt, prompt_of, system_text
from .react_text import HOLD, Reply, ReplyReader

STOP = "\nObservation:"
_MAX_STOPS = 4
_REFUSES_STOP = re.compile(
    r"(unsupported|not supported|unrecognized|unknown|unexpected|does not support|not permitted|not allowed)"
    r"[^.\n]{0,60}\bstop\b|\bstop\b[^.\n]{0,60}(unsupported|not supported|not permitted|not allowed|does not support)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Request:
    """What the model is asked.

    Args:
        messages: Without calls and tool messages.
        settings: Without a choice of tools.
        reader: Reads the reply; None where it is text of any kind.
        offered: What may be called.
        must: Only a call will do.
        stops: Our own stop text is among the settings.
    """

    messages: tuple[ChatMessage, ...]
    settings: ModelSettings | None
    reader: ReplyReader | None
    offered: tuple[ToolDef, ...]
    must: bool
    stops: bool


class ReActTools(ChatModel):
    """Makes a model of text call tools.

    Args:
        model: Any model; what it can do with tools by itself is not used.
        language: Of the prompt, and of key words that are read beside the English ones; a tag such as ``de``.
        prompt: Instead of the built-in one: a :class:`ReActPrompt`, or the text of the system message with
            ``{tools}`` where they are to be listed.
        stop: End the reply before an observation it would make up; dropped for good where the model refuses it.
        hold: Characters of text without a key word that a stream holds back, since they are a thought if a key word
            follows; 0 hands them on at once, and they stay a part of the answer.

    Raises:
        ValueError: A placeholder of the prompt is missing or unknown, or ``hold`` is negative.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        language: str = "en",
        prompt: ReActPrompt | str | None = None,
        stop: bool = True,
        hold: int = HOLD,
    ) -> None:
        if hold < 0:
            raise ValueError("hold must not be negative")
        self._model = model
        self._prompt = prompt_of(prompt, language)
        self._keys = keys_of(language)
        self._stop = stop
        self._hold = hold

    @property
    def capabilities(self) -> Capabilities:
        """Those of the model, and tools; an answer in a form only where no tools are offered."""
        able = self._model.capabilities
        return replace(able, tools=True, tool_choice_none=True, answers="alone" if able.answers else "")

    def __repr__(self) -> str:
        return f"<ReActTools {self._model!r}>"

    async def load(self) -> None:
        """Load the model now instead of at the first request, where it can be.

        Raises:
            ModelError: It can not be loaded.
        """
        load = getattr(self._model, "load", None)
        if load is not None:
            await load()

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        """Return an answer or one call.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        request = self._request(messages, tools, settings)
        try:
            response = await self._model.complete(request.messages, settings=request.settings)
        except ModelRequestError as exc:
            request = self._without_stop(exc, request, settings)
            response = await self._model.complete(request.messages, settings=request.settings)
            response = _with(response, _NO_STOP)
        if request.reader is None:
            return response
        request.reader.feed(text_of(response.content))
        return _response(response, request.reader.close()[0], request, messages)

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Yield thoughts as reasoning, and the answer as soon as it is known to be one; a call comes with the response.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        request = self._request(messages, tools, settings)
        told = False
        try:
            async for item in self._read(request, messages):
                told = True
                yield item
            return
        except ModelRequestError as exc:
            if told:
                raise
            request = self._without_stop(exc, request, settings)
        async for item in self._read(request, messages):
            yield _with(item, _NO_STOP) if isinstance(item, ChatResponse) else item

    async def aclose(self) -> None:
        """Close the model below."""
        await self._model.aclose()

    # --- what goes out -------------------------------------------------------------------

    def _request(
        self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], settings: ModelSettings | None
    ) -> _Request:
        given = settings or ModelSettings()
        choice = given.tool_choice
        offered = () if choice == "none" else tools
        must = bool(offered) and choice not in (None, "auto")
        ask = self._prompt.observed if messages and messages[-1].role == "tool" else ""
        if must and choice != "required":
            ask = self._prompt.named.replace("{name}", str(choice))
            offered = tuple(tool for tool in offered if tool.name == choice) or offered
        elif must:
            ask = self._prompt.required
        worked = any(message.tool_calls or message.role == "tool" for message in messages)
        if not offered and not worked:
            plain = None if settings is None else replace(settings, tool_choice=None)
            return _Request(messages, plain, None, (), False, False)
        if not offered and given.answer is not None:  # the reply is held to a form, which has no room for key words
            folded = tuple(_fold(messages, "", "", images=self._model.capabilities.images))
            return _Request(folded, replace(given, tool_choice=None), None, (), False, False)
        if not offered:
            ask = self._prompt.answer
        system = system_text(self._prompt, tools) if tools else ""
        folded = tuple(_fold(messages, system, ask, images=self._model.capabilities.images))
        stops = self._stop and len(given.stop) < _MAX_STOPS
        stop = (*given.stop, STOP) if stops else given.stop
        reader = ReplyReader(known_tools(offered), keys=self._keys, hold=self._hold, calls=bool(offered))
        if settings is not None or stops:
            settings = replace(given, stop=stop, tool_choice=None, answer=None)
        return _Request(folded, settings, reader, offered, must, stops)

    def _without_stop(self, error: ModelRequestError, request: _Request, settings: ModelSettings | None) -> _Request:
        """The same request without our stop text, if it is that which is refused; the stop is not tried again."""
        if not request.stops or not _REFUSES_STOP.search(str(error)):
            raise error
        self._stop = False
        plain = None if settings is None else replace(settings, tool_choice=None)
        return replace(request, settings=plain, stops=False)

    # --- what comes in -------------------------------------------------------------------

    async def _read(self, request: _Request, messages: tuple[ChatMessage, ...]) -> AsyncIterator[StreamItem]:
        reader = request.reader
        fed: list[str] = []
        async with aclosing(self._model.stream(request.messages, settings=request.settings)) as stream:  # type: ignore[type-var]
            async for item in stream:
                if reader is None or (isinstance(item, Delta) and item.kind == "reasoning"):
                    yield item
                elif isinstance(item, Delta):
                    fed.append(item.text)
                    for delta in _shown(reader.feed(item.text), request):
                        yield delta
                else:
                    # where the response holds more than was told, the rest of it counts; else what was told does
                    content, so_far = text_of(item.content), "".join(fed)
                    if content.startswith(so_far):
                        for delta in _shown(reader.feed(content[len(so_far) :]), request):
                            yield delta
                    reply, rest = reader.close()
                    for delta in _shown(rest, request):
                        yield delta
                    yield _response(item, reply, request, messages)


_NO_STOP = Repair("stop", "the model refused a stop text; it is asked without one from here on")


def _shown(deltas: list[Delta], request: _Request) -> list[Delta]:
    # where only a call will do, text is no answer
    return [delta for delta in deltas if delta.kind == "reasoning"] if request.must else deltas


def _with(response: ChatResponse, repair: Repair) -> ChatResponse:
    return replace(response, repairs=(*response.repairs, repair))


def _response(
    response: ChatResponse, reply: Reply, request: _Request, messages: tuple[ChatMessage, ...]
) -> ChatResponse:
    """What the model said, as a response to an offer of tools."""
    if response.tool_calls:
        if request.offered:  # its server made a call of it, although none was offered there
            return ingest(response, request.offered, seen_ids(messages))
        response = replace(response, tool_calls=None)
    thoughts = [text for text in (text_of(response.reasoning), reply.thought) if text.strip()]
    text = reply.text
    if request.must and text:
        thoughts.append(text)
        text = ""
    finish = response.finish_reason
    ended = finish is None or finish.strip().lower() in ("stop", "end_turn", "stop_sequence", "tool_calls", "eos")
    calls: list[ToolCall] = []
    repairs = list(reply.repairs)
    if reply.actions:
        names = {tool.name for tool in request.offered}
        if request.must and any(action.name not in names for action in reply.actions):
            finish = "malformed_function_call" if ended else finish
            repairs.append(Repair("call", "a call of a tool other than the one that was asked for was cut"))
        else:
            calls = _calls(reply, messages)
            finish = "tool_calls" if ended else finish
    elif request.must:
        finish = "tool_calls" if ended else finish  # announced but absent: the turn may ask once more
    elif reply.broken and request.offered:
        finish = "malformed_function_call" if ended else finish
    elif ended and finish == "tool_calls":
        finish = "stop"
    return replace(
        response,
        content=text,
        reasoning="\n".join(thoughts) or None,
        tool_calls=calls or None,
        finish_reason=finish,
        repairs=(*response.repairs, *repairs),
    )


def _calls(reply: Reply, messages: tuple[ChatMessage, ...]) -> list[ToolCall]:
    used = seen_ids(messages)
    number = len(used)
    calls = []
    for action in reply.actions:
        number += 1
        while f"call_{number}" in used:
            number += 1
        calls.append(ToolCall(f"call_{number}", action.name, action.arguments))
    return calls


# --- messages for a model that knows text only ---------------------------------------------


def _fold(messages: tuple[ChatMessage, ...], system: str, ask: str, *, images: bool) -> Iterator[ChatMessage]:
    """The transcript in one system message, and user and assistant messages in turns."""
    texts = [text_of(message.content) for message in messages if message.role == "system"]
    told = "\n\n".join(text for text in (*texts, system) if text.strip())
    if told:
        yield ChatMessage("system", told)
    role, pieces = "", list[Content]()
    for message in messages:
        if message.role == "system":
            continue
        speaker = "user" if message.role == "tool" else message.role
        if pieces and speaker != role:
            yield ChatMessage(role, _joined(pieces))
            pieces = []
        role = speaker
        pieces.append(_told(message, images=images, scaffold=bool(system)))
    if ask:
        if pieces and role != "user":
            yield ChatMessage(role, _joined(pieces))
            pieces = []
        role = "user"
        pieces.append(ask)
    if pieces:
        yield ChatMessage(role, _joined(pieces))


def _told(message: ChatMessage, *, images: bool, scaffold: bool) -> Content:
    if message.role == "tool":
        return f"Observation: {as_text(message.content)}"
    if message.role == "user" and images and not isinstance(message.content, str):
        return message.content
    text = as_text(message.content)
    if message.role != "assistant":
        return text
    if message.tool_calls:
        written = [f"Thought: {text.strip()}"] if text.strip() else []
        written += [f"Action: {call.name}\nAction Input: {_input(call.arguments)}" for call in message.tool_calls]
        return "\n".join(written)
    return f"Final Answer: {text}" if scaffold and text.strip() else text


def _input(arguments: object) -> str:
    text = arguments if isinstance(arguments, str) else str(arguments)
    try:
        parse_arguments(text)
    except InvalidToolArguments:
        return text.strip() or "{}"
    return text.strip()


def _joined(pieces: list[Content]) -> Content:
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, str) for piece in pieces):
        return "\n\n".join(str(piece) for piece in pieces)
    return [part for piece in pieces for part in ([TextPart(piece)] if isinstance(piece, str) else piece)]
