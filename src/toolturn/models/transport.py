"""HTTP for models: one small protocol, and which of its implementations is used."""

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
    """Sends requests; one serves many turns at once and keeps connections between them."""

    def send(self, request: HttpRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[HttpReply]:
        """Send a request; leaving the context, by a cancel too, gives the connection back or closes it.

        Args:
            request: What is sent.
            timeouts: How long to wait.

        Raises:
            ModelUnavailableError: The server is not reachable.
            ModelTimeoutError: The connection, or the head of the reply, did not come in time.
            ModelProtocolError: What replied does not speak HTTP.
        """

    async def aclose(self) -> None:
        """Close all connections."""
