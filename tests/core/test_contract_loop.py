"""The contract of run_tool_loop: what callers of the published interface rely on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    Limits,
    ModelUnavailableError,
    Tool,
    ToolCall,
    ToolContext,
    ToolDef,
    ToolLoopIterationLimitError,
    ToolLoopModelError,
    ToolLoopResult,
    ToolLoopToolCallLimitError,
    ToolLoopTruncatedResponseError,
    ToolSet,
    Turn,
    TurnContext,
    run_tool_loop,
)
from toolturn.testing import ScriptedModel
from toolturn.transcript import check

from .parts import USER, Nothing, add, answered, asks, call, echo, failing, result_of, run, says

Model = Callable[[tuple[ChatMessage, ...], tuple[ToolDef, ...]], Awaitable[ChatResponse]]


class Callback:
    """A model that is no more than a callback, and what it was given."""

    def __init__(self, *replies: ChatResponse | BaseException) -> None:
        self.replies = list(replies)
        self.given: list[tuple[Any, Any]] = []

    async def __call__(self, messages: tuple[ChatMessage, ...], definitions: tuple[ToolDef, ...]) -> ChatResponse:
        self.given.append((messages, definitions))
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply


# --- the signature -------------------------------------------------------------------


def test_the_published_parameters_come_first_with_their_defaults() -> None:
    parameters = inspect.signature(run_tool_loop).parameters
    assert list(parameters)[:5] == ["messages", "tools", "call_model", "max_iterations", "max_tool_calls"]
    assert all(parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for name in list(parameters)[:3])
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in list(parameters.values())[3:])
    assert (parameters["max_iterations"].default, parameters["max_tool_calls"].default) == (4, 16)
    assert all(p.default is not inspect.Parameter.empty for p in list(parameters.values())[3:])


# --- an answer -----------------------------------------------------------------------


def test_the_answer_is_stripped_while_the_transcript_keeps_it_as_it_came() -> None:
    result = run(run_tool_loop([USER], [], Callback(says("  Hello.\n"))))
    assert result.content == "Hello."
    assert result.messages == (USER, ChatMessage("assistant", "  Hello.\n"))
    assert (result.iterations, result.return_direct, result.tool_calls) == (1, False, ())


def test_messages_and_the_audit_are_tuples() -> None:
    model = Callback(asks(call("a")), says("Five."))
    result = run(run_tool_loop([USER], [add()], model))
    assert type(result.messages) is tuple
    assert type(result.tool_calls) is tuple
    assert all(type(messages) is tuple and type(definitions) is tuple for messages, definitions in model.given)


def test_the_callback_is_given_the_same_definitions_object_each_time() -> None:
    model = Callback(asks(call("a")), asks(call("b")), says("Done."))
    run(run_tool_loop([USER], [add()], model))
    first = model.given[0][1]
    assert all(definitions is first for _, definitions in model.given)
    assert [definition.name for definition in first] == ["add"]


def test_the_callback_is_given_what_the_transcript_holds_so_far() -> None:
    model = Callback(asks(call("a")), says("Five."))
    result = run(run_tool_loop([USER], [add()], model))
    assert model.given[0][0] == (USER,)
    assert model.given[1][0] == result.messages[:-1]


def test_a_later_request_does_not_change_an_earlier_one() -> None:
    model = Callback(asks(call("a")), says("Five."))
    run(run_tool_loop([USER], [add()], model))
    assert model.given[0][0] == (USER,)


def test_a_batch_runs_in_emitted_order_one_call_after_the_other() -> None:
    ran: list[Any] = []
    batch = asks(*(call(str(n), "echo", f'{{"text":"{n}"}}') for n in range(5)))
    result = run(run_tool_loop([USER], [echo(ran=ran)], Callback(batch, says("Done."))))
    assert ran == [("echo", str(n)) for n in range(5)]
    assert [record.call.id for record in result.tool_calls] == list("01234")
    assert [record.message for record in result.tool_calls] == list(result.messages[2:7])


def test_each_result_answers_its_call_with_its_id_in_a_tool_message() -> None:
    result = run(run_tool_loop([USER], [add()], Callback(asks(call("a")), says("Five."))))
    assert result.messages == (
        USER,
        ChatMessage("assistant", "", [call("a")]),
        answered("a", '{"total":5}'),
        ChatMessage("assistant", "Five."),
    )


def test_text_beside_calls_stays_in_the_transcript() -> None:
    model = Callback(asks(call("a"), content=" Let me see. "), says("Five."))
    result = run(run_tool_loop([USER], [add()], model))
    assert result.messages[1].content == " Let me see. "


@pytest.mark.parametrize("calls", [None, []], ids=["null", "empty"])
def test_an_empty_call_list_stays_what_it_was(calls: list[ToolCall] | None) -> None:
    result = run(run_tool_loop([USER], [], Callback(ChatResponse("Hi.", None, calls, "stop", {}))))
    assert result.messages[-1].tool_calls == calls


def test_the_callers_messages_are_left_alone() -> None:
    history = [USER]
    run(run_tool_loop(history, [add()], Callback(asks(call("a")), says("Five."))))
    assert history == [USER]


def test_the_callers_call_list_is_left_alone() -> None:
    response = asks(call("a"))
    given = response.tool_calls
    assert given is not None
    result = run(run_tool_loop([USER], [add()], Callback(response, says("Five."))))
    assert response.tool_calls is given
    assert given == [call("a")]
    assert result.messages[1].tool_calls == given


def test_messages_and_tools_may_be_any_iterables() -> None:
    model = Callback(asks(call("a")), says("Five."))
    result = run(run_tool_loop(iter([USER]), iter([add()]), model))
    assert result.content == "Five."
    result = run(run_tool_loop((USER,), ToolSet({"add": add()}), Callback(asks(call("a")), says("Five."))))
    assert result.content == "Five."


def test_an_empty_history_may_be_taken() -> None:
    assert run(run_tool_loop([], [], Callback(says("Hello.")))).messages == (ChatMessage("assistant", "Hello."),)


# --- direct returns ------------------------------------------------------------------


def test_a_direct_return_ends_the_turn_with_the_content_as_it_is() -> None:
    model = Callback(asks(call("a", "echo", '{"text":"x"}')))
    tool = echo(return_direct=True, render_result=lambda result: f"  {result.text}  ")
    result = run(run_tool_loop([USER], [tool], model))
    assert (result.content, result.return_direct, result.iterations) == ("  x  ", True, 1)
    assert result.messages[-1] == answered("a", "  x  ")
    assert result.tool_calls[0].return_direct


def test_a_direct_return_may_be_empty() -> None:
    tool = echo(return_direct=True, render_result=lambda result: "")
    result = run(run_tool_loop([USER], [tool], Callback(asks(call("a", "echo", '{"text":"x"}')))))
    assert (result.content, result.return_direct) == ("", True)


def test_a_direct_return_tool_with_invalid_arguments_does_not_end_the_turn() -> None:
    model = Callback(asks(call("a", "echo", "{}")), asks(call("b", "echo", '{"text":"x"}')))
    result = run(run_tool_loop([USER], [echo(return_direct=True)], model))
    assert (result.content, result.return_direct, result.iterations) == ('{"text":"x"}', True, 2)
    assert [record.return_direct for record in result.tool_calls] == [False, True]


# --- rejections ----------------------------------------------------------------------


def test_a_rejected_reply_is_not_in_the_messages_but_beside_them() -> None:
    cut = says("as far as", "length")
    with pytest.raises(ToolLoopTruncatedResponseError) as caught:
        run(run_tool_loop([USER], [add()], Callback(asks(call("a")), cut)))
    error = caught.value
    assert error.rejected_response is cut
    assert error.messages == (USER, ChatMessage("assistant", "", [call("a")]), answered("a", '{"total":5}'))
    assert type(error.messages) is tuple
    assert type(error.tool_calls) is tuple
    assert [record.call for record in error.tool_calls] == [call("a")]


def test_iterations_count_the_rejected_reply() -> None:
    with pytest.raises(ToolLoopTruncatedResponseError) as caught:
        run(run_tool_loop([USER], [add()], Callback(asks(call("a")), says("cut", "length"))))
    assert caught.value.iterations == 2


def test_a_batch_over_the_budget_runs_nothing() -> None:
    ran: list[Any] = []
    with pytest.raises(ToolLoopToolCallLimitError) as caught:
        run(run_tool_loop([USER], [add(ran)], Callback(asks(call("a"), call("b"))), max_tool_calls=1))
    assert ran == []
    assert (caught.value.messages, caught.value.iterations) == ((USER,), 1)


def test_the_budget_is_that_of_the_turn_not_of_a_batch() -> None:
    ran: list[Any] = []
    model = Callback(asks(call("a"), call("b")), asks(call("c"), call("d")))
    with pytest.raises(ToolLoopToolCallLimitError) as caught:
        run(run_tool_loop([USER], [add(ran)], model, max_tool_calls=3))
    assert len(ran) == len(caught.value.tool_calls) == 2


def test_the_tools_of_the_last_iteration_run_before_the_limit_is_told() -> None:
    ran: list[Any] = []
    with pytest.raises(ToolLoopIterationLimitError) as caught:
        run(run_tool_loop([USER], [add(ran)], Callback(asks(call("a"))), max_iterations=1))
    assert ran == [(2, 3)]
    assert caught.value.iterations == 1
    assert caught.value.rejected_response is None
    assert caught.value.messages[-1] == answered("a", '{"total":5}')


def test_four_iterations_and_sixteen_calls_are_the_defaults() -> None:
    model = Callback(*(asks(call(str(n))) for n in range(4)))
    with pytest.raises(ToolLoopIterationLimitError):
        run(run_tool_loop([USER], [add()], model))
    assert len(model.given) == 4
    with pytest.raises(ToolLoopToolCallLimitError):
        run(run_tool_loop([USER], [add()], Callback(asks(*(call(str(n)) for n in range(17))))))
    many = Callback(asks(*(call(str(n)) for n in range(16))), says("Done."))
    assert len(run(run_tool_loop([USER], [add()], many)).tool_calls) == 16


# --- limits --------------------------------------------------------------------------


def test_limits_out_of_range_are_refused_before_anything_else() -> None:
    tools: Any = [object()]
    model, nonsense = Callback(), [ChatMessage("nobody", "Hi.")]
    with pytest.raises(ValueError, match=r"^max_iterations must be at least 1$"):
        run(run_tool_loop(nonsense, tools, model, max_iterations=0))
    with pytest.raises(ValueError, match=r"^max_tool_calls must not be negative$"):
        run(run_tool_loop(nonsense, tools, model, max_tool_calls=-1))
    assert model.given == []


def test_no_tool_calls_at_all_is_a_limit_like_any_other() -> None:
    assert run(run_tool_loop([USER], [add()], Callback(says("Hi.")), max_tool_calls=0)).content == "Hi."


def test_limits_replace_both_keywords() -> None:
    model = Callback(asks(call("a")), asks(call("b")), says("Done."))
    limits = Limits(iterations=3, tool_calls=2)
    result = run(run_tool_loop([USER], [add()], model, max_iterations=1, max_tool_calls=0, limits=limits))
    assert (result.iterations, len(result.tool_calls)) == (3, 2)
    with pytest.raises(ToolLoopIterationLimitError):
        run(run_tool_loop([USER], [add()], Callback(asks(call("a"))), max_iterations=9, limits=Limits(iterations=1)))


@pytest.mark.parametrize(("option", "value"), [("on_limit", "stop"), ("tool_errors", "hide")])
def test_a_policy_that_is_none_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{option} must be"):
        run(run_tool_loop([USER], [], Callback(), **{option: value}))


# --- what is refused before the model is called --------------------------------------


@pytest.mark.parametrize(
    "history",
    [
        [USER, ChatMessage("assistant", "", [call("a")])],
        [USER, answered("a")],
        [ChatMessage("nobody", "Hi.")],
        [ChatMessage("user", None)],  # type: ignore[arg-type]
    ],
    ids=["open call", "stray result", "unknown role", "no text"],
)
def test_a_history_no_provider_would_take_is_refused_and_the_message_named(history: list[ChatMessage]) -> None:
    model = Callback(says("Hi."))
    with pytest.raises(ValueError, match=r"no valid transcript: message \d: .*repair mends them"):
        run(run_tool_loop(history, [], model))
    assert model.given == []


def test_a_turn_that_was_started_before_is_refused() -> None:
    turn = Turn()
    run(run_tool_loop([USER], [], Callback(says("Hi.")), turn=turn))
    model = Callback(says("Again."))
    with pytest.raises(ValueError, match="has begun already"):
        run(run_tool_loop([USER], [], model, turn=turn))
    assert model.given == []


def test_an_empty_turn_is_filled() -> None:
    turn = Turn()
    result = run(run_tool_loop([USER], [], Callback(says("Hi.")), turn=turn))
    assert turn.messages == result.messages
    assert turn.exit is result
    assert turn.turn_id == result.turn_id != ""


def test_a_turn_is_named_by_the_caller_or_gets_a_name_of_its_own() -> None:
    assert run(run_tool_loop([USER], [], Callback(says("Hi.")), turn_id="mine")).turn_id == "mine"
    one, other = (run(run_tool_loop([USER], [], Callback(says("Hi.")))).turn_id for _ in range(2))
    assert one != other


def test_a_callback_that_is_not_asynchronous_is_a_type_error() -> None:
    def model(messages: Any, definitions: Any) -> ChatResponse:
        return says("Hi.")

    with pytest.raises(TypeError, match="must be awaitable"):
        run(run_tool_loop([USER], [], model))  # type: ignore[arg-type]


def test_a_callback_that_gives_something_else_is_a_type_error() -> None:
    async def model(messages: Any, definitions: Any) -> Any:
        return {"content": "Hi."}

    with pytest.raises(TypeError, match="must return a ChatResponse, not dict"):
        run(run_tool_loop([USER], [], model))


# --- exceptions ----------------------------------------------------------------------


class Foreign(Exception):
    pass


@pytest.mark.parametrize("error", [Foreign("x"), ValueError("x"), TimeoutError(), KeyError("x"), RuntimeError("x")])
def test_an_exception_of_the_callers_own_callback_passes_unchanged(error: Exception) -> None:
    turn = Turn()
    with pytest.raises(type(error)) as caught:
        run(run_tool_loop([USER], [add()], Callback(asks(call("a")), error), turn=turn))
    assert caught.value is error
    assert (turn.phase, turn.iterations, len(turn.records)) == ("model", 1, 1)
    assert check(turn.messages) == []


def test_one_of_our_own_model_errors_becomes_an_exit_with_the_cause_chained() -> None:
    error = ModelUnavailableError("gone")
    with pytest.raises(ToolLoopModelError) as caught:
        run(run_tool_loop([USER], [add()], Callback(asks(call("a")), error)))
    assert caught.value.__cause__ is error
    assert len(caught.value.tool_calls) == 1


@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt])
def test_an_interruption_from_the_callback_propagates(kind: type[BaseException]) -> None:
    turn = Turn()
    with pytest.raises(kind):
        run(run_tool_loop([USER], [add()], Callback(asks(call("a")), kind()), turn=turn))
    assert turn.phase == "ended"
    assert check(turn.messages) == []


@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt])
def test_an_interruption_from_a_tool_propagates_and_closes_the_batch(kind: type[BaseException]) -> None:
    turn = Turn()
    ran: list[Any] = []
    batch = asks(call("a", "stop", "{}"), call("b"))
    with pytest.raises(kind):
        run(run_tool_loop([USER], [failing(kind(), "stop"), add(ran)], Callback(batch), turn=turn))
    assert ran == []
    assert [record.status for record in turn.records] == ["cancelled", "not_executed"]
    assert check(turn.messages) == []


def test_a_cancelled_turn_ends_with_cancelled_error_after_the_handler_has_cleaned_up() -> None:
    told: list[str] = []
    waiting = asyncio.Event()

    async def model(messages: Any, definitions: Any) -> ChatResponse:
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            told.append("cleaned up")
        raise AssertionError

    async def cancelled() -> Turn:
        turn = Turn()
        task = asyncio.ensure_future(run_tool_loop([USER], [], model, turn=turn))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == ["cleaned up"]
        return turn

    assert run(cancelled()).messages == (USER,)


# --- the rest of the signature -------------------------------------------------------


def test_a_limit_may_lead_to_a_last_answer_without_tools() -> None:
    model = Callback(asks(call("a")), says("As far as I know."))
    result = run(run_tool_loop([USER], [add()], model, max_iterations=1, on_limit="answer"))
    assert (result.content, result.limit, result.iterations) == ("As far as I know.", "iterations", 1)
    assert model.given[1][1] == ()


def test_what_tools_may_know_is_handed_on() -> None:
    known: list[Any] = []

    async def handler(request: Nothing, context: ToolContext) -> None:
        known.append((context.session, context.data, context.key))

    tools: list[Tool[Any, Any]] = [Tool("look", "Looks around.", Nothing, None, handler)]
    for context in (TurnContext(session="s", data=7), 7):
        model = Callback(asks(call("a", "look", "{}")), says("Done."))
        run(run_tool_loop([USER], tools, model, context=context, turn_id="turn"))
    assert known == [("s", 7, "turn/t1.0"), (None, 7, "turn/t1.0")]


def test_a_scripted_model_and_a_callback_of_the_same_replies_give_equal_results() -> None:
    replies = (asks(call("a")), says(" Five. "))
    one = run(run_tool_loop([USER], [add()], Callback(*replies), turn_id="turn"))
    with ScriptedModel(replies) as model:
        other = run(run_tool_loop([USER], [add()], model, turn_id="turn"))
    assert isinstance(one, ToolLoopResult)
    assert one.messages == other.messages
    assert one.content == other.content


def test_a_result_and_its_turn_agree() -> None:
    turn = Turn()
    result = run(run_tool_loop([USER], [add()], Callback(asks(call("a")), says("Five.")), turn=turn))
    assert result_of(turn) is result


@pytest.mark.parametrize(
    ("messages", "model", "words"),
    [
        ([{"role": "user", "content": "hi"}], ScriptedModel([]), "messages must be ChatMessage objects, not dict"),
        ("hi", ScriptedModel([]), "messages must be ChatMessage objects, not str"),
        ([ChatMessage("user", "hi")], "openai:gpt-5", "call_model must be a ChatModel or a callable, not str"),
    ],
    ids=["dictionaries", "text", "a model's name"],
)
def test_what_is_no_message_or_no_model_is_told_with_what_to_do(messages: Any, model: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        asyncio.run(run_tool_loop(messages, [], model))
