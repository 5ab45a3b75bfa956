"""What hypothesis draws from: replies good and broken, limits, policies, histories, and junk."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from toolturn import ChatMessage, ChatResponse, ImagePart, Limits, TextPart, ToolCall, Usage
from toolturn.limits import OnLimit
from toolturn.turn import ToolErrors

from .world import TOOL_NAMES

# --- text, JSON, junk ----------------------------------------------------------------

texts = st.one_of(
    st.sampled_from(["", " ", "\n", "hello", "  padded ", "über 😀", "a\x00b", "\ud800 half a pair"]),
    st.text(max_size=20),
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


class Broken:
    """An object that can not even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


class Word(str):
    """Text of a class of its own, as enumerations of names and roles are."""

    __slots__ = ()


def nested(depth: int) -> Any:
    value: Any = 7
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.binary(max_size=5),
    st.sampled_from([math.nan, math.inf, -0.0, Word("word"), {1, 2}, 1j, object()]),
    st.just(5000).map(lambda digits: 10**digits),
    st.builds(Broken),
    st.integers(60, 100).map(nested),
)

junk = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(texts | st.integers() | st.none() | st.tuples(st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)
"""Anything: what no JSON has a form for, and what can not even be shown."""


def _built(kind: Any, *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, *fields)


junk_parts = _built(TextPart, junk) | _built(ImagePart, junk)
junk_contents = texts | junk | st.lists(junk_parts | junk, max_size=3)
_ids = st.sampled_from(["a", "b", "a b", "", " "]) | junk
junk_calls = _built(ToolCall, _ids, st.sampled_from(["add", ""]) | junk, st.sampled_from(["{}"]) | junk)
_call_lists = st.none() | st.lists(junk_calls, max_size=3) | st.lists(junk_calls | junk, max_size=3) | junk
_roles = st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool", "developer"])
junk_messages = _built(ChatMessage, _roles | junk, junk_contents, _call_lists, st.none() | _ids)
"""Messages whose fields may hold anything."""

near_messages = _built(
    ChatMessage,
    _roles,
    texts | st.none(),
    st.none()
    | st.lists(st.builds(ToolCall, st.sampled_from(["a", "b", "c"]), st.just("add"), st.just("{}")), max_size=3),
    st.none() | st.sampled_from(["a", "b", "c"]),
)
"""Messages that are well formed one by one, seldom together."""

junk_responses = _built(ChatResponse, junk_contents, texts | junk, _call_lists, texts | junk, junk)


@st.composite
def transcripts(draw: st.DrawFn) -> tuple[ChatMessage, ...]:
    """Valid transcripts, in which the results of a batch may stand in any order."""
    made: list[ChatMessage] = []
    for number in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from(["system", "user", "assistant", "calls", "calls"])):
            case "calls":
                ids = [f"call_{number}_{place}" for place in range(draw(st.integers(1, 3)))]
                made.append(ChatMessage("assistant", draw(texts), [ToolCall(i, "add", "{}") for i in ids]))
                made += [ChatMessage("tool", draw(texts), None, i) for i in draw(st.permutations(ids))]
            case role:
                content: Any = draw(texts | st.just([TextPart("look"), ImagePart("https://example.org/a.png")]))
                made.append(ChatMessage(role, content))
    return tuple(made)


# --- a whole turn --------------------------------------------------------------------


@dataclass(frozen=True)
class Script:
    """Everything that decides how a turn goes.

    Args:
        replies: What the model says at its first, second, … iteration; when they are used up it says "finished".
        forced: What it says when only text will do.
        unreachable: The iterations in which the model can not be reached at the first try.
    """

    history: tuple[ChatMessage, ...]
    replies: tuple[ChatResponse, ...]
    forced: ChatResponse
    limits: Limits
    on_limit: OnLimit = "raise"
    tool_errors: ToolErrors = "raise"
    unreachable: frozenset[int] = field(default_factory=frozenset)


