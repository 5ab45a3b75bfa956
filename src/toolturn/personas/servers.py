"""The MCP servers of a persona's section, as the ones :mod:`toolturn.mcp` starts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..mcp.configuration import Server, server_from_text, servers_from_json
from .checking import Finding, below, check_section, value_of
from .keys import MCP, MCP_SERVER


def servers_of(
    section: Mapping[str, Any], place: str, environ: Mapping[str, str], *, reserved: Collection[str] = ()
) -> tuple[dict[str, Server], list[Finding]]:
    """Return the servers of a section: one that it describes, or several under ``servers``.

    Args:
        section: The section.
        place: Where it stands.
        environ: Where variables in it are looked up.
        reserved: Names that other servers have.

    Returns:
        The servers by name, and what is wrong beyond the forms of the keys.
    """
    several = section.get("servers", section.get("mcpServers"))
    key = "servers" if "servers" in section else "mcpServers"
    if several is None and section.get("file") is not None:
        return _of_file(section["file"], below(place, "file"), environ, reserved)
    if several is None:
        if not section.get("command") and not value_of(section, "url", MCP):
            return {}, [Finding("problem", place, "it needs a command or a url, or several servers under mcpServers")]
        entry = {name: value_of(section, name, MCP) for name in MCP_SERVER.known}
        return _made({_name_of(entry): (entry, place)}, environ, reserved)
    where = below(place, key)
    if isinstance(several, list) and all(isinstance(text, str) for text in several):
        return _typed(several, where, reserved)
    if not isinstance(several, Mapping):
        return {}, [Finding("problem", where, f"{key} must be an object with one entry for each server")]
    found: list[Finding] = []
    entries: dict[str, tuple[dict[str, Any], str]] = {}
    for name, entry in several.items():
        at = below(where, str(name))
        if not isinstance(entry, Mapping):
            found.append(Finding("problem", at, "the section of a server must be an object"))
        elif entry.get("disabled") is not True:
            found += check_section(entry, MCP_SERVER, at, sections=("disabled", "name", "description"))
            entries[str(name)] = ({key: value_of(entry, key, MCP_SERVER) for key in MCP_SERVER.known}, at)
    made, wrong = _made(entries, environ, reserved)
    return made, [*found, *wrong]


def _made(
    entries: Mapping[str, tuple[Mapping[str, Any], str]], environ: Mapping[str, str], reserved: Collection[str]
) -> tuple[dict[str, Server], list[Finding]]:
    made: dict[str, Server] = {}
    found: list[Finding] = []
    for name, (entry, place) in entries.items():
        given = {key: value for key, value in entry.items() if value is not None}
        try:
            servers, problems = servers_from_json(json.dumps({"mcpServers": {name: given}}), environ)
        except (TypeError, ValueError) as exc:
            found.append(Finding("problem", place, str(exc)))
            continue
        found += [Finding("problem", place, problem.text.removeprefix("it is left out: ")) for problem in problems]
        for server in servers.values():
            made[_free(name, {*made, *reserved})] = server
    return made, found


def _of_file(
    file: Any, place: str, environ: Mapping[str, str], reserved: Collection[str]
) -> tuple[dict[str, Server], list[Finding]]:
    try:
        text = Path(str(file)).expanduser().read_text(encoding="utf-8")
        servers, problems = servers_from_json(text, environ)
    except (OSError, ValueError, RuntimeError) as exc:
        return {}, [Finding("problem", place, f"it can not be used: {getattr(exc, 'strerror', None) or exc}")]
    found = [Finding("problem", place, str(problem)) for problem in problems]
    return {_free(name, reserved): server for name, server in servers.items()}, found


def _typed(texts: list[str], place: str, reserved: Collection[str]) -> tuple[dict[str, Server], list[Finding]]:
    made: dict[str, Server] = {}
    found: list[Finding] = []
    for index, text in enumerate(texts):
        try:
            name, server = server_from_text(text)
            made[_free(name, {*made, *reserved})] = server
        except ValueError as exc:
            found.append(Finding("problem", below(place, index), str(exc)))
    return made, found


def _name_of(entry: Mapping[str, Any]) -> str:
    try:
        args = [str(arg) for arg in entry.get("args") or ()]
        return server_from_text(entry.get("url") or shlex.join([entry["command"], *args]))[0]
    except (KeyError, TypeError, ValueError):
        return "server"


def _free(name: str, taken: Collection[str]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}{number}", number + 1
    return free
