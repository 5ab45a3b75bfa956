"""Limits: every bound of a turn, one frozen value, and what has been spent of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

OnLimit: TypeAlias = Literal["raise", "answer"]
"""At a limit: end with that limit's error, or make one last call in which tools are not allowed."""

DEFAULT_RESULT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound of one turn; ``None`` means no bound.

    Args:
        iterations: Model calls, the rejected ones included, a forced answer excluded; at least 1.
        tool_calls: Calls accepted from the model in the whole turn, unknown and invalid ones included.
        deadline: Seconds of driven time; time between a stop and a resume does not count.
        result_bytes: Bytes of UTF-8 of one tool result; longer text is cut in the middle and says so.

    Raises:
        ValueError: A bound is out of its range.
    """

    iterations: int = 4
    tool_calls: int = 16
    deadline: float | None = None
    result_bytes: int | None = DEFAULT_RESULT_BYTES

    def __post_init__(self) -> None:
        for name in ("iterations", "tool_calls"):
            if type(getattr(self, name)) is not int:
                raise ValueError(f"limits.{name} must be a whole number")
        if self.iterations < 1:
            raise ValueError("max_iterations must be at least 1")
        if self.tool_calls < 0:
            raise ValueError("max_tool_calls must not be negative")
        if self.deadline is not None and not (type(self.deadline) in (int, float) and 0 < self.deadline < math.inf):
            raise ValueError("the deadline must be a positive number of seconds")
        if self.result_bytes is not None and type(self.result_bytes) is not int:
            raise ValueError("limits.result_bytes must be a whole number")
        if self.result_bytes is not None and self.result_bytes < 256:
            raise ValueError("result_bytes must be at least 256")


_LEAST_SHOWN = 40


def cap_text(text: str, limit: int | None) -> str:
    """Return the text, cut in the middle to at most ``limit`` bytes with a marker that says how to narrow.

    Args:
        text: A tool's result.
        limit: Bytes of UTF-8, at least 256, or None for no bound.

    Returns:
        The same object where it fits.
    """
    if limit is None or len(text) * 4 <= limit:
        return text
    # a lone surrogate can not be encoded; it is replaced where it is shown to a model
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size <= limit:
        return text
    marker = f"\n[… cut: the result has {size} bytes, {limit} are shown at most; ask for a smaller part of it …]\n"
    room = limit - len(marker.encode())
    data = text.encode("utf-8", "replace")
    head = max(_LEAST_SHOWN, room * 3 // 4)
    tail = max(0, room - head)
    first = data[:head].decode("utf-8", "ignore")
    last = data[len(data) - tail :].decode("utf-8", "ignore") if tail else ""
    return first + marker + last
