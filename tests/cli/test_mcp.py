"""``--mcp``: tools of servers beside the toolboxes, kept in a saved turn."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import pytest

from toolturn.conformance.replies import Call, Chat, Http
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer

from .conftest import Run

pytest.importorskip("mcp")
pytest.importorskip("mcp_server_time")

ASKS = Chat(None, (Call("get_current_time", '{"timezone": "UTC"}'),), "tool_calls")
ROWS = [Fault("asks", "", (ASKS, Chat("Now.")), ()), Fault("stops", "", (ASKS, Http(400, {}), Chat("Now.")), ())]
SERVER = f"time={sys.executable} -m mcp_server_time"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LabServer(ROWS) as lab:
        yield lab.base_url


def test_a_tool_of_a_server_runs_in_a_turn(run: Run, address: str) -> None:
    done = run("ask", "--json", "--model", f"{address}#asks", "--tools", "none", "--mcp", SERVER, "What time is it?")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["tools"] == ["get_current_time", "convert_time"]
    assert "UTC" in document["tool_calls"][0]["message"]["content"]
    assert document["tool_calls"][0]["status"] == "ok"


def test_a_saved_turn_knows_its_servers(run: Run, address: str) -> None:
    done = run("ask", "--model", f"{address}#stops", "--tools", "none", "--mcp", SERVER, "What time is it?")
    assert done.returncode == 1
    found = re.search(r"toolturn resume (\S+)'", done.stderr)
    assert found is not None
    done = run("resume", found[1])
    assert (done.returncode, done.stdout) == (0, "Now.\n")


def test_a_server_that_does_not_start_is_named(run: Run, address: str) -> None:
    done = run("ask", "--model", f"{address}#asks", "--tools", "none", "--mcp", "no-such-command", "What time is it?")
    assert done.returncode == 1
    assert "no-such-command" in done.stderr
    assert "Traceback" not in done.stderr
