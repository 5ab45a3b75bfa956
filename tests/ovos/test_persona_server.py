"""The persona server of OpenVoiceOS with our engine, asked as a client would, streamed and not."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .model_server import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ovos_persona_server import create_persona_app
    from starlette.testclient import TestClient

pytest.importorskip("httptools")
pytestmark = pytest.mark.filterwarnings("default")  # of its database and its web framework

SUM = ("evaluate_expression", '{"expression": "17*23"}')
ADDRESS = "/openai/v1/chat/completions"


@contextmanager
def client(folder: Path, server: Any, **section: Any) -> Iterator[Any]:
    persona = {
        "name": "Turn",
        "handlers": ["toolturn-native-toolcall-loop"],
        "toolturn-native-toolcall-loop": {
            "brain": "toolturn-brain",
            "toolturn-brain": {"model": f"{server.url}#m"},
            "toolboxes": ["ovos-math-tools"],
            **section,
        },
    }
    path = folder / "turn.json"
    path.write_text(json.dumps(persona), encoding="utf-8")
    yield TestClient(create_persona_app(str(path)))


def asked(**more: Any) -> dict[str, Any]:
    return {"model": "Turn", "messages": [{"role": "user", "content": "17*23?"}], **more}


def test_an_answer_in_one_piece(tmp_path: Path) -> None:
    with serving(SUM, "It is 391.") as server, client(tmp_path, server) as web:
        reply = web.post(ADDRESS, json=asked())
    assert reply.status_code == 200
    choice = reply.json()["choices"][0]
    assert choice["message"]["content"] == "It is 391."
    assert choice["finish_reason"] == "stop"


def test_an_answer_in_pieces(tmp_path: Path) -> None:
    with serving(SUM, "It is 391. Truly.") as server, client(tmp_path, server) as web:
        reply = web.post(ADDRESS, json=asked(stream=True))
    events = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    pieces = [json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events[:-1]]
    assert "".join(pieces).split() == ["It", "is", "391.", "Truly."]


def test_a_failure_of_the_brain_is_an_error_and_no_answer(tmp_path: Path) -> None:
    with serving(400) as server, client(tmp_path, server) as web:
        reply = web.post(ADDRESS, json=asked())
    assert reply.status_code >= 400
    assert "choices" not in reply.json()


def test_tools_of_the_client_are_refused_unless_the_engine_was_told_to_take_them(tmp_path: Path) -> None:
    spec = {"type": "function", "function": {"name": "lights", "description": "d", "parameters": {"type": "object"}}}
    with serving("x") as server, client(tmp_path, server) as web:
        assert web.post(ADDRESS, json=asked(tools=[spec])).status_code == 501
    (tmp_path / "two").mkdir()
    lights = ("lights", '{"on": true}')
    with serving(lights) as server, client(tmp_path / "two", server, supports_tools=True) as web:
        reply = web.post(ADDRESS, json=asked(tools=[spec])).json()["choices"][0]
    assert reply["finish_reason"] == "tool_calls"
    assert reply["message"]["tool_calls"][0]["function"]["name"] == "lights"
