"""ScriptedModel: a test fails when the script and the turn do not agree."""

from __future__ import annotations

from typing import Any

import pytest

from toolturn import ChatMessage, ChatResponse, Delta, ModelSettings, ToolCall, run_tool_loop
from toolturn.testing import Reply, ScriptedModel, ScriptError, calls

from .support import HELLO, counting, run

each_way = pytest.mark.parametrize("streaming", [False, True], ids=["plain", "streamed"])


def _turn(model: Any, streaming: bool, tools: Any = ()) -> Any:
    return run(run_tool_loop(HELLO, list(tools), model, emit=(lambda event: None) if streaming else None))


def test_a_script_error_is_a_failed_assertion() -> None:
    assert issubclass(ScriptError, AssertionError)


@each_way
def test_replies_are_played_in_order_and_the_requests_are_kept(streaming: bool) -> None:
    tool, _ = counting()
    with ScriptedModel([calls(("act", "{}")), "done"], streaming=streaming) as model:
        result = _turn(model, streaming, [tool])
    assert result.content == "done"
    assert [messages for messages, _ in model.requests] == [result.messages[:1], result.messages[:3]]
    assert [[tool.name for tool in tools] for _, tools in model.requests] == [["act"], ["act"]]
    assert model.settings == [None, None]


@each_way
def test_a_request_too_many_fails(streaming: bool) -> None:
    tool, _ = counting()
    model = ScriptedModel([calls(("act", "{}"))], streaming=streaming)
    with pytest.raises(ScriptError, match="request 2 was not expected: the script has 1 replies"):
        _turn(model, streaming, [tool])


@each_way
def test_replies_left_over_fail_at_the_end_of_the_block(streaming: bool) -> None:
    with (
        pytest.raises(ScriptError, match="2 of 3 replies were not asked for"),
        ScriptedModel(["a", "b", "c"], streaming=streaming) as model,
    ):
        _turn(model, streaming)


def test_replies_left_over_can_be_asked_about_at_any_time() -> None:
    model = ScriptedModel(["a"])
    with pytest.raises(ScriptError, match="1 of 1 replies were not asked for"):
        model.done()
    _turn(model, False)
    model.done()


def test_an_exception_in_the_block_is_not_hidden_by_replies_left_over() -> None:
    with pytest.raises(LookupError), ScriptedModel(["a"]):
        raise LookupError


@each_way
def test_a_request_that_is_not_the_expected_one_fails(streaming: bool) -> None:
    model = ScriptedModel([Reply("a", expect=lambda messages, tools: False)], streaming=streaming)
    with pytest.raises(ScriptError, match="request 1 is not what the script expects"):
        _turn(model, streaming)


@each_way
def test_an_expectation_may_assert(streaming: bool) -> None:
    def expect(messages: tuple[ChatMessage, ...], tools: Any) -> None:
        assert messages[-1].content == "good bye", "wrong words"

    model = ScriptedModel([Reply("a", expect=expect)], streaming=streaming)
    with pytest.raises(AssertionError, match="wrong words"):
        _turn(model, streaming)


@each_way
def test_an_expectation_that_is_met_lets_the_reply_through(streaming: bool) -> None:
    seen: list[Any] = []
    for expect in (lambda messages, tools: seen.append(messages), lambda messages, tools: True):
        with ScriptedModel([Reply("a", expect=expect)], streaming=streaming) as model:
            assert _turn(model, streaming).content == "a"
    assert seen == [HELLO]


@each_way
def test_an_exception_is_raised_in_its_place(streaming: bool) -> None:
    error = LookupError("mine")
    for reply in (error, Reply(error=error)):
        with pytest.raises(LookupError) as caught:
            _turn(ScriptedModel([reply], streaming=streaming), streaming)
        assert caught.value is error


def test_pieces_are_made_of_the_text_or_given() -> None:
    async def main() -> None:
        model = ScriptedModel(["abcdefg", Reply("xyz", chunks=["xy", Delta("hm", "reasoning"), "z"])], streaming=True)
        first = [item async for item in model.stream(HELLO)]
        assert first == [Delta("abcde"), Delta("fg"), ChatResponse("abcdefg", finish_reason="stop")]
        second = [item async for item in model.stream(HELLO)]
        assert second[:-1] == [Delta("xy"), Delta("hm", "reasoning"), Delta("z")]

    run(main())


@pytest.mark.parametrize("content", [None, [{"type": "text", "text": "a"}]])
def test_what_a_provider_sends_as_content_can_be_scripted_both_ways(content: Any) -> None:
    tool, _ = counting()
    for streaming in (False, True):
        first = ChatResponse(content, None, [ToolCall("1", "act", "{}")])
        with ScriptedModel([first, "done"], streaming=streaming) as model:
            assert _turn(model, streaming, [tool]).content == "done"


def test_reasoning_is_told_both_ways() -> None:
    heard: dict[bool, list[Any]] = {}
    for streaming in (False, True):
        events: list[Any] = []
        model = ScriptedModel([ChatResponse("Yes.", "Because.")], streaming=streaming)
        run(run_tool_loop(HELLO, [], model, emit=events.append))
        heard[streaming] = [(event.type, event.text) for event in events if event.type in ("text", "reasoning")]
    assert heard[True] == heard[False] == [("reasoning", "Because."), ("text", "Yes.")]


def test_a_reply_of_pieces_alone_has_nothing_for_a_plain_request() -> None:
    with pytest.raises(ScriptError):
        _turn(ScriptedModel([Reply(chunks=["half"])]), False)


@each_way
def test_a_reply_of_nothing_at_all_fails(streaming: bool) -> None:
    with pytest.raises(ScriptError):
        _turn(ScriptedModel([Reply()], streaming=streaming), streaming)


def test_it_streams_only_where_it_was_made_to() -> None:
    assert ScriptedModel([]).capabilities.streaming is False
    assert ScriptedModel([], streaming=True).capabilities.streaming is True
    assert ScriptedModel([]).capabilities.tools is True


def test_settings_are_kept() -> None:
    settings = ModelSettings(seed=1)
    model = ScriptedModel(["a"])
    run(run_tool_loop(HELLO, [], model, settings=settings))
    assert model.settings == [settings]


def test_calls_makes_a_response_with_ids_of_its_own_or_given_ones() -> None:
    response = calls(("a", "{}"), ("7", "b", '{"n":1}'), content="Let me see.")
    assert response.content == "Let me see."
    assert response.finish_reason == "tool_calls"
    assert response.tool_calls is not None
    first, second = response.tool_calls
    assert (first.name, first.arguments) == ("a", "{}")
    assert second == ToolCall("7", "b", '{"n":1}')
    assert calls(("a", "{}")).tool_calls[0].id != first.id  # type: ignore[index]
