"""Models of servers on the command line, and what ``toolturn doctor`` says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolturn.conformance.replies import Call, Chat, Http
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer

from .conftest import Run

ROWS = [
    Fault("adds", "", (Chat(None, (Call("calculator", '{"expression": "17 * 24"}'),), "tool_calls"), Chat("408.")), ()),
    *(
        Fault(name, "", (Chat(None, (Call("calculator", "{'expression': '1 + 1'}"),), "tool_calls"), Chat("2.")), ())
        for name in ("mended", "mended-json")
    ),
    Fault("silent", "", (Chat(""), Chat("Hello.")), ()),
    Fault("broken", "", (Http(500, {"error": {"message": "out of order"}}),), ()),
    Fault("polite", "", (Chat("Hello."),), ()),
    Fault("polite-too", "", (Chat("Hello."),), ()),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LabServer(ROWS) as lab:
        yield lab.base_url


def test_a_model_behind_an_address_calls_tools_and_answers(run: Run, address: str) -> None:
    done = run("ask", "--model", f"{address}#adds", "--tools", "math", "What is 17 * 24?")
    assert (done.returncode, done.stdout) == (0, "408.\n")
    assert "→ calculator" in done.stderr
    assert "← 408" in done.stderr


def test_what_was_mended_is_shown_and_in_the_audit(run: Run, address: str) -> None:
    done = run("ask", "--model", f"{address}#mended", "--tools", "math", "1 + 1?")
    assert "mended: arguments" in done.stderr
    document = json.loads(run("ask", "--json", "--model", f"{address}#mended-json", "--tools", "math", "1 + 1?").stdout)
    assert [repair["op"] for repair in document["repairs"]] == ["m1"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is full")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_answer_that_can_not_be_written_is_one_sentence(
    env: dict[str, str], address: str, options: tuple[str, ...]
) -> None:
    name = f"{address}#polite" if options else f"{address}#polite-too"
    command = [sys.executable, "-m", "toolturn.cli", "ask", *options, "--model", name, "--tools", "none", "Hello?"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 1
    assert "the answer can not be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_model_that_says_nothing_is_asked_once_more(run: Run, address: str) -> None:
    done = run("ask", "--model", f"{address}#silent", "--tools", "none", "Hello?")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")


def test_a_server_that_fails_is_one_sentence_and_the_turn_can_be_continued(run: Run, address: str) -> None:
    done = run("ask", "--model", f"{address}#broken", "--tools", "none", "Hello?")
    assert done.returncode == 1
    assert "out of order" in done.stderr
    assert "toolturn resume" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nosuch:model", "there is no server 'nosuch'"),
        ("groq:llama", "groq needs a key: set GROQ_API_KEY"),
        ("http://127.0.0.1:9/v1", "write the model's name behind the address"),
        ("http://host:port/v1#m", "is no address of a server"),
    ],
)
def test_a_model_that_can_not_be_named_is_told_with_what_to_do(run: Run, name: str, words: str) -> None:
    done = run("ask", "--model", name, "--tools", "none", "Hello?")
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_says_that_a_model_replies(run: Run, address: str) -> None:
    done = run("doctor", f"{address}#polite")
    assert (done.returncode, done.stdout) == (0, f"{address}#polite: it replies\n")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("#broken", "out of order"),
        ("#absent", "there is no model 'absent'"),
    ],
)
def test_the_doctor_says_why_a_model_does_not_reply(run: Run, address: str, name: str, words: str) -> None:
    done = run("doctor", f"{address}{name}")
    assert done.returncode == 1
    assert words in done.stdout


def test_the_doctor_says_that_nobody_is_there(run: Run) -> None:
    done = run("doctor", "http://127.0.0.1:9/v1#m")
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_doctor_lists_extras_keys_and_servers_and_never_shows_a_key(run: Run, address: str) -> None:
    there = {"GROQ_API_KEY": "gsk-secret", "OLLAMA_HOST": address.removeprefix("http://").removesuffix("/v1")}
    done = run("doctor", **there)
    assert done.returncode == 0
    assert "GROQ_API_KEY" in done.stdout
    assert "gsk-secret" not in done.stdout + done.stderr
    assert f"{len(ROWS)} models: adds" in done.stdout
    document = json.loads(run("doctor", "--json", **there).stdout)
    assert document["extras"]["http"] is True
    assert document["keys"]["groq"] == "GROQ_API_KEY"
    assert document["servers"]["ollama"]["models"] == [row.name for row in ROWS]
    assert document["servers"]["vllm"]["models"] is None
