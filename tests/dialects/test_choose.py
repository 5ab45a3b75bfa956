"""How a model calls tools: chosen by what it can do, and by text once its server refuses tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ModelSettings,
    ToolDef,
    ToolLoopModelError,
    ToolLoopResult,
    ToolSet,
    run_tool_loop,
    stream_tool_loop,
    tool,
)
from toolturn.dialects.choose import NativeOrText, refuses_tools, text_tools
from toolturn.dialects.grammar import GrammarTools
from toolturn.dialects.react import ReActTools
from toolturn.errors import (
    ModelAuthenticationError,
    ModelError,
    ModelOverloadedError,
    ModelRequestError,
    ModelUnavailableError,
)
from toolturn.model import StreamItem
from toolturn.testing import ScriptedModel, calls


@tool(effect="none")
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


TOOLS = ToolSet([add])
USER = (ChatMessage("user", "What is 2 + 3?"),)
CALL = 'Action: add\nAction Input: {"left": 2, "right": 3}'
ANSWER = "Final Answer: It is 5."
NO_TOOLS = "registry.ollama.ai/library/gemma3:4b does not support tools"


class Refusing(ChatModel):
    """A server that refuses every request with tools, and else plays texts."""

    def __init__(self, error: ModelError, *texts: str, able: Capabilities | None = None) -> None:
        self.error = error
        self.texts = list(texts)
        self.able = able or Capabilities(streaming=True, tools=True)
        self.with_tools = 0

    @property
    def capabilities(self) -> Capabilities:
        return self.able

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        if tools:
            self.with_tools += 1
            await asyncio.sleep(0)
            raise self.error
        return ChatResponse(self.texts.pop(0), finish_reason="stop")

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        response = await self.complete(messages, tools, settings=settings)
        yield Delta(response.content)
        yield response


def test_a_model_that_calls_tools_stays_as_it_is() -> None:
    model = ScriptedModel([])
    assert text_tools(model) is model


def test_a_model_that_takes_a_grammar_is_held_to_one() -> None:
    assert isinstance(text_tools(Refusing(ModelError(), able=Capabilities(grammar=True))), GrammarTools)


def test_every_other_model_writes_react_text() -> None:
    assert isinstance(text_tools(Refusing(ModelError(), able=Capabilities()), language="de"), ReActTools)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_that_refuses_tools_is_asked_by_text_once_and_for_all(streamed: bool) -> None:
    server = Refusing(ModelRequestError(NO_TOOLS, status=400), CALL, ANSWER)
    model = NativeOrText(server)

    async def go() -> ToolLoopResult:
        if not streamed:
            return await run_tool_loop(USER, TOOLS, model)
        async with stream_tool_loop(USER, TOOLS, model) as stream:
            return await stream.result()

    result = asyncio.run(go())
    assert result.content == "It is 5."
    assert (server.with_tools, model.demoted) == (1, True)
    (repair,) = result.repairs
    assert repair.kind == "demoted"
    assert NO_TOOLS in repair.detail


def test_requests_that_meet_the_refusal_together_all_go_on_by_text() -> None:
    server = Refusing(ModelRequestError(NO_TOOLS, status=400), *[ANSWER] * 8)
    model = NativeOrText(server)

    async def go() -> list[ChatResponse]:
        return await asyncio.gather(*(model.complete(USER, TOOLS.definitions) for _ in range(8)))

    assert [response.content for response in asyncio.run(go())] == ["It is 5."] * 8


def test_a_server_that_takes_tools_is_given_them() -> None:
    scripted = ScriptedModel([calls(("add", '{"left":2,"right":3}')), "It is 5."])
    model = NativeOrText(scripted)
    assert asyncio.run(run_tool_loop(USER, TOOLS, model)).content == "It is 5."
    assert all(tools == TOOLS.definitions for _, tools in scripted.requests)
    assert not model.demoted


def test_another_refusal_demotes_nothing() -> None:
    model = NativeOrText(Refusing(ModelRequestError("Invalid schema for function 'add'", status=400)))
    with pytest.raises(ToolLoopModelError, match="Invalid schema"):
        asyncio.run(run_tool_loop(USER, TOOLS, model))
    assert not model.demoted


REFUSALS = [
    # https://github.com/defilantech/LLMKube/issues/126
    (500, "tools param requires --jinja flag"),
    # https://github.com/ggml-org/llama.cpp/issues/10920
    (500, "Unsupported param: tools"),
    # https://github.com/ollama/ollama/issues/11131
    (400, "registry.ollama.ai/library/deepseek-r1:14b does not support tools"),
    # https://github.com/vllm-project/vllm/issues/9986
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    # https://github.com/pydantic/pydantic-ai/issues/2896
    (404, "No endpoints found that support tool use. To learn more about provider routing, visit: https://"),
    (404, 'No endpoints found that support tool use. Try disabling "question".'),
    (400, "Function calling is not enabled for models/gemma-3-27b-it"),
    (400, "deepseek-reasoner does not support Function Calling"),
    (400, "`tools` is not supported with this model"),
    (400, "This model doesn't support tool use."),
    (400, "Unknown parameter: 'tools'."),
    (422, "Unsupported parameter(s): tools"),
]
OTHERS = [
    (400, "Invalid schema for function 'x'"),
    (404, "No endpoints found that support the provided 'tool_choice' value."),
    (400, "tool_choice 'required' is not supported"),
    (400, "Unsupported value: 'parallel_tool_calls' is not supported with this model"),
    (400, "An assistant message with 'tool_calls' must be followed by tool messages"),
    (400, "Unsupported parameter: 'temperature' is not supported with this model."),
    (400, "tools[0].function.name does not match the pattern"),
    (400, "This model does not support image input"),
    (400, "Invalid 'tools': array too long"),
    (404, "model 'tools' not found"),
]


@pytest.mark.parametrize(("status", "text"), REFUSALS)
def test_what_servers_say_where_they_take_no_tools_is_known(status: int, text: str) -> None:
    kind = {404: ModelUnavailableError, 500: ModelOverloadedError}.get(status, ModelRequestError)
    assert refuses_tools(kind(f"host refused the request (HTTP {status}): {text}", status=status))


@pytest.mark.parametrize(("status", "text"), OTHERS)
def test_what_they_say_of_a_single_thing_is_no_refusal_of_tools(status: int, text: str) -> None:
    assert not refuses_tools(ModelRequestError(f"host refused the request (HTTP {status}): {text}", status=status))


def test_a_refused_key_is_no_refusal_of_tools() -> None:
    assert not refuses_tools(ModelAuthenticationError(NO_TOOLS, status=403))
    assert not refuses_tools(ValueError(NO_TOOLS))
