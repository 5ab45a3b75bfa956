"""The real embedded model; without its weights these tests are skipped, in CI they fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolturn.local.weights import WeightsError, find


@pytest.fixture(scope="session")
def weights() -> Path:
    """The verified file of the default weights."""
    try:
        return find()
    except WeightsError as exc:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(exc))


@pytest.fixture(autouse=True)
def _needs_weights(weights: Path) -> None:
    """No test here does without them."""
