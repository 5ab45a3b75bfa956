"""The package under test: run_tool_loop with a plain callback, with somebody who listens, and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, TOOL_DESCRIPTION, TOOL_NAME, Spec, make_tool, script, think
from pydantic import BaseModel, Field

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    Limits,
    Tool,
    ToolCall,
    ToolSet,
    run_tool_loop,
    stream_tool_loop,
)

HERE = True
DISTS = ["toolturn"]
IMPORTS = "import toolturn"
STREAMING = True
EVENTS = ["listener", "streaming", "iterator"]
REACTION = True

PIECES = ("Let me ", "look ", "that up.")


class Request(BaseModel):
    index: int = Field(ge=0)


class Result(BaseModel):
    text: str


def toolset(spec: Spec) -> ToolSet:
    call = make_tool(spec)
    if spec.sync_tool:

        def lookup(request: Request) -> Result:
            return Result(text=call(request.index))
    else:

        async def lookup(request: Request) -> Result:
            return Result(text=await call(request.index))

    return ToolSet([Tool(TOOL_NAME, TOOL_DESCRIPTION, Request, Result, lookup, parallel=True)])


def streaming_model(reply) -> ChatModel:
    class Scripted(ChatModel):
        capabilities = Capabilities(streaming=True, tools=True)

        async def complete(self, messages, tools=(), *, settings=None) -> ChatResponse:
            return await reply(messages, tools)

        async def stream(self, messages, tools=(), *, settings=None) -> AsyncIterator[Delta | ChatResponse]:
            response = await reply(messages, tools)
            for piece in PIECES if response.tool_calls else (FINAL,):
                yield Delta(piece)
            yield response

    return Scripted()


def inprocess(spec: Spec):
    tools = toolset(spec)
    options = {
        "limits": Limits(iterations=spec.n + 1, tool_calls=spec.n * spec.batch),
        "concurrency": spec.batch,
    }
    beside = "".join(PIECES) if spec.events in ("streaming", "iterator") else ""

    async def reply(messages, definitions) -> ChatResponse:
        await think(spec)
        calls = script(spec, messages[-1].tool_call_id)
        if calls is None:
            return ChatResponse(FINAL, None, None, "stop")
        return ChatResponse(beside, None, [ToolCall(*call) for call in calls], "tool_calls")

    model = streaming_model(reply) if spec.events in ("streaming", "iterator") else reply

    async def turn():
        return (await run_tool_loop([ChatMessage("user", PROMPT)], tools, model, **options)).content

    async def heard():
        heard: list[object] = []
        emit = heard.append
        return (await run_tool_loop([ChatMessage("user", PROMPT)], tools, model, emit=emit, **options)).content

    async def watched():
        async with stream_tool_loop([ChatMessage("user", PROMPT)], tools, model, **options) as events:
            async for _ in events:
                pass
            return (await events.result()).content

    return {"": turn, "listener": heard, "streaming": heard, "iterator": watched}[spec.events]


def http(base_url: str, spec: Spec):
    from toolturn.models.wires.openai_chat import OpenAIChat

    tools = toolset(spec)
    options = {"limits": Limits(iterations=spec.n + 1, tool_calls=spec.n * spec.batch)}
    model = OpenAIChat(MODEL_NAME, base_url=base_url + spec.path() + "/v1", api_key=API_KEY)
    # a turn that somebody listens to is one that streams
    emit = (lambda event: None) if spec.stream else None

    async def turn():
        return (await run_tool_loop([ChatMessage("user", PROMPT)], tools, model, emit=emit, **options)).content

    return turn
