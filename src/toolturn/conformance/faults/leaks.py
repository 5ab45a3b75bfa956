"""Calls that leak into the text, in the dialects of open models.

A client may lift such a call out of the text, or refuse the reply; what it must not do is hand markup to a user as the
answer. Bare JSON is no markup: it may be the answer, so a client may return it too.
"""

from __future__ import annotations

from typing import Any, Final

from ..replies import Chat, says
from ..rows import AFTER, REFUSED, Answer, Fault, Way, either, ran

_RAN: Final = ran("get_temp", city="Faro")
_HERMES: Final = '<tool_call>\n{"name": "get_temp", "arguments": {"city": "Faro"}}\n</tool_call>'
_BARE: Final = '{"name": "get_temp", "arguments": {"city": "Faro"}}'


def _row(name: str, text: str, leaked: str | Chat, ways: tuple[Way, ...] | None = None, **more: Any) -> Fault:
    reply = says(leaked) if isinstance(leaked, str) else leaked
    return Fault(f"leaks_{name}", text, (reply, says(AFTER)), either(_RAN) if ways is None else ways, **more)


ROWS: Final = (
    _row("hermes", "A call leaks in the tags of Hermes and Qwen.", _HERMES),
    _row("hermes_with_text", "A call in tags follows a sentence.", f"Let me look.\n{_HERMES}"),
    _row(
        "hermes_two",
        "Two calls leak in tags.",
        _HERMES + '\n<tool_call>\n{"name": "get_temp", "arguments": {"city": "Braga"}}\n</tool_call>',
        either(_RAN, ran("get_temp", city="Braga")),
    ),
    _row("hermes_no_end", "A call leaks in tags of which the last is missing.", _HERMES.removesuffix("\n</tool_call>")),
    _row(
        "end_tag_in_text",
        "The end tag occurs within an argument.",
        '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "text": "</tool_call> ends"}}\n</tool_call>',
        either(ran("write_file", path="a", text="</tool_call> ends")),
    ),
    _row(
        "qwen_xml",
        "A call leaks in the XML of Qwen coder models.",
        "<tool_call>\n<function=get_temp>\n<parameter=city>\nFaro\n</parameter>\n</function>\n</tool_call>",
    ),
    _row(
        "qwen_xml_no_start",
        "The same without its first tag.",
        "<function=get_temp>\n<parameter=city>Faro</parameter>\n</function>\n</tool_call>",
    ),
    _row("mistral", "A call leaks after the token of Mistral.", f"[TOOL_CALLS][{_BARE}]"),
    _row(
        "llama",
        "A call leaks after the token of Llama.",
        '<|python_tag|>{"type": "function", "name": "get_temp", "parameters": {"city": "Faro"}}<|eom_id|>',
    ),
    _row(
        "deepseek",
        "A call leaks between the tokens of DeepSeek.",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_temp">\n<｜DSML｜parameter name="city" string="true">Faro'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ),
    _row("bare", "A call leaks as bare JSON.", _BARE, (*either(_RAN), Way(Answer(_BARE)))),
    _row(
        "fenced",
        "A call leaks as JSON in a code fence.",
        f"```json\n{_BARE}\n```",
        (*either(_RAN), Way(Answer(f"```json\n{_BARE}\n```"))),
    ),
    _row("truncated", "A call leaks in tags, and the reply was cut off.", says(_HERMES, "length"), REFUSED),
    _row(
        "filtered",
        "A call leaks in tags, and the provider filtered the reply.",
        says(_HERMES, "content_filter"),
        REFUSED,
    ),
    _row(
        "after_thought",
        "A draft of a call stands in the thought, and the call itself after it.",
        '<think>maybe <tool_call>{"name": "write_file", "arguments": {"path": "x", "text": "y"}}</tool_call>?</think>\n'
        + _HERMES,
    ),
)
