"""pydantic-ai: Agent.run with FunctionModel, or OpenAIChatModel over HTTP."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge
from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, make_tool, script, think

DISTS = ["pydantic-ai-slim", "openai"]
IMPORTS = (
    "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIChatModel; "
    "from pydantic_ai.providers.openai import OpenAIProvider"
)
STREAMING = True


def make_turn(spec: Spec, model):
    from pydantic_ai import Agent
    from pydantic_ai.usage import UsageLimits

    lookup = make_tool(spec)
    lookup.__annotations__["index"] = Annotated[int, Ge(0)]
    agent = Agent(model, tools=[lookup])
    limits = UsageLimits(request_limit=None)

    if not spec.stream:

        async def turn():
            return (await agent.run(PROMPT, usage_limits=limits)).output
    else:

        async def turn():
            async with agent.iter(PROMPT, usage_limits=limits) as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        async with node.stream(run.ctx) as stream:
                            async for _ in stream:
                                pass
                return run.result.output

    return turn


def inprocess(spec: Spec):
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import RequestUsage

    def response(parts):
        # with a usage: otherwise FunctionModel counts the tokens of the whole transcript on each request
        return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=10, output_tokens=5))

    async def reply(messages, info):
        await think(spec)
        last = messages[-1].parts[-1]
        calls = script(spec, getattr(last, "tool_call_id", None) if last.part_kind == "tool-return" else None)
        if calls is None:
            return response([TextPart(FINAL)])
        return response([ToolCallPart(name, args, tool_call_id=i) for i, name, args in calls])

    return make_turn(spec, FunctionModel(reply))


def http(base_url: str, spec: Spec):
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=base_url + spec.path() + "/v1", api_key=API_KEY)
    return make_turn(spec, OpenAIChatModel(MODEL_NAME, provider=provider))
