"""The personas among the examples, each asked as a user would ask it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolturn.conformance.replies import Call, Chat
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer
from toolturn.personas.inspecting import inspect_persona

EXAMPLES = Path(__file__).parents[2] / "examples" / "personas"
FILES = sorted(EXAMPLES.glob("*.json"))

_SUM = Chat(None, (Call("calculator", '{"expression": "17 * 24"}'),), "tool_calls")
ROWS = [Fault(name, "", (_SUM, Chat("408.")), ()) for name in ("qwen3", "gpt-5-mini", "any")]

Run = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.skipif(not FILES, reason="the examples are not here")


@pytest.fixture(scope="module")
def lab() -> Iterator[LabServer]:
    with LabServer(ROWS) as lab:
        yield lab


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "toolturn.cli", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "TOOLTURN_STATE": str(tmp_path), "NO_COLOR": "1", **env},
            timeout=240,
            check=False,
        )

    return call


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_wrong_with_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    seen = inspect_persona(file)
    assert seen.reading.persona is not None, seen.reading.findings
    here = [str(f) for f in seen.reading.findings if f.level != "note" and "toolturn model pull" not in f.text]
    assert here == []


def adds(run: Run, file: Path, **env: str) -> None:
    done = run("ask", "--persona", str(file), "--json", "What is 17 * 24?", **env)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert "408" in document["content"]
    assert [record["message"]["content"] for record in document["tool_calls"]] == ["408"]


def test_the_one_of_a_local_server(run: Run, lab: LabServer) -> None:
    adds(run, EXAMPLES / "local_server.json", OLLAMA_HOST=lab.base_url.removesuffix("/v1"))


def test_the_one_of_a_hosted_model(run: Run, lab: LabServer) -> None:
    pytest.importorskip("mcp_server_time")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    adds(run, EXAMPLES / "hosted.json", OPENAI_BASE_URL=lab.base_url, OPENAI_API_KEY="hosted", PATH=path)


def test_the_one_that_openvoiceos_reads_too(run: Run, lab: LabServer, tmp_path: Path) -> None:
    document = json.loads((EXAMPLES / "openai_style_server.json").read_text(encoding="utf-8"))
    document["ovos-native-toolcall-loop"]["ovos-chat-openai-plugin"]["api_url"] = lab.base_url
    file = tmp_path / "persona.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    adds(run, file)


@pytest.mark.model
@pytest.mark.timeout(300)
def test_the_one_of_the_embedded_model(run: Run) -> None:
    from toolturn.local.weights import WeightsError, find

    try:
        find()
    except WeightsError as exc:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(exc))
    adds(run, EXAMPLES / "embedded.json")
