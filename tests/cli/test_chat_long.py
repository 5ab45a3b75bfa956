"""A conversation with a model whose window is small: what does not fit is said, and the conversation goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatModel,
    ChatResponse,
    Limits,
    ModelContextError,
    ToolCall,
    ToolDef,
    ToolSet,
    tool,
)
from toolturn.cli.chat import _room
from toolturn.cli.chatting import Chat
from toolturn.cli.talk import Talk
from toolturn.model import Capabilities, ModelSettings
from toolturn.transcript import check, rough_tokens

PASTED = "Once upon a time there was a very long story. " * 40


class Small(ChatModel):
    """Answers ``yes`` to what fits into its window, and calls a tool when it is told to look.

    Args:
        window: Tokens of messages it takes.
        known: Whether it says so.
    """

    def __init__(self, window: int, *, known: bool = False) -> None:
        self.window = window
        self.known = known
        self.shown: list[tuple[ChatMessage, ...]] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(tools=True, window=self.window if self.known else None)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        assert check(messages) == []
        self.shown.append(messages)
        tokens = sum(map(rough_tokens, messages))
        if tokens > self.window:
            raise ModelContextError(f"the messages need {tokens} tokens, the model's window has {self.window}")
        if messages[-1].role == "user" and "look" in str(messages[-1].content):
            made = [ToolCall(f"c{len(messages)}", "look", "{}")]
            return ChatResponse("", None, made, "tool_calls")
        return ChatResponse("yes", finish_reason="stop")


@tool
def look() -> str:
    """Look it up."""
    return PASTED * 3


def conversation(model: Small, *texts: str, tools: ToolSet | None = None) -> Chat:
    known = tools or ToolSet([])
    chat = Chat(model, "small", known, limits=Limits(), talk=Talk(limit=_room(model.capabilities.window, known)))

    async def main() -> None:
        for text in texts:
            await chat.ask(text)
            assert check(chat.talk.messages) == []
            assert check(chat.talk.shown) == []

    asyncio.run(main())
    return chat


@pytest.mark.parametrize("known", [False, True])
def test_a_message_that_is_too_long_by_itself_is_said_and_taken_back(
    known: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = conversation(Small(300, known=known), "hello", PASTED, "are you there?")
    told = capsys.readouterr()
    assert told.out == "yes\nyes\n"
    errors = [line for line in told.err.splitlines() if line.startswith("Error: ")]
    assert errors == [
        "Error: the model failed: the messages need 464 tokens, the model's window has 300. "
        "The message by itself is too long; it was taken back."
    ]
    assert [message.content for message in chat.talk.messages] == ["hello", "yes", "are you there?", "yes"]


def test_a_result_that_is_too_long_does_not_end_the_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    chat = conversation(Small(600), "hello", "look", "thank you", tools=ToolSet([look]))
    told = capsys.readouterr()
    assert told.out == "yes\nyes\n"
    assert "the model's window has 600" in told.err
    assert [message.role for message in chat.talk.messages] == [
        *("user", "assistant"),
        *("user", "assistant", "tool"),
        *("user", "assistant"),
    ]


@pytest.mark.parametrize("known", [False, True])
def test_a_conversation_far_past_the_window_never_stops(known: bool, capsys: pytest.CaptureFixture[str]) -> None:
    model = Small(1500, known=known)
    texts = [f"{number}: {PASTED[:800]}" if number % 5 else "look" for number in range(60)]
    tools = ToolSet([tool(name="look", description="Look it up.")(lambda: PASTED[:400])])
    chat = conversation(model, *texts, tools=tools)
    assert not chat.failed
    assert capsys.readouterr().out == "yes\n" * 60
    assert sum(map(rough_tokens, chat.talk.messages)) > 5 * model.window
    refused = sum(sum(map(rough_tokens, shown)) > model.window for shown in model.shown)
    assert refused == (0 if known else 1), "what the window is has to be learned once only"
    json.dumps([str(message.content) for message in chat.talk.messages])


def test_other_errors_leave_the_question_in_the_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    class Gone(Small):
        async def complete(self, *_: Any, **__: Any) -> ChatResponse:
            raise OSError("the cable is out")

    chat = conversation(Gone(300), "hello", "are you there?")
    assert chat.failed
    assert [message.content for message in chat.talk.messages] == ["hello\n\nare you there?"]
    assert "the cable is out" in capsys.readouterr().err
