"""What the tests of this folder share: models, small tools, and ways to run that leave nothing over."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

import toolturn
from toolturn import ChatMessage, Tool, ToolCallRecord, ToolLoopResult, run_tool_loop
from toolturn.events import Event
from toolturn.testing import ScriptedModel, calls

T = TypeVar("T")

BOUND = 20.0
"""Seconds after which a test gives up; nothing here takes a fraction of it when it works."""

HELLO = (ChatMessage("user", "hello"),)


class Nothing(BaseModel):
    """A request without fields."""


class Number(BaseModel):
    """A request with one field."""

    n: int = 0


class Word(BaseModel):
    """A result with one field."""

    word: str


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own; no task may be left over, and the loop may complain of nothing."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        try:
            async with asyncio.timeout(BOUND):
                return await main
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks are left over: {left}"

    try:
        return asyncio.run(watched())
    finally:
        if complaints:
            gc.collect()
        assert not complaints, complaints


def tool_of(handler: Callable[..., Any], name: str = "act", **options: Any) -> Tool[Any, Any]:
    """A tool around a handler that takes a request without fields and returns None or a dictionary with a word."""
    return Tool(name, "It acts.", Nothing, options.pop("result_model", None), handler, **options)


def counting(name: str = "act", **options: Any) -> tuple[Tool[Any, Any], list[int]]:
    """A tool that does nothing, and the list of its runs."""
    runs: list[int] = []

    async def handler(request: Nothing) -> None:
        runs.append(len(runs))

    return tool_of(handler, name, **options), runs


def one_call(handler: Callable[..., Any], *, tool_options: dict[str, Any] | None = None, **options: Any) -> Any:
    """The record of the single call of a turn in which the model calls a tool with this handler."""
    tool = tool_of(handler, **(tool_options or {}))
    return record_of([tool], "act", "{}", **options)


def record_of(tools: Iterable[Tool[Any, Any]], name: str, arguments: Any, **options: Any) -> ToolCallRecord:
    """The record of the single call of a turn, told to the model."""
    options.setdefault("tool_errors", "report")
    with ScriptedModel([calls((name, arguments)), "done"]) as model:
        result = run(run_tool_loop(HELLO, list(tools), model, **options))
    return result.tool_calls[0]


def outline(result: ToolLoopResult) -> tuple[Any, ...]:
    """What two runs of the same turn have in common: everything but the clock."""
    audit = [(r.call, r.message, r.return_direct, r.op, r.status, r.error) for r in result.tool_calls]
    return (result.content, result.messages, audit, result.iterations, result.return_direct, result.usage, result.limit)


def types_of(events: Iterable[Event]) -> list[str]:
    return [event.type for event in events]


class Signal:
    """An event that a worker thread can set and a task can await."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        async with asyncio.timeout(BOUND):
            await self._event.wait()


def python(code: str, *, seconds: float = BOUND, prelude: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own, in which warnings are errors."""
    try:
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", (PRELUDE if prelude else "") + textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment(),
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise AssertionError(f"the program did not end within {seconds} seconds") from exc


def environment() -> dict[str, str]:
    """The environment of a program that imports the same package as the tests."""
    return {"PYTHONPATH": str(Path(toolturn.__file__).parent.parent), "PYTHONHASHSEED": "0"}


PRELUDE = """
import asyncio, os, sys, threading
from pydantic import BaseModel
from toolturn import *
from toolturn.testing import ScriptedModel, calls

HELLO = [ChatMessage("user", "hello")]

class Nothing(BaseModel):
    pass

def tool_of(handler, name="act", **options):
    return Tool(name, "It acts.", Nothing, None, handler, **options)
"""
