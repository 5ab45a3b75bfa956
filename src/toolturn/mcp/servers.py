"""Several MCP servers as one set of tools."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Literal, TypeAlias

from ..models.schema.names import fold, wire_names
from ..tools.toolset import ToolSet
from .configuration import Http, Problem, Server, Stdio
from .connection import ended
from .server import ServerClient
from .tools import McpTool

Names: TypeAlias = Literal["auto", "prefixed", "plain"]


class McpServers:
    """Servers that run while a ``with`` or ``async with`` block does; made by :func:`mcp_servers`."""

    def __init__(self, servers: Mapping[str, Server], names: Names, reserved: Collection[str]) -> None:
        if names not in ("auto", "prefixed", "plain"):
            raise ValueError("names must be 'auto', 'prefixed' or 'plain'")
        for name, server in servers.items():
            if not isinstance(name, str) or not name.strip():
                raise ValueError("the name of an MCP server must not be empty")
            if not isinstance(server, (Stdio, Http)):
                raise TypeError(f"the MCP server {name!r} must be a Stdio or an Http, not {type(server).__name__}")
        self._servers = dict(servers)
        self._names = names
        self._reserved = {fold(name) for name in reserved}
        self._clients: list[ServerClient] = []
        self._entered = False
        self._made: tuple[tuple[int, ...], ToolSet, list[Problem]] | None = None

    def __repr__(self) -> str:
        return f"<McpServers {', '.join(self._servers) or '(none)'}>"

    @property
    def tools(self) -> ToolSet:
        """The tools of all servers as they are known now; a turn keeps the set it was given.

        Raises:
            ValueError: Two tools have one name, where ``names`` is ``plain``.
        """
        return self._named()[0]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is not as it should be, now: servers that do not run, tools that are left out, filters that miss."""
        found = [problem for client in self._clients for problem in client.problems]
        return (*found, *self._named()[1])

    async def refresh(self) -> None:
        """Ask all servers for their tools anew, and start those again that do not run."""
        await asyncio.gather(*(client.refresh() for client in self._clients))

    # --- names -------------------------------------------------------------------------

    def _named(self) -> tuple[ToolSet, list[Problem]]:
        versions = tuple(client.version for client in self._clients)
        if self._made is None or self._made[0] != versions:
            self._made = (versions, *self._name())
        return self._made[1], self._made[2]

    def _name(self) -> tuple[ToolSet, list[Problem]]:
        every = [tool for client in self._clients for tool in client.tools]
        owners = Counter(fold for client in self._clients for fold in {fold_of(tool) for tool in client.tools})
        full: dict[str, McpTool] = {}
        problems: list[Problem] = []
        for tool in every:
            taken = fold_of(tool) in self._reserved or owners[fold_of(tool)] > 1
            if taken and self._names == "plain":
                others = sorted({t.server for t in every if fold_of(t) == fold_of(tool)})
                also = " and another tool set" if fold_of(tool) in self._reserved else ""
                raise ValueError(f"the tool name {tool.name!r} is used by {' and '.join(others)}{also}")
            name = f"{tool.server}__{tool.name}" if taken or self._names == "prefixed" else tool.name
            if name in full:
                other = full[name]
                text = f"its tool {tool.name!r} would have the same name as {other.name!r} of {other.server}: left out"
                problems.append(Problem(tool.server, text, "name"))
                continue
            full[name] = tool
        short = wire_names(full)
        return ToolSet({short[name]: tool for name, tool in full.items()}), problems

    # --- life --------------------------------------------------------------------------

    async def __aenter__(self) -> McpServers:
        if self._entered:
            raise RuntimeError("MCP servers are started once: make new ones with mcp_servers()")
        self._entered = True
        self._clients = [ServerClient(name, server) for name, server in self._servers.items()]
        try:
            await asyncio.gather(*(client.start() for client in self._clients))
            self._named()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        # all begin to end before the first wait, so that a cancel can not come before
        await ended([task for client in self._clients for task in client.end()], self._kill)

    def _kill(self) -> None:
        for client in self._clients:
            client.kill()

    def __enter__(self) -> McpServers:
        from ..background import background

        background.run(self.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        from ..background import background

        background.run(self._close())


def fold_of(tool: McpTool) -> str:
    """Return what is the same for tools whose names models mix up."""
    return fold(tool.name)


def mcp_servers(servers: Mapping[str, Server], *, names: Names = "auto", reserved: Collection[str] = ()) -> McpServers:
    """Start MCP servers, all at once, for the time of a ``with`` or ``async with`` block.

    A server that does not start, or a tool that can not be used, stands in ``problems`` and costs nothing else. A
    server that ends is started again by the next call of one of its tools; a call that it had been given is never made
    again.

    Args:
        servers: The servers by name.
        names: ``auto`` puts ``server__`` before a tool's name where two have the same, ``prefixed`` always does,
            ``plain`` never does and raises where two have the same.
        reserved: Names that other tools of the turn have.

    Raises:
        ValueError: ``names`` is none of these, a server has no name, or, on entering with ``plain``, two tools have
            one name.
        TypeError: Something is no server.
    """
    return McpServers(servers, names, reserved)
