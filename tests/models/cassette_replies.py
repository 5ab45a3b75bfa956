"""What a recorded reply says, read in plain code; and in what our wire's reading of it differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolturn.errors import (
    ModelAuthenticationError,
    ModelContextError,
    ModelError,
    ModelRateLimitError,
    ModelRequestError,
    ModelStreamError,
    ModelUnavailableError,
)
from toolturn.messages import ChatResponse, Usage

Call = tuple[Any, Any, Any]
"""Id, name and parsed arguments; None for no arguments at all."""

Counts = tuple[int, int, int, int]
"""Tokens read, written, from the cache and thought."""

_REASONING = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class Reading:
    """What a recorded reply says."""

    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Counts | None = None
    total: int | None = None
    status: int | None = None
    error: type[ModelError] | None = None
    words: str = ""


def read(status: int, content_type: str, response: Any) -> Reading:
    """Read a recorded reply.

    Args:
        status: Of HTTP.
        content_type: As it was recorded.
        response: The parsed body, or the text of a stream.
    """
    if status != 200:
        return _failed(status, response["error"])
    if content_type == "text/event-stream":
        return _streamed(response)
    return _whole(response)


def _failed(status: int, error: Mapping[str, Any]) -> Reading:
    words = error["message"]
    kind: type[ModelError] = {
        401: ModelAuthenticationError,
        404: ModelUnavailableError,
        429: ModelRateLimitError,
    }.get(status, ModelContextError if "context length" in words else ModelRequestError)
    return Reading(status=status, error=kind, words=words)


def _whole(body: Mapping[str, Any]) -> Reading:
    (choice,) = body["choices"]
    message = choice["message"]
    made = Reading(finish_reason=choice["finish_reason"] or None, usage=_usage(body.get("usage")))
    made.total = (body.get("usage") or {}).get("total_tokens")
    made.text = message.get("content") or ""
    made.reasoning = next((message[name] for name in _REASONING if message.get(name)), "")
    if not made.reasoning:
        made.reasoning = "".join(
            one.get("text") or one.get("summary") or "" for one in message.get("reasoning_details") or []
        )
    for call in message.get("tool_calls") or []:
        function = call["function"]
        made.calls.append((call["id"], function["name"], _parsed(function.get("arguments"))))
    return made


def _streamed(text: str) -> Reading:
    made = Reading()
    calls: dict[int, list[str]] = {}
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.startswith("data:") or line == "data: [DONE]":
            continue
        chunk = json.loads(line.removeprefix("data:"))
        if "error" in chunk:
            # the model had begun: it is not the request that is refused
            return Reading(made.text, made.reasoning, error=ModelStreamError, words=chunk["error"]["message"])
        if chunk.get("usage"):
            made.usage = _usage(chunk["usage"])
            made.total = chunk["usage"].get("total_tokens")
        for choice in chunk["choices"]:
            made.finish_reason = choice.get("finish_reason") or made.finish_reason
            delta = choice["delta"]
            made.text += delta.get("content") or ""
            made.reasoning += next((delta[name] for name in _REASONING if delta.get(name)), "")
            for call in delta.get("tool_calls") or []:
                parts = calls.setdefault(call["index"], ["", "", ""])
                parts[0] = parts[0] or call.get("id") or ""
                parts[1] = parts[1] or call["function"].get("name") or ""
                parts[2] += call["function"].get("arguments") or ""
    made.calls = [(parts[0], parts[1], _parsed(parts[2])) for _, parts in sorted(calls.items())]
    return made


def _usage(given: Mapping[str, Any] | None) -> Counts | None:
    if not given:
        return None
    inner = given.get("prompt_tokens_details") or {}
    outer = given.get("completion_tokens_details") or {}
    cached = inner.get("cached_tokens") or given.get("num_cached_tokens") or 0
    return given["prompt_tokens"], given["completion_tokens"], cached, outer.get("reasoning_tokens") or 0


def _parsed(arguments: str | None) -> Any:
    return json.loads(arguments) if arguments else None


# --- our wire's reading beside it ------------------------------------------------------

EXPLAINED = {
    "id made": "A call came with an empty id; it gets one of our own, under which its result is found.",
    "no arguments": "A call without parameters came with an empty text for its arguments, or none; they are read as "
    "`{}`.",
    "thoughts in the total": "The total is more than what was read and written: thoughts that are counted nowhere else "
    "are counted as written.",
    "part of a whole": "The server counts more tokens from its cache than it read, or more thoughts than it wrote; we "
    "count no more than the whole.",
}
"""Each kind of difference in one sentence."""


def differences_of_replies(reading: Reading, response: ChatResponse) -> Iterator[str]:
    """Yield each difference between a recorded reply and our reading: a kind of :data:`EXPLAINED`, or what it is.

    Args:
        reading: The reply as the plain code reads it.
        response: The reply as our wire reads it.
    """
    if response.content != reading.text:
        yield f"text {reading.text!r:.200} there and {response.content!r:.200} here"
    if (response.reasoning or "") != reading.reasoning:
        yield f"reasoning {reading.reasoning!r:.200} there and {response.reasoning!r:.200} here"
    if response.finish_reason != reading.finish_reason:
        yield f"finish reason {reading.finish_reason!r} there and {response.finish_reason!r} here"
    ours = [(call.id, call.name, json.loads(call.arguments)) for call in response.tool_calls or ()]
    if len(ours) != len(reading.calls):
        yield f"{len(reading.calls)} calls there and {len(ours)} here"
        return
    for (call_id, name, arguments), made in zip(reading.calls, ours, strict=True):
        if call_id == "" and made[0]:
            yield "id made"
            call_id = made[0]
        if arguments is None and made[2] == {}:
            yield "no arguments"
            arguments = {}
        if (call_id, name, arguments) != made:
            yield f"call {(call_id, name, arguments)!r:.200} there and {made!r:.200} here"
    yield from _counts(reading, response.usage)


def _counts(reading: Reading, usage: Usage | None) -> Iterator[str]:
    there, total = reading.usage, reading.total
    here = None if usage is None else (usage.input, usage.output, usage.cached, usage.reasoning)
    if there is not None and total is not None and total > there[0] + there[1]:
        there = (there[0], total - there[0], *there[2:])
        yield "thoughts in the total"
    if there is not None and (there[2] > there[0] or there[3] > there[1]):
        there = (there[0], there[1], min(there[2], there[0]), min(there[3], there[1]))
        yield "part of a whole"
    if there != here:
        yield f"tokens {there} there and {here} here"
