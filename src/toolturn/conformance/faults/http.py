"""HTTP: refusals, overload, replies that are none, and connections that break."""

from __future__ import annotations

from typing import Any, Final

from ..replies import Both, Events, Http, Raw, Reply, asks, call, says
from ..rows import AFTER, FAILS, Answer, Failure, Fault, Kind, Way, ran
from ..wire import delta, encoded, event

_CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: "
_ADD: Final = asks(call("add", {"a": 1, "b": 2}))
_RAN: Final = ran("add", a=1, b=2)
_AGAIN: Final = (Way(Answer(AFTER)), Way(Failure()))


def _error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _fails(kind: Kind | None = None, says: str = "") -> tuple[Way, ...]:
    return (Way(Failure(kind, says)),)


def _always(name: str, text: str, reply: Reply, ways: tuple[Way, ...] = FAILS, **more: Any) -> Fault:
    return Fault(f"http_{name}", text, (reply,), ways, **more)


def _once(name: str, text: str, reply: Reply, **more: Any) -> Fault:
    return Fault(f"http_{name}", text, (reply, says(AFTER)), _AGAIN, **more)


def _later(name: str, text: str, reply: Reply, **more: Any) -> Fault:
    """A failure after a tool has run: the turn may be saved by asking again, or its transcript must not be lost."""
    ways = (Way(Failure(transcript=True), (_RAN,)),)
    return Fault(f"http_{name}_after_tool", text, (_ADD, reply), ways, **more)


def _completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def _by_hand(before: bytes = b"") -> Reply:
    """A reply without a length, which the end of the connection ends; with something in front of its head."""
    plain = encoded(_completion({"content": "Hello"}, "stop"))
    chunks = (delta(role="assistant", content="Hel"), delta(content="lo"), delta("stop"))
    events = b"".join(map(event, chunks)) + b"data: [DONE]\n\n"
    head = before + _HEAD
    return Both(
        Raw(head + b"application/json\r\n\r\n" + plain),
        Raw(head + b"text/event-stream\r\n\r\n" + events),
    )


_HTML: Final = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_SERVER_ERROR: Final = _error("The server had an error", "server_error")
_LIMITED: Final = _error("Rate limit reached for requests", "requests", "rate_limit_exceeded")
_TOO_LONG: Final = "This model's maximum context length is 8192 tokens, however you requested 9041 tokens"

