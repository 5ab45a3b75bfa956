"""A nudge: a model that announced calls but made none, or replied nothing, is asked once more where the turn allows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    ToolLoopEmptyResponseError,
    ToolLoopIterationLimitError,
    ToolLoopMalformedResponseError,
    ToolLoopTruncatedResponseError,
    Turn,
    run_tool_loop,
)
from toolturn.testing import ScriptedModel
from toolturn.transcript import check
from toolturn.turn import CallModel

USER = ChatMessage("user", "go")
EMPTY = ChatResponse("", None, None, "stop")
ANNOUNCED = ChatResponse("I will look that up.", None, [], "tool_calls")
BROKEN = ChatResponse("", None, None, "malformed_function_call")
TRUNCATED = ChatResponse("", None, None, "length")


def run(replies: list[Any], **options: Any) -> Any:
    model = ScriptedModel(replies)
    result = asyncio.run(run_tool_loop([USER], [], model, **options))
    model.done()
    return result


@pytest.mark.parametrize("reply", [EMPTY, ANNOUNCED, BROKEN], ids=["empty", "announced", "broken"])
def test_a_nudged_model_may_still_answer_and_the_transcript_knows_nothing_of_it(reply: ChatResponse) -> None:
    result = run([reply, "done"], nudges=1)
    assert (result.content, result.iterations) == ("done", 2)
    assert result.messages == (USER, ChatMessage("assistant", "done"))


@pytest.mark.parametrize(
    ("reply", "error"), [(EMPTY, ToolLoopEmptyResponseError), (ANNOUNCED, ToolLoopMalformedResponseError)]
)
def test_after_the_last_nudge_comes_the_typed_error(reply: ChatResponse, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        run([reply, reply], nudges=1)
    assert caught.value.iterations == 2  # type: ignore[attr-defined]
    assert caught.value.rejected_response is reply  # type: ignore[attr-defined]


def test_by_default_nobody_is_nudged() -> None:
    with pytest.raises(ToolLoopEmptyResponseError):
        run([EMPTY])


def test_a_truncated_reply_is_never_nudged() -> None:
    with pytest.raises(ToolLoopTruncatedResponseError):
        run([TRUNCATED], nudges=3)


def test_a_nudge_is_an_iteration_and_needs_one_that_is_left() -> None:
    with pytest.raises(ToolLoopEmptyResponseError):
        run([EMPTY], nudges=3, max_iterations=1)
    assert run([EMPTY, "done"], nudges=1, max_iterations=2).content == "done"


def test_the_model_is_told_what_was_wrong_once_and_not_again_later() -> None:
    seen: list[CallModel] = []
    turn = Turn("t")
    turn.begin([USER], (), {}, nudges=1)
    for reply in (ANNOUNCED, ChatResponse("done")):
        (op,) = turn.ops()
        assert isinstance(op, CallModel)
        seen.append(op)
        turn.apply(op, reply)
    first, second = seen
    assert first.messages == (USER,)
    assert second.messages[:1] == (USER,)
    assert second.messages[1].role == "user"
    assert "announced a tool call" in str(second.messages[1].content)
    assert second.id == "m2"


def test_a_turn_saved_between_nudge_and_reply_goes_on_the_same_way() -> None:
    turn = Turn("t")
    turn.begin([USER], (), {}, nudges=1)
    turn.apply(turn.ops()[0], EMPTY)
    again = Turn.from_json(turn.to_json())
    assert again.ops() == turn.ops()
    assert not check(list(again.messages))
    again.apply(again.ops()[0], EMPTY)
    assert type(again.exit) is ToolLoopEmptyResponseError


def test_a_negative_number_of_nudges_is_refused() -> None:
    with pytest.raises(ValueError, match="nudges must not be negative"):
        run(["done"], nudges=-1)


def test_nudges_can_not_pass_the_limit_of_iterations() -> None:
    with pytest.raises(ToolLoopEmptyResponseError) as caught:
        run([EMPTY] * 4, nudges=10, max_iterations=4)
    assert not isinstance(caught.value, ToolLoopIterationLimitError)
    assert caught.value.iterations == 4


def test_what_a_model_was_told_is_not_said_again_when_its_next_reply_is_refused_for_another_reason() -> None:
    turn = Turn("t")
    turn.begin([USER], (), {}, nudges=1)
    turn.apply(turn.ops()[0], EMPTY)
    turn.apply(turn.ops()[0], TRUNCATED)
    turn.reopen((), {})
    (op,) = turn.ops()
    assert isinstance(op, CallModel)
    assert op.messages == (USER,)
