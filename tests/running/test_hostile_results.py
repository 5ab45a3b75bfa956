"""Whatever a tool returns or raises, the model gets a sound observation or the caller a typed error."""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from toolturn import (
    Limits,
    Tool,
    ToolError,
    ToolHook,
    ToolInvocationResult,
    ToolLoopToolError,
    messages_to_json,
    resume,
    run_tool_loop,
    tool,
    tool_from_schema,
)
from toolturn.errors import InvalidToolArguments
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, Word, record_of, run, tool_of

SECRET = "hunter2-hunter2"
CAP = Limits().result_bytes or 0

Returning = Callable[[Any], Tool[Any, Any]]


def _plain(value: Any) -> Tool[Any, Any]:
    return tool_of(lambda request: value, result_model=Word)


def _function(value: Any) -> Tool[Any, Any]:
    @tool(name="act", description="It acts.")
    async def act() -> Any:
        return value

    return act


def _schema(value: Any) -> Tool[Any, Any]:
    return tool_from_schema("act", "It acts.", {"type": "object"}, lambda arguments: value)


free = pytest.mark.parametrize("make", [_function, _schema], ids=["@tool", "tool_from_schema"])


@free
@pytest.mark.parametrize("text", ["x" * 20_000_000, "é" * 10_000_000, "😀" * 5_000_000], ids=["ASCII", "é", "😀"])
def test_twenty_megabytes_become_as_much_as_a_model_can_read(make: Returning, text: str) -> None:
    record = record_of([make(text)], "act", "{}")
    content = str(record.message.content)
    assert record.status == "ok"
    assert CAP - 8 <= len(content.encode()) <= CAP
    assert "ask for a smaller part" in content
    assert "20000000 bytes" in content
    assert content.startswith(text[0] * 1000)
    assert content.endswith(text[0] * 1000)


def test_a_result_of_just_the_cap_is_not_cut() -> None:
    text = "x" * CAP
    assert record_of([_function(text)], "act", "{}").message.content is text


def test_a_cap_of_the_turn_holds_for_every_observation() -> None:
    limits = Limits(result_bytes=256)
    for made in (_function("é" * 1000), tool_of(_raising(ToolError("é" * 1000)))):
        content = str(record_of([made], "act", "{}", limits=limits).message.content)
        assert len(content.encode()) <= 256
    content = str(record_of([_function("")], "n" * 100_000, "{}", limits=limits).message.content)
    assert len(content.encode()) <= 256


def test_without_a_cap_a_result_is_passed_on_whole() -> None:
    text = "x" * 1_000_000
    assert record_of([_function(text)], "act", "{}", limits=Limits(result_bytes=None)).message.content == text


@free
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "é\ud83d", "x" * 70_000 + "\ud800"])
def test_half_a_surrogate_pair_in_a_result_is_replaced_since_no_provider_takes_it(make: Returning, text: str) -> None:
    record = record_of([make(text)], "act", "{}")
    assert record.status == "ok"
    assert str(record.message.content).encode()


@free
@pytest.mark.parametrize("value", [{"a": "\ud800"}, ["\udfff"]])
def test_half_a_surrogate_pair_inside_a_result_is_a_failure_or_replaced(make: Returning, value: Any) -> None:
    record = record_of([make(value)], "act", "{}")
    assert record.status in ("ok", "error")
    assert str(record.message.content).encode()


class Colour(str, enum.Enum):  # noqa: UP042 - the older form is the one whose str() is not its text
    RED = "red"


@free
def test_text_of_a_class_of_its_own_becomes_plain_text(make: Returning) -> None:
    record = record_of([make(Colour.RED)], "act", "{}")
    assert type(record.message.content) is str
    assert record.message.content == "red"
    assert json.loads(messages_to_json([record.message]))[0]["content"] == "red"


def test_text_of_a_class_of_its_own_from_a_renderer_becomes_plain_text() -> None:
    made = tool_of(lambda request: None, render_result=lambda result: Colour.RED)
    record = record_of([made], "act", "{}")
    assert json.loads(messages_to_json([record.message]))[0]["content"] == "red"


@dataclass
class Point:
    x: int


