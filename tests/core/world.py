"""A turn stepped by hand: the real tools and the real performer, a scripted model, no driver and no clock.

The model's reply depends only on the name of the operation it is asked in, and a tool's result only on its arguments
and on how often this very call was tried. So two ways through the same script differ only where the machine does.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from toolturn import (
    Approval,
    ChatMessage,
    ChatResponse,
    ModelUnavailableError,
    Performer,
    Tool,
    ToolCall,
    ToolCallRecord,
    ToolContext,
    ToolDef,
    ToolError,
    ToolSet,
    Turn,
    TurnContext,
)
from toolturn.perform import OpInterrupted
from toolturn.tools.running import LeftBehind
from toolturn.turn import CallModel, CallTool, Op, Outcome, ToolFailed, Valued

if TYPE_CHECKING:
    from .strategies import Script


class Words(BaseModel):
    text: str


_KINDS: dict[str, dict[str, Any]] = {
    "echo": {},
    "pay": {},
    "look": {"effect": "none", "parallel": True},
    "peek": {"effect": "none", "parallel": True},
    "send": {"effect": "keyed", "parallel": True},
    "direct": {"return_direct": True},
    "long": {},
    "fail": {},
    "ask": {"approval": True, "parallel": True},
    "ask_look": {"approval": True, "effect": "none"},
    "decline": {"parallel": True},
    "stopped": {},  # cancelled at its first try, like the next one
    "stopped_look": {"effect": "none", "parallel": True},
    "lost": {},  # left behind at its first try, like the next one
    "lost_send": {"effect": "keyed"},
}
TOOL_NAMES = tuple(_KINDS)
SAFE_TO_REPEAT = frozenset(name for name, options in _KINDS.items() if options.get("effect", "once") != "once")

OP_NAME = re.compile(r"m[1-9]\d*(~[1-9]\d*)?|[at][1-9]\d*\.\d+|f\d+")


def _tool(name: str, options: dict[str, Any]) -> Tool[Words, Words]:
    async def handler(request: Words, context: ToolContext) -> Words:
        world = context.data
        world.tries[context.op] += 1
        world.ran.append((context.op, name))
        first = world.tries[context.op] == 1
        if name == "fail":
            raise ValueError("it does not work")
        if name == "decline":
            raise ToolError("ask somebody else")
        if first and name.startswith("stopped"):
            raise asyncio.CancelledError
        if first and name.startswith("lost"):
            raise asyncio.CancelledError from LeftBehind()
        return Words(text=request.text * 5000 if name == "long" else request.text)

    return Tool(name, f"The tool {name}.", Words, Words, handler, **options)


TOOLS = ToolSet([_tool(name, options) for name, options in _KINDS.items()])


@dataclass
class World:
    """The model, and what it and the tools did.

    Attributes:
        turn: The turn that is stepped at the moment.
        ran: The operations whose handler ran and the tool, in order.
        tries: How often each operation was tried.
        asked: The operations the model was asked in, in order.
    """

    script: Script
    turn: Turn = field(default_factory=Turn)
    ran: list[tuple[str, str]] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._perform = Performer(self.model, TOOLS, context=TurnContext(data=self), approve=self.approve)

    async def approve(self, call: ToolCall, arguments: Any, context: ToolContext) -> Approval:
        """Yes to every other call, by its place."""
        return Approval(context.op[-1] in "02468", "not the odd ones")

    async def model(self, messages: tuple[ChatMessage, ...], definitions: tuple[ToolDef, ...]) -> ChatResponse:
        """What the model says in the operation the turn waits for."""
        (op,) = self.turn.ops()
        self.asked.append(op.id)
        self.tries[op.id] += 1
        assert isinstance(op, CallModel)
        if op.forced:
            return self.script.forced
        number = sum(map(int, re.findall(r"\d+", op.id)))  # "m2~1" is the third iteration
        if number in self.script.unreachable and self.tries[op.id] == 1:
            raise ModelUnavailableError("not at home")
        replies = self.script.replies
        return replies[number - 1] if number <= len(replies) else ChatResponse("finished")

    # --- steps -----------------------------------------------------------------------

    def begin(self) -> Turn:
        """A new turn that has begun."""
        script = self.script
        self.turn = Turn("turn")
        self.turn.begin(
            script.history,
            TOOLS.definitions,
            TOOLS.traits,
            limits=script.limits,
            on_limit=script.on_limit,
            tool_errors=script.tool_errors,
        )
        return self.turn

    def carry_out(self, op: Op) -> tuple[Outcome, bool]:
        """What came of an operation, and whether it was interrupted."""
        try:
            return timeless(asyncio.run(self._perform(op))), False
        except OpInterrupted as exc:
            return timeless(exc.outcome), True

    def step(self, turn: Turn, place: int = 0) -> Op | None:
        """Do one of the things the turn waits for; None when it has ended."""
        self.turn = turn
        ops = turn.ops()
        if not ops:
            return None
        op = ops[place % len(ops)]
        outcome, interrupted = self.carry_out(op)
        if interrupted:
            turn.cancel()  # first, as every driver does: the last outcome of a batch would complete it
        turn.apply(op, outcome)
        return op

    def to_the_end(self, turn: Turn) -> list[Op]:
        """Step until the turn ends; what was done."""
        done = []
        while (op := self.step(turn)) is not None:
            done.append(op)
        return done


def timeless(outcome: Outcome) -> Outcome:
    """An outcome without the times, which differ from run to run."""
    if isinstance(outcome, ToolCallRecord):
        return replace(outcome, started=0.0, seconds=0.0)
    if isinstance(outcome, ToolFailed):
        return ToolFailed(replace(outcome.record, started=0.0, seconds=0.0), outcome.error)
    if isinstance(outcome, Valued) and isinstance(outcome.outcome, ToolCallRecord):
        return Valued(replace(outcome.outcome, started=0.0, seconds=0.0), outcome.value)
    return outcome


def tool_of(op: Op) -> str | None:
    """The name of the tool that an operation calls, where it calls one by a name."""
    return op.call.name if isinstance(op, CallTool) and isinstance(op.call.name, str) else None
