"""Required answers: a validated object, or what one direct-return tool returned."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator
from typing_extensions import TypedDict

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatResponse,
    Limits,
    ModelSettings,
    ToolError,
    ToolHook,
    ToolInvocationResult,
    ToolLoopError,
    ToolLoopIterationLimitError,
    ToolLoopTruncatedResponseError,
    Turn,
    result_from_json,
    result_to_json,
    resume,
    run_tool_loop,
    stream_tool_loop,
    tool,
)
from toolturn.events import Answer, Text
from toolturn.limits import OnLimit
from toolturn.testing import Reply, ScriptedModel, calls
from toolturn.transcript import check
from toolturn.turn import CallModel, Unfit

USER = [ChatMessage("user", "the weather in Rome?")]


class Weather(BaseModel):
    """What the weather is like."""

    place: str
    degrees: float = Field(ge=-90, le=60)


GOOD = '{"place":"Rome","degrees":21.0}'
ROME = Weather(place="Rome", degrees=21)
BAD = '{"place":"Rome","degrees":900}'


@tool
def look(place: str) -> str:
    """Look at the sky.

    Args:
        place: Where.
    """
    return f"sunny in {place}"


@tool(return_direct=True)
async def book(seats: int) -> Weather:
    """Book seats.

    Args:
        seats: How many.
    """
    if seats > 8:
        raise ToolError("there are 8 seats")
    return Weather(place="seat", degrees=seats)


@tool(return_direct=True)
def give_up() -> str:
    """Give up."""
    return "sorry"


class Structured(ScriptedModel):
    """A scripted model that can hold its text to a schema."""

    def __init__(self, *args: Any, answers: str = "beside_tools", **options: Any) -> None:
        super().__init__(*args, **options)
        self._answers: Any = answers

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=self._streaming, tools=True, answers=self._answers)


def run(model: ScriptedModel, tools: Any = (), **options: Any) -> Any:
    options.setdefault("answer_type", Weather)
    result = asyncio.run(run_tool_loop(USER, tools, model, **options))
    model.done()
    assert check(result.messages) == []
    return result


def error(model: ScriptedModel, tools: Any = (), **options: Any) -> ToolLoopError:
    options.setdefault("answer_type", Weather)
    with pytest.raises(ToolLoopError) as caught:
        asyncio.run(run_tool_loop(USER, tools, model, **options))
    model.done()
    assert check(caught.value.messages) == []
    return caught.value


# --- by a final tool -------------------------------------------------------------------


def test_a_model_is_offered_one_more_tool_that_takes_the_answer() -> None:
    model = ScriptedModel([calls(("look", '{"place":"Rome"}')), calls(("final_answer", GOOD))])
    result = run(model, [look])
    assert result.value == ROME
    assert result.content == GOOD
    assert [tool.name for tool in model.requests[0][1]] == ["look", "final_answer"]
    assert model.requests[0][1][1].parameters["required"] == ["place", "degrees"]
    assert "What the weather is like." in model.requests[0][1][1].description


def test_the_only_tool_there_is_has_to_be_called_at_once() -> None:
    model = ScriptedModel([calls(("final_answer", GOOD))])
    assert run(model).value == ROME
    assert model.settings == [ModelSettings(tool_choice="final_answer")]


def test_beside_other_tools_it_has_to_be_called_when_no_further_call_is_left() -> None:
    model = ScriptedModel([calls(("look", '{"place":"Rome"}')), calls(("final_answer", GOOD))])
    run(model, [look], max_iterations=2)
    assert [settings and settings.tool_choice for settings in model.settings] == [None, "final_answer"]


def test_where_a_last_answer_will_be_asked_for_it_does_not_have_to_be_called_before() -> None:
    model = ScriptedModel([calls(("look", '{"place":"Rome"}')), calls(("final_answer", GOOD))])
    run(model, [look], max_iterations=2, on_limit="answer")
    assert [settings and settings.tool_choice for settings in model.settings] == [None, None]


def test_settings_of_the_caller_stay() -> None:
    model = ScriptedModel([calls(("final_answer", GOOD))])
    run(model, settings=ModelSettings(temperature=0.5))
    assert model.settings == [ModelSettings(temperature=0.5, tool_choice="final_answer")]


def test_an_object_that_does_not_fit_goes_back_with_what_is_wrong() -> None:
    model = ScriptedModel([calls(("final_answer", BAD)), calls(("final_answer", GOOD))])
    result = run(model)
    assert result.value == ROME
    assert "degrees" in json.loads(result.tool_calls[0].message.content)["detail"]
    assert result.iterations == 2


def test_an_answer_beside_other_calls_comes_too_early_and_is_asked_for_again() -> None:
    early = calls(("look", '{"place":"Rome"}'), ("final_answer", GOOD))
    model = ScriptedModel([early, calls(("look", '{"place":"Rome"}')), calls(("final_answer", GOOD))])
    result = run(model, [look])
    assert result.value == ROME
    assert [record.call.name for record in result.tool_calls] == ["look", "final_answer"]
    assert "Call final_answer alone" in str(model.requests[1][0][-1].content)
    assert type(error(ScriptedModel([early]), [look], max_iterations=1)) is ToolLoopIterationLimitError


def test_text_instead_of_the_call_is_not_the_answer() -> None:
    model = ScriptedModel(["It is sunny.", calls(("final_answer", GOOD))])
    result = run(model)
    assert result.value == ROME
    shown = model.requests[1][0]
    assert [message.role for message in shown] == ["user", "assistant", "user"]
    assert shown[1].content == "It is sunny."
    assert "call the tool final_answer" in str(shown[2].content)
    assert all(message.content != "It is sunny." for message in result.messages)


@pytest.mark.parametrize("text", [GOOD, f"```json\n{GOOD}\n```", '{"place": "Rome", "degrees": 21,}'])
def test_an_object_written_as_text_is_the_answer_all_the_same(text: str) -> None:
    result = run(ScriptedModel([text]), [look])
    assert result.value == ROME
    assert json.loads(result.content) == json.loads(GOOD)


def test_an_empty_reply_is_asked_for_once_more_and_never_taken_for_an_empty_object() -> None:
    class Nothing(BaseModel):
        note: str = "none"

    model = ScriptedModel(["", "null", calls(("final_answer", "{}"))])
    assert run(model, answer_type=Nothing).value == Nothing()
    assert len(model.requests) == 3


def test_a_tool_of_the_users_that_has_this_name_keeps_it() -> None:
    @tool
    def final_answer(text: str) -> str:
        """Say something."""
        return text

    model = ScriptedModel([calls(("final_answer", '{"text":"x"}')), calls(("final_answer_2", GOOD))])
    assert run(model, [final_answer]).value == ROME


def test_a_plain_callback_answers_in_a_type_too() -> None:
    async def model(messages: Any, tools: Any) -> ChatResponse:
        return calls((tools[-1].name, GOOD))

    assert asyncio.run(run_tool_loop(USER, [look], model, answer_type=Weather)).value == ROME


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ChatResponse(""), "Your reply was empty. Call a tool"),
        (ChatResponse("x", None, [], "tool_calls"), "You announced a tool call but made none. Call a tool"),
        (ChatResponse("", None, None, "malformed_function_call"), "Your tool call could not be read. Call a tool"),
    ],
)
def test_what_was_wrong_with_a_broken_reply_is_said_and_that_a_tool_has_to_be_called(
    reply: ChatResponse, words: str
) -> None:
    model = ScriptedModel([reply, calls(("final_answer", GOOD))])
    assert run(model).value == ROME
    said = str(model.requests[1][0][-1].content)
    assert said.startswith(words)
    assert "to finish, call final_answer" in said


def test_when_the_iterations_run_out_the_last_reply_and_what_was_wrong_with_it_are_told() -> None:
    failed = error(ScriptedModel(["no", "no again"]), max_iterations=2)
    assert type(failed) is ToolLoopIterationLimitError
    assert "did not call final_answer" in str(failed)
    assert failed.rejected_response is not None
    assert failed.rejected_response.content == "no again"
    assert failed.messages == tuple(USER)


def test_a_truncated_reply_is_refused_as_ever() -> None:
    cut = ChatResponse(GOOD[:12], None, None, "length")
    assert type(error(ScriptedModel([cut]))) is ToolLoopTruncatedResponseError


# --- by text that is held to a schema --------------------------------------------------


def test_a_model_that_can_hold_its_text_to_a_schema_gets_the_schema_and_no_further_tool() -> None:
    model = Structured([calls(("look", '{"place":"Rome"}')), GOOD])
    result = run(model, [look])
    assert result.value == ROME
    assert [tool.name for tool in model.requests[0][1]] == ["look"]
    for settings in model.settings:
        assert settings is not None
        assert settings.answer is not None
        assert settings.answer.parameters["properties"].keys() == {"place", "degrees"}


def test_one_that_can_not_do_so_beside_tools_does_it_without_them() -> None:
    model = Structured([GOOD], answers="alone")
    assert run(model).value == ROME
    assert model.settings[0] is not None
    assert model.settings[0].answer is not None
    model = Structured([calls(("final_answer", GOOD))], answers="alone")
    assert run(model, [look]).value == ROME


def test_text_that_does_not_fit_goes_back_with_what_is_wrong_and_stays_out_of_the_transcript() -> None:
    model = Structured([BAD, GOOD])
    result = run(model)
    assert result.value == ROME
    shown = model.requests[1][0]
    assert shown[1] == ChatMessage("assistant", BAD)
    assert "degrees" in str(shown[2].content)
    assert result.messages == (*USER, ChatMessage("assistant", GOOD))


def test_text_that_never_fits_ends_at_the_limit_with_what_was_wrong() -> None:
    failed = error(Structured([BAD, BAD]), max_iterations=2)
    assert type(failed) is ToolLoopIterationLimitError
    assert "degrees" in str(failed)
    assert failed.rejected_response is not None


def test_a_validator_that_raises_anything_is_a_fault_of_the_answer() -> None:
    class Picky(BaseModel):
        place: str

        @field_validator("place")
        @classmethod
        def known(cls, value: str) -> str:
            return {"Rome": value}[value]

    model = Structured(['{"place":"Oz"}', '{"place":"Rome"}'])
    assert run(model, answer_type=Picky).value == Picky(place="Rome")
    assert "KeyError" in str(model.requests[1][0][-1].content)


@dataclass
class Place:
    name: str


class Named(TypedDict):
    name: str


@pytest.mark.parametrize("wanted", [Place, Named])
def test_a_dataclass_or_typed_dictionary_is_a_type_of_answer_too(wanted: Any) -> None:
    assert run(Structured(['{"name":"Rome"}']), answer_type=wanted).value == wanted(name="Rome")
    assert run(ScriptedModel([calls(("final_answer", '{"name":"Rome"}'))]), answer_type=wanted).value == wanted(
        name="Rome"
    )


SCHEMA = {
    "title": "Weather",
    "type": "object",
    "properties": {"place": {"type": "string"}, "degrees": {"type": "number", "maximum": 60}},
    "required": ["place", "degrees"],
}


def test_a_json_schema_is_a_form_of_an_answer_too() -> None:
    model = ScriptedModel([calls(("final_answer", BAD)), calls(("final_answer", GOOD))])
    result = run(model, answer_type=SCHEMA)
    assert (result.value, json.loads(result.content)) == (json.loads(GOOD), json.loads(GOOD))
    assert model.requests[0][1][0].parameters == SCHEMA
    assert run(Structured([BAD, GOOD]), answer_type=SCHEMA).value == json.loads(GOOD)
    with pytest.raises(ValueError, match="the schema of the answer"):
        run(ScriptedModel([]), answer_type={"type": "array"})


@pytest.mark.parametrize("wanted", [int, list[int], "Weather", object(), len, lambda: None])
def test_a_type_whose_json_is_no_object_is_refused_before_the_model_is_asked(wanted: Any) -> None:
    with pytest.raises(TypeError, match="answer_type"):
        run(ScriptedModel([]), answer_type=wanted)


# --- a last answer at a limit ----------------------------------------------------------


@pytest.mark.parametrize("reply", [calls(("final_answer", GOOD)), GOOD], ids=["call", "text"])
def test_the_last_answer_at_a_limit_is_an_object_too(reply: Any) -> None:
    model = ScriptedModel([calls(("look", '{"place":"Rome"}')), reply])
    result = run(model, [look], max_iterations=1, on_limit="answer")
    assert (result.value, result.limit, result.iterations) == (ROME, "iterations", 1)
    assert [tool.name for tool in model.requests[1][1]] == ["final_answer"]
    assert model.settings[1] == ModelSettings(tool_choice="final_answer")
    assert result.messages[-1] == ChatMessage("assistant", GOOD)


@pytest.mark.parametrize("answers", ["alone", "beside_tools"])
def test_the_last_answer_of_a_model_that_can_is_its_text(answers: str) -> None:
    model = Structured([calls(("look", '{"place":"Rome"}')), GOOD], answers=answers)
    assert run(model, [look], max_iterations=1, on_limit="answer").value == ROME
    assert model.settings[1] is not None
    assert model.settings[1].answer is not None


@pytest.mark.parametrize("reply", [calls(("final_answer", BAD)), "sunny", calls(("look", '{"place":"Rome"}'))])
def test_a_last_answer_that_does_not_fit_ends_with_the_limit(reply: Any) -> None:
    model = ScriptedModel([calls(("look", '{"place":"Rome"}')), reply])
    failed = error(model, [look], max_iterations=1, on_limit="answer")
    assert type(failed) is ToolLoopIterationLimitError
    assert failed.rejected_response is not None
    assert len(failed.tool_calls) == 1


# --- in one tool -----------------------------------------------------------------------


def test_a_turn_that_has_to_end_in_a_tool_holds_what_the_tool_returned() -> None:
    model = ScriptedModel(["Shall I?", calls(("book", '{"seats":2}'))])
    result = run(model, [look, book], answer_type=None, require_tool="book")
    assert result.value == Weather(place="seat", degrees=2)
    assert result.return_direct
    assert "call the tool book" in str(model.requests[1][0][-1].content)


def test_it_goes_on_until_the_tool_has_succeeded() -> None:
    model = ScriptedModel(
        [calls(("book", '{"seats":"many"}')), calls(("book", '{"seats":9}')), calls(("book", '{"seats":3}'))]
    )
    result = run(model, [book], answer_type=None, require_tool="book")
    assert [record.status for record in result.tool_calls] == ["invalid_arguments", "error", "ok"]
    assert result.value == Weather(place="seat", degrees=3)


def test_another_direct_return_tool_does_not_end_it() -> None:
    model = ScriptedModel([calls(("give_up", "{}")), calls(("book", '{"seats":2}'))])
    result = run(model, [give_up, book], answer_type=None, require_tool="book")
    assert [record.return_direct for record in result.tool_calls] == [False, True]
    assert result.value == Weather(place="seat", degrees=2)


def test_it_must_be_called_in_the_last_iteration_and_there_is_no_last_answer_without_it() -> None:
    model = ScriptedModel([calls(("look", '{"place":"Rome"}')), "no"])
    failed = error(model, [look, book], answer_type=None, require_tool="book", max_iterations=2, on_limit="answer")
    assert type(failed) is ToolLoopIterationLimitError
    assert model.settings[1] == ModelSettings(tool_choice="book")


def test_what_a_direct_return_tool_returned_is_there_without_being_required() -> None:
    result = run(ScriptedModel([calls(("book", '{"seats":2}'))]), [book], answer_type=None)
    assert result.value == Weather(place="seat", degrees=2)
    assert run(ScriptedModel(["hello"]), [book], answer_type=None).value is None


@pytest.mark.parametrize(
    ("name", "words"), [("fly", "none of the tools"), ("look", "no direct-return tool")], ids=["absent", "not direct"]
)
def test_a_tool_that_can_not_end_the_turn_is_refused_before_the_model_is_asked(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        run(ScriptedModel([]), [look, book], answer_type=None, require_tool=name)
    with pytest.raises(ValueError, match="exclude each other"):
        run(ScriptedModel([]), [book], require_tool="book")


# --- saved, resumed, streamed ----------------------------------------------------------


def test_a_turn_goes_on_to_its_typed_answer_in_another_process() -> None:
    failed = error(ScriptedModel(["no", "no again"]), [look], max_iterations=2)
    state = failed.state
    assert state is not None
    model = ScriptedModel(["still no", calls(("final_answer", GOOD))])
    result = asyncio.run(resume(state, [look], model, limits=Limits(6), answer_type=Weather))
    assert result.value == ROME
    with pytest.raises(
        ValueError, match=r"^the answer of this turn has a type, which is not saved with it; give answer_type again$"
    ):
        asyncio.run(resume(state, [look], model, limits=Limits(6)))


def test_another_tool_may_be_required_as_a_turn_goes_on_or_none() -> None:
    failed = error(ScriptedModel(["no"]), [give_up, book], answer_type=None, require_tool="book", max_iterations=1)
    model = ScriptedModel([calls(("give_up", "{}"))])
    result = asyncio.run(resume(failed, [give_up, book], model, limits=Limits(3), require_tool="give_up"))
    assert result.content == "sorry"
    turn = Turn.from_json(failed.state or "")
    turn.reopen((), turn.traits, limits=Limits(3), required="", typed=False)
    assert (turn.required, turn.typed) == ("", False)
    turn = Turn.from_json(failed.state or "")
    turn.reopen((), turn.traits, limits=Limits(3), required="", typed=True)
    assert turn.typed


def test_an_answer_that_does_not_fit_needs_no_reason() -> None:
    turn = Turn("t")
    turn.begin(USER, (), {}, limits=Limits(2), typed=True)
    turn.apply(turn.ops()[0], Unfit(ChatResponse("x"), ""))
    (op,) = turn.ops()
    assert isinstance(op, CallModel)
    assert "form that was asked for: it does not fit." in str(op.messages[-1].content)


def test_what_was_said_to_a_model_that_did_not_fit_is_saved_with_the_turn() -> None:
    turn = Turn()
    model = Structured([BAD, Reply(error=KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run_tool_loop(USER, [], model, answer_type=Weather, turn=turn))
    again = Structured([GOOD])
    assert asyncio.run(resume(turn.to_json(), [], again, answer_type=Weather)).value == ROME
    assert again.requests == model.requests[1:]


def test_a_required_tool_is_remembered() -> None:
    failed = error(ScriptedModel(["no"]), [look, book], answer_type=None, require_tool="book", max_iterations=1)
    assert failed.state is not None
    model = ScriptedModel(["no", calls(("book", '{"seats":1}'))])
    result = asyncio.run(resume(failed.state, [look, book], model, limits=Limits(3)))
    assert result.value == Weather(place="seat", degrees=1)
    assert model.settings[1] == ModelSettings(tool_choice="book")
    with pytest.raises(ValueError, match="has to end in the tool book"):
        asyncio.run(resume(failed.state, [look], model, limits=Limits(3)))


def test_the_object_is_in_the_json_of_a_result_and_in_its_pickle() -> None:
    result = run(Structured([GOOD]))
    read = result_from_json(result_to_json(result))
    assert read.value == {"place": "Rome", "degrees": 21.0}
    assert pickle.loads(pickle.dumps(result)) == result


async def _events(model: ScriptedModel, tools: Any) -> tuple[list[Any], Any]:
    async with stream_tool_loop(USER, tools, model, answer_type=Weather) as events:
        seen = [event async for event in events]
        return seen, await events.result()


@pytest.mark.parametrize("kind", [Structured, ScriptedModel])
def test_a_streamed_turn_has_the_same_typed_answer(kind: type[ScriptedModel]) -> None:
    def script() -> list[Any]:
        return [GOOD] if kind is Structured else ["no", calls(("final_answer", GOOD))]

    seen, result = asyncio.run(_events(kind(script(), streaming=True), [look]))
    plain = run(kind(script()), [look])
    assert (result.value, result.content) == (plain.value, plain.content)
    assert [event.content for event in seen if isinstance(event, Answer)] == [GOOD]
    if kind is Structured:
        assert "".join(event.text for event in seen if isinstance(event, Text)) == GOOD


def test_a_hook_may_replace_the_object() -> None:
    def after(invocation: Any, result: ToolInvocationResult) -> ToolInvocationResult:
        return ToolInvocationResult("{}", True, value="mine")

    result = run(ScriptedModel([calls(("final_answer", GOOD))]), hooks=[ToolHook(after=after)])
    assert (result.content, result.value) == ("{}", "mine")


def test_a_hook_that_replaces_the_text_alone_leaves_the_object() -> None:
    def after(invocation: Any, result: ToolInvocationResult) -> ToolInvocationResult:
        return ToolInvocationResult("hidden", result.return_direct)

    result = run(ScriptedModel([calls(("final_answer", GOOD))]), hooks=[ToolHook(after=after)])
    assert (result.content, result.value) == ("hidden", ROME)


class Day(BaseModel):
    """A day."""

    model_config = ConfigDict(strict=True)

    when: date
    hours: tuple[int, int]


@pytest.mark.parametrize("kind", [Structured, ScriptedModel])
def test_a_strict_type_takes_what_json_has_for_its_types(kind: type[ScriptedModel]) -> None:
    text = '{"when":"2030-01-02","hours":[8,9]}'
    reply: Any = text if kind is Structured else calls(("final_answer", text))
    assert run(kind([reply]), answer_type=Day).value == Day(when=date(2030, 1, 2), hours=(8, 9))


def test_a_plain_callback_is_offered_the_final_tool_alone_where_it_has_to_be_called() -> None:
    offered: list[list[str]] = []

    async def model(messages: Any, tools: Any) -> Any:
        offered.append([tool.name for tool in tools])
        return calls(("look", '{"place":"Rome"}')) if "look" in offered[-1] else calls(("final_answer", GOOD))

    policies: tuple[OnLimit, ...] = ("answer", "raise")
    for policy in policies:
        offered.clear()
        result = asyncio.run(run_tool_loop(USER, [look], model, answer_type=Weather, max_iterations=2, on_limit=policy))
        assert result.value == ROME
        assert offered[-1] == ["final_answer"]
        assert all(names == ["look", "final_answer"] for names in offered[:-1])


BROKEN = ["", ChatResponse("", finish_reason="tool_calls"), ChatResponse("", finish_reason="malformed_function_call")]


@pytest.mark.parametrize("broken", BROKEN)
def test_whoever_replies_nothing_of_use_is_not_told_to_answer_in_plain_text(broken: Any) -> None:
    by_tool = ScriptedModel([broken, calls(("final_answer", GOOD))])
    by_text = Structured([broken, GOOD])
    required = ScriptedModel([broken, calls(("book", '{"seats":2}'))])
    run(by_tool, [look])
    run(by_text, [look])
    run(required, [look, book], answer_type=None, require_tool="book")
    said = [str(model.requests[1][0][-1].content) for model in (by_tool, by_text, required)]
    assert not any("plain text" in text for text in said)
    assert said[0].endswith("; to finish, call final_answer.")
    assert said[1].endswith(", or answer with the whole object.")
    assert said[2].endswith("; to finish, call book.")
