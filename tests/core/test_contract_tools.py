"""The contract of Tool, ToolSet, AsyncTool and handle_tool_call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from toolturn import (
    AsyncTool,
    ChatMessage,
    Tool,
    ToolCall,
    ToolCallRecord,
    ToolCallResult,
    ToolDef,
    ToolInvocationResult,
    ToolSet,
    handle_tool_call,
    run_tool_loop,
    tool_definitions,
)
from toolturn.testing import ScriptedModel

from .parts import USER, Nothing, Pair, Text, Total, add, answered, asks, call, echo, failing, run


async def _total(request: Pair) -> Total:
    return Total(total=request.left + request.right)


async def _chunks(request: Text) -> AsyncIterator[Text]:
    for letter in request.text:
        yield Text(text=letter)


def ticker() -> AsyncTool[Text, Text]:
    return AsyncTool("spell", "Spells a word.", Text, Text, _chunks)


# --- tools ---------------------------------------------------------------------------


def test_a_tool_takes_five_positional_arguments_and_shows_them() -> None:
    tool = Tool("add", "Adds.", Pair, Total, _total)
    assert (tool.name, tool.description, tool.request_model, tool.result_model) == ("add", "Adds.", Pair, Total)
    assert tool.handler is _total
    assert tool.return_direct is False
    assert Tool("add", "Adds.", Pair, Total, _total, return_direct=True).return_direct is True


def test_a_tool_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tool name must not be empty$"):
        Tool("", "Adds.", Pair, Total, _total)


def test_a_tool_without_a_description_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tool 'add' needs a description"):
        Tool("add", "", Pair, Total, _total)


def test_a_tool_can_be_run_without_a_model() -> None:
    assert run(add().execute(Pair(left=2, right=3))) == Total(total=5)


def test_a_result_is_rendered_as_compact_json() -> None:
    assert run(add().invoke('{"left": 2, "right": 3}')) == ToolInvocationResult('{"total":5}', False)


def test_a_tool_that_returns_nothing_renders_null() -> None:
    async def note(request: Text) -> None:
        return None

    tool: Tool[Text, Any] = Tool("note", "Notes.", Text, None, note)
    assert run(tool.invoke('{"text":"x"}')).content == "null"


def test_a_renderer_makes_the_text() -> None:
    tool = add(render_result=lambda result: f"it is {result.total}")
    assert run(tool.invoke('{"left":2,"right":3}')).content == "it is 5"


def test_a_plain_function_is_a_handler_too() -> None:
    tool = Tool("add", "Adds.", Pair, Total, lambda request: Total(total=request.left + request.right))
    assert run(tool.invoke('{"left":2,"right":3}')).content == '{"total":5}'


def test_arguments_are_validated_as_pydantic_does_it() -> None:
    assert run(add().invoke('{"left":"2","right":3.0}')).content == '{"total":5}'
    assert run(add().invoke('{"left":2,"right":3,"more":4}')).content == '{"total":5}'


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: str


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        ("{", "valid JSON"),
        ("[]", "JSON object"),
        ('"text"', "JSON object"),
        ("{}", "right"),
        ('{"left":"x","right":1}', "left"),
    ],
)
def test_invalid_arguments_are_answered_with_error_and_detail_in_this_order(arguments: str, mentions: str) -> None:
    result = run(add(return_direct=True).invoke(arguments))
    assert result.return_direct is False
    error = json.loads(str(result.content))
    assert list(error) == ["error", "detail"]
    assert error["error"] == "invalid_tool_arguments"
    assert mentions in error["detail"]
    assert result.content == json.dumps(error)


def test_the_detail_names_each_field_at_fault_the_made_up_ones_included() -> None:
    async def handler(request: Strict) -> None:
        return None

    tool: Tool[Strict, Any] = Tool("strict", "Is strict.", Strict, None, handler)
    detail = json.loads(str(run(tool.invoke('{"a":"x","c":1}')).content))["detail"]
    assert all(name in detail for name in ("a:", "b:", "c:"))


def test_an_exception_of_the_handler_passes_unchanged_through_invoke_and_handle_tool_call() -> None:
    error = LookupError("not there")
    attempts: list[Any] = [failing(error).invoke("{}"), handle_tool_call(call("a", "fail", "{}"), [failing(error)])]
    for attempt in attempts:
        with pytest.raises(LookupError) as caught:
            run(attempt)
        assert caught.value is error


# --- one call ------------------------------------------------------------------------


def test_a_call_gives_the_message_that_answers_it() -> None:
    result = run(handle_tool_call(call("a"), ToolSet([add()])))
    assert result == ToolCallResult(answered("a", '{"total":5}'), False)


def test_the_direct_return_of_a_call_is_told() -> None:
    assert run(handle_tool_call(call("a"), [add(return_direct=True)])).return_direct is True
    assert run(handle_tool_call(call("a", "add", "{}"), [add(return_direct=True)])).return_direct is False


@pytest.mark.parametrize("name", ["nope", "ADD", "add ", "", "größer"])
def test_an_unknown_tool_is_answered_with_error_and_tool_first(name: str) -> None:
    result = run(handle_tool_call(call("a", name), [add()]))
    content = result.message.content
    assert isinstance(content, str)
    assert content.startswith(json.dumps({"error": "unknown_tool", "tool": name})[:-1])
    assert json.dumps(json.loads(content)) == content
    assert json.loads(content)["available"] == ["add"]
    assert result.return_direct is False


@pytest.mark.parametrize("name", [None, 7, {"a": 1}, ["add"]])
def test_a_name_that_is_no_text_is_an_unknown_tool(name: Any) -> None:
    content = run(handle_tool_call(call("a", name), [add()])).message.content
    assert isinstance(content, str)
    assert json.loads(content)["error"] == "unknown_tool"


def test_a_model_that_calls_an_unknown_tool_and_invalid_arguments_may_mend_both() -> None:
    model = ScriptedModel(
        [asks(call("a", "sum")), asks(call("b", "add", '{"left":2}')), asks(call("c")), "Five."],
    )
    result = run(run_tool_loop([USER], [add()], model))
    assert [record.status for record in result.tool_calls] == ["unknown_tool", "invalid_arguments", "ok"]
    assert result.iterations == 4


def test_a_record_says_which_call_it_was_and_how_it_ended() -> None:
    result = run(run_tool_loop([USER], [add()], ScriptedModel([asks(call("a")), "Five."])))
    (record,) = result.tool_calls
    assert isinstance(record, ToolCallRecord)
    assert record.call == call("a")
    assert record.message == answered("a", '{"total":5}')
    assert (record.return_direct, record.op, record.status, record.error) == (False, "t1.0", "ok", None)
    assert record.started > 1_500_000_000
    assert record.seconds >= 0


# --- definitions ---------------------------------------------------------------------


def test_definitions_hold_the_name_in_the_set_the_description_and_the_schema() -> None:
    definitions = tool_definitions([add()])
    assert definitions == (ToolDef("add", "Add two whole numbers.", Pair.model_json_schema()),)
    assert type(definitions) is tuple
    assert [d.name for d in tool_definitions(ToolSet({"plus": add()}))] == ["plus"]


# --- sets ----------------------------------------------------------------------------


def test_a_set_keeps_the_order_and_finds_tools_by_their_exact_name() -> None:
    first, second = add(), echo()
    tools = ToolSet([second, first])
    assert tools.items() == (("echo", second), ("add", first))
    assert type(tools.items()) is tuple
    assert tools.get("add") is first
    assert tools.get("Add") is None


def test_a_mapping_gives_the_names_the_model_sees() -> None:
    tools = ToolSet({"plus": add(), "sum": add()})
    assert [name for name, _ in tools.items()] == ["plus", "sum"]
    assert tools.get("add") is None


def test_namespaces_are_joined_to_the_names_with_two_underscores() -> None:
    tools = ToolSet.namespaced({"maths": [add()], "words": ToolSet({"say": echo()})})
    assert [name for name, _ in tools.items()] == ["maths__add", "words__say"]


def test_a_name_may_occur_once() -> None:
    with pytest.raises(ValueError, match=r"^duplicate tool name: add$"):
        ToolSet([add(), add()])
    with pytest.raises(ValueError, match=r"^duplicate tool name: a__b__x$"):
        ToolSet.namespaced({"a": [echo("b__x")], "a__b": [echo("x")]})


def test_empty_names_and_namespaces_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        ToolSet({"": add()})
    with pytest.raises(ValueError, match="must not be empty"):
        ToolSet.namespaced({"": [add()]})


def test_a_streaming_tool_in_a_set_is_a_type_error_that_says_what_fits() -> None:
    with pytest.raises(TypeError, match=r"only finite Tool instances.*as_tool\(\)"):
        ToolSet([ticker()])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="only finite Tool instances"):
        ToolSet({"spell": ticker()})  # type: ignore[arg-type]
    assert ToolSet([ticker().as_tool()]).get("spell") is not None


@pytest.mark.parametrize("thing", [7, "add", None, _total])
def test_what_is_no_tool_is_a_type_error(thing: Any) -> None:
    with pytest.raises(TypeError, match="only finite Tool instances"):
        ToolSet([thing])


# --- streaming tools -----------------------------------------------------------------


async def collected(tool: AsyncTool[Any, Any], request: Any) -> list[Any]:
    return [chunk async for chunk in tool.stream(request)]


def test_a_streaming_tool_yields_its_chunks_for_a_request_or_a_mapping() -> None:
    assert run(collected(ticker(), Text(text="ab"))) == [Text(text="a"), Text(text="b")]
    assert run(collected(ticker(), {"text": "ab"})) == [Text(text="a"), Text(text="b")]


def test_a_streaming_tool_validates_request_and_chunks() -> None:
    async def wrong(request: Text) -> AsyncIterator[Any]:
        yield {"text": request.text}
        yield 7

    with pytest.raises(ValidationError):
        run(collected(ticker(), {}))
    with pytest.raises(ValidationError):
        run(collected(AsyncTool("wrong", "Is wrong.", Text, Text, wrong), {"text": "a"}))


def test_a_failure_after_a_chunk_keeps_its_type() -> None:
    async def breaks(request: Text) -> AsyncIterator[Text]:
        yield request
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run(collected(AsyncTool("breaks", "Breaks.", Text, Text, breaks), {"text": "a"}))


def test_closing_a_stream_closes_the_handler_first() -> None:
    closed: list[str] = []

    async def endless(request: Text) -> AsyncIterator[Text]:
        try:
            while True:
                yield request
        finally:
            closed.append("handler")

    async def abandoned() -> None:
        stream = AsyncTool("endless", "Never ends.", Text, Text, endless).stream({"text": "a"})
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        closed.append("consumer")

    run(abandoned())
    assert closed == ["handler", "consumer"]


def test_a_streaming_tool_needs_a_name_and_a_description() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        AsyncTool("", "Spells.", Text, Text, _chunks)
    with pytest.raises(ValueError, match="needs a description"):
        AsyncTool("spell", "", Text, Text, _chunks)


def test_the_last_chunk_is_the_result_of_the_finite_tool() -> None:
    result = run(ticker().as_tool().invoke('{"text":"abc"}'))
    assert result.content == '{"text":"c"}'


# --- equality of the small values ----------------------------------------------------


def test_results_compare_by_value_and_take_their_published_fields_in_order() -> None:
    message = ChatMessage("tool", "x", None, "a")
    one = ToolCall("a", "add", "{}")
    assert ToolCallResult(message, True) == ToolCallResult(message=message, return_direct=True)
    assert ToolCallRecord(one, message, True) == ToolCallRecord(call=one, message=message, return_direct=True)
    assert ToolInvocationResult("x", True) == ToolInvocationResult(content="x", return_direct=True)


def test_a_slow_handler_is_awaited_in_the_turns_own_task() -> None:
    tasks: list[Any] = []

    async def handler(request: Nothing) -> None:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)

    async def turn() -> None:
        tasks.append(asyncio.current_task())
        tool: Tool[Nothing, Any] = Tool("slow", "Is slow.", Nothing, None, handler)
        await run_tool_loop([USER], [tool], ScriptedModel([asks(call("a", "slow", "{}")), "Done."]))

    run(turn())
    assert tasks[0] is tasks[1]
