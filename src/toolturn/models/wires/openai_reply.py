"""What comes in from OpenAI's chat completions: a body into a response, and its pieces into a body.

A stream is put together into the body that the same reply would have been without streaming, so both are read by
the same code. Nothing is judged here: what a model got wrong is mended, or refused, by :mod:`toolturn.models.ingest`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from ...errors import ModelProtocolError
from ...messages import ChatResponse, ToolCall, Usage

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "thoughts")
"""The spellings under which servers tell what a model thought."""


UNREADABLE = object()
"""What :func:`parsed` gives for a text that is not JSON; null is JSON."""


def parsed(data: str | bytes) -> Any:
    """Return what JSON says, or :data:`UNREADABLE`.

    Args:
        data: A body, or a piece of a stream.
    """
    try:
        return from_json(data)
    except ValueError:
        # stricter than most servers: it refuses half of a surrogate pair, which a stream may cut in two
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return UNREADABLE


def read_body(body: Any, server: str, origin: str, echo: Collection[str]) -> ChatResponse:
    """Return the response that a body holds, its fields as the model left them.

    Args:
        body: The parsed body, of a stream or of one reply.
        server: Who replied, for people.
        origin: The server, under which fields that it wants back are kept.
        echo: These fields.

    Raises:
        ModelProtocolError: It is no reply of a model.
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    choice: dict[str, Any] = first if isinstance(first, dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ModelProtocolError(f"{server} replied with no choice; it does not speak OpenAI's chat completions")
    reason = choice.get("finish_reason") or choice.get("stop_reason")
    content = message.get("content")
    if content is None:
        content = ""
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        reason = "refusal"
        content = content or refusal
    calls = _calls(message)
    content, thought = _split_thinking(content)
    reasoning = _reasoning(message) or thought
    return ChatResponse(
        content,
        reasoning,
        calls,
        reason,
        body,
        usage_of(body.get("usage")),
        (),
        _opaque(message, calls, origin, echo) if echo else None,
    )


def _calls(message: Mapping[str, Any]) -> Any:
    found = message.get("tool_calls")
    old = message.get("function_call")  # as it was before there were several; some send it empty beside the new
    if not found and isinstance(old, dict) and (old.get("name") or old.get("arguments")):
        found = [{"function": old}]
    if not isinstance(found, list):
        return found
    return [_call(item) for item in found]


def _call(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    function = next((item[key] for key in ("function", "custom") if isinstance(item.get(key), dict)), item)
    arguments: Any = function.get("arguments", function.get("input"))
    call_id: Any = item.get("id")
    name: Any = function.get("name")
    return ToolCall(call_id, name, arguments)


def _reasoning(message: Mapping[str, Any]) -> str | None:
    for name in REASONING_FIELDS:
        text = message.get(name)
        if isinstance(text, str) and text:
            return text
    details = message.get("reasoning_details")
    if isinstance(details, list):
        texts = [item.get("text") or item.get("summary") for item in details if isinstance(item, dict)]
        return "".join(text for text in texts if isinstance(text, str)) or None
    return None


def _split_thinking(content: Any) -> tuple[Any, str | None]:
    """Content in parts without those that hold thoughts, and these."""
    if not isinstance(content, list):
        return content, None
    kept = []
    thoughts = []
    for part in content:
        if isinstance(part, dict) and part.get("type") in ("thinking", "reasoning"):
            inner = part.get("thinking", part.get("text"))
            for piece in inner if isinstance(inner, list) else [inner]:
                text = piece.get("text") if isinstance(piece, dict) else piece
                if isinstance(text, str):
                    thoughts.append(text)
        else:
            kept.append(part)
    return kept, "".join(thoughts) or None


def _opaque(message: Mapping[str, Any], calls: Any, origin: str, echo: Collection[str]) -> dict[str, Any] | None:
    kept = {name: message[name] for name in echo if message.get(name) is not None}
    of_calls: list[dict[str, Any]] = []
    items = message.get("tool_calls")
    if isinstance(items, list):
        for item in items:
            given = item if isinstance(item, dict) else {}
            of_calls.append({name: given[name] for name in echo if given.get(name) is not None})
    if not kept and not any(of_calls):
        return None
    return {"origin": origin, "message": kept, "calls": of_calls}


def with_opaque_by_id(response: ChatResponse) -> ChatResponse:
    """Return a response in which what a server wants back stands under its calls' ids, which are settled by now.

    Args:
        response: The response after everything in it was mended.
    """
    opaque = response.opaque
    if opaque is None:
        return response
    calls = response.tool_calls or []
    # calls that were dropped or lifted from the text have no place among those the server sent
    same = len(calls) == len(opaque["calls"])
    of_calls = {call.id: more for call, more in zip(calls, opaque["calls"], strict=False) if same and more}
    return replace(response, opaque={**opaque, "calls": of_calls})


def usage_of(usage: Any) -> Usage | None:
    """Return a server's usage in our words, or None where it gives none.

    Args:
        usage: The object as it came.
    """
    if not isinstance(usage, dict):
        return None
    read = _count(usage, "prompt_tokens", "input_tokens")
    written = _count(usage, "completion_tokens", "output_tokens")
    total = _count(usage, "total_tokens")
    inner = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(inner, "cached_tokens") or _count(
        usage, "prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens"
    )
    outer = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = _count(outer, "reasoning_tokens") or _count(usage, "reasoning_tokens")
    if total > read + written:
        # some leave reasoning out of what was written, some give the total alone
        if read or written:
            written = total - read
        else:
            read = total
    # parts of what was read and written: some servers count more than the whole
    return Usage(read, written, min(cached, read), min(reasoning, written))


def _count(counts: Any, *names: str) -> int:
    if isinstance(counts, dict):
        for name in names:
            value = counts.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 10**15:
                return int(value)
    return 0
