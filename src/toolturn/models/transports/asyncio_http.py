"""The default transport: asyncio's own sockets and TLS, with llhttp (the library httptools) reading the replies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ...errors import ModelError, ModelUnavailableError
from ..transport import MAX_BYTES, HttpReply, HttpRequest, Timeouts
from . import failures
from .address import Address, address_of, check_headers
from .loops import PerLoop
from .proxies import Proxy, proxy_for
from .trust import trusted_by_the_system

if TYPE_CHECKING:
    from .connection import Connection

_IDLE_SECONDS = 55.0
_IDLE_CONNECTIONS = 100
_SETTLED_SECONDS = 0.01
# Where a host has several addresses, a dead one costs this much and not the whole time; uvloop does not know it.
_SEVERAL_ADDRESSES: dict[str, Any] = {"happy_eyeballs_delay": 0.25}


class AsyncioTransport:
    """Sends requests over connections that are kept; one serves all event loops of the process.

    Each loop has its own connections. There is no limit on how many are open at once; up to 100 are kept for 55
    seconds after their last use. One that the server closed while it was idle is replaced. Where the server closes in
    the very moment a request is sent, the request fails with ``ModelStreamError`` and is not sent again, since it may
    have been worked on.

    Args:
        max_bytes: How large the body of a reply may be.

    Raises:
        ImportError: The extra ``http`` is not installed.
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        try:
            import httptools  # noqa: F401
        except ImportError:
            raise ImportError("models behind HTTP need the extra 'http': pip install 'toolturn[http]'") from None
        self._pools: PerLoop[_Pool] = PerLoop(lambda: _Pool(max_bytes), _Pool.aclose)

    def send(self, request: HttpRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[HttpReply]:
        """Send a request, as :class:`~toolturn.models.transport.Transport` describes it."""
        return _Exchange(self._pools, request, timeouts)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pools.aclose()


class _Exchange:
    """One request and its reply."""

    __slots__ = ("_connection", "_key", "_pool", "_pools", "_request", "_timeouts", "headers", "status")

    def __init__(self, pools: PerLoop[_Pool], request: HttpRequest, timeouts: Timeouts) -> None:
        self._pools = pools
        self._request = request
        self._timeouts = timeouts
        self.status = 0
        self.headers: Mapping[str, str] = {}

    async def __aenter__(self) -> HttpReply:
        request, timeouts = self._request, self._timeouts
        address = address_of(request.url)
        check_headers(request.headers)
        self._pool = pool = self._pools.get()
        self._key = key = (address.secure, address.host, address.port)
        connection = await pool.take(key)
        if connection is None:
            connection = await pool.connect(address, timeouts.connect)
        self._connection = connection
        try:
            connection.start(_head_of(request, address, pool.proxies.get(key)), request.body)
            await connection.head(timeouts.first_byte)
        except BaseException:
            connection.abort()
            raise
        self.status = connection.status
        self.headers = connection.headers
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.end(self._key, self._connection, cleanly=kind is None)

    async def read(self) -> bytes:
        return await self._connection.read(self._timeouts.between_bytes)

    def pieces(self) -> AsyncIterator[bytes]:
        return _Pieces(self._connection, self._timeouts.between_bytes)


class _Pieces:
    """The body as it arrives; no generator, which the event loop would have to keep account of."""

    __slots__ = ("_connection", "_seconds")

    def __init__(self, connection: Connection, seconds: float | None) -> None:
        self._connection = connection
        self._seconds = seconds

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._connection.piece(self._seconds)
        if piece is None:
            raise StopAsyncIteration
        return piece


_Key = tuple[bool, str, int]


class _Pool:
    """The connections of one event loop that wait for their next request."""

    def __init__(self, max_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._max_bytes = max_bytes
        self._idle: dict[_Key, list[Connection]] = {}
        self._ending: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._trust: ssl.SSLContext | None = None
        self.proxies: dict[_Key, str | None] = {}
        """For each place, the header for its proxy where plain requests go through one."""

    async def take(self, key: _Key) -> Connection | None:
        """Return a connection that is open as far as anyone can know, or None."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if connection.usable and self._loop.time() - connection.idle_since > _SETTLED_SECONDS:
                # The loop may not have looked at its sockets for a while (a blocking tool): let it, since a
                # connection that the server closed meanwhile looks open until then. What is due after the look comes
                # one round later.
                try:
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                except BaseException:
                    connection.abort()
                    raise
            if connection.usable:
                return connection
        return None

    def end(self, key: _Key, connection: Connection, *, cleanly: bool) -> None:
        """End an exchange; its connection is kept if it can be, and closed at once if it did not end cleanly."""

        def ended(connection: Connection, reusable: bool) -> None:
            self._ending.discard(connection)
            if reusable:
                self._keep(key, connection)

        self._ending.add(connection)
        connection.release(ended, linger=cleanly)

    def _keep(self, key: _Key, connection: Connection) -> None:
        idle = self._idle.setdefault(key, [])
        idle.append(connection)
        connection.idle_since = self._loop.time()
        if len(idle) > _IDLE_CONNECTIONS:
            idle.pop(0).abort()
        if self._sweep is None:
            self._sweep = self._loop.call_later(_IDLE_SECONDS, self._close_the_old)

    def _close_the_old(self) -> None:
        limit = self._loop.time() - _IDLE_SECONDS
        oldest = None
        for key, idle in list(self._idle.items()):
            for connection in idle:
                if connection.idle_since <= limit:
                    connection.abort()
            idle[:] = [connection for connection in idle if not connection.closed]
            if not idle:
                del self._idle[key]
            elif oldest is None or idle[0].idle_since < oldest:
                oldest = idle[0].idle_since
        self._sweep = None
        if oldest is not None:
            self._sweep = self._loop.call_at(oldest + _IDLE_SECONDS, self._close_the_old)

    async def aclose(self) -> None:
        """Close what waits here."""
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in [*self._ending, *itertools.chain(*self._idle.values())]:
            connection.abort()
        self._idle.clear()
        # a socket is closed by a callback of the loop
        await asyncio.sleep(0)

    async def connect(self, address: Address, seconds: float | None) -> Connection:
        """Make a connection.

        Args:
            address: Where to.
            seconds: How long that may take.
        """
        proxy = proxy_for(address)
        named_by = None if proxy is None else proxy.named_by
        failure: ModelError
        try:
            async with asyncio.timeout(seconds):
                return await self._connect(address, proxy)
        except TimeoutError as exc:
            # the system's own timeout is one of these as well
            failure = (
                failures.unreachable(address, exc, named_by)
                if exc.errno is not None or seconds is None
                else failures.no_connection_in_time(address, seconds)
            )
        except (OSError, UnicodeError) as exc:
            failure = failures.unreachable(address, exc, named_by)
        raise failure

    async def _connect(self, address: Address, proxy: Proxy | None) -> Connection:
        from .connection import Connection

        loop = self._loop
        trust = self._trusted() if address.secure else None
        connection = Connection(loop, address, self._max_bytes)
        self.proxies[address.secure, address.host, address.port] = None
        if proxy is None:
            await loop.create_connection(
                lambda: connection,
                address.host,
                address.port,
                ssl=trust,
                server_hostname=address.host if trust else None,
                **(_SEVERAL_ADDRESSES if isinstance(loop, asyncio.BaseEventLoop) else {}),
            )
            return connection
        secure, host, port, credentials = _parts_of(proxy)
        transport, _ = await loop.create_connection(
            lambda: connection, host, port, ssl=self._trusted() if secure else None
        )
        if trust is None:
            self.proxies[address.secure, address.host, address.port] = credentials
            return connection
        try:
            return await self._tunnel(address, proxy, connection, transport, credentials, trust)
        except BaseException:
            transport.abort()
            raise

    async def _tunnel(
        self,
        address: Address,
        proxy: Proxy,
        outer: Connection,
        transport: asyncio.Transport,
        credentials: str,
        trust: ssl.SSLContext,
    ) -> Connection:
        """Ask a proxy for a tunnel and speak TLS through it."""
        from .connection import Connection

        status = None
        with contextlib.suppress(ModelError):
            status = await outer.tunnel(
                f"CONNECT {address.place} HTTP/1.1\r\nhost: {address.place}\r\n{credentials}\r\n"
            )
        if status is None or not 200 <= status < 300:
            raise failures.refused_by_proxy(address, proxy.named_by, status)
        inner = Connection(self._loop, address, self._max_bytes)
        made = await self._loop.start_tls(transport, inner, trust, server_hostname=address.host)
        assert made is not None
        inner.connection_made(made)
        return inner

    def _trusted(self) -> ssl.SSLContext:
        if self._trust is None:
            self._trust = trusted_by_the_system()
        return self._trust


def _parts_of(proxy: Proxy) -> tuple[bool, str, int, str]:
    """Take a proxy's address apart: whether by TLS, host, port, and its header."""
    try:
        parts = urlsplit(proxy.url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = None, None, None
    if parts is None or not host or parts.scheme not in ("http", "https"):
        raise ModelUnavailableError(f"the proxy that {proxy.named_by} names is of no kind that can be used")
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        credentials = f"proxy-authorization: Basic {base64.b64encode(pair).decode('ascii')}\r\n"
    secure = parts.scheme == "https"
    return secure, host, port or (443 if secure else 80), credentials


def _head_of(request: HttpRequest, address: Address, proxy: str | None) -> bytes:
    """Write the head of a request; the proxy's header where it goes to one in plain."""
    default = 443 if address.secure else 80
    host = address.place.removesuffix(f":{default}") if address.port == default else address.place
    target = address.target if proxy is None else f"http://{host}{address.target}"
    lines = [f"{request.method} {target} HTTP/1.1\r\nhost: {host}\r\n{proxy or ''}"]
    own = {"accept-encoding": "identity", "user-agent": "toolturn", "accept": "*/*"}
    for name, value in request.headers.items():
        lowered = name.lower()
        if lowered in ("host", "content-length", "transfer-encoding", "connection"):
            continue
        own.pop(lowered, None)
        lines.append(f"{name}: {value}\r\n")
    lines += [f"{name}: {value}\r\n" for name, value in own.items()]
    if request.body or request.method != "GET":
        lines.append(f"content-length: {len(request.body)}\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("latin-1")
