"""Tools: what a model may call, and how it is run."""

from __future__ import annotations

from .context import ToolContext, TurnContext
from .function import tool
from .hooks import ToolHook, ToolInvocation
from .json_schema import tool_from_schema
from .stream import AsyncTool
from .tool import Tool, ToolInvocationResult
from .toolset import ToolSet, tool_definitions

__all__ = [
    "AsyncTool",
    "Tool",
    "ToolContext",
    "ToolHook",
    "ToolInvocation",
    "ToolInvocationResult",
    "ToolSet",
    "TurnContext",
    "tool",
    "tool_definitions",
    "tool_from_schema",
]
