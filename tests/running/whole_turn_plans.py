"""Everything that decides how a turn goes, and how hypothesis draws it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from toolturn import ChatResponse, Limits, ToolCall, Usage
from toolturn.codec import dumps
from toolturn.limits import OnLimit
from toolturn.turn import ToolErrors

GRACE = 1.0
"""Seconds that whatever is cancelled has to clean up."""

LONG = 1000.0
"""Seconds that something takes which hangs: longer than any deadline, time-out or grace."""

LARGEST = Usage(30, 20, cost=50 / 4)
"""The most that one reply of the model uses."""

Fault: TypeAlias = Literal["", "cut", "ends", "down", "own"]
"""What goes wrong when a reply is asked for the first time: the stream breaks off or ends early, the model is not
there, or a plain callback fails in its own way."""


@dataclass(frozen=True)
class Say:
    """One reply of the model.

    Args:
        text: What it says; a stream gives it in pieces.
        calls: The calls, with their ids.
        finish: The reason it gives.
        usage: What it says it used.
        delay: Seconds it takes; None where it does not even wait for the loop.
        fault: What goes wrong at the first try.
        cut: Pieces that come before that.
    """

    text: str = ""
    calls: tuple[Any, ...] = ()
    finish: Any = "stop"
    usage: Usage | None = field(default_factory=lambda: Usage(10, 5))
    delay: float | None = 0.0
    fault: Fault = ""
    cut: int = 0

    def response(self, most: int | None) -> ChatResponse:
        """The reply of an honest model that may write so many tokens.

        Args:
            most: Tokens of output at most.
        """
        usage = self.usage
        if usage is not None and most is not None and usage.output > most:
            return ChatResponse(self.text, None, None, "length", usage=Usage(usage.input, most))
        return ChatResponse(self.text, None, list(self.calls) or None, self.finish, usage=usage)


def wants(call_id: Any, name: Any, do: str = "ok", n: int = 0) -> ToolCall:
    """A call of a tool that is to behave in a certain way."""
    return ToolCall(call_id, name, dumps({"do": do, "n": n}))


ModelKind: TypeAlias = Literal["callback", "plain", "stream", "keeps tools"]
Cleanup: TypeAlias = Literal["at once", "slow", "too slow", "raises", "refuses"]
Asks: TypeAlias = Literal["nobody", "async", "blocking"]


@dataclass(frozen=True)
class Plan:
    """A whole turn.

    Args:
        replies: What the model says at its first, second, … iteration; when they are used up it says "finished".
        forced: What it says when only text will do.
        cleanup: What the model does when it is cancelled.
        approve: Who decides on calls that need approval.
        hooks: Whether hooks stand around each call, which now and then refuse or replace.
        places: Of the limiter that each call enters; None for none.
    """

    replies: tuple[Say, ...]
    forced: Say = Say("the last word")
    limits: Limits = Limits(iterations=6)  # noqa: RUF009
    on_limit: OnLimit = "raise"
    tool_errors: ToolErrors = "report"
    concurrency: int = 1
    siblings: Literal["cancel", "finish"] = "cancel"
    nudges: int = 0
    model: ModelKind = "stream"
    cleanup: Cleanup = "at once"
    approve: Asks = "async"
    hooks: bool = False
    places: int | None = None


# --- drawing ---------------------------------------------------------------------------

TOOL_NAMES = (
    *("once", "pay", "look", "send", "block", "block_once", "ask", "ask_if", "brief", "brief_block", "nested"),
    *("plain", "poll", "keyed"),
)
BEHAVIOURS = (
    *("ok", "ok", "ok", "ok", "wait", "wait", "hang", "fail", "decline", "long", "progress", "group"),
    *("slow", "too slow", "refuse", "messy", "give", "exit", "wrong"),
)

_names: st.SearchStrategy[Any] = st.sampled_from([*TOOL_NAMES * 3, "nope", None, 7])
_behaviours = st.sampled_from(BEHAVIOURS)
_usages = st.sampled_from([Usage(10, 5)] * 4 + [Usage(30, 20), Usage(10, 0), None])
_delays = st.sampled_from([0.0, 0.0, None, 1.0, 1.0, LONG])
_faults: st.SearchStrategy[Fault] = st.sampled_from([*[""] * 30, "cut", "cut", "ends", "down", "own"])
_finishes: st.SearchStrategy[Any] = st.sampled_from(["tool_calls", "stop", None, "odd", 7])
_broken = st.sampled_from(["length", "max_tokens", "content_filter", "refusal", "malformed_function_call"])
_texts = st.sampled_from(["", "Let me see.", " padded ", "über 😀"])


@st.composite
def _call(draw: st.DrawFn, number: int, place: int) -> ToolCall:
    call_id = f"c{number}_{place}"
    if draw(st.integers(0, 19)) == 0:
        arguments = draw(st.sampled_from(["", "[]", "{", '{"do":7}', '{"n":"x"}']))
        return ToolCall(call_id, draw(_names), arguments)
    return wants(call_id, draw(_names), draw(_behaviours), draw(st.integers(0, 3)))


@st.composite
def _says(draw: st.DrawFn, number: int) -> Say:
    usage, delay, fault = draw(_usages), draw(_delays), draw(_faults)
    cut = draw(st.integers(0, 3)) if fault else 0
    calls: tuple[Any, ...] = ()
    text, finish = draw(_texts), draw(_finishes)
    match draw(
        st.sampled_from(["calls"] * 18 + ["same", "ids"] * 3 + ["direct", "mixed", "cut", "announced", "empty"])
    ):
        case "calls":
            calls = tuple(draw(_call(number, place)) for place in range(draw(st.sampled_from([1, 2, 3, 4]))))
        case "same":
            calls = (wants(f"c{number}_0", draw(st.sampled_from(["once", "look", "poll", "keyed"]))),)
        case "direct":
            calls = (wants(f"c{number}_0", "direct", draw(_behaviours)),)
        case "mixed":
            calls = (wants(f"c{number}_0", "direct"), draw(_call(number, 1)))
        case "ids":
            odd: st.SearchStrategy[Any] = st.sampled_from(["c1_0", f"c{number}_0", "", "  ", None, 7])
            calls = (draw(_call(number, 0)), wants(draw(odd), "once"))
        case "cut":
            calls, finish = tuple(draw(st.lists(_call(number, 0), max_size=1))), draw(_broken)
        case "announced":
            finish = "tool_calls"
        case _:
            text, finish = draw(st.sampled_from(["", " ", "an answer"])), "stop"
    return Say(text, calls, finish, usage, delay, fault, cut)


@st.composite
def _same_again(draw: st.DrawFn) -> tuple[Say, ...]:
    """A model that does not get on, and may take its first id once more."""
    name = draw(st.sampled_from(["once", "look", "look", "poll", "keyed", "nope"]))
    do = draw(st.sampled_from(["ok", "ok", "fail"]))
    again = draw(st.sampled_from([6, 6, 1]))
    return tuple(Say("", (wants(f"c{number % again}_0", name, do),)) for number in range(5))


@st.composite
def _forced(draw: st.DrawFn) -> Say:
    text = draw(st.sampled_from(["the last word", "the last word", ""]))
    calls = draw(st.sampled_from([(), (), (wants("forced", "once"),)]))
    return Say(text, calls, draw(_finishes), draw(_usages), draw(_delays), draw(_faults), 1)


limits = st.builds(
    Limits,
    iterations=st.sampled_from([6, 6, 4, 3, 2, 1]),
    tool_calls=st.sampled_from([16, 16, 16, 6, 4, 1, 0]),
    deadline=st.sampled_from([None] * 6 + [2.5, 20.0]),
    result_bytes=st.sampled_from([None, 256, 65536]),
    tokens=st.sampled_from([None] * 9 + [20, 60, 150]),
    cost=st.sampled_from([None] * 6 + [5.0, 30.0]),
    per_tool=st.sampled_from([{}, {}, {}, {"once": 1}, {"look": 2, "ask": 1}, {"nested": 0}]),
    repeats=st.sampled_from([None, 2, 3]),
)


@st.composite
def plans(draw: st.DrawFn, /, **fixed: Any) -> Plan:
    """Turns of every kind.

    Args:
        fixed: Fields of the plan that are not to be drawn.
    """
    drawn: dict[str, Any] = {
        "replies": tuple(draw(_says(number)) for number in range(draw(st.sampled_from([3, 2, 4, 1, 5])))),
        "forced": draw(_forced()),
        "limits": draw(limits),
        "on_limit": draw(st.sampled_from(["raise", "answer"])),
        "tool_errors": draw(st.sampled_from(["report", "report", "raise"])),
        "concurrency": draw(st.sampled_from([1, 3, 2])),
        "siblings": draw(st.sampled_from(["cancel", "finish"])),
        "nudges": draw(st.sampled_from([0, 0, 1, 2])),
        "model": draw(st.sampled_from(["stream", "stream", "plain", "callback", "keeps tools"])),
        "cleanup": draw(st.sampled_from(["at once", "at once", "slow", "too slow", "raises", "refuses"])),
        "approve": draw(st.sampled_from(["async", "nobody", "blocking"])),
        "hooks": draw(st.booleans()),
        "places": draw(st.sampled_from([None, None, 1, 2])),
    }
    if draw(st.integers(0, 7)) == 0:
        drawn["replies"] = draw(_same_again())
        drawn["limits"] = replace(drawn["limits"], iterations=6, tool_calls=16)
    return Plan(**{**drawn, **fixed})


@dataclass(frozen=True)
class Stop:
    """How a run is interrupted.

    Args:
        kind: By nothing; by ``task.cancel``; by ``turn.cancel`` from the loop or from another thread; by a time-out
            around it; by leaving the stream, or an audience that raises, after some events.
        at: At which point where a task waits, or after which event; from 1.
        late: When what is waited for is there already.
        times: At how many points in a row.
    """

    kind: Literal["", "task", "turn", "thread", "timeout", "leave", "audience"] = ""
    at: int = 1
    late: bool = False
    times: int = 1


stops = st.builds(
    Stop,
    st.sampled_from(["task", "task", "", "turn", "thread", "timeout", "leave", "audience"]),
    st.one_of(st.integers(1, 12), st.integers(1, 12), st.integers(1, 60)),
    st.booleans(),
    st.sampled_from([1, 1, 1, 2]),
)
