"""What a real server does wrong when it is asked the right things: raw requests, judged without a client's mending."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ..models.servers import is_loopback

_SECONDS: Final = 180.0
_MOST_BYTES: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a server was asked for.

    Args:
        name: What it is about.
        ok: Whether nothing is wrong with it.
        says: What is wrong, in sentences; a word of praise where nothing is.
    """

    name: str
    ok: bool
    says: str


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    kind: str
    data: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.data)
        except ValueError:
            return None

    @property
    def words(self) -> str:
        text = " ".join(self.data.decode("utf-8", "replace").split())
        return text if len(text) <= 160 else f"{text[:158]}…"


class _Unasked(Exception):
    """A request did not get the reply that a check needs; the text says so."""


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


_TEMP: Final = _tool("get_temp", "Tell the temperature in a city.", city="string")
_PING: Final = {
    "type": "function",
    "function": {
        "name": "ping",
        "description": "Tell whether the house answers.",
        "parameters": {"type": "object", "properties": {}},
    },
}
_HELLO: Final = [{"role": "user", "content": "Reply with the one word: ready"}]
_FARO: Final = [{"role": "user", "content": "What is the temperature in Faro right now? Use the tool."}]
_TWO: Final = [
    {
        "role": "user",
        "content": "What is the temperature in Faro, and what in Braga? Ask for both at once, with the tool.",
    }
]


