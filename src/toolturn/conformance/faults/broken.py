"""Streams that break: they end before their reply does, or an error comes in the middle."""

from __future__ import annotations

from typing import Final

from ..replies import Events
from ..rows import AFTER, FAILS, Answer, Fault, Way
from ..wire import delta, encoded
from .chunks import FARO, answers, piece, pieces, played, row


def _rows() -> tuple[Fault, ...]:
    opening = pieces(piece(0, "a", "write_file", ""))
    whole = pieces(piece(0, "a", "get_temp", FARO))
    half = pieces(piece(0, "a", "write_file", '{"path": "a.txt", "te'))
    # a broken stream may be asked for again as long as nothing of it was used
    again: tuple[Way, ...] = (Way(Answer(AFTER)), *FAILS)
    error = encoded({"error": {"message": "worker limit reached", "type": "server_error", "code": 502}})
    rows: list[Fault] = []
    for ending, words in (("whole", "ends"), ("cut", "breaks off")):
        more = {"done": False, "ending": ending}
        rows += [
            row(f"{ending}_after_name", f"The stream {words} after the name of a call.", (opening,), again, **more),
            row(
                f"{ending}_in_arguments", f"The stream {words} within the arguments of a call.", (half,), again, **more
            ),
            row(
                f"{ending}_after_call",
                f"The stream {words} after a complete call, without a finish reason.",
                (whole,),
                again,
                **more,
            ),
            row(
                f"{ending}_in_text",
                f"The stream {words} within the text.",
                (delta(content="The way to do it is"),),
                again,
                **more,
            ),
            row(f"{ending}_before_all", f"The stream {words} before the first chunk.", (b": ping\n\n",), again, **more),
        ]
    return (
        *rows,
        row("error", "An error comes instead of a chunk.", (b"data: " + error + b"\n\n",), again),
        row(
            "error_after_text",
            "An error comes after some text.",
            (delta(content="Par"), b"data: " + error + b"\n\n"),
            again,
        ),
        row("error_after_call", "An error comes after a complete call.", (whole, b"data: " + error + b"\n\n"), again),
        row(
            "error_event",
            "An event named error comes after some text.",
            (delta(content="Par"), b"event: error\ndata: " + error + b"\n\n"),
            again,
            done=False,
        ),
        row(
            "error_beside_choices",
            "A chunk with no choices holds an error, and the stream ends well.",
            ({"choices": [], "error": {"code": 502, "message": "worker limit reached"}},),
            again,
        ),
        row(
            "error_finish",
            "The finish reason is error, after a complete call.",
            (whole, {**delta("error"), "error": {"message": "worker limit reached"}}),
            again,
        ),
        row(
            "events_run_together",
            "Two events are written into each other.",
            (b'data: {"choices":[{"index":0,"delta":{"role":"adata: {"choices":[{"delta":{"content":"hi"}}]}\n\n',),
            again,
            done=False,
        ),
        row("no_json", "A chunk is no JSON.", (delta(content="Hel"), b"data: <oops>\n\n", delta("stop")), again),
        row(
            "no_object",
            "A chunk is a number.",
            (delta(content="Hel"), b"data: 42\n\n", delta("stop")),
            (*again, *answers("Hel")),
        ),
        row(
            "no_unicode",
            "A chunk is no UTF-8.",
            (b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"},"finish_reason":null}]}\n\n', delta("stop")),
            (*again, *answers("\ufffd\ufffd")),
        ),
        played(
            "stalls",
            "Nothing more comes after the first words, and the connection stays open.",
            Events((delta(content="The way"),), False, "stall"),
            again,
            needs=("timeout",),
            timeout=1.0,
        ),
        played(
            "stalls_after_call",
            "Nothing more comes after a complete call, and the connection stays open.",
            Events((whole,), False, "stall"),
            again,
            needs=("timeout",),
            timeout=1.0,
        ),
    )


ROWS: Final = _rows()
