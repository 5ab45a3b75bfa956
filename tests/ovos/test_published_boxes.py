"""The toolboxes that OpenVoiceOS finds by entry point: the built-in ones and MCP servers."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ovos_plugin_manager")

from ovos_bus_client import Message
from ovos_utils.fakebus import FakeBus
from ovos_utils.log import LOG

from toolturn.ovos.boxes import ClockToolBox, FilesToolBox, MathToolBox, McpToolBox, UnitsToolBox
from toolturn.ovos.toolboxes import toolset_of
from toolturn.toolboxes import toolbox

pytest.importorskip("simpleeval")
pytest.importorskip("pint")


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(LOG, "warning", lambda text, *_: said.append(text))
    return said


@pytest.mark.parametrize(
    ("cls", "name", "call"),
    [
        (ClockToolBox, "clock", ("add_days", {"date": "2026-02-27", "days": 2})),
        (MathToolBox, "math", ("calculator", {"expression": "17*23"})),
        (UnitsToolBox, "units", ("convert_units", {"value": 10, "from_unit": "km", "to_unit": "mile"})),
    ],
)
def test_a_built_in_toolbox_is_one_of_opm(cls: Any, name: str, call: Any, warnings: list[str]) -> None:
    made = cls()
    assert made.toolbox_id == f"toolturn-{name}"
    assert tuple(made.tools) == toolbox(name).names
    assert toolset_of(made) is toolbox(name)
    assert made.call_tool(*call).result in ("391", "10 kilometer = 6.21 mile") or name == "clock"
    assert cls(config={"timeout": 5, "enabled": True}, bus=FakeBus()).config["timeout"] == 5
    assert warnings == []


def test_a_key_that_nobody_knows_is_said_with_the_nearest_one(warnings: list[str]) -> None:
    ClockToolBox(config={"time_out": 5})
    assert warnings[0] == "toolturn-clock: nobody knows the key 'time_out'; did you mean 'timeout'?"


@pytest.mark.parametrize("config", [[], "text", 5])
def test_a_section_that_is_no_object_is_refused_aloud(config: Any) -> None:
    with pytest.raises(ValueError, match="toolturn-math: its section must be an object"):
        MathToolBox(config=config)


def test_the_files_of_named_folders_are_a_toolbox(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / "todo.md").write_text("Milk")
    made = FilesToolBox(config={"folders": {"notes": str(tmp_path)}, "timeout": 5})
    assert list(made.tools) == ["list_files", "read_file", "search_files"]
    assert made.call_tool("read_file", {"path": "notes/todo.md"}).result == "Milk"
    with pytest.raises(RuntimeError, match="is not there"):
        made.call_tool("read_file", {"path": "notes/no.md"})
    writing = FilesToolBox(config={"folders": [str(tmp_path)], "write": True})
    assert "write_file" in writing.tools
    assert warnings == []


@pytest.mark.parametrize("config", [None, {}, {"folders": []}, {"folders": ["/no/such/folder"]}])
def test_files_without_a_folder_are_refused_aloud(config: Any) -> None:
    with pytest.raises(ValueError, match="folders"):
        FilesToolBox(config=config)


# --- MCP servers -----------------------------------------------------------------------------

SERVER = '''
import os, sys
from pathlib import Path
from mcp.server.mcpserver import MCPServer

with open(sys.argv[1], "a") as log:
    log.write(f"{os.getpid()}\\n")
server = MCPServer("tests")

@server.tool()
def echo(text: str) -> str:
    """Echo a text."""
    return text

@server.tool()
def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)

server.run()
'''


@pytest.fixture
def command(tmp_path: Path) -> dict[str, Any]:
    pytest.importorskip("mcp.server.mcpserver")
    (tmp_path / "server.py").write_text(SERVER)
    return {"command": sys.executable, "args": [str(tmp_path / "server.py"), str(tmp_path / "started")]}


@pytest.fixture
def box(command: dict[str, Any]) -> Iterator[McpToolBox]:
    made = McpToolBox(config={"servers": {"one": command, "two": command}})
    yield made
    made.close()


def started(tmp_path: Path) -> list[int]:
    return [int(line) for line in (tmp_path / "started").read_text().splitlines()]


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(processes: list[int]) -> bool:
    until = time.monotonic() + 20
    while any(lives(process) for process in processes):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_servers_are_started_once_whatever_is_asked_and_end_with_the_toolbox(box: McpToolBox, tmp_path: Path) -> None:
    assert set(box.tools) == {"one__echo", "two__echo", "one__fail", "two__fail"}
    for _ in range(3):
        assert box.call_tool("one__echo", {"text": "hello"}).result == "hello"
        assert box.get_tool("made_up") is None
        box.refresh_tools()
        with pytest.raises(ValueError, match="Unknown tool"):
            box.call_tool("made_up", {})
    with pytest.raises(RuntimeError, match="Error executing tool fail"):
        box.call_tool("two__fail", {"text": "kitchen"})
    with pytest.raises(ValueError, match="text"):
        box.call_tool("one__echo", {})
    processes = started(tmp_path)
    assert len(processes) == 2
    box.close()
    box.close()
    assert ended(processes)
    assert box.tools == {}


def test_making_the_toolbox_waits_for_no_server(command: dict[str, Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    (tmp_path / "waiting.py").write_text(f"open({str(tmp_path / 'go')!r}).read()\n{SERVER}")
    made = McpToolBox(config={**command, "args": [str(tmp_path / "waiting.py"), command["args"][1]]}, bus=FakeBus())
    (tmp_path / "go").write_text("now")
    assert set(made.tools) == {"echo", "fail"}
    made.close()


def test_servers_answer_on_the_message_bus(command: dict[str, Any]) -> None:
    bus = FakeBus()
    made = McpToolBox(config={"servers": {"one": command}}, bus=bus)
    heard: list[Any] = []
    bus.on("ovos.persona.tools.call.response", lambda message: heard.append(message.data))
    call = {"toolbox_id": "toolturn-mcp", "name": "echo", "kwargs": {"text": "hello"}}
    bus.emit(Message("ovos.persona.tools.call", call))
    assert heard == [{"result": {"result": "hello"}, "toolbox_id": "toolturn-mcp"}]
    made.unbind()
    made.close()


def test_servers_end_when_nobody_has_the_toolbox_any_more(command: dict[str, Any], tmp_path: Path) -> None:
    made = McpToolBox(config=command)
    assert set(made.tools) == {"echo", "fail"}
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    assert ended(started(tmp_path))


def test_servers_end_with_the_program(command: dict[str, Any], tmp_path: Path) -> None:
    program = (
        "import json, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from toolturn.ovos.boxes import McpToolBox\n"
        "box = McpToolBox(config=json.loads(sys.argv[1]))\n"
        "print(sorted(box.tools))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(command)], capture_output=True, text=True, timeout=50, check=False
    )
    assert "['echo', 'fail']" in done.stdout
    assert done.returncode == 0, done.stderr
    assert ended(started(tmp_path))


def test_a_toolbox_that_is_closed_while_its_servers_start_leaves_nothing(
    command: dict[str, Any], tmp_path: Path
) -> None:
    McpToolBox(config=command).close()
    if (tmp_path / "started").exists():
        assert ended(started(tmp_path))


def test_a_server_that_does_not_start_is_named_and_takes_no_other_down(
    command: dict[str, Any], warnings: list[str]
) -> None:
    made = McpToolBox(config={"servers": {"good": command, "bad": {"command": "no-such-program-here"}}})
    assert set(made.tools) == {"echo", "fail"}
    assert any("bad" in text and "no-such-program-here" in text for text in warnings)
    told = len(warnings)
    assert set(made.tools) == {"echo", "fail"}
    assert len(warnings) == told
    made.close()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (None, "needs 'servers'"),
        ({}, "needs 'servers'"),
        ({"servers": 5}, "needs 'servers'"),
        ({"servers": {}}, "needs 'servers'"),
        ({"servers": ["echo a", "echo b"]}, "two servers of the name"),
        ({"servers": {"a": {"command": "x"}}, "names": "odd"}, "names must be"),
        ({"file": "/no/such/file.json"}, "the file can not be used"),
        ({"file": 5}, "the file can not be used"),
    ],
)
def test_a_section_that_can_not_be_used_is_refused_aloud(config: Any, told: str) -> None:
    pytest.importorskip("mcp")
    with pytest.raises(ValueError, match=told):
        McpToolBox(config=config)


def test_servers_can_be_named_as_other_programs_do(command: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"one": command}}))
    for config in (
        {"file": str(file)},
        {"mcpServers": {"one": command}},
        {"transport": "stdio", "timeout": 30, **command},
        {"servers": [" ".join(["one=" + command["command"], *command["args"]])]},
    ):
        made = McpToolBox(config=config)
        assert set(made.tools) == {"echo", "fail"}
        made.close()
    assert ended(started(tmp_path))
