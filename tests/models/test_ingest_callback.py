"""``normalized`` wraps anyone's callback; ``strict`` refuses instead of mending; ``ingest`` is total and stable."""

from __future__ import annotations

import asyncio
import copy
import pickle
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, ChatResponse, ModelError, Repair, ToolCall, ToolDef, Usage, run_tool_loop
from toolturn.arguments import arguments_of, parse_arguments
from toolturn.codec import response_to_dict
from toolturn.errors import InvalidToolArguments, ModelProtocolError, ToolLoopError, ToolLoopModelError
from toolturn.models import ingest, normalized
from toolturn.testing import ScriptedModel
from toolturn.tools.json_schema import tool_from_schema
from toolturn.transcript import check
from toolturn.turn.rules import REASONS

TOOLS = (ToolDef("act", "act", {"type": "object", "properties": {"n": {"type": "integer"}}}),)
HELLO = (ChatMessage("user", "go"),)
CALL = ToolCall("a", "act", '{"n":1,}')


def asked(model: Any, messages: Any = HELLO, tools: Any = TOOLS, **options: Any) -> ChatResponse:
    async def main() -> ChatResponse:
        return await normalized(model, **options)(messages, tools)

    return asyncio.run(main())


def giving(response: Any) -> Any:
    async def model(messages: Any, tools: Any) -> Any:
        return response

    return model


# --- normalized ------------------------------------------------------------------------------


def test_a_callback_s_reply_is_mended() -> None:
    response = asked(giving(ChatResponse(None, None, [CALL], "stop")))  # type: ignore[arg-type]
    assert response.content == ""
    assert response.tool_calls == [ToolCall("a", "act", '{"n":1}')]
    assert response.repairs == (Repair("arguments", "call 1: a comma before a closing bracket was removed"),)


def test_a_good_reply_is_handed_on_as_it_is() -> None:
    response = ChatResponse("It is warm.", None, None, "stop", {"raw": 1})
    assert asked(giving(response)) is response


def test_ids_of_the_messages_are_not_used_again() -> None:
    messages = (*HELLO, ChatMessage("assistant", "", [ToolCall("a", "act", "{}")]), ChatMessage("tool", "1", None, "a"))
    response = asked(giving(ChatResponse("", None, [ToolCall("a", "act", "{}")])), messages)
    assert response.tool_calls is not None
    assert response.tool_calls[0].id != "a"


def test_one_wrapper_serves_many_conversations() -> None:
    async def main() -> None:
        wrapped = normalized(giving(ChatResponse("", None, [ToolCall("a", "act", "{}")], "tool_calls")))
        used = (*HELLO, ChatMessage("assistant", "", [ToolCall("a", "act", "{}")]), ChatMessage("tool", "1", None, "a"))
        same: list[bool] = []
        for messages in (HELLO, used, HELLO, used[:2], used, (ChatMessage("user", "other"),), used, ()):
            response = await wrapped(messages, TOOLS)
            assert response.tool_calls is not None
            same.append(response.tool_calls[0].id == "a")
        assert same == [True, False, True, False, False, True, False, True]

    asyncio.run(main())


def test_a_callback_that_is_not_async_is_a_type_error_with_the_way_out() -> None:
    with pytest.raises(TypeError, match="call_model must be awaitable: make it an 'async def'"):
        asked(lambda messages, tools: ChatResponse("x"))


def test_any_callable_that_gives_an_awaitable_is_a_callback() -> None:
    def model(messages: Any, tools: Any) -> Awaitable[ChatResponse]:
        future = asyncio.get_running_loop().create_future()
        future.set_result(ChatResponse("done"))
        return future

    assert asked(model).content == "done"
    assert asked(ScriptedModel(["done"])).content == "done"


@pytest.mark.parametrize("reply", [None, "done", {"content": "done"}])
def test_what_is_no_response_is_left_to_whoever_asked(reply: Any) -> None:
    assert asked(giving(reply)) == reply
    with pytest.raises(TypeError, match="must return a ChatResponse"):
        asyncio.run(run_tool_loop(HELLO, [], normalized(giving(reply))))


def test_what_a_callback_raises_passes_unchanged() -> None:
    error = ModelError("gone")

    async def model(messages: Any, tools: Any) -> ChatResponse:
        raise error

    with pytest.raises(ModelError) as caught:
        asked(model)
    assert caught.value is error


def test_a_long_conversation_is_scanned_once() -> None:
    messages: list[ChatMessage] = list(HELLO)
    for number in range(3_000):
        messages.append(ChatMessage("assistant", "", [ToolCall(f"c{number}", "act", "{}")]))
        messages.append(ChatMessage("tool", "1", None, f"c{number}"))

    async def main() -> float:
        wrapped = normalized(giving(ChatResponse("done")))
        await wrapped(tuple(messages), TOOLS)
        start = time.process_time()
        for _ in range(100):
            messages.append(ChatMessage("user", "more"))
            await wrapped(tuple(messages), TOOLS)
        return (time.process_time() - start) / 100

    assert asyncio.run(main()) < 0.01


