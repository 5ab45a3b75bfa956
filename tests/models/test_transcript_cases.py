"""Reported histories: each can be mended, and what goes out of it is what the strictest server takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolturn import messages_from_json
from toolturn.conformance.validator import faults_of
from toolturn.models.servers import UNKNOWN, Wishes, server_named
from toolturn.models.wires.openai_request import Encoder
from toolturn.transcript import check, repair

CASES = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data/transcript_cases.jsonl").read_text().splitlines()
]
ORIGIN = "https://here"
TOOL = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}


def sent(case: dict[str, Any], wishes: Wishes) -> list[Any]:
    messages = list(messages_from_json(json.dumps(case["input"]["messages"])))
    if check(messages):
        messages = list(repair(messages).messages)
    assert not check(messages)
    pieces, _ = Encoder(wishes, ORIGIN, {}).encode(messages)
    return [json.loads(piece) for piece in pieces]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_reported_history_goes_out_as_the_strictest_server_takes_it(case: dict[str, Any]) -> None:
    server = server_named(case["input"].get("wire_profile", "")) or UNKNOWN
    messages = sent(case, server.wishes)
    more = [{"role": "user", "content": "go on"}] if messages[-1]["role"] == "assistant" else []
    assert faults_of({"model": "m", "messages": [*messages, *more], "tools": [TOOL]}) == []
    oracle = case["oracle"] or {}
    answers = [message for message in messages if message["role"] == "tool"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    if "tool_messages" in oracle:
        assert len(answers) == oracle["tool_messages"]
    if "id_regex" in oracle:
        assert all(re.match(oracle["id_regex"], call["id"]) for call in calls)
    if "name_max" in oracle:
        assert all(len(call["function"]["name"]) <= oracle["name_max"] for call in calls)
    if "no_empty_tool_calls" in oracle:
        assert all(message.get("tool_calls", True) for message in messages)
    assert [call["id"] for call in calls] == [answer["tool_call_id"] for answer in answers]


@pytest.mark.parametrize(
    ("server", "forms"), [("openai", [None]), ("ollama", [""]), ("lmstudio", [""]), ("mistral", [""])], ids=str
)
def test_a_message_that_only_calls_has_the_content_its_server_takes(server: str, forms: list[Any]) -> None:
    known = server_named(server)
    assert known is not None
    calling = {"id": "abcdefghi", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    history = [{"role": "assistant", "content": None, "tool_calls": [calling]}]
    history.append({"role": "tool", "tool_call_id": "abcdefghi", "content": "ok"})
    assert sent({"input": {"messages": history}}, known.wishes)[0]["content"] in forms
