"""A request goes out, its reply comes in, and the connection is kept."""

from __future__ import annotations

import asyncio
import time

import pytest

from toolturn.errors import ModelProtocolError, ModelStreamError
from toolturn.models.transport import HttpRequest
from toolturn.models.transports import asyncio_http
from toolturn.models.transports.asyncio_http import AsyncioTransport

from .raw_server import Peer, RawServer, answering, run, serving, serving_in_a_thread
from .three_transports import KEY, QUICK, Make, every_transport, ours, post, whole


@every_transport
def test_the_server_gets_the_method_the_path_the_headers_and_the_body(make: Make) -> None:
    async def main() -> None:
        async with serving(answering) as server:
            transport = make()
            await whole(transport, post(server.url + "?a=b%20c", b"\x00body", {"X-Title": "caf\xe9"}))
            await whole(transport, HttpRequest("GET", f"http://127.0.0.1:{server.port}", {}))
            await transport.aclose()
            first, second = server.requests
            assert first.line == "POST /v1/chat?a=b%20c HTTP/1.1"
            assert first.headers["authorization"] == f"Bearer {KEY}"
            assert first.headers["host"] == f"127.0.0.1:{server.port}"
            assert first.headers["x-title"] == "caf\xe9"
            assert first.body == b"\x00body"
            assert second.line == "GET / HTTP/1.1"

    run(main())


