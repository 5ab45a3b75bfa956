"""Streams in every form that a server may write them in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ..replies import Http, asks, call
from ..rows import Failure, Fault, Way, must_run, ran, runs_or_fails
from ..wire import delta, event
from .chunks import END, FARO, answers, piece, pieces, played, row


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def _rows() -> tuple[Fault, ...]:
    good = asks(call("get_temp", {"city": "Kōbe 神戸"}))
    kobe = must_run(ran("get_temp", city="Kōbe 神戸"))
    hi = (delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop"))
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}
    crlf = b"".join(event(chunk) for chunk in hi).replace(b"\n\n", b"\r\n\r\n").replace(b"data: ", b"data:")
    return (
        played("split_bytes", "Each byte comes by itself, also within a character.", replace(good, split=1), kobe),
        played("split_sevens", "The pieces on the wire end anywhere.", replace(good, split=7), kobe),
        row(
            "comments",
            "Comments keep the connection alive before and between the chunks.",
            (b": PROCESSING\n\n", hi[1], b": PROCESSING\n\n", hi[2], b":\n\n", hi[3]),
            answers("Hello"),
        ),
        row(
            "carriage_returns",
            "Lines end with CR LF, and there is no blank after the colon.",
            (b":\r\n\r\n" + crlf + b"data:[DONE]\r\n\r\n",),
            answers("Hello"),
            done=False,
        ),
        row(
            "blank_data",
            "Events without data come in between.",
            (b"data:\n\n", *hi[:2], b"data: \n\n", *hi[2:]),
            (*answers("Hello"), Way(Failure())),
        ),
        row(
            "event_fields",
            "Events have ids, names and a time to retry after.",
            (b"retry: 3000\n", *(b"id: 1\nevent: message\n" + event(chunk) for chunk in hi)),
            answers("Hello"),
        ),
        row(
            "byte_order_mark",
            "The stream begins with a byte order mark.",
            (b"\xef\xbb\xbf", *hi),
            (*answers("Hello"), Way(Failure())),
        ),
        row("usage_only", "A chunk without choices holds the usage.", (*hi, usage), answers("Hello")),
        row(
            "usage_first",
            "The first chunk has no choices.",
            ({"choices": [], "prompt_filter_results": []}, *hi),
            answers("Hello"),
        ),
        row(
            "usage_null",
            "Each chunk has null as its usage.",
            tuple({**chunk, "usage": None} for chunk in hi),
            answers("Hello"),
        ),
        row(
            "null_delta",
            "A delta is null.",
            (*hi[:3], {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}),
            (*answers("Hello"), Way(Failure())),
        ),
        row(
            "null_fields",
            "Each delta has null for everything it does not hold.",
            tuple(
                {
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": chunk["choices"][0]["finish_reason"],
                            "delta": {"content": None, "tool_calls": None, "refusal": None}
                            | chunk["choices"][0]["delta"],
                        }
                    ]
                }
                for chunk in hi
            ),
            answers("Hello"),
        ),
        row(
            "empty_finish",
            "The finish reason of each chunk but the last is an empty text.",
            tuple(
                {"choices": [chunk["choices"][0] | {"finish_reason": chunk["choices"][0]["finish_reason"] or ""}]}
                for chunk in hi
            ),
            (*answers("Hello"), Way(Failure())),
        ),
        row(
            "empty_calls",
            "Each delta has an empty list of calls beside its text.",
            tuple(
                {"choices": [{**chunk["choices"][0], "delta": {**chunk["choices"][0]["delta"], "tool_calls": []}}]}
                for chunk in hi
            ),
            answers("Hello"),
        ),
        row("finish_twice", "The finish reason comes twice.", (*hi, delta("stop")), answers("Hello")),
        row("no_done", "There is a finish reason, and [DONE] is missing.", hi, answers("Hello"), done=False),
        row(
            "no_done_call",
            "A call is followed by its finish reason, and [DONE] is missing.",
            (pieces(piece(0, "a", "get_temp", FARO)), END),
            must_run(ran("get_temp", city="Faro")),
            done=False,
        ),
        row(
            "no_finish",
            "The stream ends with [DONE], and there was no finish reason.",
            hi[:3],
            (*answers("Hello"), Way(Failure())),
        ),
        row(
            "no_finish_call",
            "After a call comes [DONE], and there was no finish reason.",
            (pieces(piece(0, "a", "get_temp", FARO)),),
            runs_or_fails(ran("get_temp", city="Faro")),
        ),
        row(
            "lines_of_data",
            "A chunk is spread over several lines of data, as the event stream allows.",
            (
                *hi[:2],
                b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "lo"}, "finish_reason": null}]}\n\n',
                hi[3],
            ),
            answers("Hello"),
        ),
        row(
            "second_choice",
            "A second choice, which nobody asked for, speaks in between.",
            (hi[1], {"choices": [{"index": 1, "delta": {"content": "XX"}, "finish_reason": None}]}, hi[2], hi[3]),
            (*answers("Hello"), Way(Failure())),
        ),
        row(
            "large_event",
            "One event has 200,000 characters.",
            (delta(content="x" * 200_000), hi[3]),
            answers("x" * 200_000),
        ),
        played(
            "plain_reply",
            "A request for a stream gets a body of JSON.",
            Http(200, _completion("Hello")),
            (*answers("Hello"), Way(Failure())),
        ),
    )


ROWS: Final = _rows()
