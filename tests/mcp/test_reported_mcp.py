"""Reported troubles with MCP servers: each with a real process, over standard input and output or HTTP."""

from __future__ import annotations

import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from toolturn import ToolCallRecord, run_tool_loop
from toolturn.mcp import McpServers, Stdio, mcp_servers
from toolturn.messages import text_of
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, bad, bad_http, received, run, until

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "mcp_cases.jsonl").read_text(encoding="utf-8").splitlines()
]


async def started(given: dict[str, Any], stack: AsyncExitStack, folder: Path) -> McpServers:
    servers: dict[str, Any] = {}
    for name, known in given["servers"].items():
        way, options = known["way"].replace("{tmp}", str(folder)), known.get("options", {})
        if known.get("http"):
            servers[name] = await stack.enter_async_context(bad_http(way, folder / "log", **options))
        else:
            servers[name] = bad(way, folder / "log", **options)
    names = {"names": given["names"]} if "names" in given else {}
    return await stack.enter_async_context(mcp_servers(servers, **names))


async def one_turn(servers: McpServers, wanted: list[Any]) -> tuple[ToolCallRecord, ...]:
    """The records of a turn with one call in each reply."""
    tools = servers.tools
    named = [(name if isinstance(name, str) else tools.names[name], json.dumps(given)) for name, given in wanted]
    with ScriptedModel([*(calls(call) for call in named), "done"]) as model:
        result = await run_tool_loop(HELLO, tools, model, tool_errors="report", max_iterations=9)
    assert check(result.messages) == []
    return result.tool_calls


def compare(record: ToolCallRecord, oracle: dict[str, Any]) -> None:
    content = text_of(record.message.content)
    assert content
    assert record.status == oracle["status"]
    assert content == oracle.get("content", content)
    assert all(part in content for part in oracle.get("has", ()))
    assert not any(part in content for part in oracle.get("lacks", ()))
    assert len(content) <= oracle.get("content_max", len(content))
    places = [content.index(part) for part in oracle.get("in_order", ())]
    assert places == sorted(places)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_reported_trouble_with_a_server_ends_as_it_should(case: dict[str, Any], tmp_path: Path) -> None:
    given, oracle = case["input"], case["oracle"]

    async def main() -> None:
        async with AsyncExitStack() as stack:
            if "error" in oracle:
                with pytest.raises(ValueError, match=oracle["error"]):
                    await started(given, stack, tmp_path)
                return
            began = time.perf_counter()
            servers = await started(given, stack, tmp_path)
            before = servers.tools
            assert list(before.names) == oracle.get("tools", list(before.names))
            assert all(len(name) <= oracle.get("name_max", 64) for name in before.names)
            told = [f"{problem.server}: {problem.text}" for problem in servers.problems]
            for wanted in oracle.get("problems", ()):
                assert any(wanted in text for text in told)
            if "types" in oracle:
                assert {one.parameters["type"] for one in before.definitions} == {oracle["types"]}
            if given["calls"]:
                records = await one_turn(servers, given["calls"])
                for record, wanted in zip(records, oracle.get("records", ()), strict="records" in oracle):
                    compare(record, wanted)
            assert time.perf_counter() - began < oracle.get("seconds", 20)
            if "tools_after" in oracle:
                await until(lambda: list(servers.tools.names) == oracle["tools_after"])
                assert list(before.names) == oracle["tools"]

    run(main())
    for method, times in oracle.get("received", {}).items():
        assert len(received(tmp_path / "log", method)) == times, method


# Its list has other tools after the first call, and it does not know the old ones any more.
CHANGING = """
import sys
sys.path.insert(0, sys.argv[1])
import misbehaving

class Changing(misbehaving.Server):
    def call(self, number, params, send):
        if params["name"] not in [tool["name"] for tool in self.tools]:
            send(misbehaving.failure(number, -32602, "Unknown tool: " + params["name"]))
            return
        self.tools = [misbehaving.tool("b")]
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        send(misbehaving.reply(number, misbehaving.text("changed")))

server = Changing("fine", None)
server.tools = [misbehaving.tool("a")]
misbehaving.over_stdio(server)
"""


def test_a_tool_that_was_removed_within_a_turn_is_an_error_the_model_reads_and_the_next_turn_has_the_new_one() -> None:
    """https://github.com/github/copilot-cli/issues/3125: the old tools were called again and again."""
    server = Stdio(sys.executable, ("-c", CHANGING, str(Path(__file__).parent)), timeout=20.0)

    async def main() -> None:
        async with mcp_servers({"box": server}) as servers:
            first, second = await one_turn(servers, [["a", {}], ["a", {}]])
            assert (first.status, second.status) == ("ok", "error")
            assert "Unknown tool: a" in text_of(second.message.content)
            await until(lambda: servers.tools.names == ("b",))
            (third,) = await one_turn(servers, [["b", {}]])
            assert third.status == "ok"

    run(main())