_histories = st.sampled_from(
    [
        (ChatMessage("user", "Hello"),),
        (ChatMessage("system", "Be brief."), ChatMessage("user", [TextPart("look"), ImagePart("data:,")])),
        (
            ChatMessage("user", "Add."),
            ChatMessage("assistant", "", [ToolCall("call_1_0", "add", "{}"), ToolCall("b", "add", "{}")]),
            ChatMessage("tool", "2", None, "b"),
            ChatMessage("tool", "1", None, "call_1_0"),
            ChatMessage("user", "Again."),
        ),
        (),
    ]
)
_finish: st.SearchStrategy[Any] = st.sampled_from(["tool_calls", "stop", None, "", "function_call", 7, ["odd"]])
_broken_finish = st.sampled_from(
    ["length", "max_tokens", " LENGTH ", "incomplete", "content_filter", "refusal", "malformed_function_call"]
)
_usages = st.sampled_from([None, Usage(1, 2), Usage(30, 20, 10, 5)])
_raws = st.sampled_from([None, {}, {"id": "reply", "choices": [1, 2.5, None, "\ud800"]}])
_texts = st.sampled_from(["", " ", "hello", "  padded ", "über 😀", "\ud800 half a pair"])
_contents: st.SearchStrategy[Any] = st.one_of(
    _texts,
    st.sampled_from(
        [
            None,
            [],
            [TextPart("part")],
            [ImagePart("https://example.org/a.png")],
            [
                {"type": "text", "text": "a part", "cache_control": {}},
                {"type": "image_url", "image_url": {"url": "data:,"}},
            ],
            7,
        ]
    ),
)
_arguments: st.SearchStrategy[Any] = st.sampled_from(
    ['{"text":"x"}'] * 30 + ["{}", "", "null", "[]", '{"text":7}', '{"text":"x"', None, {}, 7]
)
_names: st.SearchStrategy[Any] = st.sampled_from([*TOOL_NAMES, *TOOL_NAMES, "nope", "", " echo ", None, 7, {"a": [1]}])
_good_names = st.sampled_from(
    ["echo", "look", "peek", "send", "pay", "ask"] * 4 + [name for name in TOOL_NAMES if name != "direct"]
)
_odd_ids: st.SearchStrategy[Any] = st.sampled_from(["same", "same", "", "  ", None, 7, ["x"]])


@st.composite
def _calls(draw: st.DrawFn, number: int, broken: bool) -> list[ToolCall]:
    made = []
    for place in range(draw(st.sampled_from([1, 2, 3, 4, 1]))):
        odd = broken and draw(st.booleans())
        call_id = draw(_odd_ids) if odd else f"call_{number}_{place}"
        name = draw(_names) if broken else draw(_good_names)
        made.append(ToolCall(call_id, name, draw(_arguments)))
    return made


_KINDS = ["calls"] * 16 + ["direct", "text", "announced"] + ["odd calls", "odd text", "cut"] * 2


@st.composite
def _replies(draw: st.DrawFn, number: int) -> ChatResponse:
    raw, usage = draw(_raws), draw(_usages)
    match draw(st.sampled_from(_KINDS)):
        case "calls":
            return ChatResponse(draw(_texts), None, draw(_calls(number, False)), draw(_finish), raw, usage)
        case "direct":
            calls = [ToolCall(f"call_{number}_0", "direct", draw(_arguments))]
            return ChatResponse("", None, calls, "tool_calls", raw, usage)
        case "odd calls":
            return ChatResponse(draw(_contents), draw(_texts), draw(_calls(number, True)), draw(_finish), raw, usage)
        case "text":
            return ChatResponse("an answer", None, draw(st.sampled_from([None, []])), "stop", raw, usage)
        case "odd text":
            return ChatResponse(draw(_contents), None, None, draw(_finish), raw, usage)
        case "announced":
            return ChatResponse("here it is", None, draw(st.sampled_from([None, []])), "tool_calls", raw, usage)
        case _:
            odd = draw(st.none() | _calls(number, True))
            return ChatResponse(draw(_contents), None, odd, draw(_broken_finish), raw, usage)


@st.composite
def _forced(draw: st.DrawFn) -> ChatResponse:
    calls = draw(st.none() | _calls(99, True))
    finish = draw(_finish | _broken_finish)
    return ChatResponse(draw(st.just("the last word") | _contents), None, calls, finish, None, draw(_usages))


limits = st.builds(
    Limits,
    st.sampled_from([4, 3, 2, 1, 5]),
    st.sampled_from([16] * 6 + [8, 8, 4, 3, 2, 1, 0]),
    st.sampled_from([None, 1000.0]),
    st.sampled_from([None, 256, 65536]),
    per_tool=st.sampled_from([{}] * 4 + [{"echo": 1}, {"look": 2, "ask": 1}]),
    repeats=st.sampled_from([None, None, None, 2, 3]),
)


@st.composite
def scripts(draw: st.DrawFn, /, **fixed: Any) -> Script:
    """Turns of every kind.

    Args:
        fixed: Fields of the script that are not to be drawn.
    """
    drawn: dict[str, Any] = {
        "history": draw(_histories),
        "replies": tuple(draw(_replies(number)) for number in range(1, draw(st.sampled_from([4, 5, 3, 2, 1])) + 1)),
        "forced": draw(_forced()),
        "limits": draw(limits),
        "on_limit": draw(st.sampled_from(["raise", "answer"])),
        "tool_errors": draw(st.sampled_from(["raise", "report", "report"])),
        "unreachable": draw(st.sampled_from([frozenset()] * 8 + [frozenset([number]) for number in range(1, 5)])),
    }
    return Script(**{**drawn, **fixed})