ROWS: Final = (
    _always(
        "401",
        "The key is wrong.",
        Http(401, _error("Incorrect API key provided", "invalid_request_error", "invalid_api_key")),
        _fails("authentication"),
        requests=1,
    ),
    _always(
        "403",
        "The key may not use this model.",
        Http(403, _error("Project does not have access to this model", "invalid_request_error")),
        _fails("authentication"),
        requests=1,
    ),
    _always(
        "404",
        "There is no such model.",
        Http(404, _error("The model `x` does not exist", "invalid_request_error", "model_not_found")),
        _fails(None, "does not exist"),
        requests=1,
    ),
    _always(
        "400",
        "The server refuses the request.",
        Http(400, _error("'temperature' does not support 0.1", "invalid_request_error", "unsupported_value")),
        _fails(None, "'temperature' does not support 0.1"),
        requests=1,
    ),
    _always(
        "422_detail",
        "The server refuses the request, in words of its own form.",
        Http(422, {"detail": [{"loc": ["body", "tools"], "msg": "tools are not supported", "type": "value_error"}]}),
        _fails(None, "tools are not supported"),
        requests=1,
    ),
    _always(
        "400_text_error",
        "The error is a text instead of an object.",
        Http(400, {"error": "model requires more system memory"}),
        _fails(None, "more system memory"),
        requests=1,
    ),
    _always(
        "context",
        "The messages do not fit into the model's window.",
        Http(400, _error(_TOO_LONG, "invalid_request_error", "context_length_exceeded")),
        _fails("context", "8192"),
        requests=1,
    ),
    _always(
        "413",
        "The request is too large, says a proxy in HTML.",
        Http(413, b"<html><body>Request Entity Too Large</body></html>", {"content-type": "text/html"}),
        requests=2,
    ),
    _once(
        "429_seconds",
        "Too many requests: the server wants to be asked again after a second.",
        Http(429, _LIMITED, {"retry-after": "1"}),
        waits=1.0,
    ),
    _once(
        "429_date",
        "Too many requests: the server names the time at which it wants to be asked again.",
        Http(429, _LIMITED, {"retry-after": "{date+2}"}),
        waits=1.0,
    ),
    _once(
        "429_odd_wait",
        "Too many requests, and the time to wait is nonsense.",
        Http(429, _LIMITED, {"retry-after": "soon"}),
    ),
    _always(
        "429_for_ever", "Too many requests, always.", Http(429, _LIMITED, {"retry-after": "0"}), _fails("rate_limit")
    ),
    _always(
        "429_long_wait",
        "Too many requests, and the server wants to be left alone for a day.",
        Http(429, _LIMITED, {"retry-after": "86400"}),
        _fails("rate_limit"),
    ),
    _always(
        "429_no_money",
        "The account has nothing left to pay with.",
        Http(429, _error("You exceeded your current quota", "insufficient_quota", "insufficient_quota")),
        _fails(None, "quota"),
    ),
    _once("500_once", "The server fails once.", Http(500, _SERVER_ERROR)),
    _always(
        "500_for_ever", "The server fails, always.", Http(500, _SERVER_ERROR), _fails(None, "The server had an error")
    ),
    _once(
        "503_once",
        "The server is overloaded for a second.",
        Http(503, _error("Overloaded", "overloaded_error"), {"retry-after": "1"}),
        waits=1.0,
    ),
    _always("502_html", "A proxy replies in HTML.", Http(502, _HTML, {"content-type": "text/html"})),
    _always("200_html", "A page of HTML comes with the status 200.", Http(200, _HTML, {"content-type": "text/html"})),
    _always(
        "200_empty", "The body is empty, with the status 200.", Http(200, b"", {"content-type": "application/json"})
    ),
    _always("200_null", "The body is null.", Http(200, None)),
    _always("200_list", "The body is a list.", Http(200, [])),
    _always(
        "200_no_json",
        "The body breaks off, and its length is right.",
        Http(200, b'{"id": "x", "choices": [{"ind', {"content-type": "application/json"}),
    ),
    _always(
        "200_cut",
        "The connection closes within the body.",
        Http(200, b'{"id": "x", "choices": [{"ind', {"content-type": "application/json"}, "cut"),
    ),
    _always(
        "200_error",
        "The body is an error, with the status 200.",
        Http(200, _error("model is still loading", "server_error")),
        _fails(),
    ),
    _always("no_reply", "The connection closes without a reply.", Raw()),
    _always("no_http", "What comes is no HTTP.", Raw(b"SSH-2.0-OpenSSH_9.6\r\n")),
    _always(
        "silent",
        "No reply comes, and the connection stays open.",
        Http(200, b"", {}, "stall"),
        needs=("timeout",),
        timeout=1.0,
    ),
    _always(
        "endless",
        "The body goes on for a hundred megabytes and does not end.",
        Http(200, b" " * 1_000_000, {"content-type": "application/json"}, "endless"),
        needs=("timeout",),
        timeout=2.0,
    ),
    Fault(
        "http_no_length",
        "The reply has no length and ends with the connection, as HTTP/1.1 allows.",
        (_by_hand(),),
        (Way(Answer("Hello")),),
    ),
    Fault(
        "http_early_hints",
        "An interim reply comes before the reply.",
        (_by_hand(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),),
        (Way(Answer("Hello")), Way(Failure())),
    ),
    Fault(
        "http_closes_after_reply",
        "The connection closes after a reply, unannounced, just when the next request is due.",
        (
            Both(
                Http(200, _completion({"tool_calls": [_CALL]}, "tool_calls"), {}, "closes"),
                Events(
                    (delta(role="assistant", tool_calls=[{**_CALL, "index": 0}]), delta("tool_calls")), ending="closes"
                ),
            ),
            says(AFTER),
        ),
        (Way(Answer(AFTER), (_RAN,)), Way(Failure(transcript=True), (_RAN,))),
    ),
    _later("500", "The server fails, always, once a tool has run.", Http(500, _SERVER_ERROR)),
    _later("401", "The key is revoked once a tool has run.", Http(401, _error("Key revoked", "invalid_request_error"))),
    _later("no_reply", "The connection closes without a reply, always, once a tool has run.", Raw()),
    Fault(
        "http_500_once_after_tool",
        "The server fails once, after a tool has run.",
        (_ADD, Http(500, _SERVER_ERROR), says(AFTER)),
        (Way(Answer(AFTER), (_RAN,)), Way(Failure(transcript=True), (_RAN,))),
    ),
)
