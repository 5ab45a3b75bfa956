"""The openai-agents SDK, through ``Runner`` and its model for chat completions.

What it has no limit for is not in ``CAN``. Its handler for too many turns gives an answer that the program makes up and
asks no model. Its stream tells the text of every reply, not of the answer alone.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

REQUIREMENTS = ("openai-agents>=0.24",)
DISTRIBUTION = "openai-agents"
TYPED = ("agents", "openai")
CAN = ("timeout", "go_on", "sequential", "approval", "bound_approval", "events")


async def run(task: Task) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
    """
    from agents import (  # type: ignore[import-not-found, unused-ignore]
        Agent,
        MaxTurnsExceeded,
        OpenAIChatCompletionsModel,
        SQLiteSession,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI  # type: ignore[import-not-found, unused-ignore]

    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=task.base_url, api_key=task.key, timeout=task.timeout) as client:
        model = OpenAIChatCompletionsModel(model=task.model, openai_client=client)
        tools = [function_tool(each, needs_approval=each.__name__ in task.approval) for each in task.tools]
        agent: Any = Agent(name="lab", model=model, tools=tools)
        # the way its documentation names to keep a conversation
        session: Any = SQLiteSession("lab") if task.keep else None
        kept: dict[str, Any] = {} if task.saved is None else json.loads(task.saved)
        streamed: list[Any] = []
        try:
            if task.decisions:
                start = await _decided(agent, kept["state"], task)
            else:
                start = task.prompt
                if kept:
                    await session.add_items(kept["items"])
            result = await _played(agent, start, session, task, streamed)
            if result.interruptions:
                pending = [
                    {"id": item.raw_item.call_id, "name": item.tool_name, "arguments": item.raw_item.arguments}
                    for item in result.interruptions
                ]
                state = result.to_state().to_string()
                return task.waits(pending, json.dumps({"state": state, "items": result.to_input_list()}))
            return task.answered(result.final_output, await _items(session, None))
        except asyncio.CancelledError:
            for each in streamed:
                each.cancel()
                async for _ in each.stream_events():  # its documentation asks for that
                    pass
            return task.cancelled(await _items(session, None))
        except Exception as error:  # noqa: BLE001 - reported as it is
            # the items of a run that raised: on its exception, or on the object that was streamed from
            items = getattr(error, "run_data", None) or next(iter(streamed), None)
            types = None if items is None else [item.type for item in items.new_items]
            results = None if types is None else types.count("tool_call_output_item")
            kind = "limit" if isinstance(error, MaxTurnsExceeded) else None
            return task.failed(error, kind, results, await _items(session, items))


async def _played(agent: Any, start: Any, session: Any, task: Task, streamed: list[Any]) -> Any:
    from agents import (  # type: ignore[import-not-found, unused-ignore]
        RunConfig,
        Runner,
        ToolExecutionConfig,
    )

    options: dict[str, Any] = {"max_turns": task.max_iterations, "session": session}
    if task.sequential:
        options["run_config"] = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))
    if not task.stream:
        return await Runner.run(agent, start, **options)
    result = Runner.run_streamed(agent, start, **options)
    streamed.append(result)
    names: dict[str, str] = {}
    async for event in result.stream_events():
        if event.type != "run_item_stream_event":
            continue
        match event.name:
            case "tool_called":
                call = event.item.raw_item
                names[call.call_id] = call.name
                task.seen("call", call.name)
            case "tool_output":
                task.seen("result", names.get(event.item.raw_item["call_id"], ""))
            case "message_output_created":
                task.seen("answer")
    return result


async def _decided(agent: Any, saved: str, task: Task) -> Any:
    from agents import RunState, ToolApprovalItem  # type: ignore[import-not-found, unused-ignore]
    from openai.types.responses import ResponseFunctionToolCall  # type: ignore[import-not-found, unused-ignore]

    state: Any = await RunState.from_string(agent, saved)
    for each in task.decisions:
        # as the person saw it, and not as the state that came back says
        call = ResponseFunctionToolCall(
            type="function_call", call_id=each["id"], name=each["name"], arguments=each["arguments"]
        )
        item = ToolApprovalItem(agent=agent, raw_item=call)
        if each["approved"]:
            state.approve(item)
        else:
            state.reject(item, rejection_message=each["reason"])
    return state


async def _items(session: Any, raised: Any) -> str | None:
    """The conversation, as its session holds it."""
    if session is None:
        return None
    return json.dumps({"items": await session.get_items()})
