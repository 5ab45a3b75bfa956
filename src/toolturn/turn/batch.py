"""The batch under way: what is approved, which calls may run now, and what the open ones look like meanwhile.

A batch is decided as a whole, before any effect: all its approvals are gathered before the first of its tools runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..content import as_text
from ..errors import ToolLoopApprovalRequired
from ..messages import ChatMessage, ToolCall, text_of
from ..results import Approval, ToolCallRecord
from ..transcript import closing_content
from . import limiting, repeating
from .ending import Ending
from .ops import ApprovalPending, AskApproval, CallTool, Outcome, ToolTraits, digest_of
from .rules import Refusal
from .state import State


def accept(turn: State, calls: list[ToolCall]) -> None:
    """Take a batch that was judged good.

    Args:
        turn: The turn.
        calls: At least one.
    """
    turn._calls = list(calls)
    turn._outcomes = [None] * len(calls)
    turn._left = len(calls)
    turn._next = 0
    turn._started = 0
    turn._remaining = None
    turn._accepted += len(calls)
    turn.phase = "tools"
    if turn._asks:
        turn._approvals = [None] * len(calls)
        look_for_approvals(turn)


def traits_of(turn: State, call: ToolCall) -> ToolTraits | None:
    """Return what the turn knows of the tool that a call names."""
    return turn.traits.get(call.name) if isinstance(call.name, str) else None


# --- approval ----------------------------------------------------------------------------


def look_for_approvals(turn: State) -> None:
    """Have the turn wait for the approval of each open call that needs one and has none.

    Args:
        turn: The turn, whose tools may be others than when the batch was accepted.
    """
    for place, (call, outcome) in enumerate(zip(turn._calls, turn._outcomes, strict=True)):
        traits = traits_of(turn, call)
        if outcome is None and traits is not None and traits.approval and turn._approvals[place] is None:
            turn._waiting.append(place)
    turn._waiting = sorted(set(turn._waiting))
    turn._unasked = list(turn._waiting)
    if turn._waiting:
        turn.phase = "approval"


def ask_for_the_rest(turn: State) -> None:
    """Have a turn that was saved on its way ask for each approval its tools want now.

    Args:
        turn: The turn, which waits for approvals or tools.
    """
    turn._approvals = turn._approvals or [None] * len(turn._calls)
    look_for_approvals(turn)


def next_approval(turn: State) -> tuple[AskApproval]:
    """Return the next question."""
    place = turn._unasked[0]
    call = turn._calls[place]
    op = f"a{turn.iterations}.{place}"
    return (AskApproval(op, turn.turn_id, call, place, limiting.remaining(turn, call)),)


def take_approval(turn: State, op: AskApproval, outcome: Outcome) -> None:
    """Take the answer to a question.

    Args:
        turn: The turn.
        op: The question.
        outcome: An approval, or that nobody could be asked.

    Raises:
        ValueError: The turn does not ask this, or the approval was given for another call.
        TypeError: It is no such outcome.
    """
    place = op.place
    if turn.phase != "approval" or place not in turn._unasked or op.call != turn._calls[place]:
        raise ValueError(f"the turn does not wait for {op.id}")
    if type(outcome) is Approval:
        decide(turn, place, outcome)
    elif type(outcome) is not ApprovalPending:
        raise TypeError(f"{type(outcome).__name__} is no outcome of an approval")
    turn._unasked.remove(place)
    if turn._unasked:
        return
    if turn._waiting:
        names = ", ".join(str(turn._calls[place].name) for place in turn._waiting)
        turn._end(Ending(ToolLoopApprovalRequired, f"calls wait for approval: {names}"))
    else:
        _go_on(turn)


def decide(turn: State, place: int, approval: Approval) -> None:
    """Bind a decision to the call it was given for.

    Args:
        turn: The turn.
        place: The call's place in the batch.
        approval: The decision.

    Raises:
        ValueError: It was given for another call.
    """
    call = turn._calls[place]
    digest = digest_of(call)
    if approval.digest not in (None, digest):
        raise ValueError(f"this approval was given for another call than {call.name}, or for other arguments")
    approval = replace(approval, digest=digest)
    turn._approvals[place] = approval
    turn._waiting.remove(place)
    turn._exit = None
    if not approval.approved:
        turn._outcomes[place] = denied(f"t{turn.iterations}.{place}", call, approval)
        turn._left -= 1


def denied(op: str, call: ToolCall, approval: Approval) -> ToolCallRecord:
    """Return the record of a call that was not approved.

    Args:
        op: The name the call would have run under.
        call: The call.
        approval: The decision.
    """
    message = ChatMessage("tool", closing_content("denied", approval.reason), None, call.id)
    return ToolCallRecord(call, message, False, op, "denied")


def take_approvals(turn: State, given: Mapping[str, Approval | bool]) -> None:
    """Take decisions that were made while the turn was stopped.

    Args:
        turn: The turn, which is being reopened.
        given: Decisions by the id of the call, or by the name of the question or of the call's operation.

    Raises:
        ValueError: No call waits under such a name, or the approval was given for another call.
        TypeError: A decision is none.
    """
    for key, decision in given.items():
        number = f"{turn.iterations}."
        places = [
            place for place in turn._waiting if key in (turn._calls[place].id, f"a{number}{place}", f"t{number}{place}")
        ]
        if not places:
            raise ValueError(f"no call waits for an approval as {key!r}")
        if type(decision) is bool:
            decision = Approval(decision)
        if not isinstance(decision, Approval):
            raise TypeError(f"an approval must be an Approval or a bool, not {type(decision).__name__}")
        decide(turn, places[0], decision)
    turn._unasked = list(turn._waiting)
    if not turn._waiting:
        _go_on(turn)


def _go_on(turn: State) -> None:
    turn.phase = "tools"
    if not turn._left:
        settle(turn)


# --- tools -------------------------------------------------------------------------------


def tool_ops(turn: State) -> tuple[CallTool, ...]:
    """Return the calls that may run now: one, or several parallel ones.

    Args:
        turn: The turn, which waits for outcomes.
    """
    outcomes = turn._outcomes
    place = turn._next
    while outcomes[place] is not None:
        place += 1
    turn._next = place
    calls = turn._calls
    first = _tool_op(turn, place)
    if len(calls) == 1 or not _parallel(turn, calls[place]):
        return (first,)
    ops = [first]
    for later in range(place + 1, len(calls)):
        if outcomes[later] is not None:
            continue
        if not _parallel(turn, calls[later]):
            break  # a tool that is not marked is a barrier: what stands after it waits
        ops.append(_tool_op(turn, later))
    return tuple(ops)


def _tool_op(turn: State, place: int) -> CallTool:
    limits, call, iterations = turn.limits, turn._calls[place], turn.iterations
    return CallTool(
        f"t{iterations}.{place}",
        turn.turn_id,
        call,
        place,
        limits.result_bytes,
        limits.iterations - iterations,
        limits.tool_calls - turn._accepted,
        limiting.remaining(turn, call) if limits.spending or limits.per_tool else None,
    )


def _parallel(turn: State, call: ToolCall) -> bool:
    traits = traits_of(turn, call)
    return traits is not None and traits.parallel


def look_for_repeats(turn: State, most: int) -> Refusal | None:
    """Return the limit of a batch whose calls repeat themselves; a result that does is told so once.

    Args:
        turn: The turn, whose batch is complete.
        most: How often in a row.
    """
    batch = [record for record in turn._outcomes if record is not None]
    found, turn._repeats = repeating.repetitions(batch, turn.traits, turn._repeats)
    stuck = None
    for record, count in found:
        if count == most:
            turn._outcomes[batch.index(record)] = repeating.with_hint(record, count, turn.limits)
        elif count > most:
            stuck = repeating.refusal_of_repeats(record, count)
    return stuck


def settle(turn: State) -> None:
    """Move a finished batch into the transcript and the audit.

    Args:
        turn: The turn, whose calls all have their outcome.
    """
    stuck = None if turn.limits.repeats is None else look_for_repeats(turn, turn.limits.repeats)
    for record in turn._outcomes:
        assert record is not None
        turn._messages.append(record.message)
        turn._records.append(record)
    turn._calls = []
    turn._outcomes = []
    turn._approvals = []
    turn.phase = "model"
    last = turn._records[-1]
    if last.return_direct:
        content = last.message.content
        turn._end(Ending(None, text_of(content) or as_text(content), direct=True))
    elif stuck is not None:
        limiting.reach(turn, stuck, None)
