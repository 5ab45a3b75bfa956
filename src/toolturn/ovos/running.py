"""The turns that run in an engine, and what ends them: a call, a newer turn of the session, a message on the bus."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ovos_bus_client.session import SessionManager

from ..turn import Turn

STOPPED = "the turn was stopped"
REPLACED = "a newer turn of the session took its place"

TOPICS = ("ovos.stop", "mycroft.stop", "persona.openvoiceos.stop", "persona.openvoiceos:stop")
"""What says on the message bus that a session is to be silent: to all, or to the persona service."""


class RunningTurns:
    """The turns of the sessions of one engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, list[Turn]] = {}
        self._bus: weakref.ref[Any] | None = None

    @contextmanager
    def of(self, session: str, turn: Turn, *, alone: bool) -> Iterator[None]:
        """Count a turn as one of its session while it runs.

        Args:
            session: The session.
            turn: The turn.
            alone: End the others of the session.
        """
        with self._lock:
            others = self._turns.setdefault(session, [])
            older = list(others) if alone else []
            others.append(turn)
        for each in older:
            each.cancel(REPLACED)
        try:
            yield
        finally:
            with self._lock:
                others.remove(turn)
                if not others and self._turns.get(session) is others:
                    del self._turns[session]

    def stop(self, session: str | None = None) -> bool:
        """End the turns of a session, or of all.

        Args:
            session: The session; all where None.

        Returns:
            Whether there was one.
        """
        with self._lock:
            found = [turn for key, turns in self._turns.items() if session in (None, key) for turn in turns]
        for turn in found:
            turn.cancel(STOPPED)
        return bool(found)

    def listen(self, bus: Any = None) -> None:
        """Hear what is said on a message bus: this one, or the one that the program has connected its sessions to.

        Args:
            bus: The bus.
        """
        bus = getattr(SessionManager, "bus", None) if bus is None else bus
        if bus is None or (self._bus is not None and self._bus() is bus):
            return
        with self._lock:
            if self._bus is not None and self._bus() is bus:
                return
            self._bus = weakref.ref(bus)
        me = weakref.ref(self)  # the bus lives longer than an engine

        def heard(message: Any) -> None:
            running = me()
            if running is not None:
                running.stop(_session_of(message))

        for topic in TOPICS:
            bus.on(topic, heard)


def _session_of(message: Any) -> str:
    with suppress(Exception):
        return str(SessionManager.get(message).session_id)
    return "default"
