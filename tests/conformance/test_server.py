"""The scripted server, spoken to over plain sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from toolturn.conformance.replies import Events, Http, Raw, Reply, Slow, asks, call, says
from toolturn.conformance.rows import FORCED, Act, Fault
from toolturn.conformance.server import LabServer

USER = {"role": "user", "content": "go"}
TOOLS = [{"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}]


def row(name: str, *replies: Reply, forced: Reply | None = None) -> Fault:
    return Fault(name, "It does.", replies, (), forced=forced)


ROWS = (
    row("two", asks(call("t", {})), says("done"), forced=says(FORCED)),
    row("cut", Http(200, b'{"id"', ending="cut")),
    row("stall", Http(200, b"", ending="stall")),
    row("endless", Http(200, b"x" * 1000, ending="endless")),
    row("raw", Raw(b"SSH-2.0\r\n")),
    row("nothing", Raw()),
    row("stream_cut", Events((b": hi\n\n",), False, "cut")),
    row("closes", Http(200, {}, ending="closes")),
    row("refused", Http(429, {"error": {}}, {"retry-after": "7"})),
    row("late", Slow(says("late"), 0.05)),
    replace(row("acts", says("before")), acts=(Act((says("first"),), ()), Act((says("second"),), ()))),
    replace(row("no_none", says("done")), choice_none=False),
)


@pytest.fixture(scope="module")
def server() -> Iterator[LabServer]:
    with LabServer(ROWS) as started:
        yield started


@contextlib.contextmanager
def connected(server: LabServer) -> Iterator[http.client.HTTPConnection]:
    where = urlsplit(server.base_url)
    assert where.hostname
    with contextlib.closing(http.client.HTTPConnection(where.hostname, where.port, timeout=20)) as connection:
        yield connection


def post(connection: http.client.HTTPConnection, model: str, key: str = "k", **fields: Any) -> http.client.HTTPResponse:
    body = json.dumps({"model": model, "messages": [USER], "tools": TOOLS, **fields})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
    return connection.getresponse()


def content(reply: http.client.HTTPResponse) -> Any:
    return json.load(reply)["choices"][0]["message"]["content"]


def test_replies_are_played_in_order_over_one_connection_and_the_last_one_again(server: LabServer) -> None:
    with connected(server) as connection:
        assert json.load(post(connection, "two", "order"))["choices"][0]["finish_reason"] == "tool_calls"
        opened = connection.sock
        assert content(post(connection, "two", "order")) == "done"
        assert content(post(connection, "two", "order")) == "done"
        assert connection.sock is opened


def test_each_key_is_a_run_of_its_own(server: LabServer) -> None:
    with connected(server) as connection:
        post(connection, "two", "one").read()
        assert json.load(post(connection, "two", "other"))["choices"][0]["finish_reason"] == "tool_calls"
    assert len(server.received("two", "one")) == len(server.received("two", "other")) == 1
    assert server.received("two", "nobody") == ()


@pytest.mark.parametrize("fields", [{"tool_choice": "none"}, {"tools": None}], ids=["choice none", "no tools"])
def test_a_request_in_which_tools_are_not_allowed_gets_the_forced_reply(
    server: LabServer, fields: dict[str, Any]
) -> None:
    with connected(server) as connection:
        assert content(post(connection, "two", f"forced{fields}", **fields)) == FORCED


def test_every_request_is_kept_with_what_is_wrong_with_it(server: LabServer) -> None:
    with connected(server) as connection:
        post(connection, "two", "kept").read()
        post(connection, "two", "kept", stream_options={}, n="many").read()
    first, second = server.received("two", "kept")
    assert first.faults == ()
    assert set(second.faults) == {"'n' must be a whole number of at least 1", "'stream_options' without 'stream'"}
    assert first.messages == [USER]
    assert first.tools_allowed
    assert first.at <= second.at


def test_a_body_that_is_no_json_is_kept_and_refused(server: LabServer) -> None:
    with connected(server) as connection:
        connection.request("POST", "/v1/chat/completions", "{", {"Authorization": "Bearer nojson"})
        assert connection.getresponse().status == 404
    (request,) = server.received("", "nojson")
    assert request.faults == ("the body is no JSON object",)
    assert request.messages == []
    assert not request.tools_allowed


def test_a_model_that_is_no_row_is_refused_in_the_usual_form(server: LabServer) -> None:
    with connected(server) as connection:
        reply = post(connection, "gpt-9")
        assert (reply.status, json.load(reply)["error"]["code"]) == (404, "model_not_found")


def test_a_prefix_of_the_model_is_ignored(server: LabServer) -> None:
    with connected(server) as connection:
        assert post(connection, "openai/refused", "prefix").status == 429


def test_the_rows_are_listed_as_models(server: LabServer) -> None:
    with connected(server) as connection:
        connection.request("GET", "/v1/models")
        listed = json.load(connection.getresponse())["data"]
    assert [item["id"] for item in listed] == [item.name for item in ROWS]


def test_another_path_is_not_there(server: LabServer) -> None:
    with connected(server) as connection:
        connection.request("POST", "/v1/responses", "{}")
        assert connection.getresponse().status == 404


def test_headers_of_a_row_are_sent(server: LabServer) -> None:
    with connected(server) as connection:
        assert post(connection, "refused", "headers").getheader("retry-after") == "7"


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_may_be_cut(server: LabServer, stream: bool) -> None:
    with connected(server) as connection, pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(connection, "stream_cut" if stream else "cut", "cut", stream=stream).read()


def test_a_connection_may_close_after_a_whole_body_unannounced(server: LabServer) -> None:
    with connected(server) as connection:
        reply = post(connection, "closes")
        assert reply.getheader("connection") is None
        assert reply.read() == b"{}"
        assert connection.sock is not None
        assert connection.sock.recv(1) == b""


def test_a_body_may_never_come(server: LabServer) -> None:
    with connected(server) as connection:
        reply = post(connection, "stall", "stall")
        assert connection.sock is not None
        connection.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            reply.read()


def test_a_body_may_go_on_for_ever_and_the_client_may_go(server: LabServer) -> None:
    with connected(server) as connection:
        assert len(post(connection, "endless", "endless").read(3_000_000)) == 3_000_000


@pytest.mark.parametrize(("model", "data"), [("raw", b"SSH-2.0\r\n"), ("nothing", b"")])
def test_what_comes_may_be_no_http(server: LabServer, model: str, data: bytes) -> None:
    where = urlsplit(server.base_url)
    body = json.dumps({"model": model, "messages": [USER]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection((where.hostname, where.port), timeout=20) as raw:
        raw.sendall(head + body)
        got = b""
        while piece := raw.recv(100):
            got += piece
    assert got == data


def test_a_client_that_speaks_no_http_harms_nobody(server: LabServer) -> None:
    where = urlsplit(server.base_url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as raw:
        raw.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")
        assert raw.recv(100) == b""
    with connected(server) as connection:
        assert post(connection, "refused", "after").status == 429


def test_every_body_may_be_split_for_a_whole_server() -> None:
    with LabServer(ROWS, split=3) as server, connected(server) as connection:
        assert content(post(connection, "two", tool_choice="none")) == FORCED


def test_a_server_leaves_nothing_behind_while_a_reply_is_still_awaited() -> None:
    with LabServer(ROWS) as server, connected(server) as connection:
        post(connection, "stall")


def test_a_client_that_goes_while_its_reply_is_awaited_is_noticed_and_when(server: LabServer) -> None:
    with connected(server) as connection:
        post(connection, "stall", "gone")
        wait_for(lambda: server.stalls("stall", "gone"))
        assert server.received("stall", "gone")[0].gone is None
    wait_for(lambda: server.received("stall", "gone")[0].gone is not None)
    (request,) = server.received("stall", "gone")
    assert request.gone is not None
    assert request.gone > request.at
    assert not server.stalls("two", "gone")


def test_the_replies_of_an_act_are_its_own(server: LabServer) -> None:
    with connected(server) as connection:
        post(connection, "acts", "run").read()
        assert content(post(connection, "acts", "run#1")) == "first"
        assert content(post(connection, "acts", "run#2")) == "second"
        assert content(post(connection, "acts", "run#2", tool_choice="none")) == "second"
    assert len(server.received("acts", "run#2")) == 2


def test_a_server_may_refuse_the_tool_choice_none_and_takes_calls_without_tools(server: LabServer) -> None:
    with connected(server) as connection:
        assert post(connection, "no_none", "none", tool_choice="none").status == 400
    with connected(server) as connection:
        assert post(connection, "no_none", "none", tools=None).status == 200
    assert server.received("no_none", "none")[0].faults == ("'tool_choice' must not be none here",)


def test_a_reply_may_come_late(server: LabServer) -> None:
    with connected(server) as connection:
        begun = time.monotonic()
        assert content(post(connection, "late")) == "late"
        assert time.monotonic() - begun >= 0.05


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
