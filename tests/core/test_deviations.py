"""What differs on purpose from the published implementation; docs/deviations.md gives the reasons."""

from __future__ import annotations

import asyncio
import contextvars
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import (
    ChatMessage,
    ChatResponse,
    TextPart,
    Tool,
    ToolError,
    ToolLoopFilteredResponseError,
    ToolLoopMalformedResponseError,
    ToolLoopResult,
    ToolLoopToolError,
    ToolLoopTruncatedResponseError,
    ToolSet,
    Turn,
    handle_tool_call,
    run_tool_loop,
)
from toolturn.testing import ScriptedModel
from toolturn.transcript import check, closing_content

from .parts import USER, Nothing, Pair, Text, Total, add, answered, asks, call, echo, failing, run, says

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deviations.md"


def played(tools: list[Tool[Any, Any]], *replies: ChatResponse | str, **options: Any) -> ToolLoopResult:
    return run(run_tool_loop([USER], tools, ScriptedModel(replies), **options))


def giving(result: Any, result_model: Any = Text, **options: Any) -> Tool[Nothing, Any]:
    async def handler(request: Nothing) -> Any:
        return result

    return Tool("give", "Gives something.", Nothing, result_model, handler, **options)


GIVE = asks(call("a", "give", "{}"))


# --- the page ------------------------------------------------------------------------


def test_each_test_that_the_page_names_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"\btest_\w+", page))
    here = Path(__file__).parent
    there = set()
    for path in here.glob("test_*.py"):
        there |= {path.stem, *re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)}
    assert named
    assert named <= there


def test_every_test_of_a_deviation_is_named_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    own = re.findall(r"^def (test_\w+)", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE)
    about_the_page = {
        "test_each_test_that_the_page_names_is_there",
        "test_every_test_of_a_deviation_is_named_on_the_page",
    }
    assert [name for name in own if name not in about_the_page and name not in page] == []


# --- tools that fail -----------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("out of order"), KeyError("x"), ExceptionGroup("two", [ValueError()])])
def test_a_tool_that_raises_ends_the_turn_with_the_transcript_and_the_cause(error: Exception) -> None:
    ran: list[Any] = []
    with pytest.raises(ToolLoopToolError) as caught:
        played([failing(error), add(ran)], asks(call("a", "fail", "{}"), call("b")))
    assert caught.value.__cause__ is error
    assert str(error) in str(caught.value)
    assert type(error).__name__ in str(caught.value)
    assert ran == []
    assert check(caught.value.messages) == []
    assert caught.value.messages[-1] == answered("b", closing_content("not_executed"))


def test_a_tool_that_exits_the_program_has_failed() -> None:
    with pytest.raises(ToolLoopToolError, match="SystemExit: 3"):
        played([failing(SystemExit(3))], asks(call("a", "fail", "{}")))


def test_a_tool_error_speaks_to_the_model() -> None:
    result = played([failing(ToolError("ask again tomorrow"))], asks(call("a", "fail", "{}")), "I can not.")
    assert result.messages[2] == answered("a", '{"error": "tool_error", "detail": "ask again tomorrow"}')


def test_a_failing_tool_may_be_reported_to_the_model_by_its_class_alone() -> None:
    tools = [failing(ValueError("s3cret"))]
    result = played(tools, asks(call("a", "fail", "{}")), "I can not.", tool_errors="report")
    assert result.messages[2] == answered("a", '{"error": "tool_failed", "tool": "fail", "type": "ValueError"}')
    assert result.tool_calls[0].error == "ValueError: s3cret"


# --- replies -------------------------------------------------------------------------


def test_calls_that_were_filtered_never_run() -> None:
    ran: list[Any] = []
    with pytest.raises(ToolLoopFilteredResponseError):
        played([add(ran)], asks(call("a"), finish="content_filter"))
    assert ran == []


def test_text_that_was_filtered_is_no_answer() -> None:
    with pytest.raises(ToolLoopFilteredResponseError) as caught:
        played([], says("I think that", "content_filter"))
    assert caught.value.rejected_response is not None
    assert caught.value.rejected_response.content == "I think that"


@pytest.mark.parametrize("reason", ["LENGTH", "incomplete", "max_output_tokens"])
def test_other_words_for_truncated_are_understood(reason: str) -> None:
    with pytest.raises(ToolLoopTruncatedResponseError):
        played([], says("as far as", reason))


@pytest.mark.parametrize("reason", ["refusal", "SAFETY"])
def test_other_words_for_filtered_are_understood(reason: str) -> None:
    with pytest.raises(ToolLoopFilteredResponseError):
        played([], says("no", reason))


def test_content_that_is_null_beside_calls_is_empty_text() -> None:
    result = played([add()], asks(call("a"), content=None), "Five.")
    assert result.messages[1] == ChatMessage("assistant", "", [call("a")])


