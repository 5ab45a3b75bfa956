"""A recorded request in our words; and in what the request that we make of them differs from it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from toolturn.messages import ChatMessage, ChatResponse, ContentPart, ImagePart, TextPart, ToolCall, ToolDef
from toolturn.model import ModelSettings

_OURS = ("model", "messages", "stream", "stream_options")
_SETTINGS = ("temperature", "max_tokens", "max_completion_tokens", "tool_choice")
_REASONING = ("reasoning", "reasoning_content", "reasoning_details")

EXPLAINED = {
    "stream left out": "They write `stream: false`; that is the default and we leave it out.",
    "usage asked for": "We ask for the usage of a stream with `stream_options`, without which the tokens of a turn are "
    "not known; their client does not.",
    "content beside calls": "Beside calls without text there stands an empty text, null, an empty list or nothing; we "
    "write what our table holds for the server. Several forms were taken by one server within these recordings.",
    "role of instructions": "Their client calls instructions `developer` for every model; we call them `system`.",
    "bound of the reply": "Their client bounds the reply with `max_completion_tokens`; our table holds `max_tokens` "
    "for this server.",
    "reasoning left out": "Their client sends what the model thought back to any server; we do where our table holds "
    "that the server wants it, since it is paid for again and some refuse the field.",
    "empty reasoning": "A message that their client invented has an empty reasoning; in ours it has none.",
    "signature sent back": "We send the signature of the thoughts back with the message it came in; their client loses "
    "it.",
    "mark of a cache": "They mark what is to be cached; our messages and tools have no such mark.",
    "sound": "They send sound; our messages hold text, images and files. (The server refused it.)",
    "fields without meaning": "Their client adds fields that say nothing: `prefix: false`, the `index` of a call.",
    "type of a call": "Their client leaves out `type: function`; we write it.",
    "long id": "An id of more than 40 characters goes out as a digest, in the call and in its result alike, since some "
    "servers refuse it.",
    "strict not asked for": "They ask for the strict form of a schema; we do where `schemas` is set to "
    "`openai_strict`.",
    "strict in a schema": "Their client writes `strict` into the schema, where it is no keyword; we leave it out.",
    "title": "We leave the title of a schema out.",
    "empty required": "We leave an empty `required` out.",
    "reference": "They write `$ref` and `$defs`; we write the schema in the place of its reference, which more servers "
    "take.",
    "repeated description": "The schema repeats the description of the tool; we send it once.",
    "null": "They write that a value may be null as `anyOf` or `nullable`; we write a list of types.",
    "no parameters": "In Gemini's form a tool without parameters has none instead of an empty object.",
}
"""Each kind of difference in one sentence."""


# --- theirs into ours ------------------------------------------------------------------


def asked(
    request: Mapping[str, Any], earlier: Sequence[ChatResponse]
) -> tuple[tuple[ChatMessage, ...], tuple[ToolDef, ...], ModelSettings]:
    """Return a recorded request in our words.

    Args:
        request: Its body.
        earlier: The replies before it as our wire read them; what a server wants back is taken from there.
    """
    messages = tuple(_message(message, earlier) for message in request["messages"])
    listed = request.get("tools") or []
    tools = tuple(_tool(tool["function"]) for tool in listed if "function" in tool)
    extra = {name: value for name, value in request.items() if name not in (*_OURS, *_SETTINGS, "tools")}
    if others := [tool for tool in listed if "function" not in tool]:
        assert not tools
        extra["tools"] = others
    choice = request.get("tool_choice")
    settings = ModelSettings(
        temperature=request.get("temperature"),
        max_tokens=request.get("max_tokens", request.get("max_completion_tokens")),
        tool_choice="required" if choice == "any" else choice,
        extra=extra,
    )
    return messages, tools, settings


def _tool(function: Mapping[str, Any]) -> ToolDef:
    return ToolDef(function["name"], function["description"], function["parameters"])


def _message(message: Mapping[str, Any], earlier: Sequence[ChatResponse]) -> ChatMessage:
    calls = [
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or []
    ]
    role = "system" if message["role"] == "developer" else message["role"]
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = tuple(part for part in map(_part, content) if part is not None)
    opaque = None
    if role == "assistant":
        opaque = next((one.opaque for one in earlier if _is_same(one, calls, content)), None)
    return ChatMessage(role, content, calls or None, message.get("tool_call_id"), opaque)


def _part(part: Mapping[str, Any]) -> ContentPart | None:
    if part["type"] == "text":
        return TextPart(part["text"])
    if part["type"] == "image_url":
        return ImagePart(part["image_url"]["url"])
    return None


def _is_same(response: ChatResponse, calls: Sequence[ToolCall], content: object) -> bool:
    # not by ids: some clients make their own
    made = [(call.name, json.loads(call.arguments)) for call in response.tool_calls or ()]
    given = [(call.name, json.loads(call.arguments)) for call in calls]
    return made == given and (bool(made) or response.content == content)


# --- the two beside each other ---------------------------------------------------------


def differences_of_requests(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """Yield each difference between a recorded request and ours: a kind of :data:`EXPLAINED`, or what it is.

    Args:
        theirs: The recorded body.
        ours: The body that our wire made.
    """
    a, b = dict(theirs), dict(ours)
    yield from _messages(a.pop("messages"), b.pop("messages"))
    yield from _tools(a.pop("tools", None) or [], b.pop("tools", None) or [])
    if a.get("stream") is False and "stream" not in b:
        del a["stream"]
        yield "stream left out"
    if "stream_options" in b and "stream_options" not in a:
        del b["stream_options"]
        yield "usage asked for"
    if "max_completion_tokens" in a and a["max_completion_tokens"] == b.get("max_tokens"):
        del a["max_completion_tokens"], b["max_tokens"]
        yield "bound of the reply"
    yield from _rest("the request", a, b)


def _rest(where: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*theirs, *ours}):
        if theirs.get(name, _NONE) != ours.get(name, _NONE):
            yield f"{where}: {name} is {theirs.get(name, _NONE)!r:.200} there and {ours.get(name, _NONE)!r:.200} here"


_NONE: Any = type("Nothing", (), {"__repr__": lambda self: "nothing"})()


def _messages(theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> Iterator[str]:
    if len(theirs) != len(ours):
        yield f"{len(theirs)} messages there and {len(ours)} here"
        return
    ids: dict[str, str] = {}
    for place, (given, made) in enumerate(zip(theirs, ours, strict=True)):
        a, b = dict(given), dict(made)
        if (a["role"], b["role"]) == ("developer", "system"):
            a["role"] = b["role"]
            yield "role of instructions"
        if a.get("tool_calls") and not a.get("content") and not b.get("content"):
            if a.get("content", _NONE) != b.get("content", _NONE):
                yield "content beside calls"
            a.pop("content", None)
            b.pop("content", None)
        if isinstance(a.get("content"), list):
            a["content"] = yield from _without_marks(a["content"])
            if any(part["type"] == "input_audio" for part in a["content"]):
                a["content"] = [part for part in a["content"] if part["type"] != "input_audio"]
                yield "sound"
        for name in _REASONING:
            if name in a and name not in b:
                yield "reasoning left out" if a.pop(name) else "empty reasoning"
        if a.get("prefix") is False:
            del a["prefix"]
            yield "fields without meaning"
        if "extra_content" in b and "extra_content" not in a:
            del b["extra_content"]
            yield "signature sent back"
        yield from _calls(f"message {place}", a.pop("tool_calls", None) or [], b.pop("tool_calls", None) or [], ids)
        if a.get("tool_call_id") in ids:
            a["tool_call_id"] = ids[a["tool_call_id"]]
        yield from _rest(f"message {place}", a, b)


def _without_marks(content: Sequence[Mapping[str, Any]]) -> Generator[str, None, list[dict[str, Any]]]:
    if any("cache_control" in part for part in content):
        yield "mark of a cache"
    return [{name: value for name, value in part.items() if name != "cache_control"} for part in content]


def _calls(
    where: str, theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]], ids: dict[str, str]
) -> Iterator[str]:
    if len(theirs) != len(ours):
        yield f"{where}: {len(theirs)} calls there and {len(ours)} here"
        return
    for given, made in zip(theirs, ours, strict=True):
        a, b = dict(given), dict(made)
        if "type" not in a:
            a["type"] = "function"
            yield "type of a call"
        if "index" in a:
            del a["index"]
            yield "fields without meaning"
        if len(a["id"]) > 40 and len(b["id"]) == 9:
            ids[a["id"]] = b["id"]
            a["id"] = b["id"]
            yield "long id"
        yield from _rest(where, a, b)


def _tools(theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> Iterator[str]:
    if len(theirs) != len(ours):
        yield f"{len(theirs)} tools there and {len(ours)} here"
        return
    for given, made in zip(theirs, ours, strict=True):
        if "function" not in given:
            yield from _rest("a tool", given, made)
            continue
        a, b = dict(given["function"]), dict(made["function"])
        more = {**given, "function": None}
        if more.setdefault("type", "function") and "type" not in given:
            yield "type of a call"
        if more.pop("cache_control", None):
            yield "mark of a cache"
        if a.pop("strict", None) and not b.pop("strict", None):
            yield "strict not asked for"
        where = f"tool {a['name']}"
        schema = a.pop("parameters")
        if "parameters" not in b and not schema["properties"]:
            schema = {}
            yield "no parameters"
        if schema.get("description", _NONE) == a["description"]:
            del (schema := dict(schema))["description"]
            yield "repeated description"
        yield from _schemas(where, schema, b.pop("parameters", {}), schema.get("$defs", {}))
        yield from _rest(where, a, b)
        yield from _rest(where, more, {**made, "function": None})


def _schemas(where: str, theirs: Any, ours: Any, known: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        if theirs != ours:
            yield f"{where}: {theirs!r:.200} there and {ours!r:.200} here"
        return
    a, b = dict(theirs), dict(ours)
    if "$ref" in a:
        yield "reference"
        a = {**known[a.pop("$ref").rpartition("/")[2]], **a}
    a.pop("$defs", None)
    if isinstance(a.get("title"), str) and "title" not in b:
        del a["title"]
        yield "title"
    if a.get("strict") is True and "strict" not in b:
        del a["strict"]
        yield "strict in a schema"
    if a.get("required") == [] and "required" not in b:
        del a["required"]
        yield "empty required"
    if "required" in a and "required" in b:
        a["required"], b["required"] = sorted(a["required"]), sorted(b["required"])
    if (types := _nullable(a)) and types == b.get("type"):
        a["type"] = types
        yield "null"
    for name in ("properties", "items"):
        if name in a and name in b:
            inner, made = a.pop(name), b.pop(name)
            if name == "items":
                yield from _schemas(f"{where}/items", inner, made, known)
            elif list(inner) == list(made):
                for key in inner:
                    yield from _schemas(f"{where}/{key}", inner[key], made[key], known)
            else:
                yield f"{where}: properties {list(inner)} there and {list(made)} here"
    yield from _rest(where, a, b)


def _nullable(schema: dict[str, Any]) -> list[str] | None:
    """The list of types that a schema with null says in another way; that way is taken out of it."""
    if schema.get("nullable") is True:
        del schema["nullable"]
        return [schema["type"], "null"]
    if [list(one) for one in schema.get("anyOf", [])] == [["type"], ["type"]]:
        return [one["type"] for one in schema.pop("anyOf")]
    return None
