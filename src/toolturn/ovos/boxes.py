"""The built-in toolboxes and MCP servers as OPM ToolBoxes: the classes behind the entry points."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ovos_utils.log import LOG

from ..background import background
from ..toolboxes import toolbox
from ..tools.toolset import ToolSet
from .published import PublishedToolBox

if TYPE_CHECKING:
    from ..mcp import McpServers, Problem, Server

__all__ = ["ClockToolBox", "FilesToolBox", "MathToolBox", "McpToolBox", "UnitsToolBox"]

_CLOSING = 10.0


class _BuiltIn(PublishedToolBox):
    """A toolbox of toolturn; what can not be used in its section of a persona is said when it is made."""

    toolbox_id: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Mapping[str, Any] | None = None, bus: Any = None) -> None:
        made = type(self).toolbox_id
        known = _section(made, config, self.keys)
        super().__init__(self._tools(known), made, known, bus)

    def _tools(self, config: dict[str, Any]) -> ToolSet | Callable[[], ToolSet]:
        return toolbox(type(self).toolbox_id.removeprefix("toolturn-"))


class ClockToolBox(_BuiltIn):
    """The time and date in a place, days between dates, weekdays."""

    toolbox_id = "toolturn-clock"


class MathToolBox(_BuiltIn):
    """A calculator."""

    toolbox_id = "toolturn-math"


class UnitsToolBox(_BuiltIn):
    """Conversion between units of measurement."""

    toolbox_id = "toolturn-units"


class FilesToolBox(_BuiltIn):
    """Files of named folders; ``folders`` is a list or an object of names and paths, ``write`` allows changes."""

    toolbox_id = "toolturn-files"
    keys = ("folders", "write", "approval", "hidden", "read_bytes")

    def _tools(self, config: dict[str, Any]) -> ToolSet:
        from ..toolboxes.files import files_from_section

        return files_from_section({key: config[key] for key in self.keys if key in config})


_OF_ONE = (
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "transport",
    "start_timeout",
    "close_timeout",
    "allow",
    "deny",
    "trust_hints",
    "max_bytes",
)


class McpToolBox(_BuiltIn):
    """MCP servers, started once: ``servers`` is an object as other programs have it under ``mcpServers``.

    They begin to start when the toolbox is made; who asks for the tools waits until they run. A server that does not
    is named in a warning and takes no other down. They end with :meth:`close`, with the toolbox, or with the program.
    """

    toolbox_id = "toolturn-mcp"
    keys = ("servers", "mcpServers", "file", "names", *_OF_ONE)

    def _tools(self, config: dict[str, Any]) -> Callable[[], ToolSet]:
        servers, problems = _servers_of(config)
        names = config.get("names", "auto")
        if names not in ("auto", "prefixed"):
            raise ValueError("toolturn-mcp: names must be 'auto' or 'prefixed'")
        running = _Running(servers, names, problems)
        self._running = running
        weakref.finalize(self, running.end).atexit = False  # at the program's end they are waited for
        return running.tools

    def close(self) -> None:
        """End the servers and wait until they have; calls that come later say that they are not there."""
        self._running.close()

    def refresh_tools(self) -> None:
        """Do nothing: what a server says of a change is heard without asking."""


class _Running:
    """Servers from their start to their end."""

    def __init__(self, servers: Mapping[str, Server], names: Any, problems: tuple[Problem, ...]) -> None:
        from ..mcp import mcp_servers

        self._servers: McpServers = mcp_servers(servers, names=names)
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._owner = os.getpid()
        self._ended: Future[None] | None = None
        self._tell(problems)
        self._started = asyncio.run_coroutine_threadsafe(self._start(), background.loop())
        _open.add(self)

    async def _start(self) -> None:
        await self._servers.__aenter__()

    def tools(self) -> ToolSet:
        if self._ended is not None:
            return ToolSet()
        if not self._started.done() and _on_the_background_loop():
            raise RuntimeError("toolturn-mcp: the servers have not started yet, and here nobody can wait for them")
        with suppress(CancelledError):  # it was closed meanwhile
            self._started.result()
        tools = self._servers.tools
        self._tell(self._servers.problems)
        return tools

    def _tell(self, problems: tuple[Problem, ...]) -> None:
        for problem in problems:
            if str(problem) not in self._told and len(self._told) < 1000:
                self._told.add(str(problem))
                LOG.warning(f"toolturn-mcp: {problem}")

    def end(self) -> None:
        """Let the servers end; the processes belong to the program that started them, not to a fork of it."""
        with self._lock:
            if self._ended is None and os.getpid() == self._owner:
                self._ended = asyncio.run_coroutine_threadsafe(self._end(), background.loop())

    async def _end(self) -> None:
        self._started.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await asyncio.wrap_future(self._started)
        await self._servers.__aexit__(None, None, None)

    def close(self) -> None:
        self.end()
        if self._ended is not None:
            with suppress(TimeoutError):
                self._ended.result(_CLOSING)


def _on_the_background_loop() -> bool:
    try:
        return asyncio.get_running_loop() is background.loop()
    except RuntimeError:
        return False


_open: weakref.WeakSet[_Running] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    running = list(_open)
    for each in running:
        each.end()
    for each in running:
        each.close()


def _servers_of(config: Mapping[str, Any]) -> tuple[dict[str, Server], tuple[Problem, ...]]:
    """The servers of a section: an object of them, a list of commands and addresses, a file, or a single one."""
    from ..mcp import server_from_text, servers_from_json

    found = config.get("servers", config.get("mcpServers"))
    if found is None and (path := config.get("file")) is not None:
        try:
            return servers_from_json(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError, RuntimeError) as exc:
            raise ValueError(f"toolturn-mcp: the file can not be used: {exc}") from None
    if found is None and ("command" in config or "url" in config):
        single = {key: config[key] for key in (*_OF_ONE, "timeout") if key in config}
        found = {"server": single}
    if isinstance(found, (list, tuple)) and all(isinstance(text, str) for text in found):
        servers: dict[str, Server] = {}
        for text in found:
            name, server = server_from_text(text)
            if name in servers:
                raise ValueError(f"toolturn-mcp: there are two servers of the name {name!r}; write 'other={text}'")
            servers[name] = server
        return servers, ()
    if not isinstance(found, Mapping) or not found:
        raise ValueError("toolturn-mcp needs 'servers', an object with one entry for each server")
    return servers_from_json(json.dumps({"mcpServers": found}))


def _section(toolbox_id: str, config: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """The section of a toolbox, with a warning for each key that nobody knows."""
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise ValueError(f"{toolbox_id}: its section must be an object, not {type(config).__name__}")
    known = (*keys, "timeout", "enabled")
    for key in config:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            LOG.warning(f"{toolbox_id}: nobody knows the key {key!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    return dict(config)
