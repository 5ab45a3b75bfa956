"""What is said of a real server: nothing of a good one, a sentence for each fault of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolturn.conformance.faults import ROWS
from toolturn.conformance.real_server import check_server
from toolturn.conformance.server import LabServer

from .pretend import pretend, same


def wrong(url: str, model: str = "good") -> dict[str, str]:
    return {check.name: check.says for check in check_server(url, model) if not check.ok}


def test_nothing_is_said_of_a_good_server() -> None:
    with pretend() as url:
        checks = check_server(url, "good")
    assert [check.says for check in checks] == ["fine"] * 17


def test_the_address_may_be_without_its_path_or_with_all_of_it() -> None:
    with pretend() as url:
        assert wrong(url.removesuffix("/v1")) == {}
        assert wrong(f"{url}/chat/completions") == {}


def in_calls(**fields: Any) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    def spoil(request: dict[str, Any], reply: dict[str, Any]) -> Any:
        for call in _calls(reply):
            for name, value in fields.items():
                (call["function"] if name in call["function"] else call)[name] = value
        return reply

    return spoil


def _calls(reply: dict[str, Any]) -> list[Any]:
    found: list[Any] = reply["choices"][0]["message"].get("tool_calls", []) if reply.get("choices") else []
    return found


def in_choice(**fields: Any) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    def spoil(request: dict[str, Any], reply: dict[str, Any]) -> Any:
        if reply.get("choices"):
            reply["choices"][0].update(fields)
        return reply

    return spoil


def without(name: str) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    def spoil(request: dict[str, Any], reply: dict[str, Any]) -> Any:
        reply.pop(name, None)
        return reply

    return spoil


def first_call_only(request: dict[str, Any], reply: dict[str, Any]) -> Any:
    del _calls(reply)[1:]
    return reply


def no_calls(request: dict[str, Any], reply: dict[str, Any]) -> Any:
    if _calls(reply):
        reply["choices"][0]["message"] = {"role": "assistant", "content": "I would call a tool."}
    return reply


def always_calls(request: dict[str, Any], reply: dict[str, Any]) -> Any:
    if reply.get("choices") and request.get("tools"):
        call = {"id": "x", "type": "function", "function": {"name": "get_temp", "arguments": "{}"}}
        reply["choices"][0]["message"].setdefault("tool_calls", [call])
    return reply


def errors_as_text(request: dict[str, Any], reply: dict[str, Any]) -> Any:
    return {"detail": "no"} if "error" in reply else reply


@pytest.mark.parametrize(
    ("spoil", "check", "sentence"),
    [
        (in_calls(id=""), "call", "The id of a call is ''."),
        (in_calls(id=7), "call", "The id of a call is 7."),
        (in_calls(id="same"), "parallel calls", "Two calls of one reply have the same id."),
        (in_calls(id="same"), "fresh ids", "The id 'same' comes again in another reply."),
        (in_calls(type=None), "call", "The type of a call is None instead of 'function'."),
        (in_calls(name="getTemp"), "call", "A call names 'getTemp', which is no tool."),
        (in_calls(arguments={}), "call", "The arguments of a call are dict instead of text."),
        (in_calls(arguments="{'a'}"), "call", "The arguments of a call are no valid JSON: \"{'a'}\"."),
        (in_calls(arguments="[]"), "call", "The arguments of a call are no JSON object: '[]'."),
        (in_choice(finish_reason="eos"), "answer", "The finish reason of an answer is 'eos' instead of 'stop'."),
        (in_choice(finish_reason="stop"), "call", "The finish reason of a call is 'stop' instead of 'tool_calls'."),
        (
            in_choice(finish_reason="stop"),
            "truncated",
            "The finish reason of a reply that was cut off is 'stop' instead of 'length'.",
        ),
        (in_choice(message=None), "answer", "The choice has no message: "),
        (without("usage"), "answer", "The usage does not tell prompt_tokens."),
        (without("object"), "answer", "The object is None instead of 'chat.completion'."),
        (without("choices"), "answer", "The reply has no choice: "),
        (without("data"), "models", "GET /models gives no list (200)."),
        (first_call_only, "parallel calls", "1 calls come in one reply where two are asked for."),
        (no_calls, "call", "No call comes when one is asked for; the content is 'I would call a tool.'."),
        (no_calls, "tool_choice required", "No call comes though tool_choice is required."),
        (no_calls, "streamed call", "No call comes in a stream when one is asked for."),
        (always_calls, "tool_choice none", "A call comes though tool_choice is none."),
        (
            in_calls(name="get_temp"),
            "tool_choice named",
            "tool_choice names the tool ping, and the calls are ['get_temp'].",
        ),
        (errors_as_text, "unknown model", "A model that does not exist gives an error without error.message: "),
        (errors_as_text, "bad request", "A text instead of messages gives an error without error.message: "),
    ],
)
def test_each_fault_of_a_server_has_a_sentence(
    spoil: Callable[[dict[str, Any], dict[str, Any]], Any], check: str, sentence: str
) -> None:
    with pretend(spoil) as url:
        assert sentence in wrong(url)[check]


def no_index(chunk: dict[str, Any]) -> Any:
    for choice in chunk["choices"]:
        for piece in choice["delta"].get("tool_calls", ()):
            piece.pop("index")
    return chunk


def no_finish(chunk: dict[str, Any]) -> Any:
    return None if chunk["choices"] and chunk["choices"][0]["finish_reason"] else chunk


@pytest.mark.parametrize(
    ("spoil_chunk", "check", "sentence"),
    [
        (no_index, "streamed call", "Pieces of a streamed call have no index."),
        (no_finish, "stream", "The finish reasons of a streamed answer are [] instead of one 'stop'."),
        (no_finish, "streamed call", "The finish reasons of a streamed call are [] instead of one 'tool_calls'."),
        (lambda chunk: chunk if chunk["choices"] else None, "stream", "No usage comes in a stream that asks for it."),
        (lambda chunk: 7, "stream", "The stream of an answer holds no text."),
    ],
)
def test_each_fault_of_a_stream_has_a_sentence(
    spoil_chunk: Callable[[dict[str, Any]], Any], check: str, sentence: str
) -> None:
    with pretend(same, spoil_chunk) as url:
        assert sentence in wrong(url)[check]


def test_a_model_that_is_not_listed_is_told() -> None:
    with LabServer(ROWS[:1]) as server:
        found = wrong(server.base_url, "gpt-9")
    assert found["models"] == "The model 'gpt-9' is not among the 1 that are listed."
    assert found["answer"].startswith("The request is refused with 404: ")


def test_a_server_that_is_not_there_is_told_at_every_check() -> None:
    checks = check_server("http://127.0.0.1:9", "m")
    assert all(not check.ok and check.says.startswith("No reply: ") for check in checks)


@pytest.mark.parametrize("row", ["http_no_http", "http_200_html", "http_500_for_ever", "http_200_list", "http_200_cut"])
def test_nonsense_is_told_without_an_exception(row: str) -> None:
    with LabServer(ROWS) as server:
        assert "answer" in wrong(server.base_url, row)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://x", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        check_server(url, "m")


def test_a_key_does_not_travel_in_clear_text() -> None:
    with pytest.raises(ValueError, match="clear text"):
        check_server("http://example.org/v1", "m", "secret")
