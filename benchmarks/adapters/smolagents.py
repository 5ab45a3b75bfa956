"""smolagents: ToolCallingAgent with a scripted Model, or OpenAIModel over HTTP. Synchronous.

Its loop ends only by a call of its own tool final_answer, and it sends calls and
results as plain text ("Calling tools: ...", "Observation: ..."), not as tool messages.
"""

from __future__ import annotations

import json
import re

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, make_sync_tool, script, think_sync

DISTS = ["smolagents", "openai"]
IMPORTS = "from smolagents import OpenAIModel, Tool, ToolCallingAgent"
STREAMING = False  # streaming needs a terminal display
ASYNC_TOOLS = False

_LAST_ID = re.compile(r"'id': '(c\d+_\d+)'")


def make_turn(spec: Spec, model):
    from smolagents import LogLevel, Tool, ToolCallingAgent

    lookup = make_sync_tool(spec)

    class Lookup(Tool):
        name = "lookup"
        description = "Return the stored record with this index."
        inputs = {"index": {"type": "integer", "description": "Which record."}}  # noqa: RUF012 - read from the class
        output_type = "string"

        def forward(self, index: int) -> str:
            return lookup(index)

    tool = Lookup()

    def turn():
        # the agent object holds the memory of its run: one object for each turn
        agent = ToolCallingAgent([tool], model, max_steps=spec.n + 2, verbosity_level=LogLevel.OFF)
        return agent.run(PROMPT)

    return turn


def inprocess(spec: Spec):
    from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model

    class Scripted(Model):
        def generate(self, messages, stop_sequences=None, response_format=None, tools_to_call_from=None, **kw):
            think_sync(spec)
            last = None
            if messages[-1].role == MessageRole.TOOL_RESPONSE:
                last = _LAST_ID.findall(messages[-2].content[0]["text"])[-1]
            calls = script(spec, last) or [("end_0", "final_answer", json.dumps({"answer": FINAL}))]
            return ChatMessage(
                MessageRole.ASSISTANT,
                None,
                [
                    ChatMessageToolCall(ChatMessageToolCallFunction(args, name), i, "function")
                    for i, name, args in calls
                ],
            )

    return make_turn(spec, Scripted(model_id=MODEL_NAME))


def http(base_url: str, spec: Spec):
    from smolagents import OpenAIModel

    return make_turn(
        spec,
        OpenAIModel(
            MODEL_NAME,
            api_base=base_url + spec.path(final="final_answer", mark="text") + "/v1",
            api_key=API_KEY,
            client_kwargs={"timeout": 120, "max_retries": 0},
        ),
    )
