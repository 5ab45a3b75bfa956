"""Answers of a type from servers that speak OpenAI's chat completions, over loopback."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolturn import ChatMessage, ModelSettings, run_tool_loop, stream_tool_loop, tool
from toolturn.conformance.replies import Call as Called
from toolturn.conformance.replies import Chat, Reply

from .test_openai_chat import Played

USER = [ChatMessage("user", "go")]


class Weather(BaseModel):
    """What the weather is like."""

    place: str
    degrees: float = Field(ge=-90, le=60)
    wind: int = 0


GOOD = '{"place": "Rome", "degrees": 21}'
ROME = Weather(place="Rome", degrees=21)


@tool
def look(place: str) -> str:
    """Look at the sky.

    Args:
        place: Where.
    """
    return f"sunny in {place}"


def run(played: Played, tools: Any = (), **options: Any) -> Any:
    return asyncio.run(run_tool_loop(USER, tools, played.model, answer_type=Weather, **options))


def test_openai_holds_the_reply_to_the_strict_schema_beside_tools_and_what_was_left_out_is_left_out() -> None:
    replies = (Chat(calls=(Called("look", '{"place":"Rome"}'),)), Chat('{"place":"Rome","degrees":21,"wind":null}'))
    with Played(*replies, wishes={"answers": "beside_tools"}) as played:
        result = run(played, [look])
        bodies = played.bodies
    assert result.value == ROME
    for body in bodies:
        assert [item["function"]["name"] for item in body["tools"]] == ["look"]
        assert body["response_format"]["type"] == "json_schema"
        form = body["response_format"]["json_schema"]
        assert (form["name"], form["strict"]) == ("Weather", True)
        assert form["schema"]["required"] == ["place", "degrees", "wind"]
        assert form["schema"]["additionalProperties"] is False
    assert [repair.kind for repair in result.repairs] == ["answer"]


def test_a_server_that_can_only_do_so_without_tools_is_asked_so_at_the_end() -> None:
    replies = (Chat(calls=(Called("look", '{"place":"Rome"}'),)), Chat(GOOD))
    with Played(*replies, wishes={"answers": "alone"}) as played:
        result = run(played, [look], max_iterations=1, on_limit="answer")
        first, last = played.bodies
    assert result.value == ROME
    assert "response_format" not in first
    assert [item["function"]["name"] for item in first["tools"]] == ["look", "final_answer"]
    assert "tools" not in last
    assert "tool_choice" not in last
    assert last["response_format"]["json_schema"]["schema"]["required"] == ["place", "degrees"]


def test_any_other_server_is_offered_the_final_tool() -> None:
    with Played(Chat(calls=(Called("final_answer", GOOD),))) as played:
        result = run(played)
        (body,) = played.bodies
    assert result.value == ROME
    assert "response_format" not in body
    assert body["tool_choice"] == {"type": "function", "function": {"name": "final_answer"}}


def test_an_answer_that_does_not_fit_is_asked_for_again_in_the_same_conversation() -> None:
    replies: tuple[Reply, ...] = (Chat('{"place":"Rome","degrees":900}'), Chat(GOOD))
    with Played(*replies, wishes={"answers": "beside_tools"}) as played:
        result = run(played)
        bodies = played.bodies
    assert result.value == ROME
    assert [message["role"] for message in bodies[1]["messages"]] == ["user", "assistant", "user"]
    assert "degrees" in bodies[1]["messages"][-1]["content"]
    assert bodies[1]["messages"][:1] == bodies[0]["messages"]


def test_a_streamed_answer_is_the_same_object() -> None:
    async def watch(played: Played) -> Any:
        async with stream_tool_loop(USER, [], played.model, answer_type=Weather) as events:
            async for _ in events:
                pass
            return await events.result()

    with Played(Chat(GOOD), wishes={"answers": "beside_tools"}) as played:
        result = asyncio.run(watch(played))
    assert result.value == ROME


@pytest.mark.parametrize("text", ["[1]", '"Rome"', "{", "Sunny."])
def test_text_that_is_no_object_is_shown_back_as_it_was(text: str) -> None:
    with Played(Chat(text), Chat(GOOD), wishes={"answers": "beside_tools"}) as played:
        assert run(played).value == ROME
        assert played.bodies[1]["messages"][1] == {"role": "assistant", "content": text}


def test_the_body_of_a_request_without_a_type_has_no_such_field() -> None:
    with Played(Chat("x")) as played:
        played.ask()
        assert "response_format" not in played.bodies[0]


def test_settings_of_a_call_leave_to_those_of_the_model_what_they_do_not_say() -> None:
    own = ModelSettings(temperature=0.5, max_tokens=100, extra={"top_p": 0.9})
    with Played(Chat("x"), settings=own) as played:
        played.ask(settings=ModelSettings(max_tokens=7, seed=1))
        body = played.bodies[0]
    assert (body["temperature"], body["max_tokens"], body["seed"], body["top_p"]) == (0.5, 7, 1, 0.9)
