"""The ReAct dialect in a turn: what the model is told, and that a turn does not know of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ImagePart,
    ModelSettings,
    Repair,
    TextPart,
    ToolCall,
    ToolDef,
    ToolLoopIterationLimitError,
    ToolLoopMalformedResponseError,
    ToolLoopTruncatedResponseError,
    ToolSet,
    Usage,
    run_tool_loop,
    stream_tool_loop,
    tool,
)
from toolturn.dialects.react import ReActTools
from toolturn.dialects.react_prompt import PROMPTS, ReActPrompt, signature, system_text
from toolturn.errors import ModelRequestError
from toolturn.events import Reasoning, Text
from toolturn.model import StreamItem


@tool(effect="none")
def add(left: int, right: int = 1) -> int:
    """Add two numbers."""
    return left + right


@tool(effect="none")
def echo(text: str) -> str:
    """Say it again."""
    return text


TOOLS = ToolSet([add, echo])
USER = (ChatMessage("user", "What is 2 + 3?"),)
CALL = 'Thought: I add.\nAction: add\nAction Input: {"left": 2, "right": 3}'
ANSWER = "Thought: I know.\nFinal Answer: It is 5."


class Writer(ChatModel):
    """A model of text that writes what it was told to, a few characters at a time."""

    def __init__(self, *texts: str, finish: str = "stop", images: bool = False, refuses: str = "") -> None:
        self.texts = list(texts)
        self.finish = finish
        self.images = images
        self.refuses = refuses
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.settings: list[ModelSettings | None] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, images=self.images)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        assert not tools, "a model of text is never given tools"
        self.settings.append(settings)
        if self.refuses and settings is not None and settings.stop:
            raise ModelRequestError(self.refuses, status=400)
        self.asked.append(messages)
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


def told(writer: Writer) -> list[tuple[str, object]]:
    return [(message.role, message.content) for message in writer.asked[-1]]


def ask(model: ReActTools, messages: tuple[ChatMessage, ...] = USER, **settings: str) -> ChatResponse:
    given = ModelSettings(**settings) if settings else None  # type: ignore[arg-type]
    return asyncio.run(model.complete(messages, TOOLS.definitions, settings=given))


# --- a turn ----------------------------------------------------------------------------------


def test_a_turn_runs_the_action_and_ends_with_the_answer() -> None:
    writer = Writer(CALL, ANSWER)
    result = asyncio.run(run_tool_loop(USER, TOOLS, ReActTools(writer)))
    assert result.content == "It is 5."
    assert result.messages[1] == ChatMessage("assistant", "", [ToolCall("call_1", "add", '{"left": 2, "right": 3}')])
    assert result.messages[2].content == "5"
    assert told(writer)[1:] == [
        ("user", "What is 2 + 3?"),
        ("assistant", 'Action: add\nAction Input: {"left": 2, "right": 3}'),
        ("user", f"Observation: 5\n\n{PROMPTS['en'].observed}"),
    ]


def test_thoughts_stream_as_reasoning_and_the_answer_as_text() -> None:
    async def events() -> list[object]:
        async with stream_tool_loop(USER, TOOLS, ReActTools(Writer(CALL, ANSWER))) as stream:
            return [event async for event in stream]

    found = asyncio.run(events())
    assert "".join(event.text for event in found if isinstance(event, Text)) == "It is 5."
    assert "".join(event.text for event in found if isinstance(event, Reasoning)) == "I add.I know."


def test_the_id_of_a_call_is_none_that_the_transcript_has() -> None:
    past = ChatMessage("assistant", "", [ToolCall("call_2", "add", "{}"), ToolCall("x", "add", "{}")])
    results = (ChatMessage("tool", "1", None, "call_2"), ChatMessage("tool", "2", None, "x"))
    response = ask(ReActTools(Writer(CALL)), (*USER, past, *results))
    assert response.tool_calls is not None
    assert response.tool_calls[0].id == "call_3"


def test_an_invented_observation_is_cut_and_the_repair_says_so() -> None:
    response = ask(ReActTools(Writer(f"{CALL}\nObservation: 9\nFinal Answer: 9")))
    assert (response.content, response.finish_reason, response.reasoning) == ("", "tool_calls", "I add.")
    assert Repair("react", "what followed the action was cut") in response.repairs


def test_a_reply_that_was_cut_off_runs_nothing() -> None:
    with pytest.raises(ToolLoopTruncatedResponseError) as raised:
        asyncio.run(run_tool_loop(USER, TOOLS, ReActTools(Writer(CALL, finish="length"))))
    assert not raised.value.tool_calls


def test_arguments_that_can_not_be_read_are_answered_as_invalid() -> None:
    broken = 'Action: add\nAction Input: {"left": 2'
    result = asyncio.run(run_tool_loop(USER, TOOLS, ReActTools(Writer(broken, ANSWER))))
    assert (result.tool_calls[0].status, result.tool_calls[0].call.arguments) == ("invalid_arguments", '{"left": 2')


def test_a_call_that_can_not_be_read_is_asked_for_once_more_where_the_turn_allows_it() -> None:
    broken = "Thought: x\nAction:\nAction Input: {"
    with pytest.raises(ToolLoopMalformedResponseError):
        asyncio.run(run_tool_loop(USER, TOOLS, ReActTools(Writer(broken))))
    result = asyncio.run(run_tool_loop(USER, TOOLS, ReActTools(Writer(broken, ANSWER)), nudges=1))
    assert result.content == "It is 5."


@pytest.mark.parametrize("again", [CALL, "Thought: hm"])
def test_a_forced_answer_is_asked_for_in_words_and_its_calls_never_run(again: str) -> None:
    writer = Writer(CALL, "Thought: no more tools.\nFinal Answer: It is 5.")
    result = asyncio.run(run_tool_loop(USER, TOOLS, ReActTools(writer), max_iterations=1, on_limit="answer"))
    assert result.content == "It is 5."
    assert told(writer)[0] == ("system", system_text(PROMPTS["en"], TOOLS.definitions))
    assert str(told(writer)[-1][1]).startswith("Observation: 5\n\nUse no more tools.")
    model = ReActTools(Writer(CALL, again))
    with pytest.raises(ToolLoopIterationLimitError):
        asyncio.run(run_tool_loop(USER, TOOLS, model, max_iterations=1, on_limit="answer"))


# --- what the model is told ------------------------------------------------------------------


def test_there_is_one_system_message_and_the_callers_own_text_stands_first_in_it() -> None:
    writer = Writer(ANSWER)
    ask(ReActTools(writer), (ChatMessage("system", "You are a pirate."), *USER, ChatMessage("system", "Be brief.")))
    (first, *rest) = told(writer)
    assert first[0] == "system"
    assert str(first[1]).startswith("You are a pirate.\n\nBe brief.\n\nUse a tool to")
    assert rest == [("user", "What is 2 + 3?")]


def test_a_history_of_calls_is_told_in_user_and_assistant_turns() -> None:
    writer = Writer(ANSWER)
    calls = [ToolCall("a", "add", '{"left": 1}'), ToolCall("b", "gone", "not json")]
    history = (
        *USER,
        ChatMessage("assistant", "I look.", calls),
        ChatMessage("tool", "2", None, "a"),
        ChatMessage("tool", "3", None, "b"),
        ChatMessage("user", "And?"),
        ChatMessage("assistant", "It is 2."),
        ChatMessage("user", "Sure?"),
    )
    ask(ReActTools(writer), history)
    assert told(writer)[2:] == [
        (
            "assistant",
            'Thought: I look.\nAction: add\nAction Input: {"left": 1}\nAction: gone\nAction Input: not json',
        ),
        ("user", "Observation: 2\n\nObservation: 3\n\nAnd?"),
        ("assistant", "Final Answer: It is 2."),
        ("user", "Sure?"),
    ]


def test_images_stay_where_the_model_takes_them_and_are_named_where_not() -> None:
    parts: list[TextPart | ImagePart] = [TextPart("Look:"), ImagePart("https://example.org/cat.png")]
    message = ChatMessage("user", parts)
    blind, seeing = Writer(ANSWER), Writer(ANSWER, images=True)
    ask(ReActTools(blind), (message,))
    ask(ReActTools(seeing), (message,))
    assert told(blind)[1] == ("user", "Look:\n[image https://example.org/cat.png]")
    assert told(seeing)[1] == ("user", parts)


def test_without_tools_the_model_is_asked_as_it_is() -> None:
    writer = Writer("Thought: this is my answer.")
    response = asyncio.run(ReActTools(writer).complete(USER))
    assert response.content == "Thought: this is my answer."
    assert writer.asked == [USER]


def test_the_reply_ends_before_an_observation_where_the_model_takes_stop_texts() -> None:
    writer = Writer(ANSWER, ANSWER, ANSWER)
    asyncio.run(ReActTools(writer).complete(USER, TOOLS.definitions, settings=ModelSettings(stop=("X",), seed=1)))
    ask(ReActTools(writer, stop=False))
    asyncio.run(ReActTools(writer).complete(USER, TOOLS.definitions, settings=ModelSettings(stop=tuple("abcd"))))
    assert writer.settings[0] == ModelSettings(stop=("X", "\nObservation:"), seed=1)
    assert writer.settings[1] is None
    assert writer.settings[2] == ModelSettings(stop=tuple("abcd"))


@pytest.mark.parametrize("streamed", [True, False])
def test_a_model_that_refuses_stop_texts_is_asked_without_one_from_then_on(streamed: bool) -> None:
    writer = Writer(CALL, ANSWER, refuses="Unsupported parameter: 'stop' is not supported with this model.")

    async def go() -> tuple[Repair, ...]:
        model = ReActTools(writer)
        if not streamed:
            return (await run_tool_loop(USER, TOOLS, model)).repairs
        async with stream_tool_loop(USER, TOOLS, model) as stream:
            return (await stream.result()).repairs

    repairs = asyncio.run(go())
    assert [repair.kind for repair in repairs] == ["stop"]
    assert len(writer.settings) == 3


def test_another_refusal_is_passed_on() -> None:
    with pytest.raises(ModelRequestError, match="bad"):
        ask(ReActTools(Writer(ANSWER, refuses="bad request")))


def test_a_choice_of_tools_is_kept_to() -> None:
    writer = Writer(CALL, CALL, ANSWER, CALL, ANSWER)
    model = ReActTools(writer)
    assert ask(model, tool_choice="required").tool_calls
    assert str(told(writer)[-1][1]).endswith("You must use a tool now: write an Action.")
    other = ask(model, tool_choice="echo")
    assert (other.tool_calls, other.finish_reason) == (None, "malformed_function_call")
    absent = ask(model, tool_choice="required")
    assert (absent.content, absent.tool_calls, absent.finish_reason) == ("", None, "tool_calls")
    assert ask(model, tool_choice="add").tool_calls
    assert ask(model, tool_choice="none").content == ANSWER
    assert all(settings is None or settings.tool_choice is None for settings in writer.settings)


# --- the prompt ------------------------------------------------------------------------------


def test_a_signature_tells_names_types_and_what_may_be_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where.\nA city."},
            "unit": {"enum": ["c", "f"], "default": "c"},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}},
        },
        "required": ["city"],
        "$defs": {"Tag": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    assert signature(ToolDef("weather", "Tell it.\n\nNow.", schema)) == (
        'weather(city: string, unit: "c"|"f" = "c", days?: integer, tags?: [{name: string}]) - Tell it. Now.'
        " [city: Where. A city.]"
    )


@pytest.mark.parametrize("language", PROMPTS)
def test_a_prompt_of_any_language_holds_the_tools_and_the_english_key_words(language: str) -> None:
    writer = Writer(ANSWER)
    assert ask(ReActTools(writer, language=f"{language}-XX")).content == "It is 5."
    system = str(told(writer)[0][1])
    assert "add(left: integer, right: integer = 1) - Add two numbers." in system
    assert 'Action: add\nAction Input: {"left": 1}' in system
    assert "\nFinal Answer: " in system
    assert "{" not in system.replace('{"left": 1}', "")


def test_a_prompt_of_ones_own_is_checked_for_its_placeholders() -> None:
    writer = Writer(ANSWER)
    ask(ReActTools(writer, prompt='Tools: {names}\n{tools}\nWrite {"a": 1}.'))
    assert told(writer)[0] == (
        "system",
        "Tools: add, echo\nadd(left: integer, right: integer = 1) - Add two numbers.\n"
        'echo(text: string) - Say it again.\nWrite {"a": 1}.',
    )
    with pytest.raises(ValueError, match=r"needs the placeholder \{tools\}"):
        ReActTools(writer, prompt="no tools")
    with pytest.raises(ValueError, match=r"unknown placeholder \{tool\}"):
        ReActTools(writer, prompt="{tools} {tool}")
    with pytest.raises(ValueError, match="'named'"):
        ReActPrompt("{tools}", "now", "must", "must")
    with pytest.raises(ValueError, match="hold"):
        ReActTools(writer, hold=-1)


def test_an_answer_in_a_form_is_asked_for_without_key_words_and_only_where_no_tools_are_offered() -> None:
    form = ToolDef("answer", "", {"type": "object", "properties": {}})
    writer = Writer('{"sum": 5}', ANSWER)
    model = ReActTools(writer)
    history = (*USER, ChatMessage("assistant", "", [ToolCall("a", "add", "{}")]), ChatMessage("tool", "5", None, "a"))
    settings = ModelSettings(answer=form)
    assert asyncio.run(model.complete(history, (), settings=settings)).content == '{"sum": 5}'
    assert told(writer)[-1] == ("user", "Observation: 5")
    asyncio.run(model.complete(USER, TOOLS.definitions, settings=settings))
    assert [given and given.answer for given in writer.settings] == [form, None]
