"""A server with a pretended model that does everything right, unless a test spoils its replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from toolturn.conformance.validator import faults_of

Spoil = Callable[[dict[str, Any], dict[str, Any]], Any]
"""Takes a request and the good reply to it, and gives the reply that is sent."""


def same(request: dict[str, Any], reply: dict[str, Any]) -> Any:
    return reply


def _arguments(name: str, text: str) -> list[dict[str, Any]]:
    if name == "get_temp":
        return [{"city": city} for city in ("Faro", "Braga") if city in text] or [{"city": "Faro"}]
    if name == "order":
        return [{"goods": ["tea", "milk"], "amount": 3, "express": True, "note": 'He said "knock twice", then leave.'}]
    return [{}]


class PretendedModel:
    """Replies by rules: a question about the temperature becomes a call, a result becomes an answer."""

    def __init__(self) -> None:
        self.calls = 0

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        text = str(body["messages"][-1]["content"])
        tools = {tool["function"]["name"]: tool for tool in body.get("tools", ())}
        choice = body.get("tool_choice", "auto")
        message: dict[str, Any] = {"role": "assistant", "content": "ready"}
        reason = "stop"
        names = [
            name
            for name in ("get_temp", "order")
            if (name in tools and "Use the tool" in text) or "with the tool" in text
        ]
        if choice == "none" or body["messages"][-1]["role"] == "tool":
            names = []
        elif isinstance(choice, dict):
            names = [choice["function"]["name"]]
        elif choice == "required" and not names:
            names = [next(iter(tools))]
        if body["messages"][-1]["role"] == "tool":
            message["content"] = f"It is {text} degrees."
        elif names:
            message = {"role": "assistant", "content": None, "tool_calls": []}
            reason = "tool_calls"
            for arguments in _arguments(names[0], text):
                self.calls += 1
                function = {"name": names[0], "arguments": json.dumps(arguments)}
                message["tool_calls"].append({"id": f"call_{self.calls}", "type": "function", "function": function})
        elif "numbers from 1 to" in text:
            message["content"] = "one two three four five six seven"
            reason = "length" if body.get("max_tokens") == 5 else "stop"
        return {
            "id": "r",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
        }


def _chunks(reply: dict[str, Any], usage: bool) -> Iterator[dict[str, Any]]:
    choice = reply["choices"][0]
    message = choice["message"]
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": reply["model"]}

    def chunk(delta: dict[str, Any], finish: Any = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for word in (message["content"] or "").split(" "):
        yield chunk({"content": f"{word} "})
    for index, call in enumerate(message.get("tool_calls", ())):
        whole = call["function"]["arguments"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        for part in (whole[:5], whole[5:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, choice["finish_reason"])
    if usage:
        yield {**head, "choices": [], "usage": reply["usage"]}


@contextmanager
def pretend(spoil: Spoil = same, spoil_chunk: Callable[[dict[str, Any]], Any] = lambda chunk: chunk) -> Iterator[str]:
    """Serve the model ``good``; gives the address. A spoiled reply of bytes is sent with the status 200."""
    model = PretendedModel()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.answer(200, spoil({}, {"object": "list", "data": [{"id": "good", "object": "model"}]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if body.get("model") != "good":
                return self.answer(404, spoil(body, {"error": {"message": "no such model", "code": "not_found"}}))
            faults = faults_of(body)
            if [fault for fault in faults if "no 'tools'" not in fault]:
                return self.answer(400, spoil(body, {"error": {"message": "; ".join(faults)}}))
            reply = spoil(body, model.reply(body))
            if not body.get("stream") or not isinstance(reply, dict) or "choices" not in reply:
                return self.answer(200, reply)
            usage = body.get("stream_options", {}).get("include_usage", False)
            events = [spoil_chunk(chunk) for chunk in _chunks(reply, usage)]
            lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events if event is not None]
            return self.answer(200, b"".join(lines) + b"data: [DONE]\n\n", "text/event-stream")

        def answer(self, status: int, value: Any, kind: str = "application/json") -> None:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
