"""Calling built-in tools the way a turn does."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from toolturn import ToolError
from toolturn.tools.toolset import ToolSet


def call(tools: ToolSet, name: str, **arguments: Any) -> str:
    """What a call of a tool says, from JSON text to text."""
    tool = tools.get(name)
    assert tool is not None
    return str(asyncio.run(tool.invoke(json.dumps(arguments))).content)


def outcome(function: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """What a function gives, and the text with which it refuses; one of them is empty."""
    try:
        return function(*args), ""
    except ToolError as exc:
        return None, str(exc)


def refusal(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The one short sentence with which a tool refuses; it names the field that has to be mended."""
    with pytest.raises(ToolError) as caught:
        function(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 250
    return text


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Fails when the body takes more processor time than this; other processes do not count."""
    begin = time.process_time()
    yield
    taken = time.process_time() - begin
    assert taken < most, f"took {taken:.3f} s"


def admits(tools: ToolSet, name: str, field: str, texts: Iterable[str]) -> list[bool]:
    """Whether the pattern that a tool's schema shows for a field admits each of the texts."""
    tool = tools.get(name)
    assert tool is not None
    pattern = re.compile(tool.parameters["properties"][field]["pattern"])
    return [pattern.search(text) is not None for text in texts]