def test_content_in_parts_is_joined() -> None:
    assert played([], says([TextPart("Hel"), {"type": "text", "text": "lo."}])).content == "Hello."


def test_something_among_the_calls_that_is_none_is_a_malformed_response() -> None:
    calls: Any = [{"id": "a", "name": "add", "arguments": "{}"}]
    with pytest.raises(ToolLoopMalformedResponseError):
        played([add()], ChatResponse("", None, calls, "tool_calls"))


def test_leaked_calls_and_thoughts_stay_text_for_a_plain_callback() -> None:
    leaked = '<think>Hm.</think><tool_call>{"name": "add", "arguments": {}}</tool_call>'
    assert played([add()], says(leaked)).content == leaked


# --- arguments and names -------------------------------------------------------------

HOSTILE = [
    "[" * 100_000,
    '{"left":' + "9" * 5000 + "}",
    '{"left":NaN,"right":1}',
    '{"left":1,"left":2,"right":3}',
    '{"left":"\\ud800","right":1}',
    None,
    {"left": 1, "right": 2},
]


@pytest.mark.parametrize("arguments", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_arguments_are_an_error_the_model_can_mend(arguments: Any) -> None:
    result = played([add()], asks(call("a", "add", arguments)), "I can not.")
    content = result.messages[2].content
    assert isinstance(content, str)
    assert json.loads(content)["error"] == "invalid_tool_arguments"
    assert check(result.messages) == []


@pytest.mark.parametrize("arguments", ["", "null", "```json\n{}\n```", '"{}"', "{'a': 1}", "{}{}"])
def test_arguments_that_could_be_mended_are_refused_in_the_turn_itself(arguments: str) -> None:
    result = played([giving(None, None)], asks(call("a", "give", arguments)), "I can not.")
    assert result.tool_calls[0].status == "invalid_arguments"


def test_the_detail_of_invalid_arguments_is_short_and_repeats_no_value() -> None:
    bad = json.dumps({"left": "s3cret" * 10_000, "right": 1})
    content = run(add().invoke(bad)).content
    assert "s3cret" not in content
    assert len(content) < 300
    assert "left" in content


@pytest.mark.parametrize("name", [" add ", "functions.add", "Add"])
def test_a_name_that_is_nearly_right_is_unknown_in_the_turn_itself(name: str) -> None:
    result = played([add()], asks(call("a", name)), "I can not.")
    assert result.tool_calls[0].status == "unknown_tool"


def test_an_unknown_tool_is_answered_with_the_names_there_are() -> None:
    content = run(handle_tool_call(call("a", "sum"), [add(), echo()])).message.content
    assert content == '{"error": "unknown_tool", "tool": "sum", "available": ["add", "echo"]}'


def test_a_name_that_is_no_text_is_unknown_and_text_in_the_transcript() -> None:
    result = played([add()], asks(call("a", {"n": 1})), "I can not.")
    assert result.tool_calls[0].status == "unknown_tool"
    assert check(result.messages) == []


# --- results -------------------------------------------------------------------------


def test_a_dictionary_where_a_model_is_due_is_validated() -> None:
    assert played([giving({"text": "x"})], GIVE, "Done.").messages[2].content == '{"text":"x"}'


@pytest.mark.parametrize(
    ("result", "result_model"), [(None, Text), (7, Text), (Total(total=1), Text), ({"text": []}, Text), (7, None)]
)
def test_a_result_of_the_wrong_kind_is_a_failure_of_the_tool(result: Any, result_model: Any) -> None:
    with pytest.raises(ToolLoopToolError):
        played([giving(result, result_model)], GIVE)
    reported = played([giving(result, result_model)], GIVE, "Sorry.", tool_errors="report")
    assert reported.tool_calls[0].status == "error"


@pytest.mark.parametrize("render", [lambda result: 7, lambda result: None, lambda result: result.nothing])
def test_a_renderer_that_gives_no_text_is_a_failure_of_the_tool(render: Any) -> None:
    with pytest.raises(ToolLoopToolError):
        played([giving(Text(text="x"), render_result=render)], GIVE)


def test_a_long_result_is_cut_in_the_middle_and_says_so() -> None:
    result = played([giving(Text(text="x" * 1_000_000))], GIVE, "Done.")
    content = result.messages[2].content
    assert isinstance(content, str)
    assert len(content.encode()) <= 65536
    assert "ask for a smaller part of it" in content


def test_half_a_surrogate_pair_in_a_result_is_replaced() -> None:
    result = played([echo(render_result=lambda result: "a\ud800b")], asks(call("a", "echo", '{"text":"x"}')), "Done.")
    assert result.messages[2].content == "a?b"


def test_a_request_and_a_result_are_handed_on_as_they_are() -> None:
    seen: list[Pair] = []
    total = Total(total=0)

    async def handler(request: Pair) -> Total:
        seen.append(request)
        return total

    tool = Tool("add", "Adds.", Pair, Total, handler)
    request = Pair(left=1, right=2)
    assert run(tool.execute(request)) is total
    assert seen[0] is request


# --- the history ---------------------------------------------------------------------


def test_a_history_no_provider_would_take_is_refused_before_the_model_is_called() -> None:
    model = ScriptedModel(["Hi."])
    with pytest.raises(ValueError, match="message 1: 1 of its calls are not answered"):
        run(run_tool_loop([USER, ChatMessage("assistant", "", [call("a")])], [], model))
    assert model.requests == []


# --- how handlers run ----------------------------------------------------------------


def where(run_in_thread: bool) -> threading.Thread:
    threads: list[threading.Thread] = []

    def handler(request: Nothing) -> None:
        threads.append(threading.current_thread())

    tool: Tool[Nothing, Any] = Tool("where", "Where?", Nothing, None, handler, run_in_thread=run_in_thread)
    played([tool], asks(call("a", "where", "{}")), "There.")
    return threads[0]


def test_a_blocking_handler_runs_in_a_thread_of_its_own() -> None:
    assert where(True) is not threading.main_thread()


def test_a_handler_may_stay_on_the_event_loop() -> None:
    assert where(False) is threading.main_thread()


KNOWN = contextvars.ContextVar("known", default="nothing")


def test_a_blocking_handler_sees_the_callers_context_variables() -> None:
    seen: list[str] = []

    def handler(request: Nothing) -> None:
        seen.append(KNOWN.get())

    async def turn() -> None:
        KNOWN.set("something")
        tool: Tool[Nothing, Any] = Tool("look", "Looks.", Nothing, None, handler)
        await run_tool_loop([USER], [tool], ScriptedModel([asks(call("a", "look", "{}")), "Seen."]))

    run(turn())
    assert seen == ["something"]


def test_a_cancelled_turn_waits_for_the_cleanup_of_its_handler() -> None:
    told: list[str] = []

    async def handler(request: Nothing) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            told.append("handler")

    started = asyncio.Event()
    turn = Turn()

    async def cancelled() -> None:
        tool: Tool[Nothing, Any] = Tool("wait", "Waits.", Nothing, None, handler)
        model = ScriptedModel([asks(call("a", "wait", "{}"))])
        task = asyncio.ensure_future(run_tool_loop([USER], [tool], model, turn=turn))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        told.append("caller")

    run(cancelled())
    assert told == ["handler", "caller"]
    assert turn.records[0].status == "cancelled"


@pytest.mark.parametrize("how", ["refuses", "raises"])
def test_a_callback_that_does_not_end_when_it_is_cancelled_is_left_behind(how: str) -> None:
    asked = asyncio.Event()

    async def model(messages: Any, tools: Any) -> ChatResponse:
        asked.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if how == "raises":
                    raise LookupError("while cleaning up") from None

    async def cancelled() -> None:
        task = asyncio.ensure_future(run_tool_loop([USER], [], model, grace=0.01))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled())


