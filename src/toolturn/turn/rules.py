"""How a response is judged: accepted or refused as a whole, before anything of it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..codec import dumps, plain
from ..errors import (
    ToolLoopDirectReturnError,
    ToolLoopEmptyResponseError,
    ToolLoopError,
    ToolLoopFilteredResponseError,
    ToolLoopMalformedResponseError,
    ToolLoopTokenLimitError,
    ToolLoopToolCallLimitError,
    ToolLoopTruncatedResponseError,
)
from ..limits import Limits
from ..messages import ChatResponse, ToolCall, text_of
from .ops import ToolTraits


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a response is refused.

    Args:
        error: The class of the exit.
        text: One sentence for people.
        limit: The limit it would have passed, where that is the reason.
        nudge: What the model is told where the turn asks it once more.
    """

    error: type[ToolLoopError]
    text: str
    limit: str | None = None
    nudge: str = ""


TRUNCATED = Refusal(ToolLoopTruncatedResponseError, "model response was truncated")
FILTERED = Refusal(ToolLoopFilteredResponseError, "model response was filtered or refused by the provider")
BROKEN_CALL = Refusal(
    ToolLoopMalformedResponseError,
    "the provider reported a malformed tool call",
    nudge="Your tool call could not be read. Call the tool again with valid JSON arguments, or answer in plain text.",
)
NO_CALLS = Refusal(
    ToolLoopMalformedResponseError,
    "model reported tool calls without returning any calls",
    nudge="You announced a tool call but made none. Call the tool now, or answer in plain text.",
)
NOT_A_CALL = Refusal(ToolLoopMalformedResponseError, "tool calls must be ToolCall objects")
BLANK_ID = Refusal(ToolLoopMalformedResponseError, "tool-call IDs must be non-empty strings")
REPEATED_ID = Refusal(ToolLoopMalformedResponseError, "tool-call IDs must be unique within a turn")
MIXED_DIRECT = Refusal(ToolLoopDirectReturnError, "a direct-return tool must be the only call in its model batch")
EMPTY = Refusal(
    ToolLoopEmptyResponseError,
    "model returned neither tool calls nor a final answer",
    nudge="Your reply was empty. Answer the user in plain text, or call a tool.",
)
UNCOUNTED = Refusal(
    ToolLoopTokenLimitError,
    "the model did not tell what its reply used, so the limit of tokens or cost could not be kept",
)

# Every other reason is neutral: calls beat "stop", and an unknown word says nothing.
REASONS: Mapping[str, Refusal] = {
    "length": TRUNCATED,
    "max_tokens": TRUNCATED,
    "max_output_tokens": TRUNCATED,
    "incomplete": TRUNCATED,
    "content_filter": FILTERED,
    "content_filtered": FILTERED,
    "safety": FILTERED,
    "refusal": FILTERED,
    "malformed_function_call": BROKEN_CALL,
}
_NEUTRAL = ("stop", "tool_calls", None)  # compared, not hashed: a provider may send anything


def judge(
    response: ChatResponse,
    traits: Mapping[str, ToolTraits],
    seen: set[Any],
    accepted: int,
    limits: Limits,
    used: Mapping[str, int] | None = None,
) -> Refusal | None:
    """Return why the response is refused, or None when it may enter the transcript.

    The order of the checks is part of the contract: truncated or filtered, calls announced but absent, ids, a
    direct-return tool beside others, the budget of all calls, that of a single tool, nothing at all.

    Args:
        response: What the model sent.
        traits: The traits of the tools by name.
        seen: The ids of the turn so far; those of an accepted batch are added.
        accepted: Calls accepted so far.
        limits: The bounds.
        used: Calls accepted so far by the name of the tool, where there are bounds of single tools.
    """
    calls = response.tool_calls
    reason = response.finish_reason
    if reason not in _NEUTRAL and (found := refusal_of(reason)) is not None:
        return found
    if not calls:
        if reason == "tool_calls":
            return NO_CALLS
        content = response.content
        text = content if type(content) is str else text_of(content)
        return None if text.strip() else EMPTY
    if not isinstance(calls, (list, tuple)):
        return NOT_A_CALL
    if len(calls) == 1 and type(calls[0]) is ToolCall and type(call_id := calls[0].id) is str and call_id.strip():
        # by far the most common batch, and nothing else can be wrong with it
        if call_id in seen:
            return REPEATED_ID
        if accepted >= limits.tool_calls:
            return over_budget(limits)
        if limits.per_tool and (over := _over_own_budget(calls, used or {}, limits)) is not None:
            return over
        seen.add(call_id)
        return None
    batch: set[Any] = set()
    direct = False
    for call in calls:
        if not isinstance(call, ToolCall):
            return NOT_A_CALL
        call_id = call.id
        if not isinstance(call_id, str) or not call_id.strip():
            return BLANK_ID
        batch.add(call_id)
        if isinstance(call.name, str) and (trait := traits.get(call.name)) is not None and trait.return_direct:
            direct = True
    if len(batch) != len(calls) or not seen.isdisjoint(batch):
        return REPEATED_ID
    if direct and len(calls) != 1:
        return MIXED_DIRECT
    if accepted + len(calls) > limits.tool_calls:
        return over_budget(limits)
    if limits.per_tool and (over := _over_own_budget(calls, used or {}, limits)) is not None:
        return over
    seen |= batch
    return None


def over_budget(limits: Limits) -> Refusal:
    """Return the refusal of a batch that would pass the limit of tool calls."""
    return Refusal(
        ToolLoopToolCallLimitError,
        f"model batch would exceed the {limits.tool_calls} tool-call limit",
        "tool_calls",
    )


def _over_own_budget(calls: Iterable[ToolCall], used: Mapping[str, int], limits: Limits) -> Refusal | None:
    # one notion of a limit: such a batch is refused as a whole like one over the budget of all calls
    made = dict(used)
    for call in calls:
        name = call.name
        if not isinstance(name, str) or name not in limits.per_tool:
            continue
        made[name] = made.get(name, 0) + 1
        if made[name] > limits.per_tool[name]:
            text = f"model batch would exceed the limit of {limits.per_tool[name]} calls of {name}"
            return Refusal(ToolLoopToolCallLimitError, text, f"per_tool.{name}")
    return None


def refusal_of(reason: object) -> Refusal | None:
    """Return the refusal that a finish reason alone asks for, or None where it is neutral.

    Args:
        reason: Whatever the provider gave as the reason.
    """
    return REASONS.get(reason.strip().lower()) if isinstance(reason, str) else None


def owned_calls(calls: list[ToolCall] | None) -> list[ToolCall] | None:
    """Return the transcript's own copy of a call list, in which names and arguments are text.

    Args:
        calls: The list of the response, which stays the caller's.
    """
    if calls is None:
        return None
    return [call if type(call.name) is str and type(call.arguments) is str else _as_text(call) for call in calls]


def _as_text(call: ToolCall) -> ToolCall:
    # The call itself is refused when it runs; only its place in the transcript has to be one a provider takes.
    name: Any = call.name
    arguments: Any = call.arguments
    return ToolCall(
        call.id,
        name if isinstance(name, str) else dumps(plain(name)),
        arguments if isinstance(arguments, str) else dumps(plain(arguments)),
    )
