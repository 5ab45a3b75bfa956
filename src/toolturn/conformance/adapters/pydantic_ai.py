"""pydantic-ai, through ``Agent`` and its model for OpenAI's chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

REQUIREMENTS = ("pydantic-ai-slim[openai]>=2",)
DISTRIBUTION = "pydantic-ai-slim"
TYPED = ("pydantic_ai", "openai")
CAN = ("max_tool_calls", "timeout")


async def run(task: Task) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
    """
    from openai import AsyncOpenAI  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai import (  # type: ignore[import-not-found, unused-ignore]
        Agent,
        AgentRunResultEvent,
        UsageLimits,
        capture_run_messages,
    )
    from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found, unused-ignore]

    async with AsyncOpenAI(base_url=task.base_url, api_key=task.key, timeout=task.timeout) as client:
        model = OpenAIChatModel(task.model, provider=OpenAIProvider(openai_client=client))
        agent: Any = Agent(model, tools=list(task.tools))
        limits = UsageLimits(request_limit=task.max_iterations, tool_calls_limit=task.max_tool_calls)
        # the way its documentation names to get at the messages of a run that raised
        with capture_run_messages() as messages:
            try:
                if not task.stream:
                    return task.answered((await agent.run(task.prompt, usage_limits=limits)).output)
                output = None
                async with agent.run_stream_events(task.prompt, usage_limits=limits) as events:
                    async for event in events:
                        if isinstance(event, AgentRunResultEvent):
                            output = event.result.output
                return task.answered(output)
            except Exception as error:  # noqa: BLE001 - reported as it is
                parts = [part.part_kind for message in messages for part in message.parts]
                return task.failed(error, _kind(error), sum(kind in ("tool-return", "retry-prompt") for kind in parts))


def _kind(error: Exception) -> str | None:
    from pydantic_ai import exceptions  # type: ignore[import-not-found, unused-ignore]

    kinds = {
        exceptions.UsageLimitExceeded: "limit",
        exceptions.ModelAuthenticationError: "authentication",
        exceptions.ModelContextWindowExceededError: "context",
        exceptions.ModelRateLimitError: "rate_limit",
        exceptions.ModelQuotaExceededError: "rate_limit",
    }
    return next((kind for each, kind in kinds.items() if isinstance(error, each)), None)
