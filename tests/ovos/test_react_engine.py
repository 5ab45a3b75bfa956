"""Brains that only write, and tools all the same."""

from __future__ import annotations

from typing import Any

import pytest
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

from toolturn.errors import ToolLoopEmptyResponseError
from toolturn.ovos import NativeToolCallEngine, ReActLoopEngine

from .boxes import EchoBox
from .brains import ScriptedBrain, WritingBrain, user

ECHO = 'Thought: I should say it.\nAction: echo\nAction Input: {"text": "hi"}'


def engine(*replies: Any, cls: Any = NativeToolCallEngine, config: Any = None) -> tuple[Any, WritingBrain, EchoBox]:
    made, brain, box = cls(config), WritingBrain(replies), EchoBox()
    made.set_brain(brain)
    made.load_toolboxes([box])
    return made, brain, box


@pytest.mark.parametrize("cls", [NativeToolCallEngine, ReActLoopEngine])
def test_a_call_is_read_from_the_text_and_its_result_goes_back_as_text(cls: Any) -> None:
    made, brain, box = engine(ECHO, "FINAL_ANSWER: it said hi", cls=cls)
    answer = made.continue_chat([user("say hi")], session_id="s1", lang="en-US", units="metric")
    assert answer == AgentMessage(MessageRole.ASSISTANT, "it said hi")
    assert box.ran == ["echo"]
    assert brain.asked[1].messages[-1].content.startswith('Observation: {"text":"hi"}\n\n')
    assert brain.asked[1].messages[-1].role is MessageRole.USER
    assert brain.asked[0].tools is None
    assert brain.asked[0].known == {"session_id": "s1", "lang": "en-US", "units": "metric"}
    assert all(not message.tool_calls for asked in brain.asked for message in asked.messages)


def test_the_react_engine_has_a_brain_that_could_call_tools_write() -> None:
    made = ReActLoopEngine()
    brain = ScriptedBrain([ECHO, "FINAL_ANSWER: done"])
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()])
    assert made.continue_chat([user("go")]).content == "done"
    assert [asked.tools for asked in brain.asked] == [None, None]


def test_plain_text_is_an_answer() -> None:
    made, _, _ = engine("It is four.")
    assert made.continue_chat([user("2+2?")]).content == "It is four."


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("FINAL_ANSWER: 42", "42"),
        ("Thought: I know it.\n**Final Answer:** 42\nand more", "42\nand more"),
        ("Thought: free at last", "Thought: free at last"),
        ("  It is\nFINAL ", "  It is\nFINAL "),
        ("Thoughtful people say so.", "Thoughtful people say so."),
        ("F", "F"),
        ("Action: the hero enters.\nHe bows.", "Action: the hero enters.\nHe bows."),
    ],
)
@pytest.mark.parametrize("config", [{}, {"max_iterations": 0}])
def test_the_marks_of_an_answer_are_not_spoken_where_there_are_no_tools_either(
    reply: str, answer: str, config: dict[str, Any]
) -> None:
    class Streams(WritingBrain):
        def stream_tokens(self, *args: Any, **known: Any) -> Any:
            yield from self.replies.pop(0)

    for brain in (WritingBrain([reply]), Streams([reply])):
        made = NativeToolCallEngine(config)
        made.set_brain(brain)
        made.load_toolboxes([EchoBox()] if config else [])
        assert made.continue_chat([user("go")]).content == answer
        brain.replies = [reply]
        assert "".join(made.stream_tokens([user("go")])).strip() == answer.strip()


@pytest.mark.parametrize(
    "call", [ECHO, "Action: nothing\nAction Input: {}", "Action: echo({})", "Thought: x\nAction: y"]
)
def test_a_call_that_nothing_can_run_is_not_spoken_where_there_are_no_tools_either(call: str) -> None:
    made, brain, _ = engine(call, "FINAL_ANSWER: hi", config={"max_iterations": 2})
    made.load_toolboxes([])
    assert made.continue_chat([user("go")]).content == "hi"
    brain.replies = [call, call]
    with pytest.raises(ToolLoopEmptyResponseError):
        made.continue_chat([user("go")])


def test_a_tool_that_is_called_nothing_is_one() -> None:
    made, brain, _ = engine("Action: nothing({})", "FINAL_ANSWER: done")
    assert made.continue_chat([user("go")]).content == "done"
    assert brain.asked[1].messages[-1].content.startswith("Observation: ok")


def test_an_observation_that_the_brain_made_up_is_not_believed() -> None:
    made, brain, box = engine(f"{ECHO}\nObservation: made up\nFINAL_ANSWER: made up", "FINAL_ANSWER: hi")
    assert made.continue_chat([user("go")]).content == "hi"
    assert box.ran == ["echo"]
    assert "made up" not in "".join(message.content for message in brain.asked[1].messages)


def test_the_prompt_is_there_once_and_in_the_language_of_the_session() -> None:
    made, brain, _ = engine(ECHO, "FINAL_ANSWER: ja", config={"system_prompt": "Sei freundlich."})
    made.continue_chat([AgentMessage(MessageRole.SYSTEM, "Ich bin Persona."), user("los")], lang="de-DE")
    for asked in brain.asked:
        systems = [message.content for message in asked.messages if message.role is MessageRole.SYSTEM]
        assert len(systems) == 1
        assert systems[0].startswith("Sei freundlich.\n\nIch bin Persona.")
        assert systems[0].count("echo") >= 1
    english, _, _ = engine("x")
    assert english.continue_chat([user("go")], lang="en-US").content == "x"


def test_at_the_limit_the_brain_is_asked_for_an_answer_and_scaffolding_is_never_one() -> None:
    made, brain, box = engine(ECHO, ECHO, config={"max_iterations": 1})
    assert made.continue_chat([user("go")]).content == "This is what I found: hi."
    assert box.ran == ["echo"]
    assert len(brain.asked) == 2


def test_the_prompt_can_be_the_persona_s_own() -> None:
    made, brain, _ = engine("hello", config={"react": {"prompt": "Tools:\n{tools}\nWrite Action: and Action Input:"}})
    made.continue_chat([user("go")])
    assert brain.asked[0].messages[0].content.startswith("Tools:\n")


def test_a_subclass_that_runs_the_calls_is_asked_about_every_name() -> None:
    class Mine(ReActLoopEngine):
        def _call_tool(self, tool_name: str, args: dict[str, Any]) -> str:
            return f"mine: {tool_name} {args}"

    made, brain, _ = engine(ECHO.replace("echo", "unheard_of"), "FINAL_ANSWER: done", cls=Mine)
    made.continue_chat([user("go")])
    assert brain.asked[1].messages[-1].content.startswith("Observation: mine: unheard_of {'text': 'hi'}\n\n")
