"""The openai-agents SDK, through ``Runner`` and its model for chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

REQUIREMENTS = ("openai-agents>=0.24",)
DISTRIBUTION = "openai-agents"
TYPED = ("agents", "openai")
CAN = ("timeout",)


async def run(task: Task) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
    """
    from agents import (  # type: ignore[import-not-found, unused-ignore]
        Agent,
        MaxTurnsExceeded,
        OpenAIChatCompletionsModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI  # type: ignore[import-not-found, unused-ignore]

    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=task.base_url, api_key=task.key, timeout=task.timeout) as client:
        model = OpenAIChatCompletionsModel(model=task.model, openai_client=client)
        agent: Any = Agent(name="lab", model=model, tools=[function_tool(each) for each in task.tools])
        streamed: Any = None
        try:
            if not task.stream:
                result = await Runner.run(agent, task.prompt, max_turns=task.max_iterations)
                return task.answered(result.final_output)
            streamed = Runner.run_streamed(agent, task.prompt, max_turns=task.max_iterations)
            async for _ in streamed.stream_events():
                pass
            return task.answered(streamed.final_output)
        except Exception as error:  # noqa: BLE001 - reported as it is
            # the items of a run that raised: on its exception, or on the object that was streamed from
            kept = getattr(error, "run_data", None) or streamed
            items = None if kept is None else [item.type for item in kept.new_items]
            results = None if items is None else items.count("tool_call_output_item")
            return task.failed(error, "limit" if isinstance(error, MaxTurnsExceeded) else None, results)
