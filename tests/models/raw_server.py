"""A server on loopback whose every byte a test writes itself."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
SECONDS = 10.0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test in an event loop of its own, bounded."""

    async def bounded() -> T:
        async with asyncio.timeout(SECONDS * 2):
            return await coroutine

    return asyncio.run(bounded())


@dataclass
class Received:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """One connection, from the server's side."""

    def __init__(self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self.reader = reader
        self.writer = writer

    async def request(self) -> Received | None:
        """Read the next request; None where the client closed instead."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, *lines = head.decode("latin-1").strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        received = Received(line, headers, body)
        self._server.requests.append(received)
        self._server.told.set()
        return received

    async def send(self, data: bytes) -> None:
        """Write bytes and hand them to the system."""
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def reply(self, body: bytes = b"ok", head: str = "HTTP/1.1 200 OK") -> None:
        """Write a whole reply."""
        await self.send(f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        async with asyncio.timeout(SECONDS):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(65536):
                    pass
        self._server.left.set()

    def tell_that_it_left(self) -> None:
        self._server.count_of_left.release()

    def reset(self) -> None:
        """Break the connection off, not politely."""
        self.writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class RawServer:
    """What a script has seen so far."""

    script: Script
    port: int = 0
    connections: int = 0
    requests: list[Received] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    count_of_left: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    failures: list[BaseException] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/chat"

    async def has_request(self) -> None:
        """Wait until a request has come."""
        async with asyncio.timeout(SECONDS):
            await self.told.wait()

    async def client_left(self) -> None:
        """Wait until a script saw its client leave."""
        async with asyncio.timeout(SECONDS):
            await self.left.wait()

    def wait_until_one_left(self) -> None:
        """Wait, in another thread, until one more client has left."""
        assert self.count_of_left.acquire(timeout=SECONDS)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._play(Peer(self, reader, writer)))
        self.tasks.add(task)

    async def _play(self, peer: Peer) -> None:
        try:
            await self.script(peer)
            if peer.writer.can_write_eof():
                with contextlib.suppress(OSError):
                    peer.writer.write_eof()
        except asyncio.CancelledError:
            pass
        except BaseException as exc:  # the test must hear of it
            self.failures.append(exc)
        finally:
            peer.writer.close()


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Run a script for each connection."""
    raw = RawServer(script)
    server = await asyncio.start_server(raw.accept, "127.0.0.1", 0, ssl=tls, backlog=1024)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        for task in raw.tasks:
            task.cancel()
        await asyncio.gather(*raw.tasks)
        # sockets are closed by callbacks of the loop
        for _ in range(5):
            await asyncio.sleep(0)
    assert raw.failures == []


async def answering(peer: Peer) -> None:
    """Answer each request with ``ok``."""
    while await peer.request() is not None:
        await peer.reply()


@contextlib.contextmanager
def serving_in_a_thread(script: Script) -> Iterator[RawServer]:
    """Run a server beside tests that have no event loop, or several."""
    ready: list[RawServer] = []
    started = threading.Event()
    ends: list[Callable[[], object]] = []

    async def main() -> None:
        end = asyncio.Event()
        async with serving(script) as raw:
            loop = asyncio.get_running_loop()
            ends.append(lambda: loop.call_soon_threadsafe(end.set))
            ready.append(raw)
            started.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert started.wait(SECONDS)
        yield ready[0]
    finally:
        ends[0]()
        thread.join(SECONDS)
