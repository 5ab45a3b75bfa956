"""The persona service of OpenVoiceOS with our engine, asked over its message bus as a user would."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ovos_bus_client.message import Message
from ovos_bus_client.session import Session, SessionManager
from ovos_utils.fakebus import FakeBus

from .model_server import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ovos_persona import PersonaService

pytest.importorskip("httptools")

SUM = ("evaluate_expression", '{"expression": "17*23"}')


@pytest.fixture(autouse=True)
def _no_bus() -> Iterator[None]:
    before = SessionManager.bus
    yield
    SessionManager.bus = before


class Home:
    """A persona service on a bus of its own, and what it says."""

    def __init__(self, folder: Path, personas: dict[str, Any]) -> None:
        for name, persona in personas.items():
            (folder / f"{name}.json").write_text(json.dumps({"name": name, **persona}), encoding="utf-8")
        self.bus = FakeBus()
        self.said: list[str] = []
        self.other: list[str] = []
        self.spoke = threading.Event()
        self.bus.on("ovos.utterance.speak", self._hear)
        self.bus.on("mycroft.skill.handler.complete", lambda message: self.other.append("complete"))
        self.bus.on("mycroft.skill.handler.error", lambda message: self.other.append("error"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.service = PersonaService(
                bus=self.bus, config={"personas_path": str(folder), "ignore_plugin_personas": True}
            )

    def _hear(self, message: Any) -> None:
        self.said.append(message.data["utterance"].strip())
        self.spoke.set()

    def ask(self, persona: str, utterance: str, session: str = "s1") -> list[str]:
        self.said.clear()
        context = {"session": Session(session, lang="en-US").serialize()}
        data = {"persona": persona, "utterance": utterance, "lang": "en-US"}
        self.bus.emit(Message("persona:query", data, context))
        return list(self.said)


def engine(server: Any, brain: str = "toolturn-brain", **section: Any) -> dict[str, Any]:
    own = (
        {"model": f"{server.url}#m"} if brain == "toolturn-brain" else {"api_url": server.url, "key": "k", "model": "m"}
    )
    return {
        "handlers": ["toolturn-native-toolcall-loop", "ovos-solver-failure-plugin"],
        "toolturn-native-toolcall-loop": {
            "brain": brain,
            brain: own,
            "toolboxes": ["ovos-math-tools", "toolturn-units"],
            **section,
        },
    }


@pytest.mark.parametrize("brain", ["toolturn-brain", "ovos-chat-openai-plugin"])
def test_a_question_is_answered_with_their_tools_and_ours(tmp_path: Path, brain: str) -> None:
    pounds = ("convert_units", '{"value": 70, "from_unit": "kilogram", "to_unit": "pound"}')
    with serving(SUM, pounds, "It is 391. And 154 pounds.") as server:
        home = Home(tmp_path, {"Turn": engine(server, brain)})
        assert home.ask("Turn", "17*23, and 70 kg in pounds?") == ["It is 391.", "And 154 pounds."]
        names = [each["function"]["name"] for each in server.requests[0]["tools"]]
        assert {"evaluate_expression", "convert_units"} <= set(names)
        results = [
            json.loads(m["content"]) if m["content"][0] == "{" else m["content"]
            for m in server.requests[2]["messages"]
            if m["role"] == "tool"
        ]
        assert results[0]["result"] == 391.0
        assert "154" in str(results[1])
    assert "complete" in home.other
    assert "error" not in home.other


def test_the_first_sentence_is_spoken_while_the_model_still_writes(tmp_path: Path) -> None:
    go_on = threading.Event()
    with serving(["One moment of thought. ", "T", go_on, "hat is all."]) as server:
        home = Home(tmp_path, {"Turn": engine(server)})
        asking = threading.Thread(target=home.ask, args=("Turn", "?"), daemon=True)
        asking.start()
        assert home.spoke.wait(10)
        assert home.said == ["One moment of thought."]
        go_on.set()
        asking.join(10)
    assert home.said == ["One moment of thought.", "That is all."]


def test_the_memory_knows_the_exchange_in_the_next_question(tmp_path: Path) -> None:
    with serving(SUM, "It is 391.", "I said 391.") as server:
        home = Home(tmp_path, {"Turn": engine(server, keep_tool_calls=2)})
        home.ask("Turn", "17*23?")
        assert home.ask("Turn", "what did you say?") == ["I said 391."]
        roles = [message["role"] for message in server.requests[2]["messages"]]
    assert roles[-5:] == ["user", "assistant", "tool", "assistant", "user"]


def test_a_brain_that_fails_leaves_the_answer_to_the_next_handler(tmp_path: Path) -> None:
    with serving(400) as server:
        home = Home(tmp_path, {"Turn": engine(server)})
        said = home.ask("Turn", "17*23?")
    assert said
    assert not any("Error" in text for text in said)
    missing = {
        "handlers": ["toolturn-native-toolcall-loop", "ovos-solver-failure-plugin"],
        "toolturn-native-toolcall-loop": {"brain": "not-there", "not-there": {}},
    }
    (tmp_path / "two").mkdir()
    home = Home(tmp_path / "two", {"Missing": missing})
    said = home.ask("Missing", "hello?")
    assert said
    assert not any("Error" in text or "issue" in text for text in said)


def test_an_out_of_band_question_gets_its_answer_in_one_piece(tmp_path: Path) -> None:
    with serving(SUM, "It is 391. Truly.") as server:
        home = Home(tmp_path, {"Turn": engine(server)})
        answers: list[Any] = []
        home.bus.on("ovos.persona.answer", lambda message: answers.append(message.data["response"]))
        home.bus.emit(Message("ovos.persona.query", {"persona_id": "Turn", "utterance": "17*23?"}))
    assert answers == ["It is 391. Truly."]


def test_stop_ends_the_turn_and_nothing_more_is_said(tmp_path: Path) -> None:
    go_on = threading.Event()
    with serving(["One. ", "T", go_on, "wo."]) as server:
        home = Home(tmp_path, {"Turn": engine(server)})
        SessionManager.bus = home.bus
        asking = threading.Thread(target=home.ask, args=("Turn", "?"), daemon=True)
        asking.start()
        assert home.spoke.wait(10)
        home.bus.emit(Message("persona.openvoiceos.stop", context={"session": Session("s1").serialize()}))
        asking.join(10)
        assert not asking.is_alive()
        go_on.set()
    assert home.said == ["One."]


def test_stop_is_heard_at_the_next_beat_where_no_bus_is_known(tmp_path: Path) -> None:
    go_on = threading.Event()
    with serving(["One. ", "T", go_on, "wo."]) as server:
        home = Home(tmp_path, {"Turn": engine(server)})
        SessionManager.bus = None
        asking = threading.Thread(target=home.ask, args=("Turn", "?"), daemon=True)
        asking.start()
        assert home.spoke.wait(10)
        assert home.service.stop_session(Session("s1")) is True
        asking.join(10)
        assert not asking.is_alive()
        go_on.set()
    assert home.said == ["One."]


def test_a_brain_that_only_writes_uses_the_tools_too(tmp_path: Path) -> None:
    action = 'Thought: a sum.\nAction: evaluate_expression\nAction Input: {"expression": "17*23"}'
    with serving(action, "Thought: I know.\nFinal Answer: It is 391.") as server:
        persona = engine(server)
        persona["handlers"][0] = "toolturn-react-loop"
        persona["toolturn-react-loop"] = persona.pop("toolturn-native-toolcall-loop")
        home = Home(tmp_path, {"Writes": persona})
        assert home.ask("Writes", "17*23?") == ["It is 391."]
        assert all("tools" not in request for request in server.requests)


@pytest.mark.model
@pytest.mark.timeout(400)
def test_the_embedded_model_is_a_brain(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    from toolturn.local import WeightsError, local_model

    try:
        local_model()
    except WeightsError:
        pytest.skip("its weights are not here")
    persona = {
        "handlers": ["toolturn-native-toolcall-loop"],
        "toolturn-native-toolcall-loop": {
            "brain": "toolturn-brain",
            "toolturn-brain": {"model": "local"},
            "toolboxes": ["toolturn-math"],
        },
    }
    home = Home(tmp_path, {"Own": persona})
    assert "172.5" in " ".join(home.ask("Own", "How much is 15 * (7 + 4.5)?"))
