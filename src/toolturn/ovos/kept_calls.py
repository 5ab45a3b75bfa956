"""The tool calls of earlier turns: a persona's memory keeps what was said, and no call of it."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from ..messages import ChatMessage, text_of

_SESSIONS = 256


class KeptCalls:
    """The calls and results of the last turns of each session, put back where the answers of those turns stand."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, deque[tuple[str, tuple[ChatMessage, ...]]]] = OrderedDict()

    def keep(self, session: str, answer: str, calls: Sequence[ChatMessage], turns: int) -> None:
        """Keep the calls of a turn.

        Args:
            session: Whose turn it was.
            answer: What it ended with.
            calls: Its messages between the question and the answer.
            turns: How many turns of a session are kept; 0 for none.
        """
        said = _plain(answer)
        if not turns or not calls or not said:
            return
        with self._lock:
            kept = self._sessions.pop(session, None)
            if kept is None or kept.maxlen != turns:
                kept = deque(kept or (), turns)
            kept.append((said, tuple(calls)))
            self._sessions[session] = kept
            while len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)

    def put_back(self, session: str, history: list[ChatMessage]) -> list[ChatMessage]:
        """Return a conversation with the kept calls before the answers they led to.

        Args:
            session: Whose conversation it is.
            history: The conversation as the persona's memory gives it.
        """
        with self._lock:
            left = list(self._sessions.get(session, ()))
        made: list[ChatMessage] = []
        for message in reversed(history):
            made.append(message)
            if not left or message.role != "assistant" or message.tool_calls:
                continue
            said = _plain(text_of(message.content))
            # what was spoken before the calls stands in the memory too
            place = next((i for i in range(len(left) - 1, -1, -1) if said.endswith(left[i][0])), None)
            if place is not None:
                made.extend(reversed(left[place][1]))
                del left[place:]
        return made[::-1]


def _plain(text: str) -> str:
    return " ".join(text.split())
