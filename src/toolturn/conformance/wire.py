"""Replies of a row into the bytes a server sends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any, Literal

from .replies import ABSENT, AUTO, Body, Both, Call, Chat, Events, Http, Raw, Reply, Slow

_DATE = "{date+2}"


@dataclass(frozen=True, slots=True)
class Wire:
    """What is sent.

    Args:
        status: The status of HTTP; None for bytes that are no HTTP.
        headers: Names and values.
        pieces: The body; each is written to the connection by itself.
        ending: How it ends.
        chunked: Whether the body has no declared length.
        delay: Seconds until anything of it is sent.
    """

    status: int | None
    headers: tuple[tuple[str, str], ...]
    pieces: tuple[bytes, ...]
    ending: Literal["whole", "cut", "stall", "closes", "endless"] = "whole"
    chunked: bool = False
    delay: float = 0.0


def render(reply: Reply, *, model: str, number: int, stream: bool, usage: bool) -> Wire:
    """Return what is sent for a reply.

    Args:
        reply: The reply of the row.
        model: The name the request gave.
        number: Which request of the run this is, from 1.
        stream: Whether it asked for a stream.
        usage: Whether it asked for usage in the stream.
    """
    match reply:
        case Both(plain, streamed):
            chosen = streamed if stream else plain
            return render(chosen, model=model, number=number, stream=stream, usage=usage)
        case Slow(late, seconds):
            return replace(render(late, model=model, number=number, stream=stream, usage=usage), delay=seconds)
        case Raw(data):
            return Wire(None, (), (data,), "cut")
        case Http(status, body, headers, ending):
            return _http(status, body, headers, ending)
        case Body(value):
            return _json(encoded(value))
        case Chat() if not stream:
            return _json(encoded(completion(reply, model, number)), reply.split)
        case Chat():
            made = tuple(chunks_of(reply, model, number, usage))
            return _events(Events(made, split=reply.split), model, number)
        case Events():
            return _events(reply, model, number)


def _http(status: int, body: Any, headers: Mapping[str, str], ending: Any) -> Wire:
    data = body if isinstance(body, bytes) else encoded(body)
    kind = () if isinstance(body, bytes) else (("content-type", "application/json"),)
    date = formatdate(time.time() + 2, usegmt=True)
    given = tuple((name, value.replace(_DATE, date)) for name, value in headers.items())
    return Wire(status, (*kind, *given), (data,), ending, chunked=ending == "endless")


def _json(data: bytes, split: int = 0) -> Wire:
    return Wire(200, (("content-type", "application/json"),), tuple(_split(data, split)))


def _events(events: Events, model: str, number: int) -> Wire:
    items = [item if isinstance(item, bytes) else event(_chunk(item, model, number)) for item in events.items]
    if events.done:
        items.append(b"data: [DONE]\n\n")
    pieces = _split(b"".join(items), events.split) if events.split else iter(items)
    headers = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
    return Wire(200, headers, tuple(pieces), events.ending, chunked=True)


def _split(data: bytes, size: int) -> Iterator[bytes]:
    if not size:
        yield data
        return
    for start in range(0, len(data), size):
        yield data[start : start + size]


def event(chunk: Mapping[str, Any]) -> bytes:
    """Return a chunk as a server-sent event.

    Args:
        chunk: The chunk.
    """
    return b"data: " + encoded(chunk) + b"\n\n"


def encoded(value: Any) -> bytes:
    """Return a value as JSON; what is not ASCII stays as it is, so that a piece may end within a character.

    Args:
        value: The value.
    """
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can say
        return json.dumps(value).encode()


def _head(model: str, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": model}


def _chunk(chunk: Mapping[str, Any], model: str, number: int) -> dict[str, Any]:
    return {**_head(model, number, "chat.completion.chunk"), **chunk}


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(reply: Chat, model: str, number: int) -> dict[str, Any]:
    """Return the body of a chat completion.

    Args:
        reply: The reply.
        model: The name the request gave.
        number: Which request of the run this is.
    """
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.calls is not None:
        message["tool_calls"] = [_call(item, number, place) for place, item in enumerate(reply.calls)]
    message.update(reply.fields)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {**_head(model, number, "chat.completion"), "choices": [choice], "usage": _USAGE}


def _call(item: Call, number: int, place: int) -> dict[str, Any]:
    given = {"name": item.name, "arguments": item.arguments}
    function = {key: value for key, value in given.items() if value is not ABSENT}
    made: dict[str, Any] = {"id": item.id, "type": "function", "function": function}
    if item.id is AUTO:
        made["id"] = f"call_{number}_{place}"
    elif item.id is ABSENT:
        del made["id"]
    return made


def chunks_of(reply: Chat, model: str, number: int, usage: bool) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a chat completion, as a good server cuts them.

    Args:
        reply: The reply.
        model: The name the request gave.
        number: Which request of the run this is.
        usage: Whether a chunk with the usage ends the stream.
    """
    yield delta(role="assistant", content="" if reply.calls is None else None)
    for name, value in reply.fields.items():
        yield delta(**{name: value})
    if isinstance(reply.content, str):
        for start in range(0, len(reply.content), 6):
            yield delta(content=reply.content[start : start + 6])
    elif reply.content is not None:
        yield delta(content=reply.content)
    if reply.calls is not None:
        if not reply.calls:
            yield delta(tool_calls=[])
        for place, item in enumerate(reply.calls):
            yield from _call_chunks(item, number, place)
    yield delta(reply.finish)
    if usage:
        yield {"choices": [], "usage": _USAGE}


def _call_chunks(item: Call, number: int, place: int) -> Iterator[dict[str, Any]]:
    opening = {"index": place, **_call(item, number, place)}
    text = item.arguments
    if not isinstance(text, str):
        yield delta(tool_calls=[opening])
        return
    opening["function"]["arguments"] = ""
    yield delta(tool_calls=[opening])
    size = max(1, -(-len(text) // 3))
    for start in range(0, len(text), size):
        yield delta(tool_calls=[{"index": place, "function": {"arguments": text[start : start + size]}}])


def delta(finish: Any = None, /, **fields: Any) -> dict[str, Any]:
    """Return a chunk with one choice.

    Args:
        finish: The finish reason.
        fields: The fields of the delta.
    """
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
