"""One server over its whole life: started, its tools kept up to date, its calls made, started again where it ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from mcp_types import CallToolResult, Tool

from ..errors import ToolError
from ..tools.context import ToolContext
from .configuration import Http, Problem, ProblemKind, Server
from .connection import Connection, SessionExpired, Unavailable
from .tools import McpTool

_MAX_PAUSE = 60.0
_MIN_SECRET = 8
_SECRET_HEADERS = ("auth", "cookie", "key", "token", "secret", "credential")


class ServerClient:
    """What stands between the tools of one server and its connections.

    Args:
        name: The server's name.
        server: The server.
    """

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.tools: tuple[McpTool, ...] = ()
        self.version = 0
        self._server = server
        self._home = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._connection: Connection | None = None
        self._alive: set[Connection] = set()
        self._down = ""
        self._failures = 0
        self._not_before = 0.0
        self._notes: list[Problem] = []
        self._stale = False
        self._listing: asyncio.Task[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._closed = False
        self._secrets = _secrets_of(server)

    @property
    def problems(self) -> list[Problem]:
        """What is not as it should be, now."""
        connection = self._connection
        down = self._down or (connection.why() if connection is not None and connection.over else "")
        ended = [self._problem("not_running", down)] if down and not self._closed else []
        return [*ended, *self._notes]

    def _problem(self, kind: ProblemKind, text: str) -> Problem:
        return Problem(self.name, self.clean(text), kind)

    def clean(self, text: str) -> str:
        """Return the text without the secrets that the server was given."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    # --- its life ----------------------------------------------------------------------

    async def start(self) -> None:
        """Start the server and learn its tools; where that fails, ``problems`` says why."""
        with contextlib.suppress(Unavailable):
            await self._connected()

    def end(self) -> set[asyncio.Task[Any]]:
        """Let it end, with all that was begun; these tasks have ended when it has."""
        self._closed = True
        others = {task for task in (self._listing, *self._retiring) if task is not None}
        for task in others:
            task.cancel()
        return {*others, *(connection.end() for connection in self._alive)}

    def kill(self) -> None:
        """Let what has begun to end do so at once."""
        for connection in self._alive:
            connection.kill()

    async def refresh(self) -> None:
        """Ask for the tools anew; a server that does not run is started first."""
        connection = self._connection
        if connection is None or connection.over:
            self._not_before = 0.0
            await self.start()
        else:
            await self._list(connection)

    async def _connected(self, instead_of: Connection | None = None) -> Connection:
        """The connection, a new one where there is none that lives.

        A server that fails again and again is not started at each call: the pause grows, and the next call after it
        tries again.
        """
        async with self._lock:
            connection = self._connection
            if connection is not None and not connection.over and connection is not instead_of:
                return connection
            if self._closed:
                raise Unavailable("it was closed")
            if connection is not None:
                self._connection = None
                if connection.over:
                    if not self._down:
                        self._failed(connection.why())
                    await connection.close()
                else:  # the session is gone, but calls may still run in it
                    retiring = asyncio.create_task(connection.retire())
                    self._retiring.add(retiring)
                    retiring.add_done_callback(self._retiring.discard)
            if self._home.time() < self._not_before:
                raise Unavailable(self._down)
            return await self._connect()

    def _failed(self, why: str) -> None:
        self._down = why
        self._failures += 1
        # once is an accident
        self._not_before = self._home.time() + (min(_MAX_PAUSE, 2.0**self._failures) if self._failures > 1 else 0.0)

    async def _connect(self) -> Connection:
        from .. import __version__

        connection = Connection(self._server, __version__, self._changed)
        self._alive.add(connection)
        connection.task.add_done_callback(lambda _: self._alive.discard(connection))
        good = False
        try:
            async with asyncio.timeout(self._server.start_timeout):
                await connection.opened()
                await self._list(connection, strict=True)
            good = True
        except TimeoutError:
            known = connection.link_why()
            why = f"it did not start within {self._server.start_timeout:g} seconds{f': {known}' if known else ''}"
            self._failed(why)
            raise Unavailable(why) from None
        except Unavailable as exc:
            self._failed(str(exc))
            raise
        finally:
            if not good:
                await connection.close()
        self._connection = connection
        self._down = ""
        return connection

    # --- its tools ---------------------------------------------------------------------

    def _changed(self) -> None:
        self._stale = True
        if not self._closed and (self._listing is None or self._listing.done()):
            self._listing = self._home.create_task(self._list_again())

    async def _list_again(self) -> None:
        # one that changes its tools all the time is asked once more when the answer is there, not more often
        while self._stale and self._connection is not None and not self._connection.over:
            self._stale = False
            with contextlib.suppress(TimeoutError, Unavailable):
                async with asyncio.timeout(self._server.start_timeout):
                    await self._list(self._connection)

    async def _list(self, connection: Connection, strict: bool = False) -> None:
        try:
            listed, odd = await connection.tools()
        except Unavailable as exc:
            if strict:
                raise
            note = self._problem("listing", f"its tools could not be asked for anew: {exc}")
            self._notes = list(dict.fromkeys([*self._notes, note]))
            return
        notes = [self._problem("listing", text) for text in odd]
        self.tools = tuple(self._usable(listed, notes))
        self.version += 1
        self._notes = notes

    def _usable(self, listed: list[Tool], notes: list[Problem]) -> list[McpTool]:
        server = self._server
        unmatched = {*(server.allow or ()), *server.deny}
        made: list[McpTool] = []
        for tool in listed:
            denied = [entry for entry in server.deny if fnmatchcase(tool.name, entry)]
            allowed = [entry for entry in server.allow or () if fnmatchcase(tool.name, entry)]
            unmatched.difference_update(denied, allowed)
            if denied or (server.allow is not None and not allowed):
                continue
            if tool.execution is not None and tool.execution.task_support == "required":
                notes.append(self._problem("tool", f"its tool {tool.name!r} only runs as a task, so it is left out"))
                continue
            try:
                made.append(
                    McpTool(
                        self.name,
                        tool,
                        self._call,
                        self.clean,
                        timeout=server.timeout,
                        trust_hints=server.trust_hints,
                    )
                )
            except ValueError as exc:
                notes.append(self._problem("tool", f"{str(exc)[:300]}, so it is left out"))
        notes += [
            self._problem("filter", f"{entry!r} in its allow or deny list matches no tool")
            for entry in sorted(unmatched)
        ]
        if not listed:
            notes.append(self._problem("listing", "it offers no tools"))
        return made

    # --- calls -------------------------------------------------------------------------

    async def _call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> CallToolResult:
        """Make a call, from any event loop."""
        here = asyncio.get_running_loop()
        emit = context.emit if here is self._home else _from_afar(here, context.emit)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told: dict[str, Any] = {"progress": done}
            told |= {} if total is None else {"total": total}
            told |= {} if message is None else {"message": self.clean(message)}
            emit(told)

        try:
            # some servers never answer what they can not decode
            json.dumps(arguments, ensure_ascii=False).encode()
        except ValueError:
            raise ToolError("the arguments hold half a character, which can not be sent") from None
        try:
            if here is self._home:
                # a task of its own: the scopes of the client end in the task they began in, whatever becomes of this
                return await here.create_task(self._made(name, arguments, progress))
            if self._closed or not self._home.is_running():
                raise Unavailable("it was closed")
            far = asyncio.run_coroutine_threadsafe(self._made(name, arguments, progress), self._home)
            return await asyncio.wrap_future(far)
        except Unavailable as exc:
            raise ToolError(self.clean(f"the MCP server {self.name!r} is unavailable: {exc}")) from None
        except ToolError as exc:
            raise ToolError(self.clean(f"the MCP server {self.name!r} {exc}")) from None

    async def _made(self, name: str, arguments: dict[str, Any], progress: Any) -> CallToolResult:
        connection = await self._connected()
        try:
            result = await connection.call(name, arguments, progress)
        except SessionExpired:
            # the one case in which a call is made again: the server has said that it did not take it
            connection = await self._connected(instead_of=connection)
            try:
                result = await connection.call(name, arguments, progress)
            except SessionExpired:
                raise Unavailable("it forgets each session at once") from None
        self._failures = 0
        return result


def _from_afar(loop: asyncio.AbstractEventLoop, emit: Callable[[Any], None]) -> Callable[[Any], None]:
    def tell(data: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(emit, data)

    return tell


def _secrets_of(server: Server) -> list[str]:
    """What must stand in no text: headers that grant access, as a whole and in parts, and what an address holds."""
    if not isinstance(server, Http):
        return []
    found: set[str] = set()
    for name, value in server.headers.items():
        if any(word in name.lower() for word in _SECRET_HEADERS):
            found |= {value, *value.replace(";", " ").split()}
    if "?" in server.url:
        found |= {server.url, *(pair.partition("=")[2] for pair in server.url.partition("?")[2].split("&"))}
    return sorted((secret for secret in found if len(secret) >= _MIN_SECRET), key=len, reverse=True)
