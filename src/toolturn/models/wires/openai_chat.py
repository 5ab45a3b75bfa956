"""OpenAI's chat completions, as OpenAI and a hundred others speak them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit
from warnings import warn

from ...errors import ModelError, ModelProtocolError, ModelRequestError, ModelStreamError
from ...messages import ChatMessage, ChatResponse, Repair, ToolDef
from ...model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from ..failures import failure_in_stream, failure_of, tells_of_bound, tells_of_broken_call, tells_of_images
from ..ingest import ingest
from ..ingest.streamed import ShownText
from ..schema import FittedTool, FittedTools, fit_all, profile_named
from ..servers import Server, Wishes, changed, chat_url, is_loopback, server_at
from ..sse import EventDecoder, ServerEvent
from ..transport import HttpReply, HttpRequest, Timeouts, Transport
from .openai_answer import fitted_answer, response_format, restored
from .openai_reply import UNREADABLE, parsed, read_body, with_opaque_by_id
from .openai_request import SHOWN, Encoder, settings_fields, to_bytes
from .openai_stream import Assembler

_NO_SETTINGS = ModelSettings()
_KEPT_TOOL_LISTS = 256


class SkippedToolWarning(UserWarning):
    """A tool can not be offered to this server; the request goes out without it."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A list of tools as this server is told of it."""

    tools: tuple[ToolDef, ...]
    fitted: FittedTools
    encoder: Encoder
    field: bytes
    spoken: tuple[ToolDef, ...] | None
    """The tools as the model knows them, where that is not as they are."""


