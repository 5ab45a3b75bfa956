"""Server-sent events: the events of a stream do not depend on where its bytes were cut."""

from __future__ import annotations

import itertools
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolturn.models.sse import EventDecoder, ServerEvent


def events(*pieces: bytes) -> list[ServerEvent]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


def data(*pieces: bytes) -> list[str]:
    return [event.data for event in events(*pieces)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_of_the_three_line_ends_is_one(end: bytes) -> None:
    assert data(end.join([b"data: a", b"", b"data: b", b"", b""])) == ["a", "b"]


def test_one_blank_after_the_colon_is_not_data_and_a_second_is() -> None:
    assert data(b"data:a\n\ndata: a\n\ndata:  a\n\n") == ["a", "a", " a"]


def test_several_data_lines_are_one_event_joined_by_line_feeds() -> None:
    assert data(b"data: a\ndata\ndata: b\n\n") == ["a\n\nb"]


def test_comments_ids_and_events_without_data_are_passed_over() -> None:
    assert data(b": ping\n\nid: 7\nretry: 10\n\ndata:\n\nevent: x\n\ndata: a\n\n") == ["a"]


def test_the_type_of_an_event_is_told_and_holds_for_one_event() -> None:
    assert events(b"event: error\ndata: a\n\ndata: b\n\n") == [ServerEvent("error", "a"), ServerEvent("message", "b")]


def test_a_byte_order_mark_at_the_beginning_is_passed_over() -> None:
    assert data(b"\xef\xbb\xbfdata: a\n\n") == ["a"]


def test_the_last_event_counts_without_its_blank_line() -> None:
    assert data(b"data: a\n\ndata: b") == ["a", "b"]


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert data(b"data: \xff\n\n") == ["\ufffd"]


STREAM = b"\xef\xbb\xbf: c\r\n\r\ndata: \xc3\xa4\r\ndata:b\r\n\r\nevent: error\rdata: x\r\rdata:\n\ndata: y\n\ndata: z"


@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted))
@example(list(range(len(STREAM))))
def test_cutting_a_stream_anywhere_changes_nothing(cuts: list[int]) -> None:
    bounds = [0, *cuts, len(STREAM)]
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(bounds)]
    assert events(*pieces) == events(STREAM)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_cut_in_two_give_what_the_whole_gives(stream: bytes, cut: int) -> None:
    assert events(stream[:cut], stream[cut:]) == events(stream)


def test_a_long_line_in_small_pieces_takes_linear_time() -> None:
    pieces = [b"data: ", *[b"0123456789abcdef"] * 60_000, b"\n\n"]
    start = process_time()
    assert len(data(*pieces)[0]) == 960_000
    assert process_time() - start < 2
