"""The environment of an adapter: made once, kept, made anew when it was left half done."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from toolturn.conformance.environments import AdapterFile, LabError, python_of


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A library of one module, which pip can install without asking anyone."""
    file = tmp_path / "labtoy-1.0-py3-none-any.whl"
    info = "labtoy-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("labtoy.py", "ANSWER = 42\n")
        out.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: labtoy\nVersion: 1.0\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", "")
    return file


def test_an_environment_is_made_once_and_kept(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLTURN_CACHE", str(tmp_path / "cache"))
    adapter = AdapterFile("toy", tmp_path / "toy.py", (str(wheel),))
    lines: list[str] = []
    python = python_of(adapter, lines.append)
    code = "import labtoy, sys; print(labtoy.ANSWER, sys.prefix != sys.base_prefix)"
    assert subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout == "42 True\n"
    assert lines[0].startswith("toy: making an environment in ")
    assert any(line.startswith("toy: Successfully installed labtoy-1.0") for line in lines)
    lines.clear()
    assert python_of(adapter, lines.append) == python
    assert lines == []
    (python.parent.parent / "ready").unlink()
    with pytest.raises(LabError, match="toy: its environment can not be made: "):
        python_of(AdapterFile("toy", adapter.path, (str(wheel) + ".gone",)), lines.append)


def test_an_adapter_without_requirements_runs_in_the_current_environment(tmp_path: Path) -> None:
    import sys

    assert python_of(AdapterFile("own", tmp_path / "own.py", ()), pytest.fail) == Path(sys.executable)