class OpenAIChat(ChatModel):
    """A model behind a server that speaks OpenAI's chat completions.

    Args:
        model: The model's name at the server.
        base_url: The server, with or without ``/v1``, or the whole address of its chat completions.
        api_key: The key; None for a server that needs none.
        server: What is known of the server; found by its address where None.
        wishes: Corrections of what is known of it, by name of a field of Wishes.
        headers: Further headers of each request.
        settings: How to reply where a call does not say.
        transport: Sends the requests; the shared one where None.
        timeouts: How long to wait for the server.
        strict: Refuse what a model got wrong instead of mending it.
        send_key_in_clear: Allow the key to travel without TLS to another machine.

    Raises:
        ValueError: The address is none, the key would travel in clear text, or there is no such wish.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        server: Server | None = None,
        wishes: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        settings: ModelSettings | None = None,
        transport: Transport | None = None,
        timeouts: Timeouts | None = None,
        strict: bool = False,
        send_key_in_clear: bool = False,
    ) -> None:
        self.model = model
        self.url = chat_url(base_url)
        self._base_url = base_url
        self.server = server or server_at(base_url)
        self.wishes: Wishes = changed(self.server.wishes, wishes)
        self.settings = settings or _NO_SETTINGS
        self.strict = strict
        parts = urlsplit(self.url)
        self._where = parts.netloc.rpartition("@")[2]
        self._origin = f"{parts.scheme}://{self._where}"
        api_key = api_key.strip() if api_key else None
        if api_key and parts.scheme != "https" and not is_loopback(parts) and not send_key_in_clear:
            raise ValueError(
                f"the key would travel in clear text to {self._where}; use https, or allow it with send_key_in_clear"
            )
        self._key = api_key
        self._headers = {"content-type": "application/json", "accept": "application/json", **(headers or {})}
        if api_key:
            bearer = self.server.key_header == "authorization"
            self._headers[self.server.key_header] = f"Bearer {api_key}" if bearer else api_key
        self._transport = transport
        self._timeouts = timeouts or Timeouts()
        self._opening = b'{"model":' + to_bytes(model) + b',"messages":['
        self._encoders: dict[tuple[tuple[str, str], ...], Encoder] = {}
        self._offers: dict[int, _Offer] = {}
        self._wanted: tuple[ToolDef, FittedTool] | None = None
        self._too_much: int | None = None  # the least bound of a reply that the server has refused
        self._can = Capabilities(
            streaming=True,
            tools=True,
            images=self.wishes.images,
            tool_choice_none=self.wishes.choice_none,
            answers=self.wishes.answers,
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._can

    def __repr__(self) -> str:
        return f"<OpenAIChat {self.model} at {self._where}>"

    # --- asking ------------------------------------------------------------------------

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        return await self._complete(messages, tools, self._settings(settings))

    async def _complete(
        self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], settings: ModelSettings
    ) -> ChatResponse:
        offer = self._offer(tools)
        request, seen = self._request(messages, offer, settings, stream=False)
        async with self._sender().send(request, self._timeouts) as reply:
            data = await reply.read()
        if reply.status != 200:
            again = self._otherwise(reply.status, data, request, settings)
            if again is None:
                return self._refused(reply, data)
            settings, repair = again
            return _told(await self._complete(messages, tools, settings), repair)
        return self._response(self._parsed(data), seen, offer, settings)

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        async with aclosing(self._stream(messages, tools, self._settings(settings))) as stream:
            async for item in stream:
                yield item

    async def _stream(
        self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], settings: ModelSettings
    ) -> AsyncGenerator[StreamItem]:
        offer = self._offer(tools)
        request, seen = self._request(messages, offer, settings, stream=True)
        response: ChatResponse | None = None
        again: tuple[ModelSettings, Repair] | None = None
        async with self._sender().send(request, self._timeouts) as reply:
            if reply.status != 200:
                data = await reply.read()
                again = self._otherwise(reply.status, data, request, settings)
                if again is None:
                    response = self._refused(reply, data)
            elif reply.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
                # a server that does not stream replies with the whole
                response = self._response(self._parsed(await reply.read()), seen, offer, settings)
            else:
                assembler = Assembler(offer.fitted.own_names)
                shown = ShownText(tools=bool(offer.field))
                async for deltas in self._deltas(reply, assembler):
                    for delta in deltas:
                        if delta.kind == "reasoning":
                            yield delta
                        else:
                            for part in shown.feed(delta.text):
                                yield part
                response = self._response(assembler.body(), seen, offer, settings)
                for part in shown.rest(response.content):
                    yield part
        if again is None:
            assert response is not None
            yield response
            return
        settings, repair = again
        async with aclosing(self._stream(messages, tools, settings)) as stream:
            async for item in stream:
                yield _told(item, repair) if isinstance(item, ChatResponse) else item

    def _otherwise(
        self, status: int, data: bytes, request: HttpRequest, settings: ModelSettings
    ) -> tuple[ModelSettings, Repair] | None:
        """With what it is asked once more, where a refusal blames something that can be left out; else None."""
        if SHOWN.encode() in request.body and tells_of_images(status, data):
            # they are named instead of shown
            self.wishes = replace(self.wishes, result_images=False)
            self._encoders.clear()
            self._offers.clear()
            return settings, _NO_IMAGES
        most = settings.max_tokens
        if most is not None and (blamed := tells_of_bound(status, data)):
            # a server that can not write so much does not, so that the bound is kept without being told
            if blamed == "model":
                self._too_much = most
            repair = Repair("max_tokens", f"the server refused a bound of {most} tokens, so it was asked without one")
            return replace(settings, max_tokens=None), repair
        return None

    def _refused(self, reply: HttpReply, data: bytes) -> ChatResponse:
        """What a reply without success is: a failure, unless it tells of a call that the model wrote wrong."""
        if reply.status == 400 and tells_of_broken_call(data):
            return ChatResponse("", finish_reason="malformed_function_call", raw=parsed(data))
        raise failure_of(reply.status, reply.headers, data, self._where, self._key)

    async def _deltas(self, reply: HttpReply, assembler: Assembler) -> AsyncIterator[list[Delta]]:
        """What of each piece of a stream people may see, until its end is proven."""
        decoder = EventDecoder()
        done = False
        shown: list[Delta] = []
        try:
            async for piece in reply.pieces():
                done = self._taken(decoder.feed(piece), assembler, shown)
                if shown:
                    yield shown
                    shown = []
                if done:
                    break
            else:
                done = self._taken(decoder.close(), assembler, shown)
                yield shown
                shown = []
        except ModelError as error:
            if shown:  # it came before the error, in the same piece
                yield shown
            if isinstance(error, ModelStreamError):
                error.partial = error.partial or assembler.partial
            raise
        if not done and assembler.finish_reason is None:
            text = f"the stream of {self._where} ended before the reply was complete"
            raise ModelStreamError(text, partial=assembler.partial)
        if not assembler.begun:
            raise ModelStreamError(f"the stream of {self._where} held no reply")

    def _taken(self, events: list[ServerEvent], assembler: Assembler, shown: list[Delta]) -> bool:
        """Add what people may see of some events, and return whether the stream says that it has ended."""
        for event, data in events:
            if data == "[DONE]":
                return True
            chunk = parsed(data)
            if chunk is UNREADABLE:
                text = f"{self._where} sent a piece of a stream that is not JSON"
                raise ModelStreamError(text, partial=assembler.partial)
            if isinstance(chunk, dict) and (event == "error" or chunk.get("error")):
                said = chunk.get("error") or chunk
                raise failure_in_stream(said, self._where, assembler.partial, self._key, begun=assembler.has_content)
            shown += assembler.feed(chunk)
        return False

    # --- what goes out -----------------------------------------------------------------

    def _sender(self) -> Transport:
        if self._transport is not None:
            return self._transport
        from ..transports import default_transport

        return default_transport()

    def _offer(self, tools: tuple[ToolDef, ...]) -> _Offer:
        offer = self._offers.get(id(tools))
        if offer is None or offer.tools is not tools:
            offer = self._fit(tools)
            if len(self._offers) >= _KEPT_TOOL_LISTS:
                del self._offers[next(iter(self._offers))]
            self._offers[id(tools)] = offer
        return offer

    def _fit(self, tools: tuple[ToolDef, ...]) -> _Offer:
        fitted = fit_all(tools, profile_named(self.wishes.schemas))
        for warning in fitted.warnings:
            warn(warning, SkippedToolWarning, stacklevel=5)
        names = fitted.aliases
        others = tuple(sorted((name, alias) for name, alias in names.items() if name != alias))
        encoder = self._encoders.get(others)
        if encoder is None:
            encoder = self._encoders[others] = Encoder(self.wishes, self._origin, dict(others))
        listed = []
        for tool in fitted.tools:
            function: dict[str, Any] = {"name": tool.name, "description": tool.description}
            if tool.parameters is not None:
                function["parameters"] = tool.parameters
            if tool.strict:
                function["strict"] = True
            listed.append({"type": "function", "function": function})
        field = b',"tools":' + to_bytes(listed) if listed else b""
        renamed = bool(others) or any(tool.changes for tool in fitted.tools)
        return _Offer(tools, fitted, encoder, field, fitted.offered if renamed else None)

    def _settings(self, given: ModelSettings | None) -> ModelSettings:
        if given is None:
            chosen = self.settings
        else:
            chosen = given if self.settings is _NO_SETTINGS else given.over(self.settings)
        if chosen.max_tokens is not None and self._too_much is not None and chosen.max_tokens >= self._too_much:
            return replace(chosen, max_tokens=None)
        return chosen

    def _answer(self, wanted: ToolDef) -> FittedTool:
        known = self._wanted
        if known is None or known[0] is not wanted:
            known = self._wanted = wanted, fitted_answer(wanted, self.wishes)
        return known[1]

    def _request(
        self, messages: tuple[ChatMessage, ...], offer: _Offer, settings: ModelSettings, *, stream: bool
    ) -> tuple[HttpRequest, Collection[Any]]:
        more = b""
        field = offer.field
        if settings is not _NO_SETTINGS:
            try:
                fields = settings_fields(settings, self.wishes, offer.fitted.aliases, tools=bool(offer.field))
                if settings.answer is not None:
                    fields["response_format"] = response_format(self._answer(settings.answer))
            except ValueError as exc:
                raise ModelRequestError(str(exc)) from None
            if field and (servers_own := fields.pop("tools", None)):
                field = field[:-1] + b"," + to_bytes(servers_own)[1:]
            if fields:
                more = b"," + to_bytes(fields)[1:-1]
        if stream:
            more += b',"stream":true'
            if self.wishes.stream_usage:
                more += b',"stream_options":{"include_usage":true}'
        pieces, seen = offer.encoder.encode(messages)
        body = b"".join((self._opening, b",".join(pieces), b"]", field, more, b"}"))
        return HttpRequest("POST", self.url, self._headers, body), seen

    # --- what comes in -----------------------------------------------------------------

    def _parsed(self, data: bytes) -> Any:
        body = parsed(data)
        if body is UNREADABLE:
            raise ModelProtocolError(f"{self._where} replied with something that is not JSON", status=200)
        if isinstance(body, dict) and body.get("error"):
            raise failure_in_stream(body["error"], self._where, "", self._key)
        return body

    def _response(self, body: Any, seen: Collection[Any], offer: _Offer, settings: ModelSettings) -> ChatResponse:
        response = read_body(body, self._where, self._origin, self.wishes.echo)
        if offer.spoken is None:
            made = ingest(response, offer.tools, seen, strict=self.strict)
        else:  # read in the names and forms the model was given, then put into the tools' own
            made = offer.fitted.unalias(ingest(response, offer.spoken, seen, strict=self.strict))
        if settings.answer is not None:
            made = restored(made, self._answer(settings.answer))
        return with_opaque_by_id(made)

    async def models(self) -> tuple[str, ...]:
        """Return the names of the models that the server says it has.

        Raises:
            ModelError: The server is not reachable, refuses the key, or does not list its models.
        """
        request = HttpRequest("GET", chat_url(self._base_url, "/models"), self._headers)
        async with self._sender().send(request, self._timeouts) as reply:
            data = await reply.read()
        if reply.status != 200:
            raise failure_of(reply.status, reply.headers, data, self._where, self._key)
        body = self._parsed(data)
        listed = body.get("data", body.get("models")) if isinstance(body, dict) else body
        names = [item.get("id") or item.get("name") for item in listed or () if isinstance(item, dict)]
        return tuple(name for name in names if isinstance(name, str))

    async def aclose(self) -> None:
        """Nothing is closed: the transport belongs to who gave it, or is shared."""


_NO_IMAGES = Repair("images", "the server refused images of tool results, so they were only named")


def _told(response: ChatResponse, repair: Repair) -> ChatResponse:
    return replace(response, repairs=(*response.repairs, repair))
