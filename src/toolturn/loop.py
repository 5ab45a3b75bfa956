"""Ways to run a turn: awaited, streamed, from synchronous code, and again from where it stopped."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from . import codec
from .answers import AnswerForm, answer_form
from .background import background
from .drive import Limiter, Siblings, drive, end_tasks
from .errors import ToolLoopError
from .events import Emit, Event
from .limits import Limits, OnLimit
from .messages import ChatMessage, ToolCall
from .model import ChatModel, ModelCallback, ModelSettings
from .nesting import Price, inherited, price_of
from .perform import Approve, Performer
from .results import Approval, ToolCallResult, ToolLoopResult
from .tools.context import TurnContext
from .tools.hooks import ToolHook
from .tools.running import DEFAULT_GRACE
from .tools.toolset import AnyTool, ToolSet, unknown_tool_content
from .transcript import check
from .turn import ToolErrors, Turn

Tools = Iterable[AnyTool] | ToolSet


async def handle_tool_call(call: ToolCall, tools: Tools) -> ToolCallResult:
    """Run one call, as a model made it, outside of any turn.

    Args:
        call: The call.
        tools: The tools it may name.

    Returns:
        The tool message that answers it; an unknown tool and invalid arguments are answered too.

    Raises:
        Exception: Whatever the handler raises.
    """
    known = tools if isinstance(tools, ToolSet) else ToolSet(tools)
    tool = known.get(call.name) if isinstance(call.name, str) else None
    if tool is None:
        return ToolCallResult(ChatMessage("tool", unknown_tool_content(call.name, known), None, call.id), False)
    result = await tool.invoke(call.arguments)
    return ToolCallResult(ChatMessage("tool", result.content, None, call.id), result.return_direct)


async def run_tool_loop(
    messages: Iterable[ChatMessage],
    tools: Tools,
    call_model: ChatModel | ModelCallback,
    *,
    max_iterations: int = 4,
    max_tool_calls: int = 16,
    limits: Limits | None = None,
    on_limit: OnLimit = "raise",
    tool_errors: ToolErrors = "raise",
    concurrency: int = 1,
    siblings: Siblings = "cancel",
    limiter: Limiter | None = None,
    context: TurnContext | Any = None,
    turn: Turn | None = None,
    turn_id: str = "",
    settings: ModelSettings | None = None,
    hooks: Sequence[ToolHook] = (),
    grace: float = DEFAULT_GRACE,
    price: Price | None = None,
    approve: Approve | None = None,
    emit: Emit | None = None,
    nudges: int = 0,
    answer_type: Any = None,
    require_tool: str | None = None,
) -> ToolLoopResult:
    """Run one bounded tool-calling turn.

    Args:
        messages: A valid transcript to start with, oldest first.
        tools: What the model may call.
        call_model: A ChatModel, or any callable that takes messages and definitions and can be awaited.
        max_iterations: Model calls, at least 1.
        max_tool_calls: Tool calls in the whole turn; a batch that would pass it is refused as a whole.
        limits: Every bound in one value; replaces the two keywords before.
        on_limit: ``raise`` that limit's error, or make one last call without tools for an ``answer``.
        tool_errors: When a tool fails, ``raise`` ToolLoopToolError, or ``report`` it to the model.
        concurrency: How many calls of parallel tools may run at once; results keep the emitted order.
        siblings: When the failure of one call ends the turn, ``cancel`` those that run beside it, or let them
            ``finish``; none begins any more.
        limiter: Is entered for each tool call, such as an ``asyncio.Semaphore`` that many turns share.
        context: A TurnContext for the tools, or anything else, which becomes its ``data``.
        turn: An empty Turn that is filled here, so that its state is there whatever happens.
        turn_id: A name for the turn, unique; made up where empty.
        settings: How a ChatModel is to reply.
        hooks: Around each tool call, the first one outermost.
        grace: Seconds a cancelled handler has to clean up.
        price: What the tokens of one reply cost, for ``limits.cost`` and ``result.usage.cost``.
        approve: Is asked, with the call, its parsed arguments and a ToolContext, whether a call of a tool that wants
            approval may run; plain (then in a thread) or ``async``. Without it the turn ends with
            ToolLoopApprovalRequired, which can be resumed.
        emit: Is told of everything that happens, in order.
        nudges: How often a model that announced calls but made none, or replied nothing, is told so and asked once
            more; each time is an iteration.
        answer_type: A pydantic model (or dataclass, TypedDict, or a JSON Schema as a dictionary) that the answer has
            to be an object of: ``result.value``. An answer that does not fit goes back to the model, and each time is
            an iteration.
        require_tool: The direct-return tool that the turn has to end in; ``result.value`` is what it returned.

    Returns:
        The answer with the whole transcript and the audit.

    Raises:
        ToolLoopError: The turn ended without an answer; carries transcript, audit and state.
        ValueError: The messages are no valid transcript, a limit is out of range, the turn has begun before, or the
            tool required is no direct-return tool of the turn.
        asyncio.CancelledError: The task was cancelled; the handlers have been cleaned up.
        Exception: What a plain callback raises, unchanged; a ``turn`` given holds the state.
    """
    turn, perform = _prepare(
        messages,
        tools,
        call_model,
        max_iterations,
        max_tool_calls,
        limits,
        on_limit,
        tool_errors,
        context,
        turn,
        turn_id,
        settings,
        hooks,
        grace,
        price,
        approve,
        nudges,
        answer_type,
        require_tool,
    )
    return await drive(turn, perform, emit, concurrency=concurrency, siblings=siblings, limiter=limiter)


def _prepare(
    messages: Iterable[ChatMessage],
    tools: Tools,
    call_model: ChatModel | ModelCallback,
    max_iterations: int,
    max_tool_calls: int,
    limits: Limits | None,
    on_limit: OnLimit,
    tool_errors: ToolErrors,
    context: Any,
    turn: Turn | None,
    turn_id: str,
    settings: ModelSettings | None,
    hooks: Sequence[ToolHook],
    grace: float,
    price: Price | None,
    approve: Approve | None,
    nudges: int,
    answer_type: Any,
    require_tool: str | None,
) -> tuple[Turn, Performer]:
    bounds = inherited(limits or Limits(max_iterations, max_tool_calls))
    if on_limit not in ("raise", "answer"):
        raise ValueError("on_limit must be 'raise' or 'answer'")
    if tool_errors not in ("raise", "report"):
        raise ValueError("tool_errors must be 'raise' or 'report'")
    if nudges < 0:
        raise ValueError("nudges must not be negative")
    known = tools if isinstance(tools, ToolSet) else ToolSet(tools)
    _check_names(bounds, known)
    history = list(messages)
    if wrong := next((message for message in history if not isinstance(message, ChatMessage)), None):
        raise TypeError(f"messages must be ChatMessage objects, not {type(wrong).__name__}: ChatMessage('user', '…')")
    if not callable(call_model):
        what = f"not {type(call_model).__name__}: toolturn.models.model_named makes one of a name"
        raise TypeError(f"call_model must be a ChatModel or a callable, {what}")
    if faults := check(history):
        raise ValueError(f"the messages are no valid transcript: {faults[0]} (toolturn.transcript.repair mends them)")
    form: AnswerForm | None = None
    if answer_type is not None or require_tool is not None:
        form, known = answer_form(answer_type, require_tool, known, call_model)
    perform = Performer(
        call_model,
        known,
        context=_context(context),
        settings=settings,
        hooks=hooks,
        grace=grace,
        price=price_of(price, bounds),
        approve=approve,
        answer=form,
    )
    turn = Turn() if turn is None else turn
    turn.begin(
        history,
        known.definitions,
        known.traits,
        turn_id=turn_id or os.urandom(16).hex(),
        limits=bounds,
        on_limit=on_limit,
        tool_errors=tool_errors,
        nudges=nudges,
        required="" if form is None else form.tool,
        typed=form is not None and form.typed,
    )
    return turn, perform


def _check_names(limits: Limits, tools: ToolSet) -> None:
    for name in limits.per_tool:
        if tools.get(name) is None:
            raise ValueError(f"limits.per_tool names {name!r}, which is none of the tools")


def _context(context: Any) -> TurnContext:
    return context if isinstance(context, TurnContext) else TurnContext(data=context)


# --- resume ----------------------------------------------------------------------------


def reopened(
    stopped: ToolLoopError | Turn | str,
    tools: Tools,
    *,
    limits: Limits | None = None,
    on_limit: OnLimit | None = None,
    tool_errors: ToolErrors | None = None,
    approvals: Mapping[str, Approval | bool] | None = None,
    answer: AnswerForm | None = None,
) -> Turn:
    """Return a turn that goes on where another one stopped.

    Args:
        stopped: The error it ended with, the turn itself, or the JSON of either.
        tools: What the model may call.
        limits: New bounds; the old ones where None.
        on_limit: A new policy; the old one where None.
        tool_errors: A new policy; the old one where None.
        approvals: Decisions on calls that wait for approval, by the id of the call or the name of its operation.
        answer: How it has to end; as before where None.

    Raises:
        ValueError: There is nothing to resume, it stands at a limit that was not raised, the tool it has to end in is
            none of the tools, or an approval is for no call that waits, or for another.
    """
    known = tools if isinstance(tools, ToolSet) else ToolSet(tools)
    if isinstance(stopped, str) and codec.kind_of(stopped) == "error":
        stopped = codec.error_from_json(stopped)
    if isinstance(stopped, ToolLoopError):
        if stopped.state is None:
            raise ValueError("this error carries no state; there is nothing to resume")
        stopped = stopped.state
    turn = Turn.from_json(stopped) if isinstance(stopped, str) else stopped
    bounds = inherited(turn.limits if limits is None else limits, turn.usage, turn.seconds)
    _check_names(bounds, known)
    turn.reopen(
        known.definitions,
        known.traits,
        limits=bounds,
        on_limit=on_limit,
        tool_errors=tool_errors,
        approvals=approvals,
        required=None if answer is None else answer.tool,
        typed=None if answer is None else answer.typed,
    )
    return turn


async def resume(
    stopped: ToolLoopError | Turn | str,
    tools: Tools,
    call_model: ChatModel | ModelCallback,
    *,
    limits: Limits | None = None,
    on_limit: OnLimit | None = None,
    tool_errors: ToolErrors | None = None,
    approvals: Mapping[str, Approval | bool] | None = None,
    concurrency: int = 1,
    siblings: Siblings = "cancel",
    limiter: Limiter | None = None,
    context: TurnContext | Any = None,
    settings: ModelSettings | None = None,
    hooks: Sequence[ToolHook] = (),
    grace: float = DEFAULT_GRACE,
    price: Price | None = None,
    approve: Approve | None = None,
    emit: Emit | None = None,
    answer_type: Any = None,
    require_tool: str | None = None,
) -> ToolLoopResult:
    """Continue a turn that stopped, under the same name: what has an outcome does not run again.

    Args:
        stopped: The error it ended with, the turn itself (which is continued in place), or the JSON of either.
        tools: What the model may call.
        call_model: As in :func:`run_tool_loop`.
        limits: New bounds; the old ones where None. A turn that stands at a limit needs a raised one.
        on_limit: A new policy; the old one where None.
        tool_errors: A new policy; the old one where None.
        approvals: Decisions on calls that wait for approval, by the id of the call or the name of its operation; an
            Approval, or only True or False.
        concurrency: As in :func:`run_tool_loop`, like all that follow.
        context: What the tools may know.
        settings: How a ChatModel is to reply.
        hooks: Around each tool call.
        grace: Seconds a cancelled handler has to clean up.
        price: As in :func:`run_tool_loop`; a function is not saved with the turn, so it is given again.
        approve: As in :func:`run_tool_loop`.
        emit: Is told of everything that happens, in order.
        answer_type: As in :func:`run_tool_loop`; a type is not saved with the turn, so it is given again.
        require_tool: As in :func:`run_tool_loop`; as before where None.

    Returns:
        The answer with the whole transcript and the audit.

    Raises:
        ValueError: There is nothing to resume, or it stands at a limit that was not raised.
        ToolLoopError: The turn ended without an answer again.
    """
    known = tools if isinstance(tools, ToolSet) else ToolSet(tools)
    form: AnswerForm | None = None
    if answer_type is not None or require_tool is not None:
        form, known = answer_form(answer_type, require_tool, known, call_model)
    turn = reopened(
        stopped,
        known,
        limits=limits,
        on_limit=on_limit,
        tool_errors=tool_errors,
        approvals=approvals,
        answer=form,
    )
    if form is None and turn.required:
        form = AnswerForm(turn.required)
    perform = Performer(
        call_model,
        known,
        context=_context(context),
        settings=settings,
        hooks=hooks,
        grace=grace,
        price=price_of(price, turn.limits),
        approve=approve,
        answer=form,
    )
    return await drive(turn, perform, emit, concurrency=concurrency, siblings=siblings, limiter=limiter)


# --- streaming -------------------------------------------------------------------------


class TurnStream:
    """The events of a running turn, in order; iterating ends when the turn does and raises its error.

    Attributes:
        turn: The turn; its ``messages`` are valid at every moment.
    """

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._events: deque[Event | None] = deque()
        self._some = asyncio.Event()
        self._task: asyncio.Task[ToolLoopResult] | None = None

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        events = self._events
        while not events:
            self._some.clear()
            await self._some.wait()
        event = events.popleft()
        if event is not None:
            return event
        self._put(None)  # so that a second iteration ends too
        await self.result()
        raise StopAsyncIteration

    def _put(self, event: Event | None) -> None:
        self._events.append(event)
        self._some.set()

    async def result(self) -> ToolLoopResult:
        """Wait for the end of the turn and return its result.

        Raises:
            ToolLoopError: The turn ended without an answer.
            Exception: What a plain model callback raised.
        """
        assert self._task is not None
        return await asyncio.shield(self._task)


@asynccontextmanager
async def stream_tool_loop(
    messages: Iterable[ChatMessage],
    tools: Tools,
    call_model: ChatModel | ModelCallback,
    *,
    max_iterations: int = 4,
    max_tool_calls: int = 16,
    limits: Limits | None = None,
    on_limit: OnLimit = "raise",
    tool_errors: ToolErrors = "raise",
    concurrency: int = 1,
    siblings: Siblings = "cancel",
    limiter: Limiter | None = None,
    context: TurnContext | Any = None,
    turn: Turn | None = None,
    turn_id: str = "",
    settings: ModelSettings | None = None,
    hooks: Sequence[ToolHook] = (),
    grace: float = DEFAULT_GRACE,
    price: Price | None = None,
    approve: Approve | None = None,
    nudges: int = 0,
    answer_type: Any = None,
    require_tool: str | None = None,
) -> AsyncIterator[TurnStream]:
    """Run one bounded turn and watch it: ``async with stream_tool_loop(...) as events: async for event in events``.

    Leaving the block cancels a turn that still runs and waits for its cleanup. Arguments and errors are those of
    :func:`run_tool_loop`; the turn's error is raised by the iteration and by ``await events.result()``.
    """
    turn, perform = _prepare(
        messages,
        tools,
        call_model,
        max_iterations,
        max_tool_calls,
        limits,
        on_limit,
        tool_errors,
        context,
        turn,
        turn_id,
        settings,
        hooks,
        grace,
        price,
        approve,
        nudges,
        answer_type,
        require_tool,
    )
    async with streaming(turn, perform, concurrency=concurrency, siblings=siblings, limiter=limiter) as stream:
        yield stream


@asynccontextmanager
async def streaming(
    turn: Turn,
    perform: Performer,
    *,
    concurrency: int = 1,
    siblings: Siblings = "cancel",
    limiter: Limiter | None = None,
) -> AsyncIterator[TurnStream]:
    """Drive a turn that has begun and watch it.

    Args:
        turn: One that has begun, or was reopened.
        perform: Carries out one op.
        concurrency: How many calls of parallel tools may run at once.
        siblings: What becomes of the calls beside one whose failure ends the turn.
        limiter: Is entered for each tool call.
    """
    stream = TurnStream(turn)
    driven = drive(turn, perform, stream._put, concurrency=concurrency, siblings=siblings, limiter=limiter)
    task = asyncio.ensure_future(driven)
    stream._task = task
    task.add_done_callback(lambda _: stream._put(None))
    try:
        yield stream
    finally:
        # what it raises was raised where somebody waited for it, or nobody wants it
        await end_tasks((task,))


# --- from synchronous code -------------------------------------------------------------


def run_tool_loop_sync(
    messages: Iterable[ChatMessage],
    tools: Tools,
    call_model: ChatModel | ModelCallback,
    **options: Any,
) -> ToolLoopResult:
    """Run one bounded turn from synchronous code.

    All such turns share one background event loop, so a model may keep its connections; it works where an event loop
    is running too, but blocks it. Ctrl-C cancels the turn, waits for its cleanup and is raised.

    Args:
        messages: As in :func:`run_tool_loop`, like all that follow.
        tools: What the model may call.
        call_model: The model.
        options: Its keyword arguments.
    """
    return background.run(run_tool_loop(messages, tools, call_model, **options))
