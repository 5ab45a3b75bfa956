"""A fast fake of an OpenAI-compatible chat-completions endpoint.

One asyncio Protocol on 127.0.0.1, with uvloop where it is installed. It does not parse JSON: it counts the tool
messages in the body and plays the script that is named in the URL path (see common.Spec.path).

    POST  /s/n=10,batch=1,delay=0,final=text,mark=tool/v1/chat/completions
    GET   /stats    -> {"cpu", "requests", "bytes_in"}

Usage: python fakeserver.py [port]      (prints the port on the first line)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time

try:
    import uvloop
except ImportError:  # still correct, only slower
    uvloop = None

STATS = {"requests": 0, "bytes_in": 0}
_scripts: dict[bytes, dict] = {}
_cache: dict[tuple, bytes] = {}
CREATED = 1700000000
MODEL = "scripted"
# what stands once in the body for each tool result (or, as text, for each call)
MARKS = {"tool": b'"tool_call_id"', "text": b"'id': 'c"}


def parse_script(path: bytes) -> dict:
    got = _scripts.get(path)
    if got is None:
        got = {"n": 1, "batch": 1, "delay": 0.0, "final": "text", "mark": "tool", "pieces": 0}
        parts = path.split(b"/")
        if len(parts) > 2 and parts[1] == b"s":
            for item in parts[2].decode().split(","):
                key, _, value = item.partition("=")
                got[key] = value
        got["n"] = int(got["n"])
        got["batch"] = int(got["batch"])
        got["delay"] = float(got["delay"])
        got["pieces"] = int(got["pieces"])
        got["mark"] = MARKS[got["mark"]]
        _scripts[path] = got
    return got


def http(body: bytes, content_type: str = "application/json") -> bytes:
    return (f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n").encode() + body


def calls_for(sc: dict, k: int):
    if k < sc["n"]:
        return [(f"c{k}_{b}", "lookup", f'{{"index": {k}}}') for b in range(sc["batch"])]
    if sc["final"] == "final_answer":  # for loops that end by a tool call
        return [(f"c{k}_0", "final_answer", '{"answer": "done"}')]
    return None


def reply_json(sc: dict, k: int) -> bytes:
    calls = calls_for(sc, k)
    message: dict = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": f, "arguments": a}} for i, f, a in calls
        ]
    return http(
        json.dumps(
            {
                "id": f"r{k}",
                "object": "chat.completion",
                "created": CREATED,
                "model": MODEL,
                "choices": [
                    {
                        "index": 0,
                        "message": message,
                        "logprobs": None,
                        "finish_reason": "tool_calls" if calls else "stop",
                    }
                ],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        ).encode()
    )


def reply_sse(sc: dict, k: int) -> bytes:
    """The whole stream: role, one name and two argument pieces per call, finish, usage.

    With pieces=n it is n chunks, of which the server writes each by itself; thoughts fill up what is missing.
    """
    calls = calls_for(sc, k)
    chunks: list[dict] = []

    def add(delta, finish=None):
        chunks.append(
            {
                "id": f"r{k}",
                "object": "chat.completion.chunk",
                "created": CREATED,
                "model": MODEL,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
        )

    add({"role": "assistant", "content": None if calls else ""})
    for _ in range(sc["pieces"] - (3 + (3 * len(calls) if calls else 2))):
        add({"reasoning_content": "Let me see. "})
    if calls:
        for b, (i, f, a) in enumerate(calls):
            add({"tool_calls": [{"index": b, "id": i, "type": "function", "function": {"name": f, "arguments": ""}}]})
            for piece in (a[:6], a[6:]):
                add({"tool_calls": [{"index": b, "function": {"arguments": piece}}]})
    else:
        for piece in ("do", "ne"):
            add({"content": piece})
    add({}, "tool_calls" if calls else "stop")
    chunks.append(
        {
            "id": f"r{k}",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": MODEL,
            "choices": [],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    )
    text = "".join("data: " + json.dumps(c) + "\n\n" for c in chunks) + "data: [DONE]\n\n"
    if not sc["pieces"]:
        return http(text.encode(), "text/event-stream")
    whole = http(text.encode(), "text/event-stream")
    events = whole.split(b"\n\n")
    return [event + b"\n\n" for event in events[:-1]]


class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.buf = bytearray()
        self.need = 0  # total bytes of the current request once its head is known
        self.head = b""

    def data_received(self, data):
        self.buf += data
        while True:
            if not self.need:
                end = self.buf.find(b"\r\n\r\n")
                if end < 0:
                    return
                self.head = bytes(self.buf[:end]).lower()
                self.path = bytes(self.buf[: self.buf.find(b"\r\n")]).split(b" ")[1]
                at = self.head.find(b"content-length:")
                length = int(self.head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
                self.body_at = end + 4
                self.need = self.body_at + length
            if len(self.buf) < self.need:
                return
            self.request()
            del self.buf[: self.need]
            self.need = 0
            if not self.buf:
                return

    def request(self):
        if self.head.startswith(b"get "):
            body = dict(STATS, cpu=time.process_time())
            self.transport.write(http(json.dumps(body).encode()))
            return
        STATS["requests"] += 1
        STATS["bytes_in"] += self.need
        sc = parse_script(self.path)
        buf = self.buf
        # "stream" is one of the last keys in most clients and one of the first in others
        tail = bytes(buf[max(self.body_at, self.need - 4096) : self.need])
        sse = b'"stream":true' in tail or b'"stream": true' in tail
        if not sse and b'"stream"' not in tail:
            sse = (
                buf.find(b'"stream":true', self.body_at, self.need) >= 0
                or buf.find(b'"stream": true', self.body_at, self.need) >= 0
            )
        k = buf.count(sc["mark"], self.body_at, self.need) // sc["batch"]
        key = (self.path, k, sse)
        out = _cache.get(key)
        if out is None:
            out = _cache[key] = (reply_sse if sse else reply_json)(sc, k)
        if type(out) is list:
            self.write_apart(iter(out))
        elif sc["delay"]:
            asyncio.get_running_loop().call_later(sc["delay"], self.transport.write, out)
        else:
            self.transport.write(out)

    def write_apart(self, pieces):
        """Write one piece now and the next when this one is on its way."""
        piece = next(pieces, None)
        if piece is not None:
            self.transport.write(piece)
            asyncio.get_running_loop().call_soon(self.write_apart, pieces)


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    if uvloop is not None:
        uvloop.install()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(wanted))
