"""The grammar dialect: what a model of text is told, and how what it writes is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ModelSettings,
    ToolCall,
    ToolDef,
    ToolLoopTruncatedResponseError,
    ToolSet,
    Usage,
    run_tool_loop,
    stream_tool_loop,
    tool,
)
from toolturn.dialects.grammar import GrammarTools, fold, fold_result
from toolturn.events import Text
from toolturn.model import StreamItem


@tool(effect="none")
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@tool(effect="none")
def broken(text: str) -> str:
    """Always fails."""
    raise ValueError(text)


TOOLS = ToolSet([add, broken])
CALL = '{"name": "add", "arguments": {"left": 2, "right": 3}}'


class Writer(ChatModel):
    """A model of text that writes what it was told to, a few characters at a time."""

    def __init__(self, *texts: str, finish: str = "stop", grammar: bool = True) -> None:
        self.texts = list(texts)
        self.finish = finish
        self.grammar = grammar
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.settings: list[ModelSettings | None] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, grammar=self.grammar)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        assert not tools, "a model of text is never given tools"
        self.asked.append(messages)
        self.settings.append(settings)
        return ChatResponse(self.texts.pop(0), None, None, self.finish, None, Usage(1, 1))

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        response = await self.complete(messages, tools, settings=settings)
        for at in range(0, len(response.content), 3):
            yield Delta(response.content[at : at + 3])
        yield response

    @property
    def grammars(self) -> list[str | None]:
        return [None if settings is None else settings.extra.get("grammar") for settings in self.settings]


USER = (ChatMessage("user", "What is 2 + 3?"),)


@pytest.mark.parametrize("form", [CALL, f"```json\n{CALL}\n```", f"<tool_call>\n{CALL}\n</tool_call>", f"\n{CALL}"])
def test_a_call_in_any_of_the_forms_a_model_knows_is_a_structured_call(form: str) -> None:
    response = asyncio.run(GrammarTools(Writer(form)).complete(USER, TOOLS.definitions))
    assert response.tool_calls == [ToolCall("call_1", "add", '{"left": 2, "right": 3}')]
    assert (response.content, response.finish_reason) == ("", "tool_calls")
    assert response.usage == Usage(1, 1)


@pytest.mark.parametrize(
    "text", ["Five.", "It is {5}.", '{"answer": 5}', "{", "```json\n[1]\n```", '{"name": 1, "arguments": {}}']
)
def test_what_is_no_call_stays_text(text: str) -> None:
    response = asyncio.run(GrammarTools(Writer(text)).complete(USER, TOOLS.definitions))
    assert (response.content, response.tool_calls) == (text, None)


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    response = asyncio.run(GrammarTools(Writer(text)).complete(USER, TOOLS.definitions))
    assert response.content == text or response.tool_calls


def test_a_turn_runs_the_call_and_ends_with_the_answer() -> None:
    result = asyncio.run(run_tool_loop(USER, TOOLS, GrammarTools(Writer(CALL, "It is 5."))))
    assert result.content == "It is 5."
    assert [record.message.content for record in result.tool_calls] == ["5"]


def test_ids_do_not_repeat_those_of_the_transcript() -> None:
    history = (
        ChatMessage("user", "a"),
        ChatMessage("assistant", "", [ToolCall("call_2", "add", "{}")]),
        ChatMessage("tool", "5", None, "call_2"),
        *USER,
    )
    response = asyncio.run(GrammarTools(Writer(CALL)).complete(history, TOOLS.definitions))
    assert response.tool_calls is not None
    assert response.tool_calls[0].id not in ("call_2", "")


def test_a_call_that_was_cut_off_runs_nothing() -> None:
    with pytest.raises(ToolLoopTruncatedResponseError):
        asyncio.run(run_tool_loop(USER, TOOLS, GrammarTools(Writer(CALL, finish="length"))))


def test_text_streams_from_its_first_character_and_a_call_never_does() -> None:
    async def texts() -> list[str]:
        model = GrammarTools(Writer(CALL, "  It is 5."))
        async with stream_tool_loop(USER, TOOLS, model) as events:
            return [event.text async for event in events if isinstance(event, Text)]

    assert asyncio.run(texts()) == ["I", "t i", "s 5", "."]


def test_streamed_and_plain_replies_are_the_same() -> None:
    async def both(text: str) -> tuple[ChatResponse, ChatResponse]:
        plain = await GrammarTools(Writer(text)).complete(USER, TOOLS.definitions)
        items = [item async for item in GrammarTools(Writer(text)).stream(USER, TOOLS.definitions)]
        assert isinstance(items[-1], ChatResponse)
        return plain, items[-1]

    for text in (CALL, "It is 5.", " {", "<b>"):
        plain, streamed = asyncio.run(both(text))
        assert plain == streamed


def test_the_grammar_holds_each_tool_and_is_the_same_object_again() -> None:
    writer = Writer("a", "b")
    model = GrammarTools(writer)
    asyncio.run(model.complete(USER, TOOLS.definitions))
    asyncio.run(model.complete(USER, TOOLS.definitions))
    first, second = writer.grammars
    assert first is second
    assert first is not None
    assert '"const": "add"' in first
    assert "start: call | answer" in first


@pytest.mark.parametrize(
    ("choice", "start"), [("required", "start: call\n"), ("add", "start: call\n"), ("auto", "start: call | answer\n")]
)
def test_a_tool_choice_becomes_part_of_the_grammar(choice: str, start: str) -> None:
    writer = Writer("a")
    asyncio.run(GrammarTools(writer).complete(USER, TOOLS.definitions, settings=ModelSettings(tool_choice=choice)))
    grammar = writer.grammars[0]
    assert grammar is not None
    assert start in grammar
    assert ('"const": "broken"' in grammar) == (choice != "add")


def test_without_tools_there_is_neither_a_grammar_nor_a_description() -> None:
    for tools, settings in (((), None), (TOOLS.definitions, ModelSettings(tool_choice="none"))):
        writer = Writer("a")
        asyncio.run(GrammarTools(writer).complete(USER, tools, settings=settings))
        assert writer.grammars == [None]
        assert writer.asked[0] == USER


def test_definitions_of_several_tools_stand_side_by_side() -> None:
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P"}},
        "$defs": {"P": {"type": "object", "properties": {"again": {"$ref": "#/$defs/P"}}}},
    }
    writer = Writer("a")
    tools = (ToolDef("one", "One.", schema), ToolDef("two", "Two.", schema))
    asyncio.run(GrammarTools(writer).complete(USER, tools))
    grammar = writer.grammars[0]
    assert grammar is not None
    document = json.loads(grammar.split("%json ")[1].splitlines()[0])
    assert sorted(document["$defs"]) == ["t0_P", "t1_P"]
    assert document["$defs"]["t1_P"]["properties"]["again"] == {"$ref": "#/$defs/t1_P"}


def test_a_model_that_takes_no_grammar_is_refused() -> None:
    with pytest.raises(ValueError, match="takes a grammar"):
        GrammarTools(Writer(grammar=False))


# --- what the model is shown --------------------------------------------------------------

EXCHANGE = (
    ChatMessage("system", "Be brief."),
    ChatMessage("user", "What is 1 + 1?"),
    ChatMessage("assistant", "Let me see.", [ToolCall("a", "add", '{"left": 1, "right": 1}')]),
    ChatMessage("tool", "2", None, "a"),
)


def test_folding_leaves_text_in_system_user_and_assistant_messages_only() -> None:
    folded = fold((*EXCHANGE, ChatMessage("assistant", "Two."), *USER), TOOLS.definitions)
    assert [message.role for message in folded] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert all(message.tool_calls is None and isinstance(message.content, str) for message in folded)
    assert str(folded[0].content).startswith("Be brief.\n\n# Tools")
    assert str(folded[2].content).startswith("Let me see.\n<tool_call>\n")
    assert folded[3].content == "<tool_response>\n2\n</tool_response>"


def test_results_of_one_batch_become_one_message() -> None:
    messages = (
        ChatMessage("user", "?"),
        ChatMessage("assistant", "", [ToolCall("a", "add", "{}"), ToolCall("b", "add", "{}")]),
        ChatMessage("tool", "1", None, "a"),
        ChatMessage("tool", "2", None, "b"),
    )
    assert [message.role for message in fold(messages, ())] == ["user", "assistant", "user"]


def test_withdrawn_tools_leave_the_question_with_its_result() -> None:
    folded = fold_result(EXCHANGE)
    assert [message.role for message in folded] == ["system", "user"]
    assert folded[1].content == "Question: What is 1 + 1?\nTool result: 2"


def test_earlier_exchanges_keep_their_text_when_tools_are_withdrawn() -> None:
    later = (*EXCHANGE, ChatMessage("assistant", "Two."), *USER, EXCHANGE[2], ChatMessage("tool", "5", None, "a"))
    assert [message.content for message in fold_result(later)[1:]] == [
        "What is 1 + 1?",
        "Two.",
        "Question: What is 2 + 3?\nTool result: 5",
    ]


def test_tools_are_withdrawn_after_a_good_result_only() -> None:
    failing = '{"name": "broken", "arguments": {"text": "x"}}'
    writer = Writer(failing, CALL, "It is 5.")
    model = GrammarTools(writer, withdraw=True)
    result = asyncio.run(run_tool_loop(USER, TOOLS, model, tool_errors="report"))
    assert result.content == "It is 5."
    assert [grammar is not None for grammar in writer.grammars] == [True, True, False]


def test_tools_stay_where_the_model_can_do_with_them() -> None:
    writer = Writer(CALL, CALL, "It is 5.")
    result = asyncio.run(run_tool_loop(USER, TOOLS, GrammarTools(writer)))
    assert len(result.tool_calls) == 2
    assert all(grammar is not None for grammar in writer.grammars)


class _Replies(ChatModel):
    """A model of text that gives one reply and remembers what it was asked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[tuple[tuple[ChatMessage, ...], ModelSettings | None]] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(grammar=True)

    async def complete(self, messages: Any, tools: Any = (), *, settings: ModelSettings | None = None) -> ChatResponse:
        self.asked.append((messages, settings))
        return ChatResponse(self.text, finish_reason="stop")


ANSWER = ToolDef("Person", "A person.", {"type": "object", "properties": {"name": {"type": "string"}}})
LOOK = ToolDef("look", "Look.", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ('{"name":"look","arguments":{}}', True),
        ('<tool_call>\n{"name":"look","arguments":{}}', True),
        ('{"name":"Ann","arguments":{}}', False),
        ('{"name":"Ann"}', False),
    ],
)
def test_an_answer_that_is_an_object_is_told_from_a_call(text: str, called: bool) -> None:
    model = _Replies(text)
    asking = GrammarTools(model).complete((ChatMessage("user", "?"),), (LOOK,), settings=ModelSettings(answer=ANSWER))
    response = asyncio.run(asking)
    assert bool(response.tool_calls) is called
    if not called:
        assert response.content == text


def test_the_form_of_an_answer_is_told_and_held_to_also_without_tools() -> None:
    model = _Replies("{}")
    asyncio.run(GrammarTools(model).complete((ChatMessage("user", "?"),), settings=ModelSettings(answer=ANSWER)))
    ((messages, settings),) = model.asked
    assert "JSON Schema" in str(messages[0].content)
    assert settings is not None
    assert settings.extra["grammar"].startswith("%llguidance {}\nstart: answer\nanswer: %json")
