"""A model server on loopback that plays a script in the form of OpenAI's chat completions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ModelServer(ThreadingHTTPServer):
    """Plays replies: a text, pieces of one with events to wait for between them, or ``(name, arguments)`` of a call.

    Attributes:
        requests: The bodies of the requests, in order.
    """

    daemon_threads = True

    def __init__(self, replies: Iterable[Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *about: Any) -> None:
        """Keep still."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        if not self.server.replies:
            self._send(400, {"error": {"message": "the script has no further reply"}})
            return
        reply = self.server.replies.pop(0)
        if isinstance(reply, int):
            self._send(reply, {"error": {"message": f"scripted {reply}"}})
        elif body.get("stream"):
            self._stream(reply)
        else:
            self._send(200, {"id": "x", "object": "chat.completion", "choices": [_choice(reply, "message")]})

    def _send(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if isinstance(reply, tuple):
            self._event({"choices": [_choice(reply, "delta")]})
        else:
            for piece in [reply] if isinstance(reply, str) else reply:
                if isinstance(piece, threading.Event):
                    piece.wait(10)
                else:
                    self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, document: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(document).encode() + b"\n\n")
        self.wfile.flush()


def _choice(reply: Any, key: str) -> dict[str, Any]:
    if isinstance(reply, tuple):
        function = {"name": reply[0], "arguments": reply[1]}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"index": 0, key: said, "finish_reason": "tool_calls"}
    text = reply if isinstance(reply, str) else "".join(piece for piece in reply if isinstance(piece, str))
    return {"index": 0, key: {"role": "assistant", "content": text}, "finish_reason": "stop"}


@contextmanager
def serving(*replies: Any) -> Iterator[ModelServer]:
    server = ModelServer(replies)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
