"""A model behind OpenAI's chat completions, over loopback: real requests, real replies, real streams."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import (
    ChatMessage,
    ChatResponse,
    Tool,
    ToolCall,
    ToolDef,
    ToolLoopMalformedResponseError,
    ToolLoopModelError,
    Turn,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.conformance.replies import Body, Call, Chat, Events, Http, Reply
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer
from toolturn.errors import (
    ModelContextError,
    ModelError,
    ModelProtocolError,
    ModelRequestError,
    ModelStreamError,
    ModelUnavailableError,
)
from toolturn.events import Text
from toolturn.model import Delta, ModelSettings
from toolturn.models.wires.openai_chat import OpenAIChat, SkippedToolWarning

USER = (ChatMessage("user", "go"),)
CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data/stream_cases.jsonl").read_text().splitlines()]
NAMES = ("get_temp", "ping", "write_file")
TOOLS = tuple(ToolDef(name, name, {"type": "object", "properties": {}}) for name in NAMES)


class Played:
    """A server that plays replies in order, and the model behind it."""

    def __init__(self, *replies: Reply, split: int = 0, **options: Any) -> None:
        self.lab = LabServer([Fault("m", "", replies, ())], split=split)
        self.options = options

    def __enter__(self) -> Played:
        self.lab.__enter__()
        self.model = OpenAIChat("m", base_url=self.lab.base_url, api_key="k", **self.options)
        return self

    def __exit__(self, *args: Any) -> None:
        self.lab.__exit__(None, None, None)

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.lab.received("m", "k")]

    def ask(self, tools: tuple[ToolDef, ...] = (), settings: ModelSettings | None = None) -> ChatResponse:
        return asyncio.run(self.model.complete(USER, tools, settings=settings))

    def watch(self, tools: tuple[ToolDef, ...] = ()) -> list[Any]:
        async def run() -> list[Any]:
            return [item async for item in self.model.stream(USER, tools)]

        return asyncio.run(run())


def text_of(items: list[Any]) -> str:
    return "".join(item.text for item in items if isinstance(item, Delta) and item.kind == "text")


def replies_of(case: dict[str, Any]) -> Events:
    given = case["input"]
    if "lines" in given:
        return Events(("\n".join(given["lines"]).encode() + b"\n",), done=False)
    if "text_chunks" in given:
        chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in given["text_chunks"]]
        return Events((*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    return Events(tuple(given["chunks"]), done=given.get("done", True))


@pytest.mark.parametrize("split", [0, 1, 7])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_reported_stream_ends_as_a_user_would_expect(case: dict[str, Any], split: int) -> None:
    oracle = case["oracle"] or {}
    with Played(replies_of(case), split=split) as played:
        if case["outcome"] == "typed_error":
            with pytest.raises(ModelError) as caught:
                played.watch(TOOLS)
            assert oracle.get("message_contains", "") in str(caught.value)
            assert caught.value.partial == oracle.get("partial", caught.value.partial)
            return
        items = played.watch(TOOLS)
    response = items[-1]
    assert isinstance(response, ChatResponse)
    if "calls" in oracle:
        made = [[call.name, json.loads(call.arguments)] for call in response.tool_calls or ()]
        assert made == oracle["calls"]
    if "text" in oracle:
        assert response.content == text_of(items) == oracle["text"]
    if "emitted_text" in oracle:
        assert text_of(items).startswith(oracle["emitted_text"])
    if "total_tokens" in oracle:
        assert response.usage is not None
        assert response.usage.input + response.usage.output == oracle["total_tokens"]
    for call in response.tool_calls or ():
        assert isinstance(call.id, str)
        assert call.id.strip()


def test_the_request_holds_model_messages_tools_and_settings() -> None:
    settings = ModelSettings(temperature=0.0, max_tokens=5, tool_choice="ping", extra={"top_k": 4})
    with Played(Chat("hi")) as played:
        assert played.ask(TOOLS[1:2], settings).content == "hi"
    (body,) = played.bodies
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "go"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "ping", "description": "ping", "parameters": {"type": "object", "properties": {}}},
            }
        ],
        "temperature": 0.0,
        "max_tokens": 5,
        "tool_choice": {"type": "function", "function": {"name": "ping"}},
        "top_k": 4,
    }


def test_a_stream_is_asked_for_with_its_usage_unless_the_server_does_not_know_it() -> None:
    with Played(Chat("hi")) as played:
        played.watch()
    assert played.bodies[0]["stream"] is True
    assert played.bodies[0]["stream_options"] == {"include_usage": True}
    with Played(Chat("hi"), wishes={"stream_usage": False}) as played:
        played.watch()
    assert "stream_options" not in played.bodies[0]


def test_without_tools_no_list_of_tools_is_sent() -> None:
    with Played(Chat("hi")) as played:
        played.ask()
    assert "tools" not in played.bodies[0]


def test_streamed_and_whole_replies_give_the_same_response() -> None:
    reply = Chat("Let me see.", (Call("ping", "{}", "c1"),), "tool_calls", {"reasoning_content": "Hm."})
    with Played(reply) as played:
        whole, streamed = played.ask(TOOLS), played.watch(TOOLS)[-1]
    for name in ("content", "reasoning", "tool_calls", "finish_reason"):
        assert getattr(whole, name) == getattr(streamed, name)


def test_a_server_that_does_not_stream_is_read_as_a_whole() -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    with Played(Http(200, json.dumps(body).encode(), {"content-type": "application/json"})) as played:
        items = played.watch()
    assert items[-1].content == "hi"


def test_a_tool_whose_name_no_server_takes_is_offered_under_another_and_called_by_its_own() -> None:
    tool = ToolDef("math.add numbers", "adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
    with Played(Chat(None, (Call("math_add_numbers", '{"a": 1}'),), "tool_calls")) as played:
        response = played.ask((tool,))
    assert played.bodies[0]["tools"][0]["function"]["name"] == "math_add_numbers"
    assert [call.name for call in response.tool_calls or ()] == ["math.add numbers"]


def test_a_call_that_leaked_under_the_wires_name_is_lifted_under_the_tools_own() -> None:
    tool = ToolDef("math.add numbers", "adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
    leaked = '<tool_call>{"name": "math_add_numbers", "arguments": {"a": 1}}</tool_call>'
    with Played(Chat(leaked)) as played:
        response = played.ask((tool,))
    assert [(call.name, call.arguments) for call in response.tool_calls or ()] == [("math.add numbers", '{"a":1}')]


def test_a_tool_that_can_not_be_offered_is_skipped_and_named() -> None:
    bad: Any = ToolDef("bad", "bad", {"type": "string"})
    with Played(Chat("hi")) as played, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert played.ask((bad, TOOLS[1])).content == "hi"
    assert [tool["function"]["name"] for tool in played.bodies[0]["tools"]] == ["ping"]
    assert [warning.category for warning in caught] == [SkippedToolWarning]
    assert "'bad'" in str(caught[0].message)


def test_a_tool_choice_that_is_not_offered_is_a_refused_request() -> None:
    with Played(Chat("hi")) as played, pytest.raises(ModelRequestError, match="tool_choice"):
        played.ask(TOOLS, ModelSettings(tool_choice="fly"))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Http(400, {"error": {"message": "maximum context length is 4096"}}), ModelContextError),
        (Http(404, b"<html>"), ModelProtocolError),
        (Body({"error": {"message": "no"}}), ModelStreamError),
        (Body({"hello": 1}), ModelProtocolError),
        (Http(200, b"<html>hi</html>", {"content-type": "text/html"}), ModelProtocolError),
    ],
    ids=str,
)
def test_what_is_no_reply_is_a_typed_error(reply: Any, kind: type[ModelError]) -> None:
    with Played(reply) as played, pytest.raises(kind):
        played.ask()


def test_a_stream_of_something_else_is_a_typed_error() -> None:
    with Played(Http(200, b"<html>hi</html>", {"content-type": "text/html"})) as played, pytest.raises(ModelError):
        played.watch()


def test_nobody_there_is_told_with_the_address() -> None:
    model = OpenAIChat("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailableError, match=r"127\.0\.0\.1"):
        asyncio.run(model.complete(USER))


def test_the_models_of_a_server_are_listed() -> None:
    with Played(Chat("hi")) as played:
        assert asyncio.run(played.model.models()) == ("m",)


def test_a_call_that_the_server_could_not_read_is_the_models_fault_and_may_be_nudged() -> None:
    failed = Http(400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}})
    with Played(failed, Chat("done"), Chat("done")) as played:
        assert played.ask(TOOLS).finish_reason == "malformed_function_call"
    with Played(failed, Chat("done")) as played:
        result = asyncio.run(run_tool_loop(USER, [TEMPERATURE], played.model, nudges=1))
    assert (result.content, result.iterations) == ("done", 2)
    with Played(failed) as played, pytest.raises(ToolLoopMalformedResponseError):
        asyncio.run(run_tool_loop(USER, [TEMPERATURE], played.model))
    with Played(failed) as played:
        assert [item.finish_reason for item in played.watch(TOOLS)] == ["malformed_function_call"]


def test_a_servers_own_tools_stand_beside_those_of_the_turn() -> None:
    own = [{"type": "web_search"}]
    with Played(Chat("hi")) as played:
        played.ask(TOOLS[1:2], ModelSettings(extra={"tools": own}))
        played.ask((), ModelSettings(extra={"tools": own}))
    first, second = played.bodies
    assert [tool["type"] for tool in first["tools"]] == ["function", "web_search"]
    assert second["tools"] == own


# --- whole turns ---------------------------------------------------------------------------


class City(BaseModel):
    city: str


class Temperature(BaseModel):
    celsius: int


async def get_temp(request: City) -> Temperature:
    return Temperature(celsius=len(request.city))


TEMPERATURE = Tool("get_temp", "The temperature of a city.", City, Temperature, get_temp)
ASKS = Chat(None, (Call("get_temp", '{"city": "Faro"}'),), "tool_calls")


@pytest.fixture
def faro() -> Iterator[Played]:
    with Played(ASKS, Chat("It is 4 degrees.")) as played:
        yield played


def test_a_turn_over_the_wire_calls_its_tool_and_answers(faro: Played) -> None:
    result = asyncio.run(run_tool_loop(USER, [TEMPERATURE], faro.model))
    assert result.content == "It is 4 degrees."
    assert result.tool_calls[0].message.content == '{"celsius":4}'
    assert [request.faults for request in faro.lab.received("m", "k")] == [(), ()]
    assert result.usage.output > 0


def test_a_streamed_turn_hands_the_answer_on_and_ends_the_same(faro: Played) -> None:
    async def run() -> tuple[list[str], str]:
        async with stream_tool_loop(USER, [TEMPERATURE], faro.model) as events:
            texts = [event.text async for event in events if isinstance(event, Text)]
            return texts, (await events.result()).content

    texts, answer = asyncio.run(run())
    assert "".join(texts) == answer == "It is 4 degrees."


def test_a_message_is_encoded_once_in_a_turn_and_in_the_next(faro: Played) -> None:
    result = asyncio.run(run_tool_loop(USER, [TEMPERATURE], faro.model))
    kept = [message._encoded for message in result.messages[:-1]]
    asyncio.run(faro.model.complete((*result.messages, *USER), (TEMPERATURE.definition(),)))
    assert [message._encoded for message in result.messages[:-1]] == kept
    assert all(new is old for new, old in zip((m._encoded for m in result.messages), kept, strict=False))


def test_a_server_that_fails_after_a_tool_ran_leaves_the_transcript_in_the_error() -> None:
    turn = Turn()
    failing = Played(ASKS, Http(500, {"error": {"message": "boom"}}))
    with failing as played, pytest.raises(ToolLoopModelError, match="boom") as caught:
        asyncio.run(run_tool_loop(USER, [TEMPERATURE], played.model, turn=turn))
    assert caught.value.messages[-1].content == '{"celsius":4}'
    assert caught.value.messages == turn.messages


def test_what_the_server_wants_back_is_sent_back_in_the_next_request() -> None:
    reply = Chat(None, (Call("get_temp", '{"city": "Faro"}'),), "tool_calls", {"reasoning_content": "Hm."})
    with Played(reply, Chat("done"), wishes={"echo": ("reasoning_content",)}) as played:
        asyncio.run(run_tool_loop(USER, [TEMPERATURE], played.model))
    assert played.bodies[1]["messages"][1]["reasoning_content"] == "Hm."


def test_a_signature_of_a_call_without_an_id_goes_back_with_the_id_it_was_given() -> None:
    signed = {"index": 0, "id": "", "function": {"name": "get_temp", "arguments": '{"city": "Faro"}'}}
    signed["extra_content"] = {"google": {"thought_signature": "S"}}
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [signed]}}]}]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    played = Played(Events(tuple(chunks)), Chat("done"), wishes={"echo": ("extra_content",)})
    with played:
        asyncio.run(run_tool_loop(USER, [TEMPERATURE], played.model, emit=lambda event: None))
    (call,) = played.bodies[1]["messages"][1]["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "S"}}
    assert call["id"] == played.bodies[1]["messages"][2]["tool_call_id"] != ""


def test_arguments_that_are_no_json_are_answered_and_never_sent_back_as_they_are() -> None:
    with Played(Chat(None, (Call("get_temp", '{"city": '),), "tool_calls"), Chat("done")) as played:
        result = asyncio.run(run_tool_loop(USER, [TEMPERATURE], played.model))
    assert result.tool_calls[0].status == "invalid_arguments"
    sent = played.bodies[1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"invalid_arguments": '{"city": '}
    assert [request.faults for request in played.lab.received("m", "k")] == [(), ()]


def test_a_strict_model_refuses_what_would_have_been_mended() -> None:
    strict = Played(Chat(None, (Call("get_temp", "{'city': 'Faro'}"),), "tool_calls"), strict=True)
    with strict as played, pytest.raises(ModelProtocolError):
        played.ask((TEMPERATURE.definition(),))


def test_mends_are_told_in_the_response() -> None:
    with Played(Chat(None, (Call("get_temp", "{'city': 'Faro'}"),), "tool_calls")) as played:
        response = played.ask((TEMPERATURE.definition(),))
    assert response.tool_calls is not None
    assert isinstance(response.tool_calls[0], ToolCall)
    assert json.loads(response.tool_calls[0].arguments) == {"city": "Faro"}
    assert response.repairs


def test_an_error_after_the_model_had_begun_to_think_is_a_broken_stream() -> None:
    thought = {"choices": [{"index": 0, "delta": {"reasoning": "Let me"}}]}
    refused = {"error": {"message": "the call fits no schema", "code": "tool_use_failed", "status_code": 400}}
    with Played(Events((thought, refused), done=False)) as played, pytest.raises(ModelStreamError) as caught:
        played.watch()
    assert caught.value.status == 400
    with Played(Events((refused,), done=False)) as played, pytest.raises(ModelRequestError):
        played.watch()


def test_what_comes_before_an_error_is_handed_on_even_in_the_same_piece() -> None:
    said = b'data: {"choices": [{"index": 0, "delta": {"content": "Par"}}]}\n\n'
    failed = b'data: {"error": {"message": "boom", "code": 500}}\n\n'
    seen: list[Any] = []

    async def watch(model: OpenAIChat) -> None:
        async for item in model.stream(USER):
            seen.append(item)  # noqa: PERF401 - what came before the error is to be kept

    with Played(Events((said + failed,), done=False)) as played, pytest.raises(ModelStreamError, match="boom"):
        asyncio.run(watch(played.model))
    assert seen == [Delta("Par")]


def test_ollama_in_the_cloud_is_a_server_of_its_own() -> None:
    model = OpenAIChat("m", base_url="https://ollama.com")
    assert model.server.name == "ollama-cloud"
    assert model.url == "https://ollama.com/v1/chat/completions"
