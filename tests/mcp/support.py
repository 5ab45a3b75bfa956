"""What the tests of this folder share: a server that misbehaves, and one call of it within a turn."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolturn import ChatMessage, ToolCallRecord, ToolSet, run_tool_loop
from toolturn.events import Event, ToolProgress
from toolturn.mcp import Http, McpServers, Stdio, mcp_servers
from toolturn.testing import ScriptedModel, calls

from ..running.support import run as run

SCRIPT = Path(__file__).with_name("misbehaving.py")
START = ("-I", "-S", str(SCRIPT))  # it needs nothing that is installed, and starts sooner so
HELLO = (ChatMessage("user", "hello"),)


def bad(way: str, log: Path | None = None, **options: Any) -> Stdio:
    """A server over standard input and output that misbehaves in this way."""
    args = (*START, way, *(() if log is None else ("--log", str(log))))
    options.setdefault("timeout", 20.0)
    return Stdio(sys.executable, args, **options)


@asynccontextmanager
async def bad_http(way: str, log: Path | None = None, **options: Any) -> AsyncIterator[Http]:
    """A server over HTTP that misbehaves in this way; the address of it."""
    wanted = options.pop("port", 0)
    args = [*START, way, "--http", "--port", str(wanted), *([] if log is None else ["--log", str(log)])]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *args, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            port = int(await process.stdout.readline())
        options.setdefault("timeout", 20.0)
        path = options.pop("path", "/mcp")
        yield Http(f"http://127.0.0.1:{port}{path}", **options)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def one(server: Stdio | Http, **options: Any) -> McpServers:
    """A single server, called ``box``."""
    return mcp_servers({"box": server}, **options)


async def observe(
    tools: ToolSet, name: str = "echo", arguments: dict[str, Any] | None = None, **options: Any
) -> ToolCallRecord:
    """The record of the single call of a turn, told to the model."""
    options.setdefault("tool_errors", "report")
    text = json.dumps({"text": "hi"} if arguments is None else arguments)
    with ScriptedModel([calls((name, text)), "done"]) as model:
        result = await run_tool_loop(HELLO, tools, model, **options)
    assert result.content == "done"
    return result.tool_calls[0]


async def called(server: Stdio | Http, name: str = "echo", arguments: dict[str, Any] | None = None) -> ToolCallRecord:
    """The record of a single call of a single server."""
    async with one(server) as servers:
        return await observe(servers.tools, name, arguments)


def progress_of(events: list[Event]) -> list[Any]:
    return [event.data for event in events if isinstance(event, ToolProgress)]


def content(record: ToolCallRecord) -> str:
    """What the model read."""
    assert isinstance(record.message.content, str)
    return record.message.content


def received(log: Path, method: str) -> list[dict[str, Any]]:
    """The messages of this kind that a server has received."""
    if not log.exists():
        return []
    messages = [json.loads(line) for line in log.read_text().splitlines()]
    return [message for message in messages if message.get("method") == method]


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not collected by its parent does not."""
    if not os.path.isdir("/proc/self"):
        return subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


async def until(condition: Any, seconds: float = 10.0) -> None:
    """Wait for something that nobody tells of; bounded."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
