"""A server as a process: its messages line by line, each bounded, and an end that is certain.

The client's own transport puts no bound on a line, copies what it has of one for each further piece, and tells nobody
what the process wrote or why it ended; so this is one of our own over the client's session.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, RequestId, jsonrpc_message_adapter

from .configuration import Stdio

_TAIL = 2000
_SAMPLE = 120
_LAST_WORDS = 0.5
_POLL = 0.01

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

_groups: set[int] = set()
"""The process groups of servers that run; what is left of them when the interpreter ends is killed."""


@atexit.register
def _kill_all() -> None:
    for pid in list(_groups):
        _signal_group(pid, kill=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_groups.clear)  # they belong to the parent


class StdioLink:
    """One run of a server's process.

    Args:
        server: What to run.
    """

    def __init__(self, server: Stdio) -> None:
        self._server = server
        self._process: _Process | None = None
        self._rubbish = 0
        self._sample = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Start the process; leaving the context ends it and everything it has started.

        Raises:
            OSError: It can not be started.
        """
        # no await between the start and the try: a cancel in the gap would leave the process alone
        process = self._process = await _start(self._server)
        tasks: list[asyncio.Task[None]] = []
        try:
            incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
            tasks.append(asyncio.create_task(self._read(process, incoming)))
            tasks.append(asyncio.create_task(self._write(process, outgoing, incoming)))
            async with incoming, read_stream, write_stream, outgoing:
                yield read_stream, write_stream
        finally:
            try:
                await process.end(self._server.close_timeout)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def kill(self) -> None:
        """Kill the process and all it has started, now."""
        if self._process is not None:
            _signal_group(self._process.pid, kill=True)

    def why(self) -> str:
        """Return what is known of why it does not work, for people; empty where nothing is."""
        process = self._process
        if process is None:
            return ""
        parts = []
        if process.ended_itself:
            code = process.exited.result()
            parts.append(f"its process ended with {f'signal {-code}' if code < 0 else f'code {code}'}")
        if self._rubbish:
            parts.append(f"it printed what is no message to its standard output, first {self._sample!r}")
        if words := process.last_words():
            parts.append(f"its last words were: {words}")
        return "; ".join(parts)

    # --- from the server ---------------------------------------------------------------

    async def _read(self, process: _Process, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with incoming:
                while (message := await self._message(process.stdout, incoming)) is not None:
                    if message:
                        await incoming.send(message)
        # nobody listens any more, but one who waits for his output to be taken would not end
        while await process.stdout.read(65536):
            pass

    async def _message(
        self, stdout: asyncio.StreamReader, incoming: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> SessionMessage | Literal[False] | None:
        """The next message; False for a line that is none, None at the end."""
        try:
            line = await stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError as exc:
            # the last line may lack its end, or be half a message: then who waits is told that the process ended
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(exc.partial, by_name=False))
            except ValueError:
                return None
        except asyncio.LimitOverrunError as exc:
            return await self._too_large(stdout, exc.consumed, incoming)
        if not line.strip():
            return False
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            return self._refused(line[:_TAIL], line[-_TAIL:], "a message that can not be read") or False

    async def _too_large(
        self,
        stdout: asyncio.StreamReader,
        held: int,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> SessionMessage | Literal[False]:
        """Skip a line over the bound; whoever waits for it is told as soon as it is known who that is."""
        why = f"a message of more than {self._server.max_bytes} bytes"
        piece = await stdout.readexactly(held)
        head, tail = piece[:_TAIL], piece[-_TAIL:]
        if told := self._refused(head, b"", why):
            await incoming.send(told)
        while True:
            try:
                tail = (tail + await stdout.readuntil(b"\n"))[-_TAIL:]
            except asyncio.LimitOverrunError as exc:
                tail = (await stdout.readexactly(exc.consumed))[-_TAIL:]
            except asyncio.IncompleteReadError:
                return False
            else:
                return False if told else self._refused(head, tail, why) or False

    def _refused(self, head: bytes, tail: bytes, why: str) -> SessionMessage | None:
        """An error for whoever waits for the reply that begins and ends so."""
        number = _id_in(head, tail)
        if number is None:
            self._rubbish += 1
            self._sample = self._sample or head[:_SAMPLE].decode("utf-8", "replace").strip()
            return None
        error = ErrorData(code=PARSE_ERROR, message=f"the server sent {why}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))

    # --- to the server -----------------------------------------------------------------

    async def _write(
        self,
        process: _Process,
        outgoing: MemoryObjectReceiveStream[SessionMessage],
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with outgoing:
                async for item in outgoing:
                    message = item.message
                    try:
                        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                    except ValueError:
                        if isinstance(message, JSONRPCRequest):
                            error = ErrorData(code=PARSE_ERROR, message="the request can not be written as JSON")
                            await incoming.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error)))
                        continue
                    if not await process.write(data + b"\n"):
                        break
        # its input is closed: the session has to know, or a call would wait for ever
        incoming.close()


_VALUE = rb'("[^"\\]{1,100}"|[0-9]{1,15})'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_HEAD = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb',\s*)?"id"\s*:\s*' + _VALUE + rb"\s*,")
_END = re.compile(rb'"id"\s*:\s*' + _VALUE + rb"\s*(?:,\s*" + _VERSION + rb")?\}\s*$")


