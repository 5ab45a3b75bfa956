"""One connection to a server, alive in a task of its own, and what a request over it can come to."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection
from typing import Any

import anyio
import httpx2
from mcp import ClientSession, MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter, ValidationError

from ..errors import ToolError
from .configuration import Server, Stdio
from .http import HttpLink, statuses
from .stdio import StdioLink
from .wire import Dispatcher

# what the client tells its log is told here in errors and problems; without a handler it would go to standard error
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

MAX_PAGES = 200
_PING = 5.0
_REASON_WAIT = 1.0
_ABRUPT = 5.0
_MAX_TEXT = 2000
_NOTHING_TOLD = ("Server returned an error response", "Not Found", "Connection closed")
_NOT_KNOWN = "whether the call had an effect is not known"

_called: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class Unavailable(Exception):
    """A server can not be used; the text says why, for people."""


class SessionExpired(Exception):
    """The server no longer knows the session; what was asked has not been done."""


class Connection:
    """A running server and the session with it.

    Enter and leave of everything below happen in one task, which is ended by :meth:`end`; requests come from any task
    of the same event loop.

    Args:
        server: The server.
        version: Of this library, which servers are told.
        changed: Is called when the server says that its tools have changed.
    """

    def __init__(self, server: Server, version: str, changed: Callable[[], None]) -> None:
        self._server = server
        self._version = version
        self._changed = changed
        self._link = StdioLink(server) if isinstance(server, Stdio) else HttpLink(server)
        self._scope = anyio.CancelScope()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session: ClientSession | None = None
        self._dispatcher: Dispatcher | None = None
        self._failure: BaseException | None = None
        self._closing = False
        self._suspect = False
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.over = False
        self.task = asyncio.create_task(self._live())

    # --- its life ----------------------------------------------------------------------

    async def _live(self) -> None:
        try:
            async with self._link.open() as (read_stream, write_stream):
                self._dispatcher = Dispatcher(read_stream, write_stream, self._end)
                info = Implementation(name="toolturn", version=self._version)
                async with ClientSession(
                    dispatcher=self._dispatcher, client_info=info, message_handler=self._heard
                ) as session:
                    with self._scope:
                        await _shake_hands(session)
                        self._session = session
                        if not self._opened.done():
                            self._opened.set_result(None)
                        await anyio.sleep_forever()
        except Exception as exc:  # noqa: BLE001 - whatever ends a connection, in groups or alone
            self._failure = exc
        finally:
            self._end()
            if not self._opened.done():
                self._opened.set_exception(Unavailable(self.why()))
            self._opened.exception()  # who did not wait is told by the next call

    def _end(self) -> None:
        self.over = True
        self._scope.cancel()

    async def _heard(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def opened(self) -> None:
        """Wait until requests can be made.

        Raises:
            Unavailable: The server did not start.
        """
        await asyncio.shield(self._opened)

    def end(self) -> asyncio.Task[None]:
        """Let the connection and the server's process end; the task has ended when both have."""
        self._closing = True
        self._end()
        return self.task

    def kill(self) -> None:
        """Let what has begun to end do so at once."""
        self._link.kill()

    async def close(self) -> None:
        """End the connection; a cancel makes it abrupt."""
        await ended([self.end()], self.kill)

    async def retire(self) -> None:
        """End the connection when the calls that still run over it have ended."""
        try:
            await self._idle.wait()
        finally:
            await self.close()

    def why(self) -> str:
        """Return why it has ended, for people."""
        if self._closing:
            return "it was closed"
        told = [_failure_text(_innermost(self._failure), self._link.why()), self._link.why()]
        return "; ".join(filter(None, told)) or "the connection has ended"

    def link_why(self) -> str:
        """Return what its process or its address tells, for people; empty where nothing is known."""
        return self._link.why()

    # --- requests ----------------------------------------------------------------------

    async def tools(self) -> tuple[list[Tool], list[str]]:
        """Ask for all tools, page by page.

        Returns:
            The tools, and a sentence for each thing that is odd.

        Raises:
            Unavailable: There is no list to be had.
        """
        session, dispatcher = self._session, self._dispatcher
        assert session is not None
        assert dispatcher is not None
        dispatcher.left_out.clear()
        found: dict[str, Tool] = {}
        odd: list[str] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._page(session, cursor)
            odd += [
                f"it has several tools of the name {tool.name[:100]!r}; the first one is used"
                for tool in page.tools
                if found.setdefault(tool.name, tool) != tool
            ]
            cursor = page.next_cursor
            if not cursor:
                break
            if cursor in seen:
                odd.append("its list of tools leads back to where it was; what came until then is used")
                break
            seen.add(cursor)
        else:
            odd.append(f"its list of tools has more than {MAX_PAGES} pages; the first ones are used")
        return list(found.values()), [*dispatcher.left_out, *dict.fromkeys(odd)]

    async def _page(self, session: ClientSession, cursor: str | None) -> ListToolsResult:
        try:
            return await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as exc:
            if exc.code == METHOD_NOT_FOUND:
                return ListToolsResult(tools=[])
            if self.over or _is_closing(exc):
                await self._until_over()
                raise Unavailable(self.why()) from None
            raise Unavailable(f"it does not tell its tools: {_short(exc.message)}") from None
        except ValidationError:
            raise Unavailable("its list of tools is none of the protocol") from None

    async def call(self, name: str, arguments: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Call a tool.

        Raises:
            Unavailable: The call was not made.
            SessionExpired: The call was not made.
            ToolError: It was made, or may have been, and gave no result.
        """
        session = self._session
        if self.over or session is None:
            raise Unavailable(self.why())
        if self._suspect:
            await self._ask_for_life(session)
        heard: list[tuple[int, bool]] = []
        token = statuses.set(heard)
        self._calls += 1
        self._idle.clear()
        try:
            request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
            result = await session.send_request(request, _called, progress_callback=progress)
        except MCPError as exc:
            if heard and heard[-1] == (404, True):
                raise SessionExpired from None
            raise await self._no_result(exc, heard) from None
        except (ValidationError, RuntimeError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as exc:
            raise ToolError(f"gave no valid result ({type(exc).__name__})") from None
        except asyncio.CancelledError:
            self._suspect = True  # a time-out, most likely: it may hang
            raise
        finally:
            statuses.reset(token)
            self._calls -= 1
            if not self._calls:
                self._idle.set()
        if isinstance(result, InputRequiredResult):
            raise ToolError("asks for input that can not be given here")
        return result

    async def _no_result(self, exc: MCPError, heard: list[tuple[int, bool]]) -> ToolError:
        if self.over or _is_closing(exc):
            await self._until_over()
            return ToolError(f"is unavailable: {self.why()}; {_NOT_KNOWN}")
        if exc.code == CONNECTION_CLOSED and exc.message.startswith("SSE stream"):
            return ToolError(f"broke off its reply: {_short(exc.message)}; {_NOT_KNOWN}")
        if heard and heard[-1][0] >= 400 and exc.message in _NOTHING_TOLD:
            return ToolError(f"answered HTTP {heard[-1][0]}")
        return ToolError(f"refused the call: {_short(exc.message) or f'error {exc.code} without a text'}")

    async def _ask_for_life(self, session: ClientSession) -> None:
        """After a call that was given up: is there anybody?"""
        try:
            async with asyncio.timeout(_PING):
                await session.send_ping()
        except TimeoutError:
            raise Unavailable("it does not answer any more") from None
        except (MCPError, ValidationError):
            pass  # an answer all the same
        self._suspect = False
        if self.over:
            raise Unavailable(self.why())

    async def _until_over(self) -> None:
        """Give the end of the connection the time to say why."""
        await asyncio.wait((self.task,), timeout=_REASON_WAIT)


async def ended(tasks: Collection[asyncio.Task[Any]], kill: Callable[[], None]) -> None:
    """Wait until tasks that clean up have ended.

    Args:
        tasks: What is waited for.
        kill: Makes them end at once; called where this is cancelled. The tasks are not cancelled for it: the client
            may take that for a cancel of its own.
    """
    if not tasks:
        return
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        kill()
        await asyncio.wait(tasks, timeout=_ABRUPT)
        raise


async def _shake_hands(session: ClientSession) -> None:
    """The handshake that all servers know, or, where it is refused, the one of the protocol without sessions."""
    try:
        await session.initialize()
    except MCPError as exc:
        if exc.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        try:
            await session.discover()
        except MCPError:
            raise exc from None


def _is_closing(exc: MCPError) -> bool:
    """Whether the client says that the connection has ended; servers use the same code for errors of their own."""
    return exc.code == CONNECTION_CLOSED and exc.message == "Connection closed"


def _innermost(exc: BaseException | None) -> BaseException | None:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc


def _failure_text(failure: BaseException | None, known: str) -> str:
    match failure:
        case None:
            return ""
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return "it can not be reached"
        case httpx2.HTTPError():
            return f"the connection failed ({type(failure).__name__})"
        case ValidationError():
            return "its answer to the first message is none of the protocol"
        case MCPError(message=message) if message in _NOTHING_TOLD:
            return "" if known else "it refused the first message"
        case _:
            return _short(str(failure)) or type(failure).__name__


def _short(text: str) -> str:
    text = re.sub(r"\s*\n\s*", " ", text.strip())
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
