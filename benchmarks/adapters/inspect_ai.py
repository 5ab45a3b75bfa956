"""Inspect: Model.generate_loop with a scripted ModelAPI, or its openai-api provider over HTTP."""

from __future__ import annotations

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, loads, make_async_tool, script, think

DISTS = ["inspect-ai", "openai"]
IMPORTS = "from inspect_ai.model import get_model, ChatMessageUser; from inspect_ai.tool import tool"
STREAMING = False


def make_turn(spec: Spec, model):
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.tool import tool

    inner = make_async_tool(spec)

    @tool
    def lookup():
        async def execute(index: int) -> str:
            """Return the stored record with this index.

            Args:
                index: Which record.
            """
            return await inner(index)

        return execute

    tools = [lookup()]

    async def turn():
        _, output = await model.generate_loop([ChatMessageUser(content=PROMPT)], tools=tools)
        return output.completion

    return turn


def inprocess(spec: Spec):
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelAPI, ModelOutput, get_model, modelapi
    from inspect_ai.tool import ToolCall

    @modelapi("bench")
    class Scripted(ModelAPI):
        async def generate(self, input, tools, tool_choice, config):
            await think(spec)
            calls = script(spec, getattr(input[-1], "tool_call_id", None))
            if calls is None:
                message, reason = ChatMessageAssistant(content=FINAL), "stop"
            else:
                message, reason = (
                    ChatMessageAssistant(
                        content="",
                        tool_calls=[ToolCall(id=i, function=name, arguments=loads(args)) for i, name, args in calls],
                    ),
                    "tool_calls",
                )
            return ModelOutput(model=MODEL_NAME, choices=[ChatCompletionChoice(message=message, stop_reason=reason)])

        def max_connections(self):
            return 10000

    return make_turn(spec, get_model(f"bench/{MODEL_NAME}", memoize=False))


def http(base_url: str, spec: Spec):
    from inspect_ai.model import get_model

    return make_turn(
        spec,
        get_model(
            f"openai-api/bench/{MODEL_NAME}", api_key=API_KEY, memoize=False, base_url=base_url + spec.path() + "/v1"
        ),
    )
