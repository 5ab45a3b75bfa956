"""Content and reasoning of any form become text; thoughts are told apart; reasons decide what may run."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from toolturn import ChatResponse, ImagePart, TextPart, ToolCall, ToolDef, Usage
from toolturn.errors import (
    ToolLoopEmptyResponseError,
    ToolLoopFilteredResponseError,
    ToolLoopMalformedResponseError,
    ToolLoopTruncatedResponseError,
)
from toolturn.models import ingest
from toolturn.models.ingest.content import without_thoughts

from .edge import play

TOOLS = (ToolDef("bash", "bash", {"type": "object"}),)


def read(
    content: Any = "", reasoning: Any = None, calls: Any = None, reason: Any = "stop", **more: Any
) -> ChatResponse:
    return ingest(ChatResponse(content, reasoning, calls, reason, **more), TOOLS, ())


# --- forms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        (" kept as it is \n", " kept as it is \n"),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        (({"type": "output_text", "text": "a"},), "a"),
        (["a", "b"], "ab"),
        ([TextPart("a"), ImagePart("https://example.org/a.png"), TextPart("b")], "ab"),
        ([SimpleNamespace(type="text", text="a")], "a"),
        ([{"type": "text", "text": {"value": "a", "annotations": []}}], "a"),
        ([{"type": "image_url", "image_url": {"url": "data:,"}}], ""),
        ([{"text": "a"}, None, 7, {"type": "unknown", "data": "x"}], "a7"),
        ({"type": "text", "text": "a"}, "a"),
        ({"role": "model", "parts": [{"text": "a"}, {"text": "b"}]}, "ab"),
        ({"role": "assistant", "content": "a"}, "a"),
        ([{"type": "text", "content": "a"}], "a"),
        ({"answer": 42}, '{"answer":42}'),
        (7, "7"),
        (True, "true"),
        (1.5, "1.5"),
        (b"bytes", "bytes"),
    ],
)
def test_content_of_any_form_becomes_text_and_that_is_no_mend(content: Any, text: str) -> None:
    response = read(content)
    assert response.content == text
    assert response.repairs == ()


@pytest.mark.parametrize(
    ("content", "text", "thought"),
    [
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}, {"type": "text", "text": "x"}],
            "x",
            "hmm",
        ),
        ([{"type": "thinking", "thinking": "hmm", "signature": "S"}, {"type": "text", "text": "x"}], "x", "hmm"),
        ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hmm"}]}, "x"], "x", "hmm"),
        ([{"type": "reasoning", "text": "hmm"}, "x"], "x", "hmm"),
        ([{"text": "hmm", "thought": True}, {"text": "x"}], "x", "hmm"),
        ([{"type": "reasoning_content", "reasoning_content": {"text": "hmm"}}, "x"], "x", "hmm"),
        ([SimpleNamespace(type="thinking", thinking="hmm"), SimpleNamespace(type="text", text="x")], "x", "hmm"),
        ([{"type": "redacted_thinking", "data": "AAAA"}, "x"], "x", None),
        ([{"type": "thinking", "thinking": "hmm"}], "", "hmm"),
    ],
)
def test_thinking_parts_are_kept_apart(content: Any, text: str, thought: str | None) -> None:
    response = read(content)
    assert (response.content, response.reasoning) == (text, thought)
    assert response.repairs == ()


@pytest.mark.parametrize(
    ("reasoning", "thought"),
    [
        (None, None),
        ("hmm", "hmm"),
        ("", ""),
        ([], None),
        ([{"type": "text", "text": "h"}, {"text": "mm"}], "hmm"),
        ([{"type": "summary_text", "text": "hmm"}], "hmm"),
        ({"content": "hmm"}, "hmm"),
        ({"summary": [{"text": "hmm"}]}, "hmm"),
        (7, None),
        ({"encrypted": "x"}, None),
    ],
)
def test_reasoning_of_any_form_becomes_text(reasoning: Any, thought: str | None) -> None:
    response = read("x", reasoning)
    assert response.reasoning == thought
    assert response.repairs == ()


def test_thoughts_from_everywhere_are_joined() -> None:
    response = read([{"type": "thinking", "thinking": "two"}, {"type": "text", "text": "<think>three</think>x"}], "one")
    assert response.reasoning == "one\ntwo\nthree"
    assert response.content == "x"


def test_an_object_that_fails_at_every_touch_is_no_obstacle() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    for content in (Hostile(), [Hostile()], {"type": Hostile()}, {"text": Hostile()}):
        response = read(content, Hostile(), [Hostile()], Hostile())
        assert type(response.content) is str
        assert type(response.tool_calls) is list  # the turn refuses what is in it


def test_half_a_surrogate_pair_never_enters_the_transcript() -> None:
    response = read("bad \udc97 byte", "\ud800")
    assert (response.content, response.reasoning) == ("bad \ufffd byte", "\ufffd")
    assert [repair.kind for repair in response.repairs] == ["content", "reasoning"]


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (None, None),
        (Usage(1, 2), Usage(1, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, Usage(3, 4)),
        (SimpleNamespace(input_tokens=3, output_tokens=4), Usage(3, 4)),
        ({"unknown": 3}, None),
        ("many", None),
        (Usage(None, -1, 3.5, 7), Usage(reasoning=7)),  # type: ignore[arg-type]
    ],
)
def test_usage_of_any_form_is_one_that_can_be_added(usage: Any, wanted: Usage | None) -> None:
    response = read("x", usage=usage)
    assert response.usage == wanted


def test_a_good_reply_is_the_same_object() -> None:
    for response in (
        ChatResponse("It is warm."),
        ChatResponse("Il fait {chaud} <b>ici</b>.", "Où ?", None, "stop", {"raw": 1}, Usage(1, 2)),
        ChatResponse("", None, [ToolCall("a", "bash", '{"c":"ls"}')], "tool_calls"),
        ChatResponse("Two.", "r", [ToolCall("a", "bash", '{"c":["{"]}'), ToolCall("é", "bash", "{}")], "stop"),
        ChatResponse("", None, [ToolCall("a", "unknown", "{}")], "whatever"),
        ChatResponse("", None, [ToolCall("a", "bash", "not json")], "tool_calls"),
        ChatResponse("cut", None, [ToolCall("", "", "")], "length"),
        ChatResponse("", None, [], "tool_calls"),
    ):
        assert ingest(response, TOOLS, {"b"}) is response


# --- marked thoughts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left", "thought"),
    [
        ("<think>hmm</think>\n\nx", "x", "hmm"),
        ("<think>\nhmm\n</think>x", "x", "hmm"),
        ("\n <think>hmm</think> x", "x", "hmm"),
        ("<THINK>hmm</Think>x", "x", "hmm"),
        ("<thinking>hmm</thinking>x", "x", "hmm"),
        ("<reasoning>hmm</reasoning>x", "x", "hmm"),
        ("<thought>hmm</thought>x", "x", "hmm"),
        ("[THINK]hmm[/THINK]x", "x", "hmm"),
        ("◁think▷hmm◁/think▷x", "x", "hmm"),
        ("<think></think>\n\nx", "x", ""),
        ("hmm</think>\nx", "x", "hmm"),
        ("</think>x", "x", ""),
        ("<think>only", "", "only"),
        ("x\n<think>hmm</think>\ny", "x\n\ny", "hmm"),
        ("<think>a</think><think>b</think>x", "x", "a\nb"),
        ("<think>a</think>x\n<think>b</think>y", "x\ny", "a\nb"),
        ("<think>use </thinking> here</think>x", "x", "use </thinking> here"),
        ("<think>```\n</think>x", "x", "```"),
    ],
)
def test_marked_thoughts_are_taken_out(text: str, left: str, thought: str) -> None:
    response = read(text)
    assert response.content == left
    assert (response.reasoning or "") == thought
    assert [repair.kind for repair in response.repairs] == ["reasoning"]


@pytest.mark.parametrize(
    "text",
    [
        "The tag `<think>` begins a thought, `</think>` ends it.",
        "Models write <think> first.",
        "Example:\n```\n<think>hmm</think>\n```\nDone.",
        "I think </b> so.",
        "`</think>`",
        "x <thinker>",
    ],
)
def test_text_about_the_marks_is_text(text: str) -> None:
    assert read(text).content == text


def test_a_reply_of_thoughts_alone_is_no_answer() -> None:
    for reply in ({"content": "<think>hmm"}, {"content": None, "reasoning_content": "hmm"}, {"content": "hmm</think>"}):
        seen = play({"replies": [{**reply, "finish_reason": "stop"}]})
        assert isinstance(seen.error, ToolLoopEmptyResponseError)


N = 300_000
BOMBS: dict[str, Callable[[], str]] = {
    "pairs": lambda: "<think></think>" * (N // 15),
    "opened": lambda: "<think>" * (N // 7),
    "opened after a word": lambda: "x" + " <think>" * (N // 8),
    "closed": lambda: "`</think>" * (N // 9),
    "fences": lambda: "```\n" * (N // 4),
    "blanks": lambda: " " * N + "<think>",
    "lines": lambda: "\n" * N + "<think>" + "\n" * N,
    "mixed": lambda: "x <think> [THINK] " * (N // 18),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_many_marks_take_a_moment(bomb: Callable[[], str]) -> None:
    text = bomb()
    start = time.process_time()
    without_thoughts(text)
    assert time.process_time() - start < 1.5


# --- reasons ---------------------------------------------------------------------------------


class Finish(Enum):
    """As a provider's library has them."""

    MAX_TOKENS = "MAX_TOKENS"
    STOP = "STOP"


