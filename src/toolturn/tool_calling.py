"""The names of the bounded turn's published contract, nothing else."""

from __future__ import annotations

from .errors import (
    ToolLoopDirectReturnError,
    ToolLoopEmptyResponseError,
    ToolLoopError,
    ToolLoopIterationLimitError,
    ToolLoopMalformedResponseError,
    ToolLoopToolCallLimitError,
    ToolLoopTruncatedResponseError,
)
from .loop import handle_tool_call, run_tool_loop
from .messages import ChatMessage, ChatResponse, ToolCall, ToolDef
from .model import ModelCallback
from .results import ToolCallRecord, ToolCallResult, ToolLoopResult
from .tools import AsyncTool, Tool, ToolInvocationResult, ToolSet, tool_definitions

__all__ = [
    "AsyncTool",
    "ChatMessage",
    "ChatResponse",
    "ModelCallback",
    "Tool",
    "ToolCall",
    "ToolCallRecord",
    "ToolCallResult",
    "ToolDef",
    "ToolInvocationResult",
    "ToolLoopDirectReturnError",
    "ToolLoopEmptyResponseError",
    "ToolLoopError",
    "ToolLoopIterationLimitError",
    "ToolLoopMalformedResponseError",
    "ToolLoopResult",
    "ToolLoopToolCallLimitError",
    "ToolLoopTruncatedResponseError",
    "ToolSet",
    "handle_tool_call",
    "run_tool_loop",
    "tool_definitions",
]
