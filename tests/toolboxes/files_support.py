"""How the tests of the files toolbox call its tools."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolturn.errors import InvalidToolArguments, ToolError
from toolturn.tools import ToolSet


def call(tools: ToolSet, name: str, **arguments: Any) -> str:
    tool = tools.get(name)
    assert tool is not None
    request = tool.validate(json.dumps(arguments))
    text = tool.render(asyncio.run(tool.execute(request)))
    assert isinstance(text, str)
    return text


def refused(tools: ToolSet, name: str, **arguments: Any) -> str:
    with pytest.raises((ToolError, InvalidToolArguments)) as caught:
        call(tools, name, **arguments)
    return str(caught.value)


def some_notes(folder: Path) -> Path:
    """Make a folder with a few files, and return it."""
    (folder / "years" / "2026").mkdir(parents=True)
    (folder / "todo.md").write_text("Milk\nBread\n")
    (folder / "years" / "plan.txt").write_text("First the plan.\nThen the work.\n")
    (folder / "years" / "2026" / "May.txt").write_text("The plan for May\n")
    (folder / ".secret").write_text("hidden plan")
    return folder
