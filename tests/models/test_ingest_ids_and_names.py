"""Ids are opaque text that is given once; names are resolved to declared tools, and nothing is guessed."""

from __future__ import annotations

import asyncio
import re
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, ChatResponse, ToolCall, ToolDef, run_tool_loop
from toolturn.models import ingest, normalized, seen_ids
from toolturn.models.ingest.ids import fresh_id
from toolturn.tools.json_schema import tool_from_schema

from .edge import play

TOOLS = tuple(ToolDef(name, name, {"type": "object"}) for name in ("bash", "read_file", "Web-Search", "get-by-id"))


def call_of(name: Any = "bash", call_id: Any = "c1", arguments: Any = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def calls_after(*calls: Any, seen: Any = (), tools: Any = TOOLS) -> tuple[list[ToolCall], list[str]]:
    response = ingest(ChatResponse("", None, list(calls), "tool_calls"), tools, seen)
    assert response.tool_calls is not None
    return response.tool_calls, [f"{repair.kind}: {repair.detail}" for repair in response.repairs]


class Word(StrEnum):
    """Ids and names of a provider's library are such members."""

    ID = "c7"
    NAME = "bash"


# --- ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call_id", ["c1", "call_1740-ab", "call_ab12|fc_99", "functions.bash:0", "é", " x ", "a" * 500]
)
def test_a_good_id_is_opaque_and_stays(call_id: str) -> None:
    calls, repairs = calls_after(call_of(call_id=call_id))
    assert calls[0].id == call_id
    assert repairs == []


@pytest.mark.parametrize(("call_id", "text"), [(7, "7"), (0, "0"), (-3, "-3"), (1.5, "1.5"), (Word.ID, "c7")])
def test_an_id_of_another_type_becomes_text(call_id: Any, text: str) -> None:
    calls, _ = calls_after(call_of(call_id=call_id))
    assert calls[0].id == text
    assert type(calls[0].id) is str


@pytest.mark.parametrize(
    ("call_id", "repair"),
    [
        (None, "id: call 1: it had no id"),
        ("", "id: call 1: it had a blank id"),
        (" \n", "id: call 1: it had a blank id"),
        (True, "id: call 1: its id was no text"),
        (float("nan"), "id: call 1: its id was no text"),
        pytest.param(10**5000, "id: call 1: its id was no text", id="huge"),
        ({"id": "x"}, "id: call 1: its id was no text"),
        (["x"], "id: call 1: its id was no text"),
        (object(), "id: call 1: its id was no text"),
        ("a\ud800", "id: call 1: its id was no text"),
        ("used", "id: call 1: its id was that of another call"),
    ],
)
def test_a_call_without_an_id_of_its_own_is_given_one(call_id: Any, repair: str) -> None:
    calls, repairs = calls_after(call_of(call_id=call_id), seen={"used"})
    assert re.fullmatch("[A-Za-z0-9]{9}", calls[0].id)
    assert repairs == [repair]


def test_of_equal_ids_the_first_call_keeps_it() -> None:
    calls, repairs = calls_after(call_of(call_id="x"), call_of(call_id="x"), call_of(call_id=""), call_of(call_id="y"))
    assert [calls[0].id, calls[3].id] == ["x", "y"]
    assert len({call.id for call in calls}) == 4
    assert len(repairs) == 2


def test_a_number_and_its_text_are_one_id() -> None:
    calls, _ = calls_after(call_of(call_id=7), call_of(call_id="7"))
    assert calls[0].id == "7"
    assert calls[1].id != "7"


def test_a_new_id_depends_on_nothing_but_the_reply_and_the_ids_in_use() -> None:
    first, _ = calls_after(call_of(call_id=None), call_of(call_id=None))
    again, _ = calls_after(call_of(call_id=None), call_of(call_id=None))
    assert [call.id for call in first] == [call.id for call in again]
    later, _ = calls_after(call_of(call_id=None), seen={first[0].id})
    assert later[0].id != first[0].id


def test_a_new_id_is_none_of_a_later_call() -> None:
    taken = fresh_id("bash", "{}", 1)
    calls, _ = calls_after(call_of(call_id=None), call_of(call_id=taken))
    assert calls[1].id == taken
    assert calls[0].id != taken


@given(st.lists(st.sampled_from(["", None, "a", "b", 7, "7", " "]), min_size=1, max_size=8), st.sets(st.just("a")))
def test_ids_are_always_text_and_unique(given_ids: list[Any], seen: set[str]) -> None:
    calls, _ = calls_after(*(call_of(call_id=call_id) for call_id in given_ids), seen=seen)
    ids = [call.id for call in calls]
    assert all(type(call_id) is str and call_id.strip() for call_id in ids)
    assert len(set(ids)) == len(ids)
    assert seen.isdisjoint(ids)


def test_replies_without_ids_get_different_ones_over_a_whole_conversation() -> None:
    case = {"replies": [{"tool_calls": [{"id": "", "function": {"name": "step", "arguments": "{}"}}]}] * 3}
    seen = play(case)
    assert len(set(seen.ids)) == len(seen.executed) == 3


def test_a_constant_id_of_a_server_is_no_obstacle() -> None:
    case = {"replies": [{"tool_calls": [{"id": "x", "function": {"name": "step", "arguments": "{}"}}]}] * 4}
    seen = play(case)
    assert len(set(seen.ids)) == len(seen.executed) == 4
    assert len(seen.observations) == 4


