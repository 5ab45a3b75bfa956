"""What the server of the fault lab plays: replies as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias


class _Mark:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


AUTO: Final = _Mark("AUTO")
"""An id that is new in each reply, as good servers make them."""
ABSENT: Final = _Mark("ABSENT")
"""The key does not occur at all."""


# --- what the server plays --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a reply, as the model wrote it.

    Args:
        name: The tool's name.
        arguments: The arguments, usually as text.
        id: The id.
    """

    name: Any
    arguments: Any
    id: Any = AUTO


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat completion; the server makes a body of it, or a stream of chunks.

    Args:
        content: The text of the message.
        calls: Its tool calls.
        finish: The finish reason.
        fields: Further fields of the message, or of a delta of its own in a stream.
        split: Bytes per piece written to the connection; as it comes where 0.
    """

    content: Any = None
    calls: tuple[Call, ...] | None = None
    finish: Any = "stop"
    fields: Mapping[str, Any] = field(default_factory=dict)
    split: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """Any JSON value as a reply with status 200."""

    value: Any


@dataclass(frozen=True, slots=True)
class Events:
    """A stream of server-sent events.

    Args:
        items: Chunks (dictionaries), or bytes that are written as they are.
        done: Whether ``[DONE]`` ends it.
        ending: ``whole``, ``cut`` (the connection closes within the body), ``stall`` (nothing more comes), or
            ``closes`` (the connection closes after the body, unannounced).
        split: Bytes per piece written to the connection; an item at a time where 0.
    """

    items: tuple[Mapping[str, Any] | bytes, ...]
    done: bool = True
    ending: Literal["whole", "cut", "stall", "closes"] = "whole"
    split: int = 0


@dataclass(frozen=True, slots=True)
class Http:
    """A reply of HTTP.

    Args:
        status: The status.
        body: Bytes, or a JSON value.
        headers: Further headers; ``{date+2}`` in a value is the time two seconds from now.
        ending: As of :class:`Events`, or ``endless`` (the body is repeated for a hundred megabytes).
    """

    status: int
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Literal["whole", "cut", "stall", "closes", "endless"] = "whole"


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes instead of a reply of HTTP; then the connection closes."""

    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Both:
    """One reply for a plain request, another one for a streamed one."""

    plain: Chat | Body | Http | Raw
    stream: Chat | Events | Http | Raw


@dataclass(frozen=True, slots=True)
class Slow:
    """A reply that comes late.

    Args:
        reply: The reply.
        seconds: How long it takes.
    """

    reply: Chat | Body | Events | Http
    seconds: float


Reply: TypeAlias = Chat | Body | Events | Http | Raw | Both | Slow


# --- short forms for the tables ---------------------------------------------------------


def says(text: Any, finish: Any = "stop", **fields: Any) -> Chat:
    """Return a reply in text.

    Args:
        text: The text.
        finish: The finish reason.
        fields: Further fields of the message.
    """
    return Chat(text, None, finish, fields)


def asks(*calls: Call, text: Any = None, finish: Any = "tool_calls", **fields: Any) -> Chat:
    """Return a reply that asks for tools.

    Args:
        calls: The calls.
        text: Text beside them.
        finish: The finish reason.
        fields: Further fields of the message.
    """
    return Chat(text, calls, finish, fields)


def call(name: Any, arguments: Any, id: Any = AUTO) -> Call:
    """Return a call; a dictionary of arguments becomes JSON.

    Args:
        name: The tool's name.
        arguments: Its arguments.
        id: Its id.
    """
    return Call(name, json.dumps(arguments) if isinstance(arguments, dict) else arguments, id)
