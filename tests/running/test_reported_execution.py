"""Reported ways in which running a tool goes wrong: what it raises, returns, holds up, leaves behind, and is called."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatModel,
    ChatResponse,
    Limits,
    ModelUnavailableError,
    ToolContext,
    ToolDef,
    ToolError,
    ToolLoopError,
    ToolLoopModelError,
    Turn,
    resume,
    run_tool_loop,
    tool,
)
from toolturn.messages import text_of
from toolturn.model import Capabilities, ModelSettings
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, run, tool_of

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "execution_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
WHO: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_reported_execution_ends_as_it_should(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given, oracle = case["input"], case["oracle"]
    module = ModuleType("reported")
    monkeypatch.setitem(sys.modules, "reported", module)
    space = module.__dict__
    exec(given["python"], space)
    made = tool(name="f", description="It is reported.", **given.get("options", {}))(space["f"])
    model = ScriptedModel([calls(("f", given.get("arguments", "{}"))), "done"])
    turn = Turn()
    ticks = 0

    async def main() -> None:
        nonlocal ticks
        WHO.set("the caller")

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        beside = asyncio.ensure_future(tick())
        try:
            grace = given.get("grace", 5.0)
            await run_tool_loop(HELLO, [made], model, turn=turn, tool_errors="report", grace=grace)
        finally:
            beside.cancel()
            await asyncio.wait([beside])
        assert WHO.get() == "the caller"

    began = time.perf_counter()
    if "raises" in oracle:
        with pytest.raises(BaseException) as caught:
            run(main())
        assert type(caught.value).__name__ == oracle["raises"]
        assert check(turn.messages) == []
        assert turn.messages[-1].role == "tool"
        return
    run(main())
    assert time.perf_counter() - began < oracle.get("seconds", 20)
    assert turn.messages[-1].content == "done"
    (record,) = turn.records
    content = text_of(record.message.content)
    content.encode()
    assert record.status == oracle["status"]
    assert content
    assert content == oracle.get("content", content)
    assert all(part in content for part in oracle.get("content_has", ()))
    assert not any(part in content for part in oracle.get("content_lacks", ()))
    assert oracle.get("record_has", "") in str(record.error)
    assert len(content) <= oracle.get("content_max", len(content))
    assert ticks >= oracle.get("ticks", 0)
    if "json" in oracle or "strict_json" in oracle:
        value = json.loads(content, parse_constant=pytest.fail)
        assert value == oracle.get("json", value)
    if "global" in oracle:
        name, value = oracle["global"]
        assert space[name] == value


def test_all_that_can_happen_to_a_call_is_told_apart_in_the_audit() -> None:
    """https://github.com/MervinPraison/PraisonAI/issues/2957: time-out, permission and bug looked alike."""

    async def hangs(request: Nothing) -> None:
        await asyncio.sleep(30)

    async def breaks(request: Nothing) -> None:
        raise ValueError("a bug")

    async def refuses(request: Nothing) -> None:
        raise ToolError("not allowed")

    async def works(request: Nothing) -> None:
        pass

    async def main() -> None:
        tools = [
            tool_of(works, "works"),
            tool_of(breaks, "breaks"),
            tool_of(refuses, "refuses"),
            tool_of(hangs, "hangs", timeout=0.01),
            tool_of(works, "asks", approval=True),
        ]
        names = ["works", "breaks", "refuses", "hangs", "asks", "absent"]
        model = ScriptedModel([calls(*((name, "{}") for name in names), ("works", "no json")), "done"])
        options: dict[str, Any] = {"tool_errors": "report", "approve": lambda *_: False}
        result = await run_tool_loop(HELLO, tools, model, **options)
        told = [record.status for record in result.tool_calls]
        assert told == ["ok", "error", "error", "timeout", "denied", "unknown_tool", "invalid_arguments"]
        assert [record.error for record in result.tool_calls if record.error] == [
            "ValueError: a bug",
            "ToolTimeoutError: tool 'hangs' took longer than 0.01 seconds",
        ]

    run(main())


def test_what_works_on_after_its_timeout_is_never_run_again_by_a_resume() -> None:
    """https://github.com/echoVic/blade-agent-sdk/pull/2: the late effect, and then a second one by the retry."""
    effects: list[str] = []
    go_on, done = threading.Event(), threading.Event()

    def late(request: Nothing) -> None:
        go_on.wait(20)
        effects.append("late")
        done.set()

    async def main() -> None:
        tools = [tool_of(late, "pay", timeout=0.02)]
        model = ScriptedModel([calls(("pay", "{}")), "done"])
        one = Limits(iterations=1)
        with pytest.raises(ToolLoopError) as caught:
            await run_tool_loop(HELLO, tools, model, limits=one, grace=0.02, tool_errors="report")
        assert [record.status for record in caught.value.tool_calls] == ["outcome_unknown"]
        go_on.set()
        assert await asyncio.to_thread(done.wait, 20)
        result = await resume(caught.value, tools, model, limits=Limits(iterations=2))
        assert result.content == "done"

    run(main())
    assert effects == ["late"]


@pytest.mark.parametrize(("effect", "runs"), [("once", 1), ("keyed", 2), ("none", 2)])
def test_after_a_crash_between_effect_and_result_only_what_may_run_again_does(effect: Any, runs: int) -> None:
    """https://github.com/microsoft/agent-framework/issues/3938: refunds were made twice."""
    keys: list[str] = []
    states: list[str] = []
    turn = Turn()

    async def main() -> str:
        @tool(effect=effect)
        async def refund(context: ToolContext) -> str:
            """Pay back."""
            keys.append(context.key)
            if len(keys) == 1:
                states.append(turn.to_json())  # what a store would hold when the process dies here
                raise KeyboardInterrupt
            return "paid"

        model = ScriptedModel([calls(("refund", "{}")), "done"])
        await run_tool_loop(HELLO, [refund], model, turn=turn, turn_id="order-7")
        return ""

    with pytest.raises(KeyboardInterrupt):
        run(main())

    async def again() -> Any:
        @tool(effect=effect)
        async def refund(context: ToolContext) -> str:
            """Pay back."""
            keys.append(context.key)
            return "paid"

        return await resume(states[0], [refund], ScriptedModel(["done"]))

    result = run(again())
    assert result.content == "done"
    assert keys == ["order-7/t1.0"] * runs
    (record,) = result.tool_calls
    assert record.status == ("outcome_unknown" if runs == 1 else "ok")


class Broken(ChatModel):
    """A model whose server says more than it should."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        raise self._error


def test_an_error_of_the_model_never_reaches_the_transcript() -> None:
    """https://github.com/BerriAI/litellm/issues/8075: a key in an address stood in what users were shown."""

    async def main() -> None:
        with pytest.raises(ToolLoopModelError) as caught:
            await run_tool_loop(HELLO, [], Broken(ModelUnavailableError("503 for https://g.test/v1?key=AIza999")))
        assert caught.value.messages == HELLO
        assert isinstance(caught.value.__cause__, ModelUnavailableError)

    run(main())