def _id_in(head: bytes, tail: bytes) -> RequestId | None:
    """The id of a reply of which only beginning and end are known."""
    if not head.lstrip().startswith(b"{") or b'"method"' in head[:200]:
        return None
    found = _HEAD.match(head) or _END.search(tail)
    if found is None:
        return None
    text = found[1].decode("utf-8", "replace")
    return text[1:-1] if text.startswith('"') else int(text)


# --- the process -------------------------------------------------------------------------


async def _start(server: Stdio) -> _Process:
    env = get_default_environment() | dict(server.env)
    command = _program(server, env)
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NO_WINDOW}
    loop = asyncio.get_running_loop()
    _, process = await loop.subprocess_exec(
        lambda: _Process(loop, server.max_bytes), command, *server.args, env=env, cwd=server.cwd, **options
    )
    return process


def _program(server: Stdio, env: dict[str, str]) -> str:
    if server.cwd is not None and not os.path.isdir(server.cwd):
        raise FileNotFoundError(f"there is no folder {server.cwd!r}")
    found = shutil.which(server.command, path=env.get("PATH"))
    if found is None and server.command == "python":
        found = sys.executable  # some systems have none of this name outside of an environment
    if found is None:
        if not os.path.exists(server.command):
            raise FileNotFoundError(f"there is no program {server.command!r}")
        found = server.command  # what is wrong with it is told by who runs it
    return found


class _Process(asyncio.SubprocessProtocol):
    """The pipes of a process: its output in a bounded buffer, the end of what it complained of, and its exit."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._loop = loop
        self.stdout = asyncio.StreamReader(limit=limit, loop=loop)
        self.exited: asyncio.Future[int] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._complaints = b""
        self._ended = False
        self._asked = False
        self.ended_itself = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid()
        _groups.add(self.pid)
        self.stdout.set_transport(self._pipe(1))

    def _pipe(self, number: int) -> Any:
        return self._transport.get_pipe_transport(number)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaints = (self._complaints + data)[-_TAIL:]
        elif not self._ended:
            self.stdout.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._end_of_output()
        elif fd == 0:
            self._writable.set()

    def _end_of_output(self) -> None:
        if not self._ended:
            self._ended = True
            self.stdout.feed_eof()

    def process_exited(self) -> None:
        self.ended_itself = not self._asked
        if not self.exited.done():
            self.exited.set_result(self._transport.get_returncode() or 0)
        # one it has started may hold the pipe open; what it has said itself is there by then
        self._loop.call_later(_LAST_WORDS, self._end_of_output)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_of_output()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def write(self, data: bytes) -> bool:
        """Write to its input as fast as it reads; False where it is closed."""
        pipe = self._pipe(0)
        await self._writable.wait()
        if pipe.is_closing():
            return False
        pipe.write(data)
        await self._writable.wait()
        return True

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, in one line."""
        text = self._complaints.decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-3:])[-400:]

    async def end(self, step: float) -> None:
        """End the process and its group: input closed, asked to end, killed; each step is given its time.

        Args:
            step: Seconds for each of the first two.
        """
        # one whose output has ended was on its way by itself
        self._asked = not self._ended
        try:
            self._pipe(0).close()
            await asyncio.wait((self.exited,), timeout=step)
            if _alive(self.pid, self.exited):
                _signal_group(self.pid, kill=False)
                await _until_gone(self.pid, self.exited, step)
        finally:  # a cancel only shortens this
            if _alive(self.pid, self.exited):
                _signal_group(self.pid, kill=True)
            _groups.discard(self.pid)
            try:
                await asyncio.wait((self.exited,), timeout=2.0)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    self._transport.close()
            await asyncio.wait((self._closed,), timeout=1.0)


async def _until_gone(pid: int, exited: asyncio.Future[int], seconds: float) -> None:
    """Wait for the whole group, of which nobody tells that it has ended."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while _alive(pid, exited) and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_POLL)


def _alive(pid: int, exited: asyncio.Future[int]) -> bool:
    """Whether the process, or one of its group, runs."""
    if sys.platform == "win32":
        return not exited.done()
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return not exited.done()
    return True


def _signal_group(pid: int, *, kill: bool) -> None:
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, check=False)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if kill else signal.SIGTERM)
