"""MCP servers as tools, over stdio and streamable HTTP (extra ``mcp``).

::

    async with mcp_servers({"time": Stdio("python", ["-m", "mcp_server_time"])}) as servers:
        result = await run_tool_loop(messages, servers.tools, model)

``with`` instead of ``async with`` does the same from synchronous code, beside ``run_tool_loop_sync``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .configuration import Http, Problem, Server, Stdio, server_from_text, servers_from_json

if TYPE_CHECKING:
    from .servers import McpServers, mcp_servers
    from .tools import McpTool

__all__ = [
    "Http",
    "McpServers",
    "McpTool",
    "Problem",
    "Server",
    "Stdio",
    "mcp_servers",
    "server_from_text",
    "servers_from_json",
]

_LATE = {"McpServers": "servers", "mcp_servers": "servers", "McpTool": "tools"}


def __getattr__(name: str) -> Any:
    # the client is loaded by who connects, so that reading a configuration needs no extra
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        module = import_module(f"{__name__}.{_LATE[name]}")
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in ("mcp", "mcp_types", "httpx2", "anyio"):
            raise
        raise ImportError("MCP servers need the extra 'mcp': pip install 'toolturn[mcp]'") from None
    return getattr(module, name)
