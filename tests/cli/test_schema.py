"""Answers of a form on the command line: ``toolturn ask --schema``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolturn.conformance.replies import Call, Chat, Http
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer

from .conftest import Run

GOOD = '{"item":"tea","euros":6}'
SCHEMA = {
    "title": "Bill",
    "type": "object",
    "properties": {"item": {"type": "string"}, "euros": {"type": "number", "minimum": 0}},
    "required": ["item", "euros"],
    "additionalProperties": False,
}
FINAL = Chat(None, (Call("final_answer", GOOD),), "tool_calls")
ROWS = [
    Fault("bill", "", (Chat("Six euros."), FINAL), ()),
    Fault("bill-json", "", (Chat(None, (Call("final_answer", '{"item":"tea","euros":-6}'),), "tool_calls"), FINAL), ()),
    Fault("broken", "", (Http(400, {"error": {"message": "out of order"}}), FINAL), ()),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LabServer(ROWS) as lab:
        yield lab.base_url


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "bill.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def test_the_answer_is_an_object_of_the_schema_on_standard_output(run: Run, address: str, schema: str) -> None:
    done = run("ask", "--model", f"{address}#bill", "--tools", "none", "--schema", schema, "What do two teas cost?")
    assert (done.returncode, json.loads(done.stdout)) == (0, json.loads(GOOD))


def test_with_json_it_is_the_value_and_what_did_not_fit_is_in_the_audit(run: Run, address: str, schema: str) -> None:
    done = run("ask", "--json", "--model", f"{address}#bill-json", "--tools", "none", "--schema", schema, "Tea?")
    document = json.loads(done.stdout)
    assert document["value"] == json.loads(GOOD)
    assert [record["status"] for record in document["tool_calls"]] == ["invalid_arguments", "ok"]


def test_a_turn_that_failed_goes_on_to_such_an_answer(run: Run, address: str, schema: str, tmp_path: Path) -> None:
    done = run("ask", "--json", "--model", f"{address}#broken", "--tools", "none", "--schema", schema, "Tea?")
    saved = json.loads(done.stdout)["saved"]
    assert done.returncode == 1
    done = run("resume", "--json", saved)
    assert json.loads(done.stdout)["value"] == json.loads(GOOD)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "no JSON"), ("[]", "is an object"), ('{"type":"array"}', "of an object"), ('{"type":7}', "of an object")],
)
def test_a_schema_that_is_none_is_one_sentence(run: Run, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = run("ask", "--model", "http://127.0.0.1:9/v1#m", "--tools", "none", "--schema", str(path), "Tea?")
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
