"""What an MCP server is told to be: frozen values, and how they are read from text and from the common JSON file."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

DEFAULT_MAX_BYTES = 16_000_000

ProblemKind: TypeAlias = Literal["not_running", "tool", "filter", "name", "listing", "configuration"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about a server that is not as it should be, while the others go on.

    Args:
        server: The server's name.
        text: One sentence for people.
        kind: ``not_running``: it did not start or has ended; ``tool``: one of its tools is left out; ``filter``: an
            entry of ``allow`` or ``deny`` matches nothing; ``name``: a tool's name is taken; ``listing``: its list of
            tools is odd; ``configuration``: something in the file is not understood.
    """

    server: str
    text: str
    kind: ProblemKind

    def __str__(self) -> str:
        return f"{self.server}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    start_timeout: float = 30.0
    timeout: float = 60.0
    close_timeout: float = 2.0
    max_bytes: int = DEFAULT_MAX_BYTES
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    trust_hints: bool = True

    def _check(self) -> None:
        for name in ("start_timeout", "timeout", "close_timeout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
                raise ValueError(f"{name} must be a positive number of seconds")
        if type(self.max_bytes) is not int or self.max_bytes < 1000:
            raise ValueError("max_bytes must be a whole number, at least 1000")
        for name in ("allow", "deny"):
            given = getattr(self, name)
            if given is None and name == "allow":
                continue
            if isinstance(given, str) or not all(isinstance(entry, str) for entry in given):
                raise ValueError(f"{name} must be a list of tool names")
            object.__setattr__(self, name, tuple(given))


@dataclass(frozen=True, slots=True)
class Stdio(_Server):
    """A server that is started as a process and spoken to over its standard input and output.

    Args:
        command: The program; looked up in the ``PATH`` of its environment.
        args: Its arguments.
        env: Variables beside the few that are safe to hand on (``HOME``, ``PATH`` and the like).
        cwd: The folder it runs in.
        start_timeout: Seconds until it must have told its tools.
        timeout: Seconds a call may take.
        close_timeout: Seconds it has to end by itself, and again after it was asked to; then it is killed.
        max_bytes: How large one message of it may be.
        allow: The tools to offer, as names or patterns such as ``read_*``; all where None.
        deny: The tools to leave out; this wins.
        trust_hints: Believe what the server says of its tools: a read-only one has the effect ``none`` and may run
            beside others, an idempotent one has the effect ``keyed``. A lie can do no more than let such a call run
            again after a crash, or beside another one; nothing else depends on it.

    Raises:
        ValueError: Something is out of its range.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None

    def __post_init__(self) -> None:
        self._check()
        if not isinstance(self.command, str) or not self.command.strip():
            raise ValueError("the command of an MCP server must not be empty")
        if isinstance(self.args, str) or not all(isinstance(arg, str) for arg in self.args):
            raise ValueError("the arguments of an MCP server must be a list of texts")
        object.__setattr__(self, "args", tuple(self.args))
        env = self.env
        if not isinstance(env, Mapping) or not all(isinstance(part, str) for pair in env.items() for part in pair):
            raise ValueError("the environment of an MCP server must have texts as names and values")
        if any("\0" in part for part in (self.command, *self.args, *env.keys(), *env.values())):
            raise ValueError("the command of an MCP server must not hold a null character")


@dataclass(frozen=True, slots=True)
class Http(_Server):
    """A server that is reached over streamable HTTP.

    Args:
        url: The address of its endpoint.
        headers: Sent with each request, for instance ``Authorization``; what may be a secret in them is left out of
            every text.
        start_timeout: Seconds until it must have told its tools.
        timeout: Seconds a call may take.
        close_timeout: Seconds to tell it that the session has ended.
        max_bytes: How large one message of it may be.
        allow: As in :class:`Stdio`, like all that follow.
        deny: The tools to leave out.
        trust_hints: Believe what the server says of its tools.

    Raises:
        ValueError: The address or a header can not be used, or something is out of its range.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._check()
        from ..errors import ModelRequestError
        from ..models.transports.address import address_of, check_headers

        # the same rules as for models; their errors hold no more of it than the host
        try:
            address_of(self.url)
        except (ModelRequestError, TypeError, AttributeError):
            raise ValueError("the address of an MCP server has the form http://host:port/path or https://…") from None
        headers = self.headers
        if not isinstance(headers, Mapping) or not all(isinstance(x, str) for pair in headers.items() for x in pair):
            raise ValueError("the headers of an MCP server must have texts as names and values")
        try:
            check_headers(headers)
        except ModelRequestError as exc:
            raise ValueError(str(exc)) from None

    def __repr__(self) -> str:
        return f"Http({self.place!r})"

    @property
    def place(self) -> str:
        """Host and port: all of the address that a text may hold."""
        from ..models.transports.address import address_of

        return address_of(self.url).place


Server: TypeAlias = Stdio | Http


# --- from text ---------------------------------------------------------------------------

_RUNNERS = {"npx", "uvx", "uv", "pipx", "node", "python", "python3", "py", "bunx", "bun", "deno", "docker", "env"}
_RUNNER_WORDS = {"run", "exec", "tool", "dlx", "x"}
_NAME_AFFIXES = re.compile(r"^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-server|-mcp)$")


def server_from_text(text: str) -> tuple[str, Server]:
    """Read a server as it is typed: an address, or a command with its arguments; ``name=…`` before it names it.

    Args:
        text: For instance ``python -m mcp_server_time`` or ``docs=https://example.org/mcp``.

    Returns:
        A name, made from the text where none is given, and the server.

    Raises:
        ValueError: It is neither.
    """
    text = text.strip()
    name = ""
    if named := re.match(r"([A-Za-z][A-Za-z0-9_-]{0,63})=(?=\S)", text):
        name, text = named[1], text[named.end() :]
    if re.match(r"https?://", text, re.IGNORECASE):
        server: Server = Http(text)
        return name or _clean(urlsplit(text).hostname or ""), server
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise ValueError(f"the command of an MCP server can not be read: {exc}") from None
    if not words:
        raise ValueError("an MCP server is an address or a command")
    return name or _name_of(words), Stdio(words[0], tuple(words[1:]))


def _name_of(words: list[str]) -> str:
    """What the command runs, behind those that only start it: ``npx -y @scope/server-time`` is ``time``."""
    place = 0
    while place < len(words) - 1:
        word = PurePath(words[place]).name.lower().removesuffix(".exe")
        runs = word in _RUNNERS or re.fullmatch(r"python[\d.]+", word) or word in _RUNNER_WORDS
        if not runs and not words[place].startswith("-") and "=" not in words[place]:
            break
        place += 1
    found = PurePath(words[place]).name.partition("@")[0] or PurePath(words[0]).name
    return _clean(re.sub(r"\.(?:py|js|mjs|ts|exe)$", "", found))


def _clean(name: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    return _NAME_AFFIXES.sub("", cleaned) or cleaned or "server"


# --- from the common file ----------------------------------------------------------------

_OPTIONS = {"timeout", "start_timeout", "close_timeout", "allow", "deny", "trust_hints", "max_bytes"}
_KNOWN = {Stdio: {"command", "args", "env", "cwd"}, Http: {"url", "headers"}}
# what other programs keep there for themselves
_OF_OTHERS = {
    "type",
    "transport",
    "disabled",
    "autoApprove",
    "alwaysAllow",
    "description",
    "name",
    "icon",
    "version",
    "gallery",
    "tools",
    "trust",
}
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def servers_from_json(
    text: str, environ: Mapping[str, str] | None = None
) -> tuple[dict[str, Server], tuple[Problem, ...]]:
    """Read the JSON file that most clients share: ``{"mcpServers": {"name": {"command": …} or {"url": …}}}``.

    ``${VARIABLE}`` and ``${VARIABLE:-default}`` are replaced in commands, arguments, variables, addresses and headers.
    Beside the common keys ``timeout``, ``start_timeout``, ``close_timeout``, ``allow``, ``deny``, ``max_bytes`` and
    ``trust_hints`` are known. Programs differ on the unit of ``timeout``: from 1000 on it is read as milliseconds.

    Args:
        text: The file's text.
        environ: The variables; those of this process where None.

    Returns:
        The servers by name, and what is wrong with those that can not be used or have keys nobody knows.

    Raises:
        ValueError: It is no such file.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"it is no JSON: {exc}") from None
    found = document.get("mcpServers", document.get("servers")) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise ValueError('it has no "mcpServers" with one entry for each server')
    servers: dict[str, Server] = {}
    problems: list[Problem] = []
    for name, entry in found.items():
        if not isinstance(entry, dict):
            problems.append(Problem(name, "its entry is no object", "configuration"))
            continue
        if entry.get("disabled") is True:
            continue
        try:
            servers[name] = _entry(entry, os.environ if environ is None else environ)
        except (ValueError, TypeError) as exc:
            problems.append(Problem(name, f"it is left out: {exc}", "configuration"))
            continue
        known = _OPTIONS | _KNOWN[type(servers[name])] | _OF_OTHERS
        if strange := sorted(entry.keys() - known):
            problems.append(Problem(name, f"nobody knows its keys {', '.join(strange)}", "configuration"))
    return servers, tuple(problems)


def _entry(entry: dict[str, Any], environ: Mapping[str, str]) -> Server:
    options: dict[str, Any] = {key: entry[key] for key in _OPTIONS & entry.keys()}
    for key in ("timeout", "start_timeout", "close_timeout"):
        if type(options.get(key)) in (int, float) and options[key] >= 1000:
            options[key] /= 1000
    kind = entry.get("type", entry.get("transport"))
    if kind == "sse":
        raise ValueError("it wants the old transport 'sse'; only 'stdio' and 'http' are spoken here")
    if kind not in (None, "stdio", "http", "streamable-http", "streamableHttp", "streamable_http"):
        raise ValueError("its type is none of 'stdio' and 'http'")
    if ("command" in entry) == ("url" in entry):
        raise ValueError("it needs either a command or a url")
    if "url" in entry:
        return Http(_filled(entry["url"], environ), _filled(entry.get("headers") or {}, environ), **options)
    command = _filled(entry["command"], environ)
    args = _filled(entry.get("args") or [], environ)
    env, cwd = _filled(entry.get("env") or {}, environ), _filled(entry.get("cwd"), environ)
    return Stdio(command, args, env, cwd, **options)


def _filled(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_filled(item, environ) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, environ) for key, item in value.items()}
    if not isinstance(value, str):
        return value

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        value = environ.get(name, found[2])
        if value is None:
            raise ValueError(f"the environment variable {name} is not set")
        return value

    return _VARIABLE.sub(fill, value)
