"""toolturn itself, in the current environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

REQUIREMENTS: tuple[str, ...] = ()
DISTRIBUTION = "toolturn"
TYPED = ("toolturn",)
CAN = ("max_tool_calls", "timeout")


async def run(task: Task, **options: Any) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
        options: Further arguments of the model.
    """
    from toolturn import ChatMessage, ToolLoopError, run_tool_loop, stream_tool_loop, tool
    from toolturn.models.named import model_named
    from toolturn.models.transport import Timeouts

    waits = Timeouts(task.timeout, task.timeout, task.timeout)
    model = model_named(f"{task.base_url}#{task.model}", api_key=task.key, timeouts=waits, **options)
    messages = [ChatMessage("user", task.prompt)]
    tools = [tool(function) for function in task.tools]
    limits: dict[str, Any] = {"max_iterations": task.max_iterations, "max_tool_calls": task.max_tool_calls}
    try:
        if not task.stream:
            return task.answered((await run_tool_loop(messages, tools, model, **limits)).content)
        async with stream_tool_loop(messages, tools, model, **limits) as events:
            async for _ in events:
                pass
            return task.answered((await events.result()).content)
    except ToolLoopError as error:
        results = sum(message.role == "tool" for message in error.messages)
        return task.failed(error, _kind(error), results)


def _kind(error: Exception) -> str:
    from toolturn.errors import ModelAuthenticationError, ModelContextError, ModelRateLimitError, ToolLoopLimitError

    if isinstance(error, ToolLoopLimitError):
        return "limit"
    match error.__cause__:
        case ModelAuthenticationError():
            return "authentication"
        case ModelContextError():
            return "context"
        case ModelRateLimitError():
            return "rate_limit"
    return "other"
