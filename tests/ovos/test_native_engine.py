"""The native engine over the interface of OpenVoiceOS, with brains that play a script."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole, MultimodalAgentMessage

from toolturn.errors import ToolLoopEmptyResponseError, ToolLoopMalformedResponseError, ToolLoopModelError
from toolturn.ovos import NativeToolCallEngine, NotLoadable

from .boxes import EchoBox
from .brains import ScriptedBrain, calling, user


def engine(*replies: Any, config: Any = None, boxes: Any = None) -> tuple[NativeToolCallEngine, ScriptedBrain]:
    made = NativeToolCallEngine(config)
    brain = ScriptedBrain(replies)
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()] if boxes is None else boxes)
    return made, brain


def observation(brain: ScriptedBrain, place: int = -1) -> str:
    return str(brain.asked[place].messages[-1].content)


# --- the contract ----------------------------------------------------------------------


def test_a_call_is_run_and_its_result_goes_back_to_the_brain() -> None:
    made, brain = engine(calling(("c1", "echo", {"text": "hi"})), "it said hi")
    answer = made.continue_chat([user("say hi")], session_id="s1", lang="de-DE", units="metric")
    assert answer == AgentMessage(MessageRole.ASSISTANT, "it said hi")
    _, assistant, result = brain.asked[1].messages
    assert assistant == calling(("c1", "echo", {"text": "hi"}))
    assert (result.role, result.tool_call_id, result.name) == (MessageRole.TOOL, "c1", "echo")
    assert json.loads(result.content) == {"text": "hi"}
    assert brain.asked[1].known == {"session_id": "s1", "lang": "de-DE", "units": "metric"}


def test_an_answer_without_calls_passes_unchanged() -> None:
    made, brain = engine("  It is\n*four*. \n")
    assert made.continue_chat([user("2+2?")]).content == "  It is\n*four*. \n"
    assert len(brain.asked) == 1


def test_the_brain_is_given_the_toolboxes_themselves() -> None:
    made, brain = engine("hello")
    made.continue_chat([user("hello")])
    assert brain.asked[0].tools == made.toolboxes
    assert brain.asked[0].tools is not made.toolboxes


def test_calls_are_answered_in_their_order_after_the_message_that_asked() -> None:
    made, brain = engine(calling(("a", "echo", {"text": "1"}), ("b", "boom", {}), ("c", "echo", {"text": "3"})), "done")
    made.continue_chat([user("go")])
    roles = [message.role.value for message in brain.asked[1].messages]
    assert roles == ["user", "assistant", "tool", "tool", "tool"]
    assert [message.tool_call_id for message in brain.asked[1].messages[2:]] == ["a", "b", "c"]


def test_at_the_limit_the_brain_is_asked_once_more_without_tools() -> None:
    made, brain = engine(
        calling(("a", "echo", {"text": "1"})),
        calling(("b", "echo", {"text": "2"})),
        "enough",
        config={"max_iterations": 2},
    )
    assert made.continue_chat([user("go")]).content == "enough"
    assert [asked.tools is None for asked in brain.asked] == [False, False, True]


def test_the_last_question_is_one_without_tools_where_there_are_no_tools_too() -> None:
    made, brain = engine(calling(("a", "nope", {})), "enough", config={"max_iterations": 1}, boxes=[])
    assert made.continue_chat([user("go")]).content == "enough"
    assert [asked.tools for asked in brain.asked] == [[], None]


def test_no_iterations_means_the_last_question_alone() -> None:
    made, brain = engine(
        AgentMessage(MessageRole.ASSISTANT, "text", calling(("a", "echo", {})).tool_calls), config={"max_iterations": 0}
    )
    assert made.continue_chat([user("go")]) == AgentMessage(MessageRole.ASSISTANT, "text")
    assert [asked.tools for asked in brain.asked] == [None]


@pytest.mark.parametrize("value", [-1, "abc", None, 1.5, True])
def test_a_number_of_iterations_that_is_none_is_refused_when_the_engine_is_built(value: object) -> None:
    with pytest.raises(ValueError, match="max_iterations"):
        NativeToolCallEngine({"max_iterations": value})


def test_an_engine_without_configuration_says_that_it_has_no_brain() -> None:
    for made in (NativeToolCallEngine(), NativeToolCallEngine({}), NativeToolCallEngine(config={"enabled": True})):
        assert made.supports_tools is False
        assert made.max_iterations == 10
        assert made.continue_chat([user("hi")]) == AgentMessage(MessageRole.ASSISTANT, "Error: no brain configured.")


def test_a_brain_that_is_not_installed_is_an_error_that_names_those_that_are() -> None:
    made = NativeToolCallEngine({"brain": "ovos-chat-openai-plugn", "ovos-chat-openai-plugn": {}})
    with pytest.raises(NotLoadable, match="did you mean 'ovos-chat-openai-plugin'"):
        made.continue_chat([user("hi")])


def test_what_the_brain_raises_propagates_so_that_the_next_handler_is_asked() -> None:
    made, _ = engine(calling(("a", "echo", {"text": "1"})), RuntimeError("out of order"))
    with pytest.raises(RuntimeError, match="out of order"):
        made.continue_chat([user("go")])


def test_the_list_of_the_caller_is_not_changed_and_each_call_of_the_brain_has_a_list_of_its_own() -> None:
    def grows(asked: Any) -> AgentMessage:
        asked.messages.insert(0, AgentMessage(MessageRole.SYSTEM, "mine"))
        return calling((f"c{len(asked.messages)}", "echo", {"text": "1"}))

    class Mutating(ScriptedBrain):
        def continue_chat(self, messages: Any, *args: Any, **known: Any) -> Any:
            messages.insert(0, AgentMessage(MessageRole.SYSTEM, "mine"))
            return super().continue_chat(messages, *args, **known)

    made = NativeToolCallEngine()
    brain = Mutating([calling(("a", "echo", {"text": "1"})), calling(("b", "echo", {"text": "2"})), "done"])
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()])
    given = [user("go")]
    made.continue_chat(given)
    assert given == [user("go")]
    assert [sum(m.content == "mine" for m in asked.messages) for asked in brain.asked] == [1, 1, 1]


def test_messages_with_pictures_reach_the_brain_as_they_were() -> None:
    picture = MultimodalAgentMessage(MessageRole.USER, "what is this?", image_content=["iVBORw0KGgo="])
    made, brain = engine("a cat")
    made.continue_chat([picture])
    assert brain.asked[0].messages == [picture]


# --- points to override ----------------------------------------------------------------


def test_a_subclass_that_runs_the_calls_is_asked_about_every_name() -> None:
    class Mine(NativeToolCallEngine):
        def _call_tool(self, tool_name: str, args: dict[str, Any]) -> str:
            return f"mine: {tool_name} {args}" if tool_name != "boom" else super()._call_tool(tool_name, args)

    made = Mine()
    brain = ScriptedBrain([calling(("a", "echo", {"text": "1"}), ("b", "unheard_of", {}), ("c", "boom", {})), "done"])
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()])
    made.continue_chat([user("go")])
    assert [message.content for message in brain.asked[1].messages[2:]] == [
        "mine: echo {'text': '1'}",
        "mine: unheard_of {}",
        "Error: tool 'boom' failed: KeyError: 'the cause'",
    ]


def test_a_subclass_that_describes_the_tools_is_heard() -> None:
    class Mine(NativeToolCallEngine):
        def _collect_tool_schemas(self) -> list[dict[str, Any]]:
            return [dict(schema, description="mine") for schema in super()._collect_tool_schemas()[:1]]

    made = Mine()
    brain = ScriptedBrain([calling(("a", "echo", {"text": "1"}), ("b", "boom", {})), "done"])
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()])
    made.continue_chat([user("go")])
    assert [tool["function"]["description"] for tool in brain.asked[0].tools] == ["mine"]
    assert [message.content for message in brain.asked[1].messages[2:]] == [
        '{"text":"1"}',
        "Error: tool 'boom' not found. Available tools: echo.",
    ]


def test_calling_a_tool_directly_gives_text() -> None:
    made, _ = engine()
    assert made._call_tool("echo", {"text": "a", "times": 2}) == '{"text":"aa"}'
    assert made._call_tool("echo", {}).startswith("Error: tool 'echo' was not run, its arguments are invalid: text")
    assert made._call_tool("nope", {}).startswith("Error: tool 'nope' not found. Available tools: echo, boom")


# --- what models and tools get wrong ---------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"text": "a"}', '{"text":"a"}'),
        ('{"text": "a",}', '{"text":"a"}'),
        ('"{\\"text\\": \\"a\\"}"', '{"text":"a"}'),
        ({"text": "a", "unknown": 1}, '{"text":"a"}'),
        ({"text": "a", "times": "2"}, '{"text":"aa"}'),
    ],
)
def test_arguments_in_any_form_are_read(arguments: Any, expected: str) -> None:
    made, brain = engine(calling(("a", "echo", arguments)), "done")
    made.continue_chat([user("go")])
    assert observation(brain) == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"text": "a', "arguments must be valid JSON"),
        (["a"], "arguments must be a JSON object"),
        ({"text": float("nan")}, "arguments"),
        ({}, "text: "),
        (None, "text: "),
        ({"text": "a", "times": "many"}, "times: "),
    ],
)
def test_arguments_that_can_not_be_read_run_nothing_and_name_what_to_mend(arguments: Any, told: str) -> None:
    box = EchoBox()
    made, brain = engine(calling(("a", "echo", arguments)), "done", boxes=[box])
    made.continue_chat([user("go")])
    assert observation(brain).startswith("Error: tool 'echo' was not run, its arguments are invalid: ")
    assert told in observation(brain)
    assert box.ran == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("boom", "Error: tool 'boom' failed: KeyError: 'the cause'"),
        ("leave", "Error: tool 'leave' failed: SystemExit: 3"),
        ("nothing", "ok"),
        ("plain", "a plain text"),
    ],
)
def test_whatever_a_tool_does_is_told(name: str, told: str) -> None:
    made, brain = engine(calling(("a", name, None)), "done")
    assert made.continue_chat([user("go")]).content == "done"
    assert observation(brain) == told


def test_a_result_of_five_megabytes_is_cut_and_says_so() -> None:
    made, brain = engine(calling(("a", "huge", {})), "done")
    made.continue_chat([user("go")])
    assert len(observation(brain)) <= 16 * 1024
    assert "cut" in observation(brain)


def test_a_tool_that_takes_too_long_is_left_behind() -> None:
    box = EchoBox()
    made, brain = engine(calling(("a", "block", {})), "done", boxes=[box], config={"tool_timeout": 0.05})
    try:
        assert made.continue_chat([user("go")]).content == "done"
    finally:
        box.release.set()
    assert observation(brain).startswith("Error: tool 'block'")


def test_names_are_matched_where_they_have_one_meaning_and_unknown_ones_start_nothing() -> None:
    made, brain = engine(
        calling(("a", "Echo", {"text": "1"}), ("b", "functions.echo", {"text": "2"}), ("c", "nope", {})), "done"
    )
    before = EchoBox.discovered
    made.continue_chat([user("go")])
    results = [message.content for message in brain.asked[1].messages[2:]]
    assert results[:2] == ['{"text":"1"}', '{"text":"2"}']
    assert results[2].startswith("Error: tool 'nope' not found. Available tools: echo, boom")
    assert EchoBox.discovered == before


@pytest.mark.parametrize("ids", [("x", "x"), (None, None), ("", "x"), (7, 7)])
def test_each_call_gets_an_id_of_its_own(ids: tuple[Any, Any]) -> None:
    made, brain = engine(calling((ids[0], "echo", {"text": "1"}), (ids[1], "echo", {"text": "2"})), "done")
    made.continue_chat([user("go")])
    _, assistant, first, second = brain.asked[1].messages
    given = [call.id for call in assistant.tool_calls]
    assert len(set(given)) == 2
    assert all(isinstance(each, str) and each for each in given)
    assert [first.tool_call_id, second.tool_call_id] == given


def test_calls_as_dictionaries_and_calls_written_into_the_text_are_read() -> None:
    made, brain = engine(
        AgentMessage(MessageRole.ASSISTANT, "", tool_calls=[{"id": "a", "name": "echo", "arguments": {"text": "1"}}]),
        '<tool_call>{"name": "echo", "arguments": {"text": "2"}}</tool_call>',
        "done",
    )
    assert made.continue_chat([user("go")]).content == "done"
    assert observation(brain, 1) == '{"text":"1"}'
    assert observation(brain, 2) == '{"text":"2"}'


@pytest.mark.parametrize("boxes", [[], None])
def test_a_call_in_the_text_that_nothing_can_run_is_never_spoken(boxes: Any) -> None:
    leaked = '<tool_call>{"name": "nope", "arguments": {}}</tool_call>'
    made, _ = engine(*[leaked] * 4, boxes=boxes)
    said: list[str] = []
    with pytest.raises(ToolLoopMalformedResponseError):
        said.extend(made.stream_sentences([user("go")]))
    assert said == []
    with pytest.raises(ToolLoopMalformedResponseError) as caught:
        made.continue_chat([user("go")])
    assert caught.value.rejected_response is not None
    assert caught.value.rejected_response.reasoning == leaked


def test_the_same_call_again_and_again_ends_in_an_answer_made_of_its_result() -> None:
    again = [calling((f"c{number}", "echo", {"text": "the sum is 4"})) for number in range(20)]
    made, brain = engine(*again)
    answer = made.continue_chat([user("go")], lang="de-DE")
    assert answer.content == "Das habe ich gefunden: the sum is 4."
    assert len(brain.asked) < 8


def test_a_forced_answer_without_text_is_made_of_the_results() -> None:
    made, _ = engine(
        calling(("a", "echo", {"text": "391"})), calling(("b", "echo", {"text": "1"})), config={"max_iterations": 1}
    )
    assert made.continue_chat([user("go")]).content == "This is what I found: 391."


def test_no_text_and_no_calls_is_asked_about_once_more_and_then_an_error() -> None:
    made, brain = engine("", "here")
    assert made.continue_chat([user("go")]).content == "here"
    made, brain = engine(AgentMessage(MessageRole.ASSISTANT, None), "")
    with pytest.raises(ToolLoopEmptyResponseError):
        made.continue_chat([user("go")])
    assert len(brain.asked) == 2


@pytest.mark.parametrize("reply", [None, 7, {"content": 1}])
def test_a_brain_that_returns_no_message_is_named(reply: Any) -> None:
    made, _ = engine(reply)
    with pytest.raises(ToolLoopModelError, match="ScriptedBrain"):
        made.continue_chat([user("go")])


def test_a_history_with_open_calls_is_mended() -> None:
    made, brain = engine("done")
    made.continue_chat([user("go"), calling(("a", "echo", {"text": "1"})), user("and?")])
    assert [message.role.value for message in brain.asked[0].messages] == ["user", "assistant", "tool", "user"]


# --- brains, toolboxes and threads -----------------------------------------------------


def test_many_threads_that_ask_first_share_one_brain(monkeypatch: pytest.MonkeyPatch) -> None:
    made_brains: list[Any] = []

    class Slow(NativeToolCallEngine):
        def _load_brain(self) -> Any:
            made_brains.append(ScriptedBrain(["hello"] * 100))
            return made_brains[-1]

    made = Slow()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda number: made.continue_chat([user("hi")], f"s{number}").content, range(64)))
    assert answers == ["hello"] * 64
    assert len(made_brains) == 1


def test_toolboxes_that_want_the_brain_are_given_it_in_either_order() -> None:
    class Wants(EchoBox):
        brain: Any = None

        def set_brain(self, brain: Any) -> None:
            self.brain = brain

    first, second = Wants(), Wants()
    made, brain = engine(boxes=[first])
    made.load_toolboxes([second])
    assert first.brain is brain
    assert second.brain is brain


def test_of_two_tools_of_a_name_the_first_is_offered_once() -> None:
    first, second = EchoBox(), EchoBox()
    made, brain = engine(calling(("a", "echo", {"text": "1"})), "done", boxes=[first, second])
    made.continue_chat([user("go")])
    names = [tool["function"]["name"] for tool in brain.asked[0].tools]
    assert names.count("echo") == 1
    assert (first.ran, second.ran) == (["echo"], [])


def test_schemas_are_made_once_for_a_toolbox(monkeypatch: pytest.MonkeyPatch) -> None:
    from .boxes import EchoArguments

    asked = []
    original = EchoArguments.model_json_schema.__func__

    def counted(cls: Any, *args: Any, **known: Any) -> Any:
        asked.append(cls)
        return original(cls, *args, **known)

    monkeypatch.setattr(EchoArguments, "model_json_schema", classmethod(counted))
    calls = [calling((f"c{number}", "echo", {"text": str(number)})) for number in range(5)]
    made, _ = engine(*calls, "done")
    made.continue_chat([user("go")])
    made.set_brain(ScriptedBrain(["again"]))
    made.continue_chat([user("go")])
    assert len(asked) <= 2
