"""One run of a turn from where it stands to where it ends or is stopped, and all that has to hold then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolturn import (
    Approval,
    Limits,
    Performer,
    ToolLoopError,
    ToolLoopResult,
    Turn,
    resume,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn import errors as all_errors
from toolturn.drive import drive
from toolturn.events import Event
from toolturn.loop import reopened, streaming
from toolturn.nesting import price_of
from toolturn.turn import ToolErrors

from .stepping import Steps
from .support import HELLO
from .whole_turn_checks import look
from .whole_turn_clock import release_all, run_virtual
from .whole_turn_plans import GRACE, Stop
from .whole_turn_world import Broken, World, price


@dataclass
class Run:
    """One run and what came of it.

    Attributes:
        end: The result, or what was raised; None where the stream was left.
        events: What the audience heard; None where there was none.
        struck: Whether it was interrupted before it had ended.
        reached: Whether it came to the point at which it was to be.
        saved: The turn as an audience saved it before it failed, and how many calls had begun.
    """

    world: World
    stop: Stop
    aloud: bool
    turn: Turn
    seconds: float
    end: ToolLoopResult | BaseException | None = None
    events: list[Event] | None = None
    struck: bool = False
    reached: bool = False
    saved: tuple[str, int] | None = None
    faults: list[str] = field(default_factory=list)


def begin(world: World, stop: Stop = Stop(), *, aloud: bool = True) -> Run:  # noqa: B008 - it is frozen
    """Run a new turn of a world.

    Args:
        world: The world.
        stop: How it is interrupted.
        aloud: Whether somebody listens.
    """
    world.turn = turn = Turn("turn")
    run = Run(world, stop, aloud, turn, 0.0)
    plan = world.plan
    options: dict[str, Any] = {
        "limits": plan.limits,
        "on_limit": plan.on_limit,
        "tool_errors": plan.tool_errors,
        "turn": turn,
        "nudges": plan.nudges,
    }

    async def main() -> Any:
        if stop.kind == "leave":
            events = stream_tool_loop(HELLO, world.tools, world.model, **options, **_driving(world), **_around(world))
            return await _watch(run, events)
        hears = _audience(run)
        return await run_tool_loop(
            HELLO, world.tools, world.model, emit=hears, **options, **_driving(world), **_around(world)
        )

    return _finish(run, main)


def go_on(
    world: World,
    stopped: ToolLoopError | Turn | str,
    stop: Stop = Stop(),  # noqa: B008 - it is frozen
    *,
    aloud: bool = True,
    limits: Limits | None = None,
    approvals: Mapping[str, Approval | bool] | None = None,
    tool_errors: ToolErrors | None = None,
) -> Run:
    """Resume a turn of a world.

    Args:
        world: The world.
        stopped: The turn, its error, or the JSON of either.
        stop: How it is interrupted.
        aloud: Whether somebody listens.
        limits: New bounds.
        approvals: Decisions.
        tool_errors: A new policy.
    """
    given: dict[str, Any] = {"limits": limits, "approvals": approvals, "tool_errors": tool_errors}
    if isinstance(stopped, Turn) and stop.kind != "leave":
        turn = stopped
        before = turn.seconds

        async def main() -> Any:
            hears = _audience(run)
            return await resume(
                turn, world.tools, world.model, emit=hears, **given, **_driving(world), **_around(world)
            )
    else:
        turn = reopened(stopped, world.tools, **given)
        before = turn.seconds

        async def main() -> Any:
            around = _around(world)
            around["price"] = price_of(around["price"], turn.limits)
            perform = Performer(world.model, world.tools, **around)
            if stop.kind == "leave":
                return await _watch(run, streaming(turn, perform, **_driving(world)))
            return await drive(turn, perform, _audience(run), **_driving(world))

    world.turn = turn
    run = Run(world, stop, aloud, turn, before)
    return _finish(run, main)


def _driving(world: World) -> dict[str, Any]:
    plan = world.plan
    places = None if plan.places is None else asyncio.Semaphore(plan.places)
    return {"concurrency": plan.concurrency, "siblings": plan.siblings, "limiter": places}


def _around(world: World) -> dict[str, Any]:
    return {"hooks": world.hooks, "grace": GRACE, "price": price, "approve": world.approve}


def _audience(run: Run) -> Callable[[Event], None] | None:
    if not run.aloud and run.stop.kind != "audience":
        return None
    run.events = events = []

    def hears(event: Event) -> None:
        events.append(event)
        if run.stop.kind == "audience" and len(events) == run.stop.at:
            run.struck = run.reached = True
            run.saved = run.turn.to_json(), len(run.world.started)
            raise Broken(f"at {event.type}")

    return hears


async def _watch(run: Run, stream: Any) -> ToolLoopResult | None:
    run.events = []
    async with stream as events:
        async for event in events:
            run.events.append(event)
            if len(run.events) == run.stop.at:
                run.reached = True
                run.struck = run.turn.phase != "ended"
                return None
        result: ToolLoopResult = await events.result()
        return result


def _finish(run: Run, main: Callable[[], Any]) -> Run:
    world, stop = run.world, run.stop
    world.asked = 0
    used = world.used
    world.last = type(world.last)()
    try:
        run.end = run_virtual(_interrupted(run, main))
    except BaseException as exc:
        if isinstance(exc, (AssertionError, KeyboardInterrupt, ValueError)):
            raise
        run.end = exc
    finally:
        release_all()
    if run.struck and stop.kind != "audience":
        run.struck = run.turn.exit is None or isinstance(run.turn.exit, all_errors.ToolLoopCancelledError)
    look(run, used)
    world.stopped(run.turn)
    return run


async def _interrupted(run: Run, main: Callable[[], Any]) -> Any:
    stop, turn = run.stop, run.turn
    if stop.kind not in ("task", "turn", "thread", "timeout"):
        try:
            return await main()
        finally:
            left(run)
    steps = Steps(stop.at, late=stop.late, times=stop.times)
    steps.install()
    loop = asyncio.get_running_loop()

    async def bounded() -> Any:
        async with asyncio.timeout(None) as scope:
            scopes.append(scope)
            try:
                return await main()
            finally:
                scopes.clear()

    def strike() -> None:
        if task.done():
            return
        run.struck = True
        struck.append(loop.time())
        match stop.kind:
            case "task":
                task.cancel()
            case "timeout" if scopes and scopes[0].when() is None:
                scopes[0].reschedule(loop.time())
            case "turn":
                turn.cancel("enough")
            case "thread":
                thread = threading.Thread(target=turn.cancel, args=("enough",))
                thread.start()
                thread.join()

    scopes: list[asyncio.Timeout] = []
    struck: list[float] = []
    steps.strike = strike
    task = asyncio.ensure_future(bounded() if stop.kind == "timeout" else main())
    try:
        await asyncio.wait((task,))
        if struck and (took := loop.time() - struck[0]) > GRACE + 1e-6:
            run.faults.append(f"it took {took} seconds to stop")
        run.reached = steps.reached
        left(run)
        return task.result()
    finally:
        loop.set_task_factory(None)


def left(run: Run) -> None:
    """Nothing still runs but what the turn says it has left behind; looked at before the loop goes on."""
    unknown = {record.op for record in run.turn.records if record.status == "outcome_unknown"}
    still = set(run.world.open.values()) - unknown
    if still:
        run.faults.append(f"still open: {sorted(still)}")
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        run.faults.append(f"tasks still run: {tasks}")
    run.world.open.clear()
