"""One bounded tool-calling turn with any language model.

Messages in, tools called, an answer or a typed error out, and a transcript that is always valid. Start with
:func:`run_tool_loop`; :mod:`toolturn.turn` is the machine below it.
"""

from __future__ import annotations

from .codec import (
    error_from_json,
    error_to_json,
    messages_from_json,
    messages_to_json,
    result_from_json,
    result_to_json,
)
from .drive import drive
from .errors import (
    ModelContextError,
    ModelError,
    ModelRequestError,
    ModelStreamError,
    ModelUnavailableError,
    ToolError,
    ToolLoopCancelledError,
    ToolLoopDeadlineError,
    ToolLoopDirectReturnError,
    ToolLoopEmptyResponseError,
    ToolLoopError,
    ToolLoopFilteredResponseError,
    ToolLoopIterationLimitError,
    ToolLoopLimitError,
    ToolLoopMalformedResponseError,
    ToolLoopModelError,
    ToolLoopToolCallLimitError,
    ToolLoopToolError,
    ToolLoopTruncatedResponseError,
    ToolTimeoutError,
)
from .limits import Limits
from .loop import TurnStream, handle_tool_call, resume, run_tool_loop, run_tool_loop_sync, stream_tool_loop
from .messages import ChatMessage, ChatResponse, ImagePart, Repair, TextPart, ToolCall, ToolDef, Usage
from .model import Capabilities, ChatModel, Delta, ModelCallback, ModelSettings
from .perform import Performer
from .results import ToolCallRecord, ToolCallResult, ToolLoopResult
from .tools import (
    AsyncTool,
    Tool,
    ToolContext,
    ToolHook,
    ToolInvocation,
    ToolInvocationResult,
    ToolSet,
    TurnContext,
    tool,
    tool_definitions,
    tool_from_schema,
)
from .turn import CallModel, CallTool, ModelFailed, ToolFailed, Turn

__version__ = "0.1.0"

__all__ = [
    "AsyncTool",
    "CallModel",
    "CallTool",
    "Capabilities",
    "ChatMessage",
    "ChatModel",
    "ChatResponse",
    "Delta",
    "ImagePart",
    "Limits",
    "ModelCallback",
    "ModelContextError",
    "ModelError",
    "ModelFailed",
    "ModelRequestError",
    "ModelSettings",
    "ModelStreamError",
    "ModelUnavailableError",
    "Performer",
    "Repair",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolCallRecord",
    "ToolCallResult",
    "ToolContext",
    "ToolDef",
    "ToolError",
    "ToolFailed",
    "ToolHook",
    "ToolInvocation",
    "ToolInvocationResult",
    "ToolLoopCancelledError",
    "ToolLoopDeadlineError",
    "ToolLoopDirectReturnError",
    "ToolLoopEmptyResponseError",
    "ToolLoopError",
    "ToolLoopFilteredResponseError",
    "ToolLoopIterationLimitError",
    "ToolLoopLimitError",
    "ToolLoopMalformedResponseError",
    "ToolLoopModelError",
    "ToolLoopResult",
    "ToolLoopToolCallLimitError",
    "ToolLoopToolError",
    "ToolLoopTruncatedResponseError",
    "ToolSet",
    "ToolTimeoutError",
    "Turn",
    "TurnContext",
    "TurnStream",
    "Usage",
    "drive",
    "error_from_json",
    "error_to_json",
    "handle_tool_call",
    "messages_from_json",
    "messages_to_json",
    "result_from_json",
    "result_to_json",
    "resume",
    "run_tool_loop",
    "run_tool_loop_sync",
    "stream_tool_loop",
    "tool",
    "tool_definitions",
    "tool_from_schema",
]
