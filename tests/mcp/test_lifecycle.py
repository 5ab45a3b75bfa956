"""Servers are started together, each with its own bound, and have ended when the block has, whatever ended it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn import run_tool_loop_sync
from toolturn.events import Event
from toolturn.mcp import McpServers, Stdio, mcp_servers
from toolturn.testing import ScriptedModel, calls

from ..running.support import environment
from .support import HELLO, SCRIPT, bad, content, observe, one, progress_of, received, run, runs, until

QUICK: dict[str, Any] = {"close_timeout": 0.3}


async def pids_of(servers: McpServers) -> list[int]:
    return [int(pid) for pid in content(await observe(servers.tools)).split()]


async def all_ended(pids: list[int]) -> None:
    await until(lambda: not any(map(runs, pids)))


# --- the start --------------------------------------------------------------------------


def test_many_start_at_once_and_those_that_do_not_are_named() -> None:
    servers_wanted = {
        "good": bad("fine"),
        "absent": Stdio("no-such-program-anywhere"),
        "nowhere": Stdio(sys.executable, cwd="/no/such/folder"),
        "broken": Stdio(sys.executable, ("-c", "import no_such_module")),
        "silent": bad("hangs", start_timeout=2.0, **QUICK),
        "printing": bad("prints-only", start_timeout=2.0, **QUICK),
        "unlisted": bad("hangs-on-list", start_timeout=2.0, **QUICK),
        "foreign": bad("no-protocol"),
        "deep": bad("deep"),
    }

    async def main() -> None:
        async with mcp_servers(servers_wanted) as servers:
            assert servers.tools.names == ("echo", "other")
            assert content(await observe(servers.tools)) == "hi"
            told = {problem.server: problem.text for problem in servers.problems}
            assert {problem.kind for problem in servers.problems} == {"not_running"}
        assert told["absent"] == "there is no program 'no-such-program-anywhere'"
        assert told["nowhere"] == "there is no folder '/no/such/folder'"
        assert told["broken"].startswith("its process ended with code 1; its last words were: ")
        assert told["broken"].endswith("ModuleNotFoundError: No module named 'no_such_module'")
        assert told["silent"] == "it did not start within 2 seconds"
        assert told["printing"].startswith("it did not start within 2 seconds: it printed what is no message")
        assert "Listening on port 3000" in told["printing"]
        assert told["unlisted"] == "it did not start within 2 seconds"
        assert told["foreign"] == "its answer to the first message is none of the protocol"
        assert told["deep"] == "it does not tell its tools: the server sent a message that can not be read"

    start = time.monotonic()
    run(main())
    assert time.monotonic() - start < 18


def test_servers_are_started_once_and_a_set_of_them_is_used_once(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with (servers := one(bad("fine", log))):
            await asyncio.gather(*(observe(servers.tools) for _ in range(4)))
        with pytest.raises(RuntimeError, match="started once"):
            await servers.__aenter__()

    run(main())
    assert len(received(log, "initialize")) == 1


def test_fifty_calls_at_once_each_get_their_own_result() -> None:
    async def main() -> None:
        async with one(bad("fine")) as servers:
            records = await asyncio.gather(*(observe(servers.tools, arguments={"text": str(n)}) for n in range(50)))
            assert [content(record) for record in records] == [str(n) for n in range(50)]

    run(main())


def test_no_servers_are_no_tools() -> None:
    async def main() -> None:
        async with mcp_servers({}) as servers:
            assert (servers.tools.names, servers.problems) == ((), ())

    run(main())


# --- the end ----------------------------------------------------------------------------


def test_a_server_that_ends_when_its_input_does_is_not_hurried(tmp_path: Path) -> None:
    marker = tmp_path / "cleaned up"
    code = f"import sys; sys.stdin.read(); open({str(marker)!r}, 'w').close()"

    async def main() -> None:
        async with one(Stdio(sys.executable, ("-c", code), start_timeout=0.5)):
            pass
        assert marker.exists()

    run(main())


def test_one_that_ignores_its_end_is_killed_with_what_it_has_started() -> None:
    async def main() -> None:
        async with one(bad("stubborn", **QUICK)) as servers:
            pids = await pids_of(servers)
            assert all(map(runs, pids))
        await all_ended(pids)

    start = time.monotonic()
    run(main())
    assert time.monotonic() - start < 8


def test_an_exception_in_the_block_ends_them() -> None:
    pids: list[int] = []

    async def main() -> None:
        async with one(bad("stubborn", **QUICK)) as servers:
            pids.extend(await pids_of(servers))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main())
    run(all_ended(pids))


def test_a_cancel_of_the_block_ends_them() -> None:
    async def main() -> None:
        pids: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

        async def block() -> None:
            async with one(bad("stubborn", **QUICK)) as servers:
                pids.set_result(await pids_of(servers))
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        found = await pids
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await all_ended(found)

    run(main())


def test_a_cancel_while_they_end_kills_them_at_once() -> None:
    async def main() -> None:
        pids: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        leaving = asyncio.Event()

        async def block() -> None:
            async with one(bad("stubborn", close_timeout=60)) as servers:
                pids.set_result(await pids_of(servers))
                leaving.set()

        task = asyncio.create_task(block())
        found = await pids
        await leaving.wait()
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await all_ended(found)
        assert time.monotonic() - start < 10

    run(main())


def test_a_cancel_while_they_start_ends_them(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        task = asyncio.create_task(one(bad("hangs", log, **QUICK)).__aenter__())
        await until(lambda: received(log, "initialize"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


@contextlib.contextmanager
def program(code: str) -> Iterator[subprocess.Popen[str]]:
    """A program with servers, in an interpreter of its own."""
    prelude = f"""
        import asyncio, os, signal, sys, time
        # a shell may start what runs in the background with the signal ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from toolturn import handle_tool_call, ToolCall
        from toolturn.mcp import Stdio, mcp_servers
        servers = mcp_servers({{"box": Stdio(sys.executable, [{str(SCRIPT)!r}, "stubborn"], close_timeout=0.3)}})
        async def tell():
            result = await handle_tool_call(ToolCall("1", "echo", "{{}}"), servers.tools)
            print(result.message.content, flush=True)
    """
    text = textwrap.dedent(prelude) + textwrap.dedent(code)
    pipe = subprocess.PIPE
    env = {**os.environ, **environment()}
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", text], stdout=pipe, stderr=pipe, text=True, env=env
    ) as it:
        try:
            yield it
        finally:
            it.kill()


def pids_told(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.strip(), process.communicate(timeout=10)
    return [int(pid) for pid in line.split()]


def test_ctrl_c_ends_them() -> None:
    code = """
        async def main():
            async with servers:
                await tell()
                await asyncio.Event().wait()
        asyncio.run(main())
    """
    with program(code) as process:
        pids = pids_told(process)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=45)
        assert complaints.strip().endswith("KeyboardInterrupt")
        run(all_ended(pids))


def test_an_interpreter_that_ends_without_leaving_the_block_ends_them() -> None:
    code = """
        servers.__enter__()
        asyncio.run(tell())
    """
    with program(code) as process:
        pids = pids_told(process)
        _, complaints = process.communicate(timeout=45)
        assert complaints == ""
        run(all_ended(pids))


def test_a_loop_that_ends_without_leaving_the_block_ends_them() -> None:
    code = """
        async def main():
            await servers.__aenter__()
            await tell()
        asyncio.run(main())
    """
    with program(code) as process:
        pids = pids_told(process)
        process.communicate(timeout=45)
        run(all_ended(pids))


# --- from synchronous code, and from other loops ----------------------------------------


def test_they_serve_turns_of_synchronous_code() -> None:
    with one(bad("fine")) as servers, ScriptedModel([calls(("echo", '{"text":"yes"}')), "done"]) as model:
        result = run_tool_loop_sync(HELLO, servers.tools, model)
        assert content(result.tool_calls[0]) == "yes"
        tools = servers.tools
    with ScriptedModel([calls(("echo", "{}")), "done"]) as model:
        result = run_tool_loop_sync(HELLO, tools, model)
        assert "is unavailable: it was closed" in content(result.tool_calls[0])


def test_a_turn_on_another_event_loop_has_results_and_progress() -> None:
    events: list[Event] = []
    with one(bad("progress")) as servers:
        assert content(run(observe(servers.tools, emit=events.append))) == "done"
    assert [step["progress"] for step in progress_of(events)] == [1.0, 2.0]


def test_a_cancel_on_another_event_loop_sends_the_cancel_of_the_protocol(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main(servers: McpServers) -> None:
        task = asyncio.create_task(observe(servers.tools))
        await until(lambda: received(log, "tools/call"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: received(log, "notifications/cancelled"))

    with one(bad("hangs-on-call", log)) as servers:
        run(main(servers))


def test_tools_that_outlive_the_loop_of_their_servers_say_so() -> None:
    kept: list[McpServers] = []

    async def main() -> None:
        async with one(bad("fine")) as servers:
            kept.append(servers)

    run(main())
    assert "is unavailable: it was closed" in content(run(observe(kept[0].tools)))
