"""Toolboxes of the tests, written as those of other packages are."""

from __future__ import annotations

import threading
from typing import Any

from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput
from pydantic import Field


class EchoArguments(ToolArguments):  # type: ignore[misc]
    text: str = Field(description="what to say")
    times: int = 1


class EchoOutput(ToolOutput):  # type: ignore[misc]
    text: str


class NoArguments(ToolArguments):  # type: ignore[misc]
    pass


class AnyOutput(ToolOutput):  # type: ignore[misc]
    data: Any = None


class EchoBox(ToolBox):  # type: ignore[misc]
    """Tools that say something, fail, say too much, block."""

    discovered = 0

    def __init__(self, config: Any = None, bus: Any = None) -> None:
        self.ran: list[str] = []
        self.blocked = threading.Event()
        self.release = threading.Event()
        super().__init__("echo-box", config, bus)

    def echo(self, arguments: EchoArguments) -> EchoOutput:
        self.ran.append("echo")
        return EchoOutput(text=arguments.text * arguments.times)

    def boom(self, arguments: NoArguments) -> Any:
        self.ran.append("boom")
        raise KeyError("the cause")

    def leave(self, arguments: NoArguments) -> Any:
        raise SystemExit(3)

    def huge(self, arguments: NoArguments) -> Any:
        return {"data": "x" * 5_000_000}

    def nothing(self, arguments: NoArguments) -> Any:
        return None

    def plain(self, arguments: NoArguments) -> Any:
        return "a plain text"

    def block(self, arguments: NoArguments) -> Any:
        self.blocked.set()
        self.release.wait(20)
        return {"data": "late"}

    def discover_tools(self) -> list[AgentTool]:
        type(self).discovered += 1
        others = ("boom", "leave", "huge", "nothing", "plain", "block")
        made = [AgentTool(name, f"the tool {name}", NoArguments, AnyOutput, getattr(self, name)) for name in others]
        return [AgentTool("echo", "says it again", EchoArguments, EchoOutput, self.echo), *made]