class Number(IntEnum):
    """As a protocol buffer has them."""

    MAX_TOKENS = 2


CALL: Any = [{"id": "c1", "function": {"name": "bash", "arguments": '{"c":"ls",}'}}]


@pytest.mark.parametrize(
    "reason",
    [
        "length",
        "LENGTH",
        "max_tokens",
        "MAX_TOKENS",
        "MaxTokens",
        "max-tokens",
        "FinishReason.MAX_TOKENS",
        "FINISH_REASON_MAX_TOKENS",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
        Finish.MAX_TOKENS,
        Number.MAX_TOKENS,
        {"type": "max_tokens"},
        {"reason": "max_output_tokens"},
    ],
)
def test_nothing_of_a_truncated_reply_runs_or_is_mended(reason: Any) -> None:
    response = read(None, None, CALL, reason)
    assert response.tool_calls is CALL
    case = {"replies": [{"content": "<tool_call>", "tool_calls": CALL}]}
    assert play(case).executed  # the same reply without the reason
    seen = play_reason(reason)
    assert isinstance(seen.error, ToolLoopTruncatedResponseError)
    assert seen.executed == []


def play_reason(reason: Any) -> Any:
    settled = read("", None, None, reason).finish_reason
    return play({"replies": [{"content": None, "tool_calls": CALL, "finish_reason": settled}]})


