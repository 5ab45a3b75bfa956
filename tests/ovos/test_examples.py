"""The examples do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from ovos_bus_client.session import Session
from ovos_utils.fakebus import FakeBus

from .model_server import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ovos_persona import PersonaService

pytest.importorskip("httptools")

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_persona_file_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "native_toolcall_persona.json"
    (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    with serving(("calculator", '{"expression": "17*23"}'), "It is 391.") as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = {"personas_path": str(tmp_path), "ignore_plugin_personas": True}
            service = PersonaService(bus=FakeBus(), config=config)
        said = list(service.query("17*23?", "Turn", Session("s1", lang="en-US")))
        assert [text for text in said if text] == ["It is 391."]
        assert server.requests[0]["model"] == "qwen3"
        assert server.requests[1]["messages"][-1]["content"] == "391"
        assert server.requests[0]["messages"][0]["content"].startswith("You are a voice assistant.")


def test_the_engine_in_python_answers() -> None:
    larder = ("look_into_larder", '{"ingredient": "flour"}')
    with serving(larder, "There are 1200 grams. That is enough.") as server:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", EXAMPLES / "native_toolcall_persona.py", f"{server.url}#m", "Flour?"],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            env={**os.environ},
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-2:] == ["There are 1200 grams.", "That is enough."]
        assert server.requests[1]["messages"][-1]["content"] == "1200 grams"
