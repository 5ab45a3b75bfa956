"""What the strictest provider finds wrong with a request for a chat completion: a pure function.

Each check stands for a refusal that a provider, or a server for open weights, is known to make: for example the names
of calls in the history (https://github.com/mcp-use/mcp-use/issues/90), or a system message after the conversation has
begun (https://github.com/QwenLM/Qwen3.8/issues/244, https://github.com/vllm-project/vllm/issues/41114). What only
differs in taste is not looked at: a ``null`` and an empty text beside calls are both fine, and so is an id that comes
again in a later batch, since the server itself sent it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES: Final = ("system", "developer", "user", "assistant", "tool")


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 1


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _any_list(value: Any) -> bool:
    return isinstance(value, list)


def _stop(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and 0 < len(value) <= 4 and all(map(_text, value)))


_FIELDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "model": (_text, "text"),
    "messages": (_any_list, "a list"),
    "stream": (_flag, "true or false"),
    "stream_options": (_object, "an object"),
    "tools": (_any_list, "a list"),
    "tool_choice": (lambda value: isinstance(value, (str, dict)), "text or an object"),
    "parallel_tool_calls": (_flag, "true or false"),
    "temperature": (_number, "a number"),
    "top_p": (_number, "a number"),
    "presence_penalty": (_number, "a number"),
    "frequency_penalty": (_number, "a number"),
    "max_tokens": (_whole, "a whole number of at least 1"),
    "max_completion_tokens": (_whole, "a whole number of at least 1"),
    "n": (_whole, "a whole number of at least 1"),
    "seed": (lambda value: type(value) is int, "a whole number"),
    "stop": (_stop, "text, or a list of one to four"),
    "logprobs": (_flag, "true or false"),
    "top_logprobs": (lambda value: type(value) is int, "a whole number"),
    "logit_bias": (_object, "an object"),
    "response_format": (_object, "an object"),
    "reasoning_effort": (_text, "text"),
    "verbosity": (_text, "text"),
    "user": (_text, "text"),
    "safety_identifier": (_text, "text"),
    "prompt_cache_key": (_text, "text"),
    "service_tier": (_text, "text"),
    "store": (_flag, "true or false"),
    "metadata": (_object, "an object"),
    "modalities": (_any_list, "a list"),
    "prediction": (_object, "an object"),
    "audio": (_object, "an object"),
}

_MESSAGE_FIELDS: Final = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {
        "role",
        "content",
        "name",
        "refusal",
        "audio",
        "tool_calls",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
    },
    "tool": {"role", "content", "name", "tool_call_id"},
}

_PARTS: Final = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}


def faults_of(body: object, *, choice_none: bool = True) -> list[str]:
    """Return a sentence for everything a strict provider would refuse; nothing where the request is fine.

    Args:
        body: The body of the request, decoded.
        choice_none: Whether it takes tools with the tool choice ``none``; one that does not takes calls in the messages
            of a request without tools.
    """
    if not isinstance(body, dict):
        return ["the body is no JSON object"]
    return [*_top(body), *_tools(body, choice_none), *_messages(body)]


def _top(body: dict[str, Any]) -> Iterator[str]:
    for name in ("model", "messages"):
        if not body.get(name):
            yield f"{name!r} is missing or empty"
    for name, value in body.items():
        if name not in _FIELDS:
            yield f"{name!r} is no field of a request"
            continue
        fits, wanted = _FIELDS[name]
        if not fits(value):
            yield f"{name!r} must be {wanted}"
    if "stream_options" in body and body.get("stream") is not True:
        yield "'stream_options' without 'stream'"
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "'max_tokens' and 'max_completion_tokens' at once"
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield "half a surrogate pair: the request is no valid Unicode"


# --- tools ----------------------------------------------------------------------------


def _tools(body: dict[str, Any], choice_none: bool) -> Iterator[str]:
    tools = body.get("tools")
    names: list[str] = []
    if isinstance(tools, list):
        if not tools:
            yield "'tools' is empty; it must be absent where there is no tool"
        for place, tool in enumerate(tools):
            yield from (f"tool {place}: {text}" for text in _tool(tool, names))
    else:
        for name in ("tool_choice", "parallel_tool_calls"):
            if name in body:
                yield f"{name!r} without 'tools'"
        messages = body.get("messages")
        called = isinstance(messages, list) and any(isinstance(m, dict) and m.get("tool_calls") for m in messages)
        if called and choice_none:
            yield "the messages hold tool calls, and the request has no 'tools'"
        return
    choice = body.get("tool_choice")
    if choice == "none" and not choice_none:
        yield "'tool_choice' must not be none here"
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        yield f"'tool_choice' must be none, auto, required or a function, not {choice!r}"
    if isinstance(choice, dict):
        function = choice.get("function")
        if choice.get("type") != "function" or not isinstance(function, dict) or not _text(function.get("name")):
            yield "'tool_choice' as an object must be a function with a name"
        elif function["name"] not in names:
            yield f"'tool_choice' names {function['name']!r}, which is none of the tools"


def _tool(tool: Any, names: list[str]) -> Iterator[str]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type") != "function":
        yield "it is no object of the type 'function' with a 'function'"
        return
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"the name {name!r} is not of 1 to 64 letters, digits, underscores and hyphens"
    elif name in names:
        yield f"the name {name!r} is used twice"
    else:
        names.append(name)
    for key in function:
        if key not in ("name", "description", "parameters", "strict"):
            yield f"{key!r} is no field of a function"
    if not isinstance(function.get("description", ""), str):
        yield "the description is no text"
    parameters = function.get("parameters")
    if parameters is None and "parameters" not in function:
        return
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        yield "the parameters are no schema of the type 'object'"
        return
    if not isinstance(parameters.get("properties"), dict):
        yield "the schema has no 'properties'"
        return
    required = parameters.get("required", [])
    if not isinstance(required, list) or not all(item in parameters["properties"] for item in required):
        yield "'required' names what is no property"
    if function.get("strict") is True:
        yield from _strict(parameters)


def _strict(schema: Any) -> Iterator[str]:
    """The two rules of a strict schema, at every object within it."""
    if isinstance(schema, list):
        for item in schema:
            yield from _strict(item)
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if schema.get("type") == "object" and isinstance(properties, dict):
        if schema.get("additionalProperties") is not False:
            yield "the schema is strict and lacks 'additionalProperties': false"
        if set(properties) != set(schema.get("required", [])):
            yield "the schema is strict and 'required' does not name every property"
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            for inner in value.values():
                yield from _strict(inner)
        elif key in ("items", "anyOf", "prefixItems", "additionalProperties"):
            yield from _strict(value)


# --- messages -------------------------------------------------------------------------


def _messages(body: dict[str, Any]) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return
    waiting: dict[str, int] = {}
    begun = False
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            yield f"message {place}: it is no object"
            continue
        role = message.get("role")
        if role not in _ROLES:
            yield f"message {place}: the role {role!r} is none of {', '.join(_ROLES)}"
            continue
        if role in ("system", "developer"):
            if begun:
                yield f"message {place}: a {role} message after the conversation has begun"
        else:
            begun = True
        for key in message:
            if key not in _MESSAGE_FIELDS[role]:
                yield f"message {place}: {key!r} is no field of a message of the role {role}"
        if role == "tool":
            yield from (f"message {place}: {text}" for text in _result(message, waiting))
        else:
            if waiting:
                yield f"message {place}: a message of the role {role} before the results of {_listed(waiting)}"
                waiting = {}
            if role == "assistant":
                yield from (f"message {place}: {text}" for text in _assistant(message, waiting))
            else:
                yield from (f"message {place}: {text}" for text in _content(message, role))
    if waiting:
        yield f"the calls {_listed(waiting)} are not answered"
    elif isinstance(messages[-1], dict) and messages[-1].get("role") == "assistant":
        yield "the last message is the assistant's: there is nothing to reply to"


def _listed(waiting: dict[str, int]) -> str:
    return ", ".join(map(repr, waiting))


def _result(message: dict[str, Any], waiting: dict[str, int]) -> Iterator[str]:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id.strip():
        yield "a tool message without the id of a call"
    elif not waiting.get(call_id):
        yield f"a tool message for {call_id!r}, which is no open call"
    else:
        waiting[call_id] -= 1
        if not waiting[call_id]:
            del waiting[call_id]
    content = message.get("content")
    if not isinstance(content, (str, list)):
        yield "the content of a tool message is no text"
    elif isinstance(content, list):
        yield from _parts(content, "tool")


def _content(message: dict[str, Any], role: str) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        if not content.strip():
            yield f"a message of the role {role} without text"
    elif isinstance(content, list) and content:
        yield from _parts(content, role)
    else:
        yield f"the content of a message of the role {role} is neither text nor a list of parts"


def _parts(parts: list[Any], role: str) -> Iterator[str]:
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in _PARTS[role]:
            yield f"a part of the type {kind!r} in a message of the role {role}"
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield "a part of text without text"


def _assistant(message: dict[str, Any], waiting: dict[str, int]) -> Iterator[str]:
    content, calls = message.get("content"), message.get("tool_calls")
    if "tool_calls" in message and not (isinstance(calls, list) and calls):
        yield "'tool_calls' is empty; it must be absent where there is no call"
    if not calls:
        if not message.get("refusal"):
            yield from _content(message, "assistant")
    elif isinstance(content, list):
        yield from _parts(content, "assistant")
    elif content is not None and not isinstance(content, str):
        yield "the content of a message of the role assistant is neither text nor a list of parts"
    for call in calls if isinstance(calls, list) else ():
        yield from _call(call, waiting)


def _call(call: Any, waiting: dict[str, int]) -> Iterator[str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or call.get("type") != "function":
        yield "a call that is no object of the type 'function' with a 'function'"
        return
    call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    if not isinstance(call_id, str) or not call_id.strip():
        yield f"a call with the id {call_id!r}, which is none"
    elif call_id in waiting:
        yield f"two calls with the id {call_id!r}"
        waiting[call_id] += 1
    else:
        waiting[call_id] = 1
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"a call of {_excerpt(name)}, which no function can be named"
    if not isinstance(arguments, str):
        yield "the arguments of a call are no text"
        return
    try:
        value = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        yield f"the arguments of a call are no valid JSON: {_excerpt(arguments)}"
        return
    if not isinstance(value, dict):
        yield f"the arguments of a call are no JSON object: {_excerpt(arguments)}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}…{text[-1]}"
