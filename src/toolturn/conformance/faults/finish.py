"""Finish reasons: replies that were cut off, filtered or refused, and reasons that do not fit the reply."""

from __future__ import annotations

from typing import Any, Final

from ..replies import Body, Both, Chat, Events, Reply, asks, call, says
from ..rows import AFTER, FAILS, REFUSED, Answer, Failure, Fault, Way, must_run, ran, runs_or_fails
from ..wire import delta

_ADD: Final = call("add", {"a": 1, "b": 2})
_RAN: Final = ran("add", a=1, b=2)


def _row(name: str, text: str, reply: Reply, ways: tuple[Way, ...], **more: Any) -> Fault:
    return Fault(f"finish_{name}", text, (reply, says(AFTER)), ways, **more)


def _legacy() -> Reply:
    made = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
    return Both(
        Chat(None, None, "function_call", {"function_call": made}),
        Events(
            (
                delta(role="assistant", content=None, function_call={"name": "add", "arguments": ""}),
                delta(function_call={"arguments": '{"a": 1, '}),
                delta(function_call={"arguments": '"b": 2}'}),
                delta("function_call"),
            )
        ),
    )


ROWS: Final = (
    _row(
        "length_call",
        "The reply was cut off, yet the arguments of its call are complete.",
        asks(_ADD, finish="length"),
        REFUSED,
    ),
    _row(
        "length_cut_arguments",
        "The reply was cut off within the arguments of its call.",
        asks(call("add", '{"a": 1, "b"'), finish="length"),
        REFUSED,
    ),
    _row(
        "length_missing",
        "The reply was cut off; its call is valid JSON that lacks an argument.",
        asks(call("write_file", {"path": "a.txt"}), finish="length"),
        REFUSED,
    ),
    _row(
        "length_second_call",
        "The reply was cut off within the second of two calls.",
        asks(_ADD, call("add", '{"a": 3, '), finish="length"),
        REFUSED,
    ),
    _row("length_text", "The text was cut off.", says("half an ans", "length"), REFUSED),
    _row("length_nothing", "The reply was cut off before its first word.", says("", "length"), REFUSED),
    _row(
        "max_tokens_call",
        "The reply was cut off, in the word of another provider.",
        asks(_ADD, finish="max_tokens"),
        REFUSED,
    ),
    Fault(
        "finish_length_for_ever",
        "Every reply is cut off within the arguments of its call.",
        (asks(call("write_file", '{"path": "a.txt", "text": "ch'), finish="length"),),
        FAILS,
        requests=5,
    ),
    _row(
        "filter_call",
        "The provider filtered the reply, which holds a call.",
        asks(_ADD, finish="content_filter"),
        REFUSED,
    ),
    _row(
        "filter_nothing",
        "The provider filtered the reply, of which nothing is left.",
        says(None, "content_filter"),
        REFUSED,
    ),
    _row(
        "filter_text",
        "The provider filtered the reply after its first words.",
        says("The way to do it is", "content_filter"),
        REFUSED,
    ),
    _row(
        "refusal",
        "The model refuses, in the field for it.",
        says(None, refusal="I can not help with that."),
        (Way(Answer("I can not help with that.")), Way(Failure())),
    ),
    _row(
        "refusal_call",
        "The model refuses, and there is a call all the same.",
        asks(_ADD, finish="stop", refusal="I can not help with that."),
        (Way(Answer("I can not help with that.")), *REFUSED),
    ),
    _row(
        "malformed_call",
        "The provider reports that the model's call was malformed.",
        says("", "MALFORMED_FUNCTION_CALL"),
        REFUSED,
    ),
    _row(
        "malformed_call_with_call",
        "The provider reports a malformed call and hands a call on.",
        asks(_ADD, finish="malformed_function_call"),
        REFUSED,
    ),
    _row(
        "calls_absent",
        "Calls are announced beside a preamble, and there is none.",
        says("I will look that up first.", "tool_calls"),
        REFUSED,
    ),
    _row("calls_empty", "Calls are announced and the list of them is empty.", asks(), REFUSED),
    _row("stop_call", "The reason is stop though there is a call.", asks(_ADD, finish="stop"), must_run(_RAN)),
    _row("null_call", "There is a call and no reason.", asks(_ADD, finish=None), runs_or_fails(_RAN), modes=("plain",)),
    _row(
        "null_text",
        "There is text and no reason.",
        says("All fine.", None),
        (Way(Answer("All fine.")), Way(Failure())),
        modes=("plain",),
    ),
    _row(
        "unknown_text",
        "The reason is a word of the server's own.",
        says("All fine.", "eos"),
        (Way(Answer("All fine.")), Way(Failure())),
    ),
    _row(
        "unknown_call",
        "The reason is a word of the server's own, and there is a call.",
        asks(_ADD, finish="eos"),
        runs_or_fails(_RAN),
    ),
    _row(
        "loud_calls",
        "The reason is written in capitals, and there is a call.",
        asks(_ADD, finish="TOOL_CALLS"),
        runs_or_fails(_RAN),
    ),
    _row(
        "loud_length",
        "The reply was cut off, and the reason is written in capitals.",
        asks(_ADD, finish="LENGTH"),
        REFUSED,
    ),
    _row("legacy_call", "The call is made in the form of 2023, as function_call.", _legacy(), runs_or_fails(_RAN)),
    _row(
        "custom_call",
        "The call is of a type that nobody asked for.",
        Both(
            Chat(
                None,
                None,
                "tool_calls",
                {"tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "add", "input": "1 2"}}]},
            ),
            Events(
                (
                    delta(
                        role="assistant",
                        tool_calls=[
                            {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "add", "input": "1 2"}}
                        ],
                    ),
                    delta("tool_calls"),
                )
            ),
        ),
        REFUSED,
    ),
    _row(
        "null_calls_list",
        "The list of calls holds null.",
        Both(
            Chat(None, None, "tool_calls", {"tool_calls": [None]}),
            Events((delta(role="assistant", tool_calls=[None]), delta("tool_calls"))),
        ),
        REFUSED,
    ),
    Fault(
        "finish_error_object",
        "The status is 200, the choices are null, and the body holds an error.",
        (
            Both(
                Body(
                    {
                        "id": "x",
                        "object": "chat.completion",
                        "choices": None,
                        "error": {"code": 502, "message": "upstream overloaded"},
                    }
                ),
                Events(({"choices": None, "error": {"code": 502, "message": "upstream overloaded"}},)),
            ),
        ),
        (Way(Failure()),),
    ),
    Fault(
        "finish_no_choices",
        "The status is 200 and the list of choices is empty.",
        (Both(Body({"id": "x", "object": "chat.completion", "choices": []}), Events(({"choices": []},))),),
        FAILS,
    ),
)
