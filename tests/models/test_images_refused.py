"""A server that refuses images of tool results: they are named instead, at once and from then on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ImagePart,
    TextPart,
    ToolCall,
    ToolLoopModelError,
    ToolLoopResult,
    run_tool_loop,
    stream_tool_loop,
    tool,
)
from toolturn.conformance.replies import Call, Chat, Http, Reply
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer
from toolturn.errors import ModelRequestError
from toolturn.models.failures import tells_of_images
from toolturn.models.wires.openai_chat import OpenAIChat

from ..running.support import run

PNG = ImagePart("data:image/png;base64,iVBORw0KGgo=")
USER = ChatMessage("user", "go")


@tool
def draw() -> list[Any]:
    """Draw a map."""
    return ["a map", PNG]


def refusal(words: str, status: int = 400) -> Http:
    return Http(status, body={"error": {"message": words, "type": "invalid_request_error"}})


REFUSED = refusal("image input is not supported - hint: you may need to provide the mmproj", 500)
ASKED = Chat("", (Call("draw", "{}"),), finish="tool_calls")


class Turns:
    """A server that plays replies, and one model for several turns with it."""

    def __init__(self, *replies: Reply) -> None:
        self.lab = LabServer([Fault("m", "", replies, ())])

    def __enter__(self) -> Turns:
        self.lab.__enter__()
        self.model = OpenAIChat("m", base_url=self.lab.base_url, api_key="k")
        return self

    def __exit__(self, *args: Any) -> None:
        self.lab.__exit__(None, None, None)

    @property
    def bodies(self) -> list[Any]:
        requests = self.lab.received("m", "k")
        assert all(not request.faults for request in requests)
        return [request.body["messages"] for request in requests]

    def run(self, *, streamed: bool = False, messages: tuple[ChatMessage, ...] = (USER,)) -> ToolLoopResult:
        async def main() -> ToolLoopResult:
            if not streamed:
                return await run_tool_loop(messages, [draw], self.model)
            async with stream_tool_loop(messages, [draw], self.model) as stream:
                async for _ in stream:
                    pass
                return await stream.result()

        return run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_the_request_is_made_again_with_names_in_place_of_images(streamed: bool) -> None:
    with Turns(ASKED, REFUSED, Chat("done"), ASKED, Chat("again")) as turns:
        result = turns.run(streamed=streamed)
        assert result.content == "done"
        assert result.iterations == 2
        assert [(repair.kind, repair.op) for repair in result.repairs] == [("images", "m2")]
        assert result.tool_calls[0].message.content == [TextPart("a map"), PNG]
        _, refused, taken = turns.bodies
        assert [message["role"] for message in refused] == ["user", "assistant", "tool", "user"]
        assert [message["role"] for message in taken] == ["user", "assistant", "tool"]
        assert taken[2]["content"] == "a map\n[image image/png, 8 bytes, can not be shown]"
        # from then on nothing is tried in vain
        later = turns.run(streamed=streamed)
        assert (later.content, later.repairs) == ("again", ())
        assert len(turns.bodies) == 5


def test_a_refusal_for_another_reason_stays_one() -> None:
    with Turns(ASKED, refusal("the temperature is out of range")) as turns:
        with pytest.raises(ToolLoopModelError) as caught:
            turns.run()
        assert isinstance(caught.value.__cause__, ModelRequestError)
        assert turns.model.wishes.result_images
        assert len(turns.bodies) == 2


def test_a_second_refusal_is_told() -> None:
    with Turns(ASKED, REFUSED, refusal("no images, no text, nothing")) as turns:
        with pytest.raises(ToolLoopModelError, match="nothing"):
            turns.run()
        assert len(turns.bodies) == 3


def test_an_image_of_the_user_is_never_left_out() -> None:
    look = ChatMessage("user", [TextPart("look"), PNG])
    with Turns(refusal("this model takes no images")) as turns:
        with pytest.raises(ToolLoopModelError, match="takes no images"):
            turns.run(messages=(look,))
        assert turns.model.wishes.result_images


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "No endpoints found that support image input"),
        (400, "Failed to deserialize the JSON body: messages[4]: unknown variant `image_url`, expected `text`"),
        (400, "messages[4].content must be a string"),
        (400, "'messages.4.content' : value must be a string"),
        (400, "Qwen3-8B is not a multimodal model"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (500, "image input is not supported by this server"),
        (500, 'Failed to parse messages: Unsupported content part type: "image_url"'),
        (400, "You uploaded an unsupported image. Please make sure your image is valid."),
        (400, "Invalid Value: 'file'. This model does not support file content types."),
        (413, "Request Entity Too Large"),
    ],
)
def test_the_words_of_servers_are_known(status: int, words: str) -> None:
    assert tells_of_images(status, json.dumps({"error": {"message": words}}).encode())


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "maximum context length is 8192 tokens"),
        (401, "no key for images"),
        (429, "too many images"),
        (503, "the image service is down"),
        (400, "model not found"),
        (400, ""),
    ],
)
def test_other_words_are_not_taken_for_them(status: int, words: str) -> None:
    assert not tells_of_images(status, json.dumps({"error": {"message": words}}).encode())


def test_a_call_from_before_is_named_too() -> None:
    before = (
        USER,
        ChatMessage("assistant", "", [ToolCall("c1", "draw", "{}")]),
        ChatMessage("tool", [PNG], None, "c1"),
        ChatMessage("assistant", "Nice."),
        USER,
    )
    with Turns(REFUSED, Chat("done")) as turns:
        assert turns.run(messages=before).content == "done"
        assert turns.bodies[1][2]["content"] == "[image image/png, 8 bytes, can not be shown]"
