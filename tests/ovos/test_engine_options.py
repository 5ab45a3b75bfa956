"""What the section of an engine says, and what is said of its mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole, ToolCall

from toolturn.ovos import NativeToolCallEngine, NotLoadable
from toolturn.results import Approval
from toolturn.tools import ToolContext, ToolSet, tool

from .boxes import EchoBox
from .brains import ScriptedBrain, calling, user


def engine(*replies: Any, config: Any = None, boxes: Any = None) -> tuple[NativeToolCallEngine, ScriptedBrain]:
    made, brain = NativeToolCallEngine(config), ScriptedBrain(replies)
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()] if boxes is None else boxes)
    return made, brain


class Heard:
    """Stands for the log."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Heard:
    heard = Heard()
    monkeypatch.setattr("toolturn.ovos.engine.LOG", heard)
    return heard


@pytest.mark.parametrize(
    ("config", "right"),
    [
        ({"chat_module": "b", "b": {}}, "brain"),
        ({"tools": []}, "toolboxes"),
        ({"max_iters": 3}, "max_iterations"),
        ({"persona": "be kind"}, "system_prompt"),
        ({"max_iteration": 3}, "max_iterations"),
        ({"api_url": "http://127.0.0.1/v1"}, "section of the brain"),
        ({"brain": "x"}, "belongs inside"),
        ({"brain": "ovos-chat-openai-plugin", "ovos-chat-openai-plugin": {"persona": "be kind"}}, "system_prompt"),
        ({"brain": "ovos-chat-openai-plugin", "ovos-chat-openai-plugin": {"api_key": "k"}}, "key"),
    ],
)
def test_a_key_that_is_wrong_or_old_gives_one_warning_that_names_the_right_one(
    log: Heard, config: dict[str, Any], right: str
) -> None:
    NativeToolCallEngine(config)
    assert len(log.warnings) == 1
    assert right in log.warnings[0]


def test_good_sections_give_no_warning(log: Heard) -> None:
    NativeToolCallEngine({"enabled": True})
    NativeToolCallEngine({"brain": "b", "b": {"anything": 1}, "max_iterations": 3, "lang": "de"})
    assert log.warnings == []


def test_the_options_of_the_text_protocol_are_looked_at_when_the_engine_is_built(log: Heard) -> None:
    NativeToolCallEngine({"react": {"hold": 0, "promt": "x"}})
    (told,) = log.warnings
    assert "did you mean 'prompt'" in told
    with pytest.raises(ValueError, match="tools"):
        NativeToolCallEngine({"react": {"prompt": "no place for them"}})
    with pytest.raises(ValueError, match="hold"):
        NativeToolCallEngine({"react": {"hold": -1}})


def test_a_hook_that_fails_takes_no_answer_away(log: Heard) -> None:
    class Fails(NativeToolCallEngine):
        def turn_ended(self, session_id: str, turn: Any) -> None:
            raise KeyError("hook")

    made = Fails()
    made.set_brain(ScriptedBrain(["here"]))
    assert made.continue_chat([user("go")]).content == "here"
    assert "KeyError: 'hook'" in log.warnings[0]


def test_a_value_under_an_old_name_is_read() -> None:
    assert NativeToolCallEngine({"max_iters": 3}).max_iterations == 3


@pytest.mark.parametrize(
    "config",
    [
        {"max_tool_calls": -1},
        {"timeout": 0},
        {"preamble": "shout"},
        {"tool_timeout": "soon"},
        {"react": []},
        {"brain": 7},
    ],
)
def test_a_value_out_of_its_range_is_refused_and_named(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(config))):
        NativeToolCallEngine(config)


def test_the_openai_brain_is_given_its_keys_under_the_names_it_reads() -> None:
    section = {"api_url": "http://127.0.0.1:9/v1/chat/completions", "api_key": "k", "model": "m"}
    made = NativeToolCallEngine({"brain": "ovos-chat-openai-plugin", "ovos-chat-openai-plugin": section})
    assert made.brain.config["api_url"] == "http://127.0.0.1:9/v1"
    assert made.brain.config["key"] == "k"
    assert made.brain.allow_system is True


