"""A long transcript into one that fits a model's window, without tearing a call from its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .messages import ChatMessage, text_of

Counter: TypeAlias = Callable[[ChatMessage], int]
"""Tokens of one message."""

Pin: TypeAlias = Iterable[int] | Callable[[ChatMessage], bool]
"""What has to stay: places in the transcript, or a question to each message."""

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1000


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is left of a transcript.

    Args:
        messages: What was kept, in its order; the very messages that were given.
        dropped: What was left out, in its order.
        tokens: Tokens of what was kept, by the counter that was used.
        fits: Whether that is within the budget; False where even the least that has to stay is too much.
    """

    messages: tuple[ChatMessage, ...]
    dropped: tuple[ChatMessage, ...]
    tokens: int
    fits: bool


def rough_tokens(message: ChatMessage) -> int:
    """Return about how many tokens a message is, without asking a tokenizer.

    A token for every four bytes of UTF-8 (four letters of English, two of Greek or Russian; a Chinese character is
    three quarters of one), a thousand for each image, file or other part without text, and four for what stands
    around a message. Real tokenizers differ by a third and more: leave room.

    Args:
        message: The message; whatever its fields hold is counted somehow.
    """
    content: Any = message.content
    parts = 0
    if type(content) is str:
        size = _bytes(content)
    else:
        size = _bytes(text_of(content))
        if isinstance(content, (list, tuple)):
            parts = sum(not _has_text(part) for part in content)
    if message.tool_calls:
        calls: Any = message.tool_calls
        for call in calls if isinstance(calls, (list, tuple)) else ():
            size += _bytes(text_of(getattr(call, "name", ""))) + _bytes(text_of(getattr(call, "arguments", "")))
    if message.opaque:
        size += _size_as_json(message.opaque)
    return TOKENS_PER_MESSAGE + parts * TOKENS_PER_IMAGE + -(-size // 4)


def _has_text(part: Any) -> bool:
    return isinstance(part.get("text") if isinstance(part, dict) else getattr(part, "text", part), str)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _size_as_json(value: Any) -> int:
    try:
        return len(json.dumps(value, ensure_ascii=False, default=str))
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way; it then counts as nothing
        return 0


def trim(messages: Sequence[ChatMessage], budget: int, counter: Counter = rough_tokens, *, pin: Pin = ()) -> Trimmed:
    """Leave out the oldest of a transcript until the rest is within a budget of tokens.

    What goes, goes whole. First exchanges, oldest first: a user message with everything up to the next one. Where the
    last exchange alone is too long, its older steps follow: an assistant message with all its results. System
    messages stay, and so do the last user message, the last step after it, and what is pinned together with its step
    and the user message it belongs to. A valid transcript stays valid; one that is not should be repaired before.

    That even the least does not fit is told in ``fits`` and is no error: counts are estimates as a rule, and what is
    left is still the best that can be asked with.

    Args:
        messages: The transcript, oldest first.
        budget: Tokens that the messages may have together; what tools and the reply need is to be taken off before.
        counter: Tokens of one message; it is called once for each.
        pin: What has to stay: places in the transcript (negative ones count from the end), or a function that says so
            of a message.

    Returns:
        What is kept and what was left out. A smaller budget never keeps what a larger one leaves out.

    Raises:
        ValueError: The budget or a count is negative, or a pinned place is outside of the transcript.
    """
    if not budget >= 0:
        raise ValueError("the budget must not be negative")
    counts = [counter(message) for message in messages]
    for index, count in enumerate(counts):
        if not count >= 0:
            raise ValueError(f"the counter gave {count!r} tokens for message {index}")
    pinned = _pinned(messages, pin)
    total = sum(counts)
    gone: set[int] = set()
    for step in _order(messages, pinned):
        if total <= budget:
            break
        gone.update(step)
        total -= sum(counts[index] for index in step)
    return Trimmed(
        tuple(message for index, message in enumerate(messages) if index not in gone),
        tuple(messages[index] for index in sorted(gone)),
        total,
        total <= budget,
    )


def _pinned(messages: Sequence[ChatMessage], pin: Pin) -> set[int]:
    if callable(pin):
        return {index for index, message in enumerate(messages) if pin(message)}
    length = len(messages)
    places = list(pin)
    for place in places:
        if not -length <= place < length:
            raise ValueError(f"message {place} can not be pinned: there are {length}")
    return {place % length for place in places}


def _order(messages: Sequence[ChatMessage], pinned: set[int]) -> Iterable[list[int]]:
    """What may go, in the order in which it goes; each entry goes whole."""
    exchanges = _exchanges(messages)
    for exchange in exchanges[:-1]:
        if any(index in pinned for step in exchange for index in step):
            yield from _steps(messages, exchange, pinned)
        else:
            yield [index for step in exchange for index in step]
    if exchanges:
        yield from _steps(messages, exchanges[-1][:-1], pinned)


def _exchanges(messages: Sequence[ChatMessage]) -> list[list[list[int]]]:
    """The places of all messages but the system's, in exchanges of steps: a message with the results that follow."""
    exchanges: list[list[list[int]]] = []
    for index, message in enumerate(messages):
        role = message.role
        if role == "system":
            continue
        if role == "user" or not exchanges:
            exchanges.append([[index]])
        elif role == "tool":
            exchanges[-1][-1].append(index)
        else:
            exchanges[-1].append([index])
    return exchanges


def _steps(messages: Sequence[ChatMessage], exchange: list[list[int]], pinned: set[int]) -> Iterable[list[int]]:
    """The steps of an exchange that may go while its question stays."""
    for step in exchange:
        if messages[step[0]].role != "user" and not any(index in pinned for index in step):
            yield step
