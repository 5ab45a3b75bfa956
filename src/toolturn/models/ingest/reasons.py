"""Why a reply ended: the spellings of many providers, folded to the words the rules of a turn know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from ...turn.rules import REASONS

# What the rules know under another name. A word that is in neither table is neutral.
_ALIASES = {
    "model_length": "length",
    "max_length": "length",
    "token_limit": "length",
    "max_new_tokens": "length",
    "max_completion_tokens": "length",
    "model_context_window_exceeded": "length",
    "context_length_exceeded": "length",
    "truncated": "length",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "image_safety": "content_filter",
    "guardrail_intervened": "content_filter",
    "guardrails": "content_filter",
    "moderation": "content_filter",
    "blocked": "content_filter",
    "sensitive": "content_filter",
    "refused": "refusal",
    "malformed_tool_call": "malformed_function_call",
    "malformed_tool_use": "malformed_function_call",
    "malformed_model_output": "malformed_function_call",
    "unexpected_tool_call": "malformed_function_call",
    "invalid_function_call": "malformed_function_call",
}
_ANNOUNCING = {"toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls", "completetoolcalls"}
_WASTE = re.compile(r"[^a-z]")
_LONGEST = 100


def _fold(word: str) -> str:
    # "MAX_TOKENS", "max-tokens", "FinishReason.MAX_TOKENS" and "FINISH_REASON_MAX_TOKENS" are one word
    folded = _WASTE.sub("", word[:_LONGEST].lower())
    return folded.removeprefix("finishreason").removeprefix("stopreason") or folded


_REFUSED = {_fold(word): word for word in REASONS} | {_fold(word): known for word, known in _ALIASES.items()}


def reason_of(given: Any) -> str | None:
    """Return a finish reason as text, whatever form it has; None where it is no word.

    Args:
        given: Text, a member of an enumeration, or an object with ``reason`` or ``type``.
    """
    if given is None:
        return None
    if isinstance(given, Enum):
        given = given.value if isinstance(given.value, str) else given.name
    if isinstance(given, str):
        return given if type(given) is str else str.__str__(given)
    if isinstance(given, Mapping):
        for key in ("reason", "type"):
            if isinstance(word := given.get(key), str):
                return word
    return None


def known_reason(reason: str | None) -> str | None:
    """Return the word of the rules for a reason under which nothing may run; None for every other reason.

    Args:
        reason: The reason as text.
    """
    if reason is None:
        return None
    return _REFUSED.get(_fold(reason))


def rules_know(reason: str | None) -> bool:
    """Return whether the rules of a turn know a reason as it is written.

    Args:
        reason: The reason as text.
    """
    return reason is not None and reason.strip().lower() in REASONS


def announces_calls(reason: str | None) -> bool:
    """Return whether a reason says that there are calls.

    Args:
        reason: The reason as text.
    """
    return reason is not None and _fold(reason) in _ANNOUNCING
