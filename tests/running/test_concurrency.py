"""Parallel tools run together up to a bound; their results keep the order in which they were asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolturn import Tool, ToolContext, ToolError, ToolLoopResult, ToolLoopToolError, Turn, run_tool_loop
from toolturn.events import Event, ToolCallStarted, ToolResult
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, Number, Signal, Word, python, run, tool_of


class Meeting:
    """Handlers that end only when so many of them run at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.inside = 0
        self.most = 0
        self.order: list[str] = []
        self._full = asyncio.Event()

    async def __call__(self, request: Nothing, context: ToolContext) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside == self.size:
            self._full.set()
        self.order.append(f"+{context.op}")
        await asyncio.wait_for(self._full.wait(), 5)
        self.inside -= 1
        self.order.append(f"-{context.op}")


async def _batch(names: str, tools: list[Tool[Any, Any]], concurrency: int, **options: Any) -> ToolLoopResult:
    with ScriptedModel([calls(*[(name, "{}") for name in names]), "done"]) as model:
        return await run_tool_loop(HELLO, tools, model, concurrency=concurrency, **options)


def test_eight_of_eight_run_together() -> None:
    async def main() -> None:
        meeting = Meeting(8)
        await _batch("pppppppp", [tool_of(meeting, "p", parallel=True)], 8)
        assert meeting.most == 8

    run(main())


def test_the_bound_is_kept_and_used() -> None:
    async def main() -> None:
        meeting = Meeting(3)
        await _batch("pppppppp", [tool_of(meeting, "p", parallel=True)], 3)
        assert meeting.most == 3

    run(main())


def test_a_bound_beyond_the_batch_does_no_harm() -> None:
    async def main() -> None:
        meeting = Meeting(2)
        result = await _batch("pp", [tool_of(meeting, "p", parallel=True)], 1000)
        assert [record.status for record in result.tool_calls] == ["ok", "ok"]

    run(main())


def test_without_concurrency_parallel_tools_run_one_after_the_other() -> None:
    async def main() -> None:
        meeting = Meeting(1)
        await _batch("ppp", [tool_of(meeting, "p", parallel=True)], 1)
        assert meeting.most == 1

    run(main())


def test_results_are_in_emitted_order_though_the_calls_finish_in_reverse() -> None:
    async def main() -> None:
        done = [asyncio.Event() for _ in range(5)]
        finished: list[int] = []

        async def handler(request: Number) -> Word:
            if request.n < 4:
                await asyncio.wait_for(done[request.n + 1].wait(), 5)
            finished.append(request.n)
            done[request.n].set()
            return Word(word=str(request.n))

        events: list[Event] = []
        tool = Tool("act", "It acts.", Number, Word, handler, parallel=True)
        with ScriptedModel([calls(*[("act", f'{{"n":{n}}}') for n in range(5)]), "done"]) as model:
            result = await run_tool_loop(HELLO, [tool], model, concurrency=5, emit=events.append)
        assert finished == [4, 3, 2, 1, 0]
        contents = [f'{{"word":"{n}"}}' for n in range(5)]
        assert [record.message.content for record in result.tool_calls] == contents
        assert [message.content for message in result.messages[2:-1]] == contents
        told = [event.record.op for event in events if isinstance(event, ToolResult)]
        assert told == ["t1.4", "t1.3", "t1.2", "t1.1", "t1.0"]
        begun = [event.op for event in events if isinstance(event, ToolCallStarted)]
        assert begun == ["t1.0", "t1.1", "t1.2", "t1.3", "t1.4"]

    run(main())


def test_a_tool_that_is_not_marked_is_a_barrier() -> None:
    async def main() -> None:
        meeting = Meeting(2)
        order = meeting.order

        async def alone(request: Nothing, context: ToolContext) -> None:
            assert meeting.inside == 0
            order.append(f"+{context.op}")
            await asyncio.sleep(0)
            order.append(f"-{context.op}")

        await _batch("ppspp", [tool_of(meeting, "p", parallel=True), tool_of(alone, "s")], 8)
        assert set(order[:4]) == {"+t1.0", "+t1.1", "-t1.0", "-t1.1"}
        assert order[4:6] == ["+t1.2", "-t1.2"]
        assert set(order[6:]) == {"+t1.3", "+t1.4", "-t1.3", "-t1.4"}

    run(main())


def test_unknown_tools_and_bad_arguments_among_parallel_calls_are_answered_in_their_places() -> None:
    async def main() -> None:
        meeting = Meeting(2)
        tools = [tool_of(meeting, "p", parallel=True)]
        wanted = [("p", "{}"), ("p", "nonsense"), ("p", "{}"), ("nobody", "{}")]
        with ScriptedModel([calls(*wanted), "done"]) as model:
            result = await run_tool_loop(HELLO, tools, model, concurrency=4)
        statuses = [record.status for record in result.tool_calls]
        assert statuses == ["ok", "invalid_arguments", "ok", "unknown_tool"]

    run(main())


