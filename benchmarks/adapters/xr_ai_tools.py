"""NVIDIA xr-ai: xr_ai_tools.tool_calling.run_tool_loop over xr_ai_models."""

from __future__ import annotations

from common import FINAL, MODEL_NAME, PROMPT, TOOL_DESCRIPTION, TOOL_NAME, Spec, make_tool, script, think
from pydantic import BaseModel, Field

DISTS = ["xr-ai-tools", "xr-ai-models", "nemo-relay"]
IMPORTS = (
    "from xr_ai_tools.tool_calling import run_tool_loop; from xr_ai_tools.tools import Tool, ToolSet; "
    "from xr_ai_models import ChatMessage, OpenAICompatLLM"
)
STREAMING = False  # its stream() does not yield tool calls


class Lookup(BaseModel):
    index: int = Field(ge=0)


class Record(BaseModel):
    text: str


def toolset(spec: Spec):
    from xr_ai_tools.tools import Tool, ToolSet

    lookup = make_tool(spec)
    if spec.sync_tool:

        def handler(request: Lookup) -> Record:
            return Record(text=lookup(request.index))
    else:

        async def handler(request: Lookup) -> Record:
            return Record(text=await lookup(request.index))

    return ToolSet([Tool(TOOL_NAME, TOOL_DESCRIPTION, Lookup, Record, handler, render_result=lambda r: r.text)])


def make_turn(spec: Spec, call_model):
    from xr_ai_models import ChatMessage
    from xr_ai_tools.tool_calling import run_tool_loop

    tools = toolset(spec)

    async def turn():
        result = await run_tool_loop(
            [ChatMessage("user", PROMPT)],
            tools,
            call_model,
            max_iterations=spec.n + 1,
            max_tool_calls=spec.n * spec.batch,
        )
        return result.content

    return turn


def inprocess(spec: Spec):
    from xr_ai_models import ChatResponse, ToolCall

    async def call_model(messages, tools):
        await think(spec)
        calls = script(spec, messages[-1].tool_call_id)
        if calls is None:
            return ChatResponse(FINAL, None, None, "stop", {})
        return ChatResponse("", None, [ToolCall(*c) for c in calls], "tool_calls", {})

    return make_turn(spec, call_model)


def http(base_url: str, spec: Spec):
    from xr_ai_models import OpenAICompatLLM

    llm = OpenAICompatLLM(base_url + spec.path(), MODEL_NAME, timeout=120)

    async def call_model(messages, tools):
        return await llm.chat(messages, tools=tools)

    return make_turn(spec, call_model)
