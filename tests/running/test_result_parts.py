"""Images and files of tools: parts of the result, never base64 in its text, kept by all that keeps a turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import (
    AsyncTool,
    ChatMessage,
    FilePart,
    ImagePart,
    Limits,
    TextPart,
    Tool,
    ToolCall,
    ToolHook,
    ToolInvocationResult,
    ToolLoopIterationLimitError,
    Turn,
    error_from_json,
    error_to_json,
    handle_tool_call,
    result_from_json,
    result_to_json,
    resume,
    run_tool_loop,
    stream_tool_loop,
    tool,
    tool_from_schema,
)
from toolturn.events import ToolResult
from toolturn.messages import ContentPart
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check, rough_tokens

from .support import HELLO, Nothing, Word, record_of, run, tool_of

DATA = "iVBORw0KGgo="
PNG = ImagePart(f"data:image/png;base64,{DATA}")
PDF = FilePart("data:application/pdf;base64,JVBERi0=", "a.pdf")
LINK = ImagePart("https://example.org/a.png")
NAMED = "[image image/png, 8 bytes]"


def function(value: Any, **options: Any) -> Tool[Any, Any]:
    @tool(name="act", description="It acts.", **options)
    async def act() -> Any:
        return value

    return act


def schema(value: Any, **options: Any) -> Tool[Any, Any]:
    return tool_from_schema("act", "It acts.", {"type": "object"}, lambda arguments: value, **options)


def rendered(value: Any, **options: Any) -> Tool[Any, Any]:
    return tool_of(lambda request: Word(word="x"), result_model=Word, render_result=lambda word: value, **options)


Making = Callable[..., Tool[Any, Any]]
free = pytest.mark.parametrize("make", [function, schema], ids=["@tool", "tool_from_schema"])
every = pytest.mark.parametrize("make", [function, schema, rendered], ids=["@tool", "tool_from_schema", "renderer"])


def given_by(made: Tool[Any, Any], **options: Any) -> Any:
    record = record_of([made], "act", "{}", **options)
    assert record.status == "ok", record
    return record.message.content


# --- what a tool may give -----------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (PNG, [PNG]),
        ([PNG], [PNG]),
        ((TextPart("a map"), PNG, PDF), [TextPart("a map"), PNG, PDF]),
        ([TextPart("only text")], [TextPart("only text")]),
        (f"see {PNG.url}", f"see {PNG.url}"),
    ],
    ids=repr,
)
def test_a_tool_gives_parts_alone_or_in_a_list_and_text_stays_text(make: Making, value: Any, expected: Any) -> None:
    assert given_by(make(value)) == expected


@free
def test_texts_and_other_values_beside_parts_are_texts(make: Making) -> None:
    parts = given_by(make(["a map", PNG, {"scale": 3}, None, [LINK, "b"]]))
    assert parts == [TextPart("a map"), PNG, TextPart('{"scale":3}'), TextPart("null"), LINK, TextPart("b")]


@free
def test_parts_inside_of_a_result_come_behind_it(make: Making) -> None:
    value = {"title": "Graz", "maps": [{"north": PNG}, {"south": LINK}], "paper": PDF}
    text, *parts = given_by(make(value))
    assert parts == [PNG, LINK, PDF]
    assert isinstance(text, TextPart)
    assert json.loads(text.text) == {
        "title": "Graz",
        "maps": [{"north": NAMED}, {"south": "[image https://example.org/a.png]"}],
        "paper": "[file 'a.pdf', application/pdf, 5 bytes]",
    }


@free
def test_parts_in_the_form_of_openai_are_parts(make: Making) -> None:
    image = {"type": "image_url", "image_url": {"url": PNG.url}}
    file = {"type": "file", "file": {"file_data": PDF.url, "filename": "a.pdf"}}
    assert given_by(make([{"type": "text", "text": "x"}, image, file])) == [TextPart("x"), PNG, PDF]
    assert given_by(make(image)) == [PNG]
    assert given_by(make({"seen": image})) == [TextPart(f'{{"seen":"{NAMED}"}}'), PNG]


@free
@pytest.mark.parametrize(
    "value",
    [
        [{"type": "text", "text": "x"}],
        [{"type": "file", "url": "https://x.org/a", "name": "a"}],
        {"messages": [{"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]},
        {"type": "image_url"},
        {"say": '"image_url"'},
        ["data:image/png;base64,AAAA"],
        [],
    ],
    ids=repr,
)
def test_what_only_looks_like_parts_stays_json(make: Making, value: Any) -> None:
    content = given_by(make(value))
    assert isinstance(content, str)
    assert json.loads(content) == value


class Shot(BaseModel):
    title: str
    image: ImagePart | None = None
    more: list[FilePart] = []


class Album(BaseModel):
    shots: list[Shot]


def test_the_images_and_files_of_a_result_model_are_shown_behind_the_rest() -> None:
    made = tool_of(lambda request: Shot(title="Graz", image=PNG, more=[PDF]), result_model=Shot)
    file = "[file 'a.pdf', application/pdf, 5 bytes]"
    text = f'{{"title":"Graz","image":"{NAMED}","more":["{file}"]}}'
    assert given_by(made) == [TextPart(text), PNG, PDF]
    nested = tool_of(lambda request: Album(shots=[Shot(title="a", image=PNG)]), result_model=Album)
    assert given_by(nested) == [TextPart(f'{{"shots":[{{"title":"a","image":"{NAMED}","more":[]}}]}}'), PNG]
    none = tool_of(lambda request: Shot(title="Graz"), result_model=Shot)
    assert given_by(none) == '{"title":"Graz","image":null,"more":[]}'


def test_the_last_chunk_of_a_streaming_tool_may_hold_an_image() -> None:
    async def draw(request: Nothing) -> AsyncIterator[Shot]:
        yield Shot(title="half")
        yield Shot(title="all", image=PNG)

    made = AsyncTool("act", "It acts.", Nothing, Shot, draw).as_tool()
    assert given_by(made) == [TextPart(f'{{"title":"all","image":"{NAMED}","more":[]}}'), PNG]


@pytest.mark.parametrize("value", [7, None, [PNG, 7], [ImagePart(None)], {"image": PNG}], ids=repr)  # type: ignore[arg-type]
def test_a_renderer_that_gives_neither_text_nor_parts_is_a_failure_of_the_tool(value: Any) -> None:
    record = record_of([rendered(value)], "act", "{}")
    assert record.status == "error"
    assert str(record.error).endswith(f"gave {type(value).__name__}, not text or parts")


def test_no_parts_at_all_are_no_text() -> None:
    assert given_by(rendered([])) == ""


# --- hooks ----------------------------------------------------------------------------------


def test_a_hook_sees_parts_and_may_give_others() -> None:
    seen: list[Any] = []

    def after(call: Any, result: ToolInvocationResult) -> ToolInvocationResult:
        seen.append(result.content)
        return ToolInvocationResult((TextPart("blurred"), LINK), False)

    assert given_by(function(PNG), hooks=[ToolHook(after=after)]) == [TextPart("blurred"), LINK]
    assert seen == [[PNG]]
    instead = ToolHook(before=lambda call: ToolInvocationResult([PNG], False))
    assert given_by(function("x"), hooks=[instead]) == [PNG]


def test_what_a_hook_gives_has_to_be_text_or_parts() -> None:
    hook = ToolHook(before=lambda call: ToolInvocationResult([7], False))  # type: ignore[list-item]
    record = record_of([function("x")], "act", "{}", hooks=[hook])
    assert record.error == "TypeError: the content a hook gives must be text or parts, not list"


# --- how long it may be ---------------------------------------------------------------------


@every
def test_the_cap_is_for_all_texts_together_and_images_are_no_text(make: Making) -> None:
    large = ImagePart("data:image/png;base64," + "A" * 10_000)
    value = [TextPart("a" * 200), large, TextPart("b" * 200), PDF, TextPart("c" * 200)]
    assert given_by(make(value), limits=Limits(result_bytes=600)) == value
    text, *parts = given_by(make(value), limits=Limits(result_bytes=599))
    assert parts == [large, PDF]
    assert isinstance(text, TextPart)
    assert len(text.text.encode()) <= 599
    assert text.text.startswith("a" * 200 + "b")
    assert "the result has 600 bytes" in text.text
    assert text.text.endswith("c")


@every
def test_a_data_address_in_text_is_text(make: Making) -> None:
    content = given_by(make("data:image/png;base64," + "A" * 10_000), limits=Limits(result_bytes=600))
    assert isinstance(content, str)
    assert len(content) <= 600


@every
def test_half_a_surrogate_pair_in_a_text_becomes_a_question_mark(make: Making) -> None:
    assert given_by(make([TextPart("a\ud800b"), PNG])) == [TextPart("a?b"), PNG]


# --- what keeps a turn ------------------------------------------------------------------------

ASKED = calls(("1", "act", "{}"))
PARTS: list[ContentPart] = [TextPart("a map"), PNG, PDF]


def test_the_answer_of_a_direct_return_tool_is_the_text_of_its_parts() -> None:
    with ScriptedModel([ASKED]) as model:
        result = run(run_tool_loop(HELLO, [function(PARTS, return_direct=True)], model))
    assert (result.content, result.return_direct) == ("a map", True)
    assert result.tool_calls[0].message.content == PARTS
    assert result.messages[-1].content == PARTS


def test_where_the_answer_of_a_direct_return_tool_has_no_text_its_parts_are_named() -> None:
    with ScriptedModel([ASKED]) as model:
        result = run(run_tool_loop(HELLO, [function([PNG], return_direct=True)], model))
    assert result.content.startswith("[image image/png")


def test_a_result_with_parts_comes_back_from_its_json() -> None:
    with ScriptedModel([ASKED, "done"]) as model:
        result = run(run_tool_loop(HELLO, [function(PARTS)], model))
    assert not check(result.messages)
    assert result_from_json(result_to_json(result)) == result
    assert [rough_tokens(message) for message in result.messages][2] == 2006


def test_a_saved_turn_goes_on_with_its_parts() -> None:
    with ScriptedModel([ASKED]) as model, pytest.raises(ToolLoopIterationLimitError) as caught:
        run(run_tool_loop(HELLO, [function(PARTS)], model, max_iterations=1))
    assert caught.value.state is not None
    turn = Turn.from_json(caught.value.state)
    assert turn.messages[-1].content == PARTS
    again = error_from_json(error_to_json(caught.value))
    assert again.messages == caught.value.messages
    with ScriptedModel(["done"]) as model:
        result = run(resume(again, [function(PARTS)], model, limits=Limits(iterations=2)))
    assert model.requests[0][0][-1].content == PARTS
    assert result.tool_calls[0].message.content == PARTS


def test_the_event_of_a_result_has_its_parts() -> None:
    async def main() -> list[Any]:
        async with stream_tool_loop(HELLO, [function(PARTS)], model) as stream:
            return [event.record.message.content async for event in stream if isinstance(event, ToolResult)]

    with ScriptedModel([ASKED, "done"]) as model:
        assert run(main()) == [PARTS]


def test_a_single_call_outside_of_a_turn_gives_parts_too() -> None:
    result = run(handle_tool_call(ToolCall("1", "act", "{}"), [function(PARTS)]))
    assert result.message == ChatMessage("tool", PARTS, None, "1")


# --- repetitions ---------------------------------------------------------------------------------


def repeated(*results: Any) -> list[Any]:
    left = list(results)

    @tool
    async def act() -> Any:
        """It acts."""
        return left.pop(0)

    replies = [calls((f"{n}", "act", "{}")) for n in range(len(results))]
    with ScriptedModel([*replies, "done"]) as model:
        limits = Limits(iterations=9, repeats=2)
        result = run(run_tool_loop(HELLO, [act], model, limits=limits))
    return [record.message.content for record in result.tool_calls]


def test_another_image_is_another_result() -> None:
    shots = [[TextPart("shot"), ImagePart(f"data:image/png;base64,AAA{n}")] for n in range(4)]
    assert repeated(*shots) == shots


def test_the_hint_of_a_repetition_comes_behind_the_parts() -> None:
    first, second = repeated(PARTS, PARTS)
    assert first == PARTS
    *parts, hint = second
    assert parts == PARTS
    assert isinstance(hint, TextPart)
    assert "2 times now" in hint.text
