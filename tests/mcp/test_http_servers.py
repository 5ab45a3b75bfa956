"""A server over HTTP may do anything: the call becomes something the model can act on, and nothing secret is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from toolturn import ToolCallRecord
from toolturn.events import Event
from toolturn.mcp import Http

from .support import bad_http, content, observe, one, progress_of, received, run, until

SECRET = "Bearer abcdefgh-the-token"
HEADERS = {"Authorization": SECRET}


def called(way: str, **options: object) -> ToolCallRecord:
    async def main() -> ToolCallRecord:
        async with bad_http(way, **options) as server, one(server) as servers:  # type: ignore[arg-type]
            record = await observe(servers.tools)
            # whatever came of it, the next call is asked for and bounded as well
            assert (await observe(servers.tools)).status in (record.status, "ok")
            return record

    return run(main())


def test_a_call_is_made_and_the_session_is_ended_at_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with bad_http("fine", log) as server:
            async with one(server) as servers:
                assert content(await observe(servers.tools)) == "hi"
            assert len(received(log, "DELETE")) == 1

    run(main())


def test_a_server_that_is_not_there_is_named() -> None:
    async def main() -> None:
        async with bad_http("fine") as server:
            pass
        async with one(server) as servers:
            [problem] = servers.problems
            assert (problem.server, problem.kind, problem.text) == ("box", "not_running", "it can not be reached")
            assert servers.tools.names == ()

    run(main())


def test_a_server_that_lets_nobody_in_is_named_without_the_header() -> None:
    async def main() -> None:
        async with bad_http("forbids", headers=HEADERS) as server, one(server) as servers:
            [problem] = servers.problems
            assert problem.text == "it answered HTTP 401"

    run(main())


# --- sessions ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["expires", "expires:plain"])
def test_a_session_that_the_server_forgot_is_made_anew_and_the_call_made_once(way: str, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with bad_http(way, log) as server, one(server) as servers:
            record = await observe(servers.tools)
            assert (content(record), record.status) == ("hi", "ok")
            assert content(await observe(servers.tools)) == "hi"

    run(main())
    assert len(received(log, "initialize")) == 2
    assert len(received(log, "tools/call")) == 2


def test_many_calls_at_once_make_the_session_anew_together(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with bad_http("expires", log) as server, one(server) as servers:
            records = await asyncio.gather(*(observe(servers.tools, arguments={"text": str(n)}) for n in range(8)))
            assert [content(record) for record in records] == [str(n) for n in range(8)]

    run(main())
    assert len(received(log, "initialize")) == 2
    assert len(received(log, "tools/call")) == 8


def test_a_server_that_forgets_each_session_at_once_is_unavailable() -> None:
    assert "is unavailable: it forgets each session at once" in content(called("expires-always"))


def test_a_server_that_was_away_is_used_again_when_it_is_back() -> None:
    async def main() -> None:
        async with bad_http("fine") as server:
            servers = await one(server).__aenter__()
            assert content(await observe(servers.tools)) == "hi"
        try:
            for _ in range(3):
                record = await observe(servers.tools)
                assert "the MCP server 'box' is unavailable: " in content(record)
            assert [problem.kind for problem in servers.problems] == ["not_running"]
            async with bad_http("fine", port=urlsplit(server.url).port):
                await servers.refresh()  # who does not ask waits for the pause to end
                assert content(await observe(servers.tools)) == "hi"
                assert servers.problems == ()
        finally:
            await servers.__aexit__(None, None, None)

    run(main())


# --- replies ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("fails", "the MCP server 'box' answered HTTP 500"),
        ("html", "the MCP server 'box' refused the call: Unexpected content type: text/html"),
        ("accepts", "refused the call: server answered a request with 202 Accepted"),
        (
            "breaks-off",
            "broke off its reply: SSE stream ended without a response; whether the call had an effect is not known",
        ),
        ("breaks-connection", "is unavailable: "),
        ("compresses", "the reply is compressed, which was not asked for"),
        ("error:no such city", "refused the call: no such city"),
        ("huge:300000", "the reply has more than 200000 bytes"),
        ("redirects", "refused the call: Redirect to http://other.example.org/mcp not followed"),
    ],
)
def test_what_is_no_reply_is_told_in_a_sentence(way: str, text: str) -> None:
    record = called(way, max_bytes=200_000)
    assert text in content(record)
    assert record.status == "error"
    assert "secret-in-the-address" not in content(record)


@pytest.mark.parametrize("way", ["huge", "huge-event"])
def test_a_large_result_within_the_bound_is_a_result_and_one_over_it_fails_at_once(way: str) -> None:
    assert called(f"{way}:3000000").status == "ok"
    record = called(f"{way}:3000000", max_bytes=1_000_000)
    assert (record.status, record.seconds < 10) == ("error", True)
    assert "the reply has more than 1000000 bytes" in content(record) or "SSE stream" in content(record)


def test_progress_and_a_changed_list_come_beside_the_reply() -> None:
    events: list[Event] = []

    async def main() -> None:
        async with bad_http("progress") as server, one(server) as servers:
            await observe(servers.tools, emit=events.append)
            assert [step["progress"] for step in progress_of(events)] == [1.0, 2.0]
        async with bad_http("changes-tools") as server, one(server) as servers:
            await observe(servers.tools)
            await until(lambda: servers.tools.names == ("new",))

    run(main())


def test_a_call_that_is_not_answered_times_out_and_the_server_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with bad_http("hangs-once", log, timeout=0.5) as server, one(server) as servers:
            assert (await observe(servers.tools)).status == "timeout"
            assert content(await observe(servers.tools)) == "hi"
            await until(lambda: received(log, "notifications/cancelled"))

    run(main())


def test_a_server_that_does_not_take_leave_holds_nobody() -> None:
    async def main() -> None:
        async with (
            bad_http("hangs-on-delete", close_timeout=0.3) as server,
            asyncio.timeout(10),
            one(server) as servers,
        ):
            assert content(await observe(servers.tools)) == "hi"

    run(main())


def test_the_protocol_without_sessions_is_spoken_where_the_handshake_is_refused() -> None:
    assert content(called("modern")) == "hi"


# --- secrets ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["tells-secrets", "tells-secrets:error"])
def test_no_text_holds_a_header_that_grants_access_even_where_the_server_tells_it(way: str) -> None:
    record = called(way, headers=HEADERS, path="/mcp?key=key-in-the-address")
    assert "you sent *** to /mcp?key=***" in content(record)


def test_a_configuration_shows_neither_its_headers_nor_its_address() -> None:
    shown = repr(Http("https://example.org/mcp?key=secret", HEADERS))
    assert shown == "Http('example.org:443')"
