"""The command line as a user runs it: in a process of its own, with a state folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where turns are saved."""
    return tmp_path / "state"


@pytest.fixture
def env(state: Path) -> dict[str, str]:
    return {**os.environ, "TOOLTURN_STATE": str(state), "NO_COLOR": "1"}


@pytest.fixture
def run(env: dict[str, str]) -> Run:
    """Run ``toolturn`` with these arguments."""

    def call(*arguments: str, given: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "toolturn.cli", *arguments],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            env={**env, **more},
            timeout=100,
            check=False,
        )

    return call
