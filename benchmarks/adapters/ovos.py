"""OVOS: NativeToolCallEngine with a scripted brain, or the OpenAI chat plugin over HTTP. Synchronous."""

from __future__ import annotations

from common import (
    API_KEY,
    FINAL,
    MODEL_NAME,
    PROMPT,
    TOOL_DESCRIPTION,
    TOOL_NAME,
    Spec,
    loads,
    make_sync_tool,
    script,
    think_sync,
)
from pydantic import Field

DISTS = ["ovos-agentic-loop", "ovos-plugin-manager", "ovos-openai-plugin"]
IMPORTS = (
    "from ovos_agentic_loop.native_toolcall import NativeToolCallEngine; "
    "from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolBox, ToolArguments, ToolOutput; "
    "from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine, MessageRole, ToolCall; "
    "from ovos_openai_plugin.chat import OpenAIChatEngine"
)
STREAMING = False
ASYNC_TOOLS = False


def make_turn(spec: Spec, brain):
    from ovos_agentic_loop.native_toolcall import NativeToolCallEngine
    from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput
    from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

    lookup = make_sync_tool(spec)

    class Arguments(ToolArguments):
        index: int = Field(ge=0)

    class Record(ToolOutput):
        text: str

    class Box(ToolBox):
        def discover_tools(self):
            return [
                AgentTool(
                    TOOL_NAME,
                    TOOL_DESCRIPTION,
                    Arguments,
                    Record,
                    lambda arguments: Record(text=lookup(arguments.index)),
                )
            ]

    engine = NativeToolCallEngine({"max_iterations": spec.n + 1})
    engine.load_toolboxes([Box("bench")])
    engine.set_brain(brain)

    def turn():
        return engine.continue_chat([AgentMessage(MessageRole.USER, PROMPT)]).content

    return turn


def inprocess(spec: Spec):
    from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine, MessageRole, ToolCall

    class Brain(ChatEngine):
        supports_tools = True

        def continue_chat(self, messages, session_id="default", lang=None, units=None, tools=None):
            think_sync(spec)
            calls = script(spec, messages[-1].tool_call_id)
            if calls is None:
                return AgentMessage(MessageRole.ASSISTANT, FINAL)
            return AgentMessage(MessageRole.ASSISTANT, "", [ToolCall(i, name, loads(args)) for i, name, args in calls])

    return make_turn(spec, Brain({}))


def http(base_url: str, spec: Spec):
    from ovos_openai_plugin.chat import OpenAIChatEngine

    return make_turn(
        spec, OpenAIChatEngine({"api_url": base_url + spec.path() + "/v1", "key": API_KEY, "model": MODEL_NAME})
    )
