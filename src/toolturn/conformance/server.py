"""One scripted, strict server: the model's name picks the row, the key keeps runs apart."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

try:
    import h11
except ImportError:
    raise ImportError("the fault lab needs the library h11: pip install h11", name="h11") from None

from .replies import Reply
from .rows import Fault
from .validator import faults_of
from .wire import Wire, encoded, render

_ENDLESS = 100_000_000
_LARGEST_REQUEST = 50_000_000


@dataclass(frozen=True, slots=True)
class Received:
    """A request that arrived.

    Args:
        model: The name of the row.
        body: The body as JSON; None where it is none.
        faults: What a strict provider finds wrong with it.
        at: Seconds, on the monotonic clock.
        gone: When the client closed the connection while the reply was still awaited, on the same clock.
    """

    model: str
    body: Any
    faults: tuple[str, ...]
    at: float
    gone: float | None = None

    @property
    def messages(self) -> list[Any]:
        """The messages it holds."""
        given = self.body.get("messages") if isinstance(self.body, dict) else None
        return given if isinstance(given, list) else []

    @property
    def tools_allowed(self) -> bool:
        """Whether the model may call tools."""
        return bool(isinstance(self.body, dict) and self.body.get("tools") and self.body.get("tool_choice") != "none")


class LabServer:
    """Plays rows on loopback, in a thread of its own; a context manager.

    The key of a request (``Authorization: Bearer …``) names the run: each run of a row begins at its first reply. What
    stands behind ``#`` in it is the number of an act of the row, from 1.

    Args:
        rows: What can be played.
        split: Bytes per piece of every body; as the row says where 0.

    Attributes:
        base_url: Where it listens, once the context is entered.
    """

    def __init__(self, rows: Iterable[Fault], *, split: int = 0) -> None:
        self._rows = {row.name: row for row in rows}
        self._split = split
        self._received: dict[tuple[str, str], list[Received]] = {}
        self._stalled: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="fault lab", daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self.base_url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def received(self, row: str, key: str) -> tuple[Received, ...]:
        """Return the requests of a run so far.

        Args:
            row: The name of the row.
            key: The key of the run.
        """
        with self._lock:
            return tuple(self._received.get((row, key), ()))

    def stalls(self, row: str, key: str) -> bool:
        """Return whether a reply of a run is under way and nothing more of it will come.

        Args:
            row: The name of the row.
            key: The key of the run.
        """
        with self._lock:
            return (row, key) in self._stalled

    # --- in the thread -------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._listen())
        except BaseException as exc:  # noqa: BLE001 - told to who entered the context
            self._failure = exc
        finally:
            self._ready.set()
            self._loop.close()

    async def _listen(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await _Connection(self, reader, writer).serve()
            except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
                pass  # the client went away, or the lab closes
            finally:
                tasks.discard(task)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def awaited(self, run: tuple[str, str], number: int, gone: bool) -> None:
        """Keep that a reply is awaited in vain, or that its client has gone."""
        with self._lock:
            self._stalled.add(run)
            if gone:
                received = self._received[run]
                received[number - 1] = replace(received[number - 1], gone=time.monotonic())

    def reply_to(self, method: str, path: str, key: str, data: bytes) -> tuple[Wire, tuple[str, str], int]:
        """Return what is sent for a request, of which run it is and its number there, and keep the request."""
        path = path.partition("?")[0].rstrip("/")
        if method == "GET" and path.endswith("/models"):
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "lab"} for name in self._rows]
            return _plain(200, {"object": "list", "data": listed}), ("", key), 0
        if method != "POST" or not path.endswith("/chat/completions"):
            missing = _error(f"there is no {method} {path} here", "invalid_request_error", "not_found")
            return _plain(404, missing), ("", key), 0
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        name = str(body.get("model", "") if isinstance(body, dict) else "").rpartition("/")[2]
        row = self._rows.get(name)
        with self._lock:
            run = self._received.setdefault((name, key), [])
            takes = row is None or row.choice_none
            request = Received(name, body, tuple(faults_of(body, choice_none=takes)), time.monotonic())
            run.append(request)
            number = len(run)
        if row is None or not isinstance(body, dict):
            missing = _error(f"there is no model {name!r}", "invalid_request_error", "model_not_found")
            return _plain(404, missing), (name, key), number
        if not row.choice_none and body.get("tool_choice") == "none":
            refused = _error("tool_choice must be auto", "invalid_request_error", "invalid_value")
            return _plain(400, refused), (name, key), number
        options = body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        chosen = _chosen(row, key, number, request.tools_allowed)
        wire = render(chosen, model=name, number=number, stream=body.get("stream") is True, usage=usage)
        if self._split and wire.status is not None:
            whole = b"".join(wire.pieces)
            pieces = tuple(whole[at : at + self._split] for at in range(0, len(whole), self._split))
            wire = replace(wire, pieces=pieces)
        return wire, (name, key), number


def _chosen(row: Fault, key: str, number: int, tools_allowed: bool) -> Reply:
    act = int(key.rpartition("#")[2]) if "#" in key else 0
    if act:
        replies = row.acts[act - 1].replies
        return replies[min(number, len(replies)) - 1]
    if row.forced is not None and not tools_allowed:
        return row.forced
    return row.replies[min(number, len(row.replies)) - 1]


def _error(message: str, kind: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _plain(status: int, value: Any) -> Wire:
    return Wire(status, (("content-type", "application/json"),), (encoded(value),))


class _Connection:
    """One connection: requests are read by the rules, replies are written as the row wants them."""

    def __init__(self, server: LabServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        while True:
            event = await self._next()
            if not isinstance(event, h11.Request):
                return
            data = bytearray()
            while isinstance(part := await self._next(), h11.Data):
                data += part.data
                if len(data) > _LARGEST_REQUEST:
                    return
            key = ""
            for name, value in event.headers:
                if name == b"authorization":
                    key = value.decode("latin-1").rpartition(" ")[2]
            wire, run, number = self._server.reply_to(event.method.decode(), event.target.decode(), key, bytes(data))
            await asyncio.sleep(wire.delay)
            if not await self._send(wire, run, number):
                return
            self._http.start_next_cycle()

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(65536))
        return event

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()
            await asyncio.sleep(0)  # each piece by itself, as far as that is ours to say

    async def _send(self, wire: Wire, run: tuple[str, str], number: int) -> bool:
        """Send a reply; False where the connection must not be used again."""
        if wire.status is None:
            await self._write(b"".join(wire.pieces))
            return False
        headers = list(wire.headers)
        if wire.chunked:
            headers.append(("transfer-encoding", "chunked"))
        else:
            missing = 0 if wire.ending in ("whole", "closes") else 100
            headers.append(("content-length", str(sum(map(len, wire.pieces)) + missing)))
        await self._write(self._http.send(h11.Response(status_code=wire.status, headers=headers, reason=b"")))
        for piece in wire.pieces:
            await self._write(self._http.send(h11.Data(data=piece)))
        match wire.ending:
            case "stall":
                self._server.awaited(run, number, gone=False)
                try:
                    await self._reader.read()  # until the client gives up
                finally:
                    self._server.awaited(run, number, gone=True)
                return False
            case "endless":
                filler = b"".join(wire.pieces)
                filler *= max(1, 1_000_000 // len(filler))
                for _ in range(_ENDLESS // len(filler)):
                    await self._write(self._http.send(h11.Data(data=filler)))
                await self._reader.read()
                return False
            case "cut":
                return False
        await self._write(self._http.send(h11.EndOfMessage()))
        return wire.ending != "closes" and self._http.our_state is not h11.MUST_CLOSE
