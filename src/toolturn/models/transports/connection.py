"""One HTTP/1.1 connection: a request out, a reply in, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from ...errors import ModelError
from . import failures
from .address import Address

_MAX_HEAD = 256_000
_PAUSE_ABOVE = 1_000_000
_LINGER_SECONDS = 0.1
_LINGER_PIECES = 10


class Connection(asyncio.Protocol):
    """A connection; at each moment it serves one exchange or none.

    Waiting is done with one future and one timer at a time, and what ends an exchange is kept as the error that its
    reader is to get: nothing is raised inside the callbacks of the event loop.

    Args:
        loop: The loop it lives in.
        address: Who is at the other end.
        max_bytes: How large a body may be.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, address: Address, max_bytes: int) -> None:
        self._loop = loop
        self._address = address
        self._max_bytes = max_bytes
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[bool] | None = None
        self.idle_since = 0.0
        self.closed = False
        self._ended: Callable[[Connection, bool], None] | None = None
        self._lingers: asyncio.TimerHandle | None = None
        self._reset(active=False)

    def _reset(self, *, active: bool) -> None:
        self._active = active
        self._begun = False
        self._head_size = 0
        self._head_done = False
        self._until_close = False
        self._keep = False
        self._interim = False
        self._complete = False
        self._paused = False
        self._size = 0
        self._pieces: list[bytes] = []
        self._error: ModelError | None = None
        self.status = 0
        self.headers: dict[str, str] = {}

    # what the exchange calls

    def start(self, head: bytes, body: bytes) -> None:
        """Send a request."""
        assert self._transport is not None
        self._reset(active=True)
        if len(body) > 65536:
            self._transport.write(head)
            self._transport.write(body)
        else:
            self._transport.write(head + body)

    async def head(self, seconds: float | None) -> None:
        """Wait for the head of the reply.

        Args:
            seconds: How long at most.
        """
        deadline = None if seconds is None else self._loop.time() + seconds
        while not self._head_done:
            if self._error is not None:
                raise self._error
            if not await self._wait(deadline):
                raise failures.no_reply_in_time(self._address, seconds or 0.0)
        failures.check_head(self._address, self.status, self.headers, self._max_bytes)

    async def tunnel(self, head: str) -> int:
        """Ask a proxy for a tunnel and return its status; what comes after that is no longer HTTP.

        Args:
            head: The request.
        """
        self.start(head.encode("latin-1"), b"")
        while not self._head_done:
            if self._error is not None:
                raise self._error
            await self._wait(None)
        self._active = False
        return self.status

    async def read(self, seconds: float | None) -> bytes:
        """Return the body, or what of it was not taken yet.

        Args:
            seconds: How long a gap in it may be.
        """
        while not self._complete:
            await self._more(seconds)
        if self._error is not None:
            raise self._error
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def piece(self, seconds: float | None) -> bytes | None:
        """Return what of the body has arrived since the last time, as soon as there is some; None at its end.

        Args:
            seconds: How long to wait for it.
        """
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._complete:
                return None
            await self._more(seconds)
        pieces, self._pieces = self._pieces, []
        self._resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _more(self, seconds: float | None) -> None:
        """Wait until something arrived."""
        if self._error is not None:
            raise self._error
        self._resume()
        if not await self._wait(None if seconds is None else self._loop.time() + seconds):
            raise failures.no_more_in_time(self._address, seconds or 0.0)

    async def _wait(self, deadline: float | None) -> bool:
        """Wait for the next callback; False when the deadline is first."""
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiter = waiter
        timer = None if deadline is None else self._loop.call_at(deadline, _give, waiter, False)
        try:
            return await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def release(self, ended: Callable[[Connection, bool], None], *, linger: bool) -> None:
        """End the exchange; ``ended`` is told, now or soon, whether the connection can serve another.

        Args:
            ended: Called once.
            linger: Whether what is missing of the body may still come for a moment: the content of a stream is
                complete before its last chunk, and often before that has arrived.
        """
        self._ended = ended
        self._resume()
        if self._complete or not linger or self.closed or self._until_close:
            self._end()
        else:
            self._pieces = []
            self._lingers = self._loop.call_later(_LINGER_SECONDS, self._end)

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if self._lingers is not None:
            self._lingers.cancel()
            self._lingers = None
        if ended is None:
            return
        reusable = (
            self._complete
            and self._keep
            and not self._until_close
            and self.usable
            and self._transport is not None
            and self._transport.get_write_buffer_size() == 0
        )
        self._active = False
        if not reusable:
            self.abort()
        ended(self, reusable)

    @property
    def usable(self) -> bool:
        """Whether it is open, as far as the event loop has seen."""
        return not self.closed and self._transport is not None and not self._transport.is_closing()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # those of other event loops are no subclass of it
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._active or self._complete:
            # nobody asked: this can be no reply to what is sent next
            self.abort()
            return
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(failures.no_http(self._address))
        except httptools.HttpParserError:
            if self._complete:
                # the reply is whole; what follows it is nothing that was asked for
                self.abort()
            else:
                self._fail(failures.broken_off(self._address) if self._head_done else failures.no_http(self._address))
        if not self._head_done:
            self._head_size += len(data)
            if self._head_size > _MAX_HEAD:
                self._fail(failures.endless_head(self._address))
        elif self._size > self._max_bytes:
            self._fail(failures.too_large(self._address, self._max_bytes))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._active and not self._complete:
            if self._head_done and self._until_close and exc is None:
                self._complete = True
            elif self._head_done:
                self._fail(failures.broken_off(self._address))
            elif self._begun and self._error is None:
                self._fail(failures.broken_off(self._address) if self.status else failures.no_http(self._address))
            else:
                self._fail(failures.no_reply(self._address))
        self._wake()

    def _fail(self, error: ModelError) -> None:
        if self._error is None:
            self._error = error
        self.abort()

    def _wake(self) -> None:
        if self._waiter is not None:
            _give(self._waiter, True)
        elif self._ended is not None and (self._complete or self.closed or len(self._pieces) > _LINGER_PIECES):
            self._end()

    # what the parser calls

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("a second reply")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._interim = 100 <= self.status < 200
        if self._interim:
            self.headers = {}
            self.status = 0
            return
        self._head_done = True
        headers = self.headers
        self._until_close = (
            "content-length" not in headers
            and ("chunked" not in headers.get("transfer-encoding", "").lower())
            and self.status not in (204, 304)
        )

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size <= self._max_bytes:
            self._pieces.append(body)
        if self._size > _PAUSE_ABOVE and not self._paused and self._transport is not None and self._waiter is None:
            # nobody is waiting for it: it need not be fetched any faster than it is used
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self._interim:
            self._complete = True
            self._keep = bool(self._parser.should_keep_alive())


def _give(waiter: asyncio.Future[bool], value: bool) -> None:
    if not waiter.done():
        waiter.set_result(value)
