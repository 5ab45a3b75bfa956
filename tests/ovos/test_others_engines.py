"""Engines of others over ours, ours over theirs, and what is closed."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

from toolturn.ovos import AgenticLoopEngine, NativeToolCallEngine, ToolturnBrain
from toolturn.testing import ScriptedModel, calls

from .boxes import EchoBox
from .brains import ScriptedBrain, WritingBrain, calling, user


def test_a_loop_of_one_s_own_has_the_brain_the_tools_and_the_calls() -> None:
    class Once(AgenticLoopEngine):
        def continue_chat(self, messages: Any, *args: Any, **known: Any) -> Any:
            wanted = self.brain.continue_chat(messages, tools=self.toolboxes)
            said = [self._call_tool(call.name, call.arguments) for call in wanted.tool_calls]
            return AgentMessage(MessageRole.ASSISTANT, ", ".join(said))

    made = Once({})
    made.load_toolboxes([EchoBox()])
    made.set_brain(ScriptedBrain([calling(("a", "echo", {"text": "hi"}), ("b", "boom", {}))]))
    answer = made.continue_chat([user("go")]).content
    assert answer == "{\"text\":\"hi\"}, Error: tool 'boom' failed: KeyError: 'the cause'"
    assert {schema["name"] for schema in made._collect_tool_schemas()} >= {"echo", "boom"}


def test_what_a_subclass_answers_is_what_is_spoken() -> None:
    class Polite(NativeToolCallEngine):
        def continue_chat(self, *args: Any, **known: Any) -> Any:
            answer = super().continue_chat(*args, **known)
            return AgentMessage(answer.role, f"{answer.content} You are welcome.")

    made = Polite()
    made.set_brain(ScriptedBrain(["Four.", "Five."]))
    assert list(made.stream_sentences([user("?")])) == ["Four. ", "You are welcome."]
    assert list(made.stream_tokens([user("?")])) == ["Five. You are welcome."]


def test_an_engine_is_a_brain_of_another_one() -> None:
    inner = NativeToolCallEngine()
    inner.set_brain(ScriptedBrain([calling(("a", "echo", {"text": "hi"})), "inner says hi"]))
    inner.load_toolboxes([EchoBox()])
    outer = NativeToolCallEngine()
    outer.set_brain(inner)
    outer.load_toolboxes([EchoBox()])
    assert outer.continue_chat([user("go")]).content == "inner says hi"


def test_the_engine_of_others_is_a_brain_and_has_ours_as_one() -> None:
    theirs = pytest.importorskip("ovos_agentic_loop.native_toolcall").NativeToolCallEngine({})
    theirs.set_brain(ToolturnBrain(model=ScriptedModel([calls(("echo", '{"text": "hi"}')), "it said hi"])))
    theirs.load_toolboxes([EchoBox()])
    outer = NativeToolCallEngine()
    outer.set_brain(theirs)
    assert outer.continue_chat([user("go")]).content == "it said hi"


class Closing(EchoBox):
    closed = 0

    def close(self) -> None:
        type(self).closed += 1


def test_what_the_engine_has_made_is_closed_once_and_what_it_was_given_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolturn.ovos.engine.load", lambda *about: Closing)
    Closing.closed = 0
    made = NativeToolCallEngine({"toolboxes": ["closing"]})
    made.close()
    made.shutdown()
    assert Closing.closed == 1

    made = NativeToolCallEngine({"toolboxes": ["closing"]})
    del made
    gc.collect()
    assert Closing.closed == 2

    made = NativeToolCallEngine()
    made.load_toolboxes([Closing()])
    made.close()
    assert Closing.closed == 2


def test_a_toolbox_whose_constructor_knows_no_bus_is_made_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old(EchoBox):
        def __init__(self, config: Any = None) -> None:
            super().__init__(config)

    monkeypatch.setattr("toolturn.ovos.engine.load", lambda *about: Old)
    assert "echo" in NativeToolCallEngine({"toolboxes": ["old"], "old": {}}).tools


def test_a_brain_without_tools_and_no_toolboxes_is_asked_as_it_is() -> None:
    made = NativeToolCallEngine()
    brain = WritingBrain(["hello"])
    made.set_brain(brain)
    assert made.continue_chat([user("hi")]).content == "hello"
    assert brain.asked[0].messages == [user("hi")]
