"""How a tool behaves, as its arguments tell it to: it may fail, hang, or end badly when it is cancelled."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from toolturn import ToolContext, ToolError

from .whole_turn_clock import clock, hold
from .whole_turn_plans import GRACE, LONG


class Task(BaseModel):
    """How a tool is to behave."""

    do: str = "ok"
    n: int = 0

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        return _SCHEMA  # made once: it would take longer than all else that happens in a turn


_SCHEMA: dict[str, Any] = BaseModel.model_json_schema.__func__(Task)  # type: ignore[attr-defined]


class Said(BaseModel):
    word: str


def _ending(task: Task) -> Any:
    """What comes of a call that is not cut short."""
    match task.do:
        case "fail":
            raise ValueError("it does not work")
        case "decline":
            raise ToolError("ask somebody else")
        case "exit":
            raise SystemExit(3)
        case "wrong":
            return 7
        case "long":
            return Said(word="x" * 5000)
    return Said(word=f"{task.do} {task.n}")


_TAKES = {"wait": 1.0, "brief wait": 0.5} | dict.fromkeys(("hang", "slow", "too slow", "refuse", "messy", "give"), LONG)


async def behave(task: Task, context: ToolContext | None) -> Any:
    do = task.do
    if do == "group":
        return await _structured(task)
    if do == "progress" and context is not None:
        context.emit("half of it")
    if do == "refuse":
        await refuse()
    try:
        await asyncio.sleep(_TAKES.get(do, 0))
    except asyncio.CancelledError:
        match do:
            case "slow":
                await asyncio.sleep(GRACE / 2)
            case "too slow":
                await asyncio.sleep(LONG)
            case "messy":
                await asyncio.sleep(0)
                raise ValueError("while it cleaned up") from None
            case "give":
                return Said(word="all the same")
        raise
    return _ending(task)


async def refuse() -> None:
    """Hang, whoever cancels it."""
    end = clock().time() + LONG
    while (left := end - clock().time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(left)


async def _structured(task: Task) -> Said:
    """Tasks and a time-out inside a handler, which must not be taken for a cancel of the turn."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.25):
            await asyncio.sleep(LONG)
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
        group.create_task(asyncio.sleep(0.25))
    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
    return Said(word=f"group {task.n}")


def behave_in_thread(task: Task, context: ToolContext) -> Any:
    if task.do == "progress":
        context.emit("half of it")
    # each at a moment of its own, so that calls that run at once end in one order
    hold(_TAKES.get(task.do, 0) + 0.001 * (1 + int(context.op.rpartition(".")[2])))
    return _ending(task)
