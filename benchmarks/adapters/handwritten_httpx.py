"""The same loop over dictionaries with httpx: the whole request is encoded anew each time (HTTP only)."""

from __future__ import annotations

import json

from common import API_KEY, MODEL_NAME, PROMPT, TOOL_NAME, Spec, make_tool

from .handwritten import TOOLS, inprocess, loop, merge_stream  # noqa: F401  (in process it is the same loop)

DISTS = ["httpx"]
IMPORTS = "import asyncio, json, httpx"
STREAMING = True
SKIP_LOADS = ["w1", "w3", "w5"]  # in process it is the same loop as handwritten


def http(base_url: str, spec: Spec):
    import httpx

    tools = {TOOL_NAME: make_tool(spec)}
    client = httpx.AsyncClient(
        headers={"authorization": f"Bearer {API_KEY}"},
        timeout=120,
        trust_env=False,
        limits=httpx.Limits(max_connections=1000, max_keepalive_connections=1000),
    )
    url = base_url + spec.path() + "/v1/chat/completions"

    async def call_model(messages):
        body = {"model": MODEL_NAME, "messages": messages, "tools": TOOLS}
        if not spec.stream:
            reply = await client.post(url, json=body)
            return reply.json()["choices"][0]["message"]
        body["stream"] = True
        async with client.stream("POST", url, json=body) as reply:
            lines = [line async for line in reply.aiter_lines()]
        return merge_stream(json.loads(line[6:]) for line in lines if line.startswith("data: {"))

    async def turn():
        return await loop(call_model, tools, [{"role": "user", "content": PROMPT}], spec.n + 1)

    return turn
