"""Anyone's callback as one whose replies are mended."""

from __future__ import annotations

import inspect
from operator import is_

from ...messages import ChatMessage, ChatResponse, ToolDef
from ...model import ModelCallback
from .ids import seen_ids
from .response import ingest


def normalized(call_model: ModelCallback, *, strict: bool = False) -> ModelCallback:
    """Return a callback that gives the same replies, mended.

    Args:
        call_model: Takes messages and definitions and can be awaited. A ChatModel is asked for whole replies.
        strict: Refuse what would have to be mended.

    Returns:
        The callback; it raises ModelProtocolError under ``strict``, and whatever the given one raises.
    """
    # What was scanned last: of a turn the messages only grow.
    scanned: tuple[tuple[ChatMessage, ...], set[str]] = ((), set())

    async def call(messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> ChatResponse:
        nonlocal scanned
        answer = call_model(messages, tools)
        if not inspect.isawaitable(answer):
            raise TypeError("call_model must be awaitable: make it an 'async def'")
        response = await answer
        if not isinstance(response, ChatResponse):
            return response  # whoever asked says what is wrong with it
        before, seen = scanned
        if len(before) <= len(messages) and all(map(is_, before, messages)):
            seen = seen | new if (new := seen_ids(messages[len(before) :])) else seen
        else:
            seen = seen_ids(messages)
        scanned = (messages, seen)
        return ingest(response, tools, seen, strict=strict)

    return call
