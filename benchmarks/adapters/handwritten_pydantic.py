"""The floor: a hand-written loop that keeps what any typed loop must keep.

Frozen dataclasses for messages and calls, arguments and results validated and rendered by pydantic, the transcript
handed to the model as a tuple. No limits beyond the iteration bound, no checks of ids, no audit, no events.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from common import FINAL, PROMPT, TOOL_NAME, Spec, make_tool, script, think
from pydantic import BaseModel, Field

HERE = True
IMPORTS = "import asyncio, json; from pydantic import BaseModel, TypeAdapter"
SKIP_LOADS = ["w2", "w3http"]


class Request(BaseModel):
    index: int = Field(ge=0)


class Result(BaseModel):
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    content: str
    tool_calls: list[Call] | None = None


async def loop(call_model, handlers, messages, max_iterations: int) -> str:
    transcript = list(messages)

    async def run(call: Call) -> Message:
        request = Request.model_validate(json.loads(call.arguments))
        result = await handlers[call.name](request)
        return Message("tool", result.model_dump_json(), None, call.id)

    for _ in range(max_iterations):
        response = await call_model(tuple(transcript))
        transcript.append(Message("assistant", response.content, response.tool_calls))
        if not response.tool_calls:
            return response.content
        if len(response.tool_calls) == 1:
            transcript.append(await run(response.tool_calls[0]))
        else:
            transcript.extend(await asyncio.gather(*map(run, response.tool_calls)))
    raise RuntimeError("iteration limit")


def inprocess(spec: Spec):
    tool = make_tool(spec)

    async def lookup(request: Request) -> Result:
        value = tool(request.index)
        return Result(text=await value if hasattr(value, "__await__") else value)

    async def call_model(messages: tuple[Message, ...]) -> Response:
        await think(spec)
        calls = script(spec, messages[-1].tool_call_id)
        if calls is None:
            return Response(FINAL)
        return Response("", [Call(*call) for call in calls])

    async def turn():
        return await loop(call_model, {TOOL_NAME: lookup}, [Message("user", PROMPT)], spec.n + 1)

    return turn


def http(base_url: str, spec: Spec):
    raise NotImplementedError("in process only")
