"""Server-sent events, as they arrive in pieces."""

from __future__ import annotations

import re
from typing import NamedTuple

_END_OF_LINE = re.compile(rb"\r\n|\n|\r")


class ServerEvent(NamedTuple):
    """One event of a stream.

    Args:
        event: Its type; ``message`` where the stream names none.
        data: Its data lines, joined by line feeds.
    """

    event: str
    data: str


def _usual(piece: bytes) -> list[ServerEvent] | None:
    """The events of a piece that holds nothing but whole ones of one data line each, as most pieces do."""
    if not (piece.startswith(b"data: ") and piece.endswith(b"\n\n")) or b"\r" in piece:
        return None
    events = []
    for data in piece[6:-2].split(b"\n\ndata: "):
        if not data or b"\n" in data:
            return None
        events.append(ServerEvent("message", data.decode("utf-8", "replace")))
    return events


class EventDecoder:
    """Takes the bytes of an event stream, cut anywhere, and gives the events that are complete.

    Comments, ids, retry times and events without data are passed over, as the rules of the format say
    (https://html.spec.whatwg.org/multipage/server-sent-events.html).
    """

    __slots__ = ("_begun", "_data", "_event", "_rest")

    def __init__(self) -> None:
        self._begun = False
        self._rest: list[bytes] = []
        self._event = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Take a piece and return the events that it completes.

        Args:
            piece: Bytes as they came; an empty piece gives nothing.
        """
        if not piece:
            return []
        if not (self._rest or self._data or self._event) and (events := _usual(piece)) is not None:
            self._begun = True
            return events
        lines = _END_OF_LINE.split(piece)
        if self._rest and self._rest[-1] == b"\r":
            # a line end may be cut between its two characters: then the line feed belongs to what came before
            del self._rest[-1]
            if not piece.startswith(b"\n"):
                lines.insert(0, b"")
        if len(lines) == 1:  # joined only when complete: a long line may come in thousands of pieces
            self._rest.append(piece)
            return []
        if self._rest:
            lines[0] = b"".join((*self._rest, lines[0]))
        last = lines.pop()
        self._rest = [last] if last else []
        if piece.endswith(b"\r"):
            self._rest = [lines.pop(), b"\r"]
        return self._take(lines)

    def close(self) -> list[ServerEvent]:
        """Return what the end of the stream completes: servers forget the last blank line."""
        rest = b"".join(self._rest).rstrip(b"\r")
        self._rest = []
        return self._take([rest, b""])

    def _take(self, lines: list[bytes]) -> list[ServerEvent]:
        events = []
        for raw in lines:
            if not self._begun:
                self._begun = True
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
                    if data:
                        events.append(ServerEvent(self._event or "message", data))
                    self._data = []
                self._event = ""
            elif raw.startswith(b"data:"):
                self._data.append(raw[6 if raw[5:6] == b" " else 5 :].decode("utf-8", "replace"))
            elif raw.startswith(b"event:"):
                self._event = raw[6:].decode("utf-8", "replace").strip()
            elif raw == b"data":
                self._data.append("")
        return events
