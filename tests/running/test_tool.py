"""Tool: what it is made of, what it tells a model, and how it runs without one."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import (
    ChatMessage,
    Tool,
    ToolCall,
    ToolContext,
    ToolDef,
    ToolError,
    ToolInvocationResult,
    handle_tool_call,
)
from toolturn.turn import ToolTraits

from .support import Nothing, Number, Word, record_of, run, tool_of


class Sum(BaseModel):
    left: int
    right: int = 0


class Total(BaseModel):
    total: int


async def _add(request: Sum) -> Total:
    return Total(total=request.left + request.right)


ADD = Tool("add", "Add two numbers.", Sum, Total, _add)


def test_a_tool_is_made_of_five_things_in_this_order() -> None:
    assert (ADD.name, ADD.description, ADD.request_model, ADD.result_model, ADD.handler) == (
        "add",
        "Add two numbers.",
        Sum,
        Total,
        _add,
    )


def test_unless_it_says_otherwise_a_tool_is_no_answer_runs_once_and_alone_and_has_no_timeout() -> None:
    assert ADD.return_direct is False
    assert ADD.render_result is None
    assert ADD.timeout is None
    assert ADD.traits == ToolTraits(return_direct=False, effect="once", parallel=False)


def test_its_traits_are_what_it_says() -> None:
    tool = Tool("add", "Add.", Sum, Total, _add, return_direct=True, effect="keyed", parallel=True)
    assert tool.traits == ToolTraits(return_direct=True, effect="keyed", parallel=True)


def test_its_definition_holds_the_schema_of_its_request_model_made_once() -> None:
    definition = ADD.definition()
    assert definition == ToolDef("add", "Add two numbers.", Sum.model_json_schema())
    assert ADD.definition().parameters is definition.parameters


def test_its_definition_may_have_another_name() -> None:
    assert ADD.definition("math__add").name == "math__add"


def test_its_definition_has_the_form_of_chat_completions() -> None:
    assert ADD.definition().to_openai() == {
        "type": "function",
        "function": {"name": "add", "description": "Add two numbers.", "parameters": Sum.model_json_schema()},
    }


def test_its_repr_names_it() -> None:
    assert repr(ADD) == "<Tool add>"


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="tool name must not be empty"):
        Tool(name, "It acts.", Nothing, None, lambda request: None)


def test_a_tool_without_a_description_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="tool 'act' needs a description"):
        Tool("act", "", Nothing, None, lambda request: None)


@pytest.mark.parametrize("model", [dict, str, None, Nothing(), "Nothing"])
def test_a_request_model_that_is_none_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="the request model of tool 'act' must be a pydantic model"):
        Tool("act", "It acts.", model, None, lambda request: None)


@pytest.mark.parametrize("model", [dict, str, Nothing()])
def test_a_result_model_that_is_none_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="the result model of tool 'act' must be a pydantic model or None"):
        Tool("act", "It acts.", Nothing, model, lambda request: None)


@pytest.mark.parametrize("handler", [None, "handler", 7])
def test_a_handler_that_can_not_be_called_is_refused(handler: Any) -> None:
    with pytest.raises(TypeError, match="the handler of tool 'act' can not be called"):
        Tool("act", "It acts.", Nothing, None, handler)


def test_executing_gives_the_result_and_not_its_text() -> None:
    assert run(ADD.execute(Sum(left=2, right=3))) == Total(total=5)


def test_the_handler_is_given_the_request_itself_and_the_caller_the_result_itself() -> None:
    seen: list[Any] = []
    answer = Word(word="hi")

    def handler(request: Nothing) -> Word:
        seen.append(request)
        return answer

    request = Nothing()
    assert run(Tool("act", "It acts.", Nothing, Word, handler).execute(request)) is answer
    assert seen[0] is request


def test_executing_raises_what_the_handler_raises() -> None:
    async def handler(request: Nothing) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(tool_of(handler).execute(Nothing()))


def test_validating_gives_the_request_of_an_argument_text() -> None:
    assert ADD.validate('{"left": "2"}') == Sum(left=2, right=0)


def test_invoking_goes_from_text_to_text() -> None:
    assert run(ADD.invoke('{"left":2,"right":3}')) == ToolInvocationResult('{"total":5}', False, "ok")


def test_invoking_with_bad_arguments_gives_an_observation_that_is_never_the_answer() -> None:
    tool = Tool("add", "Add.", Sum, Total, _add, return_direct=True)
    result = run(tool.invoke('{"left":"two"}'))
    assert result.status == "invalid_arguments"
    assert result.return_direct is False
    assert result.content == (
        '{"error": "invalid_tool_arguments", "detail": '
        '"left: Input should be a valid integer, unable to parse string as an integer"}'
    )


def test_a_good_result_of_a_direct_tool_is_the_answer() -> None:
    tool = Tool("add", "Add.", Sum, Total, _add, return_direct=True)
    assert run(tool.invoke('{"left":2}')).return_direct is True


def test_a_renderer_makes_the_text() -> None:
    tool = Tool("add", "Add.", Sum, Total, _add, render_result=lambda result: f"it is {result.total}")
    assert run(tool.invoke('{"left":2}')).content == "it is 2"


def test_a_tool_that_returns_nothing_renders_null() -> None:
    assert run(Tool("act", "It acts.", Nothing, None, lambda request: None).invoke("{}")).content == "null"


class Plain:
    def __call__(self, request: Number) -> Word:
        return Word(word=f"plain {request.n}")

    def method(self, request: Number) -> Word:
        return Word(word=f"method {request.n}")

    @staticmethod
    def static(request: Number) -> Word:
        return Word(word=f"static {request.n}")


class Asynchronous:
    async def __call__(self, request: Number) -> Word:
        await asyncio.sleep(0)
        return Word(word=f"async {request.n}")


def _with(request: Number, *, before: str, context: ToolContext) -> Word:
    return Word(word=f"{before} {request.n} {context.op}")


async def _awith(request: Number, before: str) -> Word:
    return Word(word=f"{before} {request.n}")


@pytest.mark.parametrize(
    ("handler", "word"),
    [
        (lambda request: Word(word=f"lambda {request.n}"), "lambda 1"),
        (Plain(), "plain 1"),
        (Plain().method, "method 1"),
        (Plain.static, "static 1"),
        (Asynchronous(), "async 1"),
        (partial(_with, before="partial"), "partial 1 t1.0"),
        (partial(partial(_with), before="twice"), "twice 1 t1.0"),
        (partial(_awith, before="awaited"), "awaited 1"),
    ],
    ids=["lambda", "object", "method", "static", "async object", "partial", "partial of a partial", "async partial"],
)
def test_anything_that_can_be_called_is_a_handler(handler: Any, word: str) -> None:
    tool = Tool("act", "It acts.", Number, Word, handler)
    assert record_of([tool], "act", '{"n":1}').message.content == f'{{"word":"{word}"}}'


def test_a_context_parameter_is_found_though_another_annotation_can_not_be_resolved() -> None:
    def handler(request: Missing, context: ToolContext) -> None:  # type: ignore[name-defined]  # noqa: F821
        seen.append(context.op)

    seen: list[str] = []
    assert record_of([Tool("act", "It acts.", Nothing, None, handler)], "act", "{}").status == "ok"
    assert seen == ["t1.0"]


def test_handling_a_call_outside_of_a_turn_gives_the_message_that_answers_it() -> None:
    result = run(handle_tool_call(ToolCall("1", "add", '{"left":2}'), [ADD]))
    assert result.message == ChatMessage("tool", '{"total":2}', None, "1")
    assert result.return_direct is False


def test_handling_a_call_answers_an_unknown_tool_and_bad_arguments_too() -> None:
    unknown = run(handle_tool_call(ToolCall("1", "sub", "{}"), [ADD])).message
    assert unknown.content == '{"error": "unknown_tool", "tool": "sub", "available": ["add"]}'
    assert unknown.tool_call_id == "1"
    nameless = run(handle_tool_call(ToolCall("1", None, "{}"), [ADD])).message  # type: ignore[arg-type]
    assert nameless.content == '{"error": "unknown_tool", "tool": null, "available": ["add"]}'
    bad = run(handle_tool_call(ToolCall("1", "add", "[]"), [ADD])).message
    assert bad.content == '{"error": "invalid_tool_arguments", "detail": "arguments must be a JSON object"}'


@pytest.mark.parametrize("error", [LookupError("mine"), ToolError("mine")])
def test_handling_a_call_lets_what_the_handler_raises_pass_unchanged(error: Exception) -> None:
    async def handler(request: Nothing) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        run(handle_tool_call(ToolCall("1", "act", "{}"), [tool_of(handler)]))
    assert caught.value is error
