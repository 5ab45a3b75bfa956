"""The vocabulary of the fault lab: what a server plays, and by what a client is judged.

A row is one :class:`Fault`: replies that are played in order (the last one again and again) and the ways in which a
turn may end. The criterion stands beside the script and is written before any result is looked at. It has to be fair
to every library: whatever a sound one could do is one of the ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

Mode: TypeAlias = Literal["plain", "stream"]


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


Reply: TypeAlias = Chat | Body | Events | Http | Raw | Both


# --- by what a client is judged ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """A tool that was run with these arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Two runs are the same when their keys are: ``1``, ``1.0`` and ``true`` are three different arguments."""
        return f"{self.name}({json.dumps(self.arguments, sort_keys=True)})"

    def __str__(self) -> str:
        given = ", ".join(f"{name}={_short(json.dumps(value))}" for name, value in self.arguments.items())
        return f"{self.name}({given})"


def _short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:28]}…"


@dataclass(frozen=True, slots=True)
class Answer:
    """The turn ends with an answer.

    Args:
        text: What it has to be, apart from blanks around it.
    """

    text: str

    def __str__(self) -> str:
        return f"answers {self.text!r}"


Kind: TypeAlias = Literal["authentication", "rate_limit", "context", "limit", "other"]


@dataclass(frozen=True, slots=True)
class Failure:
    """The turn ends with a typed error: an exception class of the library, or of the client it documents.

    Args:
        kind: What the caller must be able to tell from it; anything where None.
        says: What its text has to hold.
        transcript: Whether the results of the tools that ran must come with it.
    """

    kind: Kind | None = None
    says: str = ""
    transcript: bool = False

    def __str__(self) -> str:
        words = f"fails with a typed error{f' of the kind {self.kind}' if self.kind else ''}"
        if self.says:
            words += f" that says {self.says!r}"
        return words + (" and the transcript" if self.transcript else "")


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a turn may end.

    Args:
        ends: The exit.
        runs: What must have run, each exactly once; nothing else may have.
    """

    ends: Answer | Failure
    runs: tuple[Run, ...] = ()

    def __str__(self) -> str:
        return f"{' and '.join(map(str, self.runs)) or 'nothing'} ran, {self.ends}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the lab: a script with its criterion.

    That every request received is valid is a part of each criterion.

    Args:
        name: The row's name, which is the name of the model that plays it.
        says: What the model or the server does, in a sentence.
        replies: What is played, in order; the last one again and again.
        ways: How the turn may end.
        modes: Which requests it is played for.
        needs: What the client must offer: ``max_tool_calls``, ``timeout``.
        max_iterations: Model calls the client is allowed.
        max_tool_calls: Tool calls the client is allowed.
        timeout: Seconds the client is given for each model call.
        forced: The reply to a request in which tools are not allowed.
        requests: Requests that may arrive at most.
        told: Whether a second request must hold more messages than the first.
        tells: What a message after the first request has to hold, where there is a second one.
        hides: What no request may hold.
        waits: Seconds between the first and the second request at least.
    """

    name: str
    says: str
    replies: tuple[Reply, ...]
    ways: tuple[Way, ...]
    modes: tuple[Mode, ...] = ("plain", "stream")
    needs: tuple[str, ...] = ()
    max_iterations: int = 4
    max_tool_calls: int = 16
    timeout: float = 15.0
    forced: Reply | None = None
    requests: int = 12
    told: bool = False
    tells: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    waits: float = 0.0

    @property
    def criterion(self) -> str:
        """The criterion in words."""
        words = "; or ".join(map(str, self.ways))
        if self.told:
            words += "; a further request says what was wrong"
        if self.tells:
            words += "; the model is told " + " and ".join(map(repr, self.tells))
        if self.hides:
            words += "; no request holds " + " or ".join(map(repr, self.hides))
        if self.waits:
            words += f"; it is not asked again within {self.waits:g} s"
        return f"{words}; at most {self.requests} requests, each of them valid"


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


def ran(name: str, **arguments: Any) -> Run:
    """Return a run of a tool.

    Args:
        name: The tool's name.
        arguments: Its arguments, defaults included.
    """
    return Run(name, arguments)


AFTER: Final = "after all"
"""What scripts answer once a fault is over."""

FORCED: Final = "as far as I got"
"""What scripts answer to a request in which tools are not allowed."""


def either(*runs: Run, text: str = AFTER) -> tuple[Way, ...]:
    """The calls run as they were meant and the turn goes on, or nothing runs: told to the model, or a typed error.

    Args:
        runs: What was meant.
        text: The answer that follows.
    """
    return Way(Answer(text), runs), Way(Answer(text)), Way(Failure())


def runs_or_fails(*runs: Run, text: str = AFTER) -> tuple[Way, ...]:
    """The calls run as they were meant and the turn goes on, or a typed error ends it before anything runs.

    Args:
        runs: What was meant.
        text: The answer that follows.
    """
    return Way(Answer(text), runs), Way(Failure())


def must_run(*runs: Run, text: str = AFTER) -> tuple[Way, ...]:
    """The calls run and the turn goes on to its answer; nothing else will do.

    Args:
        runs: What was meant.
        text: The answer that follows.
    """
    return (Way(Answer(text), runs),)


REFUSED: Final[tuple[Way, ...]] = (Way(Answer(AFTER)), Way(Failure()))
"""Nothing runs: the model is asked once more and then answers, or a typed error ends the turn."""

FAILS: Final[tuple[Way, ...]] = (Way(Failure()),)
"""Nothing runs and a typed error ends the turn."""
