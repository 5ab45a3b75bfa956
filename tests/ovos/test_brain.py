"""A model of toolturn as a brain: for the engines here, and for those of others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole, MultimodalAgentMessage, ToolCall

from toolturn.errors import ModelError, ModelUnavailableError
from toolturn.messages import ChatResponse, ImagePart, TextPart
from toolturn.messages import ToolCall as Call
from toolturn.ovos import ToolturnBrain
from toolturn.testing import ScriptedModel, calls

from .boxes import EchoBox
from .brains import calling, user
from .models import Gate, StepModel


def test_calls_come_back_in_the_interface_s_own_form() -> None:
    model = ScriptedModel([calls(("c1", "echo", '{"text": "a"}'), content="Let me see.")])
    answer = ToolturnBrain(model=model).continue_chat([user("?")], tools=[EchoBox()])
    assert answer == AgentMessage(
        MessageRole.ASSISTANT, "Let me see.", tool_calls=[ToolCall("c1", "echo", {"text": "a"})]
    )
    assert [tool.name for tool in model.requests[0][1]][:2] == ["echo", "boom"]


def test_tools_may_be_specifications_too_and_the_history_may_hold_calls() -> None:
    model = ScriptedModel(["done"])
    spec = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    history = [
        user("?"),
        calling(("c1", "f", {"a": 1})),
        AgentMessage(MessageRole.TOOL, "7", tool_call_id="c1", name="f"),
    ]
    assert ToolturnBrain(model=model).continue_chat(history, tools=spec).content == "done"
    messages, tools = model.requests[0]
    assert tools[0].to_openai() == spec
    assert messages[1].tool_calls == [Call("c1", "f", '{"a":1}')]
    assert (messages[2].role, messages[2].tool_call_id) == ("tool", "c1")


def test_the_system_prompt_is_there_once_and_the_caller_s_list_stays() -> None:
    model = ScriptedModel(["a", "b"])
    brain = ToolturnBrain({"model": "local", "system_prompt": "Be kind."}, model=model)
    history = [user("?")]
    brain.continue_chat(history)
    brain.continue_chat([AgentMessage(MessageRole.SYSTEM, "Be kind."), user("?")])
    assert history == [user("?")]
    assert [[message.role for message in asked] for asked, _ in model.requests] == [["system", "user"]] * 2


def test_pictures_become_parts() -> None:
    model = ScriptedModel(["a cat"])
    picture = MultimodalAgentMessage(MessageRole.USER, "what is this?", image_content=["/9j/4AAQ"])
    ToolturnBrain(model=model).continue_chat([picture])
    content = model.requests[0][0][0].content
    assert content == [TextPart("what is this?"), ImagePart("data:image/jpeg;base64,/9j/4AAQ")]


def test_its_section_says_how_the_model_replies() -> None:
    model = ScriptedModel(["a"])
    config = {"model": "local", "temperature": 0.5, "max_tokens": 60, "stop": "\n", "seed": 7, "top_p": 0.9}
    ToolturnBrain(config, model=model).continue_chat([user("?")])
    settings = model.settings[0]
    assert settings is not None
    assert (settings.temperature, settings.max_tokens, settings.stop, settings.seed) == (0.5, 60, ("\n",), 7)
    assert settings.extra == {"top_p": 0.9}


def test_text_streams_in_pieces_and_in_sentences() -> None:
    gate = Gate()
    pieces = ToolturnBrain(model=StepModel(["One", " two", gate, "."])).stream_tokens([user("?")])
    assert [next(iter(pieces)), next(iter(pieces))] == ["One", " two"]
    gate.open()
    assert list(pieces) == ["."]
    assert list(ToolturnBrain(model=StepModel(["One. Tw", "o."])).stream_sentences([user("?")])) == ["One. ", "Two."]
    assert list(ToolturnBrain(model=ScriptedModel(["One. Two."])).stream_sentences([user("?")])) == ["One. ", "Two."]


def test_a_reply_that_was_cut_off_within_a_call_is_an_error_and_no_call() -> None:
    cut = ChatResponse("", None, [Call("c1", "echo", '{"text": "a')], "length")
    with pytest.raises(ModelError, match="before its calls were whole"):
        ToolturnBrain(model=ScriptedModel([cut])).continue_chat([user("?")], tools=EchoBox())


@pytest.mark.parametrize("config", [None, {}, {"model": "openai:gpt-5"}, {"model": "nowhere:x"}, {"model": ""}])
def test_it_can_be_built_whatever_model_its_section_names(config: Any) -> None:
    ToolturnBrain(config)


def test_a_missing_key_is_said_when_the_model_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pytest.importorskip("httptools")
    with pytest.raises(ModelError, match="key"):
        ToolturnBrain({"model": "openai:gpt-5"}).continue_chat([user("?")])
    with pytest.raises(ModelUnavailableError, match="nowhere"):
        ToolturnBrain({"model": "nowhere:x"}).continue_chat([user("?")])


def test_a_value_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="temperature"):
        ToolturnBrain({"model": "local", "temperature": "hot"})


def test_many_threads_make_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def model(*args: Any, **options: Any) -> Any:
        made.append(ScriptedModel(["a"] * 100))
        return made[-1]

    monkeypatch.setattr("toolturn.ovos.brain.any_model", model)
    brain = ToolturnBrain({"model": "local"})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: brain.continue_chat([user("?")]), range(32)))
    assert len(made) == 1
