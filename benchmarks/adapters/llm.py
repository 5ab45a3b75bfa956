"""llm: AsyncModel.chain with a scripted model, or its own OpenAI chat model over HTTP."""

from __future__ import annotations

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, loads, make_tool, script, think

DISTS = ["llm", "openai"]
IMPORTS = "import llm; from llm.default_plugins.openai_models import AsyncChat"
STREAMING = True


def make_turn(spec: Spec, model, key=None):
    lookup = make_tool(spec)
    lookup.__annotations__["index"] = int

    async def turn():
        chain = model.conversation(chain_limit=0).chain(PROMPT, tools=[lookup], stream=spec.stream, key=key)
        text = await chain.text()
        return text.strip()

    return turn


def inprocess(spec: Spec):
    import llm

    class Scripted(llm.AsyncModel):
        model_id = MODEL_NAME
        can_stream = False
        supports_tools = True

        async def execute(self, prompt, stream, response, conversation):
            await think(spec)
            results = prompt.tool_results
            calls = script(spec, results[-1].tool_call_id if results else None)
            if calls is None:
                yield FINAL
                return
            for i, name, args in calls:
                response.add_tool_call(llm.ToolCall(name=name, arguments=loads(args), tool_call_id=i))

    return make_turn(spec, Scripted())


def http(base_url: str, spec: Spec):
    from llm.default_plugins.openai_models import AsyncChat

    model = AsyncChat(MODEL_NAME, model_name=MODEL_NAME, supports_tools=True, api_base=base_url + spec.path() + "/v1")
    return make_turn(spec, model, API_KEY)
