"""Haystack: Agent with a scripted generator, or OpenAIChatGenerator over HTTP."""

from __future__ import annotations

from typing import Annotated

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, loads, make_sync_tool, make_tool, script, think

DISTS = ["haystack-ai", "openai"]
IMPORTS = (
    "from haystack.components.agents import Agent; from haystack.tools import tool; "
    "from haystack.components.generators.chat import OpenAIChatGenerator; "
    "from haystack.dataclasses import ChatMessage; from haystack.utils import Secret"
)
STREAMING = True
ASYNC_TOOLS = True


def make_turn(spec: Spec, generator):
    import inspect

    from haystack.components.agents import Agent
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function

    lookup = make_tool(spec)
    lookup.__annotations__.update(index=Annotated[int, "Which record."])
    try:
        tool = create_tool_from_function(lookup)
    except Exception:
        if not inspect.iscoroutinefunction(lookup):
            raise
        lookup = make_sync_tool(spec)  # versions without async tools
        lookup.__annotations__.update(index=Annotated[int, "Which record."])
        tool = create_tool_from_function(lookup)
    agent = Agent(chat_generator=generator, tools=[tool], max_agent_steps=spec.n + 5)

    async def turn():
        result = await agent.run_async(messages=[ChatMessage.from_user(PROMPT)])
        return result["messages"][-1].text

    return turn


def inprocess(spec: Spec):
    from haystack import component
    from haystack.dataclasses import ChatMessage, ToolCall

    @component
    class Scripted:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], tools=None, **kw):
            raise NotImplementedError

        @component.output_types(replies=list[ChatMessage])
        async def run_async(self, messages: list[ChatMessage], tools=None, **kw):
            await think(spec)
            result = messages[-1].tool_call_result
            calls = script(spec, result.origin.id if result else None)
            if calls is None:
                return {"replies": [ChatMessage.from_assistant(FINAL)]}
            return {
                "replies": [
                    ChatMessage.from_assistant(
                        tool_calls=[ToolCall(tool_name=name, arguments=loads(args), id=i) for i, name, args in calls]
                    )
                ]
            }

    return make_turn(spec, Scripted())


async def _ignore(chunk):
    pass


def http(base_url: str, spec: Spec):
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.utils import Secret

    return make_turn(
        spec,
        OpenAIChatGenerator(
            api_key=Secret.from_token(API_KEY),
            model=MODEL_NAME,
            api_base_url=base_url + spec.path() + "/v1",
            timeout=120,
            max_retries=0,
            streaming_callback=_ignore if spec.stream else None,
        ),
    )
