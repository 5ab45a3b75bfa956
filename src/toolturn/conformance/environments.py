"""The environments that adapters run in: made once with ``venv`` and ``pip``, kept in the cache folder."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..local.catalogue import cache_folder

Report = Callable[[str], None]
"""Is told in a line what goes on."""

_FOLDER = Path(__file__).parent / "adapters"
_SECONDS = 900


class LabError(RuntimeError):
    """The lab can not do what it was asked to; the text is one sentence for people."""


@dataclass(frozen=True, slots=True)
class AdapterFile:
    """An adapter as it stands on disk; nothing of it was run.

    Args:
        name: The name it is shown by.
        path: The file.
        requirements: What pip installs for it; empty for the current environment.
    """

    name: str
    path: Path
    requirements: tuple[str, ...]


def known_adapters() -> list[str]:
    """Return the names of the adapters that come with the lab."""
    return sorted(file.stem for file in _FOLDER.glob("*.py") if file.stem != "__init__")


def find_adapter(name: str) -> AdapterFile:
    """Return the adapter of a name.

    Args:
        name: One of :func:`known_adapters`, or the path of a file.

    Raises:
        LabError: There is none, or it can not be read.
    """
    path = Path(name) if name.endswith(".py") else _FOLDER / f"{name.replace('-', '_')}.py"
    if not path.is_file() or path.stem == "__init__":
        raise LabError(f"there is no adapter {name!r}; there are {', '.join(known_adapters())}, and any file.py")
    try:
        found = _constant(path.read_text(encoding="utf-8"), "REQUIREMENTS")
    except (OSError, ValueError, SyntaxError) as exc:
        raise LabError(f"{path} can not be read: {exc}") from None
    if not isinstance(found, tuple) or not all(isinstance(item, str) for item in found):
        raise LabError(f"{path} has no REQUIREMENTS, which must be a tuple of texts")
    return AdapterFile(path.stem, path, found)


def _constant(source: str, name: str) -> Any:
    """The value of a constant of a module that may not be importable here."""
    for node in ast.parse(source).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in targets:
                if isinstance(target, ast.Name) and target.id == name:
                    return ast.literal_eval(node.value)
    return None


def python_of(adapter: AdapterFile, report: Report) -> Path:
    """Return the Python that runs an adapter; its environment is made where it is not there yet.

    Args:
        adapter: The adapter.
        report: Is told what goes on.

    Raises:
        LabError: The environment can not be made.
    """
    if not adapter.requirements:
        return Path(sys.executable)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256("\n".join((version, *adapter.requirements)).encode()).hexdigest()[:12]
    folder = cache_folder() / "conform" / f"{adapter.name}-{key}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / "ready"
    if ready.exists() and python.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted attempt left
    report(f"{adapter.name}: making an environment in {folder}")
    _run([sys.executable, "-m", "venv", str(folder)], report, adapter.name)
    report(f"{adapter.name}: installing {', '.join(adapter.requirements)}")
    install = [str(python), "-m", "pip", "install", "--progress-bar", "off", *adapter.requirements]
    _run(install, report, adapter.name)
    ready.touch()
    return python


def _run(command: list[str], report: Report, name: str) -> None:
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    last = ""
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                line = line.strip()
                if line.startswith(("Collecting", "Installing", "Successfully")):
                    report(f"{name}: {line}")
                last = line or last
            process.wait(_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise LabError(f"{name}: its environment can not be made: {exc}") from None
    if process.returncode:
        raise LabError(f"{name}: its environment can not be made: {last}")
