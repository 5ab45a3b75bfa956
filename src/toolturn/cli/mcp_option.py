"""``--mcp``: servers whose tools stand beside the toolboxes for the time of a turn."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import click

from toolturn.tools import ToolSet

if TYPE_CHECKING:
    from toolturn.mcp import Problem, Server

F = TypeVar("F", bound=Callable[..., Any])


def mcp_option(function: F) -> F:
    """Add the option ``--mcp`` to a command, which gets it as ``mcp``, a tuple of texts."""
    add = click.option(
        "--mcp",
        "mcp",
        multiple=True,
        metavar="SERVER",
        help="An MCP server whose tools are offered too: a command such as 'python -m mcp_server_time', an address "
        "such as https://example.org/mcp, either with 'name=' before it, or a JSON file with \"mcpServers\". "
        "Can be given several times.",
    )
    return add(function)


def servers_of(wanted: Sequence[str]) -> tuple[dict[str, Server], tuple[Problem, ...]]:
    """Return the servers that a user named.

    Args:
        wanted: Commands, addresses and files.

    Returns:
        The servers by name, and what is wrong in the files.

    Raises:
        click.BadParameter: One is none of these, or two were given one name.
    """
    from toolturn.mcp import server_from_text, servers_from_json

    servers: dict[str, Server] = {}
    problems: list[Problem] = []
    for text in wanted:
        try:
            if text.strip().endswith(".json") and Path(text.strip()).is_file():
                found, wrong = servers_from_json(Path(text.strip()).read_text(encoding="utf-8"))
                problems += wrong
            else:
                name, server = server_from_text(text)
                if "=" not in text.split()[0]:
                    name = _free(name, servers)
                found = {name: server}
        except (OSError, ValueError) as exc:
            raise click.BadParameter(f"{text}: {exc}", param_hint="--mcp") from None
        for name, server in found.items():
            if name in servers:
                raise click.BadParameter(f"there are two servers of the name {name!r}", param_hint="--mcp")
            servers[name] = server
    return servers, tuple(problems)


def _free(name: str, taken: dict[str, Server]) -> str:
    """A name that was made up makes way for others."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}{number}", number + 1
    return free


@contextmanager
def with_mcp(
    wanted: Sequence[str],
    tools: ToolSet,
    note: Callable[[str], None],
    more: Mapping[str, Server] | None = None,
    names: Literal["auto", "prefixed"] = "auto",
) -> Iterator[ToolSet]:
    """Run servers while a block does, and hand it their tools beside others.

    Args:
        wanted: What the user gave as ``--mcp``; without any nothing is loaded and the tools are handed on as they are.
        tools: The other tools; they keep their names.
        note: Is told, in a line each, of what does not work.
        more: Further servers by name.
        names: How the tools of the servers are named.

    Raises:
        click.ClickException: The extra is missing, or none of the servers runs.
        click.BadParameter: Something wanted is no server.
    """
    if not wanted and not more:
        yield tools
        return
    servers, wrong = servers_of(wanted)
    for name, server in (more or {}).items():
        servers[_free(name, servers)] = server
    try:
        from toolturn.mcp import mcp_servers
    except ImportError as exc:
        raise click.ClickException(str(exc)) from None
    for problem in wrong:
        note(f"[mcp] {problem}")
    with _ended_by_signals(), mcp_servers(servers, names=names, reserved=tools.names) as running:
        down = {problem.server for problem in running.problems if problem.kind == "not_running"}
        if servers and down == servers.keys():  # the causes are told even where no notes are wanted
            raise click.ClickException(f"none of the MCP servers runs: {'; '.join(map(str, running.problems))}")
        for problem in running.problems:
            note(f"[mcp] {problem}")
        yield tools + running.tools


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM leave the block, so that the servers end; what handles it meanwhile takes its place."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
