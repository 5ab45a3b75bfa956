"""A server over streamable HTTP: the client's own transport over a connection that is bounded and keeps its secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from ssl import SSLContext
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from ..models.transports.trust import trusted_by_the_system
from .configuration import Http

statuses: ContextVar[list[tuple[int, bool]] | None] = ContextVar("statuses", default=None)
"""The statuses of the replies to what is sent in a context, each with whether the request named a session."""

_SESSION = "mcp-session-id"


@cache
def _trust() -> SSLContext:
    # made once: reading the certificates takes longer than starting a server
    return trusted_by_the_system()


class HttpLink:
    """One session with a server.

    Args:
        server: Where it is.
    """

    def __init__(self, server: Http) -> None:
        self._server = server
        self._last = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """Make the streams of a session; leaving the context tells the server that it has ended."""
        server = self._server
        with anyio.CancelScope() as scope:
            async with (
                httpx2.AsyncClient(
                    headers={**server.headers, "accept-encoding": "identity"},
                    # how long a reply may take is the business of the call
                    timeout=httpx2.Timeout(10.0, read=None),
                    verify=_trust(),
                    event_hooks={"response": [self._heard]},
                ) as client,
                streamable_http_client(server.url, http_client=client, max_sse_event_size=server.max_bytes) as streams,
            ):
                try:
                    yield streams
                finally:
                    scope.deadline = anyio.current_time() + server.close_timeout

    async def _heard(self, response: httpx2.Response) -> None:
        self._last = response.status_code
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response, response.stream, self._server.max_bytes)
        heard = statuses.get()
        if heard is not None and response.request.method == "POST":
            heard.append((response.status_code, _SESSION in response.request.headers))

    def kill(self) -> None:
        """Do nothing: the end is bounded, and there is no process."""

    def why(self) -> str:
        """Return what is known of why it does not work, for people; empty where nothing is."""
        return f"it answered HTTP {self._last}" if self._last >= 400 else ""


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that is refused where it is too large, or compressed, when nobody knows how large it will be."""

    def __init__(self, response: httpx2.Response, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._compressed = response.headers.get("content-encoding", "identity") != "identity"
        # a stream of events may go on for long: there the client bounds each event
        self._limit = None if "text/event-stream" in response.headers.get("content-type", "") else limit
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._compressed:
            raise httpx2.StreamError("the reply is compressed, which was not asked for")
        read = 0
        async for piece in self._stream:
            read += len(piece)
            if self._limit is not None and read > self._limit:
                raise httpx2.StreamError(f"the reply has more than {self._limit} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