def test_one_that_fails_under_raise_cancels_its_siblings_and_closes_their_calls() -> None:
    async def main() -> None:
        others = [Signal(), Signal()]
        closed: list[int] = []

        async def waits(request: Number) -> None:
            try:
                others[request.n].set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                closed.append(request.n)

        async def fails(request: Nothing) -> None:
            for other in others:
                await other.wait()
            raise LookupError("broken")

        async def quick(request: Nothing) -> None:
            return

        waiting: Tool[Any, Any] = Tool("waits", "It waits.", Number, None, waits, parallel=True)
        tools = [
            waiting,
            tool_of(fails, "fails", parallel=True),
            tool_of(quick, "quick", parallel=True),
        ]
        wanted = [("quick", "{}"), ("waits", '{"n":0}'), ("fails", "{}"), ("waits", '{"n":1}'), ("quick", "{}")]
        events: list[Event] = []
        with pytest.raises(ToolLoopToolError, match="'fails' failed: LookupError: broken") as caught:
            await run_tool_loop(HELLO, tools, ScriptedModel([calls(*wanted)]), concurrency=3, emit=events.append)
        error = caught.value
        assert isinstance(error.__cause__, LookupError)
        assert sorted(closed) == [0, 1]
        statuses = [record.status for record in error.tool_calls]
        assert statuses[:4] == ["ok", "cancelled", "error", "cancelled"]
        assert statuses[4] in ("ok", "not_executed", "cancelled")
        assert check(error.messages) == []
        told = {event.record.op for event in events if isinstance(event, ToolResult)}
        assert told >= {"t1.0", "t1.1", "t1.2", "t1.3"}

    run(main())


def test_calls_that_wait_for_a_place_never_start_after_one_failed() -> None:
    async def main() -> None:
        ran: list[str] = []

        async def handler(request: Nothing, context: ToolContext) -> None:
            ran.append(context.op)
            await asyncio.sleep(0)
            raise LookupError

        with pytest.raises(ToolLoopToolError) as caught:
            await _batch("pppppp", [tool_of(handler, "p", parallel=True)], 2)
        assert ran == ["t1.0", "t1.1"]
        assert [record.status for record in caught.value.tool_calls][2:] == ["not_executed"] * 4

    run(main())


@pytest.mark.parametrize("error", [LookupError("broken"), ToolError("try another")])
def test_one_that_fails_under_report_leaves_its_siblings_alone(error: Exception) -> None:
    async def main() -> None:
        failed = asyncio.Event()

        async def waits(request: Nothing) -> None:
            await asyncio.wait_for(failed.wait(), 5)

        async def fails(request: Nothing) -> None:
            asyncio.get_running_loop().call_soon(failed.set)
            raise error

        tools = [tool_of(waits, "w", parallel=True), tool_of(fails, "f", parallel=True)]
        result = await _batch("wfw", tools, 3, tool_errors="report")
        assert [record.status for record in result.tool_calls] == ["ok", "error", "ok"]

    run(main())


def test_two_that_fail_together_end_the_turn_with_the_first_and_both_are_told() -> None:
    async def main() -> None:
        meeting = Meeting(2)

        async def fails(request: Nothing, context: ToolContext) -> None:
            await meeting(request, context)
            raise LookupError(context.op)

        with pytest.raises(ToolLoopToolError, match=r"LookupError: t1\.[01]") as caught:
            await _batch("ff", [tool_of(fails, "f", parallel=True)], 2)
        assert {record.status for record in caught.value.tool_calls} <= {"error", "cancelled"}
        assert check(caught.value.messages) == []

    run(main())


def test_a_cancel_from_inside_one_of_them_cancels_the_turn_and_its_siblings() -> None:
    async def main() -> None:
        waiting = Signal()

        async def waits(request: Nothing) -> None:
            waiting.set()
            await asyncio.Event().wait()

        async def cancels(request: Nothing) -> None:
            await waiting.wait()
            raise asyncio.CancelledError

        turn = Turn()
        tools = [tool_of(waits, "w", parallel=True), tool_of(cancels, "c", parallel=True)]
        with pytest.raises(asyncio.CancelledError):
            await _batch("wc", tools, 2, turn=turn)
        assert [record.status for record in turn.records] == ["cancelled", "cancelled"]
        assert check(turn.messages) == []

    run(main())


def test_an_audience_that_raises_ends_the_turn_and_the_siblings_with_it() -> None:
    async def main() -> None:
        class Full(Exception):
            pass

        def emit(event: Event) -> None:
            if event.type == "tool_result":
                raise Full

        waiting = Signal()
        closed: list[int] = []

        async def waits(request: Nothing) -> None:
            try:
                waiting.set()
                await asyncio.Event().wait()
            finally:
                closed.append(1)

        async def quick(request: Nothing) -> None:
            await waiting.wait()

        turn = Turn()
        tools = [tool_of(waits, "w", parallel=True), tool_of(quick, "q", parallel=True)]
        with pytest.raises(Full):
            await _batch("wq", tools, 2, turn=turn, emit=emit)
        assert closed == [1]
        assert check(turn.messages) == []

    run(main())


def test_a_turn_inside_of_a_parallel_tool_runs_beside_its_siblings() -> None:
    async def main() -> None:
        meeting = Meeting(4)

        async def nested(request: Nothing) -> None:
            await _batch("pp", [tool_of(meeting, "p", parallel=True)], 2)

        result = await _batch("nn", [tool_of(nested, "n", parallel=True)], 2)
        assert [record.status for record in result.tool_calls] == ["ok", "ok"]
        assert meeting.most == 4

    run(main())


def test_a_concurrency_below_one_is_refused_before_anything_is_asked() -> None:
    done = python(
        """
        async def act(request):
            return None

        for concurrency in (0, -1):
            model = ScriptedModel([calls(("act", "{}"), ("act", "{}")), "done"])
            try:
                asyncio.run(run_tool_loop(HELLO, [tool_of(act, parallel=True)], model, concurrency=concurrency))
            except ValueError as exc:
                print("concurrency" in str(exc), len(model.requests))
        """,
        seconds=10,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 0\n" * 2, "")
