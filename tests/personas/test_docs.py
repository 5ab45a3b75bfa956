"""The reference of persona files names every key that is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolturn.personas.keys import BRAINS, ENGINE, ENGINES, FILES, MCP, MEMORY, PERSONA, REACT, SAME_TOOLBOX

DOCS = Path(__file__).parents[2] / "docs" / "personas.md"

_KEYS = [keys.known for keys in (PERSONA, ENGINE, REACT, FILES, MCP, *BRAINS.values())]
_NAMES = sorted({*(key for known in _KEYS for key in known), *BRAINS, *ENGINES, MEMORY} | {"ovos-math-tools"})


@pytest.mark.skipif(not DOCS.exists(), reason="the documents are not here")
@pytest.mark.parametrize("name", _NAMES)
def test_each_key_is_described(name: str) -> None:
    assert re.search(f"`{re.escape(name)}`", DOCS.read_text(encoding="utf-8")), name


def test_no_toolbox_has_two_meanings() -> None:
    assert set(SAME_TOOLBOX.values()) == {"clock", "math", "units", "files"}