# --- what is refused when a tool or a set is made ------------------------------------


@pytest.mark.parametrize("model", [dict, "Pair", None, 7])
def test_a_request_model_that_is_no_pydantic_model_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="must be a pydantic model"):
        Tool("add", "Adds.", model, None, lambda request: None)


@pytest.mark.parametrize("model", [dict, "Total", 7])
def test_a_result_model_that_is_no_pydantic_model_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="must be a pydantic model or None"):
        Tool("add", "Adds.", Pair, model, lambda request: None)


def test_a_handler_that_can_not_be_called_is_refused() -> None:
    handler: Any = "add"
    with pytest.raises(TypeError, match="can not be called"):
        Tool("add", "Adds.", Pair, None, handler)


def test_a_name_in_a_set_that_is_no_text_is_refused() -> None:
    names: Any = {7: add()}
    with pytest.raises(ValueError, match="must not be empty"):
        ToolSet(names)


def test_the_definitions_of_a_set_are_made_once() -> None:
    tools = ToolSet([add()])
    first, second = ScriptedModel(["Hi."]), ScriptedModel(["Hi."])
    for model in (first, second):
        run(run_tool_loop([USER], tools, model))
    assert first.requests[0][1] is second.requests[0][1]


class Loose(BaseModel):
    anything: Any = None


def test_an_object_that_is_no_tool_is_refused_whether_or_not_it_has_a_name() -> None:
    for thing in (Loose(), type("Named", (), {"name": "x"})()):
        things: Any = [thing]
        with pytest.raises(TypeError, match="only finite Tool instances"):
            ToolSet(things)
