"""Streams whose pieces of calls do not say where they belong."""

from __future__ import annotations

from typing import Final

from ..rows import AFTER, Answer, Failure, Fault, Way, must_run, ran, runs_or_fails
from ..wire import delta
from .chunks import BRAGA, END, FARO, piece, pieces, row

_FARO: Final = ran("get_temp", city="Faro")
_BRAGA: Final = ran("get_temp", city="Braga")
_BOTH: Final = (_FARO, _BRAGA)


def _rows() -> tuple[Fault, ...]:
    one, two = must_run(_FARO), must_run(*_BOTH)
    opening, second = piece(0, "a", "get_temp", ""), piece(1, "b", "get_temp", "")
    return (
        row(
            "no_index",
            "The pieces of one call have no index.",
            (pieces(piece(None, "a", "get_temp", '{"city":')), pieces(piece(arguments=' "Faro"}')), END),
            runs_or_fails(_FARO),
        ),
        row(
            "no_index_two",
            "Two calls without index come in a chunk each.",
            (pieces(piece(None, "a", "get_temp", FARO)), pieces(piece(None, "b", "get_temp", BRAGA)), END),
            runs_or_fails(*_BOTH),
        ),
        row(
            "no_index_one_chunk",
            "Two calls without index come in one chunk.",
            (pieces(piece(None, "a", "get_temp", FARO), piece(None, "b", "get_temp", BRAGA)), END),
            runs_or_fails(*_BOTH),
        ),
        row(
            "null_index",
            "The index of each piece is null.",
            (
                pieces({"index": None} | piece(None, "a", "get_temp", '{"city":')),
                pieces({"index": None} | piece(arguments=' "Faro"}')),
                END,
            ),
            runs_or_fails(_FARO),
        ),
        row(
            "same_index",
            "Every call has the index 0.",
            (pieces(piece(0, "a", "get_temp", FARO)), pieces(piece(0, "b", "get_temp", BRAGA)), END),
            runs_or_fails(*_BOTH),
        ),
        row(
            "same_index_no_ids",
            "Every call has the index 0, and none has an id.",
            (pieces(piece(0, None, "get_temp", FARO)), pieces(piece(0, None, "get_temp", BRAGA)), END),
            runs_or_fails(*_BOTH),
        ),
        row(
            "some_index",
            "Some pieces have an index and some have none.",
            (
                pieces(piece(0, "a", "get_temp", '{"city":')),
                pieces(piece(arguments=' "Faro"}')),
                pieces(piece(1, "b", "get_temp", BRAGA)),
                END,
            ),
            runs_or_fails(*_BOTH),
        ),
        row(
            "index_from_one",
            "The index counts from 1.",
            (pieces(piece(1, "a", "get_temp", FARO)), pieces(piece(2, "b", "get_temp", BRAGA)), END),
            two,
        ),
        row(
            "interleaved",
            "The pieces of two calls take turns.",
            (
                pieces(opening),
                pieces(second),
                pieces(piece(0, arguments='{"city"')),
                pieces(piece(1, arguments='{"city"')),
                pieces(piece(0, arguments=': "Faro"}')),
                pieces(piece(1, arguments=': "Braga"}')),
                END,
            ),
            two,
        ),
        row(
            "repeated_name",
            "Each piece repeats the name.",
            (
                pieces(opening),
                pieces(piece(0, None, "get_temp", '{"city":')),
                pieces(piece(0, None, "get_temp", ' "Faro"}')),
                END,
            ),
            runs_or_fails(_FARO),
        ),
        row(
            "repeated_id",
            "Each piece repeats the id.",
            (pieces(opening), pieces(piece(0, "a", None, '{"city":')), pieces(piece(0, "a", None, ' "Faro"}')), END),
            one,
        ),
        row(
            "empty_id_and_name",
            "The id and the name of later pieces are empty.",
            (pieces(opening), pieces(piece(0, "", "", '{"city":')), pieces(piece(0, "", "", ' "Faro"}')), END),
            one,
        ),
        row(
            "null_fragments",
            "Arguments and names are null in some pieces.",
            (
                pieces(piece(0, "a", None, None, function={"name": "get_temp", "arguments": None})),
                pieces(piece(0, None, None, None, function={"name": None, "arguments": FARO})),
                END,
            ),
            one,
        ),
        row(
            "null_function",
            "The function is null in a piece.",
            (pieces(piece(0, "a", "get_temp", FARO)), pieces({"index": 0, "function": None}), END),
            runs_or_fails(_FARO),
        ),
        row(
            "late_id",
            "The id comes with the second piece.",
            (pieces(piece(0, None, "get_temp", '{"city":')), pieces(piece(0, "a", None, ' "Faro"}')), END),
            runs_or_fails(_FARO),
        ),
        row(
            "no_id",
            "The id never comes.",
            (pieces(piece(0, None, "get_temp", '{"city":')), pieces(piece(0, arguments=' "Faro"}')), END),
            runs_or_fails(_FARO),
        ),
        row(
            "arguments_first",
            "Arguments come before the name.",
            (pieces(piece(0, "a", None, '{"city":')), pieces(piece(0, None, "get_temp", ' "Faro"}')), END),
            runs_or_fails(_FARO),
        ),
        row(
            "name_in_pieces",
            "The name comes in two pieces.",
            (pieces(piece(0, "a", "get_", "")), pieces(piece(0, None, "temp", FARO)), END),
            runs_or_fails(_FARO),
        ),
        row(
            "no_arguments",
            "A call without parameters has no piece of arguments at all.",
            (pieces(piece(0, "a", "ping")), END),
            must_run(ran("ping")),
        ),
        row(
            "repeated_arguments",
            "The last piece repeats the whole of the arguments.",
            (
                pieces(piece(0, "a", "get_temp", '{"city":')),
                pieces(piece(0, arguments=' "Faro"}')),
                pieces(piece(0, arguments=FARO)),
                END,
            ),
            (Way(Answer(AFTER), (_FARO,)), Way(Answer(AFTER)), Way(Failure())),
        ),
        row(
            "tiny_fragments",
            "The arguments come in pieces of one character.",
            (pieces(opening), *(pieces(piece(0, arguments=letter)) for letter in FARO), END),
            one,
        ),
        row(
            "finish_with_call",
            "The last piece of the call and the finish reason come in one chunk.",
            (pieces(opening), delta("tool_calls", tool_calls=[piece(0, arguments=FARO)])),
            one,
        ),
        row(
            "object_arguments",
            "The arguments are an object, in one piece.",
            (pieces(piece(0, "a", "get_temp", {"city": "Faro"})), END),
            (Way(Answer(AFTER), (_FARO,)), Way(Answer(AFTER)), Way(Failure())),
        ),
    )


ROWS: Final = _rows()
