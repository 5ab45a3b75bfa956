"""A transport of one page, over asyncio's streams and h11: how small one can be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import h11

from toolturn.models.transport import MAX_BYTES, HttpReply, HttpRequest, Timeouts
from toolturn.models.transports import failures
from toolturn.models.transports.address import Address, address_of, check_headers
from toolturn.models.transports.loops import PerLoop
from toolturn.models.transports.trust import trusted_by_the_system


class H11Transport:
    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._idle: PerLoop[list[_Line]] = PerLoop(list, _close)

    @asynccontextmanager
    async def send(self, request: HttpRequest, timeouts: Timeouts) -> AsyncIterator[HttpReply]:
        address = address_of(request.url)
        check_headers(request.headers)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        idle = self._idle.get()
        kept = [line for line in idle if line.place == (address.secure, address.place) and not line.reader.at_eof()]
        line = kept[-1] if kept else await _Line.open(address, timeouts.connect)
        if kept:
            idle.remove(line)
        try:
            headers = {"host": address.place, "accept-encoding": "identity", **request.headers}
            headers["content-length"] = str(len(request.body))
            latin = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
            line.send(
                h11.Request(
                    method=request.method,
                    target=address.target,
                    headers=latin,
                )
            )
            line.send(h11.Data(data=request.body))
            line.send(h11.EndOfMessage())
            reply = _Reply(line, address, timeouts, self._max_bytes)
            await reply.head()
            yield reply
        finally:
            states = {line.http.our_state, line.http.their_state}
            if states == {h11.DONE} and line.http.trailing_data == (b"", False):
                line.http.start_next_cycle()
                idle.append(line)
            else:
                line.writer.transport.abort()

    async def aclose(self) -> None:
        await self._idle.aclose()


class _Line:
    place: tuple[bool, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, address: Address, seconds: float | None) -> _Line:
        line = cls()
        line.place = (address.secure, address.place)
        line.http = h11.Connection(h11.CLIENT)
        trust = trusted_by_the_system() if address.secure else None
        try:
            async with asyncio.timeout(seconds):
                line.reader, line.writer = await asyncio.open_connection(address.host, address.port, ssl=trust)
        except TimeoutError:
            raise failures.no_connection_in_time(address, seconds or 0) from None
        except OSError as exc:
            raise failures.unreachable(address, exc) from None
        return line

    def __init__(self) -> None:
        self.http = h11.Connection(h11.CLIENT)
        self.heard = False

    def send(self, event: Any) -> None:
        self.writer.write(self.http.send(event) or b"")

    async def event(self) -> Any:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            data = await self.reader.read(65536)
            self.heard = self.heard or data != b""
            self.http.receive_data(data)
        return event


async def _close(lines: list[_Line]) -> None:
    for line in lines:
        line.writer.transport.abort()
    await asyncio.sleep(0)


class _Reply:
    def __init__(self, line: _Line, address: Address, timeouts: Timeouts, max_bytes: int) -> None:
        self._line, self._address, self._timeouts, self._max_bytes = line, address, timeouts, max_bytes
        self.status = 0
        self.headers: dict[str, str] = {}

    async def head(self) -> None:
        self._line.heard = False
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                while type(event := await self._line.event()) is h11.InformationalResponse:
                    pass
        except TimeoutError:
            raise failures.no_reply_in_time(self._address, self._timeouts.first_byte or 0) from None
        except h11.RemoteProtocolError as exc:
            if exc.error_status_hint == 431:
                raise failures.endless_head(self._address) from None
            raise failures.no_http(self._address) if self._line.heard else failures.no_reply(self._address) from None
        except OSError:
            raise failures.no_reply(self._address) from None
        if type(event) is not h11.Response:
            raise failures.no_reply(self._address)
        self.status = event.status_code
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        failures.check_head(self._address, self.status, self.headers, self._max_bytes)

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        size = 0
        while True:
            try:
                async with asyncio.timeout(self._timeouts.between_bytes):
                    event = await self._line.event()
            except TimeoutError:
                raise failures.no_more_in_time(self._address, self._timeouts.between_bytes or 0) from None
            except (h11.RemoteProtocolError, OSError):
                raise failures.broken_off(self._address) from None
            if type(event) is not h11.Data:
                return
            size += len(event.data)
            if size > self._max_bytes:
                raise failures.too_large(self._address, self._max_bytes)
            yield bytes(event.data)
