"""A conversation far past the window of the real embedded model: it stays valid and goes on."""

from __future__ import annotations

import asyncio

import pytest

from toolturn import ChatMessage, ChatModel, Limits, ModelSettings, ToolCall, ToolSet, tool
from toolturn.cli.chat import _room
from toolturn.cli.chatting import Chat
from toolturn.cli.talk import Talk
from toolturn.local import local_model
from toolturn.transcript import check, rough_tokens

pytestmark = [pytest.mark.model, pytest.mark.timeout(120)]

WINDOW = 512
FACT = "The lighthouse of Faro was built in 1851 and is 46 metres high; its light is seen from 25 miles away. "


@pytest.fixture(scope="module")
def model() -> ChatModel:
    return local_model(context=WINDOW)


@tool(effect="none")
def keepers(year: int) -> str:
    """Tell who kept the lighthouse in a year."""
    return f"In {year} the keeper was called Dora."


def talk_with(
    model: ChatModel,
    questions: list[str],
    *,
    before: list[ChatMessage] | None = None,
    tools: ToolSet | None = None,
    known: bool = True,
) -> Chat:
    tools = tools or ToolSet([])
    talk = Talk([ChatMessage("system", "Reply with one short sentence."), *(before or [])])
    talk.limit = _room(model.capabilities.window, tools) if known else None
    settings = ModelSettings(temperature=0, max_tokens=60)
    chat = Chat(model, "embedded", tools, limits=Limits(), talk=talk, quiet=True, settings=settings)

    async def main() -> None:
        for question in questions:
            await chat.ask(question)
            assert check(talk.messages) == []
            assert check(talk.shown) == []
            assert talk.shown[0] is talk.messages[0]

    asyncio.run(main())
    return chat


def exchange(number: int) -> list[ChatMessage]:
    """What was said before: a question, a call, its result, and an answer."""
    made = ToolCall(f"c{number}", "keepers", f'{{"year":{1900 + number}}}')
    return [
        ChatMessage("user", f"Who kept the lighthouse in {1900 + number}?"),
        ChatMessage("assistant", "", [made]),
        ChatMessage("tool", FACT * 3 + "Its keeper was called Dora.", None, made.id),
        ChatMessage("assistant", f"Dora kept it in {1900 + number}."),
    ]


def test_the_window_is_told(model: ChatModel) -> None:
    assert model.capabilities.window == WINDOW
    assert local_model().capabilities.window == 8192


@pytest.mark.parametrize("known", [True, False])
def test_a_conversation_past_the_window_goes_on(
    model: ChatModel, known: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = [f"{FACT * 6}Is number {n} odd? Say yes or no." for n in range(4)]
    chat = talk_with(model, questions, known=known)
    assert not chat.failed, capsys.readouterr().err
    assert sum(map(rough_tokens, chat.talk.messages)) > WINDOW
    assert len(chat.talk.shown) < len(chat.talk.messages)
    assert [message.role for message in chat.talk.messages[1:]] == ["user", "assistant"] * 4
    assert all(message.content for message in chat.talk.messages)


def test_a_conversation_with_calls_past_the_window_goes_on(
    model: ChatModel, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [message for number in range(6) for message in exchange(number)]
    assert sum(map(rough_tokens, before)) > WINDOW
    chat = talk_with(model, ["Who kept it in 1911?", "Thank you."], before=before, tools=ToolSet([keepers]))
    assert not chat.failed, capsys.readouterr().err
    assert chat.talk.messages[1 : len(before) + 1] == before
    assert len(chat.talk.shown) < len(chat.talk.messages)
    assert any(message.role == "tool" for message in chat.talk.shown)


def test_a_message_past_the_window_is_taken_back_and_the_next_is_answered(
    model: ChatModel, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = talk_with(model, ["Say hello.", FACT * 40, "Say goodbye."])
    told = capsys.readouterr().err
    assert f"the model's window has {WINDOW}" in told
    assert "The message by itself is too long; it was taken back." in told
    assert [message.role for message in chat.talk.messages[1:]] == ["user", "assistant"] * 2
