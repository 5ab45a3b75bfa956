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

from .labtools import CLEANUP
from .replies import Reply, says

Mode: TypeAlias = Literal["plain", "stream"]

CLOSED_WITHIN: Final = 1.0
"""Seconds after a cancel in which the server must see that nobody waits for its reply any more."""


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
        if self.name == CLEANUP:
            return "its cleanup"
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
        bare: Whether any exception will do, since the row is about something else.
    """

    kind: Kind | None = None
    says: str = ""
    transcript: bool = False
    bare: bool = False

    def __str__(self) -> str:
        if self.bare:
            return "fails with any exception"
        words = f"fails with a typed error{f' of the kind {self.kind}' if self.kind else ''}"
        if self.says:
            words += f" that says {self.says!r}"
        return words + (" and the transcript" if self.transcript else "")


@dataclass(frozen=True, slots=True)
class Waits:
    """The turn stops, and calls wait for a person's approval.

    Args:
        names: The tools that are called, in order.
    """

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"stops and waits for the approval of {' and '.join(self.names)}"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The turn ends because it was cancelled: with CancelledError, or a typed error where the library has one."""

    def __str__(self) -> str:
        return "ends as cancelled"


@dataclass(frozen=True, slots=True)
class Refused:
    """What was asked for is refused before anything happens, with any exception."""

    def __str__(self) -> str:
        return "refuses with an exception"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a turn may end.

    Args:
        ends: The exit.
        runs: What must have run, each exactly once; nothing else may have.
    """

    ends: Answer | Failure | Waits | Cancelled | Refused
    runs: tuple[Run, ...] = ()

    def __str__(self) -> str:
        return f"{' and '.join(map(str, self.runs)) or 'nothing'} ran, {self.ends}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decides on a call that waits.

    Args:
        approved: The call may run.
        reason: Why not, for the model.
    """

    approved: bool
    reason: str = ""

    def __str__(self) -> str:
        return "yes" if self.approved else f"no, {self.reason!r}"


@dataclass(frozen=True, slots=True)
class Act:
    """What follows a turn: the user says something more, or a person decides on the calls that wait.

    Args:
        replies: What is played, in order; the last one again and again.
        ways: How this act may end; what ran before does not count.
        decisions: On the calls that wait, by the names of their tools; without any the user says something more.
        fresh: Whether it happens in a new process, with nothing but what was saved.
        altered: What of the saved state is replaced by what before it comes back; any one character where both are
            empty.
        holds: What the first request must hold: what had happened before it.
        tells: What a message of the first request has to hold that answers a call.
        requests: Requests that may arrive at most.
    """

    replies: tuple[Reply, ...]
    ways: tuple[Way, ...]
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    fresh: bool = False
    altered: tuple[str, str] | None = None
    holds: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    requests: int = 12

    def __str__(self) -> str:
        if not self.decisions:
            words = "the user says something more"
        else:
            words = "it is decided: " + ", ".join(f"{name} {each}" for name, each in self.decisions.items())
        if self.altered:
            before, after = (repr(text) if text else "a character" for text in self.altered)
            words += f", while in what was saved {before} became {after if any(self.altered) else 'another'}"
        words += ": " + "; or ".join(map(str, self.ways))
        if self.holds:
            words += "; what had happened is told: " + " and ".join(map(repr, self.holds))
        if self.tells:
            words += "; the call is answered with " + " and ".join(map(repr, self.tells))
        return f"{words}; at most {self.requests} requests, each of them valid"


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
        needs: What the client must offer: one of the words of :mod:`toolturn.conformance.adapter`.
        max_iterations: Model calls the client is allowed.
        max_tool_calls: Tool calls the client is allowed.
        timeout: Seconds the client is given for each model call.
        forced: The reply to a request in which tools are not allowed.
        requests: Requests that may arrive at most.
        told: Whether a second request must hold more messages than the first.
        tells: What a message after the first request has to hold, where there is a second one.
        hides: What no request may hold.
        waits: Seconds between the first and the second request at least.
        limits: Further limits that the client is given, by the words of :mod:`toolturn.conformance.adapter`.
        approval: The tools whose calls have to be approved.
        cancel: When the turn is cancelled: ``reply`` (while a reply is awaited or under way), ``pause`` (when nothing
            was asked for a moment), or the name of a tool, as soon as it runs.
        within: Seconds in which control is back: after the cancel, where there is one, else after the start.
        choice_none: Whether the server takes tools together with the tool choice ``none``.
        keeps_tools: Whether a request in which tools are not allowed must hold them all the same; either where None.
        last_left: Tokens that the last request may allow the model at most.
        largest: Characters that a message may have at most.
        order: What must be told of the turn while it runs, in this order, beside anything else: ``call NAME``,
            ``result NAME``, ``answer``.
        spoken: What must come out of the stream of the answer, apart from blanks around it.
        acts: What follows.
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
    limits: Mapping[str, Any] = field(default_factory=dict)
    approval: tuple[str, ...] = ()
    cancel: str = ""
    within: float = 0.0
    choice_none: bool = True
    keeps_tools: bool | None = None
    last_left: int = 0
    largest: int = 0
    order: tuple[str, ...] = ()
    spoken: str | None = None
    acts: tuple[Act, ...] = ()

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
        if self.within:
            words += f"; control is back within {self.within:g} s"
        if self.cancel == "reply":
            words += f"; the connection is closed within {CLOSED_WITHIN:g} s"
        if self.keeps_tools is not None:
            words += f"; a request without choice {'holds' if self.keeps_tools else 'leaves out'} the tools"
        if self.last_left:
            words += f"; the last request allows {self.last_left} tokens at most"
        if self.largest:
            words += f"; no message has more than {self.largest} characters"
        if self.order:
            words += f"; told in this order: {', '.join(self.order)}"
        if self.spoken is not None:
            words += f"; the stream of the answer gives {self.spoken!r} and nothing else"
        words += f"; at most {self.requests} requests, each of them valid"
        return ". Then ".join([words, *map(str, self.acts)])


# --- short forms for the tables ---------------------------------------------------------


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

STILL: Final = "still here"
"""What scripts answer when the user says something more."""


def goes_on(*holds: str) -> Act:
    """Return the act in which the user says something more, and all is as if nothing had happened.

    Args:
        holds: What had happened, which the model must be told.
    """
    return Act((says(STILL),), (Way(Answer(STILL)),), holds=holds)
