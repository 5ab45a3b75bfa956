"""What a valid transcript is, and how one that is not becomes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, ImagePart, TextPart
from toolturn.transcript import NO_RESULT, Fault, RepairReport, check, closing_content, pending_calls, repair

from .parts import USER, answered, call
from .strategies import Broken, junk_messages, near_messages, transcripts


def asking(*ids: Any, role: Any = "assistant", content: Any = "") -> ChatMessage:
    return ChatMessage(role, content, [call(call_id) for call_id in ids])


def faults(*messages: ChatMessage) -> list[str]:
    return [str(fault) for fault in check(messages)]


# --- check ---------------------------------------------------------------------------


@given(transcripts())
def test_every_valid_transcript_is_accepted(messages: tuple[ChatMessage, ...]) -> None:
    assert check(messages) == []


def test_no_messages_at_all_are_a_valid_transcript() -> None:
    assert check([]) == []


def test_a_call_without_a_result_is_a_fault_of_the_message_that_made_it() -> None:
    assert faults(USER, asking("a", "b"), answered("a")) == ["message 1: 1 of its calls are not answered"]
    assert faults(USER, asking("a", "b"), USER) == ["message 1: 2 of its calls are not answered"]


def test_a_result_must_follow_its_call_directly() -> None:
    assert faults(asking("a"), USER, answered("a")) == [
        "message 0: 1 of its calls are not answered",
        "message 2: a tool message that answers no open call",
    ]


def test_a_call_is_answered_once() -> None:
    assert faults(asking("a"), answered("a"), answered("a")) == ["message 2: a tool message that answers no open call"]


def test_a_result_without_a_call_is_a_fault() -> None:
    assert faults(USER, answered("a")) == ["message 1: a tool message that answers no open call"]


@pytest.mark.parametrize("call_id", [None, "", 7, ["a"]])
def test_a_result_without_an_id_is_a_fault(call_id: Any) -> None:
    found = faults(asking("a"), ChatMessage("tool", "x", None, call_id))
    assert found[0] == "message 1: a tool message without the id of the call it answers"


@pytest.mark.parametrize("call_id", [None, "", "  ", 7, ["a"]])
def test_a_call_without_an_id_is_a_fault(call_id: Any) -> None:
    assert faults(asking(call_id)) == ["message 0: a call without an id"]


def test_two_calls_of_a_message_with_the_same_id_are_a_fault() -> None:
    assert faults(asking("a", "a"), answered("a")) == ["message 0: two of its calls have the same id"]


def test_the_same_id_in_two_batches_is_none() -> None:
    assert faults(asking("a"), answered("a"), asking("a"), answered("a")) == []


@pytest.mark.parametrize("odd", [call("a", None), call("a", 7), call("a", "add", None), call("a", "add", {})])
def test_a_call_whose_name_or_arguments_are_no_text_is_a_fault(odd: Any) -> None:
    messages = [ChatMessage("assistant", "", [odd]), answered("a")]
    assert faults(*messages) == ["message 0: a call whose name or arguments are no text"]


@pytest.mark.parametrize("role", ["developer", "function", "", None, 7])
def test_an_unknown_role_is_a_fault(role: Any) -> None:
    assert faults(ChatMessage(role, "Hi.")) == ["message 0: its role is none of system, user, assistant, tool"]


@pytest.mark.parametrize("role", ["system", "user", "tool"])
def test_only_an_assistant_may_hold_calls(role: str) -> None:
    message = ChatMessage(role, "x", [call("z")], "a" if role == "tool" else None)
    assert "message 1: only an assistant message may hold calls" in faults(asking("a"), message)


@pytest.mark.parametrize("content", [None, 7, {"text": "x"}])
def test_a_message_with_neither_text_nor_calls_is_a_fault(content: Any) -> None:
    assert faults(ChatMessage("user", content)) == ["message 0: it has neither text nor calls"]
    assert faults(asking("a"), ChatMessage("tool", content, None, "a")) == ["message 1: a tool message without text"]


def test_text_may_be_absent_beside_calls() -> None:
    assert faults(asking("a", content=None), answered("a")) == []


def test_content_may_stand_in_parts() -> None:
    assert faults(ChatMessage("user", [TextPart("a"), ImagePart("data:,")])) == []
    assert faults(ChatMessage("user", (TextPart("a"),))) == []


def test_a_fault_never_repeats_what_a_message_says() -> None:
    secret = "s3cret"
    messages = [ChatMessage(secret, secret), ChatMessage("assistant", secret, [call(secret)])]
    assert secret not in " ".join(faults(*messages))


# --- repair --------------------------------------------------------------------------


@given(transcripts())
def test_repair_reports_nothing_for_a_valid_transcript_and_gives_it_back(messages: tuple[ChatMessage, ...]) -> None:
    assert repair(messages) == RepairReport(messages, ())


@pytest.mark.parametrize("strategy", ["near", "junk"])
@given(data=st.data())
def test_repair_gives_a_transcript_that_check_accepts(strategy: str, data: st.DataObject) -> None:
    kind = near_messages if strategy == "near" else junk_messages
    messages = data.draw(st.lists(kind, max_size=8))
    assert check(repair(messages).messages) == []


@given(st.lists(near_messages, max_size=8))
def test_repairing_twice_changes_nothing_more(messages: list[ChatMessage]) -> None:
    once = repair(messages)
    assert repair(once.messages) == RepairReport(once.messages, ())


@given(st.lists(near_messages, max_size=8))
def test_what_was_no_valid_transcript_is_reported_as_changed(messages: list[ChatMessage]) -> None:
    report = repair(messages)
    if check(messages):
        assert report.changes
    if report.messages != tuple(messages):
        assert report.changes
    assert all(0 <= change.index < len(messages) for change in report.changes)


@given(transcripts())
def test_what_stands_before_the_first_fault_comes_back_as_it_is(messages: tuple[ChatMessage, ...]) -> None:
    report = repair([*messages, USER, asking("open")])
    assert report.messages[: len(messages)] == messages
    assert {change.index for change in report.changes} == {len(messages) + 1}


@given(st.lists(near_messages, max_size=8))
def test_repair_leaves_what_it_was_given_as_it_was(messages: list[ChatMessage]) -> None:
    before = repr(messages)
    repair(messages)
    assert repr(messages) == before


@given(st.lists(junk_messages, max_size=6))
def test_check_and_pending_calls_never_raise(messages: list[ChatMessage]) -> None:
    for fault in check(messages):
        assert "\n" not in str(fault)
    pending_calls(messages)


UNKNOWN = closing_content("outcome_unknown", NO_RESULT)


def test_a_call_without_a_result_may_have_been_run_and_is_closed_so() -> None:
    report = repair([asking("a", "b"), answered("b", "B"), USER])
    assert report.messages == (
        asking("a", "b"),
        answered("a", UNKNOWN),
        answered("b", "B"),
        USER,
    )
    assert report.changes == (Fault(0, "a call without a result was closed as of an unknown outcome"),)


def test_a_result_that_answers_nothing_is_dropped() -> None:
    report = repair([USER, answered("a"), asking("b"), answered("b"), answered("b")])
    assert report.messages == (USER, asking("b"), answered("b"))
    assert [change.index for change in report.changes] == [1, 4]


def test_a_result_that_comes_too_late_is_dropped_and_its_call_closed() -> None:
    report = repair([asking("a"), USER, answered("a", "late")])
    assert report.messages == (asking("a"), answered("a", UNKNOWN), USER)


def test_an_unusable_id_is_replaced_together_with_its_result() -> None:
    report = repair([asking(None, 7), ChatMessage("tool", "seven", None, 7), ChatMessage("tool", "null")])  # type: ignore[arg-type]
    calls = report.messages[0].tool_calls
    assert calls is not None
    ids = [each.id for each in calls]
    assert len(set(ids)) == 2
    assert {message.tool_call_id: message.content for message in report.messages[1:]} == dict(
        zip(ids, ["null", "seven"], strict=True)
    )


def test_repeated_ids_are_told_apart_with_their_results_in_order() -> None:
    report = repair([asking("a", "a"), answered("a", "first"), answered("a", "second")])
    calls = report.messages[0].tool_calls
    assert calls is not None
    assert calls[0].id == "a"
    assert report.messages[1:] == (answered("a", "first"), answered(calls[1].id, "second"))


def test_a_new_id_is_never_one_that_is_there() -> None:
    taken = "call_0_1_0"
    report = repair([asking(taken, None, taken), answered(taken)])
    calls = report.messages[0].tool_calls
    assert calls is not None
    assert len({each.id for each in calls}) == 3


def test_a_message_of_an_unknown_role_becomes_one_of_the_user() -> None:
    report = repair([ChatMessage("developer", "Be brief.")])
    assert report.messages == (ChatMessage("user", "Be brief."),)
    assert [str(change) for change in report.changes] == [
        "message 0: a message of an unknown role became a user message"
    ]


def test_calls_outside_an_assistant_message_are_dropped() -> None:
    report = repair([asking("a", role="user", content="Hi.")])
    assert report.messages == (ChatMessage("user", "Hi."),)
    report = repair([asking("a"), ChatMessage("tool", "x", [call("z")], "a")])
    assert report.messages == (asking("a"), answered("a", "x"))
    assert [str(change) for change in report.changes] == ["message 1: calls outside an assistant message were dropped"]


@pytest.mark.parametrize(
    ("given_name", "given_arguments", "name", "arguments"),
    [
        (None, None, "unknown", "{}"),
        (7, {"a": [1]}, "7", '{"a": [1]}'),
        ("add", object(), "add", "{}"),
        ("add", float("inf"), "add", "{}"),
    ],
)
def test_names_and_arguments_become_text(given_name: Any, given_arguments: Any, name: str, arguments: str) -> None:
    report = repair([ChatMessage("assistant", "", [call("a", given_name, given_arguments)]), answered("a")])
    calls = report.messages[0].tool_calls
    assert calls is not None
    assert (calls[0].name, calls[0].arguments) == (name, arguments)
    assert [change.index for change in report.changes] == [0]


@pytest.mark.parametrize(("content", "text"), [(None, ""), (7, "7")])
def test_a_message_without_text_is_given_some(content: Any, text: str) -> None:
    assert repair([ChatMessage("user", content)]).messages == (ChatMessage("user", text),)
    report = repair([asking("a"), ChatMessage("tool", content, None, "a")])
    assert report.messages[1] == answered("a", text or "null")
    assert len(report.changes) == 1


def test_values_that_can_not_be_shown_do_not_stand_in_the_way() -> None:
    broken: Any = Broken()
    report = repair([ChatMessage("user", broken), ChatMessage("assistant", "", [call("a", broken, broken)])])
    assert check(report.messages) == []


@pytest.mark.parametrize("role", [[], {}, None, 7])
def test_a_role_of_any_type_does_not_stand_in_the_way(role: Any) -> None:
    assert repair([ChatMessage(role, "Hi.")]).messages == (ChatMessage("user", "Hi."),)


@pytest.mark.parametrize("calls", [7, True, "calls", [None], [7], {"a": 1}])
def test_call_lists_of_any_type_do_not_stand_in_the_way(calls: Any) -> None:
    messages = [ChatMessage("assistant", "Hi.", calls)]
    assert check(messages)
    assert check(repair(messages).messages) == []
    assert pending_calls(messages) == ()


# --- pending calls -------------------------------------------------------------------


@given(transcripts())
def test_a_valid_transcript_has_no_pending_calls(messages: tuple[ChatMessage, ...]) -> None:
    assert pending_calls(messages) == ()


@pytest.mark.parametrize(
    ("results", "pending"), [((), ("a", "b", "c")), (("b",), ("a", "c")), (("c", "a"), ("b",)), (("a", "b", "c"), ())]
)
def test_pending_calls_are_those_at_the_end_without_a_result_in_emitted_order(
    results: Sequence[str], pending: Sequence[str]
) -> None:
    messages = [USER, asking("a", "b", "c"), *map(answered, results)]
    assert pending_calls(messages) == tuple(call(call_id) for call_id in pending)


def test_calls_that_something_else_was_said_after_are_not_pending() -> None:
    assert pending_calls([asking("a"), USER]) == ()
    assert pending_calls([asking("a"), ChatMessage("assistant", "Well.")]) == ()
    assert pending_calls([]) == ()


# --- closings ------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["not_executed", "cancelled", "outcome_unknown"])
def test_a_closing_is_an_observation_a_model_can_read(status: str) -> None:
    content = json.loads(closing_content(status))
    assert list(content) == ["error", "detail"]
    assert content["error"] == status
    assert content["detail"].endswith(".")


def test_only_a_call_that_was_never_made_is_said_to_have_had_no_effect() -> None:
    assert "may have had an effect" not in closing_content("not_executed")
    assert "may have had an effect" in closing_content("cancelled")
    assert "may have had an effect" in closing_content("outcome_unknown")
