"""pydantic-ai, through ``Agent`` and its model for OpenAI's chat completions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

REQUIREMENTS = ("pydantic-ai-slim[openai]>=2",)
DISTRIBUTION = "pydantic-ai-slim"
TYPED = ("pydantic_ai", "openai")
CAN = (
    "max_tool_calls",
    "timeout",
    "tokens",
    "cost",
    "deadline",
    "go_on",
    "sequential",
    "approval",
    "events",
    "answer_stream",
)


async def run(task: Task) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
    """
    from openai import AsyncOpenAI  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai import (  # type: ignore[import-not-found, unused-ignore]
        Agent,
        DeferredToolRequests,
        Tool,
        capture_run_messages,
    )
    from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found, unused-ignore]

    async with AsyncOpenAI(base_url=task.base_url, api_key=task.key, timeout=task.timeout) as client:
        model = OpenAIChatModel(task.model, provider=OpenAIProvider(openai_client=client))
        tools = [
            Tool(each, requires_approval=each.__name__ in task.approval, sequential=task.sequential)
            for each in task.tools
        ]
        output: Any = [str, DeferredToolRequests] if task.approval else str
        agent: Any = Agent(model, tools=tools, output_type=output)
        # the way its documentation names to get at the messages of a run that raised
        with capture_run_messages() as messages:
            try:
                result = await _played(agent, task)
                if isinstance(result.output, DeferredToolRequests):
                    pending = [
                        {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args}
                        for part in result.output.approvals
                    ]
                    return task.waits(pending, result.all_messages_json().decode())
                return task.answered(result.output, result.all_messages_json().decode())
            except asyncio.CancelledError:
                return task.cancelled(_saved(messages))
            except Exception as error:  # noqa: BLE001 - reported as it is
                parts = [part.part_kind for message in messages for part in message.parts]
                results = sum(kind in ("tool-return", "retry-prompt") for kind in parts)
                return task.failed(error, _kind(error), results, _saved(messages))


async def _played(agent: Any, task: Task) -> Any:
    from pydantic_ai import (  # type: ignore[import-not-found, unused-ignore]
        AgentRunResultEvent,
        DeferredToolResults,
        FunctionToolCallEvent,
        FunctionToolResultEvent,
        ModelMessagesTypeAdapter,
        ToolDenied,
        UsageLimits,
    )

    options: dict[str, Any] = {
        "usage_limits": UsageLimits(
            request_limit=task.max_iterations,
            tool_calls_limit=task.max_tool_calls,
            total_tokens_limit=task.limits.get("tokens"),
            cost_limit=_priced(task.limits["cost"]) if "cost" in task.limits else None,
        ),
        "timeout": task.limits.get("deadline"),
    }
    if task.saved is not None:
        options["message_history"] = ModelMessagesTypeAdapter.validate_json(task.saved)
    prompt: str | None = task.prompt
    if task.decisions:
        prompt = None
        options["deferred_tool_results"] = DeferredToolResults(
            approvals={each["id"]: each["approved"] or ToolDenied(each["reason"]) for each in task.decisions}
        )
    if not task.stream:
        return await agent.run(prompt, **options)
    if task.answer_only:
        return await _spoken(agent, prompt, task, options)
    result = None
    async with agent.run_stream_events(prompt, **options) as events:
        async for event in events:
            match event:
                case FunctionToolCallEvent():
                    task.seen("call", event.part.tool_name)
                case FunctionToolResultEvent():
                    task.seen("result", event.part.tool_name)
                case AgentRunResultEvent():
                    result = event.result
                    task.seen("answer")
    return result


def _priced(limit: float) -> Any:
    """Teach the list of prices, in which it looks models up, those of the lab."""
    from dataclasses import replace
    from decimal import Decimal

    from genai_prices import data_snapshot, types  # type: ignore[import-not-found, unused-ignore]

    million = Decimal(10_000)
    prices = types.ModelPrice(input_mtok=million, output_mtok=million)
    model = types.ModelInfo(id="lab", match=types.ClauseContains(contains="budget"), prices=prices)
    known = data_snapshot.get_snapshot().providers
    openai = replace(next(each for each in known if each.id == "openai"), models=[model])
    data_snapshot.set_custom_snapshot(data_snapshot.DataSnapshot(providers=[openai], from_auto_update=False))
    return Decimal(str(limit))


async def _spoken(agent: Any, prompt: Any, task: Task, options: Any) -> Any:
    """The way its documentation names to stream the text of the output while tools run on."""
    from pydantic_ai import Agent, FinalResultEvent  # type: ignore[import-not-found, unused-ignore]

    async with agent.iter(prompt, **options) as turn:
        async for node in turn:
            if Agent.is_model_request_node(node):
                async with node.stream(turn.ctx) as stream:
                    async for event in stream:
                        if isinstance(event, FinalResultEvent):
                            async for text in stream.stream_text(delta=True):
                                task.seen("text", text)
                            break
    return turn.result


def _saved(messages: Any) -> str | None:
    from pydantic_ai import ModelMessagesTypeAdapter  # type: ignore[import-not-found, unused-ignore]

    saved: str = ModelMessagesTypeAdapter.dump_json(messages).decode()
    return saved


def _kind(error: Exception) -> str | None:
    from pydantic_ai import exceptions  # type: ignore[import-not-found, unused-ignore]

    kinds = {
        exceptions.UsageLimitExceeded: "limit",
        exceptions.RunTimedOut: "limit",
        exceptions.ModelAuthenticationError: "authentication",
        exceptions.ModelContextWindowExceededError: "context",
        exceptions.ModelRateLimitError: "rate_limit",
        exceptions.ModelQuotaExceededError: "rate_limit",
    }
    return next((kind for each, kind in kinds.items() if isinstance(error, each)), None)