def test_a_toolbox_that_is_not_there_takes_no_other_down_unless_all_have_to_be(log: Heard) -> None:
    config = {"toolboxes": ["toolturn-maths", "toolturn-math"]}
    assert "calculator" in NativeToolCallEngine(config).tools
    assert len(log.warnings) == 1
    assert "did you mean 'toolturn-math'" in log.warnings[0]
    with pytest.raises(NotLoadable, match="toolturn-maths"):
        NativeToolCallEngine(config | {"strict": True})


def test_the_engine_s_system_prompt_reaches_the_brain_once() -> None:
    made, brain = engine(calling(("a", "echo", {"text": "1"})), "done", config={"system_prompt": "Be kind."})
    made.continue_chat([user("go")])
    for asked in brain.asked:
        assert [message.content for message in asked.messages].count("Be kind.") == 1


def test_causes_can_be_kept_from_the_model() -> None:
    made, brain = engine(calling(("a", "boom", {})), "done", config={"tool_causes": False})
    made.continue_chat([user("go")])
    assert brain.asked[1].messages[-1].content == "Error: tool 'boom' failed: KeyError"


def test_tools_of_one_name_may_be_prefixed_instead() -> None:
    made, brain = engine("done", config={"tool_names": "prefix"}, boxes=[EchoBox(), EchoBox()])
    made.continue_chat([user("go")])
    names = [each["function"]["name"] for each in brain.asked[0].tools]
    assert len(names) == len(set(names)) == 14


