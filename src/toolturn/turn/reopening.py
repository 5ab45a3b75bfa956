"""How a turn that ended in an error, or was saved on its way, is continued."""

from __future__ import annotations

from collections.abc import Mapping

from ..limits import Limits, OnLimit
from ..messages import ToolDef
from ..results import Approval, ToolStatus
from .batch import ask_for_the_rest, look_for_approvals, settle, take_approvals
from .limiting import still_at
from .ops import ToolErrors, ToolTraits
from .saved import restore, state_of
from .state import State, closed

_UNSETTLED: frozenset[ToolStatus] = frozenset(("not_executed", "cancelled", "outcome_unknown"))


def reopen(
    turn: State,
    definitions: tuple[ToolDef, ...],
    traits: Mapping[str, ToolTraits],
    limits: Limits | None,
    on_limit: OnLimit | None,
    tool_errors: ToolErrors | None,
    approvals: Mapping[str, Approval | bool],
) -> None:
    """Put a turn back to where it can go on; see ``Turn.reopen``.

    Args:
        turn: The turn, which is changed.
        definitions: What the model is told of the tools.
        traits: What the machine has to know of them, by name.
        limits: New bounds; the old ones where None.
        on_limit: A new policy; the old one where None.
        tool_errors: A new policy; the old one where None.
        approvals: Decisions by the ids of the calls that wait for one, or by the names of their operations.

    Raises:
        ValueError: The turn has not begun, has its answer already, or stands at a limit that was not raised; or an
            approval is for no call that waits, or for another.
    """
    ending = turn._ending
    if turn.phase == "new":
        raise ValueError("this turn has not begun; there is nothing to resume")
    if ending is not None and ending.error is None:
        raise ValueError("this turn has its answer; there is nothing to resume")
    new = turn.limits if limits is None else limits
    at = ending.limit if ending is not None else None
    asks = at == "iterations" or (ending is not None and ending.rejected is not None)
    if asks and new.iterations <= turn.iterations:
        used = f"{turn.iterations} of {new.iterations} iterations"
        raise ValueError(f"the turn has used {used}; raise limits.iterations to resume")
    if (why := still_at(turn, at, new)) is not None:
        raise ValueError(why)
    forced_by = None if turn._limit is None else turn._limit.limit
    raised = new.iterations > turn.iterations and (
        forced_by in (None, "iterations") or still_at(turn, forced_by, new) is None
    )
    _check_approvals(turn, traits, approvals)
    turn.definitions = definitions
    turn.traits = traits
    turn._asks = any(trait.approval for trait in traits.values())
    turn.limits = new
    turn.on_limit = on_limit or turn.on_limit
    turn.tool_errors = tool_errors or turn.tool_errors
    turn._ending = None
    turn._exit = None
    turn._remaining = None
    if turn._calls:
        turn.phase = "tools"
        _reopen_calls(turn)
        look_for_approvals(turn)
        if approvals:
            take_approvals(turn, approvals)
        elif not turn._left:
            settle(turn)
    elif turn._limit is not None and at in (None, "deadline") and not raised:
        turn.phase = "forced"  # the forced call itself was cut short; it is asked again
    else:
        turn._limit = None
        turn.phase = "model"


def _reopen_calls(turn: State) -> None:
    turn._next = 0
    started = 0
    for place, (call, record) in enumerate(zip(turn._calls, turn._outcomes, strict=True)):
        if record is None and turn._started >> place & 1:
            record = turn._outcomes[place] = closed(turn, place, "outcome_unknown")  # whoever ran it is gone
        if record is None or record.status not in _UNSETTLED:
            continue
        traits = turn.traits.get(call.name) if isinstance(call.name, str) else None
        if record.status == "not_executed":
            turn._outcomes[place] = None
        elif traits is not None and traits.effect != "once":
            turn._outcomes[place] = None
            started |= 1 << place  # it may have had its effect before, which is told where it does not run again
    turn._started = started
    turn._left = turn._outcomes.count(None)
    turn._approvals = turn._approvals or [None] * len(turn._calls)


def _check_approvals(turn: State, traits: Mapping[str, ToolTraits], approvals: Mapping[str, Approval | bool]) -> None:
    """Refuse approvals that fit no call before anything is changed."""
    if not approvals:
        return
    copy = State(turn.turn_id)
    restore(copy, state_of(turn))
    copy.traits = traits
    ask_for_the_rest(copy)
    take_approvals(copy, approvals)
