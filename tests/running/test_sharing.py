"""Calls that run at once: what becomes of them when one ends the turn, and a bound that many turns share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolturn import (
    Limits,
    ToolContext,
    ToolLoopCancelledError,
    ToolLoopDeadlineError,
    ToolLoopToolError,
    Turn,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, Nothing, counting, run, tool_of, types_of


def three() -> ScriptedModel:
    return ScriptedModel([calls(("good", "{}"), ("bad", "{}"), ("good", "{}"), ("good", "{}"))])


class Batch:
    """Tools of which one fails while another runs; that one ends when it is let go."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.failed = asyncio.Event()
        self.let_go = asyncio.Event()
        self.begun: list[str] = []
        self.tools = [
            tool_of(self._good, "good", parallel=True),
            tool_of(self._bad, "bad", parallel=True),
        ]

    async def _good(self, request: Nothing, context: ToolContext) -> None:
        self.begun.append(context.op)
        self.began.set()
        await self.let_go.wait()

    async def _bad(self, request: Nothing) -> None:
        await self.began.wait()
        self.failed.set()
        raise ValueError("no")


@pytest.mark.parametrize(
    ("siblings", "statuses"),
    [
        ("cancel", ["cancelled", "error", "not_executed", "not_executed"]),
        ("finish", ["ok", "error", "not_executed", "not_executed"]),
    ],
)
def test_siblings_of_a_call_that_ends_the_turn_are_cancelled_or_finish_and_none_begins(
    siblings: Any, statuses: list[str]
) -> None:
    async def main() -> None:
        batch = Batch()
        task = asyncio.ensure_future(run_tool_loop(HELLO, batch.tools, three(), concurrency=2, siblings=siblings))
        await batch.failed.wait()
        asyncio.get_running_loop().call_later(0.01, batch.let_go.set)
        with pytest.raises(ToolLoopToolError) as caught:
            await task
        assert [record.status for record in caught.value.tool_calls] == statuses
        assert batch.begun == ["t1.0"]

    run(main())


@pytest.mark.parametrize("how", ["cancel of the turn", "cancel of the task", "deadline"])
def test_siblings_that_finish_do_so_only_until_the_turn_is_stopped(how: str) -> None:
    async def main() -> None:
        batch, turn = Batch(), Turn()
        limits = Limits(deadline=0.05 if how == "deadline" else 20.0)
        task = asyncio.ensure_future(
            run_tool_loop(HELLO, batch.tools, three(), limits=limits, turn=turn, concurrency=2, siblings="finish")
        )
        await batch.failed.wait()
        if how == "cancel of the task":
            task.cancel()
        elif how == "cancel of the turn":
            turn.cancel()
            batch.let_go.set()  # it has its end already, the rest may finish
        with pytest.raises((ToolLoopToolError, ToolLoopCancelledError, ToolLoopDeadlineError, asyncio.CancelledError)):
            await task
        assert turn.phase == "ended"
        assert turn.records[1].status in ("error", "cancelled")

    run(main())


def test_another_policy_is_refused() -> None:
    odd: Any = "ignore"
    with pytest.raises(ValueError, match="siblings must be 'cancel' or 'finish'"):
        run(run_tool_loop(HELLO, [], ScriptedModel([]), siblings=odd))


# --- a bound shared by many turns ------------------------------------------------------


class Busy:
    """A tool that notes how many of its calls run at the same time."""

    def __init__(self) -> None:
        self.now = self.most = self.runs = 0

    async def __call__(self, request: Nothing) -> None:
        self.now += 1
        self.runs += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1


@pytest.mark.parametrize("places", [1, 3])
def test_a_bound_holds_over_all_turns_that_share_it(places: int) -> None:
    async def main() -> None:
        busy, limiter = Busy(), asyncio.Semaphore(places)
        tool = tool_of(busy, parallel=True)

        def model() -> ScriptedModel:
            return ScriptedModel([calls(*[("act", "{}")] * 3), "done"])

        turns = [run_tool_loop(HELLO, [tool], model(), concurrency=3, limiter=limiter) for _ in range(4)]
        results = await asyncio.gather(*turns)
        assert [result.content for result in results] == ["done"] * 4
        assert (busy.runs, busy.most) == (12, places)
        assert not limiter.locked()

    run(main())


def test_a_turn_inside_a_tool_uses_the_place_of_the_tool() -> None:
    async def main() -> None:
        limiter = asyncio.Semaphore(1)
        act, runs = counting()

        async def delegate(request: Nothing) -> None:
            await run_tool_loop(HELLO, [act], ScriptedModel([calls(("act", "{}")), "inner"]), limiter=limiter)

        model = ScriptedModel([calls(("delegate", "{}")), "done"])
        result = await run_tool_loop(HELLO, [tool_of(delegate, "delegate")], model, limiter=limiter)
        assert (result.content, runs) == ("done", [0])
        assert not limiter.locked()

    run(main())


def test_a_call_that_waits_for_its_place_when_the_turn_is_cancelled_has_not_begun() -> None:
    async def main() -> None:
        limiter, turn = asyncio.Semaphore(1), Turn()
        act, runs = counting()
        heard: list[Any] = []
        asked = asyncio.Event()

        async def model(*_: Any) -> Any:
            asked.set()
            return calls(("act", "{}"))

        async with limiter:
            task = asyncio.ensure_future(
                run_tool_loop(HELLO, [act], model, limiter=limiter, turn=turn, emit=heard.append)
            )
            await asked.wait()
            await asyncio.sleep(0)
            turn.cancel("enough")
            with pytest.raises(ToolLoopCancelledError):
                await task
        assert [record.status for record in turn.records] == ["not_executed"]
        assert runs == []
        assert "tool_call" not in types_of(heard)
        assert not limiter.locked()

    run(main())


def test_a_call_that_waits_for_its_place_when_another_ends_the_turn_does_not_begin() -> None:
    async def main() -> None:
        batch, limiter = Batch(), asyncio.Semaphore(2)
        task = asyncio.ensure_future(
            run_tool_loop(HELLO, batch.tools, three(), concurrency=4, siblings="finish", limiter=limiter)
        )
        await batch.failed.wait()
        batch.let_go.set()
        with pytest.raises(ToolLoopToolError):
            await task
        assert batch.begun == ["t1.0"]
        assert not limiter.locked()

    run(main())


def test_a_place_is_given_back_by_a_call_that_fails_or_is_left_behind() -> None:
    async def main() -> None:
        limiter = asyncio.Semaphore(1)

        async def refuses(request: Nothing) -> None:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    continue

        tool = tool_of(refuses, timeout=0.01)
        model = ScriptedModel([calls(("act", "{}")), "done"])
        result = await run_tool_loop(HELLO, [tool], model, limiter=limiter, grace=0.01, tool_errors="report")
        assert [record.status for record in result.tool_calls] == ["outcome_unknown"]
        assert not limiter.locked()

    run(main())


def test_a_stream_takes_the_same_options() -> None:
    async def main() -> None:
        busy = Busy()
        model = ScriptedModel([calls(("act", "{}"), ("act", "{}")), "done"])
        async with stream_tool_loop(
            HELLO,
            [tool_of(busy, parallel=True)],
            model,
            concurrency=2,
            siblings="finish",
            limiter=asyncio.Semaphore(1),
        ) as events:
            seen = [event async for event in events]
        assert busy.most == 1
        assert types_of(seen)[-1] == "done"

    run(main())
