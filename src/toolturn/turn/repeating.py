"""Whether a model makes progress: the same call with the same result again and again is told it once, then ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..arguments import parse_arguments
from ..codec import dumps, message_to_dict, plain
from ..content import bounded
from ..errors import InvalidToolArguments, ToolLoopRepeatError
from ..limits import Limits, cap_text
from ..messages import Content, TextPart, ToolCall, text_of
from ..results import ToolCallRecord
from .ops import ToolTraits
from .rules import Refusal

HINT = (
    "\n[This is the same result of the same call, {count} times now. Calling it again will not change it: "
    "do something else, or answer.]"
)


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Repeats:
    """What a turn remembers of the calls it has made.

    Args:
        counts: How often each call came with the same result since the model last did something new.
        last: Those of the batch before.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    last: tuple[str, ...] = ()


def repetitions(
    batch: Sequence[ToolCallRecord], traits: Mapping[str, ToolTraits], before: Repeats
) -> tuple[list[tuple[ToolCallRecord, int]], Repeats]:
    """Return of each call of a batch how often it has come, and what is to be remembered.

    A call counts on from batch to batch, and over batches between as long as those held nothing new either: going in
    circles is no progress. Equal calls within a batch count once: the model had not seen the result when it made them.

    Args:
        batch: The finished batch.
        traits: The traits of the tools by name.
        before: What was remembered after the batch before.
    """
    marked = [(record, mark) for record in batch if (mark := _mark(record, traits))]
    something_new = any(mark not in before.counts for _, mark in marked)
    counts = dict.fromkeys(before.counts, 0) if something_new else dict(before.counts)
    for mark in {mark for _, mark in marked}:
        counts[mark] = 1 + (before.counts[mark] if mark in before.last else counts.get(mark, 0))
    now = Repeats(counts, tuple(dict.fromkeys(mark for _, mark in marked)))
    return [(record, counts[mark]) for record, mark in marked], now


def _mark(record: ToolCallRecord, traits: Mapping[str, ToolTraits]) -> str:
    """What a call and its result are recognised by; nothing for a tool that is meant to be called again."""
    from hashlib import sha256  # most turns need none

    name: Any = record.call.name
    trait = traits.get(name) if isinstance(name, str) else None
    if trait is not None and trait.repeats:
        return ""
    key = record.loop_key if record.loop_key is not None else _arguments(record.call)
    given: Any = record.message.content
    if isinstance(given, (list, tuple)):  # another image is another result
        given = message_to_dict(record.message)["content"]
    if type(given) is str and type(name) is str:  # as almost always
        text = f"{len(name)},{len(key)},{name}{key}{given}"
    else:
        text = dumps([plain(name), key, given if isinstance(given, list) else text_of(given)])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _arguments(call: ToolCall) -> str:
    try:
        return _canonical(parse_arguments(call.arguments))  # which has JSON's own types only
    except InvalidToolArguments:
        return dumps(plain(call.arguments))


def with_hint(record: ToolCallRecord, count: int, limits: Limits) -> ToolCallRecord:
    """Return the record with a result that says how often it has come.

    Args:
        record: The call and its result.
        count: How often.
        limits: The bounds; the hint stays within that of results.
    """
    message = record.message
    hint = HINT.format(count=count)
    content: Content
    if isinstance(message.content, (list, tuple)):
        content = bounded([*message.content, TextPart(hint)], limits.result_bytes)
    else:
        content = cap_text(text_of(message.content) + hint, limits.result_bytes)
    return replace(record, message=replace(message, content=content))


def refusal_of_repeats(record: ToolCallRecord, count: int) -> Refusal:
    """Return what a turn ends with whose model does not stop to repeat itself.

    Args:
        record: The call.
        count: How often it has come.
    """
    text = f"the model called {plain(record.call.name)} {count} times with the same arguments and result"
    return Refusal(ToolLoopRepeatError, text, "repeats")
