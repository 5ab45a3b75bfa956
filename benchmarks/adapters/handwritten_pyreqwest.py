"""A hand-written loop over pyreqwest in which each message is serialised once: the floor for an HTTP client library."""

from __future__ import annotations

import json

from common import API_KEY, MODEL_NAME, PROMPT, TOOL_NAME, Spec, make_tool

from adapters.handwritten import TOOLS, loop

DISTS = ["pyreqwest"]
IMPORTS = "import asyncio, json, pyreqwest.client"
STREAMING = False
SKIP_LOADS = ["w1", "w3", "w5"]


def inprocess(spec: Spec):
    raise NotImplementedError("HTTP only")


def http(base_url: str, spec: Spec):
    from pyreqwest.client import ClientBuilder

    tools = {TOOL_NAME: make_tool(spec)}
    client = ClientBuilder().build()
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    url = base_url + spec.path() + "/v1/chat/completions"
    tail = b'], "tools": ' + json.dumps(TOOLS).encode() + b"}"
    head = b'{"model": ' + json.dumps(MODEL_NAME).encode() + b', "messages": ['

    async def turn():
        encoded: list[bytes] = []

        async def call_model(messages):
            encoded.extend(json.dumps(m).encode() for m in messages[len(encoded) :])
            body = head + b", ".join(encoded) + tail
            reply = await client.post(url).headers(headers).body_bytes(body).build().send()
            return (await reply.json())["choices"][0]["message"]

        return await loop(call_model, tools, [{"role": "user", "content": PROMPT}], spec.n + 1)

    return turn
