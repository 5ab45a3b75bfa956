"""OpenAI Agents SDK: Runner.run with a scripted Model, or OpenAIChatCompletionsModel over HTTP."""

from __future__ import annotations

from typing import Annotated

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, make_tool, script, think
from pydantic import Field

DISTS = ["openai-agents", "openai"]
IMPORTS = "from agents import Agent, Runner, OpenAIChatCompletionsModel, function_tool; from openai import AsyncOpenAI"
STREAMING = True


def make_turn(spec: Spec, model):
    from agents import Agent, Runner, function_tool, set_tracing_disabled

    set_tracing_disabled(True)  # tracing uploads to a vendor; nobody is there to answer
    lookup = make_tool(spec)
    lookup.__annotations__["index"] = Annotated[int, Field(ge=0)]
    agent = Agent(name="bench", model=model, tools=[function_tool(lookup)])

    if not spec.stream:

        async def turn():
            return (await Runner.run(agent, PROMPT, max_turns=spec.n + 2)).final_output
    else:

        async def turn():
            run = Runner.run_streamed(agent, PROMPT, max_turns=spec.n + 2)
            async for _ in run.stream_events():
                pass
            return run.final_output

    return turn


def inprocess(spec: Spec):
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *args, **kw):
            await think(spec)
            last = input[-1] if isinstance(input, list) else {}
            calls = script(spec, last.get("call_id") if last.get("type") == "function_call_output" else None)
            if calls is None:
                out = [
                    ResponseOutputMessage(
                        id="m",
                        type="message",
                        role="assistant",
                        status="completed",
                        content=[ResponseOutputText(text=FINAL, type="output_text", annotations=[])],
                    )
                ]
            else:
                out = [
                    ResponseFunctionToolCall(type="function_call", call_id=i, name=name, arguments=args)
                    for i, name, args in calls
                ]
            return ModelResponse(output=out, usage=Usage(), response_id=None)

        def stream_response(self, *args, **kw):
            raise NotImplementedError

    return make_turn(spec, Scripted())


def http(base_url: str, spec: Spec):
    from agents import OpenAIChatCompletionsModel
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key=API_KEY, base_url=base_url + spec.path() + "/v1", timeout=120, max_retries=0)
    return make_turn(spec, OpenAIChatCompletionsModel(MODEL_NAME, client))
