"""Public reports of what models and servers got wrong: each row of the data names its source."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from toolturn.arguments import parse_arguments
from toolturn.errors import ToolLoopEmptyResponseError, ToolLoopMalformedResponseError

from .edge import CASES, Seen, play

# Rows that are judged differently here, and why.
JUDGED_DIFFERENTLY: dict[str, str] = {}

_MARKUP = re.compile(r"<\W?(?:tool_call|function|invoke|think)|DSML|TOOL_CALLS|python_tag")


def cases(kind: str) -> pytest.MarkDecorator:
    rows = [row for row in CASES if row["kind"] == kind and row["name"] not in JUDGED_DIFFERENTLY]
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def check_row(row: dict[str, Any]) -> Seen:
    """Play a row and check what its outcome and its oracle ask for."""
    seen = play(row["input"])
    outcome, oracle = row["outcome"], row["oracle"]
    if outcome in ("execute", "salvage"):
        assert seen.error is None
        assert seen.executed
    elif outcome == "reject_call":
        assert seen.executed == []
        assert seen.result is not None
        assert len(seen.observations) == 1
        assert set(json.loads(seen.observations[0])) >= {"error"}
    elif outcome == "typed_error":
        assert seen.executed == []
        assert seen.error is not None
    elif outcome == "nudge":
        assert seen.executed == []
        assert isinstance(seen.error, (ToolLoopEmptyResponseError, ToolLoopMalformedResponseError))
        once = play({**row["input"], "repeat_last": True}, nudges=1)
        assert once.asked == 1 + oracle.get("max_nudges", 1)
        assert once.executed == []
    elif outcome == "final_answer":
        assert seen.executed == []
        assert seen.result is not None
        assert seen.asked == 1
    elif outcome == "execute_or_reject":
        assert seen.executed == [] or [name for name, _ in seen.executed] == [oracle["tool"]]
    else:
        raise AssertionError(f"no such outcome: {outcome}")
    check_oracle(row, seen)
    return seen


def check_oracle(row: dict[str, Any], seen: Seen) -> None:
    oracle = dict(row["oracle"])
    executed = row["outcome"] in ("execute", "salvage")
    arguments = [given for _, given in seen.executed]
    if "args" in oracle:
        wanted = oracle.pop("args")
        assert arguments[0] == wanted
        assert json.dumps(arguments[0]) == json.dumps(wanted)
    if "args_list" in oracle:
        assert arguments == oracle.pop("args_list")
    if "executions" in oracle:
        assert len(seen.executed) == oracle.pop("executions")
    if (tool := oracle.pop("tool", None)) and executed:
        assert [name for name, _ in seen.executed] == [tool]
    if "tools_executed" in oracle:
        assert [name for name, _ in seen.executed] == oracle.pop("tools_executed")
    if oracle.pop("unique_ids", False):
        assert len(set(seen.ids)) == len(seen.ids) > 0
        assert all(isinstance(call_id, str) and call_id.strip() for call_id in seen.ids)
    if "id" in oracle:
        assert seen.ids == [oracle.pop("id")]
    if "text" in oracle:
        assert seen.result is not None
        assert seen.result.content == oracle.pop("text")
    if "result_contains" in oracle:
        assert oracle.pop("result_contains") in seen.observations[0]
    if "error_text_max_chars" in oracle:
        assert len(seen.observations[0]) <= oracle.pop("error_text_max_chars")
    for word in oracle.pop("error_must_not_contain", ()):
        assert word not in seen.observations[0]
    if "max_model_calls" in oracle:
        assert seen.asked <= oracle.pop("max_model_calls")
    if oracle.pop("content_kept", False):
        assert seen.said[0] == row["input"]["replies"][0]["content"]
    if oracle.pop("stored_markup", True) is False or row["outcome"] == "salvage":
        assert not any(_MARKUP.search(text) for text in seen.said)
    assert oracle.pop("executed", False) is False
    oracle.pop("max_nudges", None)
    assert oracle == {}, "a part of the oracle is not looked at"


@cases("arguments")
def test_arguments_are_mended_or_refused(row: dict[str, Any]) -> None:
    seen = check_row(row)
    if row["outcome"] == "execute":  # what a later request repeats is strict JSON
        stored = [call for message in seen.messages for call in message.tool_calls or ()]
        assert [parse_arguments(call.arguments) for call in stored] == [given for _, given in seen.executed]


@cases("ids")
def test_every_call_has_an_id_of_its_own(row: dict[str, Any]) -> None:
    check_row(row)


@cases("reasons")
def test_the_reason_of_the_end_decides_whether_calls_may_run(row: dict[str, Any]) -> None:
    check_row(row)


@cases("names")
def test_names_are_resolved_once_or_not_at_all(row: dict[str, Any]) -> None:
    seen = check_row(row)
    assert all(call.name for message in seen.messages for call in message.tool_calls or ())


@cases("content")
def test_content_of_any_form_is_text_without_thoughts(row: dict[str, Any]) -> None:
    check_row(row)


@cases("leaked")
def test_calls_in_the_text_are_lifted(row: dict[str, Any]) -> None:
    check_row(row)
