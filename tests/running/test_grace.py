"""A cancelled handler has a bounded time to clean up; the bound is kept whatever the handler does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from toolturn import Limits, ToolLoopDeadlineError, ToolLoopToolError, ToolTimeoutError, Turn, run_tool_loop
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, Signal, python, run, tool_of

GRACE = 0.05
SOON = 1.0
"""Far more than the grace, far less than what the handlers here would take."""

Handler = Callable[[Nothing], Awaitable[None]]


async def _cancelled(handler: Handler, begun: Signal, *, grace: float = GRACE, **options: Any) -> tuple[Turn, float]:
    """Cancel a turn while the handler runs; return the turn and how long the cancel took."""
    turn = Turn()
    model = ScriptedModel([calls(("act", "{}"), ("act", "{}"))])
    task = asyncio.ensure_future(run_tool_loop(HELLO, [tool_of(handler, **options)], model, turn=turn, grace=grace))
    await begun.wait()
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert check(turn.messages) == []
    return turn, time.monotonic() - start


def _statuses(turn: Turn) -> list[str]:
    return [record.status for record in turn.records]


async def _for_ever() -> None:
    await asyncio.Event().wait()


def test_a_handler_that_cleans_up_within_its_grace_is_cancelled_and_its_cleanup_is_complete() -> None:
    async def main() -> None:
        begun, cleaned = Signal(), []

        async def handler(request: Nothing) -> None:
            try:
                begun.set()
                await _for_ever()
            finally:
                for step in range(10):
                    await asyncio.sleep(0)
                    cleaned.append(step)

        turn, _ = await _cancelled(handler, begun, grace=10)
        assert cleaned == list(range(10))
        assert _statuses(turn) == ["cancelled", "not_executed"]

    run(main())


def test_a_handler_whose_cleanup_takes_longer_than_its_grace_is_left_behind() -> None:
    async def main() -> None:
        begun, order = Signal(), []

        async def handler(request: Nothing) -> None:
            try:
                begun.set()
                await _for_ever()
            finally:
                try:
                    await _for_ever()
                finally:
                    order.append("closed")

        turn, seconds = await _cancelled(handler, begun)
        assert order == ["closed"]
        assert _statuses(turn) == ["outcome_unknown", "not_executed"]
        assert GRACE * 0.9 < seconds < SOON

    run(main())


def test_a_handler_that_swallows_each_cancel_is_left_behind_after_its_grace() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            while True:
                try:
                    begun.set()
                    await _for_ever()
                except asyncio.CancelledError:
                    continue

        turn, seconds = await _cancelled(handler, begun)
        assert _statuses(turn) == ["outcome_unknown", "not_executed"]
        assert seconds < SOON

    run(main())


def test_a_handler_that_ignores_even_its_being_closed_is_left_behind_after_its_grace() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            begun.set()
            for _ in range(100):
                with suppress(BaseException):
                    await _for_ever()

        turn, seconds = await _cancelled(handler, begun)
        assert _statuses(turn) == ["outcome_unknown", "not_executed"]
        assert seconds < SOON

    run(main())


def test_a_handler_that_raises_while_it_is_closed_is_left_behind_without_a_complaint() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            try:
                try:
                    begun.set()
                    await _for_ever()
                finally:
                    await _for_ever()
            except GeneratorExit:
                raise LookupError("while it was closed") from None

        turn, _ = await _cancelled(handler, begun)
        assert _statuses(turn) == ["outcome_unknown", "not_executed"]

    run(main())


@pytest.mark.parametrize("error", [ValueError("cleanup"), SystemExit(3), BaseExceptionGroup("two", [ValueError()])])
def test_what_a_handler_raises_while_it_cleans_up_does_not_replace_the_cancel(error: BaseException) -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            try:
                begun.set()
                await _for_ever()
            finally:
                await asyncio.sleep(0)
                raise error

        turn, _ = await _cancelled(handler, begun)
        assert _statuses(turn) == ["cancelled", "not_executed"]

    run(main())


def test_a_handler_that_returns_instead_of_ending_with_the_cancel_is_cancelled_all_the_same() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            try:
                begun.set()
                await _for_ever()
            except asyncio.CancelledError:
                return

        turn, _ = await _cancelled(handler, begun)
        assert _statuses(turn) == ["cancelled", "not_executed"]

    run(main())


def test_an_interrupt_in_a_cleanup_goes_on_to_the_caller() -> None:
    async def main() -> None:
        begun = Signal()

        async def handler(request: Nothing) -> None:
            try:
                begun.set()
                await _for_ever()
            finally:
                raise KeyboardInterrupt

        await _cancelled(handler, begun)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def _slow_child() -> Callable[[Signal], Handler]:
    async def child() -> None:
        try:
            await _for_ever()
        finally:
            await asyncio.sleep(3 * SOON)

    def make(begun: Signal) -> Handler:
        async def handler(request: Nothing) -> None:
            asyncio.get_running_loop().call_soon(begun.set)
            await asyncio.gather(child(), child())

        return handler

    return make


def test_the_grace_is_kept_when_the_handler_waits_for_tasks_of_its_own_that_clean_up_slowly() -> None:
    async def main() -> None:
        begun = Signal()
        turn, seconds = await _cancelled(_slow_child()(begun), begun)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        assert seconds < SOON
        assert _statuses(turn) == ["outcome_unknown", "not_executed"]

    run(main())


def test_a_handler_that_refuses_to_end_does_not_hide_the_timeout_of_the_caller() -> None:
    async def main() -> None:
        async def handler(request: Nothing) -> None:
            while True:
                try:
                    await _for_ever()
                except asyncio.CancelledError:
                    continue

        turn = Turn()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await run_tool_loop(
                    HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn, grace=GRACE
                )
        assert _statuses(turn) == ["outcome_unknown"]

    run(main())


def test_a_handler_that_refuses_to_end_does_not_hide_the_deadline_of_the_turn() -> None:
    async def main() -> None:
        async def handler(request: Nothing) -> None:
            while True:
                try:
                    await _for_ever()
                except asyncio.CancelledError:
                    continue

        with pytest.raises(ToolLoopDeadlineError) as caught:
            await run_tool_loop(
                HELLO,
                [tool_of(handler)],
                ScriptedModel([calls(("act", "{}"))]),
                limits=Limits(deadline=0.05),
                grace=GRACE,
            )
        assert [record.status for record in caught.value.tool_calls] == ["outcome_unknown"]

    run(main())


def test_a_handler_that_refuses_to_end_at_its_timeout_has_an_outcome_that_is_not_known() -> None:
    async def main() -> None:
        async def handler(request: Nothing) -> None:
            while True:
                try:
                    await _for_ever()
                except asyncio.CancelledError:
                    continue

        with pytest.raises(ToolLoopToolError) as caught:
            await run_tool_loop(
                HELLO, [tool_of(handler, timeout=0.02)], ScriptedModel([calls(("act", "{}"))]), grace=GRACE
            )
        assert isinstance(caught.value.__cause__, ToolTimeoutError)
        assert [record.status for record in caught.value.tool_calls] == ["outcome_unknown"]

    run(main())


def test_a_turn_whose_coroutine_is_closed_closes_its_handler() -> None:
    async def main(steps: int) -> list[str]:
        order: list[str] = []

        async def handler(request: Nothing) -> None:
            try:
                order.append("began")
                await _for_ever()
            except asyncio.CancelledError:
                order.append("cancelled")
                await _for_ever()
            finally:
                order.append("ended")

        turn = Turn()
        loop = run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn)
        loop.send(None)
        if steps:
            loop.throw(asyncio.CancelledError())
        loop.close()
        assert check(turn.messages) == []
        return order

    assert run(main(0)) == ["began", "ended"]
    assert run(main(1)) == ["began", "cancelled", "ended"]


def test_a_handler_that_ignores_everything_does_not_spin_when_the_process_ends() -> None:
    done = python(
        """
        async def stubborn(request):
            loop = asyncio.get_running_loop()
            while True:
                try:
                    loop.call_soon(int)  # raises once the loop is closed, as most things do at the end
                    await loop.create_future()
                except BaseException:
                    continue

        # something that outlives the modules, as test runners and debuggers do
        kept = sys.modules["toolturn.tools.running"]
        threading.Thread(target=lambda module: threading.Event().wait(), args=(kept,), daemon=True).start()
        del kept

        tools = [tool_of(stubborn, timeout=0.05)]
        model = ScriptedModel([calls(("act", "{}")), "done"])
        print(asyncio.run(run_tool_loop(HELLO, tools, model, tool_errors="report", grace=0.05)).content)
        """,
        seconds=10,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_handlers_left_behind_do_not_keep_the_process_from_ending() -> None:
    done = python(
        """
        async def stubborn(request):
            while True:
                try:
                    await asyncio.Event().wait()
                except BaseException:
                    continue

        def blocked(request):
            threading.Event().wait()

        for handler in (stubborn, blocked):
            tool = tool_of(handler, timeout=0.05)
            model = ScriptedModel([calls(("act", "{}")), "done"])
            result = asyncio.run(run_tool_loop(HELLO, [tool], model, tool_errors="report", grace=0.05))
            print(result.content, result.tool_calls[0].status)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done outcome_unknown\n" * 2, "")