@every_transport
def test_a_reply_has_its_status_its_headers_in_lower_case_and_its_body(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(
            b"HTTP/1.1 429 Slow down\r\nRetry-After: 3\r\nX-A: 1\r\nX-A: 2\r\nX-B: caf\xe9\r\n"
            b"Content-Length: 4\r\n\r\nbusy"
        )

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            async with transport.send(post(server.url), QUICK) as reply:
                assert reply.status == 429
                assert reply.headers["retry-after"] == "3"
                assert reply.headers["x-a"] == "2"
                assert reply.headers["x-b"] == "caf\xe9"
                assert reply.headers.get("x-none") is None
                body = await reply.read()
                assert type(body) is bytes
                assert body == b"busy"
            await transport.aclose()

    run(main())


@every_transport
def test_one_connection_serves_request_after_request(make: Make) -> None:
    async def main() -> None:
        async with serving(answering) as server:
            transport = make()
            for _ in range(5):
                assert await whole(transport, post(server.url)) == b"ok"
            assert (server.connections, len(server.requests)) == (1, 5)
            await transport.aclose()

    run(main())


@every_transport
def test_a_chunked_reply_is_whole_and_its_connection_is_kept(make: Make) -> None:
    async def script(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.send(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x=y\r\n!\r\n0\r\nT: t\r\n\r\n"
            )

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            assert await whole(transport, post(server.url)) == b"ok!"
            assert await whole(transport, post(server.url)) == b"ok!"
            assert server.connections == 1
            await transport.aclose()

    run(main())


@every_transport
def test_pieces_arrive_when_they_are_sent(make: Make) -> None:
    async def main() -> None:
        more = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in (b"one", b"two", b"six"):
                await peer.send(b"3\r\n" + piece + b"\r\n")
                await more.wait()
                more.clear()
            await peer.send(b"0\r\n\r\n")

        async with serving(script) as server:
            transport = make()
            got = []
            async with transport.send(post(server.url), QUICK) as reply:
                async for piece in reply.pieces():
                    got.append(piece)
                    # nothing further is sent before this one is here
                    more.set()
            assert got == [b"one", b"two", b"six"]
            await transport.aclose()

    run(main())


@every_transport
def test_a_reply_in_any_split_is_the_same_reply(make: Make) -> None:
    raw = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"
    )

    async def script(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            at = int(request.body)
            await peer.send(raw[:at])
            await asyncio.sleep(0.001)
            await peer.send(raw[at:])

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            for at in range(0, len(raw), 3):
                async with transport.send(post(server.url, str(at).encode()), QUICK) as reply:
                    assert reply.headers["a"] == "b"
                    assert b"".join([piece async for piece in reply.pieces()]) == b"abc0123456789abcdef"
            assert server.connections == 1
            await transport.aclose()

    run(main())


@every_transport
def test_large_bodies_go_both_ways(make: Make) -> None:
    sent = bytes(range(256)) * 16_000

    async def script(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            await peer.reply(request.body)

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            assert await whole(transport, post(server.url, sent)) == sent
            async with transport.send(post(server.url, sent), QUICK) as reply:
                assert b"".join([piece async for piece in reply.pieces()]) == sent
            assert server.connections == 1
            await transport.aclose()

    run(main())


@ours
def test_a_slow_reader_makes_the_server_wait(make: Make) -> None:
    """What is not read yet stays with the server, beyond some megabytes of buffers."""
    size = 40_000_000

    async def main() -> None:
        written = 0

        async def script(peer: Peer) -> None:
            nonlocal written
            await peer.request()
            await peer.send(f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode())
            for _ in range(400):
                await peer.send(bytes(size // 400))
                written += size // 400

        async with serving(script) as server:
            transport = make()
            async with transport.send(post(server.url), QUICK) as reply:
                pieces = reply.pieces()
                got = len(await anext(pieces))
                before = -1
                while written != before:
                    before = written
                    await asyncio.sleep(0.1)
                assert written < size / 2
                async for piece in pieces:
                    got += len(piece)
            assert got == size
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
    ids=["204", "empty", "early hints", "two interim heads"],
)
def test_unusual_heads_are_understood_and_the_connection_is_kept(make: Make, raw: bytes, body: bytes) -> None:
    async def script(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.send(raw)

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            for _ in range(2):
                async with transport.send(post(server.url), QUICK) as reply:
                    assert reply.status in (200, 204)
                    assert "link" not in reply.headers
                    assert await reply.read() == body
            assert server.connections == 1
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.0 200 OK\r\nContent-Length: 13\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n\r\nuntil the end",
    ],
    ids=["HTTP/1.0", "HTTP/1.0 with a length", "no length", "told to close"],
)
def test_a_reply_that_ends_with_its_connection_is_whole_and_the_next_request_gets_another(
    make: Make, raw: bytes
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(raw)

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            assert await whole(transport, post(server.url)) == b"until the end"
            assert await whole(transport, post(server.url)) == b"until the end"
            assert server.connections == 2
            await transport.aclose()

    run(main())


@every_transport
def test_a_connection_that_the_server_closed_while_idle_is_replaced(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            for number in range(1, 6):
                assert await whole(transport, post(server.url)) == b"ok"
                await asyncio.wait(server.tasks)
                assert server.connections == number
            assert len(server.requests) == 5
            await transport.aclose()

    run(main())


@ours
def test_a_connection_that_was_closed_while_a_tool_blocked_the_event_loop_is_replaced(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()

    async def main(server: RawServer) -> None:
        transport = make()
        for _ in range(3):
            assert await whole(transport, post(server.url)) == b"ok"
            while not all(task.done() for task in server.tasks):
                time.sleep(0.02)  # noqa: ASYNC251 - a tool that blocks
            time.sleep(0.02)  # noqa: ASYNC251
        await transport.aclose()

    with serving_in_a_thread(script) as server:
        run(main(server))
        assert len(server.requests) == 3


@every_transport
def test_a_request_that_may_have_been_worked_on_is_not_sent_again(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()
        # the second request on this connection is read, and perhaps worked on, and never answered
        await peer.request()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            assert await whole(transport, post(server.url)) == b"ok"
            with pytest.raises(ModelStreamError, match="closed the connection before it replied"):
                await whole(transport, post(server.url))
            assert len(server.requests) == 2
            await transport.aclose()

    run(main())


@every_transport
def test_leaving_a_stream_early_closes_its_connection_and_the_next_request_gets_another(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            for number in (1, 2):
                async with transport.send(post(server.url), QUICK) as reply:
                    async for piece in reply.pieces():
                        assert piece == b"ok"
                        break
                await server.client_left()
                server.left.clear()
                assert server.connections == number
            await transport.aclose()

    run(main())


@ours
@pytest.mark.parametrize("ends", [True, False])
def test_leaving_a_stream_at_the_end_of_its_content_keeps_the_connection_if_the_last_chunk_follows(
    make: Make, ends: bool
) -> None:
    async def main() -> None:
        left = asyncio.Event()

        async def script(peer: Peer) -> None:
            while await peer.request() is not None:
                await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n[DONE]\r\n")
                await left.wait()
                left.clear()
                if ends:
                    await peer.send(b"0\r\n\r\n")
                else:
                    await peer.gone()

        async with serving(script) as server:
            transport = make()
            for _ in range(3):
                async with transport.send(post(server.url), QUICK) as reply:
                    assert await anext(reply.pieces()) == b"[DONE]"
                    left.set()
                if ends:
                    # one round for the last chunk to arrive
                    await asyncio.sleep(0.02)
                else:
                    await server.client_left()
                    server.left.clear()
            assert server.connections == (1 if ends else 3)
            await transport.aclose()

    run(main())


@every_transport
def test_an_error_of_the_reader_passes_unchanged_and_closes_the_connection(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            with pytest.raises(KeyError, match="mine"):
                async with transport.send(post(server.url), QUICK):
                    raise KeyError("mine")
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
def test_a_body_that_announces_to_be_too_large_is_refused_at_once(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make(max_bytes=1000)
            with pytest.raises(ModelProtocolError, match="larger than the 1000 bytes"):
                await whole(transport, post(server.url))
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_body_without_end_is_cut_off_at_the_bound(make: Make, in_pieces: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not peer.writer.is_closing():
            await peer.send(b"3e8\r\n" + bytes(1000) + b"\r\n")
            await asyncio.sleep(0)

    async def main() -> None:
        async with serving(script) as server:
            transport = make(max_bytes=1_000_000)
            size = 0

            async def use() -> None:
                nonlocal size
                async with transport.send(post(server.url), QUICK) as reply:
                    if not in_pieces:
                        await reply.read()
                    async for piece in reply.pieces():
                        size += len(piece)

            with pytest.raises(ModelProtocolError, match="larger than the 1000000 bytes"):
                await use()
            assert size <= 1_000_000
            await asyncio.wait(server.tasks)
            await transport.aclose()

    run(main())


@every_transport
def test_a_body_of_exactly_the_bound_is_taken(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(bytes(1000))

    async def main() -> None:
        async with serving(script) as server:
            transport = make(max_bytes=1000)
            assert len(await whole(transport, post(server.url))) == 1000
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("header", ["Content-Encoding: gzip", "Content-Encoding: BR"])
def test_no_compression_is_asked_for_and_none_is_taken(make: Make, header: str) -> None:
    async def script(peer: Peer) -> None:
        request = await peer.request()
        assert request is not None
        assert request.headers["accept-encoding"] == "identity"
        await peer.reply(b"\x1f\x8b\x08", f"HTTP/1.1 200 OK\r\n{header}")

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            with pytest.raises(ModelProtocolError, match="compressed its reply"):
                await whole(transport, post(server.url))
            await transport.aclose()

    run(main())


@every_transport
def test_two_hundred_requests_run_at_once(make: Make) -> None:
    async def main() -> None:
        all_here = asyncio.Event()

        async def script(peer: Peer) -> None:
            while (request := await peer.request()) is not None:
                if len(server.requests) == 200:
                    all_here.set()
                await all_here.wait()
                await peer.reply(request.body)

        async with serving(script) as server:
            transport = make()
            bodies = [str(number).encode() for number in range(200)]
            replies = await asyncio.gather(*(whole(transport, post(server.url, body)) for body in bodies))
            assert replies == bodies
            # more again than connections are kept
            replies = await asyncio.gather(*(whole(transport, post(server.url, body)) for body in bodies))
            assert replies == bodies
            assert server.connections <= 300
            await transport.aclose()

    run(main())


def test_a_connection_that_was_idle_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = AsyncioTransport()
            await asyncio.gather(*(whole(transport, post(server.url)) for _ in range(3)))
            async with asyncio.timeout(5.0):
                await asyncio.gather(*server.tasks)
            await transport.aclose()

    monkeypatch.setattr(asyncio_http, "_IDLE_SECONDS", 0.05)
    run(main())


def test_no_more_connections_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        all_here = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.request()
            if len(server.requests) == 6:
                all_here.set()
            await all_here.wait()
            await peer.reply()
            await peer.gone()
            gone.append(peer)

        gone: list[Peer] = []
        async with serving(script) as server:
            transport = AsyncioTransport()
            await asyncio.gather(*(whole(transport, post(server.url)) for _ in range(6)))
            await asyncio.wait(server.tasks, timeout=0.1)
            assert len(gone) == 4
            await transport.aclose()

    monkeypatch.setattr(asyncio_http, "_IDLE_CONNECTIONS", 2)
    run(main())


@every_transport
def test_closing_a_transport_closes_what_it_kept(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            await whole(transport, post(server.url))
            await transport.aclose()
            await server.client_left()

    run(main())
