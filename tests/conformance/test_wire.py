"""Replies as bytes: plain and streamed are the same reply, and pieces end where the row says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.conformance.replies import ABSENT, Both, Call, Chat, Events, Http, Raw, Reply, Slow, asks, call, says
from toolturn.conformance.wire import Wire, render


def sent(reply: Reply, *, stream: bool = False, usage: bool = False, number: int = 1) -> Wire:
    return render(reply, model="m", number=number, stream=stream, usage=usage)


def body_of(reply: Chat, number: int = 1) -> Any:
    return json.loads(b"".join(sent(reply, number=number).pieces))


def assembled(wire: Wire) -> dict[str, Any]:
    """A stream put together again, as its protocol says."""
    message: dict[str, Any] = {"content": "", "calls": {}, "finish": None, "usage": None}
    *events, done, rest = b"".join(wire.pieces).split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    for event in events:
        chunk = json.loads(event.removeprefix(b"data: "))
        message["usage"] = chunk.get("usage") or message["usage"]
        for choice in chunk["choices"]:
            message["finish"] = choice["finish_reason"] or message["finish"]
            message["content"] += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or ():
                call = message["calls"].setdefault(piece["index"], {"id": piece.get("id"), "name": "", "arguments": ""})
                call["name"] += piece["function"].get("name", "")
                call["arguments"] += piece["function"].get("arguments", "")
    return message


names = st.text("abc_", min_size=1, max_size=6)
chats = st.builds(
    Chat,
    st.text(max_size=40),
    st.none()
    | st.lists(st.builds(Call, names, st.text(max_size=40), st.text("xyz", min_size=1)), max_size=3).map(tuple),
    st.sampled_from(["stop", "length", "tool_calls"]),
    st.just({}),
    st.sampled_from([0, 1, 7]),
)


@given(chats)
def test_a_reply_is_the_same_plain_and_streamed(reply: Chat) -> None:
    plain = body_of(reply)["choices"][0]
    streamed = assembled(sent(reply, stream=True))
    assert streamed["content"] == plain["message"]["content"]
    assert streamed["finish"] == plain["finish_reason"]
    calls = [{"id": item["id"], **item["function"]} for item in plain["message"].get("tool_calls", ())]
    assert list(streamed["calls"].values()) == calls


@given(chats, st.integers(1, 9))
def test_a_split_changes_no_byte(reply: Chat, size: int) -> None:
    for stream in (False, True):
        whole = sent(Chat(reply.content, reply.calls, reply.finish), stream=stream)
        split = sent(Chat(reply.content, reply.calls, reply.finish, split=size), stream=stream)
        assert b"".join(split.pieces) == b"".join(whole.pieces)
        assert all(len(piece) <= size for piece in split.pieces)


def test_a_split_may_end_within_a_character() -> None:
    pieces = sent(Chat("ō", split=1)).pieces
    assert b"\xc5" in pieces
    assert b"\x8d" in pieces


def test_ids_are_new_in_each_reply_unless_the_row_gives_one() -> None:
    reply = asks(call("a", {}), call("b", {}), call("c", {}, "mine"), call("d", {}, None), call("e", {}, ABSENT))
    first, second = (body_of(reply, number)["choices"][0]["message"]["tool_calls"] for number in (1, 2))
    assert len({item["id"] for item in first[:2] + second[:2]}) == 4
    assert [item.get("id", "absent") for item in first[2:]] == ["mine", None, "absent"]


def test_usage_comes_in_a_stream_that_asks_for_it() -> None:
    assert assembled(sent(says("hi"), stream=True))["usage"] is None
    assert assembled(sent(says("hi"), stream=True, usage=True))["usage"]["total_tokens"] == 15


def test_half_a_surrogate_is_written_as_an_escape() -> None:
    assert body_of(says("\ud83d"))["choices"][0]["message"]["content"] == "\ud83d"


def test_a_row_may_reply_differently_to_each_kind_of_request() -> None:
    both = Both(Http(500, {}), Events((b": hi\n\n",), done=False))
    assert sent(both).status == 500
    assert sent(both, stream=True) == Wire(
        200,
        (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")),
        (b": hi\n\n",),
        "whole",
        chunked=True,
    )


def test_what_is_no_http_has_no_status() -> None:
    assert sent(Raw(b"SSH-2.0\r\n")) == Wire(None, (), (b"SSH-2.0\r\n",), "cut")


@pytest.mark.parametrize(
    ("given", "kind"), [(b"<html>", None), ({"a": 1}, "application/json"), (None, "application/json")]
)
def test_a_body_of_bytes_has_the_content_type_the_row_gives_it(given: Any, kind: str | None) -> None:
    assert dict(sent(Http(200, given)).headers).get("content-type") == kind


def test_a_date_in_a_header_is_made_when_it_is_sent() -> None:
    value = dict(sent(Http(429, headers={"retry-after": "{date+2}"})).headers)["retry-after"]
    assert value.endswith(" GMT")


def test_a_reply_that_comes_late_is_the_same_reply() -> None:
    assert sent(Slow(says("hello"), 0.5)) == replace(sent(says("hello")), delay=0.5)
