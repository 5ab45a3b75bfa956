"""Calls in the text, in the markup of many models: lifted if the tool is declared and there is an object."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatResponse, ToolCall, ToolDef
from toolturn.errors import ToolLoopMalformedResponseError
from toolturn.models import ingest

from .edge import LEAKABLE, play

TOOLS = tuple(
    ToolDef(name, name, {"type": "object", "properties": properties}) for name, properties in LEAKABLE.items()
)
FARO = {"city": "Faro"}
CALL = '{"name":"get_temp","arguments":{"city":"Faro"}}'
PING = '{"name":"ping","arguments":{}}'
_NS = "ant" + "ml:"


def _invoke(prefix: str) -> str:
    return (
        f'<{prefix}invoke name="get_temp">\n<{prefix}parameter name="city">Faro</{prefix}parameter>\n</{prefix}invoke>'
    )


def lifted(text: str, tools: tuple[ToolDef, ...] = TOOLS, reason: str = "stop") -> tuple[list[tuple[str, Any]], str]:
    response = ingest(ChatResponse(text, None, None, reason), tools, ())
    assert ingest(response, tools, ()) == response
    calls = response.tool_calls or []
    assert not calls or [repair.kind for repair in response.repairs] == ["leak"]
    return [(call.name, json.loads(call.arguments)) for call in calls], response.content


ONE: dict[str, str] = {
    "hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "hermes without an end": f"<tool_call>{CALL}",
    "hermes in one line": f"<tool_call>{CALL}</tool_call>",
    "hermes with a list": f"<tool_call>[{CALL}]</tool_call>",
    "hermes in a fence inside": f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
    "hermes with single quotes": "<tool_call>{'name': 'get_temp', 'arguments': {'city': 'Faro'}}</tool_call>",
    "hermes with a comma": '<tool_call>{"name":"get_temp","arguments":{"city":"Faro"},}</tool_call>',
    "hermes with arguments as text": '<tool_call>{"name":"get_temp","arguments":"{\\"city\\":\\"Faro\\"}"}</tool_call>',
    "hermes with parameters": '<tool_call>{"name":"get_temp","parameters":{"city":"Faro"}}</tool_call>',
    "hermes in OpenAI's form": f'<tool_call>{{"type":"function","function":{CALL}}}</tool_call>',
    "hermes with another case of the name": f"<tool_call>{CALL.replace('get_temp', 'Get-Temp')}</tool_call>",
    "hermes with a prefix": f"<tool_call>{CALL.replace('get_temp', 'functions.get_temp')}</tool_call>",
    "hermes closed by a token": f"<tool_call>{CALL}<|im_end|>",
    "granite": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "function_call": f"<function_call>{CALL}</function_call>",
    "functioncall": f"<functioncall> {CALL} </functioncall>",
    "tool_calls": f"<tool_calls>[{CALL}]</tool_calls>",
    "tools": f"<tools>{CALL}</tools>",
    "qwen coder": "<tool_call>\n<function=get_temp>\n<parameter=city>\nFaro\n</parameter>\n</function>\n</tool_call>",
    "qwen coder in one line": "<tool_call><function=get_temp><parameter=city>Faro</parameter></function></tool_call>",
    "qwen coder without the first tag": (
        "<function=get_temp>\n<parameter=city>Faro</parameter>\n</function>\n</tool_call>"
    ),
    "llama function": '<function=get_temp>{"city": "Faro"}</function>',
    "llama function without an end": '<function=get_temp>{"city": "Faro"}',
    "python tag": '<|python_tag|>{"type":"function","name":"get_temp","parameters":{"city":"Faro"}}<|eom_id|>',
    "python tag alone": f"<|python_tag|>{CALL}",
    "glm": "<tool_call>get_temp\n<arg_key>city</arg_key>\n<arg_value>Faro</arg_value>\n</tool_call>",
    "mistral": f"[TOOL_CALLS][{CALL}]",
    "mistral with a blank": f"[TOOL_CALLS] [{CALL}]</s>",
    "mistral with a name": '[TOOL_CALLS]get_temp{"city": "Faro"}',
    "mistral with arguments": '[TOOL_CALLS]get_temp[ARGS]{"city": "Faro"}',
    "mistral with an id": '[TOOL_CALLS]get_temp[CALL_ID]abcdefghi[ARGS]{"city": "Faro"}',
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_temp\n```json\n"
        '{"city":"Faro"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>'
    ),
    "deepseek without a fence": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_temp<｜tool▁sep｜>{"city":"Faro"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "deepseek with ascii bars": (
        '<|tool_calls_begin|><|tool_call_begin|>get_temp<|tool_sep|>{"city":"Faro"}<|tool_call_end|><|tool_calls_end|>'
    ),
    "deepseek without the frame": '<｜tool▁call▁begin｜>get_temp<｜tool▁sep｜>{"city":"Faro"}<｜tool▁call▁end｜>',
    "dsml": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_temp">\n<｜DSML｜parameter name="city" string="true">Faro'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
    ),
    "dsml with doubled bars": (
        '<｜｜DSML｜｜function_calls><｜｜DSML｜｜invoke name="get_temp">'
        '<｜｜DSML｜｜parameter name="city" string="true">Faro'
        "</｜｜DSML｜｜parameter></｜｜DSML｜｜invoke></｜｜DSML｜｜function_calls>"
    ),
    "dsml with ascii bars": (
        '<|DSML|invoke name="get_temp"><|DSML|parameter name="city">Faro</|DSML|parameter></|DSML|invoke>'
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_temp:0<|tool_call_argument_begin|>"
        '{"city":"Faro"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "invoke": _invoke(""),
    "invoke in its frame": f"<function_calls>\n{_invoke('')}\n</function_calls>",
    "invoke of a namespace": f"<{_NS}function_calls>{_invoke(_NS)}</{_NS}function_calls>",
    "bare": CALL,
    "bare with parameters": '{"name": "get_temp", "parameters": {"city": "Faro"}}',
    "bare closed by a token": f"{CALL}<|eot_id|>",
    "bare with a type": '{"type":"function","name":"get_temp","parameters":{"city":"Faro"}}',
    "bare in OpenAI's form": f'{{"id":"x","type":"function","function":{CALL}}}',
    "bare list of all": f'{{"tool_calls":[{CALL}]}}',
    "bare list": f"[{CALL}]",
    "fenced": f"```json\n{CALL}\n```",
    "fenced without a word": f"```\n{CALL}\n```",
    "fenced as a call": f"```tool_call\n{CALL}\n```",
    "markup in a fence": f"```xml\n<tool_call>{CALL}</tool_call>\n```",
}


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_a_call_is_lifted_and_nothing_of_it_is_left(text: str) -> None:
    assert lifted(text) == ([("get_temp", FARO)], "")


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_what_was_said_before_stays(text: str) -> None:
    calls, left = lifted(f"I will look.\n\n{text}\n")
    assert calls == [("get_temp", FARO)]
    assert left == "I will look."


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
@pytest.mark.parametrize("reason", ["length", "content_filter", "refusal", "MALFORMED_FUNCTION_CALL"])
def test_nothing_is_lifted_out_of_a_reply_that_did_not_end_well(text: str, reason: str) -> None:
    response = ChatResponse(text, None, None, reason)
    assert ingest(response, TOOLS, ()) is response


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_nothing_is_lifted_out_of_thoughts(text: str) -> None:
    for thought in (f"<think>{text}</think>It is warm.", f"maybe {text}</think>It is warm."):
        response = ingest(ChatResponse(thought, None, None, "stop"), TOOLS, ())
        assert not response.tool_calls
        assert response.content == "It is warm."
    response = ingest(ChatResponse("", text, None, "stop"), TOOLS, ())
    assert not response.tool_calls


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_an_undeclared_tool_is_never_lifted(text: str) -> None:
    assert lifted(text, TOOLS[1:])[0] == []
    assert lifted(text, ())[0] == []


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_no_beginning_of_a_call_is_lifted_with_less_than_its_arguments(text: str) -> None:
    for length in range(len(text)):
        calls, _ = lifted(text[:length])
        assert calls in ([], [("get_temp", FARO)])


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_structured_calls_beat_those_in_the_text(text: str) -> None:
    response = ChatResponse(text, None, [ToolCall("a", "ping", "{}")], "tool_calls")
    assert ingest(response, TOOLS, ()).tool_calls == [ToolCall("a", "ping", "{}")]


TWO: dict[str, str] = {
    "hermes": f"<tool_call>{CALL}</tool_call>\n<tool_call>{PING}</tool_call>",
    "hermes without ends": f"<tool_call>{CALL}\n<tool_call>{PING}",
    "hermes in one tag": f"<tool_call>{CALL}\n{PING}</tool_call>",
    "granite": f"<|tool_call|>[{CALL},{PING}]",
    "qwen coder": (
        "<tool_call><function=get_temp><parameter=city>Faro</parameter></function></tool_call>"
        "<tool_call><function=ping></function></tool_call>"
    ),
    "python tag": f"<|python_tag|>{CALL}; {PING}<|eom_id|>",
    "mistral": f"[TOOL_CALLS][{CALL}, {PING}]",
    "mistral with names": '[TOOL_CALLS]get_temp[ARGS]{"city":"Faro"}[TOOL_CALLS]ping[ARGS]{}',
    "deepseek": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_temp<｜tool▁sep｜>{"city":"Faro"}<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "glm": (
        "<tool_call>get_temp<arg_key>city</arg_key><arg_value>Faro</arg_value></tool_call><tool_call>ping</tool_call>"
    ),
    "invoke": f'{_invoke("")}\n<invoke name="ping">\n</invoke>',
    "bare list": f"[{CALL},{PING}]",
    "bare lines": f"{CALL}\n{PING}",
    "fenced list": f"```json\n[{CALL},\n{PING}]\n```",
}


@pytest.mark.parametrize("text", TWO.values(), ids=TWO.keys())
def test_several_calls_are_lifted_in_order(text: str) -> None:
    assert lifted(text) == ([("get_temp", FARO), ("ping", {})], "")


@pytest.mark.parametrize("text", TWO.values(), ids=TWO.keys())
def test_all_are_lifted_or_none(text: str) -> None:
    assert lifted(text, TOOLS[:1])[0] == []


@pytest.mark.parametrize(
    "text",
    [
        'Here it is:\n```json\n{"name": "my-app", "version": "1.0.0"}\n```',
        '{"name": "get_temp"}',
        '{"name": "get_temp", "version": 3}',
        '{"name": "get_temp", "arguments": null}',
        '{"name": "get_temp", "arguments": [1]}',
        '{"name": "get_temp", "arguments": "Faro"}',
        '{"name": "get_temp", "arguments": {"city": "Faro"}, "note": "an example"}',
        'As an example: {"name": "get_temp", "arguments": {"country": "Portugal"}}',
        'As an example:\n{"name": "get_temp", "arguments": {"country": "Portugal"}}',
        '{"name": "unknown", "arguments": {}}',
        '{"city": "Faro"}',
        "[]",
        "{}",
        '[{"name": "ping", "arguments": {}}, 7]',
        '{"a": NaN}',
        f"You can call it like this:\n```json\n{CALL}\n```\nIt gives the temperature.",
        f"```json\n{CALL}\n```\nor\n```json\n{CALL}\n```",
        f"{CALL} is what I would send.",
        f"Write `<tool_call>{CALL}</tool_call>` to call a tool.",
        f"An example:\n```xml\n<tool_call>{CALL}</tool_call>\n```\nDo you see?",
        "The tag <tool_call> begins a call.",
        "Use [TOOL_CALLS] for Mistral.",
        "x < y and y > z",
        "```python\nprint({})\n```",
    ],
)
def test_text_that_is_no_call_is_an_answer(text: str) -> None:
    response = ChatResponse(text, None, None, "stop")
    assert ingest(response, TOOLS, ()) is response


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>{</tool_call>",
        '<tool_call>{"name":"get_temp","arguments":{"city":"Fa',
        '<tool_call>{"name":"rm","arguments":{}}</tool_call>',
        '<tool_call>{"name":"get_temp","arguments":[1]}</tool_call>',
        '<tool_call>{"name":"get_temp","arguments":{"city":NaN}}</tool_call>',
        '<tool_call>{"name":"get_temp","arguments":{"city":"a","city":"b"}}</tool_call>',
        "<function=get_temp><parameter=city>Faro",
        "<function=get_temp><parameter=city>Faro</parameter>",
        "<function=get_temp><parameter=city>a</parameter><parameter=city>b</parameter></function>",
        '[TOOL_CALLS]get_temp{"city"',
        "<|python_tag|>print(1)",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_temp<｜tool▁sep｜>{",
        '<invoke name="rm"></invoke>',
        f"<tool_call>{CALL}</tool_call><tool_call>{{</tool_call>",
    ],
)
def test_markup_that_is_no_call_is_no_answer_either(text: str) -> None:
    seen = play({"replies": [{"content": text, "finish_reason": "stop"}]})
    assert isinstance(seen.error, ToolLoopMalformedResponseError)
    assert seen.executed == []


@pytest.mark.parametrize(
    "value", ["use </tool_call> here", "{[(", 'say "hi"', "</parameter>", "a\nb", "<tool_call>", "`x`"]
)
def test_markup_in_an_argument_is_text(value: str) -> None:
    note = {"text": value}
    call = json.dumps({"name": "note_add", "arguments": note})
    texts = [
        f"<tool_call>\n{call}\n</tool_call>",
        call,
        f"[TOOL_CALLS][{call}]",
        f"<function=note_add>\n<parameter=text>\n{value}\n</parameter>\n</function>",
        f'<invoke name="note_add"><parameter name="text">{value}</parameter></invoke>',
    ]
    for text in texts:
        assert lifted(text) == ([("note_add", note)], "")


def test_parameters_in_markup_have_the_types_of_the_schema() -> None:
    text = (
        "<function=get_temp><parameter=city>3</parameter><parameter=days>3</parameter>"
        '<parameter=tags>["a", 1]</parameter></function>'
    )
    assert lifted(text)[0] == [("get_temp", {"city": "3", "days": 3, "tags": ["a", 1]})]
    odd = '<function=get_temp><parameter=days>3,"x":1</parameter><parameter=tags>[1],"y":2</parameter></function>'
    assert lifted(odd)[0] == [("get_temp", {"days": '3,"x":1', "tags": '[1],"y":2'})]


def test_blanks_in_a_parameter_are_kept() -> None:
    text = "<function=note_add>\n<parameter=text>\n    x = 1\n\n</parameter>\n</function>"
    assert lifted(text)[0] == [("note_add", {"text": "    x = 1\n"})]


def test_text_around_markup_is_kept_and_the_markup_is_not() -> None:
    calls, left = lifted(f"First.\n<tool_call>{CALL}</tool_call>\nThen.")
    assert calls == [("get_temp", FARO)]
    assert left == "First.\n\nThen."


def test_a_lifted_call_runs_and_the_transcript_holds_no_markup() -> None:
    for text in ONE.values():
        seen = play({"replies": [{"content": text, "finish_reason": "stop"}]})
        assert seen.executed == [("get_temp", FARO)]
        assert seen.said == ["", "done"]


N = 200_000
BOMBS: dict[str, Callable[[], str]] = {
    "tags": lambda: "<tool_call>" * (N // 11),
    "open objects": lambda: '<tool_call>{"a":' * (N // 16),
    "open strings": lambda: '<tool_call>{"' * (N // 13),
    "ended": lambda: "<tool_call></tool_call>" * (N // 23),
    "single quotes": lambda: "<tool_call>{'a':1}" * (N // 18),
    "calls": lambda: f"<tool_call>{PING}</tool_call>" * 3_000,
    "functions": lambda: "<function=get_temp>" * (N // 19),
    "parameters": lambda: "<function=get_temp>" + "<parameter=city>x" * (N // 17),
    "ended parameters": lambda: "<function=get_temp><parameter=city>" + "</parameter>" * (N // 12),
    "ends and blanks": lambda: "<function=get_temp><parameter=city>" + "</parameter>      " * (N // 18) + "x",
    "deep": lambda: "<tool_call>" + "[" * N,
    "deep lists": lambda: "<tool_call>" + "[" * 900 + "]" * 900,
    "deep calls": lambda: '{"tool_calls":[' * 300 + "]}" * 300,
    "bare deep": lambda: "[" * N,
    "bare lines": lambda: "{\n" * (N // 2),
    "empty objects": lambda: "{}" * (N // 2),
    "fences": lambda: "```json\n" * (N // 8),
    "blanks": lambda: "<tool_call>" + " " * N + "x",
    "keys": lambda: "<tool_call>ping" + "<arg_key>a</arg_key><arg_value>" * (N // 31),
    "mistral": lambda: "[TOOL_CALLS]" * (N // 12),
    "bars": lambda: "<|｜" * (N // 3),
    "fence and blanks": lambda: f"<tool_call>{PING}</tool_call>" + "```" + " " * N,
    "backquotes": lambda: "`" * N + "<tool_call>",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_hostile_text_takes_a_moment(bomb: Callable[[], str]) -> None:
    text = bomb()
    start = time.process_time()
    ingest(ChatResponse(text, None, None, "stop"), TOOLS, ())
    assert time.process_time() - start < 2.0


PIECES = st.sampled_from(
    [
        *ONE.values(),
        CALL,
        PING,
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "```",
        "```json\n",
        "\n",
        "{",
        "}",
        '"',
        "x",
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join))
def test_whatever_is_lifted_was_declared_and_is_stable(text: str) -> None:
    once = ingest(ChatResponse(text, None, None, "stop"), TOOLS[:1], ())
    assert ingest(once, TOOLS[:1], ()) == once
    for call in once.tool_calls or []:
        assert call.name == "get_temp"
        assert type(json.loads(call.arguments)) is dict


def test_a_reply_that_is_nothing_but_a_call_is_one_although_its_arguments_are_not_declared() -> None:
    text = '{"name": "get_temp", "arguments": {"city": "Faro", "required": ["city"]}}'
    made = ingest(ChatResponse(text, None, None, "stop"), TOOLS, ())
    assert [call.name for call in made.tool_calls or ()] == ["get_temp"]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"It is 7.\n<tool_call>\n{PING}\n</tool_call>", "It is 7."),
        (f"It is 7. {_invoke('｜DSML｜')}", "It is 7."),
        ('It is 7. [TOOL_CALLS]ping{"a":1}', "It is 7."),
    ],
)
def test_where_no_tools_were_offered_a_call_after_words_is_cut_and_never_run(text: str, rest: str) -> None:
    made = ingest(ChatResponse(text, None, None, "stop"), (), ())
    assert (made.content, made.tool_calls) == (rest, None)
    assert [repair.kind for repair in made.repairs] == ["leak"]
    assert ingest(made, (), ()) == made


@pytest.mark.parametrize(
    "text",
    [
        f"Write:\n```\n<tool_call>{PING}</tool_call>\n```",
        f"Write `<tool_call>{PING}</tool_call>` then.",
        "The tag <tool_call> opens a call.",
        'It is <tool_call>{"name": "ping", "argum',
        PING,
    ],
)
def test_where_no_tools_were_offered_what_is_an_example_or_can_not_be_read_stays(text: str) -> None:
    assert ingest(ChatResponse(text, None, None, "stop"), (), ()).content == text


@given(st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join))
def test_where_no_tools_were_offered_nothing_is_ever_called_and_once_is_enough(text: str) -> None:
    once = ingest(ChatResponse(text, None, None, "stop"), (), ())
    assert once.tool_calls is None
    assert ingest(once, (), ()) == once
