"""The state of a turn in JSON's own types, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .. import codec
from ..messages import Repair, Usage
from .ending import ending_from_dict, ending_to_dict, error_class
from .ops import digest_of
from .repeating import Repeats
from .rules import Refusal
from .state import State


def state_of(turn: State) -> dict[str, Any]:
    """Return the whole state; the tools are not in it."""
    ending = turn._ending
    limit = turn._limit
    return {
        "v": codec.VERSION,
        "kind": "turn",
        "turn_id": turn.turn_id,
        "phase": turn.phase,
        "limits": codec.limits_to_dict(turn.limits),
        "on_limit": turn.on_limit,
        "tool_errors": turn.tool_errors,
        "iterations": turn.iterations,
        "retries": turn._retries,
        "nudges": turn.nudges,
        "nudge": turn._nudge,
        "draft": turn._draft,
        "required": turn.required,
        "typed": turn.typed,
        "accepted": turn._accepted,
        "seconds": turn.seconds,
        "usage": asdict(turn.usage),
        "last": None if turn._last is None else asdict(turn._last),
        "repeats": {"counts": dict(turn._repeats.counts), "last": list(turn._repeats.last)},
        "repairs": [asdict(repair) for repair in turn.repairs],
        "messages": [codec.message_to_dict(message) for message in turn._messages],
        "records": [codec.record_to_dict(record) for record in turn._records],
        "calls": [codec.call_to_dict(call) for call in turn._calls],
        "outcomes": [None if record is None else codec.record_to_dict(record) for record in turn._outcomes],
        "approvals": [None if given is None else codec.approval_to_dict(given) for given in turn._approvals],
        "started": [place for place in range(len(turn._calls)) if turn._started >> place & 1],
        "waiting": turn._waiting,
        "limit": None if limit is None else [limit.error.__name__, limit.text, limit.limit],
        "ending": None if ending is None else ending_to_dict(ending),
    }


def restore(turn: State, data: Mapping[str, Any]) -> None:
    """Fill an empty turn with the state that :func:`state_of` gave.

    Args:
        turn: The empty turn.
        data: A document whose shape has been checked.

    Raises:
        ValueError: The parts of the state do not belong together.
    """
    turn.phase = data["phase"]
    turn.limits = codec.limits_from_dict(data["limits"])
    turn.on_limit = data["on_limit"]
    turn.tool_errors = data["tool_errors"]
    turn.iterations = data["iterations"]
    turn._retries = data["retries"]
    turn.nudges = data["nudges"]
    turn._nudge = data["nudge"]
    turn._draft = data["draft"]
    turn.required = data["required"]
    turn.typed = data["typed"]
    turn._accepted = data["accepted"]
    turn.seconds = data["seconds"]
    turn.usage = Usage(**data["usage"])
    turn._last = None if data["last"] is None else Usage(**data["last"])
    turn._repeats = Repeats(data["repeats"]["counts"], tuple(data["repeats"]["last"]))
    turn.repairs = [Repair(**repair) for repair in data["repairs"]]
    turn._messages = [codec.message_from_dict(message) for message in data["messages"]]
    turn._records = [codec.record_from_dict(record) for record in data["records"]]
    turn._calls = [codec.call_from_dict(call) for call in data["calls"]]
    turn._outcomes = [None if record is None else codec.record_from_dict(record) for record in data["outcomes"]]
    turn._approvals = [None if given is None else codec.approval_from_dict(given) for given in data["approvals"]]
    turn._started = sum(1 << place for place in set(data["started"]) if place < len(turn._calls))
    turn._waiting = list(data["waiting"])
    turn._unasked = list(turn._waiting)
    turn._left = turn._outcomes.count(None)
    turn._seen = {record.call.id for record in turn._records} | {call.id for call in turn._calls}
    if data["limit"] is not None:
        name, text, limit = data["limit"]
        turn._limit = Refusal(error_class(name), str(text), limit)
    if data["ending"] is not None:
        turn._ending = ending_from_dict(data["ending"])
    if not _agrees(turn):
        raise ValueError("its parts do not agree")


def _agrees(turn: State) -> bool:
    """Whether the parts of a state belong together."""
    phase = turn.phase
    pairs = zip(turn._calls, turn._outcomes, strict=False)
    return (
        len(turn._calls) == len(turn._outcomes)
        and all(record is None or record.call == call for call, record in pairs)
        and (phase == "ended") == (turn._ending is not None)
        and (phase != "tools" or turn._left > 0)
        and (phase in ("approval", "tools", "ended") or not turn._calls)
        and _approvals_agree(turn)
        and (phase != "forced" or turn._limit is not None)
        and len(turn._seen) == len(turn._records) + len(turn._calls) == turn._accepted
    )


def _approvals_agree(turn: State) -> bool:
    """Whether what is approved is what would run, and what waits is open."""
    given = turn._approvals
    waiting = turn._waiting
    return (
        len(given) in (0, len(turn._calls))
        and all(
            approval is None or approval.digest == digest_of(call)
            for approval, call in zip(given, turn._calls, strict=False)
        )
        and waiting == sorted(set(waiting))
        and all(place < len(given) and turn._outcomes[place] is None and given[place] is None for place in waiting)
        and (turn.phase == "approval") <= bool(waiting)
        and (turn.phase != "tools" or not waiting)
        and all(
            approval is None or approval.approved or (record is not None and record.status == "denied")
            for approval, record in zip(given, turn._outcomes, strict=False)
        )
    )
