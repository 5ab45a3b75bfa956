"""What a turn comes to: its result or its error, made of why it ended and of its state when it is asked for."""

from __future__ import annotations

from .. import codec
from ..errors import ToolLoopError
from ..results import ToolLoopResult
from .ending import Ending
from .saved import state_of
from .state import State


def exit_of(turn: State, ending: Ending) -> ToolLoopResult | ToolLoopError:
    """Return the result or the error of a turn.

    Args:
        turn: The turn, which has ended.
        ending: Why.
    """
    if ending.error is None:
        return ToolLoopResult(
            ending.text,
            turn.messages,
            turn.records,
            turn.iterations,
            ending.direct,
            turn.usage,
            turn.turn_id,
            None if turn._limit is None else turn._limit.limit,
            tuple(turn.repairs),
            turn._value,
        )
    error = ending.error(
        ending.text,
        messages=turn.messages,
        tool_calls=turn.records,
        iterations=turn.iterations,
        rejected_response=ending.rejected,
        usage=turn.usage,
        turn_id=turn.turn_id,
        state=codec.dumps(state_of(turn)),
        cause=ending.cause,
        repairs=turn.repairs,
    )
    error.__cause__ = ending.exception
    return error
