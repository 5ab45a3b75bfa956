"""The command line with the packages of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``toolturn`` in a process of its own that finds what is in ``tmp_path``."""

    def call(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
        state = {"TOOLTURN_STATE": str(tmp_path / "state"), "NO_COLOR": "1", "PYTHONPATH": path}
        return subprocess.run(
            [sys.executable, "-m", "toolturn.cli", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, **state, **more},
            timeout=100,
            check=False,
        )

    return call
