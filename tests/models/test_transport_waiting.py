"""Time-outs are told apart, and a cancel closes the connection at once, wherever a request is."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from toolturn.errors import ModelTimeoutError
from toolturn.models.transport import Timeouts, Transport

from .raw_server import Peer, answering, run, serving
from .three_transports import QUICK, Make, every_transport, ours, post, whole

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port that takes no further connection: the system leaves the next one waiting."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def in_time(transport: Transport, url: str, timeouts: Timeouts, text: str) -> None:
    started = time.monotonic()
    with pytest.raises(ModelTimeoutError, match=text):
        await whole(transport, post(url), timeouts)
    assert time.monotonic() - started < 5.0


@every_transport
def test_a_connection_that_is_not_made_in_time_is_told_as_that(make: Make) -> None:
    async def main() -> None:
        transport = make()
        with full_port() as port:
            text = f"no connection to 127.0.0.1:{port} within 0.1 s .the timeout for connecting"
            await in_time(transport, f"http://127.0.0.1:{port}/", Timeouts(connect=0.1), text)
        await transport.aclose()

    run(main())


@every_transport
def test_a_handshake_of_tls_that_does_not_end_is_part_of_connecting(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            url = f"https://127.0.0.1:{server.port}/"
            await in_time(transport, url, Timeouts(connect=0.1), "the timeout for connecting")
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-"])
def test_a_head_that_does_not_come_in_time_is_told_as_that(make: Make, begun: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(begun)
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            text = f"no reply of 127.0.0.1:{server.port} within 0.1 s .the timeout for the first byte"
            await in_time(transport, server.url, Timeouts(first_byte=0.1), text)
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
def test_a_head_that_comes_in_drops_is_as_late_as_one_that_does_not_come(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n")
        while not peer.writer.is_closing():
            await peer.send(b"a")
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            await in_time(transport, server.url, Timeouts(connect=2, first_byte=0.2), "the timeout for the first byte")
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("begun", [HEAD, HEAD + b"2\r\nok\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"])
def test_a_gap_in_the_body_is_told_as_that(make: Make, begun: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(begun)
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            text = f"127.0.0.1:{server.port} sent nothing for 0.1 s in the middle .* .the timeout between bytes"
            await in_time(transport, server.url, Timeouts(between_bytes=0.1), text)
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
def test_a_body_may_take_longer_than_any_of_its_gaps(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        for _ in range(8):
            await asyncio.sleep(0.1)
            await peer.send(b"2\r\nok\r\n")
        await peer.send(b"0\r\n\r\n")

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            timeouts = Timeouts(connect=0.4, first_byte=0.4, between_bytes=0.4)
            assert await whole(transport, post(server.url), timeouts) == b"ok" * 8
            await transport.aclose()

    run(main())


async def cancelled(task: asyncio.Task[bytes]) -> None:
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1.0


@every_transport
def test_a_cancel_while_connecting_leaves_no_socket_behind(make: Make) -> None:
    async def main() -> None:
        transport = make()
        with full_port() as port:
            task = asyncio.create_task(whole(transport, post(f"http://127.0.0.1:{port}/"), QUICK))
            await asyncio.sleep(0.05)
            # a socket that is left behind is a ResourceWarning
            await cancelled(task)
        await transport.aclose()

    run(main())


@every_transport
def test_a_cancel_in_the_handshake_of_tls_closes_the_connection(make: Make) -> None:
    async def main() -> None:
        hello = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.reader.readexactly(5)
            hello.set()
            await peer.gone()

        async with serving(script) as server:
            transport = make()
            task = asyncio.create_task(whole(transport, post(f"https://127.0.0.1:{server.port}/"), QUICK))
            await hello.wait()
            await cancelled(task)
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
def test_a_cancel_while_the_model_thinks_closes_the_connection(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            task = asyncio.create_task(whole(transport, post(server.url)))
            await server.has_request()
            await cancelled(task)
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
def test_a_cancel_while_a_large_request_is_sent_closes_the_connection(make: Make) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            begun.set()
            # not read on for now: the client can not get rid of the rest
            await asyncio.sleep(0.1)
            await peer.gone()

        async with serving(script) as server:
            transport = make()
            task = asyncio.create_task(whole(transport, post(server.url, bytes(50_000_000))))
            await begun.wait()
            await cancelled(task)
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("in_pieces", [False, True], ids=["whole", "pieces"])
def test_a_cancel_in_the_body_closes_the_connection(make: Make, in_pieces: bool) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.send(HEAD + b"2\r\nok\r\n")
            await peer.gone()

        async def use(transport: Transport, url: str) -> bytes:
            async with transport.send(post(url), QUICK) as reply:
                begun.set()
                if in_pieces:
                    return b"".join([piece async for piece in reply.pieces()])
                return await reply.read()

        async with serving(script) as server:
            transport = make()
            task = asyncio.create_task(use(transport, server.url))
            await begun.wait()
            await asyncio.sleep(0)
            await cancelled(task)
            await server.client_left()
            await transport.aclose()

    run(main())


@every_transport
def test_after_a_cancel_the_transport_serves_on(make: Make) -> None:
    async def main() -> None:
        silent = True
        all_here = asyncio.Event()

        async def script(peer: Peer) -> None:
            while await peer.request() is not None:
                if len(server.requests) == 20:
                    all_here.set()
                if silent:
                    await peer.gone()
                else:
                    await peer.reply()

        async with serving(script) as server:
            transport = make()
            tasks = [asyncio.create_task(whole(transport, post(server.url))) for _ in range(20)]
            await all_here.wait()
            for task in tasks:
                await cancelled(task)
            silent = False
            assert await whole(transport, post(server.url)) == b"ok"
            await transport.aclose()

    run(main())


@ours
def test_time_outs_may_be_none(make: Make) -> None:
    async def main() -> None:
        async with serving(answering) as server:
            transport = make()
            assert await whole(transport, post(server.url), Timeouts(None, None, None)) == b"ok"
            await transport.aclose()

    run(main())
