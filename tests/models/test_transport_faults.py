"""Servers that break off, speak nonsense or are not there: a typed error with one sentence, never a short success."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import traceback

import pytest

from toolturn.errors import (
    ModelError,
    ModelProtocolError,
    ModelRequestError,
    ModelStreamError,
    ModelUnavailableError,
)
from toolturn.models.transport import HttpRequest
from toolturn.models.transports import failures
from toolturn.models.transports.address import address_of
from toolturn.models.transports.asyncio_http import AsyncioTransport

from .h11_transport import H11Transport
from .raw_server import Peer, run, serving
from .three_transports import HIDDEN, KEY, QUICK, Make, every_transport, ours, post, whole

FAULTS: dict[str, tuple[bytes, type[ModelError] | tuple[type[ModelError], ...], str]] = {
    "silent": (b"", ModelStreamError, "closed the connection before it replied"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-", (ModelProtocolError, ModelStreamError), "127.0.0.1:"),
    "short of its length": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok", ModelStreamError, "broke off"),
    "no body of its length": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", ModelStreamError, "broke off"),
    "chunks without end": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        ModelStreamError,
        "broke off",
    ),
    "half a last chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
        ModelStreamError,
        "broke off",
    ),
    "a wrong chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
        ModelStreamError,
        "broke off",
    ),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", ModelProtocolError, "does not speak HTTP/1.1"),
    "TLS": (b"\x15\x03\x01\x00\x02\x02\x16", ModelProtocolError, "does not speak HTTP/1.1"),
    "HTTP/2": (
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00",
        ModelProtocolError,
        "does not speak HTTP/1.1",
    ),
    "a text": (b"hello there\r\n\r\n", ModelProtocolError, "does not speak HTTP/1.1"),
    "a status of letters": (b"HTTP/1.1 abc\r\n\r\n", ModelProtocolError, "does not speak HTTP/1.1"),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        ModelProtocolError,
        "does not speak HTTP/1.1",
    ),
    "a header without a colon": (
        b"HTTP/1.1 200 OK\r\nfoo bar\r\nContent-Length: 2\r\n\r\nok",
        ModelProtocolError,
        "does not speak HTTP/1.1",
    ),
}


def told_without_secrets(error: ModelError, port: int | None = None) -> None:
    text = str(error)
    assert "\n" not in text
    if port is not None:
        assert f"127.0.0.1:{port}" in text
    shown = "".join(traceback.format_exception(error))
    assert KEY not in shown
    assert HIDDEN not in shown


@every_transport
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("in_pieces", [False, True], ids=["whole", "pieces"])
def test_a_broken_reply_is_a_typed_error(make: Make, fault: str, in_pieces: bool) -> None:
    raw, kind, text = FAULTS[fault]

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(raw)

    async def main() -> None:
        async with serving(script) as server:
            transport = make()

            async def use() -> None:
                async with transport.send(post(server.url + f"?key={HIDDEN}"), QUICK) as reply:
                    if not in_pieces:
                        await reply.read()
                    async for _ in reply.pieces():
                        pass

            with pytest.raises(kind, match=text) as caught:
                await use()
            told_without_secrets(caught.value, server.port)
            assert len(server.requests) == 1
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"], ids=["head", "body"])
def test_a_reset_connection_is_a_broken_stream(make: Make, before: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        sock = peer.writer.get_extra_info("socket")
        await peer.send(before)
        # closed like this, the other side gets a reset instead of an end
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        peer.reset()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            with pytest.raises(ModelStreamError) as caught:
                await whole(transport, post(server.url))
            told_without_secrets(caught.value, server.port)
            await transport.aclose()

    run(main())


@every_transport
def test_an_endless_head_is_refused(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n")
        while not peer.writer.is_closing():
            await peer.send(b"X-Filler: " + b"a" * 1000 + b"\r\n")
            await asyncio.sleep(0)

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            with pytest.raises(ModelProtocolError) as caught:
                await whole(transport, post(server.url))
            told_without_secrets(caught.value, server.port)
            await transport.aclose()

    run(main())


@pytest.mark.parametrize("make", [AsyncioTransport, H11Transport], ids=["asyncio", "h11"])  # httpx2 does not look
def test_bytes_after_a_reply_are_no_reply_to_the_next_request(make: Make) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        )
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            for _ in range(2):
                # an error is as good: what came unasked is not trusted
                with contextlib.suppress(ModelStreamError):
                    assert await whole(transport, post(server.url)) == b"ok"
            await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_error_tells_the_new_address(make: Make, status: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(
            b"", f"HTTP/1.1 {status} Moved\r\nLocation: https://u:{HIDDEN}@new.example/v1/chat?key={HIDDEN}"
        )

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            with pytest.raises(ModelProtocolError, match=r"redirects to https://new\.example/v1/chat, ") as caught:
                await whole(transport, post(server.url))
            told_without_secrets(caught.value, server.port)
            assert caught.value.status == status
            assert len(server.requests) == 1
            await transport.aclose()

    run(main())


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@every_transport
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_where_nothing_listens_is_told_with_what_to_do(make: Make, host: str) -> None:
    async def main() -> None:
        transport = make()
        port = unused_port()
        with pytest.raises(ModelUnavailableError, match=f"nothing listens at {host}:{port}: is the .* started|running"):
            await whole(transport, post(f"http://{host}:{port}/v1?key={HIDDEN}"))
        await transport.aclose()

    run(main())


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "no connection to h:1 (Network is unreachable)"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no connection to h:1 (No route to host)"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "no connection to h:1 (Connection timed out)"),
        (OSError(errno.EMFILE, "Too many open files"), "this machine allows no more open files"),
        (ConnectionResetError(), "h:1 closed the connection while it was made"),
        (OSError(f"Multiple exceptions: [Errno {errno.ECONNREFUSED}] x, [Errno 1] y"), "nothing listens at h:1"),
        (ExceptionGroup("all", [ConnectionRefusedError()]), "nothing listens at h:1"),
        (OSError("odd"), "no connection to h:1: check"),
        (RuntimeError(f"odd {HIDDEN}"), "no connection to h:1: check"),
    ],
    ids=str,
)
def test_what_the_system_says_of_a_connection_becomes_one_sentence(exc: Exception, text: str) -> None:
    error = failures.unreachable(address_of(f"http://h:1/{HIDDEN}"), exc)
    assert type(error) is ModelUnavailableError
    assert text in str(error)
    assert HIDDEN not in str(error)


@every_transport
def test_an_unknown_host_is_told_with_its_name(make: Make) -> None:
    async def main() -> None:
        transport = make()
        with pytest.raises(ModelUnavailableError, match=r"there is no host 'no-such-host\.invalid'") as caught:
            await whole(transport, post(f"https://no-such-host.invalid/v1?key={HIDDEN}"))
        told_without_secrets(caught.value)
        await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000/v1",
        "ftp://localhost/v1",
        "http://",
        "http:///v1",
        f"http://localhost:99999/{HIDDEN}",
        f"http://localhost:abc/{HIDDEN}",
        f"http://local host/{HIDDEN}",
        f"http://localhost/a\r\nX: {HIDDEN}",
        f"http://[::1/{HIDDEN}",
        f"http://user:{HIDDEN}@localhost/v1",
    ],
)
def test_an_address_that_is_none_is_refused_without_showing_it(make: Make, url: str) -> None:
    async def main() -> None:
        transport = make()
        with pytest.raises(ModelRequestError) as caught:
            await whole(transport, post(url))
        told_without_secrets(caught.value)
        await transport.aclose()

    run(main())


@every_transport
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {HIDDEN}\n"},
        {"Authorization": f"Bearer {HIDDEN}\r\nX: y"},
        {"Authorization": f"{HIDDEN}\x00"},
        {"Authorization": f"{HIDDEN}\N{EM DASH}"},
        {f"{HIDDEN}\n": "x"},
        {"": f"{HIDDEN}"},
        {"a b": f"{HIDDEN}"},
    ],
)
def test_a_header_that_no_request_may_hold_is_refused_without_its_value(make: Make, headers: dict[str, str]) -> None:
    async def main() -> None:
        transport = make()
        with pytest.raises(ModelRequestError) as caught:
            await whole(transport, HttpRequest("POST", f"http://127.0.0.1:{unused_port()}/", headers))
        told_without_secrets(caught.value)
        if "Authorization" in headers:
            assert "the header Authorization" in str(caught.value)
        await transport.aclose()

    run(main())


@ours
def test_a_reply_that_comes_before_the_request_is_sent_is_taken(make: Make) -> None:
    """A server may refuse a large request by its head alone."""

    async def script(peer: Peer) -> None:
        reader = peer.reader
        await reader.readuntil(b"\r\n\r\n")
        await peer.reply(b"too large", "HTTP/1.1 413 Too Large\r\nConnection: close")
        # a polite server reads what is under way before it closes
        await peer.gone()

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            async with transport.send(post(server.url, bytes(30_000_000)), QUICK) as reply:
                assert reply.status == 413
                assert await reply.read() == b"too large"
            await server.client_left()
            await transport.aclose()

    run(main())
