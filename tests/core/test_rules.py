"""How a reply is judged: each rule alone, and which of two broken rules is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    ImagePart,
    Limits,
    TextPart,
    ToolCall,
    ToolLoopDirectReturnError,
    ToolLoopEmptyResponseError,
    ToolLoopError,
    ToolLoopFilteredResponseError,
    ToolLoopMalformedResponseError,
    ToolLoopToolCallLimitError,
    ToolLoopTruncatedResponseError,
    Turn,
)
from toolturn.turn import ToolTraits
from toolturn.turn.rules import REASONS

from .parts import USER, answered, asks, begun, call, error_of, record_of, reply, result_of, says, the_op
from .strategies import Word

TRAITS = {"add": ToolTraits(), "direct": ToolTraits(return_direct=True)}


def judged(response: ChatResponse, **options: Any) -> Turn:
    return reply(begun(TRAITS, **options), response)


def refused(response: ChatResponse, **options: Any) -> ToolLoopError:
    """The error of a turn whose first reply this is; what holds of every refusal is looked at here."""
    error = error_of(judged(response, **options))
    assert error.messages == (USER,)
    assert error.tool_calls == ()
    assert error.iterations == 1
    assert error.rejected_response is response
    return error


# --- why the model stopped -----------------------------------------------------------


@pytest.mark.parametrize(
    "reason", ["length", "max_tokens", "max_output_tokens", "incomplete", "LENGTH", " Max_Tokens "]
)
@pytest.mark.parametrize("calls", [None, [], [call("a")]], ids=["text", "no calls", "calls"])
def test_a_reply_that_was_cut_off_is_refused(reason: str, calls: list[ToolCall] | None) -> None:
    error = refused(ChatResponse("as far as it", None, calls, reason))
    assert type(error) is ToolLoopTruncatedResponseError
    assert str(error) == "model response was truncated"


@pytest.mark.parametrize("reason", ["content_filter", "content_filtered", "safety", "refusal", "SAFETY", " refusal "])
@pytest.mark.parametrize("calls", [None, [call("a")]], ids=["text", "calls"])
def test_a_reply_that_was_filtered_or_refused_is_refused(reason: str, calls: list[ToolCall] | None) -> None:
    error = refused(ChatResponse("I", None, calls, reason))
    assert type(error) is ToolLoopFilteredResponseError
    assert str(error) == "model response was filtered or refused by the provider"


@pytest.mark.parametrize("reason", ["malformed_function_call", "MALFORMED_FUNCTION_CALL"])
def test_a_malformed_call_that_the_provider_reports_is_refused(reason: str) -> None:
    assert type(refused(says("", reason))) is ToolLoopMalformedResponseError


@pytest.mark.parametrize(
    "reason", [None, "", "stop", "end_turn", "function_call", "error", "eos", 7, ["length"], object()]
)
def test_every_other_reason_is_neutral(reason: Any) -> None:
    assert judged(asks(call("a"), finish=reason)).phase == "tools"
    assert result_of(judged(says("Hi.", reason))).content == "Hi."


def test_calls_beat_stop() -> None:
    assert judged(asks(call("a"), finish="stop")).phase == "tools"


# --- calls announced -----------------------------------------------------------------


@pytest.mark.parametrize("calls", [None, []], ids=["null", "empty"])
@pytest.mark.parametrize("content", ["", "a good answer"])
def test_calls_that_are_announced_but_absent_are_refused_even_beside_text(
    calls: list[ToolCall] | None, content: str
) -> None:
    error = refused(ChatResponse(content, None, calls, "tool_calls"))
    assert type(error) is ToolLoopMalformedResponseError
    assert str(error) == "model reported tool calls without returning any calls"


@pytest.mark.parametrize(
    "calls",
    [[None], [{"id": "a", "name": "add", "arguments": "{}"}], ["add"], [call("a"), None]],
    ids=["null", "dictionary", "text", "one of two"],
)
@pytest.mark.parametrize("reason", ["tool_calls", "length"])
def test_what_is_no_call_is_refused(calls: list[Any], reason: str) -> None:
    error = refused(ChatResponse("", None, calls, reason))
    expected = ToolLoopMalformedResponseError if reason == "tool_calls" else ToolLoopTruncatedResponseError
    assert type(error) is expected


# --- ids -----------------------------------------------------------------------------


@pytest.mark.parametrize("call_id", [None, 7, "", "  ", "\n\t", 1.5, True, ["a"], {"id": "a"}, b"a"])
def test_an_id_that_is_blank_or_no_text_is_refused(call_id: Any) -> None:
    error = refused(asks(call("fine"), call(call_id)))
    assert type(error) is ToolLoopMalformedResponseError
    assert str(error) == "tool-call IDs must be non-empty strings"


def test_an_id_repeated_within_a_batch_is_refused() -> None:
    error = refused(asks(call("a"), call("b"), call("a")))
    assert type(error) is ToolLoopMalformedResponseError
    assert str(error) == "tool-call IDs must be unique within a turn"


@pytest.mark.parametrize("copied", [False, True], ids=["as it is", "after JSON"])
def test_an_id_repeated_from_an_earlier_batch_is_refused(copied: bool) -> None:
    turn = judged(asks(call("a"), call("b")))
    for _ in range(2):
        op = the_op(turn)
        turn.apply(op, record_of(op))
    if copied:
        turn = Turn.from_json(turn.to_json(), turn.definitions, turn.traits)
    reply(turn, asks(call("c"), call("b")))
    assert str(error_of(turn)) == "tool-call IDs must be unique within a turn"
    assert (error_of(turn).iterations, len(error_of(turn).tool_calls)) == (2, 2)


def test_an_id_of_a_batch_that_was_refused_may_come_again() -> None:
    turn = judged(asks(call("a"), call("a")))
    turn.reopen(turn.definitions, turn.traits)
    reply(turn, asks(call("a")))
    assert turn.phase == "tools"


def test_an_id_that_only_the_history_holds_may_come_again() -> None:
    history = [USER, ChatMessage("assistant", "", [call("a")]), answered("a")]
    turn = reply(begun(messages=history), asks(call("a")))
    assert turn.phase == "tools"


def test_ids_are_compared_as_they_are() -> None:
    assert judged(asks(call("a"), call("A"), call(" a"))).phase == "tools"


# --- direct returns and the budget ---------------------------------------------------


@pytest.mark.parametrize(
    "batch",
    [
        (call("a", "direct"), call("b")),
        (call("a"), call("b", "direct")),
        (call("a", "direct"), call("b", "direct")),
        (call("a", "direct"), call("b", "nope")),
        (call("a", Word("direct")), call("b")),
    ],
    ids=["first", "last", "two", "beside an unknown tool", "under a name of another class"],
)
def test_a_direct_return_tool_must_be_alone(batch: Sequence[ToolCall]) -> None:
    error = refused(asks(*batch))
    assert type(error) is ToolLoopDirectReturnError
    assert str(error) == "a direct-return tool must be the only call in its model batch"


def test_a_direct_return_tool_alone_may_run() -> None:
    assert judged(asks(call("a", "direct"))).phase == "tools"


def test_a_batch_may_use_the_budget_up_but_not_pass_it() -> None:
    limits = Limits(tool_calls=2)
    assert judged(asks(call("a"), call("b")), limits=limits).phase == "tools"
    error = refused(asks(call("a"), call("b"), call("c")), limits=limits)
    assert type(error) is ToolLoopToolCallLimitError


def test_unknown_and_invalid_calls_count_for_the_budget() -> None:
    turn = judged(asks(call("a", "nope"), call("b", "add", "not JSON")), limits=Limits(tool_calls=2))
    for status in ("unknown_tool", "invalid_arguments"):
        op = the_op(turn)
        turn.apply(op, record_of(op, "{}", status))
    reply(turn, asks(call("c")))
    assert type(error_of(turn)) is ToolLoopToolCallLimitError
    assert len(error_of(turn).tool_calls) == 2


def test_the_budget_is_one_for_all_batches_of_the_turn() -> None:
    turn = begun(limits=Limits(tool_calls=2))
    for call_id in ("a", "b"):
        op = the_op(reply(turn, asks(call(call_id))))
        turn.apply(op, record_of(op))
    reply(turn, asks(call("c")))
    assert type(error_of(turn)) is ToolLoopToolCallLimitError
    assert len(error_of(turn).tool_calls) == 2


def test_a_rejected_batch_does_not_count_for_the_budget() -> None:
    turn = judged(asks(call("a"), call("a")), limits=Limits(tool_calls=1))
    turn.reopen(turn.definitions, turn.traits)
    reply(turn, asks(call("a")))
    assert turn.phase == "tools"


def test_a_budget_of_nothing_allows_answers_only() -> None:
    assert result_of(judged(says("Hi."), limits=Limits(tool_calls=0))).content == "Hi."
    assert type(refused(asks(call("a")), limits=Limits(tool_calls=0))) is ToolLoopToolCallLimitError


# --- nothing at all ------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["", "  ", "\n", None, [], [TextPart(" ")], [ImagePart("data:,")], [{"type": "image_url"}], [7], ()],
)
@pytest.mark.parametrize("calls", [None, []], ids=["null", "empty"])
def test_neither_calls_nor_text_is_refused(content: Any, calls: list[ToolCall] | None) -> None:
    error = refused(ChatResponse(content, "a thought", calls, "stop"))
    assert type(error) is ToolLoopEmptyResponseError
    assert str(error) == "model returned neither tool calls nor a final answer"


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (" Hi. ", "Hi."),
        ([TextPart("Hi"), TextPart(".")], "Hi."),
        ([{"type": "text", "text": "Hi."}], "Hi."),
        (("H", "i."), "Hi."),
        (42, "42"),
    ],
)
def test_text_in_any_form_is_an_answer(content: Any, answer: str) -> None:
    assert result_of(judged(says(content))).content == answer


def test_a_call_needs_no_text_beside_it() -> None:
    assert judged(asks(call("a"), content=None)).messages[1].content == ""


# --- the order -----------------------------------------------------------------------

ONE_CALL = Limits(tool_calls=1)
DIRECT_AND_ANOTHER = (call("a", "direct"), call("b"))
Cut, Filtered, Malformed = (
    ToolLoopTruncatedResponseError,
    ToolLoopFilteredResponseError,
    ToolLoopMalformedResponseError,
)
ORDER: list[tuple[str, ChatResponse, type[ToolLoopError]]] = [
    ("truncated before blank ids", asks(call(""), finish="length"), Cut),
    ("truncated before repeated ids", asks(call("a"), call("a"), finish="length"), Cut),
    ("truncated before the direct return", asks(*DIRECT_AND_ANOTHER, finish="length"), Cut),
    ("truncated before the budget", asks(call("a"), call("b"), finish="length"), Cut),
    ("truncated before empty", says("", "length"), Cut),
    ("filtered before the ids", asks(call(""), finish="refusal"), Filtered),
    ("filtered before empty", says("", "content_filter"), Filtered),
    ("announced before empty", says("", "tool_calls"), Malformed),
    ("blank ids before the direct return", asks(call("a", "direct"), call("")), Malformed),
    ("blank ids before the budget", asks(call("a"), call(" ")), Malformed),
    ("repeated ids before the direct return", asks(call("a", "direct"), call("a")), Malformed),
    ("repeated ids before the budget", asks(call("a"), call("a")), Malformed),
    ("the direct return before the budget", asks(*DIRECT_AND_ANOTHER), ToolLoopDirectReturnError),
]


@pytest.mark.parametrize(("response", "expected"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER])
def test_of_two_broken_rules_the_earlier_one_is_told(response: ChatResponse, expected: type[ToolLoopError]) -> None:
    assert type(refused(response, limits=ONE_CALL)) is expected


def test_blank_ids_are_told_before_repeated_ones() -> None:
    assert str(refused(asks(call("a"), call("a"), call("")))) == "tool-call IDs must be non-empty strings"


def test_every_reason_in_the_list_is_written_in_lower_case_without_blanks() -> None:
    assert all(reason == reason.strip().lower() for reason in REASONS)
