"""A server that refuses the bound of a reply as more than its model can write: it is asked without one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolturn import ChatMessage, Limits, ToolLoopModelError, ToolLoopResult, run_tool_loop, stream_tool_loop
from toolturn.conformance.replies import Chat, Http
from toolturn.errors import ModelContextError
from toolturn.models.failures import tells_of_bound

from .test_openai_chat import Played

USER = ChatMessage("user", "go")
MODEL = (
    "max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you provided 200000."
)
ROOM = (
    "This model's maximum context length is 8192 tokens. However, you requested 200064 tokens (64 in the messages, "
    "200000 in the completion). Please reduce the length of the messages or completion."
)
LONG = "This model's maximum context length is 8192 tokens. Your messages have 9000 tokens."


def refusal(words: str) -> Http:
    return Http(400, body={"error": {"message": words, "type": "invalid_request_error"}})


def run(played: Played, *, streamed: bool = False) -> ToolLoopResult:
    limits = Limits(4, 4, tokens=200_000)

    async def main() -> ToolLoopResult:
        if not streamed:
            return await run_tool_loop([USER], (), played.model, limits=limits)
        async with stream_tool_loop([USER], (), played.model, limits=limits) as stream:
            async for _ in stream:
                pass
            return await stream.result()

    return asyncio.run(main())


def bounds(played: Played) -> list[int | None]:
    return [body.get("max_tokens") for body in played.bodies]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_of_tokens_above_what_the_model_can_write_is_no_failure(streamed: bool) -> None:
    with Played(refusal(MODEL), Chat("done"), Chat("again")) as played:
        result = run(played, streamed=streamed)
        assert result.content == "done"
        assert [(repair.kind, repair.op) for repair in result.repairs] == [("max_tokens", "m1")]
        # from then on nothing is tried in vain
        assert run(played, streamed=streamed).repairs == ()
        assert bounds(played) == [200_000, None, None]


def test_one_that_these_messages_leave_no_room_for_is_tried_again_with_others() -> None:
    with Played(refusal(ROOM), Chat("done"), Chat("again")) as played:
        assert run(played).content == "done"
        assert run(played).content == "again"
        assert bounds(played) == [200_000, None, 200_000]


def test_messages_that_are_too_long_by_themselves_are_told() -> None:
    with Played(refusal(ROOM), refusal(LONG)) as played:
        with pytest.raises(ToolLoopModelError) as caught:
            run(played)
        assert isinstance(caught.value.__cause__, ModelContextError)


WORDS = [
    (MODEL, "model"),
    (ROOM, "room"),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 64001 "
        "tokens and your request has 24235 input tokens (64000 > 64001 - 24235).",
        "room",
    ),
    (
        "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, "
        "expected a value <= 12288, but got 32000 instead.",
        "model",
    ),
    ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`", "model"),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "model"),
    ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.", ""),
    (LONG, ""),
    ("the temperature is out of range", ""),
]


@pytest.mark.parametrize(("words", "blamed"), WORDS)
def test_the_words_of_servers_are_known(words: str, blamed: str) -> None:
    body: Any = json.dumps({"error": {"message": words}}).encode()
    assert tells_of_bound(400, body) == blamed
    assert tells_of_bound(500, body) == ""
