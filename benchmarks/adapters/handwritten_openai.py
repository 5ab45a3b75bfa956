"""The usual hand-written loop over the official openai SDK (HTTP only)."""

from __future__ import annotations

from common import API_KEY, MODEL_NAME, PROMPT, TOOL_NAME, Spec, make_tool

from .handwritten import TOOLS, inprocess, loop  # noqa: F401  (in process it is the same loop)

DISTS = ["openai"]
IMPORTS = "import asyncio, json; from openai import AsyncOpenAI; AsyncOpenAI(api_key='x').chat.completions"
STREAMING = True
SKIP_LOADS = ["w1", "w3", "w5"]  # in process it is the same loop as handwritten


def http(base_url: str, spec: Spec):
    from openai import AsyncOpenAI

    tools = {TOOL_NAME: make_tool(spec)}
    client = AsyncOpenAI(api_key=API_KEY, base_url=base_url + spec.path() + "/v1", timeout=120, max_retries=0)
    create = client.chat.completions.create

    async def call_model(messages):
        if not spec.stream:
            reply = await create(model=MODEL_NAME, messages=messages, tools=TOOLS)
            return reply.choices[0].message.model_dump(exclude_none=True)
        content, calls = "", {}
        async for chunk in await create(model=MODEL_NAME, messages=messages, tools=TOOLS, stream=True):
            for choice in chunk.choices:
                content += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    call = calls.setdefault(
                        piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                    )
                    call["id"] += piece.id or ""
                    call["function"]["name"] += piece.function.name or ""
                    call["function"]["arguments"] += piece.function.arguments or ""
        message: dict = {"role": "assistant", "content": content or None}
        if calls:
            message["tool_calls"] = list(calls.values())
        return message

    async def turn():
        return await loop(call_model, tools, [{"role": "user", "content": PROMPT}], spec.n + 1)

    return turn