VALUES: dict[str, tuple[Any, str]] = {
    "None": (None, "null"),
    "text": ("as it is", "as it is"),
    "no text": ("", ""),
    "true": (True, "true"),
    "a number": (1.5, "1.5"),
    "a list": ([1, "é"], '[1,"é"]'),
    "a dictionary": ({"a": {"b": None}}, '{"a":{"b":null}}'),
    "a dataclass": (Point(1), '{"x":1}'),
    "a model": (Word(word="hi"), '{"word":"hi"}'),
    "a list of models": ([Word(word="hi")], '[{"word":"hi"}]'),
    "bytes that are text": ("é".encode(), '"é"'),
    "bytes that are no text": (b"\xff\xfe", '"[2 bytes]"'),
    "a set": ({"b", "a", "c"}, '["a","b","c"]'),
}


@free
@pytest.mark.parametrize(("value", "content"), VALUES.values(), ids=VALUES)
def test_a_result_is_text_as_it_is_or_compact_json(make: Returning, value: Any, content: str) -> None:
    assert record_of([make(value)], "act", "{}").message.content == content


@free
@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}])
def test_a_number_that_is_none_in_json_is_null(make: Returning, value: Any) -> None:
    content = str(record_of([make(value)], "act", "{}").message.content)
    assert "null" in content
    assert "N" not in content
    assert "I" not in content


@free
@pytest.mark.parametrize("value", [object(), lambda: None, {"a": object()}], ids=repr)
def test_what_json_has_no_form_for_is_a_failure_of_the_tool(make: Returning, value: Any) -> None:
    record = record_of([make(value)], "act", "{}")
    assert record.status == "error"
    assert json.loads(str(record.message.content))["type"] == "PydanticSerializationError"


def test_a_result_that_holds_itself_is_a_failure_of_the_tool() -> None:
    value: list[Any] = []
    value.append(value)
    assert record_of([_function(value)], "act", "{}").status == "error"


def test_a_dictionary_is_validated_by_the_result_model() -> None:
    assert record_of([_plain({"word": "hi"})], "act", "{}").message.content == '{"word":"hi"}'


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"word": [SECRET]}, "ValidationError"),
        ({}, "ValidationError"),
        (None, "TypeError: tool 'act' must return Word, not NoneType"),
        (SECRET, "TypeError: tool 'act' must return Word, not str"),
        (SECRET.encode(), "TypeError: tool 'act' must return Word, not bytes"),
        (Nothing(), "TypeError: tool 'act' must return Word, not Nothing"),
        ([Word(word=SECRET)], "TypeError: tool 'act' must return Word, not list"),
    ],
)
def test_a_result_of_the_wrong_kind_is_a_failure_of_the_tool(value: Any, error: str) -> None:
    record = record_of([_plain(value)], "act", "{}")
    assert record.status == "error"
    assert record.error is not None
    assert record.error.startswith(error)
    assert SECRET not in str(record.message.content)


def test_a_tool_that_returns_nothing_must_return_nothing() -> None:
    record = record_of([tool_of(lambda request: "something")], "act", "{}")
    assert record.error == "TypeError: tool 'act' must return None, not str"


def test_a_result_model_of_a_wider_class_is_taken() -> None:
    class More(Word):
        number: int = 1

    assert record_of([_plain(More(word="hi"))], "act", "{}").message.content == '{"word":"hi","number":1}'


def _raises(result: Any) -> str:
    raise LookupError(SECRET)


@pytest.mark.parametrize(
    ("render", "error"),
    [
        (_raises, f"LookupError: {SECRET}"),
        (lambda result: None, "TypeError: render_result of tool 'act' gave NoneType, not text or parts"),
        (lambda result: b"bytes", "TypeError: render_result of tool 'act' gave bytes, not text or parts"),
        (lambda result: {"a": 1}, "TypeError: render_result of tool 'act' gave dict, not text or parts"),
    ],
)
def test_a_renderer_that_raises_or_gives_no_text_is_a_failure_of_the_tool(render: Any, error: str) -> None:
    record = record_of([tool_of(lambda request: None, render_result=render)], "act", "{}")
    assert record.status == "error"
    assert record.error == error
    assert SECRET not in str(record.message.content)


