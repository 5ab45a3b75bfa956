"""``--mcp`` on the command line: from what a user typed to tools beside the toolboxes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from toolturn import ToolSet, run_tool_loop_sync, tool
from toolturn.cli.mcp_option import mcp_option, servers_of, with_mcp
from toolturn.mcp import Http, Stdio
from toolturn.testing import ScriptedModel, calls

from ..running.support import environment
from .support import HELLO, SCRIPT, content, run, runs, until

FINE = shlex.join([sys.executable, str(SCRIPT), "fine"])


@tool
def echo(text: str) -> str:
    """Say it again."""
    return f"own {text}"


def test_the_option_can_be_given_several_times() -> None:
    @click.command()
    @mcp_option
    def command(mcp: tuple[str, ...]) -> None:
        click.echo(json.dumps(mcp))

    result = CliRunner().invoke(command, ["--mcp", "a b", "--mcp", "http://c/d"])
    assert json.loads(result.output) == ["a b", "http://c/d"]


def test_own_tools_keep_their_names_and_the_servers_tools_stand_beside_them() -> None:
    notes: list[str] = []
    with with_mcp([f"box={FINE}"], ToolSet([echo]), notes.append) as tools:
        assert tools.names == ("echo", "box__echo", "other")
        first, second = calls(("echo", '{"text":"a"}')), calls(("box__echo", '{"text":"b"}'))
        with ScriptedModel([first, second, "done"]) as model:
            result = run_tool_loop_sync(HELLO, tools, model)
        assert [content(record) for record in result.tool_calls] == ["own a", "b"]
    assert notes == []


def test_without_servers_the_tools_are_handed_on_as_they_are() -> None:
    given = ToolSet([echo])
    with with_mcp([], given, print) as tools:
        assert tools is given


def test_a_server_that_does_not_run_is_noted_and_the_others_serve() -> None:
    notes: list[str] = []
    with with_mcp([FINE, "gone=no-such-program-anywhere"], ToolSet(), notes.append) as tools:
        assert tools.names == ("echo", "other")
    assert notes == ["[mcp] gone: there is no program 'no-such-program-anywhere'"]


def test_it_is_an_error_when_none_of_them_runs_and_it_says_why() -> None:
    why = "none of the MCP servers runs: .*: there is no program 'no-such-program-anywhere'"
    with (
        pytest.raises(click.ClickException, match=why),
        with_mcp(["no-such-program-anywhere"], ToolSet(), lambda _: None),
    ):
        raise AssertionError("the block was entered")


def test_names_that_are_made_up_make_way_and_names_that_are_given_do_not() -> None:
    servers, _ = servers_of(["python -m mcp_server_time", "uvx mcp-server-time", "http://time:80/"])
    assert list(servers) == ["time", "time2", "time3"]
    with pytest.raises(click.BadParameter, match="two servers of the name 'a'"):
        servers_of(["a=x", "a=y"])


def test_a_file_holds_several_servers(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    entries = {
        "a": {"command": "x"},
        "b": {"url": "https://b.example.org/mcp"},
        "c": {"type": "sse", "url": "http://c/"},
    }
    file.write_text(json.dumps({"mcpServers": entries}))
    servers, problems = servers_of([str(file), "d=y"])
    assert servers == {"a": Stdio("x"), "b": Http("https://b.example.org/mcp"), "d": Stdio("y")}
    assert [problem.server for problem in problems] == ["c"]
    file.write_text("{")
    with pytest.raises(click.BadParameter, match="it is no JSON"):
        servers_of([str(file)])


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_sigterm_ends_the_servers(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    stubborn = {"command": sys.executable, "args": [str(SCRIPT), "stubborn"], "close_timeout": 0.3}
    file.write_text(json.dumps({"mcpServers": {"stubborn": stubborn}}))
    code = f"""
        import asyncio, threading
        from toolturn import ToolCall, ToolSet, handle_tool_call
        from toolturn.cli.mcp_option import with_mcp
        with with_mcp([{str(file)!r}], ToolSet(), print) as tools:
            print(asyncio.run(handle_tool_call(ToolCall("1", "echo", "{{}}"), tools)).message.content, flush=True)
            threading.Event().wait()
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    env = {**os.environ, **environment()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert pids
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=45)
    assert (process.returncode, complaints) == (143, "")
    run(until(lambda: not any(map(runs, pids))))
