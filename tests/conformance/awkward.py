"""An adapter that hangs, dies, exits or fails, as the name of the model says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolturn.conformance.adapter import Outcome, Task

REQUIREMENTS: tuple[str, ...] = ()
DISTRIBUTION = "pytest"
TYPED = ("_pytest",)
CAN = ("max_tool_calls",)


class Refused(Exception):
    status_code = 401
    body = ("wrong key",)


async def run(task: Task) -> Outcome:
    for tool in task.tools:
        if tool.__name__ == "ping":
            tool()
    match task.model:
        case "hangs":
            await asyncio.Event().wait()
        case "stopped":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return task.cancelled("what was kept")
        case "deaf":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        case "waits":
            return task.waits([{"id": "c1", "name": "ping", "arguments": "{}"}], "a state")
        case "goes on":
            return task.answered(f"{task.saved}: {task.decisions}")
        case "tells":
            task.seen("call", "ping")
            task.seen("text", "pong")
        case "leaves":
            _left.append(asyncio.ensure_future(_later(task)))
        case "dies":
            print("Fatal: out of cheese", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(7)
        case "exits":
            sys.exit(3)
        case "fails":
            raise KeyError("choices")
        case "refused":
            try:
                raise Refused("401")
            except Refused as exc:
                raise ValueError("wrapped") from exc
        case "unprintable":
            raise _Unprintable
        case "none":
            return task.answered(None)
    return task.answered(task.model)


_left: list[asyncio.Task[None]] = []


async def _later(task: Task) -> None:
    """A tool that begins when its turn has ended."""
    await asyncio.sleep(0)
    for tool in task.tools:
        if tool.__name__ == "blank":
            tool()


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError
