"""Hooks around tool calls: look at each call before it runs and at each result before the model sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..messages import ToolCall
from .context import ToolContext
from .tool import Tool, ToolInvocationResult


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A call that is about to run.

    Args:
        name: The tool's name in the set.
        tool: The tool.
        call: The call as the model made it.
        request: The validated arguments; what is checked here is what runs.
        context: What the handler may know of the turn.
    """

    name: str
    tool: Tool[Any, Any]
    call: ToolCall
    request: Any
    context: ToolContext


Given: TypeAlias = ToolInvocationResult | None
Before: TypeAlias = Callable[[ToolInvocation], Given | Awaitable[Given]]
After: TypeAlias = Callable[[ToolInvocation, ToolInvocationResult], Given | Awaitable[Given]]


@dataclass(frozen=True, slots=True)
class ToolHook:
    """Something to do before and after each tool call; hooks nest, the first one is outermost.

    Args:
        before: May return a result to use instead of running the tool, or raise ToolError to refuse the call with a
            reason for the model; None lets the call go on.
        after: May return another result, for instance one with secrets left out; None keeps it. The object behind a
            direct return stays where the other result has none. It also sees the result that a hook further in gave
            instead of running the tool.
    """

    before: Before | None = None
    after: After | None = None
