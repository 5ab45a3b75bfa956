"""Anyone's callback as one whose replies are mended."""

from __future__ import annotations

import inspect

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
    seen: set[str] = set()
    count = 0  # messages that were scanned into it, of which the first and the last are kept to know them again
    first: ChatMessage | None = None
    last: ChatMessage | None = None

    async def call(messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> ChatResponse:
        nonlocal seen, count, first, last
        answer = call_model(messages, tools)
        if not inspect.isawaitable(answer):
            raise TypeError("call_model must be awaitable: make it an 'async def'")
        response = await answer
        if not isinstance(response, ChatResponse):
            return response  # whoever asked says what is wrong with it
        # the messages of a turn only grow: what is there already is not scanned again
        if not (0 < count <= len(messages) and messages[0] is first and messages[count - 1] is last):
            seen, count = set(), 0
        seen |= seen_ids(messages[count:])
        count = len(messages)
        first, last = (messages[0], messages[-1]) if messages else (None, None)
        return ingest(response, tools, seen, strict=strict)

    return call
