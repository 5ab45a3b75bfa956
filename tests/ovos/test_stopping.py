"""Stop stops: by a call, by the message bus, by a newer turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from ovos_bus_client.message import Message
from ovos_bus_client.session import Session, SessionManager
from ovos_utils.fakebus import FakeBus

from toolturn.errors import ToolLoopCancelledError
from toolturn.ovos import NativeToolCallEngine, ToolturnBrain
from toolturn.testing import calls

from .boxes import EchoBox
from .brains import user
from .models import Gate, StepModel


@pytest.fixture(autouse=True)
def _no_bus() -> Iterator[None]:
    before = SessionManager.bus
    SessionManager.bus = None
    yield
    SessionManager.bus = before


class Asking(threading.Thread):
    """Asks an engine in a thread of its own."""

    def __init__(self, engine: NativeToolCallEngine, session: str) -> None:
        super().__init__(daemon=True)
        self._engine, self._session = engine, session
        self.answer: str | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._engine.continue_chat([user("?")], self._session).content
        except BaseException as exc:
            self.error = exc


def waiting(config: Any = None) -> tuple[NativeToolCallEngine, StepModel, list[Gate]]:
    gates = [Gate(), Gate()]
    model = StepModel([gates[0], "first"], [gates[1], "second"])
    made = NativeToolCallEngine(config)
    made.set_brain(ToolturnBrain(model=model))
    return made, model, gates


def stopped(asking: Asking) -> bool:
    asking.join(10)
    return isinstance(asking.error, ToolLoopCancelledError)


def test_a_session_is_stopped_and_the_others_go_on() -> None:
    made, _, gates = waiting()
    one = Asking(made, "one")
    assert gates[0].reached.wait(10)
    two = Asking(made, "two")
    assert gates[1].reached.wait(10)
    assert made.stop("nobody") is False
    assert made.stop("one") is True
    assert stopped(one)
    gates[1].open()
    two.join(10)
    assert two.answer == "second"
    assert made.stop() is False


def message(topic: str, session: str) -> Message:
    return Message(topic, context={"session": Session(session).serialize()})


@pytest.mark.parametrize("topic", ["mycroft.stop", "ovos.stop", "persona.openvoiceos.stop"])
def test_the_message_bus_of_the_sessions_stops_a_session(topic: str) -> None:
    bus = FakeBus()
    SessionManager.bus = bus
    made, _, gates = waiting()
    one = Asking(made, "one")
    assert gates[0].reached.wait(10)
    bus.emit(message(topic, "two"))
    assert one.is_alive()
    bus.emit(message(topic, "one"))
    assert stopped(one)


def test_a_turn_that_is_stopped_calls_no_further_tools() -> None:
    box, gate = EchoBox(), Gate()
    made = NativeToolCallEngine()
    made.set_brain(ToolturnBrain(model=StepModel([gate, calls(("echo", '{"text": "1"}'))])))
    made.load_toolboxes([box])
    asking = Asking(made, "s")
    assert gate.reached.wait(10)
    made.stop("s")
    gate.open()
    assert stopped(asking)
    assert box.ran == []


def test_a_stopped_stream_ends_without_a_word_that_another_handler_would_replace() -> None:
    made, _, gates = waiting()
    items: list[str] = []
    reading = threading.Thread(target=lambda: items.extend(made.stream_sentences([user("?")], "s")), daemon=True)
    reading.start()
    assert gates[0].reached.wait(10)
    made.stop("s")
    reading.join(10)
    assert items == [""]


def test_a_newer_turn_ends_the_older_one_of_its_session_only_where_that_is_wanted() -> None:
    made, _, gates = waiting({"one_turn_per_session": True})
    one = Asking(made, "s")
    assert gates[0].reached.wait(10)
    two = Asking(made, "s")
    assert stopped(one)
    gates[1].open()
    two.join(10)
    assert two.answer == "second"

    made, _, gates = waiting()
    one = Asking(made, "s")
    assert gates[0].reached.wait(10)
    two = Asking(made, "s")
    assert gates[1].reached.wait(10)
    for gate in gates:
        gate.open()
    one.join(10)
    two.join(10)
    assert (one.answer, two.answer) == ("first", "second")


def test_closing_an_engine_stops_its_turns_and_closes_what_it_has_made() -> None:
    made, _, gates = waiting()
    one = Asking(made, "s")
    assert gates[0].reached.wait(10)
    made.shutdown()
    assert stopped(one)
