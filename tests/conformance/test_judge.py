"""What the judge says of a run, in a phrase."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from toolturn.conformance.judge import goes_on as may_go_on
from toolturn.conformance.judge import judge
from toolturn.conformance.replies import says
from toolturn.conformance.rows import Answer, Cancelled, Failure, Fault, Refused, Run, Waits, Way, goes_on, ran
from toolturn.conformance.trace import Exit, Trace

from .traces import received

USER = {"role": "user", "content": "go"}
CALL = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
RUNS = (ran("add", a=1, b=2),)
ROW = Fault("row", "It answers.", (says("three"),), (Way(Answer("three"), RUNS),))
GOOD = Trace(Exit("answer", " three\n"), RUNS, (received([USER]),))


def why(row: Fault = ROW, trace: Trace = GOOD, **changed: object) -> str:
    verdict = judge(row, dataclasses.replace(trace, **changed))  # type: ignore[arg-type]
    assert not verdict.passed
    return verdict.why


def test_a_run_that_keeps_the_criterion_passes_and_tells_how_it_ended() -> None:
    verdict = judge(ROW, GOOD)
    assert (verdict.passed, verdict.why) == (True, "answered ' three\\n'")


@pytest.mark.parametrize(
    ("runs", "phrase"),
    [
        ((), "did not run add(a=1, b=2)"),
        ((ran("add", a=1, b=2), ran("add", a=1, b=2)), "ran add(a=1, b=2) 2 times"),
        ((ran("add", a=1, b=2), ran("ping")), "ran ping(), which must not run"),
        ((ran("add", a=1.0, b=2),), "ran add(a=1.0, b=2), which must not run; did not run add(a=1, b=2)"),
        ((ran("add", a=True, b=2),), "ran add(a=true, b=2), which must not run; did not run add(a=1, b=2)"),
    ],
    ids=["missing", "twice", "another", "a float", "a truth value"],
)
def test_what_ran_is_told(runs: tuple[Run, ...], phrase: str) -> None:
    assert why(runs=runs) == phrase


@pytest.mark.parametrize(
    ("end", "phrase"),
    [
        (Exit("answer", "two"), "answered 'two'"),
        (Exit("hung"), "hung until it was killed"),
        (Exit("died", "Segmentation fault"), "the process ended: 'Segmentation fault'"),
        (Exit("error", "'x'", "KeyError"), "raised a bare KeyError: \"'x'\""),
        (Exit("error", "no", "OwnError", True), "raised OwnError: 'no'"),
    ],
    ids=lambda value: value.how if isinstance(value, Exit) else "",
)
def test_how_the_turn_ended_is_told(end: Exit, phrase: str) -> None:
    assert why(exit=end) == phrase


def failing(**wanted: object) -> Fault:
    return dataclasses.replace(ROW, ways=(Way(Failure(**wanted), RUNS),))  # type: ignore[arg-type]


def test_an_error_of_another_kind_is_told() -> None:
    end = Exit("error", "no", "OwnError", True, "other", 1)
    assert why(failing(kind="limit"), exit=end) == "OwnError can not be told to be of the kind limit"
    assert judge(failing(kind="limit"), dataclasses.replace(GOOD, exit=dataclasses.replace(end, kind="limit"))).passed


def test_an_error_that_hides_the_server_s_words_is_told() -> None:
    end = Exit("error", "status 400", "OwnError", True)
    assert why(failing(says="too hot"), exit=end) == "OwnError hides the server's words: 'status 400'"


@pytest.mark.parametrize("results", [None, 0])
def test_an_error_without_the_results_of_what_ran_is_told(results: int | None) -> None:
    end = Exit("error", "no", "OwnError", True, "other", results)
    assert why(failing(transcript=True), exit=end) == "OwnError came without the transcript"


def test_an_answer_where_an_error_is_demanded_is_told() -> None:
    assert why(failing()) == "answered ' three\\n'"


def test_an_invalid_request_is_told_with_its_first_fault() -> None:
    bad = received([USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}])
    assert why(requests=(received([USER]), bad)) == "request 2 is invalid: the calls 'a' are not answered"


def test_no_request_at_all_is_told() -> None:
    assert why(requests=()) == "sent no request"


def test_too_many_requests_are_told() -> None:
    row = dataclasses.replace(ROW, requests=1)
    assert why(row, requests=(received([USER]),) * 3) == "sent 3 requests where 1 are allowed"


def test_a_secret_in_a_request_is_told() -> None:
    row = dataclasses.replace(ROW, hides=("hunter2",))
    request = received([{"role": "user", "content": "the password is hunter2"}])
    assert why(row, requests=(request,)) == "sent 'hunter2' to the model"


def test_asking_again_too_soon_is_told() -> None:
    row = dataclasses.replace(ROW, waits=1.0)
    soon = (received([USER]), received([USER], at=0.3))
    assert why(row, requests=soon) == "asked again after 0.3 s"
    assert judge(row, dataclasses.replace(GOOD, requests=(received([USER]), received([USER], at=1.1)))).passed


def test_the_same_request_again_is_told_where_something_had_to_be_said() -> None:
    row = dataclasses.replace(ROW, told=True)
    same = (received([USER]), received([USER]))
    assert why(row, requests=same) == "sent the same request again instead of saying what was wrong"


def test_what_the_model_was_not_told_is_told() -> None:
    row = dataclasses.replace(ROW, tells=("level",))
    answer = {"role": "tool", "tool_call_id": "a", "content": "it failed"}
    asked = {"role": "assistant", "content": "level", "tool_calls": [CALL]}
    assert (
        why(row, requests=(received([USER]), received([USER, asked, answer]))) == "did not tell the model about 'level'"
    )


def test_the_way_that_fits_best_is_the_one_that_is_told() -> None:
    row = dataclasses.replace(ROW, ways=(Way(Failure()), Way(Answer("three"), RUNS)))
    assert why(row, exit=Exit("answer", "two")) == "answered 'two'"


# --- bounds -------------------------------------------------------------------------------


def test_control_that_comes_back_late_is_told() -> None:
    row = dataclasses.replace(ROW, within=1.0)
    assert why(row, exit=dataclasses.replace(GOOD.exit, took=2.5)) == "control was back after 2.5 s"
    assert judge(row, dataclasses.replace(GOOD, exit=dataclasses.replace(GOOD.exit, took=0.9))).passed


@pytest.mark.parametrize(
    ("gone", "phrase"),
    [(None, "left the connection open after the cancel"), (17.0, "closed the connection 7.0 s after the cancel")],
)
def test_a_connection_that_stays_open_after_a_cancel_is_told(gone: float | None, phrase: str) -> None:
    row = dataclasses.replace(ROW, ways=(Way(Cancelled(), RUNS),), cancel="reply")
    trace = dataclasses.replace(GOOD, exit=Exit("cancelled"), cancelled=10.0)
    late = dataclasses.replace(received([USER]), gone=gone)
    assert why(row, dataclasses.replace(trace, requests=(late,))) == phrase
    soon = dataclasses.replace(late, gone=10.2)
    assert judge(row, dataclasses.replace(trace, requests=(soon,))).passed


def test_a_cleanup_that_comes_too_late_is_told() -> None:
    row = dataclasses.replace(ROW, ways=(Way(Cancelled(), (ran("wait_long"), ran("clean_up"))),))
    trace = dataclasses.replace(GOOD, exit=Exit("cancelled"), runs=(ran("wait_long"),))
    assert why(row, trace) == "control was back before the tool had cleaned up"


@pytest.mark.parametrize(("most", "phrase"), [({}, "any number of"), ({"max_tokens": 9}, "9")])
def test_a_last_request_that_allows_more_than_is_left_is_told(most: dict[str, int], phrase: str) -> None:
    row = dataclasses.replace(ROW, last_left=7)
    requests = (received([USER]), received([USER, USER], **most))
    assert why(row, requests=requests) == f"the last request allows {phrase} tokens where 7 are left"
    good = (received([USER]), received([USER, USER], max_completion_tokens=7))
    assert judge(row, dataclasses.replace(GOOD, requests=good)).passed


@pytest.mark.parametrize(
    ("keeps", "fields", "phrase"),
    [(True, {"tools": None}, "request 1 leaves out the tools"), (False, {"tool_choice": "none"}, "holds the tools")],
)
def test_tools_in_a_request_without_choice_are_told(keeps: bool, fields: dict[str, Any], phrase: str) -> None:
    row = dataclasses.replace(ROW, keeps_tools=keeps)
    assert phrase in why(row, requests=(received([USER], **fields),))


def test_a_message_that_is_too_large_is_told() -> None:
    row = dataclasses.replace(ROW, largest=10)
    assert why(row, requests=(received([{"role": "user", "content": "x" * 11}]),)) == "sent a message of 11 characters"


def test_what_was_told_in_another_order_is_told() -> None:
    row = dataclasses.replace(ROW, order=("call add", "result add", "answer"))
    told = (("call", "add"), ("answer",), ("result", "add"))
    assert why(row, seen=told) == "told call add, answer, result add instead of call add, result add, answer"
    right = (("call", "add"), ("text", "anything"), ("result", "add"), ("answer",))
    assert judge(row, dataclasses.replace(GOOD, seen=right)).passed


def test_a_stream_of_the_answer_that_gives_more_is_told() -> None:
    row = dataclasses.replace(ROW, spoken="three")
    assert why(row, seen=(("text", "I see. "), ("text", "three"))) == "the stream of the answer gave 'I see. three'"


# --- what follows ---------------------------------------------------------------------------


ACT = goes_on("21 degrees")
KEPT = Exit("answer", "three", saved="kept")


def left(text: str = "21 degrees", end: Exit | None = None) -> Trace:
    return Trace(end or Exit("answer", "still here"), (), (received([USER, {"role": "user", "content": text}]),))


@pytest.mark.parametrize(
    ("acts", "phrase"),
    [
        ((), "then nothing was kept to go on with"),
        ((left("nothing"),), "then the model is not told '21 degrees'"),
        ((left(end=Exit("answer", "what?")),), "then answered 'what?'"),
        ((left(end=Exit("waits")),), "then waits for an approval"),
        ((left(end=Exit("cancelled")),), "then ended as cancelled"),
        ((dataclasses.replace(left(), runs=RUNS),), "then ran add(a=1, b=2), which must not run"),
    ],
    ids=["not played", "forgotten", "another answer", "waiting", "cancelled", "more ran"],
)
def test_what_went_wrong_afterwards_is_told(acts: tuple[Trace, ...], phrase: str) -> None:
    row = dataclasses.replace(ROW, acts=(ACT,))
    assert why(row, exit=KEPT, acts=acts) == phrase
    assert judge(row, dataclasses.replace(GOOD, exit=KEPT, acts=(left(),))).passed


def test_a_row_goes_on_only_from_an_end_that_was_meant_and_kept() -> None:
    row = dataclasses.replace(ROW, acts=(ACT,))
    assert may_go_on(row, dataclasses.replace(GOOD, exit=KEPT), ())
    assert not may_go_on(row, GOOD, ())
    assert not may_go_on(row, dataclasses.replace(GOOD, exit=dataclasses.replace(KEPT, text="four")), ())


@pytest.mark.parametrize(
    ("end", "phrase"),
    [
        (Exit("answer", "paid"), "answered 'paid'"),
        (Exit("error", "no", "OwnError", True), "raised OwnError: 'no'"),
        (Exit("waits", pending=({"name": "lend"},)), "waits for the approval of lend"),
        (Exit("cancelled"), "ended as cancelled"),
    ],
    ids=lambda value: value.how if isinstance(value, Exit) else "",
)
def test_a_turn_that_does_not_wait_as_it_should_is_told(end: Exit, phrase: str) -> None:
    row = dataclasses.replace(ROW, ways=(Way(Waits(("pay",)), RUNS),))
    assert why(row, exit=end) == phrase


def test_what_has_to_be_refused_is_refused_with_any_exception() -> None:
    row = dataclasses.replace(ROW, ways=(Way(Refused(), RUNS),))
    assert judge(row, dataclasses.replace(GOOD, exit=Exit("error", "no", "ValueError"))).passed
    assert why(row) == "answered ' three\\n'"
