"""Errors of a turn: they carry all there is, and outlive their process."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from toolturn import (
    ChatResponse,
    ModelError,
    ModelUnavailableError,
    ToolCallRecord,
    ToolError,
    ToolLoopError,
    ToolLoopLimitError,
    ToolLoopModelError,
    ToolLoopTruncatedResponseError,
    Usage,
    error_from_json,
    error_to_json,
)
from toolturn import errors as all_errors
from toolturn.errors import ErrorCause
from toolturn.turn import ModelFailed

from .parts import USER, answered, asks, begun, call, error_of, reply, says

LOOP_ERRORS = [cls for cls in vars(all_errors).values() if isinstance(cls, type) and issubclass(cls, ToolLoopError)]
MODEL_ERRORS = [cls for cls in vars(all_errors).values() if isinstance(cls, type) and issubclass(cls, ModelError)]


def through_json(error: ToolLoopError) -> ToolLoopError:
    return error_from_json(error_to_json(error))


def through_pickle(error: ToolLoopError) -> ToolLoopError:
    again: ToolLoopError = pickle.loads(pickle.dumps(error))
    return again


COPIES: dict[str, Callable[[ToolLoopError], ToolLoopError]] = {
    "json": through_json,
    "pickle": through_pickle,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def full(cls: type[ToolLoopError], raw: Any = None) -> ToolLoopError:
    """An error with something in each of its fields."""
    return cls(
        "it did not work",
        messages=[USER],
        tool_calls=[ToolCallRecord(call("a"), answered("a"), False, "t1.0")],
        iterations=3,
        rejected_response=ChatResponse("cut", None, [call("b")], "length", raw),
        usage=Usage(1, 2, 3, 4),
        turn_id="turn",
        state='{"v":1,"kind":"turn"}',
        cause=ErrorCause("KeyError", "'x'"),
    )


def test_an_error_takes_a_message_and_keywords_and_makes_tuples_of_lists() -> None:
    error = ToolLoopError("it did not work", messages=[USER], tool_calls=[], iterations=1)
    assert str(error) == "it did not work"
    assert error.args == ("it did not work",)
    assert (error.messages, error.tool_calls, error.iterations) == ((USER,), (), 1)
    assert error.rejected_response is None
    assert (error.usage, error.turn_id, error.state, error.cause) == (Usage(), "", None, None)
    with pytest.raises(TypeError):
        ToolLoopError("message", [USER], [], 1)  # type: ignore[call-arg]


def test_the_published_keywords_are_messages_tool_calls_iterations_and_rejected_response() -> None:
    parameters = list(inspect.signature(ToolLoopError).parameters.values())
    assert [p.name for p in parameters[:5]] == ["message", "messages", "tool_calls", "iterations", "rejected_response"]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[1:])


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("cls", LOOP_ERRORS)
def test_every_error_outlives_its_process_with_equal_fields(cls: type[ToolLoopError], way: str) -> None:
    error = full(cls, {"id": 1})
    again = COPIES[way](error)
    assert type(again) is cls
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


class Mute:
    """An object that can be neither shown nor copied."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __reduce__(self) -> Any:
        raise TypeError("no copies")


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("raw", [threading.Lock(), {"lock": threading.Lock()}, Mute()], ids=["lock", "inside", "mute"])
def test_a_providers_object_that_can_not_be_copied_does_not_stand_in_the_way(raw: Any, way: str) -> None:
    error = full(ToolLoopTruncatedResponseError, raw)
    again = COPIES[way](error)
    assert type(again) is ToolLoopTruncatedResponseError
    assert again.rejected_response is not None
    assert again.rejected_response.content == "cut"
    assert again.messages == error.messages


@pytest.mark.parametrize("way", ["json", "pickle", "deepcopy"])
def test_a_live_cause_outlives_the_process_as_type_and_text(way: str) -> None:
    turn = begun()
    turn.apply(turn.ops()[0], ModelFailed(ModelUnavailableError("nobody there")))
    error = error_of(turn)
    again = COPIES[way](error)
    assert again.cause == ErrorCause("ModelUnavailableError", "nobody there")


def test_an_error_of_a_real_turn_comes_back_from_json_with_its_state() -> None:
    error = error_of(reply(begun(), says("cut", "length", raw={"id": "x"}, usage=Usage(1, 2))))
    again = through_json(error)
    assert vars(again) == vars(error)
    assert again.state == error.state


def test_the_json_of_an_error_holds_its_state_as_json_not_as_text() -> None:
    error = error_of(reply(begun(), asks(call("a"), call("a"))))
    assert '"state":{"v":1,"kind":"turn",' in error_to_json(error)


def test_notes_go_along() -> None:
    error = full(ToolLoopError)
    error.add_note("in the kitchen")
    assert through_pickle(error).__notes__ == ["in the kitchen"]


def test_limit_errors_have_a_common_parent() -> None:
    limits = {cls.__name__ for cls in LOOP_ERRORS if issubclass(cls, ToolLoopLimitError)}
    assert limits == {
        "ToolLoopLimitError",
        "ToolLoopIterationLimitError",
        "ToolLoopToolCallLimitError",
        "ToolLoopTokenLimitError",
        "ToolLoopCostLimitError",
        "ToolLoopRepeatError",
        "ToolLoopDeadlineError",
    }


def test_the_tree_in_the_docstring_names_every_class() -> None:
    doc = all_errors.__doc__
    assert doc is not None
    for cls in (*LOOP_ERRORS, *MODEL_ERRORS, ToolError):
        assert cls.__name__ in doc


@pytest.mark.parametrize("cls", MODEL_ERRORS)
def test_model_errors_are_runtime_errors_that_take_a_sentence(cls: type[ModelError]) -> None:
    error = cls("nobody there")
    assert isinstance(error, RuntimeError)
    assert str(pickle.loads(pickle.dumps(error))) == "nobody there"


def test_a_turns_error_about_the_model_is_no_model_error() -> None:
    assert not issubclass(ToolLoopModelError, ModelError)
