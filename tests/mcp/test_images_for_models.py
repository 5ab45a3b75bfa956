"""From a server's image to the request a model's server gets: shown once, in its place, and never as text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from toolturn import ChatMessage, ImagePart, ToolLoopResult, result_from_json, result_to_json, run_tool_loop
from toolturn.conformance.replies import Call, Chat
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer
from toolturn.content import as_text
from toolturn.mcp.results import MAX_BINARY
from toolturn.models.wires.openai_chat import OpenAIChat

from .support import bad, one, run

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()
URL = f"data:image/png;base64,{PNG}"


def image(data: str, kind: str = "image/png") -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "see"}, {"type": "image", "data": data, "mimeType": kind}]}


def turn(*results: dict[str, Any], way: str = "structured", **wishes: Any) -> tuple[ToolLoopResult, list[Any]]:
    """A turn that calls the server once for each result, all in one batch; its outcome, and the last request."""
    asked = [Call("echo", json.dumps({"text": json.dumps(result)})) for result in results]
    replies = (Chat("", tuple(asked), finish="tool_calls"), Chat("done"))

    async def main() -> ToolLoopResult:
        model = OpenAIChat("m", base_url=lab.base_url, api_key="k", wishes=wishes)
        async with one(bad(way)) as servers:
            return await run_tool_loop([ChatMessage("user", "go")], servers.tools, model)

    with LabServer([Fault("m", "", replies, ())]) as lab:
        result = run(main())
        requests = lab.received("m", "k")
    assert [request.faults for request in requests] == [(), ()]
    messages: list[Any] = requests[-1].body["messages"]
    return result, messages


def test_an_image_of_a_server_is_shown_to_the_model_after_the_results() -> None:
    result, messages = turn(image(PNG), {"content": [{"type": "text", "text": "plain"}]})
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert messages[2]["content"] == "see\n[image image/png, 108 bytes, shown in the next message of the user]"
    assert messages[3]["content"] == "plain"
    assert messages[4]["content"][-1] == {"type": "image_url", "image_url": {"url": URL}}
    assert json.dumps(messages[2:]).count(PNG) == 1
    assert result.tool_calls[0].message.content[-1] == ImagePart(URL)
    assert result_from_json(result_to_json(result)) == result


def test_a_model_without_images_reads_what_it_was() -> None:
    result, messages = turn(image(PNG), images=False)
    assert messages[2]["content"] == "see\n[image image/png, 108 bytes, can not be shown]"
    assert len(messages) == 3
    assert PNG not in json.dumps(messages[2:])
    assert result.tool_calls[0].message.content[-1] == ImagePart(URL)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (image("no base64 at all"), "[image image/png, broken: its data is no base64]"),
        (image(PNG[:-9] + "!" + PNG[-8:]), "[image image/png, broken: its data is no base64]"),
        (image("AAAA"), "[image image/png, 3 bytes, broken: it is no such image]"),
        (image("AAAA", "no kind"), "[image no kind, 3 bytes, broken: it is no such image]"),
        (image("AAAA", "image/tiff"), "[image image/tiff, 3 bytes, can not be shown]"),
    ],
    ids=["no base64", "torn", "no image", "unknown kind", "kind nobody shows"],
)
def test_an_image_that_no_server_would_take_costs_no_turn(given: dict[str, Any], told: str) -> None:
    result, messages = turn(given)
    assert messages[2]["content"] == f"see\n{told}"
    assert len(messages) == 3
    assert "AAAA" not in json.dumps(messages[2:])
    assert as_text(result.tool_calls[0].message.content).startswith("see\n[image ")


def test_an_image_that_is_too_large_is_named() -> None:
    result, messages = turn({}, way=f"huge-image:{MAX_BINARY}")
    assert messages[2]["content"] == f"[image image/png, {MAX_BINARY + 8} bytes, too large to be shown]"
    assert result.tool_calls[0].message.content == messages[2]["content"]
