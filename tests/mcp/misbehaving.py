"""An MCP server that misbehaves in the way it is told to, over standard input and output or HTTP.

``python misbehaving.py WAY [--log FILE] [--http]``. The protocol is written by hand: a server made with a library
could not get it wrong. With ``--log`` each message it receives is a line of that file; with ``--http`` it prints its
port first.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def tool(name: str, **more: Any) -> Message:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"The tool {name}", "inputSchema": schema, **more}


def text(content: str, **more: Any) -> Message:
    return {"content": [{"type": "text", "text": content}], **more}


def deep(levels: int) -> str:
    return '{"type":"object","properties":{"p":' * levels + "{}" + "}}" * levels


class Server:
    """What is answered to each message.

    Args:
        way: How it misbehaves; ``result:{…}`` answers each call with that JSON.
        log: Where received messages are kept.
    """

    def __init__(self, way: str, log: Path | None) -> None:
        self.way = way
        self.log = log
        self.calls = 0
        self.tools = [tool("echo"), tool("other")]
        self.cancelled = threading.Event()
        self.waiting: list[Any] = []

    def handle(self, message: Message, send: Callable[[Any], None]) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps(message) + "\n")
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            self.initialize(number, message["params"], send)
        elif method == "server/discover" and self.way == "modern":
            capabilities: Message = {"tools": {}}
            found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete"}
            send(reply(number, {**found, "ttlMs": 0, "cacheScope": "public"}))
        elif method == "tools/list":
            self.list(number, message.get("params") or {}, send)
        elif method == "tools/call":
            self.calls += 1
            self.call(number, message["params"], send)
        elif method == "ping":
            if self.way != "hangs-on-call":
                send(reply(number, {}))
        elif method == "notifications/cancelled":
            if self.way == "answers-late":
                send(reply(self.waiting.pop(), text("too late")))
        elif number is not None:
            send(failure(number, -32601, "Method not found"))

    def initialize(self, number: Any, params: Message, send: Callable[[Any], None]) -> None:
        if self.way in ("hangs", "prints-only"):
            return
        if self.way == "modern":
            send(
                failure(number, -32022, "Unsupported protocol version", {"supported": ["2026-07-28"], "requested": "x"})
            )
            return
        if self.way == "no-protocol":
            send(reply(number, {"hello": "world"}))
            return
        version = params["protocolVersion"]
        info = {"name": "misbehaving", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        send(reply(number, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}))

    def list(self, number: Any, params: Message, send: Callable[[Any], None]) -> None:
        cursor = params.get("cursor")
        match self.way:
            case "hangs-on-list":
                return
            case "dies-on-list":
                os._exit(4)
            case "no-list":
                send(failure(number, -32601, "Method not found"))
            case "refuses-list":
                send(failure(number, -32000, "come back later"))
            case "pages":
                page = int(cursor or 0)
                more = {"nextCursor": str(page + 1)} if page < 2 else {}
                send(reply(number, {"tools": [tool(f"tool{page}")], **more}))
            case "same-page":
                send(reply(number, {"tools": self.tools, "nextCursor": "X"}))
            case "endless-pages":
                send(reply(number, {"tools": self.tools, "nextCursor": str(int(cursor or 0) + 1)}))
            case "odd-tools":
                listed: list[Any] = [
                    None,
                    {"inputSchema": {}},
                    {"name": "no-schema"},
                    {"name": "null-schema", "inputSchema": None},
                    {"name": "untyped", "inputSchema": {"properties": {"q": {"type": "string"}}}},
                    {"name": "list-schema", "inputSchema": []},
                    {"name": "array", "inputSchema": {"type": "array"}},
                    {"name": "outside", "inputSchema": {"type": "object", "$ref": "https://example.org/s.json"}},
                    {"name": "deep", "inputSchema": json.loads(deep(70))},
                    {"name": "odd-hints", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}, "icons": 7},
                    {"name": "odd.name with blanks", "inputSchema": {}, "description": 7},
                ]
                send(reply(number, {"tools": listed}))
            case "deep":
                schema = deep(3000)
                listing = f'{{"tools":[{{"name":"a","inputSchema":{schema}}}]}}'
                send(f'{{"jsonrpc":"2.0","id":{json.dumps(number)},"result":{listing}}}'.encode())
            case "hints":
                hints = {"read": {"readOnlyHint": True}, "set": {"idempotentHint": True}, "send": {}}
                send(reply(number, {"tools": [tool(name, annotations=hint) for name, hint in hints.items()]}))
            case "task":
                task = tool("research", execution={"taskSupport": "required"})
                send(reply(number, {"tools": [*self.tools, task]}))
            case "structured":
                schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}  # type: ignore[assignment]
                send(reply(number, {"tools": [tool("echo", outputSchema=schema)]}))
            case _:
                send(reply(number, {"tools": self.tools}))

    def call(self, number: Any, params: Message, send: Callable[[Any], None]) -> None:
        said = (params.get("arguments") or {}).get("text", "")
        way, _, rest = self.way.partition(":")
        match way:
            case "result":
                send(reply(number, json.loads(rest)))
            case "structured":
                send(reply(number, json.loads(said)))
            case "dies-on-call":
                os.write(2, b"the disk is full\n")
                os._exit(3)
            case "dies-once":
                marker = Path(rest)
                if not marker.exists():
                    marker.touch()
                    os._exit(3)
                send(reply(number, text(f"after all: {said}")))
            case "hangs-on-call" | "deaf":
                return
            case "hangs-once":
                if self.calls > 1:
                    send(reply(number, text(said)))
            case "answers-late":
                if self.calls == 1:
                    self.waiting.append(number)
                else:
                    send(reply(number, text(said)))
            case "half-a-message":
                send(json.dumps(reply(number, text("never complete")))[:40].encode() + b"\0no newline")
                os._exit(0)
            case "wrong-ids":
                send(reply(number + 1000, text("for somebody else")))
                send(reply(None, text("for nobody")))
                send(reply("x", text("for somebody else")))
            case "null-result":
                send({"jsonrpc": "2.0", "id": number, "result": None})
            case "answers-twice":
                send(reply(number, text(f"first {said}")))
                send(reply(number, text("second")))
            case "huge-image":
                data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(int(rest))).decode()
                send(reply(number, {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}))
            case "huge":
                send(reply(number, text("x" * int(rest))))
            case "huge-event":
                send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
                send(reply(number, text("x" * int(rest))))
            case "huge-id-last":
                send({"result": text("x" * int(rest)), "jsonrpc": "2.0", "id": number})
            case "error":
                send(failure(number, -32000, rest))
            case "progress":
                token = params["_meta"]["progressToken"]
                for step in (1, 2):
                    told = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
                    send({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
                logged = {"level": "info", "data": "a line of a log"}
                send({"jsonrpc": "2.0", "method": "notifications/message", "params": logged})
                send(reply(number, text("done")))
            case "changes-tools":
                self.tools = [tool("new")]
                send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                send(reply(number, text("changed")))
            case "pid":
                send(reply(number, text(str(os.getpid()))))
            case "asks-back":
                send({"jsonrpc": "2.0", "id": "q1", "method": "sampling/createMessage", "params": {}})
                send({"jsonrpc": "2.0", "id": "q2", "method": "roots/list"})
                send(reply(number, text(said)))
            case _:
                send(reply(number, text(said)))


def reply(number: Any, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def failure(number: Any, code: int, message: str, data: Any = None) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message, "data": data}}


# --- standard input and output -----------------------------------------------------------


def over_stdio(server: Server) -> None:
    out = sys.stdout.buffer

    def send(message: Any) -> None:
        if server.way == "prints":
            out.write(b'\xff\xfe a line of a log\n\n{not json}\n[1, 2]\n"text"\n')
        if server.way == "complains":
            sys.stderr.write("something is odd\n" * 100_000)
        out.write(message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode())
        if not (isinstance(message, bytes) and b"\0" in message):
            out.write(b"\n")
        out.flush()

    if server.way == "prints-only":
        out.write(b"Listening on port 3000\n")
        out.flush()
    children = []
    if server.way == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        import subprocess

        code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
        children.append(subprocess.Popen([sys.executable, "-c", code]))
        server.way = f"result:{json.dumps(text(f'{os.getpid()} {children[0].pid}'))}"
    for line in sys.stdin.buffer:
        server.handle(json.loads(line), send)
        if server.way == "deaf" and server.calls:
            signal.pause()
    if children:
        signal.pause()


# --- HTTP --------------------------------------------------------------------------------


def over_http(server: Server, port: int) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # half of the time that a start takes

    sessions: set[str] = set()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer(405)

        def do_DELETE(self) -> None:
            if server.way == "hangs-on-delete":
                signal.pause() if threading.current_thread() is threading.main_thread() else threading.Event().wait()
            if server.log is not None:
                with server.log.open("a") as file:
                    file.write('{"method": "DELETE"}\n')
            self.answer(200)

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method, number = message.get("method"), message.get("id")
            way, _, rest = server.way.partition(":")
            if way == "forbids":
                self.answer(401, b"no")
                return
            session = self.headers.get("mcp-session-id")
            if method == "initialize":
                with lock:
                    session = f"s{len(sessions) + 1}"
                    sessions.add(session)
            elif session not in sessions and way != "modern":
                body = {} if rest == "plain" else failure("server-error", -32600, "Session not found")
                self.answer(404, json.dumps(body).encode(), "text/plain" if rest == "plain" else "application/json")
                return
            if method == "tools/call":
                match way:
                    case "expires":
                        with lock:
                            server.calls += 1
                            first = server.calls == 1
                        if first:
                            sessions.clear()
                            self.answer(
                                404, b"" if rest == "plain" else json.dumps(failure(None, -32600, "gone")).encode()
                            )
                            return
                    case "expires-always":
                        sessions.clear()
                        self.answer(404)
                        return
                    case "fails":
                        self.answer(500, b"<h1>oh</h1>", "text/html")
                        return
                    case "html":
                        self.answer(200, b"<h1>hello</h1>", "text/html")
                        return
                    case "tells-secrets":
                        told = f"you sent {self.headers['authorization']} to {self.path}"
                        answer = failure(number, -32000, told) if rest == "error" else reply(number, text(told))
                        self.answer(200, json.dumps(answer).encode())
                        return
                    case "breaks-off":
                        self.send_response(200)
                        self.send_header("content-type", "text/event-stream")
                        self.send_header("connection", "close")
                        self.end_headers()
                        self.wfile.write(b'event: message\ndata: {"jsonrpc":')
                        self.close_connection = True
                        return
                    case "breaks-connection":
                        self.close_connection = True
                        self.connection.close()
                        return
                    case "compresses":
                        self.answer(200, b"\x1f\x8b nonsense", content_encoding="gzip")
                        return
                    case "accepts":
                        self.answer(202)
                        return
                    case "redirects":
                        self.answer(307, location="http://other.example.org/mcp?key=secret-in-the-address")
                        return
            sent: list[bytes] = []

            def send(answer: Any) -> None:
                sent.append(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            server.handle(message, send)
            headers = {"mcp_session_id": session} if method == "initialize" and session and way != "modern" else {}
            if number is None or not sent:
                if number is not None:
                    threading.Event().wait()  # for ever: this thread is a daemon
                self.answer(202)
            elif len(sent) == 1:
                self.answer(200, sent[0], **headers)
            else:
                events = b"".join(b"event: message\ndata: " + one + b"\n\n" for one in sent)
                self.answer(200, events, "text/event-stream", **headers)

    class Quiet(ThreadingHTTPServer):
        allow_reuse_address = True
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    with Quiet(("127.0.0.1", port), Handler) as served:
        os.write(1, f"{served.server_address[1]}\n".encode())
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        served.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    known = parser.parse_args()
    made = Server(known.way, known.log)
    over_http(made, known.port) if known.http else over_stdio(made)
