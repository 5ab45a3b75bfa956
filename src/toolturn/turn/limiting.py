"""What a turn has left, and when it stands at a limit: no call starts at or over one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import (
    ToolLoopCostLimitError,
    ToolLoopDeadlineError,
    ToolLoopError,
    ToolLoopIterationLimitError,
    ToolLoopTokenLimitError,
)
from ..limits import Limits, Remaining
from ..messages import ChatResponse, ToolCall, Usage
from .ending import Ending
from .rules import Refusal
from .state import State

SPENT: Mapping[str, type[ToolLoopError]] = {
    "tokens": ToolLoopTokenLimitError,
    "cost": ToolLoopCostLimitError,
    "deadline": ToolLoopDeadlineError,
}
"""The limits at which nothing more may start, not even a last answer."""


def spent_out(turn: State) -> Refusal | None:
    """Return the limit at which nothing more may start, or None.

    Args:
        turn: The turn.
    """
    limits = turn.limits
    if limits.deadline is not None and turn.seconds >= limits.deadline:
        return refusal_at("deadline", limits)
    if limits.tokens is not None and turn.usage.total >= limits.tokens:
        return refusal_at("tokens", limits)
    if limits.cost is not None and turn.usage.cost >= limits.cost:
        return refusal_at("cost", limits)
    return None


def no_room(turn: State) -> Refusal | None:
    """Return the limit that a turn which wants an answer stands at before a model call, or None.

    Of tokens and cost as much is kept for the last answer as the call before took: a further call takes at least
    that, since the transcript only grows.

    Args:
        turn: The turn.
    """
    limits = turn.limits
    if turn.iterations >= limits.iterations:
        return refusal_at("iterations", limits)
    if turn.on_limit == "answer" and (last := turn._last) is not None:
        if limits.tokens is not None and limits.tokens - turn.usage.total < 2 * last.total:
            return refusal_at("tokens", limits)
        if limits.cost is not None and limits.cost - turn.usage.cost < 2 * last.cost:
            return refusal_at("cost", limits)
    return None


def reach(turn: State, limit: Refusal, rejected: ChatResponse | None) -> None:
    """Let a turn stand at a limit: it asks for a last answer where one can still be had, or ends.

    Args:
        turn: The turn.
        limit: The limit.
        rejected: The reply that would have passed it, where one was.
    """
    possible = turn.typed or not turn.required  # a tool that the turn has to end in can not run any more
    if turn.on_limit == "answer" and possible and spent_out(turn) is None:
        turn._limit = limit
        turn.phase = "forced"
    else:
        turn._end(Ending(limit.error, limit.text, rejected, limit=limit.limit))


def refusal_at(limit: str, limits: Limits) -> Refusal:
    """Return what the turn ends with at this limit.

    Args:
        limit: ``iterations``, ``deadline``, ``tokens`` or ``cost``.
        limits: The bounds.
    """
    match limit:
        case "iterations":
            text = f"model did not produce a final answer within {limits.iterations} iterations"
            return Refusal(ToolLoopIterationLimitError, text, limit)
        case "deadline":
            text = f"the turn did not finish within {limits.deadline} seconds"
        case "tokens":
            text = f"the turn has used up its {limits.tokens} tokens"
        case _:
            text = f"the turn has used up what it may cost, {limits.cost}"
    return Refusal(SPENT[limit], text, limit)


def remaining(turn: State, call: ToolCall) -> Remaining:
    """Return what is left to a turn when a call is handed out.

    Of tokens and cost it is what was left when the batch was accepted: what turns inside its calls use meanwhile is
    counted by who runs them.

    Args:
        turn: The turn.
        call: The call.
    """
    limits, usage = turn.limits, turn.usage
    left = turn._remaining
    if left is None:
        left = turn._remaining = Remaining(
            limits.iterations - turn.iterations,
            limits.tool_calls - turn._accepted,
            None if limits.tokens is None else max(0, limits.tokens - usage.total),
            None if limits.cost is None else max(0.0, limits.cost - usage.cost),
        )
    own = limits.per_tool.get(call.name) if isinstance(call.name, str) else None
    return replace(
        left,
        seconds=None if limits.deadline is None else max(0.0, limits.deadline - turn.seconds),
        this_tool=None if own is None else own - calls_by_name(turn)[call.name],
    )


def calls_by_name(turn: State) -> dict[str, int]:
    """Return how many calls of each tool the turn has accepted.

    Args:
        turn: The turn.
    """
    made: dict[str, int] = {}
    for call in (*(record.call for record in turn._records), *turn._calls):
        if isinstance(call.name, str):
            made[call.name] = made.get(call.name, 0) + 1
    return made


def still_at(turn: State, at: str | None, new: Limits) -> str | None:
    """Return why a turn that stands at a limit can not go on under new limits, or None.

    Args:
        turn: The turn, under its old limits.
        at: The limit it stands at.
        new: The new limits.
    """
    old, used = turn.limits, turn.usage
    if at == "tool_calls" and new.tool_calls <= old.tool_calls:
        return f"the turn stands at the limit of {new.tool_calls} tool calls; raise limits.tool_calls to resume"
    if at is not None and at.startswith("per_tool."):
        name = at.removeprefix("per_tool.")
        if new.per_tool.get(name, new.tool_calls) <= old.per_tool.get(name, 0):
            return f"the turn stands at the limit of calls of {name}; raise limits.per_tool to resume"
    if at == "repeats" and _not_raised(old.repeats, new.repeats):
        return f"the turn stands at the limit of {new.repeats} equal calls; raise limits.repeats to resume"
    late = at == "deadline" and _not_raised(old.deadline, new.deadline)
    if new.deadline is not None and (late or turn.seconds >= new.deadline):
        return f"the turn has used {turn.seconds:.1f} of {new.deadline} seconds; raise limits.deadline to resume"
    if new.tokens is not None and ((at == "tokens" and _not_raised(old.tokens, new.tokens)) or _over(used, new)):
        return f"the turn has used {used.total} of {new.tokens} tokens; raise limits.tokens to resume"
    if new.cost is not None and ((at == "cost" and _not_raised(old.cost, new.cost)) or used.cost >= new.cost):
        return f"the turn has cost {used.cost:g} of {new.cost:g}; raise limits.cost to resume"
    return None


def _not_raised(old: float | None, new: float | None) -> bool:
    return old is not None and new is not None and new <= old


def _over(used: Usage, new: Limits) -> bool:
    return new.tokens is not None and used.total >= new.tokens
