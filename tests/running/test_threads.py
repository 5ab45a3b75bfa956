"""A handler that blocks runs in a worker thread: it holds nobody up, and nothing holds on to it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from toolturn import Tool, ToolContext, Turn, run_tool_loop, stream_tool_loop
from toolturn.testing import ScriptedModel, calls
from toolturn.tools.running import MAX_THREADS
from toolturn.transcript import check

from .support import BOUND, HELLO, Nothing, Signal, Word, one_call, python, record_of, run, tool_of

SHORT = 0.05


def test_a_blocking_handler_does_not_run_on_the_thread_of_the_event_loop() -> None:
    threads: list[threading.Thread] = []
    assert one_call(lambda request: threads.append(threading.current_thread())).status == "ok"
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


def test_the_loop_goes_on_while_a_handler_blocks() -> None:
    async def main() -> None:
        released = threading.Event()

        def handler(request: Nothing) -> None:
            assert released.wait(BOUND)

        turn = asyncio.ensure_future(
            run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}")), "done"]))
        )
        await asyncio.sleep(0)
        released.set()
        assert (await turn).content == "done"

    run(main())


def test_a_handler_bound_to_a_thread_may_stay_on_that_of_the_loop() -> None:
    threads: list[int] = []
    record = one_call(lambda request: threads.append(threading.get_ident()), tool_options={"run_in_thread": False})
    assert record.status == "ok"
    assert threads == [threading.get_ident()]


@pytest.mark.parametrize("run_in_thread", [True, False])
def test_an_awaitable_that_a_plain_function_returns_is_awaited_on_the_loop(run_in_thread: bool) -> None:
    threads: list[int] = []

    async def later() -> None:
        await asyncio.sleep(0)
        threads.append(threading.get_ident())

    record = one_call(lambda request: later(), tool_options={"run_in_thread": run_in_thread})
    assert record.status == "ok"
    assert threads == [threading.get_ident()]


def test_a_future_that_a_plain_function_returns_is_awaited() -> None:
    def handler(request: Nothing) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_result({"word": "later"})
        return future

    tool = tool_of(handler, run_in_thread=False, result_model=Word)
    assert record_of([tool], "act", "{}").message.content == '{"word":"later"}'


def test_context_variables_of_the_caller_are_seen_in_the_thread() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def main() -> None:
        variable.set("set by the caller")
        tool = tool_of(lambda request: seen.append(variable.get()))
        await run_tool_loop(HELLO, [tool], ScriptedModel([calls(("act", "{}")), "done"]))

    run(main())
    assert seen == ["set by the caller"]


def test_one_thread_serves_call_after_call() -> None:
    threads: set[int] = set()
    tool = tool_of(lambda request: threads.add(threading.get_ident()))
    batches = [calls(("act", "{}"), ("act", "{}")) for _ in range(3)]
    run(run_tool_loop(HELLO, [tool], ScriptedModel([*batches, "done"])))
    assert len(threads) == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration("no"), "RuntimeError: "),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
    ],
)
def test_what_a_blocking_handler_raises_is_the_failure_of_its_call(error: BaseException, text: str) -> None:
    def handler(request: Nothing) -> None:
        raise error

    record = one_call(handler)
    assert record.status == "error"
    assert record.error.startswith(text)


def test_an_interrupt_in_a_thread_goes_on_to_the_caller_and_leaves_a_valid_transcript() -> None:
    def handler(request: Nothing) -> None:
        raise KeyboardInterrupt

    turn = Turn()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(
            run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"), ("act", "{}"))]), turn=turn)
        )
    assert check(turn.messages) == []
    assert [record.status for record in turn.records] == ["cancelled", "not_executed"]


async def _stopped(handler: Callable[..., None], begun: Signal, turn: Turn, **options: Any) -> None:
    model = ScriptedModel([calls(("act", "{}"))])
    task = asyncio.ensure_future(run_tool_loop(HELLO, [tool_of(handler)], model, turn=turn, **options))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_thread_that_ends_within_the_grace_is_waited_for() -> None:
    async def main() -> None:
        begun, ended, turn = Signal(), threading.Event(), Turn()

        def handler(request: Nothing) -> None:
            begun.set()
            time.sleep(SHORT)
            ended.set()

        await _stopped(handler, begun, turn, grace=BOUND)
        assert ended.is_set()
        assert [record.status for record in turn.records] == ["cancelled"]

    run(main())


def test_a_thread_that_fails_within_the_grace_is_cancelled_and_nobody_is_told_of_its_failure() -> None:
    async def main() -> None:
        begun, release, turn = Signal(), threading.Event(), Turn()

        def handler(request: Nothing) -> None:
            begun.set()
            assert release.wait(BOUND)
            raise ValueError("too late")

        asyncio.get_running_loop().call_later(SHORT, release.set)
        await _stopped(handler, begun, turn, grace=BOUND)
        assert [record.status for record in turn.records] == ["cancelled"]

    run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_thread_that_outlives_the_grace_is_left_behind_and_its_end_is_not_heard(fails: bool) -> None:
    async def main() -> None:
        begun, release, ended, turn = Signal(), threading.Event(), Signal(), Turn()

        def handler(request: Nothing) -> None:
            begun.set()
            assert release.wait(BOUND)
            ended.set()
            if fails:
                raise ValueError("too late")

        await _stopped(handler, begun, turn, grace=SHORT)
        assert [record.status for record in turn.records] == ["outcome_unknown"]
        release.set()
        await ended.wait()
        await asyncio.sleep(SHORT)

    run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_second_cancel_leaves_a_thread_behind_as_what_it_is(fails: bool) -> None:
    async def main() -> None:
        begun, release, ended, turn = Signal(), threading.Event(), Signal(), Turn()

        def handler(request: Nothing) -> None:
            begun.set()
            assert release.wait(BOUND)
            ended.set()
            if fails:
                raise ValueError("too late")

        task = asyncio.ensure_future(
            run_tool_loop(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn, grace=SHORT)
        )
        await begun.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["outcome_unknown"]
        release.set()
        await ended.wait()
        await asyncio.sleep(SHORT)

    run(main())


def test_a_thread_that_outlives_its_loop_ends_in_peace() -> None:
    release, ended = threading.Event(), threading.Event()

    async def main() -> None:
        begun, turn = Signal(), Turn()

        def handler(request: Nothing) -> None:
            begun.set()
            assert release.wait(BOUND)
            ended.set()

        await _stopped(handler, begun, turn, grace=SHORT)

    run(main())
    release.set()
    assert ended.wait(BOUND)
    assert one_call(lambda request: None).status == "ok"


def test_threads_left_behind_hold_no_place() -> None:
    async def main() -> None:
        release = threading.Event()
        blocked = tool_of(lambda request: release.wait(BOUND) and None, timeout=SHORT, parallel=True)
        many = calls(*[("act", "{}") for _ in range(MAX_THREADS)])
        result = await run_tool_loop(
            HELLO,
            [blocked, tool_of(lambda request: None, "other")],
            ScriptedModel([many, calls(("other", "{}")), "done"]),
            max_tool_calls=MAX_THREADS + 1,
            tool_errors="report",
            concurrency=MAX_THREADS,
            grace=SHORT,
        )
        release.set()
        statuses = [record.status for record in result.tool_calls]
        assert statuses == ["outcome_unknown"] * MAX_THREADS + ["ok"]

    run(main())


def test_no_more_threads_than_the_bound_work_for_one_loop() -> None:
    most = MAX_THREADS + 8
    lock = threading.Lock()
    at_once = [0, 0]
    everybody = threading.Event()

    def handler(request: Nothing) -> None:
        with lock:
            at_once[0] += 1
            at_once[1] = max(at_once)
            if at_once[0] == MAX_THREADS:
                everybody.set()
        assert everybody.wait(BOUND)
        with lock:
            at_once[0] -= 1

    result = run(
        run_tool_loop(
            HELLO,
            [tool_of(handler, parallel=True)],
            ScriptedModel([calls(*[("act", "{}") for _ in range(most)]), "done"]),
            max_tool_calls=most,
            concurrency=most,
        )
    )
    assert {record.status for record in result.tool_calls} == {"ok"}
    assert at_once[1] == MAX_THREADS


def test_turns_inside_of_blocking_tools_do_not_take_each_others_places() -> None:
    done = python(
        f"""
        inner = tool_of(lambda request: None, "inner")
        together = threading.Barrier({MAX_THREADS})

        def nested(request):
            together.wait()
            run_tool_loop_sync(HELLO, [inner], ScriptedModel([calls(("inner", "{{}}")), "done"]))

        outer = tool_of(nested)

        def turn():
            run_tool_loop_sync(HELLO, [outer], ScriptedModel([calls(("act", "{{}}")), "done"]))

        threads = [threading.Thread(target=turn) for _ in range({MAX_THREADS})]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("done")
        """,
        seconds=15,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_all_of_it_works_in_the_debug_mode_of_asyncio() -> None:
    async def main() -> None:
        def blocking(request: Nothing, context: ToolContext) -> None:
            context.emit("half")

        async def waiting(request: Nothing) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.gather(asyncio.Event().wait())

        tools = [tool_of(blocking, "blocking", parallel=True), tool_of(waiting, "waiting", parallel=True)]
        model = ScriptedModel([calls(("blocking", "{}"), ("waiting", "{}"), ("waiting", "{}")), "done"])
        async with stream_tool_loop(HELLO, tools, model, concurrency=3) as events:
            kinds = [event.type async for event in events]
            result = await events.result()
        assert "tool_progress" in kinds
        assert [record.status for record in result.tool_calls] == ["ok", "ok", "ok"]

    asyncio.run(main(), debug=True)


def test_a_blocking_handler_is_given_its_context() -> None:
    keys: list[str] = []

    def handler(request: Nothing, context: ToolContext) -> None:
        keys.append(context.key)

    run(
        run_tool_loop(
            HELLO,
            [Tool("act", "It acts.", Nothing, None, handler)],
            ScriptedModel([calls(("act", "{}")), "done"]),
            turn_id="t",
        )
    )
    assert keys == ["t/t1.0"]
