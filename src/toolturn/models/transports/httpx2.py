"""The transport over httpx2, for who wants its ecosystem or has no binary wheels for the default one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...errors import ModelError, ModelUnavailableError
from ..transport import MAX_BYTES, HttpReply, HttpRequest, Timeouts
from . import failures
from .address import address_of, check_headers
from .loops import PerLoop
from .proxies import Proxy, proxy_for
from .trust import trusted_by_the_system

if TYPE_CHECKING:
    import ssl

    import httpx2

_IDLE_SECONDS = 55.0
_IDLE_CONNECTIONS = 100
_LINGER_SECONDS = 0.1
_LINGER_PIECES = 10
_OWN_HEADERS = {"accept-encoding": "identity", "user-agent": "toolturn"}


class Httpx2Transport:
    """Sends requests with httpx2; one serves all event loops of the process.

    A connection the server closed while idle is replaced; where it closes in the very moment a request is sent, the
    request fails with ``ModelStreamError`` and is not sent again, since it may have been worked on.

    Args:
        max_bytes: How large the body of a reply may be.

    Raises:
        ImportError: httpx2 is not installed.
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        try:
            import httpx2
        except ImportError:
            raise ImportError("this transport needs the library httpx2: pip install httpx2") from None
        self.library = httpx2
        self.max_bytes = max_bytes
        self._trust: ssl.SSLContext | None = None
        self._clients: PerLoop[dict[str | None, httpx2.AsyncClient]] = PerLoop(dict, _close_all)

    def send(self, request: HttpRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[HttpReply]:
        """Send a request, as :class:`~toolturn.models.transport.Transport` describes it."""
        return _Exchange(self, request, timeouts)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._clients.aclose()

    def client(self, proxy: Proxy | None) -> httpx2.AsyncClient:
        """Return the client of the running loop for this proxy."""
        clients = self._clients.get()
        key = None if proxy is None else proxy.url
        client = clients.get(key)
        if client is None:
            if self._trust is None:
                self._trust = trusted_by_the_system()
            # proxies are decided here, for all transports alike
            client = clients[key] = self.library.AsyncClient(
                trust_env=False,
                verify=self._trust,
                proxy=key,
                follow_redirects=False,
                limits=self.library.Limits(
                    max_connections=None,
                    max_keepalive_connections=_IDLE_CONNECTIONS,
                    keepalive_expiry=_IDLE_SECONDS,
                ),
            )
        return client


async def _close_all(clients: dict[str | None, httpx2.AsyncClient]) -> None:
    for client in clients.values():
        await client.aclose()


class _Exchange:
    """One request and its reply."""

    def __init__(self, transport: Httpx2Transport, request: HttpRequest, timeouts: Timeouts) -> None:
        self._transport = transport
        self._library = transport.library
        self._request = request
        self._timeouts = timeouts
        self._response: httpx2.Response | None = None
        self._socket: Any = None
        self.status = 0
        self.headers: Mapping[str, str] = {}

    async def __aenter__(self) -> HttpReply:
        request, timeouts = self._request, self._timeouts
        self._address = address = address_of(request.url)
        check_headers(request.headers)
        proxy = proxy_for(address)
        # the library takes each wait from this mapping at the moment it waits
        self._waits = {"connect": timeouts.connect, "read": timeouts.first_byte, "write": None, "pool": None}
        bound = None if None in (timeouts.connect, timeouts.first_byte) else sum(filter(None, _of(timeouts)))
        failure: ModelError | None = None
        try:
            client = self._transport.client(proxy)
            outgoing = client.build_request(
                request.method,
                request.url,
                headers=_latin(_OWN_HEADERS | {name.lower(): value for name, value in request.headers.items()}),
                content=request.body or None,
                extensions={"timeout": self._waits, "trace": self._keep_the_socket},
            )
            # one byte of the head now and then would satisfy the library's timeout for ever
            async with asyncio.timeout(bound):
                self._response = await client.send(outgoing, stream=True)
        except TimeoutError:
            failure = failures.no_reply_in_time(address, timeouts.first_byte or 0.0)
        except Exception as exc:  # noqa: BLE001 - each is told as one of our own
            failure = self._told(exc, proxy)
        except asyncio.CancelledError:
            # the library forgets the socket of a handshake that is cancelled
            if self._socket is not None:
                await self._socket.aclose()
            raise
        if failure is not None:
            raise failure
        assert self._response is not None
        self.status = self._response.status_code
        raw = self._response.headers.raw
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}
        self._waits["read"] = None
        self._body = self._response.aiter_raw()
        try:
            failures.check_head(address, self.status, self.headers, self._transport.max_bytes)
        except ModelError:
            await self._response.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is None:
            return
        if kind is None and not self._response.is_closed:
            # the content of a stream is complete before its last chunk: that may come, for the connection to be kept
            with contextlib.suppress(TimeoutError, self._library.TransportError):
                async with asyncio.timeout(_LINGER_SECONDS):
                    for _ in range(_LINGER_PIECES):
                        await anext(self._body, b"")
        await self._response.aclose()

    async def _keep_the_socket(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._socket = info["return_value"]

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        size = 0
        while True:
            failure: ModelError | None = None
            piece = b""
            try:
                async with asyncio.timeout(self._timeouts.between_bytes):
                    piece = await anext(self._body)
            except StopAsyncIteration:
                return
            except TimeoutError:
                failure = failures.no_more_in_time(self._address, self._timeouts.between_bytes or 0.0)
            except self._library.TransportError:
                failure = failures.broken_off(self._address)
            size += len(piece)
            if size > self._transport.max_bytes:
                failure = failures.too_large(self._address, self._transport.max_bytes)
            if failure is not None:
                raise failure
            if piece:
                yield piece

    def _told(self, exc: Exception, proxy: Proxy | None) -> ModelError:
        library, address, named_by = self._library, self._address, proxy.named_by if proxy else None
        if isinstance(exc, ModelError):
            return exc
        if isinstance(exc, library.ConnectTimeout):
            return failures.no_connection_in_time(address, self._timeouts.connect or 0.0)
        if isinstance(exc, library.ReadTimeout):
            return failures.no_reply_in_time(address, self._timeouts.first_byte or 0.0)
        if isinstance(exc, library.ConnectError):
            return failures.unreachable(address, exc, named_by)
        if isinstance(exc, library.ProxyError):
            status = str(exc)[:3]
            return failures.refused_by_proxy(address, named_by, int(status) if status.isdecimal() else None)
        if isinstance(exc, library.RemoteProtocolError) and "disconnected" not in str(exc):
            return failures.no_http(address)
        if isinstance(exc, library.TransportError):
            return failures.no_reply(address)
        if proxy is not None and isinstance(exc, (ValueError, ImportError, library.InvalidURL)):
            return ModelUnavailableError(f"the proxy that {proxy.named_by} names is of no kind that can be used")
        raise exc


def _latin(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """As bytes, since the library would encode them as ASCII."""
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]


def _of(timeouts: Timeouts) -> tuple[Any, ...]:
    return timeouts.connect, timeouts.first_byte
