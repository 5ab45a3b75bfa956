"""The limit over HTTP: a raw keep-alive socket, each message encoded once, the body joined from the pieces."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

from common import API_KEY, MODEL_NAME, PROMPT, TOOL_NAME, Spec, make_tool

from .handwritten import TOOLS, inprocess, merge_stream  # noqa: F401

HERE = True
IMPORTS = "import asyncio, json"
STREAMING = True
SKIP_LOADS = ["w1", "w3", "w5"]


class Connection:
    def __init__(self, base_url: str, path: str):
        at = urlsplit(base_url)
        self.address = (at.hostname, at.port)
        self.head = (
            f"POST {path} HTTP/1.1\r\nhost: {at.netloc}\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {API_KEY}\r\ncontent-length: "
        ).encode()
        self.idle: list = []

    async def post(self, pieces: list[bytes]) -> bytes:
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(*self.address)
        length = sum(map(len, pieces))
        writer.write(b"".join((self.head, b"%d\r\n\r\n" % length, *pieces)))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        at = head.index(b"content-length:") + 15
        body = await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
        self.idle.append((reader, writer))
        return body


def http(base_url: str, spec: Spec):
    tools = {TOOL_NAME: make_tool(spec)}
    connection = Connection(base_url, spec.path() + "/v1/chat/completions")
    opening = json.dumps({"model": MODEL_NAME, "tools": TOOLS, "stream": spec.stream})[:-1] + ', "messages": ['
    first = json.dumps({"role": "user", "content": PROMPT}).encode()

    async def turn():
        pieces = [opening.encode(), first]
        for _ in range(spec.n + 1):
            body = await connection.post([*pieces, b"]}"])
            if spec.stream:
                message = merge_stream(
                    [json.loads(part[6:]) for part in body.split(b"\n\n") if part.startswith(b"data: {")]
                )
            else:
                message = json.loads(body)["choices"][0]["message"]
            pieces += b", ", json.dumps(message).encode()
            calls = message.get("tool_calls")
            if not calls:
                return message["content"]
            for call in calls:
                function = call["function"]
                result = await tools[function["name"]](**json.loads(function["arguments"]))
                pieces += b", ", json.dumps({"role": "tool", "tool_call_id": call["id"], "content": result}).encode()
        raise RuntimeError("iteration limit")

    return turn
