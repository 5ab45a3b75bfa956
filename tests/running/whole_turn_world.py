"""The model, the tools, the hooks and whoever approves, and what they did; each is as deterministic as the plan.

What a model says depends only on the iteration it is asked in, and what a tool gives only on its arguments. So two
ways through the same plan differ only where the turn does.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Any

from toolturn import (
    Approval,
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    Limits,
    ModelSettings,
    ModelStreamError,
    ModelUnavailableError,
    Tool,
    ToolCall,
    ToolContext,
    ToolDef,
    ToolError,
    ToolHook,
    ToolInvocation,
    ToolInvocationResult,
    ToolSet,
    Turn,
    Usage,
    run_tool_loop,
)
from toolturn.model import StreamItem
from toolturn.transcript import check

from .support import HELLO
from .whole_turn_clock import hold
from .whole_turn_plans import GRACE, LONG, Plan, Say
from .whole_turn_tools import Said, Task, behave, behave_in_thread, refuse

CLOSABLE = sys.version_info >= (3, 13)
"""Whether closing a coroutine closes the generator whose next item it awaits, too; before, one can only cancel it."""


class Broken(Exception):
    """What an audience raises."""


class OwnError(Exception):
    """What a model raises that is no ModelError."""


KINDS: dict[str, dict[str, Any]] = {
    "once": {},
    "pay": {"parallel": True},
    "look": {"effect": "none", "parallel": True},
    "send": {"effect": "keyed", "parallel": True},
    "block": {"effect": "none", "parallel": True},
    "block_once": {"parallel": True},
    "ask": {"approval": True, "parallel": True},
    "ask_if": {"approval": lambda task: task.n % 2, "effect": "keyed"},
    "brief": {"timeout": 2.0, "effect": "none", "parallel": True},
    "brief_block": {"timeout": 2.0, "parallel": True},
    "nested": {"effect": "none", "parallel": True},
    "plain": {"effect": "none"},
    "poll": {"effect": "none", "loop_key": False},
    "keyed": {"loop_key": lambda task: task.n},
    "direct": {"return_direct": True},
}
AGAIN = frozenset(name for name, options in KINDS.items() if options.get("effect", "once") != "once")
"""The tools that may run again."""


def price(usage: Usage) -> float:
    return usage.total / 4


class World:
    """Everything around a turn.

    Attributes:
        started: The operations whose handler ran and the tool, in order.
        open: What has begun and not ended: a handler by the name of its operation, ``model`` for a request.
        told: The statuses of the calls when the turn stopped the last time.
        asked: How many replies were asked for in this run.
        used: What the model reported, turns inside tools included.
        last: What the last reply of this turn used.
        wrong: What should never happen.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.turn = Turn()
        self.started: list[tuple[str, str]] = []
        self.open: dict[object, str] = {}
        self.told: dict[str, str] = {}
        self.asked = 0
        self.used = Usage()
        self.last = Usage()
        self.wrong: list[str] = []
        self.allowed: set[str] = set()
        self.denied: set[str] = set()
        self.tries: Counter[str] = Counter()
        self.tools = ToolSet([self._tool(name, options) for name, options in KINDS.items()])
        self.hooks = (ToolHook(self._before, self._after),) if plan.hooks else ()

    # --- tools -----------------------------------------------------------------------

    def _tool(self, name: str, options: dict[str, Any]) -> Tool[Task, Said]:
        handler: Callable[..., Any]
        if name == "plain":

            async def handler(request: Task) -> Any:
                with self.working("plain"):
                    return await behave(request, None)

        elif "block" in name:

            def handler(request: Task, context: ToolContext) -> Any:
                self._begins(name, request, context)
                with self.working(context.op):
                    return behave_in_thread(request, context)

        else:

            async def handler(request: Task, context: ToolContext) -> Any:
                self._begins(name, request, context)
                with self.working(context.op):
                    act = self.nested if name == "nested" else behave
                    return await act(request, context)

        return Tool(name, f"The tool {name}.", Task, Said, handler, **options)

    def _begins(self, name: str, request: Task, context: ToolContext) -> None:
        op = context.op
        again = any(op == before for before, _ in self.started)
        self.started.append((op, name))
        if again and (name not in AGAIN or self.told.get(op) not in ("cancelled", "outcome_unknown")):
            self.wrong.append(f"{op}, a call of {name} that ended as {self.told.get(op)}, ran again")
        if op in self.denied:
            self.wrong.append(f"{op} was denied and ran")
        if (name == "ask" or (name == "ask_if" and request.n % 2)) and op not in self.allowed:
            self.wrong.append(f"{op}, a call of {name}, ran without an approval")

    def stopped(self, turn: Turn) -> None:
        """Remember what is told of each call where the turn has stopped."""
        self.told = {record.op: record.status for record in turn.records}

    def died(self, saved: Turn, begun: int) -> None:
        """The process of a turn has died when it had been saved; what came after that has not happened.

        Args:
            saved: What is left of it.
            begun: How many calls had begun.
        """
        del self.started[begun:]
        self.used = saved.usage
        self.stopped(saved)

    @contextmanager
    def working(self, what: str) -> Any:
        """Something that has begun and has to end."""
        this = object()
        self.open[this] = what
        try:
            yield
        finally:
            self.open.pop(this, None)

    async def nested(self, request: Task, context: ToolContext) -> Said:
        """A tool that runs a turn; ``n`` further ones stand inside of each other."""

        async def inside(task: Task, context: ToolContext) -> Any:
            with self.working("inside"):
                return await (self.nested(task, context) if task.n > 0 else behave(task, context))

        async def model(messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> ChatResponse:
            with self.working("model inside"):
                await asyncio.sleep(0)
            used = Usage(10, 5)
            self._reports(used)
            if messages[-1].role == "tool":
                return ChatResponse(f"inside: {request.do}", usage=used)
            task = Task(do=request.do, n=request.n - 1)
            return ChatResponse("", None, [ToolCall("c", "inside", task.model_dump_json())], usage=used)

        turn = Turn(f"{context.key}!")
        tool = Tool("inside", "It is inside.", Task, Said, inside, effect="none")
        try:
            result = await run_tool_loop(HELLO, [tool], model, turn=turn, tool_errors="report", grace=GRACE)
        finally:
            if faults := check(turn.messages):
                self.wrong.append(f"the turn inside has a bad transcript: {faults}")
        return Said(word=result.content)

    # --- approval and hooks ----------------------------------------------------------

    def decision(self, op: str) -> Approval:
        """What is decided on an operation, by its name."""
        number, place = map(int, op[1:].split("."))
        return Approval((number + place) % 3 != 0, "not this one")

    def decide(self, op: str) -> Approval:
        """Decide, and remember it."""
        decision = self.decision(op)
        (self.allowed if decision.approved else self.denied).add(f"t{op[1:]}")
        return decision

    async def _approve(self, call: ToolCall, arguments: Task, context: ToolContext) -> Approval | bool:
        with self.working("approve"):
            await asyncio.sleep(arguments.n % 2)
        decision = self.decide(context.op)
        return decision if arguments.n else decision.approved

    def _approve_in_thread(self, call: ToolCall, arguments: Task, context: ToolContext) -> Approval:
        hold(0.25)
        return self.decide(context.op)

    @property
    def approve(self) -> Any:
        """Who decides, or None."""
        return {"nobody": None, "async": self._approve, "blocking": self._approve_in_thread}[self.plan.approve]

    async def _before(self, invocation: ToolInvocation) -> ToolInvocationResult | None:
        with self.working("hook"):
            await asyncio.sleep(0)
        if invocation.request.n == 3 and invocation.request.do == "wait":
            raise ToolError("the hook refuses")
        if invocation.request.n == 3 and invocation.request.do == "ok":
            return ToolInvocationResult("given by the hook", False)
        return None

    async def _after(self, invocation: ToolInvocation, result: ToolInvocationResult) -> ToolInvocationResult | None:
        with self.working("hook"):
            await asyncio.sleep(0)
        return None if invocation.request.n else ToolInvocationResult(f"{result.content}!", result.return_direct)

    # --- the model -------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """A ChatModel, or a plain callback."""
        return self._callback if self.plan.model == "callback" else Model(self)

    async def _callback(self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> ChatResponse:
        return await Model(self).complete(messages, tools)

    def asks(self, messages: tuple[ChatMessage, ...], forced: bool, settings: ModelSettings | None) -> tuple[Say, str]:
        """A reply is asked for; which one it is, and its name."""
        turn, replies = self.turn, self.plan.replies
        self.asked += 1
        if faults := check(messages):
            self.wrong.append(f"the model was sent a bad transcript: {faults}")
        if forced != (turn.phase == "forced"):
            self.wrong.append("tools were offered for a last answer, or none for another one")
        left = None if turn.limits.tokens is None else turn.limits.tokens - turn.usage.total
        given = None if settings is None else settings.max_tokens
        if self.plan.model != "callback" and left is not None and (given is None or given > left):
            self.wrong.append(f"the model may write {given} tokens where {left} are left")
        if forced:
            return self.plan.forced, "forced"
        number = turn.iterations
        return replies[number] if number < len(replies) else Say("finished"), str(number)

    def gives(self, say: Say, settings: ModelSettings | None) -> ChatResponse:
        """The reply is complete, and is paid for."""
        response = say.response(None if settings is None else settings.max_tokens)
        if response.usage is not None:
            self._reports(response.usage)
            self.last = Usage(response.usage.input, response.usage.output, cost=price(response.usage))
        else:
            self.last = Usage()
        return response

    def _reports(self, usage: Usage) -> None:
        self.used += Usage(usage.input, usage.output, cost=price(usage))

    def fails(self, say: Say, name: str) -> bool:
        """Whether this is the first try of a reply that fails then."""
        self.tries[name] += bool(say.fault)
        return bool(say.fault) and self.tries[name] == 1

    async def thinks(self, say: Say) -> None:
        """The model takes its time, and ends in its way when it is cancelled."""
        if say.delay is None:
            return
        try:
            await asyncio.sleep(say.delay)
        except asyncio.CancelledError:
            match self.plan.cleanup:
                case "slow":
                    await asyncio.sleep(GRACE / 2)
                case "too slow":
                    await asyncio.sleep(LONG)
                case "raises":
                    raise ModelUnavailableError("it was cancelled") from None
                case "refuses" if CLOSABLE or self.plan.model in ("plain", "callback"):
                    await refuse()
            raise


class Model(ChatModel):
    """The model of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def capabilities(self) -> Capabilities:
        kind = self._world.plan.model
        return Capabilities(kind in ("stream", "keeps tools"), True, tool_choice_none=kind == "keeps tools")

    def _asks(
        self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], settings: ModelSettings | None
    ) -> tuple[Say, str]:
        forced = not tools or (settings is not None and settings.tool_choice == "none")
        return self._world.asks(messages, forced, settings)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        world = self._world
        with world.working("model"):
            say, name = self._asks(messages, tools, settings)
            await world.thinks(say)
            if world.fails(say, name):
                raise _fault(say)
            return world.gives(say, settings)

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        world = self._world
        with world.working("model"):
            say, name = self._asks(messages, tools, settings)
            await world.thinks(say)
            fails = world.fails(say, name)
            if fails and say.fault in ("down", "own"):
                raise _fault(say)
            pieces = [say.text[place : place + 4] for place in range(0, len(say.text), 4)]
            for place, piece in enumerate(pieces):
                if fails and place == say.cut:
                    break
                yield Delta(piece)
                await asyncio.sleep(0)
            if fails and say.fault == "cut":
                raise _fault(say)
            if not fails:
                yield world.gives(say, settings)


def _fault(say: Say) -> Exception:
    if say.fault == "own":
        return OwnError("a fault of its own")
    if say.fault == "down":
        return ModelUnavailableError("nobody is there")
    return ModelStreamError("the model's stream ended before the reply was complete", partial=say.text)


def ample(plan: Plan) -> Limits:
    """Limits that no turn of such a plan comes to."""
    return Limits(iterations=60, tool_calls=200, result_bytes=plan.limits.result_bytes)