# --- strict ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "what"),
    [
        (ChatResponse("", None, [CALL]), "arguments: call 1: a comma before a closing bracket was removed"),
        (ChatResponse("", None, [ToolCall("", "act", "{}")]), "id: call 1: it had a blank id"),
        (
            ChatResponse("", None, [ToolCall("a", "ACT", "{}")]),
            "name: call 1: the name was read as that of a declared tool",
        ),
        (ChatResponse("", None, [ToolCall("a", "act", '{"n":"1"}')]), "arguments: call 1: an integer was taken"),
        (ChatResponse("", None, [ToolCall("a", "act", "")]), "arguments: call 1: blank arguments"),
        (ChatResponse('<tool_call>{"name":"act","arguments":{}}</tool_call>'), "leak: a call was lifted"),
        (ChatResponse("<think>hmm</think>x"), "reasoning: marked thoughts"),
        (ChatResponse("\ud800"), "content: half a surrogate pair"),
    ],
)
def test_strict_refuses_what_would_be_mended_and_names_it(response: ChatResponse, what: str) -> None:
    assert ingest(response, TOOLS, ()).repairs
    with pytest.raises(ModelProtocolError) as caught:
        ingest(response, TOOLS, (), strict=True)
    assert what in str(caught.value)
    with pytest.raises(ModelProtocolError):
        asked(giving(response), strict=True)


@pytest.mark.parametrize(
    "response",
    [
        ChatResponse(None),  # type: ignore[arg-type]
        ChatResponse([{"type": "text", "text": "x"}]),  # type: ignore[arg-type]
        ChatResponse("", None, [{"id": "a", "function": {"name": "act", "arguments": {"n": 1}}}]),  # type: ignore[list-item]
        ChatResponse("", None, [CALL], "length"),
        ChatResponse("", None, [CALL], "MAX_TOKENS"),
        ChatResponse("", None, [ToolCall("a", "", "{}")]),
        ChatResponse("", None, [ToolCall("a", "act", "[1]")]),
    ],
)
def test_strict_takes_forms_and_leaves_refusals_to_the_turn(response: ChatResponse) -> None:
    assert ingest(response, TOOLS, (), strict=True) == ingest(response, TOOLS, ())


def test_a_turn_ends_with_the_refusal_of_strict_as_a_model_error() -> None:
    tool = tool_from_schema("act", "Acts.", {"type": "object"}, lambda arguments: "ok")
    with pytest.raises(ToolLoopModelError) as caught:
        asyncio.run(run_tool_loop(HELLO, [tool], normalized(giving(ChatResponse("", None, [CALL])), strict=True)))
    assert isinstance(caught.value.__cause__, ModelProtocolError)
    assert caught.value.tool_calls == ()


# --- whatever comes ----------------------------------------------------------------------------


