"""What is heard of a turn, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

from toolturn.messages import ChatResponse
from toolturn.ovos import NativeToolCallEngine, ReActLoopEngine, ToolturnBrain
from toolturn.testing import calls
from toolturn.tools import ToolSet, tool

from .boxes import EchoBox
from .brains import ScriptedBrain, WritingBrain, calling, user
from .models import Gate, StepModel


def native(model: Any, config: Any = None, boxes: Any = None) -> NativeToolCallEngine:
    made = NativeToolCallEngine(config)
    made.set_brain(ToolturnBrain(model=model))
    made.load_toolboxes([EchoBox()] if boxes is None else boxes)
    return made


def foreign(*replies: Any, config: Any = None) -> NativeToolCallEngine:
    made = NativeToolCallEngine(config)
    made.set_brain(ScriptedBrain(replies))
    made.load_toolboxes([EchoBox()])
    return made


def test_the_first_sentence_is_heard_while_the_rest_is_being_made() -> None:
    gate = Gate()
    heard = native(StepModel(["It is four. ", "A", gate, "nd that is all."])).stream_sentences([user("2+2?")])
    assert next(heard) == "It is four. "
    gate.open()
    assert list(heard) == ["And that is all."]


def test_tokens_are_handed_on_as_they_are_made_and_keep_their_blanks() -> None:
    gate = Gate()
    tokens = native(StepModel(["17", " times", gate, " 23\nis 391."])).stream_tokens([user("?")])
    assert [next(tokens), next(tokens)] == ["17", " times"]
    gate.open()
    assert list(tokens) == [" 23\nis 391."]


def test_what_is_said_before_calls_is_spoken_before_they_run_or_held_back() -> None:
    first = calls(("echo", '{"text": "4"}'), content="Let me see.")
    spoken = native(StepModel(["Let me see.", first], ["It is four."])).stream_sentences([user("?")])
    assert [item.strip() for item in spoken if item] == ["Let me see.", "It is four."]
    held = native(StepModel(["Let me see.", first], ["It is four."]), {"preamble": "hold"})
    assert list(held.stream_sentences([user("?")])) == ["It is four."]
    tokens = native(StepModel(["Let me see.", first], ["It is", " four."])).stream_tokens([user("?")])
    assert "".join(tokens) == "Let me see. It is four."


def test_the_forced_answer_streams_and_the_tools_stay_in_the_request() -> None:
    gate = Gate()
    model = StepModel([calls(("echo", '{"text": "4"}'))], ["Four. ", "O", gate, "f course."])
    heard = native(model, {"max_iterations": 1, "preamble": "hold"}).stream_sentences([user("?")])
    assert next(heard) == "Four. "
    gate.open()
    assert list(heard) == ["Of course."]
    _, tools, settings = model.requests[1]
    assert tools
    assert settings is not None
    assert settings.tool_choice == "none"


def test_a_brain_that_only_writes_streams_its_answer_by_the_text_protocol() -> None:
    gate = Gate()
    action = ['Thought: I need it.\nAction: echo\nAction Input: {"text": "4"}\n']
    model = StepModel(action, ["Thought: I know.\nFinal Answer: Four. ", "T", gate, "hat is it."], tools=False)
    heard = (item for item in native(model).stream_sentences([user("?")]) if item)
    assert next(heard) == "Four. "
    gate.open()
    assert list(heard) == ["That is it."]


class StreamingBrain(WritingBrain):
    """A brain of others whose text really streams."""

    gate = Gate()

    def stream_tokens(self, messages: Any, session_id: str = "", lang: Any = None, units: Any = None) -> Iterator[str]:
        yield from ("Final Answer: ", "Four. ", "T")
        self.gate.reached.wait(10)
        yield "hat is it."


def test_a_brain_of_others_that_streams_text_is_heard_as_it_writes() -> None:
    made = ReActLoopEngine()
    brain = StreamingBrain()
    made.set_brain(brain)
    made.load_toolboxes([EchoBox()])
    heard = made.stream_sentences([user("?")])
    assert next(heard) == "Four. "
    brain.gate.reached.set()
    assert list(heard) == ["That is it."]


def test_a_finished_answer_of_a_brain_of_others_is_given_sentence_by_sentence() -> None:
    heard = foreign(calling(("a", "echo", {"text": "1"})), "One is 1.5. Two is 2.\nThree!").stream_sentences(
        [user("?")]
    )
    assert [item for item in heard if item] == ["One is 1.5. ", "Two is 2.\n", "Three!"]


def test_an_error_before_anything_was_said_leaves_the_answer_to_the_next_handler() -> None:
    for items in (foreign(RuntimeError("no")).stream_sentences, foreign(RuntimeError("no")).stream_tokens):
        with pytest.raises(RuntimeError, match="no"):
            next(items([user("?")]))


def test_at_a_limit_without_an_answer_the_results_are_spoken() -> None:
    made = foreign(calling(("a", "echo", {"text": "391"}), content="Let me see."), "", config={"max_iterations": 1})
    assert [each.strip() for each in made.stream_sentences([user("?")], lang="fr-FR") if each] == [
        "Let me see.",
        "Voici ce que j'ai trouvé : 391.",
    ]
    made = foreign(calling(("a", "echo", {"text": "391"})), "", config={"max_iterations": 1})
    assert "".join(made.stream_tokens([user("?")])) == "This is what I found: 391."


def test_closing_the_sentences_ends_the_turn() -> None:
    model = StepModel(["One. ", "Two", Gate()])
    made = native(model)
    heard = made.stream_sentences([user("?")])
    assert next(heard) == "One. "
    heard.close()  # type: ignore[attr-defined]
    assert model.closed.wait(10)
    assert made.stop() is False


def test_while_a_tool_runs_after_a_first_sentence_there_is_a_beat_at_which_to_stop() -> None:
    box = EchoBox()
    first = calls(("block", "{}"), content="One moment.")
    made = native(StepModel(["One moment.", first], ["Done."]), boxes=[box])
    heard = made.stream_sentences([user("?")])
    assert next(heard) == "One moment."
    assert next(heard) == ""
    box.release.set()
    assert [item.strip() for item in heard if item] == ["Done."]


def test_without_a_brain_the_contract_s_sentence_is_said() -> None:
    made = NativeToolCallEngine({})
    assert list(made.stream_sentences([user("?")])) == ["Error: no brain configured."]
    assert list(made.stream_tokens([user("?")])) == ["Error: no brain configured."]


def test_an_engine_can_be_asked_from_within_a_tool_of_another_turn() -> None:
    from toolturn import run_tool_loop_sync
    from toolturn.messages import ChatMessage
    from toolturn.testing import ScriptedModel

    inner = native(StepModel(["One. Two."], ["Three."]))

    @tool
    async def ask() -> str:
        """Asks the other engine, on the very loop that it would run on."""
        return "".join([*inner.stream_sentences([user("?")]), inner.continue_chat([user("?")]).content])

    model = ScriptedModel([calls(("ask", "{}")), "done"])
    result = run_tool_loop_sync([ChatMessage("user", "go")], ToolSet([ask]), model)
    assert result.tool_calls[0].message.content == "One. Two.Three."


def test_a_reply_that_was_cut_off_is_said_as_far_as_it_goes() -> None:
    cut = ChatResponse("It is fo", finish_reason="length")
    made = native(StepModel(["It is fo", cut]))
    assert made.continue_chat([user("?")]) == AgentMessage(MessageRole.ASSISTANT, "It is fo…")
    made = native(StepModel(["It is fo", cut]))
    assert "".join(made.stream_sentences([user("?")])) == "It is fo…"


def test_a_stream_that_was_never_closed_may_be_collected_on_the_loop_itself() -> None:
    from toolturn.background import background

    heard = native(StepModel(["One. ", "Two", Gate()])).stream_sentences([user("?")])
    assert next(heard) == "One. "
    kept = [heard]
    del heard

    async def collect() -> str:
        kept.clear()
        return "collected"

    assert background.run(collect()) == "collected"
