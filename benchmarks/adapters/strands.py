"""Strands Agents: Agent with a scripted Model, or OpenAIModel (it streams unless told otherwise)."""

from __future__ import annotations

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, make_tool, script, think

DISTS = ["strands-agents", "openai"]
IMPORTS = "from strands import Agent, tool; from strands.models.openai import OpenAIModel"
STREAMING = True


def make_turn(spec: Spec, model):
    from strands import Agent, tool
    from strands.agent.conversation_manager import NullConversationManager

    lookup = make_tool(spec)
    lookup.__annotations__["index"] = int
    decorated = tool(lookup)

    async def turn():
        # the agent object holds the conversation: one object for each turn. The default
        # sliding window would drop messages from turns longer than 40 messages.
        agent = Agent(
            model=model, tools=[decorated], callback_handler=None, conversation_manager=NullConversationManager()
        )
        result = await agent.invoke_async(PROMPT)
        return result.message["content"][0]["text"]

    return turn


def inprocess(spec: Spec):
    from strands.models import Model

    class Scripted(Model):
        def update_config(self, **kw):
            pass

        def get_config(self):
            return {}

        def structured_output(self, *args, **kw):
            raise NotImplementedError

        async def stream(self, messages, tool_specs=None, system_prompt=None, **kw):
            await think(spec)
            content = messages[-1]["content"]
            last = content[-1].get("toolResult", {}).get("toolUseId")
            calls = script(spec, last)
            yield {"messageStart": {"role": "assistant"}}
            if calls is None:
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": FINAL}}}
                yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "end_turn"}}
            else:
                for i, name, args in calls:
                    yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": i}}}}
                    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": args}}}}
                    yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "tool_use"}}

    return make_turn(spec, Scripted())


def http(base_url: str, spec: Spec):
    from strands.models.openai import OpenAIModel

    config = {} if spec.stream else {"streaming": False}
    return make_turn(
        spec,
        OpenAIModel(
            client_args={
                "api_key": API_KEY,
                "base_url": base_url + spec.path() + "/v1",
                "timeout": 120,
                "max_retries": 0,
            },
            model_id=MODEL_NAME,
            **config,
        ),
    )
