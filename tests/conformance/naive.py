"""A client as many write it first: it believes whatever it is sent; as an adapter, without any library."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolturn.conformance.adapter import Outcome, Task

REQUIREMENTS: tuple[str, ...] = ()
DISTRIBUTION = ""
TYPED: tuple[str, ...] = ()
CAN = ("timeout",)

_KINDS = {int: "integer", str: "string", list[str]: "array"}


async def run(task: Task) -> Outcome:
    print("a library that prints")  # noqa: T201 - which must not disturb the lab
    return await asyncio.to_thread(_turn, task)


def _turn(task: Task) -> Outcome:
    tools = {tool.__name__: tool for tool in task.tools}
    messages: list[dict[str, Any]] = [{"role": "user", "content": task.prompt}]
    for _ in range(task.max_iterations):
        message = _ask(task, messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return task.answered(message.get("content"))
        for call in message["tool_calls"]:
            function = call["function"]
            result = tools[function["name"]](**json.loads(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(result)})
    return task.answered(messages[-1]["content"])


def _ask(task: Task, messages: list[dict[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": task.model,
        "messages": messages,
        "tools": [_described(tool) for tool in task.tools],
    }
    if task.stream:
        body["stream"] = True
    headers = {"authorization": f"Bearer {task.key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{task.base_url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=task.timeout) as reply:
        if not task.stream:
            message: dict[str, Any] = json.load(reply)["choices"][0]["message"]
            return message
        return _assembled(reply)


def _assembled(reply: Any) -> dict[str, Any]:
    text, calls = "", {}
    for line in reply:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        delta = json.loads(line[6:])["choices"][0]["delta"]
        text += delta.get("content") or ""
        for piece in delta.get("tool_calls") or ():
            if piece["index"] not in calls:
                calls[piece["index"]] = piece
            else:
                calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in calls.values()]
    return message


def _described(tool: Any) -> dict[str, Any]:
    hints = {name: eval(kind, {}) for name, kind in tool.__annotations__.items() if name != "return"}
    properties: dict[str, Any] = {name: {"type": _KINDS[kind]} for name, kind in hints.items()}
    needed = len(hints) - len(tool.__defaults__ or ())
    schema = {"type": "object", "properties": properties, "required": list(hints)[:needed]}
    described = {"name": tool.__name__, "description": tool.__doc__, "parameters": schema}
    return {"type": "function", "function": described}
