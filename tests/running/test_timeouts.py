"""A tool has a time of its own; when it is over, the call is too."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolturn import ToolLoopToolError, ToolTimeoutError, Turn, run_tool_loop
from toolturn.testing import ScriptedModel, calls
from toolturn.tools.running import LeftBehind

from .support import BOUND, HELLO, Nothing, Signal, one_call, run, tool_of

SHORT = 0.03


async def _for_ever(request: Nothing) -> None:
    await asyncio.Event().wait()


def test_a_call_that_takes_too_long_is_told_to_the_model_under_report() -> None:
    record = one_call(_for_ever, tool_options={"timeout": SHORT})
    assert record.status == "timeout"
    assert record.message.content == (
        '{"error": "tool_timeout", "detail": "the call did not finish within 0.03 seconds"}'
    )
    assert record.error == "ToolTimeoutError: tool 'act' took longer than 0.03 seconds"
    assert record.seconds >= SHORT * 0.9


def test_a_call_that_takes_too_long_ends_the_turn_under_raise() -> None:
    with pytest.raises(ToolLoopToolError, match="'act' took longer than") as caught:
        run(
            run_tool_loop(
                HELLO, [tool_of(_for_ever, timeout=SHORT)], ScriptedModel([calls(("act", "{}"), ("act", "{}"))])
            )
        )
    assert isinstance(caught.value.__cause__, ToolTimeoutError)
    assert [record.status for record in caught.value.tool_calls] == ["timeout", "not_executed"]


def test_a_handler_cleans_up_before_the_timeout_is_told() -> None:
    order: list[str] = []

    async def handler(request: Nothing) -> None:
        try:
            await _for_ever(request)
        finally:
            await asyncio.sleep(0)
            order.append("cleaned up")

    record = one_call(handler, tool_options={"timeout": SHORT})
    assert record.status == "timeout"
    assert order == ["cleaned up"]


def test_what_a_handler_makes_of_its_timeout_is_still_a_timeout() -> None:
    async def returns(request: Nothing) -> None:
        try:
            await _for_ever(request)
        except asyncio.CancelledError:
            return

    async def raises(request: Nothing) -> None:
        try:
            await _for_ever(request)
        except asyncio.CancelledError:
            raise LookupError("something else") from None

    for handler in (returns, raises):
        assert one_call(handler, tool_options={"timeout": SHORT}).status == "timeout"


def test_a_timeout_error_of_the_handler_itself_is_a_failure_and_no_timeout() -> None:
    async def handler(request: Nothing) -> None:
        raise TimeoutError("the server was slow")

    record = one_call(handler, tool_options={"timeout": BOUND})
    assert record.status == "error"
    assert record.error == "TimeoutError: the server was slow"


def test_the_timeout_of_a_tool_that_the_handler_runs_is_no_timeout_of_its_own() -> None:
    inner = tool_of(_for_ever, "inner", timeout=SHORT)

    async def handler(request: Nothing) -> None:
        await inner.execute(request)

    record = one_call(handler, tool_options={"timeout": BOUND})
    assert record.status == "error"
    assert record.error == "ToolTimeoutError: tool 'inner' took longer than 0.03 seconds"


def test_a_call_that_is_quick_enough_does_not_feel_its_timeout() -> None:
    async def handler(request: Nothing) -> None:
        await asyncio.sleep(0)

    assert one_call(handler, tool_options={"timeout": BOUND}).status == "ok"
    assert one_call(lambda request: None, tool_options={"timeout": BOUND}).status == "ok"


def test_a_thread_that_ends_within_the_grace_after_its_timeout_is_a_timeout() -> None:
    async def main() -> None:
        release = threading.Event()
        asyncio.get_running_loop().call_later(3 * SHORT, release.set)
        tool = tool_of(lambda request: release.wait(BOUND) and None, timeout=SHORT)
        result = await run_tool_loop(
            HELLO, [tool], ScriptedModel([calls(("act", "{}")), "done"]), tool_errors="report", grace=BOUND
        )
        assert [record.status for record in result.tool_calls] == ["timeout"]

    run(main())


def test_a_thread_that_outlives_its_timeout_and_the_grace_has_an_outcome_that_is_not_known() -> None:
    release = threading.Event()
    try:
        record = one_call(lambda request: release.wait(BOUND) and None, tool_options={"timeout": SHORT}, grace=SHORT)
    finally:
        release.set()
    assert record.status == "outcome_unknown"
    assert "left behind" in str(record.message.content)
    assert "took longer" in record.error


def test_the_turn_goes_on_after_a_timeout_and_the_next_call_has_its_whole_time() -> None:
    runs: list[int] = []

    async def handler(request: Nothing) -> None:
        runs.append(1)
        if len(runs) == 1:
            await _for_ever(request)

    result = run(
        run_tool_loop(
            HELLO,
            [tool_of(handler, timeout=SHORT)],
            ScriptedModel([calls(("act", "{}"), ("act", "{}")), "done"]),
            tool_errors="report",
        )
    )
    assert [record.status for record in result.tool_calls] == ["timeout", "ok"]


def test_a_cancel_while_a_timed_tool_runs_is_a_cancel() -> None:
    async def main() -> None:
        begun, turn = Signal(), Turn()

        async def handler(request: Nothing) -> None:
            begun.set()
            await _for_ever(request)

        task = asyncio.ensure_future(
            run_tool_loop(HELLO, [tool_of(handler, timeout=BOUND)], ScriptedModel([calls(("act", "{}"))]), turn=turn)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["cancelled"]

    run(main())


def test_a_cancel_while_a_timed_thread_runs_leaves_it_behind() -> None:
    async def main() -> None:
        begun, release, turn = Signal(), threading.Event(), Turn()

        def handler(request: Nothing) -> None:
            begun.set()
            release.wait(BOUND)

        task = asyncio.ensure_future(
            run_tool_loop(
                HELLO,
                [tool_of(handler, timeout=BOUND)],
                ScriptedModel([calls(("act", "{}"))]),
                turn=turn,
                grace=SHORT,
            )
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        assert [record.status for record in turn.records] == ["outcome_unknown"]

    run(main())


def test_outside_of_a_turn_a_timeout_is_an_error_that_tells_whether_the_handler_still_runs() -> None:
    async def main() -> None:
        with pytest.raises(ToolTimeoutError, match=r"tool 'act' took longer than 0\.03 seconds") as caught:
            await tool_of(_for_ever, timeout=SHORT).execute(Nothing())
        assert caught.value.__cause__ is None

        release = threading.Event()
        blocked: Any = tool_of(lambda request: release.wait(BOUND) and None, timeout=SHORT)
        with pytest.raises(ToolTimeoutError) as caught:
            await blocked.execute(Nothing(), grace=SHORT)
        release.set()
        assert isinstance(caught.value.__cause__, LeftBehind)

    run(main())


@pytest.mark.parametrize("seconds", [0, -1, -0.5])
def test_a_timeout_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="the timeout of tool 'act' must be a positive number of seconds"):
        tool_of(_for_ever, timeout=seconds)


def test_a_timeout_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="the timeout of tool 'act' must be a positive number of seconds"):
        tool_of(_for_ever, timeout=float("nan"))
