"""run_tool_loop_sync: the same turn from code that has no event loop, and from code that has one."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from toolturn import (
    ChatResponse,
    Limits,
    ToolLoopIterationLimitError,
    ToolLoopResult,
    ToolLoopToolError,
    Turn,
    run_tool_loop_sync,
)
from toolturn.testing import ScriptedModel, calls

from .support import BOUND, HELLO, PRELUDE, Nothing, counting, environment, outline, python, run, tool_of


def _turn(tools: list[Any], *batches: Any, **options: Any) -> ToolLoopResult:
    with ScriptedModel([*(batches or [calls(("1", "act", "{}"))]), "done"]) as model:
        return run_tool_loop_sync(HELLO, tools, model, **options)


def test_from_plain_code() -> None:
    tool, runs = counting()
    assert _turn([tool]).content == "done"
    assert runs == [0]


def test_its_result_is_that_of_the_awaited_turn() -> None:
    from toolturn import run_tool_loop

    tool, _ = counting()
    awaited = run(run_tool_loop(HELLO, [tool], ScriptedModel([calls(("1", "act", "{}")), "done"]), turn_id="t"))
    assert outline(_turn([tool], turn_id="t")) == outline(awaited)


def test_it_takes_the_options_of_the_awaited_turn() -> None:
    tool, _ = counting()
    turn = Turn()
    result = run_tool_loop_sync(
        HELLO,
        [tool],
        ScriptedModel([calls(("act", "{}")), "what I know"]),
        limits=Limits(iterations=1),
        on_limit="answer",
        turn=turn,
    )
    assert (result.content, result.limit) == ("what I know", "iterations")
    assert turn.exit is result


def test_its_errors_are_those_of_the_awaited_turn() -> None:
    tool, _ = counting()
    with pytest.raises(ToolLoopIterationLimitError):
        run_tool_loop_sync(HELLO, [tool], ScriptedModel([calls(("act", "{}"))]), max_iterations=1)
    with pytest.raises(ToolLoopToolError):
        _turn([tool_of(lambda request: 1 / 0)])
    error = LookupError("mine")
    with pytest.raises(LookupError) as caught:
        run_tool_loop_sync(HELLO, [], ScriptedModel([error]))
    assert caught.value is error
    with pytest.raises(ValueError, match="max_iterations"):
        run_tool_loop_sync(HELLO, [], ScriptedModel([]), max_iterations=0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        run_tool_loop_sync(HELLO, [], ScriptedModel([]), nonsense=1)


def test_inside_of_a_running_loop() -> None:
    async def main() -> None:
        tool, runs = counting()
        assert _turn([tool]).content == "done"
        assert runs == [0]

    run(main())


def test_all_turns_share_one_loop_so_that_a_model_may_keep_its_connections() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def model(messages: Any, tools: Any) -> ChatResponse:
        loops.append(asyncio.get_running_loop())
        return ChatResponse("done")

    for _ in range(3):
        run_tool_loop_sync(HELLO, [], model)
    assert loops[0] is loops[1] is loops[2]


def test_context_variables_of_the_caller_are_seen() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def model(messages: Any, tools: Any) -> ChatResponse:
        seen.append(variable.get())
        return ChatResponse("done")

    variable.set("set by the caller")
    run_tool_loop_sync(HELLO, [], model)
    assert seen == ["set by the caller"]


def test_turns_from_several_threads_run_at_once() -> None:
    size = 8
    together = threading.Barrier(size)
    results: list[str] = []

    def turn() -> None:
        def handler(request: Nothing) -> None:
            together.wait(BOUND)

        results.append(_turn([tool_of(handler)]).content)

    threads = [threading.Thread(target=turn) for _ in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert results == ["done"] * size


@pytest.mark.parametrize("run_in_thread", [True, False])
def test_a_turn_inside_of_a_tool_of_such_a_turn(run_in_thread: bool) -> None:
    inner, runs = counting("inner")

    def nested(request: Nothing) -> None:
        assert _turn([inner], calls(("inner", "{}"))).content == "done"

    assert _turn([tool_of(nested, run_in_thread=run_in_thread)]).content == "done"
    assert runs == [0]


@pytest.mark.parametrize("run_in_thread", [True, False])
def test_an_error_of_a_turn_inside_of_a_tool_is_a_failure_of_the_tool(run_in_thread: bool) -> None:
    def nested(request: Nothing) -> None:
        run_tool_loop_sync(HELLO, [], ScriptedModel([LookupError("mine")]))

    with pytest.raises(ToolLoopToolError, match="LookupError: mine"):
        _turn([tool_of(nested, run_in_thread=run_in_thread)])


@pytest.mark.parametrize("kinds", ["aaaa", "abab", "baba", "aabb"])
def test_turns_inside_of_tools_may_be_nested_deeply(kinds: str) -> None:
    done = python(
        f"""
        def nested(kinds):
            def blocking(request):
                print(kinds, flush=True)
                if kinds[1:]:
                    nested(kinds[1:])

            async def waiting(request):
                blocking(request)

            model = ScriptedModel([calls(("act", "{{}}")), "done"])
            tool = tool_of(waiting if kinds[0] == "a" else blocking)
            return run_tool_loop_sync(HELLO, [tool], model)

        print(nested({kinds!r}).content)
        """,
        seconds=10,
    )
    said = "".join(kinds[start:] + "\n" for start in range(len(kinds)))
    assert (done.returncode, done.stdout, done.stderr) == (0, said + "done\n", "")


@pytest.mark.parametrize("run_in_thread", [True, False])
def test_context_variables_are_seen_in_a_turn_inside_of_a_tool(run_in_thread: bool) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def handler(request: Nothing) -> None:
        seen.append(variable.get())

    def nested(request: Nothing) -> None:
        _turn([tool_of(handler)])

    variable.set("set by the caller")
    _turn([tool_of(nested, run_in_thread=run_in_thread)])
    assert seen == ["set by the caller"]


def test_the_turn_is_over_when_it_returns() -> None:
    order: list[str] = []

    async def handler(request: Nothing) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            order.append("cleaned up")

    with pytest.raises(ToolLoopToolError):
        _turn([tool_of(handler, timeout=0.03)])
    assert order == ["cleaned up"]


STOPS = {
    "an exit of the model": """
        async def model(messages, tools):
            raise SystemExit(3)
        expected, tools = SystemExit, []
        """,
    "an interrupt in the model": """
        async def model(messages, tools):
            raise KeyboardInterrupt
        expected, tools = KeyboardInterrupt, []
        """,
    "an interrupt in a tool": """
        def handler(request):
            raise KeyboardInterrupt
        model = ScriptedModel([calls(("act", "{}"))])
        expected, tools = KeyboardInterrupt, [tool_of(handler)]
        """,
    "an interrupt in one of several tools that run together": """
        async def handler(request):
            raise KeyboardInterrupt
        model = ScriptedModel([calls(("act", "{}"), ("act", "{}"))])
        expected, tools = KeyboardInterrupt, [tool_of(handler, parallel=True)]
        """,
    "an exit in a task that a tool made": """
        async def leave():
            raise SystemExit(3)

        async def handler(request):
            await asyncio.create_task(leave())
        model = ScriptedModel([calls(("act", "{}"))])
        expected, tools = ToolLoopToolError, [tool_of(handler)]
        """,
}


@pytest.mark.parametrize("program", STOPS.values(), ids=STOPS)
def test_what_ends_a_program_reaches_the_caller_and_the_next_turn_runs_as_ever(program: str) -> None:
    done = python(
        textwrap.dedent(program)
        + textwrap.dedent(
            """
            try:
                run_tool_loop_sync(HELLO, tools, model, concurrency=2)
            except expected:
                print("raised")
            print(run_tool_loop_sync(HELLO, [], ScriptedModel(["done"])).content)
            """
        ),
        seconds=10,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "raised\ndone\n", "")


def _interrupted(program: str) -> tuple[int, str, str]:
    """Run a program until it says "begun", press Ctrl-C, and return its end and what else it said."""
    # a shell may start what runs in the background with the signal ignored
    listening = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + listening + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=BOUND)
    finally:
        child.kill()
    return child.returncode, output, errors


def test_ctrl_c_cancels_the_turn_waits_for_its_cleanup_and_goes_on() -> None:
    code, output, errors = _interrupted(
        """
        async def handler(request):
            try:
                print("begun", flush=True)
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
                print("cleaned up", flush=True)

        turn = Turn()
        try:
            run_tool_loop_sync(HELLO, [tool_of(handler)], ScriptedModel([calls(("act", "{}"))]), turn=turn)
        finally:
            print(turn.phase, [record.status for record in turn.records], flush=True)
        """
    )
    assert output == "cleaned up\nended ['cancelled']\n"
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "never" not in errors


def test_ctrl_c_while_a_thread_works_leaves_it_behind_after_the_grace() -> None:
    ended = _interrupted(
        """
        def handler(request):
            print("begun", flush=True)
            threading.Event().wait()

        model = ScriptedModel([calls(("act", "{}"))])
        turn = Turn()
        try:
            run_tool_loop_sync(HELLO, [tool_of(handler)], model, turn=turn, grace=0.05)
        except KeyboardInterrupt:
            print([record.status for record in turn.records], flush=True)
        """
    )
    assert ended == (0, "['outcome_unknown']\n", "")


def test_ctrl_c_is_raised_also_when_the_turn_comes_to_an_answer_all_the_same() -> None:
    ended = _interrupted(
        """
        async def model(messages, tools):
            try:
                print("begun", flush=True)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return ChatResponse("an answer")

        turn = Turn()
        try:
            run_tool_loop_sync(HELLO, [], model, turn=turn)
        except KeyboardInterrupt:
            print(turn.exit.content)
        """
    )
    assert ended == (0, "an answer\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork_the_child_has_a_loop_and_threads_of_its_own() -> None:
    done = python(
        """
        import gc, warnings

        def turn():
            tool = tool_of(lambda request: None)
            return run_tool_loop_sync(HELLO, [tool], ScriptedModel([calls(("act", "{}")), "done"])).content

        print(turn(), flush=True)
        # some versions of Python warn of every fork beside a thread
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            gc.collect()
            print("child", turn(), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("parent", turn())
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\nchild done\nparent done\n", "")


def test_the_background_loop_does_not_keep_the_process_from_ending() -> None:
    done = python('print(run_tool_loop_sync(HELLO, [], ScriptedModel(["done"])).content)')
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
