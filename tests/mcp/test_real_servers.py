"""Servers that people use, as they are: a turn with each of them, and their state looked at from outside.

What is not there is installed once, into the folder that ``TOOLTURN_MCP_SERVERS`` names or, at night, a temporary
one; otherwise, and where it can not be had, the tests are skipped and say why.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from toolturn import ImagePart, ToolCallRecord
from toolturn.content import as_text
from toolturn.events import Event
from toolturn.mcp import Http, Stdio, mcp_servers

from ..conftest import PROFILE
from .support import content, observe, progress_of, run

FOLDER = Path(os.environ.get("TOOLTURN_MCP_SERVERS") or Path(tempfile.gettempdir()) / "toolturn-mcp-servers")
NODE = {
    "everything": ("@modelcontextprotocol/server-everything@2026.8.31", "mcp-server-everything"),
    "filesystem": ("@modelcontextprotocol/server-filesystem@2026.8.31", "mcp-server-filesystem"),
    "memory": ("@modelcontextprotocol/server-memory@2026.8.31", "mcp-server-memory"),
}
BOUND = 30.0
pytestmark = pytest.mark.timeout(180)


@cache
def _installed(*command: str) -> str:
    """Run what installs a server; what it complained of, or nothing."""
    if PROFILE != "nightly" and "TOOLTURN_MCP_SERVERS" not in os.environ:
        return "TOOLTURN_MCP_SERVERS names no folder for it"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    return "" if done.returncode == 0 else done.stderr[-500:] or "it failed"


def node(name: str, *args: str, **options: Any) -> Stdio:
    """A server of Node, installed at its first use."""
    package, program = NODE[name]
    path = FOLDER / "node_modules" / ".bin" / program
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm to install MCP servers with")
        FOLDER.mkdir(parents=True, exist_ok=True)
        known = [about[0] for about in NODE.values()]
        if wrong := _installed(str(npm), "install", "--prefix", str(FOLDER), "--no-audit", "--no-fund", *known):
            pytest.skip(f"{package} can not be installed: {wrong}")
    return Stdio(str(path), args, **options)


def python(module: str, *args: str) -> Stdio:
    """A server of Python in this interpreter."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    return Stdio(sys.executable, ("-m", module, *args))


def test_time_tells_the_time_and_what_is_wrong_with_a_zone() -> None:
    async def main() -> None:
        async with mcp_servers({"time": python("mcp_server_time")}) as servers:
            assert servers.problems == ()
            arguments = {"source_timezone": "Europe/Vienna", "time": "12:00", "target_timezone": "Asia/Tokyo"}
            record = await observe(servers.tools, "convert_time", arguments)
            assert json.loads(content(record))["target"]["datetime"].endswith("+09:00")
            record = await observe(servers.tools, "get_current_time", {"timezone": "Europe/Nowhere"})
            assert record.status == "error"
            assert "Europe/Nowhere" in content(record)
            record = await observe(servers.tools, "get_current_time", {"zone": "UTC"})
            assert record.status == "invalid_arguments"

    run(main())