@pytest.mark.parametrize(
    "reason",
    [
        "content_filter",
        "content-filter",
        "ContentFilter",
        "SAFETY",
        "refusal",
        "RECITATION",
        "PROHIBITED_CONTENT",
        "spii",
    ],
)
def test_nothing_of_a_filtered_reply_runs(reason: str) -> None:
    seen = play_reason(reason)
    assert isinstance(seen.error, ToolLoopFilteredResponseError)
    assert seen.executed == []


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "malformed-tool-call", "UNEXPECTED_TOOL_CALL"])
def test_nothing_runs_after_a_malformed_call(reason: str) -> None:
    seen = play_reason(reason)
    assert isinstance(seen.error, ToolLoopMalformedResponseError)
    assert seen.executed == []


@pytest.mark.parametrize(
    "reason", ["stop", "tool_calls", None, "eos", "end_turn", "function_call", "", 7, "lengthy", {}]
)
def test_calls_run_under_every_other_reason(reason: Any) -> None:
    response = read(None, None, CALL, reason)
    assert response.tool_calls == [ToolCall("c1", "bash", '{"c":"ls"}')]


@pytest.mark.parametrize("reason", ["tool_calls", "tool-calls", "tool_use", "ToolCalls", "function_call", "TOOL_CALL"])
@pytest.mark.parametrize("calls", [None, [], {}, [None]])
def test_announced_calls_that_are_absent_are_no_answer(reason: str, calls: Any) -> None:
    seen = play({"replies": [{"content": "I will look.", "tool_calls": calls, "finish_reason": reason}]})
    assert isinstance(seen.error, ToolLoopMalformedResponseError)


def test_a_refusal_among_the_parts_refuses_the_reply() -> None:
    parts = [{"type": "refusal", "refusal": "I can not help with that."}]
    response = read(parts, None, CALL, "tool_calls")
    assert response.finish_reason == "refusal"
    assert response.content == "I can not help with that."
    seen = play({"replies": [{"content": parts, "tool_calls": CALL, "finish_reason": "tool_calls"}]})
    assert isinstance(seen.error, ToolLoopFilteredResponseError)
    assert seen.executed == []
