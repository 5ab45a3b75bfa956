"""The limit: a loop over plain dictionaries in which nothing is validated."""

from __future__ import annotations

import asyncio
import json

from common import PROMPT, TOOL_DESCRIPTION, TOOL_NAME, TOOL_SCHEMA, Spec, make_tool, script, think

HERE = True
IMPORTS = "import asyncio, json"
SKIP_LOADS = ["w2", "w3http"]

TOOLS = [
    {"type": "function", "function": {"name": TOOL_NAME, "description": TOOL_DESCRIPTION, "parameters": TOOL_SCHEMA}}
]


async def loop(call_model, tools: dict, messages: list, max_iterations: int) -> str:
    for _ in range(max_iterations):
        message = await call_model(messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return message["content"]
        for call in calls:
            function = call["function"]
            result = tools[function["name"]](**json.loads(function["arguments"]))
            if hasattr(result, "__await__"):
                result = await result
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise RuntimeError("iteration limit")


async def gathered_loop(call_model, tools: dict, messages: list, max_iterations: int) -> str:
    """The same with the calls of one batch run together."""

    async def run(call):
        function = call["function"]
        result = tools[function["name"]](**json.loads(function["arguments"]))
        if hasattr(result, "__await__"):
            result = await result
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    for _ in range(max_iterations):
        message = await call_model(messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return message["content"]
        messages.extend(await asyncio.gather(*map(run, calls)))
    raise RuntimeError("iteration limit")


def inprocess(spec: Spec):
    tools = {TOOL_NAME: make_tool(spec)}
    run = gathered_loop if spec.batch > 1 else loop

    async def call_model(messages):
        await think(spec)
        calls = script(spec, messages[-1].get("tool_call_id"))
        if calls is None:
            return {"role": "assistant", "content": "done"}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": i, "type": "function", "function": {"name": f, "arguments": a}} for i, f, a in calls],
        }

    async def turn():
        return await run(call_model, tools, [{"role": "user", "content": PROMPT}], spec.n + 1)

    return turn


def merge_stream(chunks) -> dict:
    """Merge the parsed chunks of a streamed reply into one message."""
    content, calls = "", {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            content += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(
                    piece["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += piece.get("id") or ""
                call["function"]["name"] += piece["function"].get("name") or ""
                call["function"]["arguments"] += piece["function"].get("arguments") or ""
    message: dict = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = list(calls.values())
    return message


def http(base_url: str, spec: Spec):
    raise NotImplementedError("in process only")
