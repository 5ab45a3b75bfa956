"""The tokens of a reply, in the spellings of the usual providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...messages import Usage

_SPELLINGS = {
    "input": ("input", "input_tokens", "prompt_tokens", "promptTokenCount", "inputTokens"),
    "output": ("output", "output_tokens", "completion_tokens", "candidatesTokenCount", "outputTokens"),
    "cached": ("cached", "cached_tokens", "cache_read_input_tokens", "cachedContentTokenCount"),
    "reasoning": ("reasoning", "reasoning_tokens", "thoughtsTokenCount"),
}
_MOST = 10**15  # tokens beyond this are no count


def usage_of(given: Any) -> Usage | None:
    """Return a usage of any form; a count that is none is 0, and a form that is not known is None.

    Args:
        given: A Usage whose counts may be anything, a mapping, or an object of a provider's library.
    """
    counts = {}
    for name, keys in _SPELLINGS.items():
        found = [value for key in keys if _is_count(value := _field(given, key))]
        if found:
            counts[name] = found[0]
    return Usage(**counts) if counts or isinstance(given, Usage) else None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _field(given: Any, key: str) -> Any:
    try:
        return given.get(key) if isinstance(given, Mapping) else getattr(given, key, None)
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way
        return None
