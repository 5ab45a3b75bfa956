"""A turn inside a tool spends what the turn around it has left, and is charged to it.

Each running tool call has a :class:`Budget` in a context variable. A turn that begins while one is there is narrowed to
what is left (:func:`inherited`), asks it before each model call, and tells it what the reply used. A handler needs to
do nothing for that, and a blocking one in a thread has the same context variable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter
from typing import TypeAlias

from .limits import Limits, Remaining
from .messages import Usage
from .turn import CallTool

Price: TypeAlias = Callable[[Usage], float]
"""What the tokens of one reply cost."""

_lock = threading.Lock()  # turns inside blocking tools run in other threads


class Ledger:
    """What turns inside the tools of one performer have used.

    Args:
        price: What a reply costs, also in turns inside that have no price of their own.
    """

    __slots__ = ("batches", "price")

    def __init__(self, price: Price | None) -> None:
        self.price = price
        self.batches: dict[str, Usage] = {}


class Budget:
    """What one running call may spend through turns inside it.

    Args:
        op: The call.
        ledger: Of who runs it; calls of the same batch share it.
        began: When it began, on the clock of ``perf_counter``.
    """

    __slots__ = ("_began", "_ledger", "_op", "closed", "outer", "usage")

    def __init__(self, op: CallTool, ledger: Ledger, began: float) -> None:
        self._op = op
        self._ledger = ledger
        self._began = began
        self.outer = running.get()
        self.usage: Usage | None = None
        self.closed = False

    @property
    def price(self) -> Price | None:
        """The price of the turn."""
        return self._ledger.price

    @property
    def _batch(self) -> str:
        return self._op.key.rpartition(".")[0]

    def charge(self, usage: Usage) -> None:
        """Count what a reply used, here and in all that is around."""
        budget: Budget | None = self
        with _lock:
            while budget is not None:
                budget.usage = usage if budget.usage is None else budget.usage + usage
                batches, batch = budget._ledger.batches, budget._batch
                batches[batch] = batches[batch] + usage if batch in batches else usage
                budget = budget.outer

    def left(self) -> Remaining:
        """Return what is left at this moment; calls beside this one have spent of it too."""
        left = self._op.remaining
        spent = self._ledger.batches.get(self._batch)
        tokens, cost, seconds = left.tokens, left.cost, left.seconds
        if spent is not None:
            tokens = None if tokens is None else max(0, tokens - spent.total)
            cost = None if cost is None else max(0.0, cost - spent.cost)
        if seconds is not None:
            seconds = max(0.0, seconds - (perf_counter() - self._began))
        return Remaining(left.iterations, left.tool_calls, tokens, cost, seconds, left.this_tool)

    def used_up(self) -> str | None:
        """Return the limit, here or around, at which no call of a turn inside may start, or None."""
        budget: Budget | None = self
        while budget is not None:
            left = budget.left()
            if left.tokens is not None and left.tokens <= 0:
                return "tokens"
            if left.cost is not None and left.cost <= 0:
                return "cost"
            budget = budget.outer
        return None


running: ContextVar[Budget | None] = ContextVar("toolturn_running_call", default=None)
"""The budget of the call that runs here."""


def current() -> Budget | None:
    """Return the budget of the innermost call that runs here; what outlived its call belongs to it no more."""
    budget = running.get()
    while budget is not None and budget.closed:
        budget = budget.outer
    return budget


def inherited(limits: Limits, used: Usage | None = None, seconds: float = 0.0) -> Limits:
    """Return the limits of a turn that begins or goes on here, narrowed to what the turn around it has left.

    Args:
        limits: Its own.
        used: What it has used before, where it is resumed.
        seconds: How long it was driven before.
    """
    budget = current()
    while budget is not None:
        limits = limits.within(budget.left(), used, seconds)
        budget = budget.outer
    return limits


def price_of(price: Price | None, limits: Limits) -> Price | None:
    """Return the price a turn runs with: its own, or that of the turn around it.

    Args:
        price: Its own.
        limits: Its limits.

    Raises:
        ValueError: What it costs is limited, and there is no price.
    """
    budget = current()
    while price is None and budget is not None:
        price, budget = budget.price, budget.outer
    if price is None and limits.cost is not None:
        raise ValueError("limits.cost needs a price: pass price=, a function of a reply's Usage")
    return price
