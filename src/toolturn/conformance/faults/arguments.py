"""Arguments that are not what was agreed: odd encodings, wrong types, text that is no JSON."""

from __future__ import annotations

from typing import Any, Final

from ..replies import ABSENT, Call, asks, call, says
from ..rows import AFTER, FAILS, REFUSED, Answer, Fault, Run, Way, either, must_run, ran


def _row(name: str, text: str, tool: str, arguments: Any, ways: tuple[Way, ...], **more: Any) -> Fault:
    return Fault(f"arguments_{name}", text, (asks(call(tool, arguments)), says(AFTER)), ways, **more)


_PING: Final = must_run(ran("ping"))


def _lamp(level: Any = 1) -> Run:
    return ran("set_lamp", room="attic", level=level)


ROWS: Final = (
    _row("empty", "A call without parameters has an empty text as its arguments.", "ping", "", _PING),
    _row("null", "A call without parameters has null as its arguments.", "ping", None, _PING),
    _row(
        "null_text",
        "A call without parameters has the text null as its arguments.",
        "ping",
        "null",
        either(ran("ping")),
    ),
    _row("absent", "A call without parameters has no arguments at all.", "ping", ABSENT, _PING),
    Fault(
        "arguments_object",
        "The arguments are an object instead of text.",
        (asks(Call("set_lamp", {"room": "attic"})), says(AFTER)),
        either(_lamp()),
    ),
    _row("empty_but_required", "The arguments are empty though the tool needs some.", "add", "", REFUSED, told=True),
    _row(
        "encoded_twice",
        "The arguments are JSON text that holds JSON text.",
        "set_lamp",
        '"{\\"room\\":\\"attic\\"}"',
        either(_lamp()),
        told=True,
    ),
    _row(
        "list_as_text",
        "A list within the arguments is encoded as text, and a text looks like a list.",
        "list_add",
        '{"items": "[\\"milk\\"]", "note": "[draft]"}',
        either(ran("list_add", items=["milk"], note="[draft]")),
        told=True,
    ),
    _row(
        "fenced",
        "The arguments stand in a code fence, with a preamble.",
        "set_lamp",
        'Here you go:\n```json\n{"room": "attic"}\n```',
        either(_lamp()),
        told=True,
    ),
    _row(
        "trailing_comma",
        "A comma follows the last member.",
        "set_lamp",
        '{"room": "attic", "level": 3,}',
        either(_lamp(3)),
        told=True,
    ),
    _row(
        "python_literal",
        "The arguments are a dictionary of Python.",
        "set_lamp",
        "{'room': 'attic', 'level': 3}",
        either(_lamp(3)),
        told=True,
    ),
    _row(
        "raw_newline",
        "A text holds a newline and a tab that are not escaped.",
        "write_file",
        '{"path": "a.txt", "text": "line one\nline\ttwo"}',
        either(ran("write_file", path="a.txt", text="line one\nline\ttwo")),
        told=True,
    ),
    _row(
        "twice",
        "The same object stands there twice, glued together.",
        "set_lamp",
        '{"room": "attic"}{"room": "attic"}',
        either(_lamp()),
        told=True,
    ),
    _row(
        "glued",
        "Two different objects are glued together.",
        "send_message",
        '{"to": "ann", "text": "hi"}{"to": "bob", "text": "hi"}',
        REFUSED,
        told=True,
    ),
    _row(
        "cut",
        "The text breaks off within a member, and the model says it is complete.",
        "write_file",
        '{"path": "a.txt", "text": "unfin',
        REFUSED,
        told=True,
    ),
    _row("no_json", "The text is no JSON in any reading.", "add", '{"a": 1, "b": 2,,}', REFUSED, told=True),
    _row("prose", "The text is a sentence.", "add", "add one and two", REFUSED, told=True),
    _row(
        "array",
        "The arguments are a list that holds the object.",
        "set_lamp",
        '[{"room": "attic"}]',
        REFUSED,
        told=True,
    ),
    _row("number", "The arguments are a number.", "add", "42", REFUSED, told=True),
    _row("nan", "A number is NaN, which is no JSON.", "add", '{"a": NaN, "b": 1}', REFUSED, told=True),
    _row(
        "duplicate_keys",
        "A key occurs twice with two values: a check may see the other one than the tool.",
        "write_file",
        '{"path": "notes.txt", "text": "x", "path": "../secret.txt"}',
        REFUSED,
        told=True,
    ),
    _row(
        "huge_integer", "An integer has 5,000 digits.", "add", '{"a": ' + "9" * 5000 + ', "b": 1}', REFUSED, told=True
    ),
    _row(
        "deep",
        "Lists are nested 20,000 deep.",
        "list_add",
        '{"items": ' + "[" * 20_000 + "]" * 20_000 + "}",
        REFUSED,
        told=True,
    ),
    _row(
        "huge_no_json",
        "200,000 characters that break off.",
        "write_file",
        '{"text": "' + "x" * 200_000,
        REFUSED,
        told=True,
    ),
    _row(
        "wrong_type",
        "A text stands where a whole number is wanted.",
        "set_lamp",
        '{"room": "attic", "level": "bright"}',
        REFUSED,
        told=True,
        tells=("level",),
    ),
    _row("missing", "A required argument is missing.", "set_lamp", '{"level": 1}', REFUSED, told=True, tells=("room",)),
    _row(
        "unknown_key",
        "There is an argument that the tool does not have.",
        "add",
        '{"a": 1, "b": 2, "carry": true}',
        either(ran("add", a=1, b=2)),
        told=True,
    ),
    _row(
        "number_as_text",
        "A whole number of 19 digits stands there as text.",
        "delete_message",
        '{"message_id": "1234567890123456789"}',
        either(ran("delete_message", message_id=1234567890123456789)),
        told=True,
    ),
    _row(
        "blanks_in_text",
        "A text begins with blanks and ends with a newline, and means it.",
        "write_file",
        '{"path": "a.py", "text": "    x = 1\\n"}',
        must_run(ran("write_file", path="a.py", text="    x = 1\n")),
    ),
    _row(
        "half_surrogate",
        "A text holds half a surrogate pair.",
        "get_temp",
        '{"city": "ok \\ud83d end"}',
        (Way(Answer(AFTER), (ran("get_temp", city="ok \ud83d end"),)), *either(ran("get_temp", city="ok \ufffd end"))),
    ),
    Fault(
        "arguments_one_bad_of_two",
        "One call of two has arguments that are no JSON.",
        (asks(call("add", {"a": 1, "b": 2}), call("add", '{"a": 3, "b"')), says(AFTER)),
        either(ran("add", a=1, b=2)),
        told=True,
    ),
    Fault(
        "arguments_bad_for_ever",
        "Every reply has arguments that are no JSON.",
        (asks(call("add", '{"a": 1, "b"')),),
        FAILS,
        requests=5,
    ),
)
