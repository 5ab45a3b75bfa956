"""Which regular expressions can be handed to other engines."""

from __future__ import annotations

import re
from collections.abc import Callable

_OWN_WAYS = re.compile(r"\(\?(?!:)|\\[1-9]|\\k|\\[AZzGbBpPQE]|[*+?}]\+")
_NOT_SIMPLE = re.compile(r"\\[A-Za-z0-9]|\(\?")


def _portable(pattern: str) -> bool:
    return _OWN_WAYS.search(pattern) is None and _compiles(pattern)


def _simple(pattern: str) -> bool:
    return (
        pattern.startswith("^") and pattern.endswith("$") and _NOT_SIMPLE.search(pattern) is None and _compiles(pattern)
    )


def _compiles(pattern: str) -> bool:
    if len(pattern) > 500:
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


PATTERNS: dict[str, Callable[[str], bool]] = {
    "any": _compiles,
    "portable": _portable,
    "simple": _simple,
    "none": lambda pattern: False,
}
"""The kinds of :class:`Profile.patterns`, each with what tells whether a pattern is of it."""
