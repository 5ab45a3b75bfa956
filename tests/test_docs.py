"""Code in the documentation runs, and prints what the documentation says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```python(?P<flags>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(page: Path) -> list[str]:
    return [found["code"] for found in _BLOCK.finditer(page.read_text()) if "no-run" not in found["flags"]]


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_one_after_the_other_and_print_what_they_say(page: Path) -> None:
    known: dict[str, Any] = {"__name__": "docs"}
    for code in _blocks(page):
        expected = re.findall(r"^#> (.*)$", code, re.MULTILINE)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), known)
        assert printed.getvalue().splitlines() == expected


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
