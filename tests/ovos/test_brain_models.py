"""A brain of OpenVoiceOS as a model of toolturn, and the messages of the two."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole, MultimodalAgentMessage, ToolCall

from toolturn import run_tool_loop_sync
from toolturn.errors import ToolLoopCancelledError, ToolLoopMalformedResponseError
from toolturn.messages import ChatMessage
from toolturn.models.ingest import ingest
from toolturn.ovos import BrainModel, NativeToolCallEngine
from toolturn.ovos.brain_model import takes_tools
from toolturn.ovos.messages import agent_messages, chat_messages, response_of
from toolturn.tools import ToolSet, tool
from toolturn.transcript import check, repair

from .boxes import EchoBox
from .brains import ScriptedBrain, WritingBrain, calling, user


def test_a_brain_is_a_model_for_any_turn() -> None:
    @tool
    def double(number: int) -> int:
        """Doubles a number."""
        return 2 * number

    tools = ToolSet([double])
    brain = ScriptedBrain([calling(("a", "double", {"number": 21})), "It is 42."])
    model = BrainModel(brain, [each.to_openai() for each in tools.definitions], session="s", language="de")
    result = run_tool_loop_sync([ChatMessage("user", "2*21?")], tools, model)
    assert result.content == "It is 42."
    assert brain.asked[0].known == {"session_id": "s", "lang": "de", "units": None}
    assert brain.asked[0].tools[0]["function"]["name"] == "double"


def test_a_brain_gets_back_its_own_message_with_what_was_mended() -> None:
    @dataclass
    class Signed(AgentMessage):  # type: ignore[misc]
        signature: str = ""

    wants = Signed(MessageRole.ASSISTANT, None, tool_calls=[ToolCall("", "Echo", {"text": "a"})], signature="mine")
    made = NativeToolCallEngine()
    brain = ScriptedBrain([wants, "done"])
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()])
    made.continue_chat([user("go")])
    back = brain.asked[1].messages[1]
    assert isinstance(back, Signed)
    assert (back.signature, back.content) == ("mine", "")
    assert back.tool_calls[0].name == "echo"
    assert back.tool_calls[0].id
    assert wants.tool_calls == [ToolCall("", "Echo", {"text": "a"})]


def test_a_brain_that_says_it_takes_tools_and_does_not_is_named() -> None:
    class Wrong:
        supports_tools = True

        def continue_chat(self, messages: Any, session_id: str = "", lang: Any = None, units: Any = None) -> Any:
            return AgentMessage(MessageRole.ASSISTANT, "x")

    with pytest.raises(TypeError, match="Wrong says that it supports tools"):
        takes_tools(Wrong())
    assert takes_tools(ScriptedBrain()) is True
    assert takes_tools(WritingBrain()) is False


def test_a_brain_that_blocks_does_not_hold_up_a_stop() -> None:
    asked, release = threading.Event(), threading.Event()

    class Blocks(ScriptedBrain):
        def continue_chat(self, *args: Any, **known: Any) -> Any:
            asked.set()
            release.wait(30)
            return AgentMessage(MessageRole.ASSISTANT, "late")

    made = NativeToolCallEngine()
    made.set_brain(Blocks())
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            made.continue_chat([user("?")], "s")
        except BaseException as exc:
            errors.append(exc)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert asked.wait(10)
    before = time.monotonic()
    made.stop("s")
    asking.join(10)
    took = time.monotonic() - before
    release.set()
    assert isinstance(errors[0], ToolLoopCancelledError)
    assert took < 4


def test_a_stream_that_nobody_reads_any_more_is_let_go() -> None:
    pieces: list[str] = []

    class Streams(WritingBrain):
        def stream_tokens(self, messages: Any, session_id: str = "", lang: Any = None, units: Any = None) -> Any:
            for number in range(10_000):
                pieces.append(str(number))
                yield f"{number} "
                time.sleep(0.001)

    async def some() -> None:
        stream = BrainModel(Streams()).stream((ChatMessage("user", "?"),))
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(some())
    count = len(pieces)
    assert count < 5000


def test_nothing_is_left_of_a_stream_that_was_cancelled_while_its_brain_thinks() -> None:
    release = threading.Event()

    class Thinks(WritingBrain):
        def stream_tokens(self, messages: Any, session_id: str = "", lang: Any = None, units: Any = None) -> Any:
            yield "well"
            release.wait(30)

    async def some() -> set[str]:
        stream = BrainModel(Thinks()).stream((ChatMessage("user", "?"),))
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await stream.aclose()  # type: ignore[attr-defined]
        release.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 10)
        return {str(task) for task in others if not task.done()}

    assert asyncio.run(some()) == set()


@pytest.mark.parametrize("calls", [[5, None, "x"], "add"])
def test_calls_that_are_none_are_refused_like_those_of_any_model(calls: Any) -> None:
    made = NativeToolCallEngine()
    made.set_brain(ScriptedBrain([AgentMessage(MessageRole.ASSISTANT, "", tool_calls=calls)]))
    with pytest.raises(ToolLoopMalformedResponseError):
        made.continue_chat([user("?")])


def test_dictionaries_and_developer_messages_are_taken() -> None:
    made = chat_messages(
        [
            {"role": "developer", "content": "Be kind."},
            AgentMessage(MessageRole.DEVELOPER, "And short."),
            {"content": "hi"},
        ]
    )
    assert made == [ChatMessage("system", "Be kind."), ChatMessage("system", "And short."), ChatMessage("user", "hi")]


def test_files_and_pictures_come_back_as_they_went() -> None:
    message = MultimodalAgentMessage(
        MessageRole.USER, "look", image_content=["iVBORw0"], audio_content=["UklGRg"], file_content=["JVBERi0"]
    )
    assert agent_messages(chat_messages([message])) == [message]


texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
any_calls = st.lists(
    st.builds(
        ToolCall,
        st.none() | texts | st.integers(),
        st.none() | texts,
        st.none() | texts | json_values | st.dictionaries(texts, json_values, max_size=3),
    )
    | st.dictionaries(texts, json_values, max_size=3)
    | json_values,
    max_size=3,
)
any_messages = st.lists(
    st.builds(
        AgentMessage,
        st.sampled_from(list(MessageRole)) | texts,
        st.none() | texts | st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=2),
        st.none() | any_calls,
        st.none() | texts | st.integers(),
        st.none() | texts,
    ),
    max_size=6,
)


@given(any_messages)
def test_whatever_stands_in_a_conversation_a_valid_one_can_be_made_of_it(messages: list[AgentMessage]) -> None:
    mended = repair(chat_messages(messages)).messages
    assert check(mended) == []
    back = agent_messages(mended)
    assert len(back) == len(mended)
    assert all(isinstance(call.arguments, dict) for message in back for call in message.tool_calls or ())


@given(st.builds(AgentMessage, st.just(MessageRole.ASSISTANT), st.none() | texts, st.none() | any_calls))
def test_whatever_a_brain_answers_is_a_reply(message: AgentMessage) -> None:
    assert isinstance(ingest(response_of(message, "x"), (), ()).content, str)
