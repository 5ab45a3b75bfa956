"""Turn: the state of one turn and the rules by which it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from .. import codec
from ..codec import cause_of
from ..errors import ToolLoopCancelledError, ToolLoopError, ToolLoopModelError, ToolLoopToolError
from ..limits import Limits, OnLimit
from ..messages import ChatMessage, ChatResponse, ToolDef, text_of
from ..results import Approval, ToolCallRecord, ToolLoopResult
from . import answering, batch, limiting, reopening, saved
from .ending import Ending
from .exits import exit_of
from .ops import (
    AskApproval,
    CallModel,
    CallTool,
    ModelFailed,
    Op,
    Outcome,
    OuterLimit,
    ToolErrors,
    ToolFailed,
    ToolTraits,
    Unfit,
    Valued,
)
from .rules import TRUNCATED, UNCOUNTED, Refusal, judge, owned_calls, refusal_of
from .state import State

Phase: TypeAlias = Literal["new", "model", "approval", "tools", "forced", "ended"]


class Turn(State):
    """One turn: its transcript is its state.

    A turn that was made is empty; ``begin`` starts it, which the functions of :mod:`toolturn.loop` do. It is pure
    data: it can be saved as JSON, copied and pickled at every moment.

    Args:
        turn_id: The turn's name, the first part of each call's idempotency key; given by ``begin`` where empty.
    """

    __slots__ = ()

    def begin(
        self,
        messages: Iterable[ChatMessage],
        definitions: tuple[ToolDef, ...],
        traits: Mapping[str, ToolTraits],
        *,
        turn_id: str = "",
        limits: Limits | None = None,
        on_limit: OnLimit = "raise",
        tool_errors: ToolErrors = "raise",
        nudges: int = 0,
        required: str = "",
        typed: bool = False,
    ) -> None:
        """Start the turn.

        Args:
            messages: A valid transcript to start with.
            definitions: What the model is told of the tools; the same object is offered at each call.
            traits: What the machine has to know of them, by name.
            turn_id: The name of a turn that has none yet.
            limits: The bounds.
            on_limit: What happens at one of them.
            tool_errors: What happens when a tool fails.
            nudges: How often a model that announced calls but made none, or replied nothing, is told so and asked
                once more; each time is an iteration, and what it is told does not enter the transcript.
            required: The direct-return tool that the turn has to end in; empty for none.
            typed: Whether the answer has to be an object, which who performs the model calls reads from it. Where a
                tool is required too, it is the one that takes this object and does nothing else.

        Raises:
            ValueError: It has begun already.
        """
        if self.phase != "new":
            raise ValueError("this turn has begun already; an empty Turn() is needed")
        self.turn_id = self.turn_id or turn_id
        self._messages = list(messages)
        self.definitions = definitions
        self.traits = traits
        if limits is not None:
            self.limits = limits
        self.on_limit = on_limit
        self.tool_errors = tool_errors
        self.nudges = nudges
        self.required = required
        self.typed = typed
        self._asks = any(trait.approval for trait in traits.values())
        self.phase = "model"

    # --- what is there --------------------------------------------------------------

    @property
    def exit(self) -> ToolLoopResult | ToolLoopError | None:
        """None while there is something to do, then the result or the error of the turn."""
        if self._exit is None and self._ending is not None:
            self._exit = exit_of(self, self._ending)
        return self._exit

    # --- what has to be done --------------------------------------------------------

    def ops(self) -> tuple[Op, ...]:
        """Return what is to be done now; nothing when the turn has ended or has not begun.

        Several tool calls are given together only when all of them may run together; done one after the other in
        this order is right too.
        """
        phase = self.phase
        limits = self.limits
        if limits.spending and phase != "new" and phase != "ended" and (spent := limiting.spent_out(self)) is not None:
            self._end(Ending(spent.error, spent.text, limit=spent.limit))
            return ()
        if phase == "tools":
            return batch.tool_ops(self)
        if phase == "approval":
            return batch.next_approval(self)
        if phase == "new" or phase == "ended":
            return ()
        messages = tuple(self._messages)
        most = None if limits.tokens is None else limits.tokens - self.usage.total
        if phase == "forced":
            return (CallModel(self._model_op(), self.turn_id, messages, (), True, most),)
        if self.iterations >= limits.iterations or (limits.spending and self.on_limit == "answer"):
            full = limiting.no_room(self)
            if full is not None:
                limiting.reach(self, full, None)
                return self.ops()
        if self._nudge:
            messages += answering.asked_again(self)
        must_call = answering.must_call(self) if self.required else ""
        self._asked = CallModel(self._model_op(), self.turn_id, messages, self.definitions, False, most, must_call)
        return (self._asked,)

    def _model_op(self) -> str:
        if self.phase == "forced":
            return f"f{self.iterations}"
        if self._retries:
            return f"m{self.iterations - self._retries + 1}~{self._retries}"
        return f"m{self.iterations + 1}"

    def start(self, op: CallTool) -> None:
        """Take note that a call begins now, so that a state saved while it runs knows that it may have had its effect.

        Args:
            op: One that ``ops`` gave.
        """
        self._started |= 1 << op.place

    # --- what came of it ------------------------------------------------------------

    def apply(self, op: Op, outcome: Outcome) -> None:
        """Take what came of an op.

        After the turn ended, the outcomes of calls that were still running are taken too, so that the transcript
        tells what became of them.

        Args:
            op: One of those that ``ops`` gave and that has no outcome yet.
            outcome: A response, Valued, Unfit or ModelFailed of a model call, a record, Valued or ToolFailed of a
                tool call, an Approval or ApprovalPending of a question for one.

        Raises:
            ValueError: The turn does not wait for this op.
            TypeError: The outcome does not belong to such an op.
        """
        if type(op) is CallTool:
            self._apply_tool(op, outcome)
        elif type(op) is CallModel:
            self._apply_model(op, outcome)
        elif type(op) is AskApproval:
            batch.take_approval(self, op, outcome)
        else:
            raise TypeError(f"{type(op).__name__} is no op of a turn")

    def _apply_tool(self, op: CallTool, outcome: Outcome) -> None:
        place = op.place
        outcomes = self._outcomes
        if place in self._waiting:
            raise ValueError(f"{op.id} waits for approval")
        if (
            place >= len(outcomes)
            or outcomes[place] is not None
            or (op.call is not self._calls[place] and op.call != self._calls[place])
        ):
            raise ValueError(f"the turn does not wait for {op.id}")
        if type(outcome) is ToolCallRecord:
            record, failed = outcome, None
        elif type(outcome) is ToolFailed:
            record, failed = outcome.record, outcome.error
        elif type(outcome) is Valued and type(outcome.outcome) is ToolCallRecord:
            record, failed = outcome.outcome, None
            if not self.required or op.call.name == self.required:
                self._value = outcome.value
        else:
            raise TypeError(f"{type(outcome).__name__} is no outcome of a tool call")
        if (record.call is not op.call and record.call != op.call) or record.message.tool_call_id != op.call.id:
            raise ValueError(f"this is the outcome of another call than {op.id}")
        if failed is not None and self.tool_errors == "raise" and self._ending is None:
            cause = cause_of(failed)
            text = f"{cause.type}: {cause.text}" if cause.text else cause.type
            what = f"tool {op.call.name!r} failed: {text}"
            self._end(Ending(ToolLoopToolError, what, cause=cause, exception=failed))
        outcomes[place] = answering.not_the_end(self, record) if self.required else record
        if record.usage is not None:
            self.usage += record.usage
        self._left -= 1
        self._exit = None
        if not self._left and self._ending is None:
            batch.settle(self)

    def _apply_model(self, op: CallModel, outcome: Outcome) -> None:
        if self.phase not in ("model", "forced") or (op is not self._asked and op.id != self._model_op()):
            raise ValueError(f"the turn does not wait for {op.id}")
        self._asked = None
        fits, unfit = False, ""
        if type(outcome) is not ChatResponse:
            if type(outcome) is ModelFailed:
                error = outcome.error
                cause = cause_of(error)
                text = f"the model failed: {cause.text}"
                self._end(Ending(ToolLoopModelError, text, cause=cause, exception=error))
                return
            if type(outcome) is OuterLimit:
                # it stands at no limit of its own: where there is something left it goes on without a raised one
                what = "its tokens" if outcome.limit == "tokens" else "what it may cost"
                self._end(Ending(limiting.SPENT[outcome.limit], f"the turn that this one runs in has used up {what}"))
                return
            if type(outcome) is Unfit:
                unfit = outcome.detail or "it does not fit"
                outcome = outcome.response
            elif type(outcome) is Valued:
                fits, self._value, outcome = True, outcome.value, outcome.outcome
            if not isinstance(outcome, ChatResponse):
                raise TypeError(f"{type(outcome).__name__} is no outcome of a model call")
        usage = outcome.usage
        if usage is not None:
            self.usage += usage
            self._last = usage
        if outcome.repairs:
            self.repairs += [replace(repair, op=op.id) for repair in outcome.repairs]
        if op.forced:
            self._take_forced(outcome, unfit)
            return
        self.iterations += 1
        self._nudge = ""
        limits = self.limits
        if limits.spending or limits.per_tool:
            refusal = self._judge(outcome)
        else:
            refusal = judge(outcome, self.traits, self._seen, self._accepted, limits)
        if self.required or self.typed:
            refusal = answering.refusal_of_answer(self, outcome, refusal, fits=fits, unfit=unfit)
        if refusal is not None and refusal.nudge:
            refusal = answering.ask_again(self, refusal, outcome)
            if refusal is None:
                return
        if refusal is not None:
            self._retries += 1
            if refusal.limit is not None:
                limiting.reach(self, refusal, outcome)
            else:
                self._end(Ending(refusal.error, refusal.text, outcome))
            return
        self._retries = 0
        content = outcome.content
        if type(content) is not str:
            content = text_of(content)
        calls = outcome.tool_calls
        self._messages.append(ChatMessage("assistant", content, owned_calls(calls), None, outcome.opaque))
        if calls:
            batch.accept(self, calls)
        else:
            self._end(Ending(None, content.strip()))

    def _judge(self, response: ChatResponse) -> Refusal | None:
        limits = self.limits
        if response.usage is None and response.tool_calls and (limits.tokens is not None or limits.cost is not None):
            return UNCOUNTED
        used = limiting.calls_by_name(self) if limits.per_tool else {}
        refusal = judge(response, self.traits, self._seen, self._accepted, limits, used)
        # a reply that was cut off because no more tokens were left stands at that limit
        return limiting.spent_out(self) or refusal if refusal is TRUNCATED else refusal

    def _take_forced(self, response: ChatResponse, unfit: str) -> None:
        limit = self._limit
        assert limit is not None
        text = text_of(response.content)
        if not unfit and text.strip() and refusal_of(response.finish_reason) is None:
            self._messages.append(ChatMessage("assistant", text))
            self._end(Ending(None, text.strip()))
        else:
            self._end(Ending(limit.error, limit.text, response, limit=limit.limit))

    # --- how it ends ----------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Add time in which the turn was driven; the machine itself has no clock.

        Args:
            seconds: Since the last tick.
        """
        self.seconds += seconds
        if self._ending is not None:
            self._exit = None  # its state tells the time

    def expire(self) -> None:
        """End the turn because its time is up; nothing happens when it has not begun or has ended already."""
        if self._ending is None and self.phase != "new":
            late = limiting.refusal_at("deadline", self.limits)
            self._end(Ending(late.error, late.text, limit=late.limit))

    def cancel(self, reason: str = "the turn was cancelled") -> None:
        """End the turn on demand; nothing happens when it has not begun or has ended already.

        It may be called from any task or thread while the turn is driven: what runs is cancelled, has its grace, and
        ``drive`` ends with ToolLoopCancelledError.

        Args:
            reason: One sentence for people.
        """
        if self._driver is None:
            self.close(reason)
        else:
            self._driver(reason)

    def driven(self, driver: Callable[[str], None] | None) -> None:
        """Have a driver told of each cancel, which it has to pass on to :meth:`close` in its own thread.

        Args:
            driver: Takes the reason; None when it is done.
        """
        self._driver = driver

    def close(self, reason: str) -> None:
        """End the turn as cancelled, at once; the driver's part of :meth:`cancel`.

        Args:
            reason: One sentence for people.
        """
        if self._ending is None and self.phase != "new":
            self._end(Ending(ToolLoopCancelledError, reason))

    def reopen(
        self,
        definitions: tuple[ToolDef, ...],
        traits: Mapping[str, ToolTraits],
        *,
        limits: Limits | None = None,
        on_limit: OnLimit | None = None,
        tool_errors: ToolErrors | None = None,
        approvals: Mapping[str, Approval | bool] | None = None,
        required: str | None = None,
        typed: bool | None = None,
    ) -> None:
        """Continue a turn that ended in an error or was saved on its way.

        What has an outcome keeps it. Calls that were cancelled or left behind run again only where their tool
        declares that this does no harm.

        Args:
            definitions: What the model is told of the tools.
            traits: What the machine has to know of them, by name.
            limits: New bounds; the old ones where None.
            on_limit: A new policy; the old one where None.
            tool_errors: A new policy; the old one where None.
            approvals: Decisions by the ids of the calls that wait for one, or by the names of their operations.
            required: The tool that the turn has to end in, the old one where None; as ``begin`` takes it.
            typed: Whether the answer has to be an object; as it was where None.

        Raises:
            ValueError: The turn has not begun, has its answer already, or stands at a limit that was not raised; the
                tool it has to end in is none of the tools; or an approval is for no call that waits, or for another.
        """
        if typed is None and self.typed:
            raise ValueError("the answer of this turn has a type, which is not saved with it; give answer_type again")
        required = self.required if required is None else required
        if required and not (required in traits and traits[required].return_direct):
            raise ValueError(f"this turn has to end in the tool {required}, which is none of the direct-return tools")
        reopening.reopen(self, definitions, traits, limits, on_limit, tool_errors, approvals or {})
        self.required = required
        self.typed = self.typed if typed is None else typed

    # --- JSON -----------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole state as one JSON document; the tools are not in it."""
        return codec.dumps(saved.state_of(self))

    @classmethod
    def from_json(
        cls,
        text: str,
        definitions: tuple[ToolDef, ...] = (),
        traits: Mapping[str, ToolTraits] | None = None,
    ) -> Turn:
        """Return the turn that :meth:`to_json` wrote.

        Args:
            text: The document.
            definitions: What the model is told of the tools.
            traits: What the machine has to know of them, by name.

        Raises:
            ValueError: It is no such document.
        """

        def build(data: dict[str, Any]) -> Turn:
            turn = cls(data["turn_id"])
            saved.restore(turn, data)
            return turn

        turn = codec.read(text, "turn", build)
        turn.definitions = definitions
        turn.traits = traits or {}
        turn._asks = any(trait.approval for trait in turn.traits.values())
        if turn._asks and turn.phase in ("approval", "tools"):
            batch.ask_for_the_rest(turn)  # whoever wrote the document may have had tools that asked for less
        return turn

    def __reduce__(self) -> tuple[Any, ...]:
        # by its JSON: a live exception or a provider's raw object need not be picklable
        return Turn.from_json, (self.to_json(), self.definitions, dict(self.traits))

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Turn) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes while it runs

    def __repr__(self) -> str:
        return f"<Turn {self.turn_id or '(unnamed)'} {self.phase}, {self.iterations} iterations>"