def test_calls_of_earlier_turns_are_shown_again_where_that_is_wanted() -> None:
    made, brain = engine(calling(("a", "echo", {"text": "4"})), "It is four.", "Yes.", config={"keep_tool_calls": 2})
    made.continue_chat([user("2+2?")], "s")
    said = [user("2+2?"), AgentMessage(MessageRole.ASSISTANT, "It is four."), user("sure?")]
    made.continue_chat(said, "s")
    assert [message.role.value for message in brain.asked[2].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    made, brain = engine("Yes.")
    made.continue_chat(said, "s")
    assert len(brain.asked[0].messages) == 3


def test_tools_of_the_toolturn_kind_know_session_language_and_units() -> None:
    from toolturn.ovos import toolbox_of

    known: list[Any] = []

    @tool
    def look(context: ToolContext) -> str:
        """Looks around."""
        known.append((context.session, context.language, context.data["units"]))
        return "seen"

    made, _ = engine(calling(("a", "look", {})), "done", boxes=[toolbox_of(ToolSet([look]), "mine")])
    made.continue_chat([user("go")], "kitchen", "de-AT", "imperial")
    assert known == [("kitchen", "de-AT", "imperial")]


def test_tools_that_want_an_approval_are_denied_unless_somebody_is_asked() -> None:
    from toolturn.ovos import toolbox_of

    @tool(approval=True)
    def unlock() -> str:
        """Unlocks the door."""
        return "unlocked"

    boxes = [toolbox_of(ToolSet([unlock]), "door")]
    made, brain = engine(calling(("a", "unlock", {})), "done", boxes=boxes)
    made.continue_chat([user("go")])
    assert "nobody can be asked" in brain.asked[1].messages[-1].content

    class Asks(NativeToolCallEngine):
        def approve(self, call: Any, arguments: Any, context: ToolContext) -> Approval:
            return Approval(context.session == "owner")

    asks = Asks()
    brain = ScriptedBrain([calling(("a", "unlock", {})), "done"])
    asks.set_brain(brain)
    asks.load_toolboxes(boxes)
    asks.continue_chat([user("go")], "owner")
    assert brain.asked[1].messages[-1].content == "unlocked"


@pytest.mark.parametrize("rule", [True, lambda arguments: arguments["door"] == "front"])
@pytest.mark.parametrize("told_of", [True, False])
def test_a_subclass_that_runs_the_calls_itself_does_not_get_around_an_approval(rule: Any, told_of: bool) -> None:
    from toolturn.ovos import toolbox_of

    ran: list[str] = []

    @tool(approval=rule)
    def unlock(door: str) -> str:
        """Unlocks a door."""
        ran.append(door)
        return "unlocked"

    class Logs(NativeToolCallEngine):
        def _call_tool(self, tool_name: str, args: dict[str, Any]) -> str:
            return super()._call_tool(tool_name, args)

        def _collect_tool_schemas(self) -> list[dict[str, Any]]:
            return super()._collect_tool_schemas() if told_of else []

    made = Logs()
    calls = calling(("a", "unlock", {"door": "front"}), ("b", "unlock", {"door": "back"}))
    brain = ScriptedBrain([calls, "done"])
    made.set_brain(brain)
    made.load_toolboxes([toolbox_of(ToolSet([unlock]), "door")])
    made.continue_chat([user("go")])
    assert ran == ([] if rule is True else ["back"])
    assert "nobody can be asked" in brain.asked[1].messages[2].content


def test_tools_of_the_caller_are_given_back_only_by_an_engine_that_was_told_to() -> None:
    spec = {"type": "function", "function": {"name": "lights", "description": "d", "parameters": {"type": "object"}}}
    wants = calling(("a", "lights", {"on": True}), content="Turning it on.")
    made, brain = engine(wants, config={"supports_tools": True})
    assert made.supports_tools is True
    answer = made.continue_chat([user("light!")], tools=[spec])
    assert answer == AgentMessage(
        MessageRole.ASSISTANT, "Turning it on.", tool_calls=[ToolCall("a", "lights", {"on": True})]
    )
    assert brain.asked[0].tools[-1]["function"]["name"] == "lights"

    made, brain = engine(wants, "I can not.")
    assert made.continue_chat([user("light!")], tools=[spec]).tool_calls is None
    assert brain.asked[0].tools == made.toolboxes


def test_a_brain_that_is_busy_is_asked_once_more_and_one_that_refuses_is_not() -> None:
    made, _ = engine(ConnectionError("gone"), "here")
    assert made.continue_chat([user("go")]).content == "here"
    made, _ = engine(PermissionError("no"), "here")
    with pytest.raises(PermissionError):
        made.continue_chat([user("go")])
    made, _ = engine(ConnectionError("gone"), "here", config={"brain_attempts": 1})
    with pytest.raises(ConnectionError):
        made.continue_chat([user("go")])


def test_each_turn_that_has_ended_is_told() -> None:
    ended: list[Any] = []

    class Watches(NativeToolCallEngine):
        def turn_ended(self, session_id: str, turn: Any) -> None:
            ended.append((session_id, [record.call.name for record in turn.records]))

    made = Watches()
    made.set_brain(ScriptedBrain([calling(("a", "echo", {"text": "1"})), "done"]))
    made.load_toolboxes([EchoBox()])
    made.continue_chat([user("go")], "s")
    assert ended == [("s", ["echo"])]


def test_a_server_that_takes_no_tools_is_asked_by_text_from_then_on_which_is_said_once(log: Heard) -> None:
    from toolturn.errors import ModelRequestError
    from toolturn.ovos import ToolturnBrain
    from toolturn.testing import ScriptedModel

    refusal = ModelRequestError("registry.ollama.ai/library/x:1b does not support tools", status=400)
    action = 'Action: echo\nAction Input: {"text": "hi"}'
    model = ScriptedModel([refusal, action, "Final Answer: hi", "Final Answer: again"])
    made = NativeToolCallEngine()
    made.set_brain(ToolturnBrain(model=model))
    made.load_toolboxes([EchoBox()])
    assert made.continue_chat([user("go")], lang="en-US").content == "hi"
    assert made.continue_chat([user("go")], lang="en-US").content == "again"
    assert [bool(tools) for _, tools in model.requests] == [True, False, False, False]
    (told,) = log.warnings
    assert "by text" in told
