"""Whether a model makes progress: the same call with the same result again and again is told it once, then ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    "\n[This is the same result of the same call, {count} times in a row. Calling it again will not change it: "
    "do something else, or answer.]"
)


def repetitions(
    batch: Sequence[ToolCallRecord], traits: Mapping[str, ToolTraits], before: Mapping[str, int]
) -> list[tuple[ToolCallRecord, str, int]]:
    """Return of each call of a batch what it is recognised by, and in how many batches in a row it came.

    Equal calls within a batch count once: the model had not seen the result when it made them.

    Args:
        batch: The finished batch.
        traits: The traits of the tools by name.
        before: The counts after the batch before.
    """
    from hashlib import sha256  # most turns need none

    made = []
    for record in batch:
        name: Any = record.call.name
        trait = traits.get(name) if isinstance(name, str) else None
        if trait is not None and trait.repeats:
            continue
        key = record.loop_key if record.loop_key is not None else _arguments(record.call)
        given: Any = record.message.content
        if isinstance(given, (list, tuple)):  # another image is another result
            given = message_to_dict(record.message)["content"]
        text = dumps([plain(name), key, given if isinstance(given, list) else text_of(given)])
        mark = sha256(text.encode()).hexdigest()[:32]
        made.append((record, mark, before.get(mark, 0) + 1))
    return made


def _arguments(call: ToolCall) -> str:
    try:
        return dumps(plain(_sorted(parse_arguments(call.arguments))))
    except InvalidToolArguments:
        return dumps(plain(call.arguments))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


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
    text = f"the model called {plain(record.call.name)} {count} times in a row with the same arguments and result"
    return Refusal(ToolLoopRepeatError, text, "repeats")
