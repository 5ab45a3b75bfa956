"""LangChain: create_agent with a scripted BaseChatModel, or ChatOpenAI over HTTP."""

from __future__ import annotations

from typing import Annotated

from common import API_KEY, FINAL, MODEL_NAME, PROMPT, Spec, loads, make_tool, script, think
from pydantic import Field

DISTS = ["langchain", "langgraph", "langchain-core", "langchain-openai", "openai"]
IMPORTS = (
    "from langchain.agents import create_agent; from langchain.tools import tool; "
    "from langchain_openai import ChatOpenAI"
)
STREAMING = True


def make_turn(spec: Spec, model):
    from langchain.agents import create_agent
    from langchain.tools import tool

    lookup = make_tool(spec)
    lookup.__annotations__["index"] = Annotated[int, Field(ge=0)]
    agent = create_agent(model, [tool(lookup)])
    config = {"recursion_limit": 4 * spec.n + 50}
    question = {"messages": [{"role": "user", "content": PROMPT}]}

    if not spec.stream:

        async def turn():
            return (await agent.ainvoke(question, config))["messages"][-1].content
    else:

        async def turn():
            last = None
            async for kind, value in agent.astream(question, config, stream_mode=["messages", "values"]):
                if kind == "values":
                    last = value
            return last["messages"][-1].content

    return turn


def inprocess(spec: Spec):
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **kw):
            return self

        def _generate(self, *args, **kw):
            raise NotImplementedError

        async def _agenerate(self, messages, stop=None, run_manager=None, **kw):
            await think(spec)
            calls = script(spec, getattr(messages[-1], "tool_call_id", None))
            if calls is None:
                message = AIMessage(FINAL)
            else:
                message = AIMessage(
                    "",
                    tool_calls=[
                        {"id": i, "name": name, "args": loads(args), "type": "tool_call"} for i, name, args in calls
                    ],
                )
            return ChatResult(generations=[ChatGeneration(message=message)])

    return make_turn(spec, Scripted())


def http(base_url: str, spec: Spec):
    from langchain_openai import ChatOpenAI

    return make_turn(
        spec,
        ChatOpenAI(
            model=MODEL_NAME,
            api_key=API_KEY,
            timeout=120,
            max_retries=0,
            base_url=base_url + spec.path() + "/v1",
            streaming=spec.stream,
        ),
    )
