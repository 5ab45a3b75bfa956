"""Replies without an answer in them, and answers in an unusual form."""

from __future__ import annotations

from typing import Any, Final

from ..replies import asks, call, says
from ..rows import AFTER, FAILS, REFUSED, Answer, Failure, Fault, Way, ran

_ANSWER: Final = (Way(Answer("21 degrees")), Way(Failure()))


def _row(name: str, text: str, reply: Any, ways: tuple[Way, ...], **more: Any) -> Fault:
    return Fault(f"content_{name}", text, (reply, says(AFTER)), ways, **more)


ROWS: Final = (
    _row("empty", "The reply is empty.", says(""), REFUSED),
    _row("null", "The content is null and there is no call.", says(None), REFUSED),
    _row("blank", "The reply consists of blanks.", says("  \n "), REFUSED),
    Fault("content_empty_for_ever", "Every reply is empty.", (says(""),), FAILS, requests=5),
    Fault(
        "content_empty_after_call",
        "The reply after a tool's result is empty.",
        (asks(call("add", {"a": 1, "b": 2})), says(""), says(AFTER)),
        (
            Way(Answer(AFTER), (ran("add", a=1, b=2),)),
            Way(Failure(transcript=True), (ran("add", a=1, b=2),)),
        ),
    ),
    _row(
        "reasoning_only", "The model thought, and said nothing.", says("", reasoning_content="The user wants"), REFUSED
    ),
    _row("think_only", "The text consists of a thought in tags.", says("<think>The user wants</think>\n"), REFUSED),
    _row(
        "reasoning",
        "A thought stands in a field beside the answer.",
        says("21 degrees", reasoning_content="hmm"),
        _ANSWER,
    ),
    _row("think", "A thought stands in tags before the answer.", says("<think>hmm</think>\n\n21 degrees"), _ANSWER),
    _row(
        "parts",
        "The content is a list of parts: a thought and the text.",
        says(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
                {"type": "text", "text": "21 degrees"},
            ]
        ),
        _ANSWER,
    ),
    _row("number", "The content is a number.", says(21), (Way(Answer("21")), *REFUSED)),
    _row(
        "call_in_reasoning",
        "A call stands in the thought, and nothing outside of it.",
        says("", reasoning_content='<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'),
        REFUSED,
    ),
    _row(
        "json_answer",
        "The answer is JSON that only looks like a call: its name is no tool.",
        says('{"name": "my-app", "version": "1.0.0"}'),
        (Way(Answer('{"name": "my-app", "version": "1.0.0"}')),),
    ),
    _row(
        "extra_fields",
        "The message has fields that nobody asked for.",
        asks(call("add", {"a": 1, "b": 2}), text="Adding.", annotations=[], audio=None),
        (Way(Answer(AFTER), (ran("add", a=1, b=2),)),),
    ),
)