class _Server:
    """A server and the model that is asked for.

    Args:
        url: The address, with or without ``/v1``.
        model: The model.
        key: The key.
    """

    def __init__(self, url: str, model: str, key: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a server; write for example http://127.0.0.1:8080/v1")
        if key and parts.scheme == "http" and not is_loopback(parts):
            raise ValueError("the key would travel in clear text; use https")
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        self._path = path or "/v1"
        self._parts = parts
        self._key = key
        self.model = model

    def send(self, method: str, path: str, body: Any = None) -> _Reply:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        assert self._parts.hostname is not None
        connection = kind(self._parts.hostname, self._parts.port, timeout=_SECONDS)
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            connection.request(method, self._path + path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            data = reply.read(_MOST_BYTES)
            return _Reply(reply.status, reply.getheader("content-type", ""), data)
        except (OSError, http.client.HTTPException) as exc:
            raise _Unasked(f"no reply: {str(exc) or type(exc).__name__}") from None
        finally:
            connection.close()

    def ask(self, messages: Any, **fields: Any) -> _Reply:
        body = {"model": self.model, "messages": messages, **fields}
        return self.send("POST", "/chat/completions", {k: v for k, v in body.items() if v is not None})

    def choice(self, messages: Any, **fields: Any) -> dict[str, Any]:
        """The first choice of a plain reply."""
        reply = self.ask(messages, **fields)
        if reply.status != 200:
            raise _Unasked(f"the request is refused with {reply.status}: {reply.words}")
        body = reply.json
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise _Unasked(f"the reply has no choice: {reply.words}")
        if not isinstance(choices[0].get("message"), dict):
            raise _Unasked(f"the choice has no message: {reply.words}")
        return {**choices[0], "body": body}


def _calls(choice: dict[str, Any]) -> list[Any]:
    calls = choice["message"].get("tool_calls")
    return calls if isinstance(calls, list) else []


def _call_faults(call: Any, names: tuple[str, ...] = ("get_temp",)) -> Iterator[str]:
    if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
        yield "A call is no object with a function."
        return
    if not isinstance(call.get("id"), str) or not call["id"].strip():
        yield f"The id of a call is {call.get('id')!r}."
    if call.get("type") != "function":
        yield f"The type of a call is {call.get('type')!r} instead of 'function'."
    if call["function"].get("name") not in names:
        yield f"A call names {call['function'].get('name')!r}, which is no tool."
    arguments = call["function"].get("arguments")
    if not isinstance(arguments, str):
        yield f"The arguments of a call are {type(arguments).__name__} instead of text."
        return
    try:
        given = json.loads(arguments)
    except ValueError:
        yield f"The arguments of a call are no valid JSON: {arguments[:80]!r}."
        return
    if not isinstance(given, dict):
        yield f"The arguments of a call are no JSON object: {arguments[:80]!r}."


# --- the checks: each yields a sentence for everything that is wrong -------------------


def _models(server: _Server) -> Iterator[str]:
    reply = server.send("GET", "/models")
    listed = reply.json.get("data") if isinstance(reply.json, dict) else None
    if reply.status != 200 or not isinstance(listed, list):
        yield f"GET /models gives no list ({reply.status})."
    elif server.model not in [item.get("id") for item in listed if isinstance(item, dict)]:
        yield f"The model {server.model!r} is not among the {len(listed)} that are listed."


def _answer(server: _Server) -> Iterator[str]:
    choice = server.choice(_HELLO)
    message, body = choice["message"], choice["body"]
    if not isinstance(message.get("content"), str) or not message["content"].strip():
        yield f"The content of an answer is {message.get('content')!r}."
    if choice.get("finish_reason") != "stop":
        yield f"The finish reason of an answer is {choice.get('finish_reason')!r} instead of 'stop'."
    if message.get("role") != "assistant":
        yield f"The role of an answer is {message.get('role')!r}."
    if body.get("object") != "chat.completion":
        yield f"The object is {body.get('object')!r} instead of 'chat.completion'."
    yield from _usage(body.get("usage"))


def _usage(usage: Any) -> Iterator[str]:
    counts = usage if isinstance(usage, dict) else {}
    for name in ("prompt_tokens", "completion_tokens"):
        if not isinstance(counts.get(name), int) or counts[name] < 1:
            yield f"The usage does not tell {name}."


def _call(server: _Server) -> Iterator[str]:
    choice = server.choice(_FARO, tools=[_TEMP, _PING])
    calls = _calls(choice)
    if not calls:
        text = str(choice["message"].get("content"))
        yield f"No call comes when one is asked for; the content is {text[:80]!r}."
        return
    for call in calls:
        yield from _call_faults(call, ("get_temp", "ping"))
    if choice.get("finish_reason") != "tool_calls":
        yield f"The finish reason of a call is {choice.get('finish_reason')!r} instead of 'tool_calls'."
    if not isinstance(choice["message"].get("content"), (str, type(None))):
        yield "The content beside a call is neither text nor null."


def _parallel(server: _Server) -> Iterator[str]:
    calls = _calls(server.choice(_TWO, tools=[_TEMP]))
    if len(calls) < 2:
        yield f"{len(calls)} calls come in one reply where two are asked for."
    ids = [call.get("id") for call in calls if isinstance(call, dict)]
    if len(set(map(str, ids))) < len(ids):
        yield "Two calls of one reply have the same id."
    for call in calls:
        yield from _call_faults(call)


def _fresh_ids(server: _Server) -> Iterator[str]:
    ids = [call.get("id") for _ in range(2) for call in _calls(server.choice(_FARO, tools=[_TEMP]))]
    if len(ids) < 2:
        yield "It made no two calls to compare."
    elif len(set(map(str, ids))) < len(ids):
        yield f"The id {ids[0]!r} comes again in another reply."


def _choice_none(server: _Server) -> Iterator[str]:
    choice = server.choice(_FARO, tools=[_TEMP], tool_choice="none")
    if _calls(choice):
        yield "A call comes though tool_choice is none."
    elif "<tool_call>" in str(choice["message"].get("content")):
        yield "A call leaks into the text when tool_choice is none."


def _choice_required(server: _Server) -> Iterator[str]:
    if not _calls(server.choice(_HELLO, tools=[_TEMP, _PING], tool_choice="required")):
        yield "No call comes though tool_choice is required."


def _choice_named(server: _Server) -> Iterator[str]:
    wanted = {"type": "function", "function": {"name": "ping"}}
    calls = _calls(server.choice(_FARO, tools=[_TEMP, _PING], tool_choice=wanted))
    names = [call["function"].get("name") for call in calls if isinstance(call, dict) and call.get("function")]
    if names != ["ping"]:
        yield f"tool_choice names the tool ping, and the calls are {names}."
    for call in calls:
        yield from _call_faults(call, ("ping",))


def _history(rounds: int, content: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help with the weather."}, *_FARO]
    for number in range(rounds):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "get_temp", "arguments": '{"city": "Faro"}'},
        }
        messages.append({"role": "assistant", "content": content, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "27.4"})
    return messages


def _results(content: Any) -> Callable[[_Server], Iterator[str]]:
    def check(server: _Server) -> Iterator[str]:
        choice = server.choice(_history(1, content), tools=[_TEMP])
        text = choice["message"].get("content")
        if not _calls(choice) and (not isinstance(text, str) or "27" not in text):
            yield f"The answer after a result does not hold it: {str(text)[:80]!r}."

    return check


def _long_history(server: _Server) -> Iterator[str]:
    choice = server.choice(_history(20, None), tools=[_TEMP])
    if not _calls(choice) and not choice["message"].get("content"):
        yield "The reply to twenty calls with their results is empty."


def _history_without_tools(server: _Server) -> Iterator[str]:
    reply = server.ask(_history(1, None))
    if reply.status != 200:
        yield f"A history with calls is refused ({reply.status}) when the request offers no tools: {reply.words}"


def _truncated(server: _Server) -> Iterator[str]:
    choice = server.choice([{"role": "user", "content": "Write the numbers from 1 to 200 in words."}], max_tokens=5)
    if choice.get("finish_reason") != "length":
        yield f"The finish reason of a reply that was cut off is {choice.get('finish_reason')!r} instead of 'length'."


def _chunks(server: _Server, messages: Any, **fields: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The chunks of a stream, and what is wrong with its form."""
    reply = server.ask(messages, stream=True, **fields)
    if reply.status != 200:
        raise _Unasked(f"the request is refused with {reply.status}: {reply.words}")
    wrong = []
    if not reply.kind.startswith("text/event-stream"):
        wrong.append(f"The content type of a stream is {reply.kind!r}.")
    chunks: list[dict[str, Any]] = []
    done = False
    for line in reply.data.decode("utf-8", "replace").splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            done = True
            continue
        try:
            chunk = json.loads(data)
        except ValueError:
            wrong.append(f"A chunk is no JSON: {data[:80]!r}.")
            continue
        if isinstance(chunk, dict):
            chunks.append(chunk)
    if not done:
        wrong.append("The stream ends without [DONE].")
    return chunks, wrong


def _choices(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice for chunk in chunks for choice in chunk.get("choices") or () if isinstance(choice, dict)]


def _stream(server: _Server) -> Iterator[str]:
    chunks, wrong = _chunks(server, _HELLO, stream_options={"include_usage": True})
    yield from wrong
    choices = _choices(chunks)
    text = "".join(str((choice.get("delta") or {}).get("content") or "") for choice in choices)
    if not text.strip():
        yield "The stream of an answer holds no text."
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    if reasons != ["stop"]:
        yield f"The finish reasons of a streamed answer are {reasons} instead of one 'stop'."
    usages = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    if not usages:
        yield "No usage comes in a stream that asks for it."
    else:
        yield from _usage(usages[-1])


def _stream_call(server: _Server) -> Iterator[str]:
    chunks, wrong = _chunks(server, _FARO, tools=[_TEMP])
    yield from wrong
    choices = _choices(chunks)
    pieces = [piece for choice in choices for piece in (choice.get("delta") or {}).get("tool_calls") or ()]
    if not pieces:
        yield "No call comes in a stream when one is asked for."
        return
    if any(not isinstance(piece.get("index"), int) for piece in pieces):
        yield "Pieces of a streamed call have no index."
    calls: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        made = calls.setdefault(piece.get("index"), {"names": [], "ids": [], "text": ""})
        function = piece.get("function") or {}
        made["names"] += [function["name"]] if function.get("name") else []
        made["ids"] += [piece["id"]] if piece.get("id") else []
        made["text"] += function["arguments"] if isinstance(function.get("arguments"), str) else ""
    for made in calls.values():
        if len(made["names"]) > 1:
            yield "The name of a streamed call comes more than once."
        whole = {"id": made["ids"][0] if made["ids"] else None, "type": "function"}
        name = made["names"][0] if made["names"] else None
        yield from _call_faults({**whole, "function": {"name": name, "arguments": made["text"]}})
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    if reasons != ["tool_calls"]:
        yield f"The finish reasons of a streamed call are {reasons} instead of one 'tool_calls'."


def _refused(reply: _Reply, what: str) -> Iterator[str]:
    if not 400 <= reply.status < 500:
        yield f"{what} gives the status {reply.status} instead of one from 400 to 499."
        return
    error = reply.json.get("error") if isinstance(reply.json, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str) or not error["message"]:
        yield f"{what} gives an error without error.message: {reply.words}"


def _unknown_model(server: _Server) -> Iterator[str]:
    yield from _refused(server.ask(_HELLO, model="no-such-model-toolturn"), "A model that does not exist")


def _bad_request(server: _Server) -> Iterator[str]:
    yield from _refused(server.ask("hello"), "A text instead of messages")


_CHECKS: Final = (
    ("models", _models),
    ("answer", _answer),
    ("call", _call),
    ("parallel calls", _parallel),
    ("fresh ids", _fresh_ids),
    ("tool_choice none", _choice_none),
    ("tool_choice required", _choice_required),
    ("tool_choice named", _choice_named),
    ("results, content null", _results(None)),
    ("results, content empty", _results("")),
    ("long history", _long_history),
    ("history without tools", _history_without_tools),
    ("truncated", _truncated),
    ("stream", _stream),
    ("streamed call", _stream_call),
    ("unknown model", _unknown_model),
    ("bad request", _bad_request),
)


def check_server(
    url: str, model: str, key: str | None = None, told: Callable[[Check], None] | None = None
) -> list[Check]:
    """Return what a server does wrong when it is asked the right things.

    About twenty short requests are sent, one after the other. Where a check looks at a call, a weak model may be the
    reason instead of its server.

    Args:
        url: The server, with or without ``/v1``.
        model: The model to ask for.
        key: The key; None where the server needs none.
        told: Is told each check as soon as it is made.

    Raises:
        ValueError: The address is none, or the key would travel in clear text.
    """
    server = _Server(url, model, key)
    checks = []
    for name, check in _CHECKS:
        try:
            wrong = list(check(server))
        except _Unasked as exc:
            wrong = [f"{str(exc)[0].upper()}{str(exc)[1:]}."]
        checks.append(Check(name, not wrong, " ".join(wrong) or "fine"))
        if told is not None:
            told(checks[-1])
    return checks