def _raising(error: BaseException) -> Callable[[Nothing], Any]:
    async def handler(request: Nothing) -> None:
        raise error

    return handler


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Odd(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


ERRORS: dict[str, tuple[BaseException, str]] = {
    "an error": (ValueError(SECRET), "ValueError"),
    "an error without text": (ValueError(), "ValueError"),
    "one whose text raises": (Mute(), "Mute"),
    "one whose text is none": (Odd(), "Odd"),
    "a group": (ExceptionGroup("two", [ValueError(SECRET), KeyError("b")]), "ExceptionGroup"),
    "an exit": (SystemExit(3), "SystemExit"),
    "an exit with text": (SystemExit(SECRET), "SystemExit"),
    "a recursion": (RecursionError(SECRET), "RecursionError"),
    "no memory": (MemoryError(), "MemoryError"),
    "the end of an iteration": (StopIteration(SECRET), "RuntimeError"),
    "the end of an async iteration": (StopAsyncIteration(SECRET), "StopAsyncIteration"),
    "a timeout": (TimeoutError(SECRET), "TimeoutError"),
    "text with half a surrogate pair": (ValueError("\ud800"), "ValueError"),
    "text of a megabyte": (ValueError("x" * 1_000_000), "ValueError"),
    "an error of our own about arguments": (InvalidToolArguments(SECRET), "InvalidToolArguments"),
}


@pytest.mark.parametrize(("error", "kind"), ERRORS.values(), ids=ERRORS)
def test_of_an_exception_the_model_is_told_its_class_alone(error: BaseException, kind: str) -> None:
    record = record_of([tool_of(_raising(error))], "act", "{}")
    assert record.status == "error"
    assert json.loads(str(record.message.content)) == {"error": "tool_failed", "tool": "act", "type": kind}
    assert record.error is not None
    assert record.error.startswith(f"{kind}:")


@pytest.mark.parametrize(("error", "kind"), ERRORS.values(), ids=ERRORS)
def test_under_raise_an_exception_ends_the_turn_with_a_typed_error_that_can_be_saved(
    error: BaseException, kind: str
) -> None:
    failing, other = tool_of(_raising(error)), tool_of(lambda request: None, "other")
    model = ScriptedModel([calls(("other", "{}"), ("act", "{}"), ("other", "{}"))])
    with pytest.raises(ToolLoopToolError, match=f"tool 'act' failed: {kind}") as caught:
        run(run_tool_loop(HELLO, [failing, other], model))
    raised = caught.value
    assert raised.cause is not None
    assert raised.cause.type == kind
    assert [record.status for record in raised.tool_calls] == ["ok", "error", "not_executed"]
    assert check(raised.messages) == []
    assert raised.state is not None
    result = run(resume(raised.state, [failing, other], ScriptedModel(["done"]), tool_errors="report"))
    assert [record.status for record in result.tool_calls] == ["ok", "error", "ok"]


@pytest.mark.parametrize("policy", ["raise", "report"])
def test_a_tool_error_speaks_to_the_model_under_each_policy(policy: str) -> None:
    record = record_of([tool_of(_raising(ToolError("no such city: Vienna?")))], "act", "{}", tool_errors=policy)
    assert record.status == "error"
    assert json.loads(str(record.message.content)) == {"error": "tool_error", "detail": "no such city: Vienna?"}
    assert record.error is None


@pytest.mark.parametrize("policy", ["raise", "report"])
def test_a_tool_error_whose_text_raises_does_not_break_the_turn(policy: str) -> None:
    class MuteError(ToolError):
        def __str__(self) -> str:
            raise ValueError("no text")

    record = record_of([tool_of(_raising(MuteError()))], "act", "{}", tool_errors=policy)
    assert record.status == "error"


@pytest.mark.parametrize("policy", ["raise", "report"])
def test_a_refusal_whose_text_raises_does_not_break_the_turn(policy: str) -> None:
    class MuteError(ToolError):
        def __str__(self) -> str:
            raise ValueError("no text")

    def refuse(invocation: Any) -> None:
        raise MuteError

    made = tool_of(lambda request: None)
    assert record_of([made], "act", "{}", tool_errors=policy, hooks=[ToolHook(before=refuse)]).status == "refused"


@pytest.mark.parametrize("content", [None, b"bytes", {"a": 1}, 7])
def test_a_hook_that_gives_no_text_is_a_failure_of_its_call(content: Any) -> None:
    hook = ToolHook(before=lambda invocation: ToolInvocationResult(content, False))
    record = record_of([tool_of(lambda request: None)], "act", "{}", hooks=[hook])
    assert record.status == "error"


def test_a_group_with_an_interrupt_goes_on_to_the_caller() -> None:
    error = BaseExceptionGroup("two", [KeyboardInterrupt(), ValueError()])
    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(run_tool_loop(HELLO, [tool_of(_raising(error))], ScriptedModel([calls(("act", "{}"))])))
    assert caught.value is error


def test_a_generator_instead_of_a_result_is_a_failure_and_is_not_forgotten() -> None:
    async def chunks(request: Nothing) -> Any:
        yield 1

    record = record_of([tool_of(chunks, run_in_thread=False)], "act", "{}")
    assert record.error == "TypeError: tool 'act' must return None, not async_generator"
