"""HTTP for models: one small protocol.

A transport of one's own is about a page over any HTTP library. What all of them share stands in
:mod:`toolturn.models.transports`: ``address`` (an address checked and taken apart), ``failures`` (each failure as the
right error with its sentence, and what is refused by the head of a reply), ``loops`` (connections that belong to
their event loop), ``proxies`` and ``trust``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ..frozen import frozen

MAX_BYTES = 64_000_000
"""How large the body of a reply may be unless a transport is told otherwise."""


@frozen
class HttpRequest:
    """One request.

    Args:
        method: ``GET`` or ``POST``.
        url: The whole address.
        headers: Names and values.
        body: The body; empty where there is none.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


@frozen
class Timeouts:
    """How long to wait, in seconds; None waits for ever.

    Args:
        connect: For the connection: name, proxy and handshake of TLS included.
        first_byte: For the whole head of the reply, once there is a connection.
        between_bytes: For each further piece of the body.
    """

    connect: float | None = 10.0
    first_byte: float | None = 300.0
    between_bytes: float | None = 60.0


class HttpReply(Protocol):
    """A reply whose head has arrived; its body is read once, whole or in pieces."""

    @property
    def status(self) -> int:
        """The status of HTTP."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case, of a repeated one the last is kept."""

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            ModelTimeoutError: The next piece did not come in time.
            ModelStreamError: The connection ended before the body did.
            ModelProtocolError: The body is larger than allowed.
        """

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            ModelTimeoutError: The next piece did not come in time.
            ModelStreamError: The connection ended before the body did.
            ModelProtocolError: The body is larger than allowed.
        """


class Transport(Protocol):
    """Sends requests; one serves many turns, event loops and threads at once and keeps connections between requests."""

    def send(self, request: HttpRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[HttpReply]:
        """Send a request once; leaving the context gives the connection back or closes it.

        A cancel closes it at once, so that the server stops working for nobody. No redirect is followed, nothing is
        sent a second time, and no compression is asked for. No error holds a header, or more of the address than
        host and port, since both may hold a key.

        Args:
            request: What is sent.
            timeouts: How long to wait.

        Raises:
            ModelRequestError: The address or a header can not be used.
            ModelUnavailableError: The server is not reachable, or its certificate not trusted: nothing was sent.
            ModelTimeoutError: The connection, or the head of the reply, did not come in time.
            ModelStreamError: The connection ended before the reply; what the server did with the request is not known.
            ModelProtocolError: What replied does not speak HTTP/1.1, redirects, or announces too large a body.
        """

    async def aclose(self) -> None:
        """Close all connections."""