def test_git_changes_a_repository(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init")
    git("config", "user.name", "a")
    git("config", "user.email", "a@example.org")
    (tmp_path / "file").write_text("text\n")
    where = {"repo_path": str(tmp_path)}

    async def main() -> None:
        async with mcp_servers({"git": python("mcp_server_git", "--repository", str(tmp_path))}) as servers:
            assert len(servers.tools) == 12
            assert "file" in content(await observe(servers.tools, "git_status", where))
            assert (await observe(servers.tools, "git_add", {**where, "files": ["file"]})).status == "ok"
            assert (await observe(servers.tools, "git_commit", {**where, "message": "first"})).status == "ok"
            record = await observe(servers.tools, "git_status", {"repo_path": "/"})
            assert record.status == "error"

    run(main())
    assert "first" in git("log", "--oneline")


def test_sqlite_of_the_older_protocol_library_writes_a_database(tmp_path: Path) -> None:
    venv = FOLDER / "older"
    program = venv / "bin" / "mcp-server-sqlite"
    if not program.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        wrong = _installed(sys.executable, "-m", "venv", str(venv)) or _installed(
            str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "mcp-server-sqlite==2025.4.25", "mcp<2"
        )
        if wrong:
            pytest.skip(f"mcp-server-sqlite can not be installed: {wrong}")
    database = tmp_path / "data.db"

    async def main() -> None:
        server = Stdio(str(program), ("--db-path", str(database)))
        async with mcp_servers({"sqlite": server}) as servers:
            assert len(servers.tools) == 6
            assert (
                await observe(servers.tools, "create_table", {"query": "CREATE TABLE t (n INTEGER)"})
            ).status == "ok"
            assert (await observe(servers.tools, "write_query", {"query": "INSERT INTO t VALUES (7)"})).status == "ok"
            assert "7" in content(await observe(servers.tools, "read_query", {"query": "SELECT n FROM t"}))
            assert "Error" in content(await observe(servers.tools, "read_query", {"query": "DROP TABLE t"}))

    run(main())
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT n FROM t").fetchall() == [(7,)]
    connection.close()


def test_filesystem_writes_within_its_folder_only(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "root"
    folder.mkdir()
    outside = tmp_path / "outside"

    async def main() -> None:
        async with mcp_servers({"files": node("filesystem", str(folder))}) as servers:
            assert servers.problems == ()
            traits = servers.tools.traits
            assert (traits["read_text_file"].effect, traits["write_file"].effect) == ("none", "keyed")
            written = {"path": str(folder / "a"), "content": "one\n\ntwo ü\n"}
            assert (await observe(servers.tools, "write_file", written)).status == "ok"
            record = await observe(servers.tools, "read_text_file", {"path": str(folder / "a")})
            assert content(record) == "one\n\ntwo ü\n"
            record = await observe(servers.tools, "write_file", {"path": str(outside), "content": "x"})
            assert record.status == "error"
            (folder / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(3000))
            record = await observe(servers.tools, "read_media_file", {"path": str(folder / "p.png")})
            assert as_text(record.message.content) == "[image image/png, 3008 bytes]"

    run(main())
    assert (folder / "a").read_text() == "one\n\ntwo ü\n"
    assert not outside.exists()


def test_memory_keeps_what_it_was_told(tmp_path: Path) -> None:
    server = node("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    entity = {"name": "Ada", "entityType": "person", "observations": ["counts"]}

    async def main() -> None:
        async with mcp_servers({"memory": server}) as servers:
            assert (await observe(servers.tools, "create_entities", {"entities": [entity]})).status == "ok"
        async with mcp_servers({"memory": server}) as servers:
            record = await observe(servers.tools, "read_graph", {})
            assert json.loads(content(record)) == {"entities": [entity], "relations": []}

    run(main())


# --- the server that has everything -----------------------------------------------------


def images(record: ToolCallRecord) -> list[ImagePart]:
    return [part for part in record.message.content if isinstance(part, ImagePart)]


@asynccontextmanager
async def everything(transport: str) -> AsyncIterator[Stdio | Http]:
    server = node("everything", "stdio")
    if transport == "stdio":
        yield server
        return
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    env = {**os.environ, "PORT": str(port)}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(server.command, "streamableHttp", env=env, stdout=pipe, stderr=pipe)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(BOUND):
            while b"listening" not in (line := await process.stderr.readline()):
                assert line, "it ended"
        yield Http(f"http://127.0.0.1:{port}/mcp")
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_everything_is_the_same_over_both_transports(transport: str) -> None:
    events: list[Event] = []

    async def main() -> None:
        async with everything(transport) as server, mcp_servers({"all": server}) as servers:
            tools = servers.tools
            assert [problem.kind for problem in servers.problems] == ["tool"]
            assert "get-sum" in tools
            assert "simulate-research-query" not in tools

            async def said(name: str, /, **arguments: Any) -> str:
                record = await observe(tools, name, arguments, emit=events.append)
                assert record.status == "ok"
                return as_text(record.message.content)

            assert await said("echo", message="hi") == "Echo: hi"
            assert "[image image/png, " in await said("get-tiny-image")
            (image,) = images(await observe(tools, "get-tiny-image", {}))
            assert base64.b64decode(image.url.partition(",")[2]).startswith(b"\x89PNG")
            assert (await said("get-resource-links", count=3)).count("[link to ") == 3
            assert "[resource demo://" in await said("get-resource-reference", resourceType="Blob", resourceId=1)
            assert "[resource demo://" in await said("get-resource-reference", resourceType="Text", resourceId=1)
            assert set(json.loads(await said("get-structured-content", location="Chicago"))) >= {"temperature"}
            given = {"name": "x.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"}
            assert "application/gzip" in await said("gzip-file-as-resource", **given)
            await said("trigger-long-running-operation", duration=0.2, steps=4)
            assert [step["progress"] for step in progress_of(events)] == [1.0, 2.0, 3.0, 4.0]
            records = await asyncio.gather(*(observe(tools, "echo", {"message": str(n)}) for n in range(50)))
            assert [content(record) for record in records] == [f"Echo: {n}" for n in range(50)]

    run(main())
