"""What was mended in a model's replies is told in events, in the result, in the error, and outlives the process."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    Repair,
    ToolLoopEmptyResponseError,
    Turn,
    codec,
    result_from_json,
    result_to_json,
    run_tool_loop,
)
from toolturn.events import Repaired
from toolturn.testing import ScriptedModel

USER = ChatMessage("user", "go")
MENDED = Repair("id", "call 0 had none")


def run(reply: ChatResponse, **options: Any) -> Any:
    return asyncio.run(run_tool_loop([USER], [], ScriptedModel([reply]), **options))


def test_the_result_tells_what_was_mended_and_in_which_reply() -> None:
    result = run(ChatResponse("done", repairs=(MENDED,)))
    assert result.repairs == (Repair("id", "call 0 had none", "m1"),)
    assert result_from_json(result_to_json(result)) == result


def test_events_tell_each_repair_once() -> None:
    heard: list[Any] = []
    run(ChatResponse("done", repairs=(MENDED, MENDED)), emit=heard.append)
    told = [event.repair for event in heard if isinstance(event, Repaired)]
    assert told == [Repair("id", "call 0 had none", "m1")] * 2


def test_the_error_tells_what_was_mended() -> None:
    with pytest.raises(ToolLoopEmptyResponseError) as caught:
        run(ChatResponse("", repairs=(MENDED,)))
    error = caught.value
    assert [repair.op for repair in error.repairs] == ["m1"]
    assert codec.error_from_json(codec.error_to_json(error)).repairs == error.repairs
    assert pickle.loads(pickle.dumps(error)).repairs == error.repairs


def test_repairs_of_all_replies_are_told_in_order() -> None:
    turn = Turn("t")
    turn.begin([USER], (), {}, nudges=1)
    turn.apply(turn.ops()[0], ChatResponse("", repairs=(MENDED,)))
    turn.apply(turn.ops()[0], ChatResponse("done", repairs=(MENDED,)))
    assert turn.exit is not None
    assert [repair.op for repair in turn.exit.repairs] == ["m1", "m2"]


def test_a_saved_turn_knows_what_was_mended() -> None:
    turn = Turn("t")
    turn.begin([USER], (), {})
    turn.apply(turn.ops()[0], ChatResponse("done", repairs=(MENDED,)))
    assert Turn.from_json(turn.to_json()).exit == turn.exit