class Strange:
    """Fails in many ways."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(name)

    def __eq__(self, other: object) -> bool:
        raise ValueError("eq")

    def __hash__(self) -> int:
        raise ValueError("hash")

    def __bool__(self) -> bool:
        raise ValueError("bool")

    def __len__(self) -> int:
        raise ValueError("len")

    def __repr__(self) -> str:
        raise ValueError("repr")


class StrangeDict(dict[str, Any]):
    """A mapping that fails."""

    def get(self, *args: Any) -> Any:
        raise KeyError("get")

    def items(self) -> Any:
        raise KeyError("items")


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=4)
    | st.sampled_from(
        [
            *(
                "act",
                "ACT",
                "functions.act",
                "a",
                "",
                " ",
                "{}",
                '{"n":1,}',
                "{'n': 1}",
                "length",
                "stop",
                "tool_calls",
            ),
            *("<think>x</think>", '<tool_call>{"name":"act","arguments":{}}</tool_call>', "\ud800", "content_filter"),
        ]
    )
)
keys = st.sampled_from(
    ["id", "name", "arguments", "function", "type", "text", "input", "args", "content", "thinking", "n", "tool_use"]
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4) | st.tuples(inner),
    max_leaves=8,
)
plain_calls = st.builds(ToolCall, scalars, scalars, trees)
good_calls = st.builds(ToolCall, st.sampled_from(["a", "b", "c"]), st.just("act"), st.sampled_from(["{}", '{"n":1,}']))
calls = st.lists(good_calls | plain_calls | trees, max_size=3) | trees
responses = st.builds(
    ChatResponse,
    trees,
    trees,
    calls,
    scalars | st.sampled_from([*REASONS, "MAX_TOKENS", "content-filter"]),
    trees,
    st.none() | st.builds(Usage, scalars, scalars) | trees,
)


def clean(response: ChatResponse) -> None:
    """Every field has its declared form."""
    assert type(response.content) is str
    response.content.encode()
    assert response.reasoning is None or type(response.reasoning) is str
    assert response.finish_reason is None or type(response.finish_reason) is str
    assert response.usage is None or type(response.usage + Usage()) is Usage
    assert type(response.repairs) is tuple
    assert all(type(repair) is Repair for repair in response.repairs)
    reason = response.finish_reason
    if reason is not None and reason.strip().lower() in REASONS:
        return
    assert response.tool_calls is None or type(response.tool_calls) is list
    for call in response.tool_calls or []:
        if not all(isinstance(call, ToolCall) for call in response.tool_calls or []):
            return
        assert type(call.id) is str
        assert call.id.strip()
        assert type(call.name) is str
        assert call.name
        assert type(call.arguments) is str
    if response.tool_calls:
        ids = [getattr(call, "id", None) for call in response.tool_calls]
        assert len(set(ids)) == len(ids)


@given(responses)
def test_every_reply_comes_out_clean_and_a_second_time_unchanged(response: ChatResponse) -> None:
    once = ingest(response, TOOLS, {"b"})
    clean(once)
    assert response_to_dict(ingest(once, TOOLS, {"b"})) == response_to_dict(once)


@given(responses)
def test_the_same_reply_gives_the_same(response: ChatResponse) -> None:
    first, second = ingest(response, TOOLS, ()), ingest(copy.deepcopy(response), TOOLS, ())
    assert response_to_dict(first) == response_to_dict(second)


@given(responses)
def test_nothing_of_a_refused_reply_is_mended(response: ChatResponse) -> None:
    once = ingest(response, TOOLS, ())
    reason = once.finish_reason
    if isinstance(response.finish_reason, str) and reason is not None and reason.strip().lower() in REASONS:
        if reason == "malformed_function_call" and response.finish_reason != reason:
            return  # found to be malformed here
        assert once.tool_calls is response.tool_calls
        assert {repair.kind for repair in once.repairs} <= {"reason", "content", "reasoning"}


@given(responses)
def test_kept_arguments_are_what_the_text_says(response: ChatResponse) -> None:
    once = ingest(response, TOOLS, ())
    for call in once.tool_calls if type(once.tool_calls) is list else ():
        if isinstance(call, ToolCall) and getattr(call, "_parsed", None) is not None:
            kept = arguments_of(call)
            assert kept == parse_arguments(call.arguments)


@given(st.text(max_size=30))
def test_text_of_arguments_never_becomes_an_empty_object(text: str) -> None:
    once = ingest(ChatResponse("", None, [ToolCall("a", "act", text)], "tool_calls"), TOOLS, ())
    assert once.tool_calls is not None
    if once.tool_calls[0].arguments == "{}" and text.strip():
        try:
            assert parse_arguments(text) == {}
        except InvalidToolArguments:
            assert not text.strip("\\\"'`{}\u00a0 \t\r\n").replace("null", "").replace("None", "").strip("{} \n")


@given(st.lists(responses, max_size=3))
def test_no_reply_makes_a_turn_fail_in_another_way_than_its_own(replies: list[ChatResponse]) -> None:
    left = [*replies, ChatResponse("done")]

    async def model(messages: Any, tools: Any) -> ChatResponse:
        return left.pop(0)

    async def main() -> None:
        tool = tool_from_schema("act", "Acts.", {"type": "object"}, lambda arguments: "ok", run_in_thread=False)
        try:
            messages = (await run_tool_loop(HELLO, [tool], normalized(model))).messages
        except ToolLoopError as exc:
            messages = exc.messages
            pickle.dumps(exc)
        assert check(messages) == []

    asyncio.run(main())


@pytest.mark.parametrize("field", ["content", "reasoning", "tool_calls", "finish_reason", "usage", "repairs"])
def test_an_object_of_someone_s_own_is_no_obstacle(field: str) -> None:
    for strange in (Strange(), StrangeDict(a=1), [Strange()], {"text": Strange()}, {"type": Strange()}):
        fields: dict[str, Any] = {"content": "x", field: strange}
        clean(ingest(ChatResponse(**fields), TOOLS, ()))


@pytest.mark.parametrize("place", range(3))
def test_a_call_of_strange_parts_is_no_obstacle(place: int) -> None:
    parts: list[Any] = ["a", "act", "{}"]
    for strange in (Strange(), StrangeDict(a=1), [Strange()], {"a": Strange()}, 10**5000, {1: 2}):
        parts[place] = strange
        response = ingest(ChatResponse("", None, [ToolCall(*parts)], "tool_calls"), TOOLS, ())
        clean(response)


def test_deep_data_is_no_obstacle() -> None:
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    mapping: Any = {}
    for _ in range(50_000):
        mapping = {"content": mapping}
    for strange in (deep, mapping):
        for field in ("content", "reasoning", "tool_calls", "finish_reason", "usage"):
            fields: dict[str, Any] = {"content": "x", field: strange}
            clean(ingest(ChatResponse(**fields), TOOLS, ()))
        clean(ingest(ChatResponse("", None, [ToolCall("a", "act", strange)], "tool_calls"), TOOLS, ()))
        while isinstance(strange, (list, dict)) and strange:  # taken apart by hand: freeing it would recurse
            strange = strange[0] if isinstance(strange, list) else strange["content"]