async def _twice() -> list[ChatMessage]:
    asked = 0

    async def model(messages: Any, tools: Any) -> ChatResponse:
        nonlocal asked
        asked += 1
        if asked % 2:
            call: Any = {"id": None, "function": {"name": "step", "arguments": None}}
            return ChatResponse("", None, [call], "tool_calls")
        return ChatResponse("done")

    tool = tool_from_schema("step", "A step.", {"type": "object"}, lambda arguments: "ok")
    messages: list[ChatMessage] = []
    for _ in range(2):
        messages.append(ChatMessage("user", "go"))
        # each run has a callback of its own: nothing but the transcript tells what is in use
        messages = list((await run_tool_loop(messages, [tool], normalized(model))).messages)
    return messages


def test_a_run_on_the_history_of_another_makes_no_id_of_it_again() -> None:
    messages = asyncio.run(_twice())
    assert len(seen_ids(messages)) == sum(1 for message in messages if message.tool_calls) == 2


def test_the_ids_of_a_transcript_are_those_of_its_calls() -> None:
    junk: Any = [None, 7, {"id": "z"}, ToolCall(7, "a", "{}")]  # type: ignore[arg-type]
    messages = [
        ChatMessage("user", "go"),
        ChatMessage("assistant", "", [ToolCall("a", "x", "{}"), ToolCall("b", "x", "{}")]),
        ChatMessage("tool", "ok", None, "a"),
        ChatMessage("assistant", "", junk),
        ChatMessage("assistant", "", []),
    ]
    assert seen_ids(messages) == {"a", "b"}


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("bash", "bash"),
        (" bash\n", "bash"),
        ("bash<|channel|>commentary", "bash"),
        ("bash<|im_end|>", "bash"),
        ("bash<｜tool▁sep｜>", "bash"),
        ("bash</s>", "bash"),
        ("bash[ARGS]", "bash"),
        ("functions.bash", "bash"),
        (" functions.bash <|x|>", "bash"),
        ("default_api.read_file", "read_file"),
        ("functions:bash", "bash"),
        ("functions.READ-FILE", "read_file"),
        ("BASH", "bash"),
        ("Bash", "bash"),
        ("read-file", "read_file"),
        ("web_search", "Web-Search"),
        ("GET_BY_ID", "get-by-id"),
        (Word.NAME, "bash"),
    ],
)
def test_a_name_with_one_meaning_is_resolved(written: Any, meant: str) -> None:
    calls, repairs = calls_after(call_of(written))
    assert calls[0].name == meant
    assert type(calls[0].name) is str
    assert repairs == ([] if written == meant else ["name: call 1: the name was read as that of a declared tool"])


@pytest.mark.parametrize(
    "written",
    ["bashjson", "ReadFileTool", "read_file_tool", "bas", "readfile", "weather", "x.bash", "functions.functions.bash"],
)
def test_nothing_fuzzier_is_resolved(written: str) -> None:
    calls, repairs = calls_after(call_of(written))
    assert calls[0].name == written
    assert repairs == []


def test_an_exact_name_beats_every_fold() -> None:
    tools = tuple(ToolDef(name, name, {}) for name in ("get", "GET", "functions.get"))
    for name in ("get", "GET", "functions.get"):
        assert calls_after(call_of(name), tools=tools)[0][0].name == name


def test_a_fold_that_hits_two_tools_hits_none() -> None:
    tools = tuple(ToolDef(name, name, {}) for name in ("get-by-id", "get_by_id"))
    assert calls_after(call_of("Get_By_Id"), tools=tools)[0][0].name == "Get_By_Id"


def test_an_unknown_name_is_stored_without_the_template_s_tokens() -> None:
    calls, repairs = calls_after(call_of("wheather<|channel|>json"))
    assert calls[0].name == "wheather"
    assert repairs == ["name: call 1: the name was cleaned"]
    assert calls_after(call_of("a\ud800"))[0][0].name == "a\ufffd"


@pytest.mark.parametrize("name", [None, "", "  ", 7, {"name": "bash"}, ["bash"], "<|channel|>commentary", "\n"])
def test_a_call_without_a_name_makes_the_reply_malformed(name: Any) -> None:
    response = ingest(ChatResponse("", None, [call_of(), call_of(name, "c2")], "tool_calls"), TOOLS, ())
    assert response.finish_reason == "malformed_function_call"
    assert [repair.kind for repair in response.repairs] == ["reason"]


@pytest.mark.parametrize(
    "nothing", [None, {}, {"id": "", "function": {"name": "", "arguments": ""}}, ToolCall("", "", "")]
)
def test_a_fragment_without_id_name_and_arguments_is_no_call(nothing: Any) -> None:
    response = ingest(ChatResponse("", None, [call_of(), nothing], "tool_calls"), TOOLS, ())
    assert response.tool_calls == [call_of()]
    assert response.finish_reason == "tool_calls"


def test_a_repair_tells_nothing_of_what_was_written() -> None:
    calls = [call_of("s3cret<|x|>", ["s3cret"], '{"a":"s3cret",}'), call_of("FUNCTIONS.bash", "s3\ud800cret", None)]
    _, repairs = calls_after(*calls)
    assert len(repairs) >= 5
    assert "s3" not in "".join(repairs)
