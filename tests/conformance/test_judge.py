"""What the judge says of a run, in a phrase."""

from __future__ import annotations

import dataclasses

import pytest

from toolturn.conformance.judge import Exit, Trace, judge
from toolturn.conformance.replies import says
from toolturn.conformance.rows import Answer, Failure, Fault, Run, Way, ran

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
