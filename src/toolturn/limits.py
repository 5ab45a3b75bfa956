"""Limits: every bound of a turn, one frozen value, what is left of it, and the worst that can come of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from .frozen import frozen
from .messages import Usage

OnLimit: TypeAlias = Literal["raise", "answer"]
"""At a limit: end with that limit's error, or make one last call in which tools are not allowed."""

DEFAULT_RESULT_BYTES = 64 * 1024


@frozen
class Remaining:
    """What is left to a turn; ``None`` where it has no such bound.

    Args:
        iterations: Model calls that may still be made.
        tool_calls: Calls that may still be accepted from the model.
        tokens: Tokens of input and output.
        cost: In the unit of the price.
        seconds: Seconds of driven time.
        this_tool: Calls of the tool that is asked about, after the batch it is called in.
    """

    iterations: int
    tool_calls: int
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    this_tool: int | None = None


@frozen
class WorstCase:
    """The most that a turn within its limits can come to; ``None`` where it is not bounded.

    Args:
        model_calls: Replies asked for, a forced answer included.
        tool_calls: Calls that run.
        tokens: Tokens of all model calls, those of turns inside its tools included.
        cost: What they cost.
        seconds: Seconds of driven time.
        result_bytes: Bytes of all tool results together.
    """

    model_calls: int
    tool_calls: int
    tokens: int | None
    cost: float | None
    seconds: float | None
    result_bytes: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound of one turn; ``None`` means no bound.

    Args:
        iterations: Model calls, the rejected ones included, a forced answer excluded; at least 1.
        tool_calls: Calls accepted from the model in the whole turn, unknown and invalid ones included.
        deadline: Seconds of driven time; time between a stop and a resume does not count.
        result_bytes: Bytes of UTF-8 of one tool result; longer text is cut in the middle and says so.
        tokens: Tokens of input and output of all model calls, those of turns inside a tool included.
        cost: What they may cost, in the unit of the ``price`` that the turn is run with.
        per_tool: Calls accepted of single tools in the whole turn, by the names the model calls them by.
        repeats: How often the same call may give the same result, with nothing new between; the last time the model
            is told so, and the next one is the limit. At least 2.

    Raises:
        ValueError: A bound is out of its range.
    """

    iterations: int = 4
    tool_calls: int = 16
    deadline: float | None = None
    result_bytes: int | None = DEFAULT_RESULT_BYTES
    tokens: int | None = None
    cost: float | None = None
    per_tool: Mapping[str, int] = field(default_factory=dict, hash=False)
    repeats: int | None = None
    spending: bool = field(init=False, repr=False, compare=False)
    """Whether there is a bound that grows with use: of tokens, cost or time."""

    def __post_init__(self) -> None:
        for name in ("iterations", "tool_calls"):
            if type(getattr(self, name)) is not int:
                raise ValueError(f"limits.{name} must be a whole number")
        if self.iterations < 1:
            raise ValueError("max_iterations must be at least 1")
        if self.tool_calls < 0:
            raise ValueError("max_tool_calls must not be negative")
        if self.deadline is not None and not _positive(self.deadline):
            raise ValueError("the deadline must be a positive number of seconds")
        if self.result_bytes is not None and type(self.result_bytes) is not int:
            raise ValueError("limits.result_bytes must be a whole number")
        if self.result_bytes is not None and self.result_bytes < 256:
            raise ValueError("result_bytes must be at least 256")
        if self.tokens is not None and (type(self.tokens) is not int or self.tokens < 1):
            raise ValueError("limits.tokens must be a whole number of at least 1")
        if self.cost is not None and not _positive(self.cost):
            raise ValueError("limits.cost must be a positive number")
        if self.repeats is not None and (type(self.repeats) is not int or self.repeats < 2):
            raise ValueError("limits.repeats must be a whole number of at least 2")
        if not isinstance(self.per_tool, Mapping) or not all(
            isinstance(name, str) and type(most) is int and most >= 0 for name, most in self.per_tool.items()
        ):
            raise ValueError("limits.per_tool must give a whole number of at least 0 for each name of a tool")
        object.__setattr__(self, "per_tool", dict(self.per_tool))  # a copy of our own, which can be pickled
        bounded = not (self.tokens is None and self.cost is None and self.deadline is None)
        object.__setattr__(self, "spending", bounded)

    def within(self, left: Remaining, used: Usage | None = None, seconds: float = 0.0) -> Limits:
        """Return these limits, narrowed to what is left to the turn that this one runs inside of.

        What is shared is what is spent: tokens, cost and time. Iterations and calls are each turn's own.

        Args:
            left: What is left to the outer turn.
            used: What this turn has used before, where it is resumed.
            seconds: How long it was driven before.
        """
        used = Usage() if used is None else used
        tokens = None if left.tokens is None else used.total + max(1, left.tokens)
        cost = None if left.cost is None else used.cost + max(_LEAST, left.cost)
        deadline = None if left.seconds is None else seconds + max(_LEAST, left.seconds)
        return replace(
            self,
            tokens=_least(self.tokens, tokens),
            cost=_least(self.cost, cost),
            deadline=_least(self.deadline, deadline),
        )

    def worst_case(
        self, largest: Usage | None = None, *, on_limit: OnLimit = "answer", at_once: int = 1, grace: float = 5.0
    ) -> WorstCase:
        """Return the most that a turn within these limits can come to.

        No call starts at or over a limit, so tokens and cost are exceeded by what is under way at that moment: one
        reply, or one of each turn that tools run at once. At its deadline what runs is cancelled and has its grace.

        Args:
            largest: The most that one model call can use: at most the model's window.
            on_limit: The policy of the turn.
            at_once: How many model calls can be under way at once: 1, or as many as there are turns inside tools.
            grace: Seconds that a cancelled call has to clean up.
        """
        over = Usage() if largest is None else largest
        return WorstCase(
            self.iterations + (on_limit == "answer"),
            self.tool_calls,
            None if self.tokens is None else self.tokens - 1 + at_once * over.total,
            None if self.cost is None else self.cost + at_once * over.cost,
            None if self.deadline is None else self.deadline + grace,
            None if self.result_bytes is None else self.result_bytes * self.tool_calls,
        )


_LEAST = 1e-9  # a bound of its own: what is left may be nothing at all, but a limit is positive


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and type(value) is not bool and 0 < value < math.inf


def _least(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else min(first, second)


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
