"""One op into one outcome: a model call with its stream, a tool call with its thread, timeout, hooks and cap."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import math
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from time import perf_counter, time
from types import CoroutineType
from typing import Any, TypeAlias

from .answers import AnswerForm
from .codec import dumps, plain
from .content import bounded, content_of, encodable
from .errors import InvalidToolArguments, ModelError, ModelStreamError, ToolError, ToolTimeoutError
from .events import Emit, Reasoning, Text, ToolProgress
from .limits import cap_text
from .messages import ChatMessage, ChatResponse, Content, ToolCall, ToolDef, Usage, text_of
from .model import Capabilities, ChatModel, Delta, ModelCallback, ModelSettings
from .nesting import Budget, Ledger, Price, current, running
from .results import Approval, ToolCallRecord, ToolStatus
from .tools.context import ToolContext, TurnContext
from .tools.hooks import ToolHook, ToolInvocation
from .tools.running import DEFAULT_GRACE, Guarded, left_behind, run_in_thread
from .tools.tool import Tool, ToolInvocationResult, invalid_arguments_content
from .tools.toolset import ToolSet, unknown_tool_content
from .transcript import closing_content
from .turn import (
    ApprovalPending,
    AskApproval,
    CallModel,
    CallTool,
    ModelFailed,
    Op,
    Outcome,
    OuterLimit,
    ToolFailed,
    Valued,
)

Perform: TypeAlias = Callable[[Op, Emit | None], Awaitable[Outcome]]
"""Carries out one op; expected failures are outcomes, not exceptions."""

Approve: TypeAlias = Callable[[ToolCall, Any, ToolContext], Approval | bool | Awaitable[Approval | bool]]
"""Decides on a call, of which it is given the call, the parsed arguments and the context."""


class OpInterrupted(BaseException):
    """Something has to go on that is no outcome of the call; carries what became of the call beside it.

    Args:
        outcome: The record of the call.
        interruption: The CancelledError or KeyboardInterrupt, or what the audience raised.
        settled: Whether the call had ended by itself.
    """

    def __init__(self, outcome: ToolCallRecord, interruption: BaseException, *, settled: bool = False) -> None:
        super().__init__(outcome, interruption)
        self.outcome = outcome
        self.interruption = interruption
        self.settled = settled


class _Listener:
    """Passes what a handler emits on to the audience, on the event loop, until the call has ended."""

    __slots__ = ("_closed", "_emit", "_loop", "_op", "_thread", "broken")

    def __init__(self, op: CallTool, emit: Emit, loop: asyncio.AbstractEventLoop | None) -> None:
        self._op = op
        self._emit = emit
        self._loop = loop
        self._thread = threading.get_ident()
        self._closed = False
        self.broken: BaseException | None = None

    def __call__(self, data: Any) -> None:
        if self._loop is None or threading.get_ident() == self._thread:
            self._tell(data)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._tell, data)

    def _tell(self, data: Any) -> None:
        if self._closed or self.broken is not None:
            return
        try:
            self._emit(ToolProgress(self._op.call, self._op.id, data))
        except BaseException as exc:  # noqa: BLE001 - it is the audience's failure, not the tool's
            self.broken = exc

    def close(self) -> None:
        """Hear nothing more: the handler was left behind, or has ended."""
        self._closed = True


class Performer:
    """Carries out the ops of turns that have the same model and tools.

    Args:
        model: A ChatModel, or any callable that takes messages and definitions and can be awaited.
        tools: The tools by the names the model calls them by.
        context: What the tools may know.
        settings: How a ChatModel is to reply.
        hooks: Around each tool call, the first one outermost.
        grace: Seconds that a cancelled handler or model has to clean up.
        price: What the tokens of a reply cost; replaces what a provider says of it.
        approve: Decides whether a call of a tool that asks for it may run; without one the turn stops there.
        answer: How the turns have to end; its tool is among the tools.

    Raises:
        TypeError: Settings are given for a model that takes none.
    """

    def __init__(
        self,
        model: ChatModel | ModelCallback,
        tools: ToolSet,
        *,
        context: TurnContext | None = None,
        settings: ModelSettings | None = None,
        hooks: Sequence[ToolHook] = (),
        grace: float = DEFAULT_GRACE,
        price: Price | None = None,
        approve: Approve | None = None,
        answer: AnswerForm | None = None,
    ) -> None:
        if settings is not None and not isinstance(model, ChatModel):
            raise TypeError("settings need a ChatModel; a plain callback has its own")
        self._model = model
        self._chat = model if isinstance(model, ChatModel) else None
        able = Capabilities() if self._chat is None else self._chat.capabilities
        self._streams = able.streaming
        self._keeps_tools = able.tool_choice_none and len(tools) > 0
        self._tools = tools
        self._context = context or TurnContext()
        self._settings = settings
        self._hooks = tuple(hooks)
        self._grace = grace
        self._ledger = Ledger(price)
        self._approve = approve
        self._answer = answer
        self._plain = settings is None and answer is None
        self._entry: Any = model if self._chat is None else self._chat.complete
        self._requests: dict[str, Any] = {}  # what was approved is what runs

    def __call__(self, op: Op, emit: Emit | None = None) -> Coroutine[Any, Any, Outcome]:
        """Carry out one op.

        Args:
            op: What is to be done.
            emit: Is told of text, reasoning and progress.

        Returns:
            What came of it; a failing model or tool is an outcome too.

        Raises:
            OpInterrupted: A tool call was cancelled or interrupted.
            Exception: What a plain model callback raises, unchanged.
        """
        # no coroutine of its own: each layer of them is felt in every iteration
        if type(op) is CallTool:
            return self._call_tool(op, emit)
        if type(op) is AskApproval:
            return self._ask_approval(op)
        assert isinstance(op, CallModel)
        return self._call_model(op, emit)

    # --- approval ----------------------------------------------------------------------

    async def _ask_approval(self, op: AskApproval) -> Outcome:
        call = op.call
        tool = self._tools.get(call.name) if isinstance(call.name, str) else None
        if tool is None or tool.approval is False:
            return Approval(True)
        try:
            request = tool.validate(call)
        except InvalidToolArguments:
            return Approval(True)  # it will not run: the model is told what to mend
        arguments = tool.arguments(request)
        if not await needs_approval(tool, arguments):
            self._requests[f"{op.turn_id}/t{op.id[1:]}"] = request
            return Approval(True)
        if self._approve is None:
            return ApprovalPending()
        known = self._context
        context = ToolContext(op.turn_id, op.id, call, known.session, known.language, known.data, None, op.remaining)
        decision = await _asked(self._approve, self._grace, call, arguments, context)
        if type(decision) is bool:
            decision = Approval(decision)
        if not isinstance(decision, Approval):
            raise TypeError(f"approve must return an Approval or a bool, not {type(decision).__name__}")
        if decision.approved:
            self._requests[f"{op.turn_id}/t{op.id[1:]}"] = request
        return decision

    # --- the model -------------------------------------------------------------------

    async def _call_model(self, op: CallModel, emit: Emit | None) -> Outcome:
        budget = running.get()
        if budget is not None:
            budget = current()
            if budget is not None and (limit := budget.used_up()) is not None:
                return OuterLimit(limit)
        try:
            if emit is not None:
                asking = self._ask_aloud(op, emit)
            elif self._plain and op.max_tokens is None and not op.forced:
                # most requests say nothing further: those need no coroutine of ours around the model's
                asking = self._entry(op.messages, op.tools)
                if type(asking) is not CoroutineType:
                    asking = _awaited(asking)
            else:
                asking = self._ask(op)
            try:
                waits_for = asking.send(None)
            except StopIteration as stop:
                response: Any = stop.value
            else:  # a model that is cancelled has its grace like a tool, and not for ever
                response = await Guarded(asking, waits_for, self._grace, keep=True)
        except ModelError as exc:
            return ModelFailed(exc)
        if type(response) is not ChatResponse and not isinstance(response, ChatResponse):
            raise TypeError(f"call_model must return a ChatResponse, not {type(response).__name__}")
        if response.usage is not None:
            if (price := self._ledger.price) is not None:
                response = replace(response, usage=_priced(response.usage, price))
            if budget is not None and response.usage is not None:
                budget.charge(response.usage)
        if self._answer is not None:
            return self._answer.read(op, response)
        given: ChatResponse = response
        return given

    def _request(self, op: CallModel) -> tuple[tuple[ToolDef, ...], ModelSettings | None]:
        """The tools and settings of a request to a ChatModel."""
        tools, settings = op.tools, self._settings
        if op.max_tokens is None and not op.forced and self._answer is None:
            return tools, settings
        settings = settings or ModelSettings()
        if op.max_tokens is not None and (settings.max_tokens is None or settings.max_tokens > op.max_tokens):
            settings = replace(settings, max_tokens=op.max_tokens)
        if self._answer is not None:
            return self._answer.request(op, settings, self._tools.definitions if self._keeps_tools else tools)
        if op.forced and self._keeps_tools:
            return self._tools.definitions, replace(settings, tool_choice="none")
        if op.forced and settings.tool_choice is not None:
            settings = replace(settings, tool_choice=None)
        return tools, settings

    async def _ask(self, op: CallModel) -> ChatResponse:
        answer: Any
        if self._chat is None or (
            self._settings is None and op.max_tokens is None and not op.forced and self._answer is None
        ):
            tools = op.tools
            if self._chat is None and self._answer is not None:
                tools = self._answer.offered(op)
            answer = self._model(op.messages, tools)
        else:
            tools, settings = self._request(op)
            answer = self._chat.complete(op.messages, tools, settings=settings)
        response = await (answer if type(answer) is CoroutineType else _awaited(answer))
        if not isinstance(response, ChatResponse):
            raise TypeError(f"call_model must return a ChatResponse, not {type(response).__name__}")
        return response

    async def _ask_aloud(self, op: CallModel, emit: Emit) -> ChatResponse:
        told: Collection[str] = ()
        response: ChatResponse | None = None
        if self._chat is not None and self._streams:
            tools, settings = self._request(op)
            stream = self._chat.stream(op.messages, tools, settings=settings)
            # any async iterator will do, also one that can not be closed
            closing: Any = aclosing(stream) if hasattr(stream, "aclose") else contextlib.nullcontext()
            async with closing:
                told = set()
                async for item in stream:
                    if isinstance(item, Delta):
                        told.add(item.kind)
                        emit(Text(item.text, op.id) if item.kind == "text" else Reasoning(item.text, op.id))
                    else:
                        response = item
            if response is None:
                raise ModelStreamError("the model's stream ended before the reply was complete")
        else:
            response = await self._ask(op)
        if response.reasoning and "reasoning" not in told and (thought := text_of(response.reasoning)):
            emit(Reasoning(thought, op.id))
        if response.content and "text" not in told and (text := text_of(response.content)):
            emit(Text(text, op.id))
        return response

    # --- tools -----------------------------------------------------------------------

    async def _call_tool(self, op: CallTool, emit: Emit | None) -> Outcome:
        began, start = time(), perf_counter()
        call = op.call
        status: ToolStatus = "ok"
        direct = False
        value: Any = None
        content: Content
        failure: BaseException | None = None
        loop_key: str | None = None
        listener: _Listener | None = None
        tool = self._tools.get(call.name) if isinstance(call.name, str) else None
        budget = Budget(op, self._ledger, start)
        around = running.set(budget)
        try:
            if tool is None:
                content, status = unknown_tool_content(call.name, self._tools), "unknown_tool"
            else:
                try:
                    request = (
                        self._requests.pop(op.key)
                        if self._requests and op.key in self._requests
                        else tool.validate(call)
                    )
                except InvalidToolArguments as exc:
                    content, status = invalid_arguments_content(str(exc)), "invalid_arguments"
                else:
                    if tool.loop_key is not None:
                        loop_key = dumps(plain(tool.loop_key(tool.arguments(request))))
                    if self._hooks or tool.wants_context:
                        if emit is not None:
                            listener = _Listener(op, emit, asyncio.get_running_loop() if tool.threaded else None)
                        result = await self._run_with_context(op, tool, request, listener)
                        content, direct, status = result.content, result.return_direct, result.status
                        value = result.value
                    else:
                        made = await tool.execute(request, grace=self._grace)
                        content = tool.render(made)
                        if tool.return_direct:
                            direct, value = True, made
        except ToolError as exc:
            content, status = json.dumps({"error": "tool_error", "detail": _text(exc)}), "error"
        except ToolTimeoutError as exc:
            failure = exc
            content, status = _timed_out(tool, exc)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - a tool may fail in any way
            failure = exc
            content, status = _failed(call.name, exc), "error"
        except GeneratorExit:
            raise
        except BaseException as exc:  # noqa: BLE001 - a cancel or an interrupt: told, then passed on
            status = "outcome_unknown" if left_behind(exc) else "cancelled"
            record = self._record(op, closing_content(status), False, status, began, start, None, budget)
            raise OpInterrupted(record, exc) from None
        finally:
            running.reset(around)
            budget.closed = True
            if listener is not None:
                listener.close()
        record = self._record(op, content, direct, status, began, start, failure, budget, loop_key)
        if listener is not None and listener.broken is not None:
            raise OpInterrupted(record, listener.broken, settled=True)
        if failure is not None:
            return ToolFailed(record, failure)
        return record if value is None else Valued(record, value)

    def _record(
        self,
        op: CallTool,
        content: Content,
        direct: bool,
        status: ToolStatus,
        began: float,
        start: float,
        failure: BaseException | None,
        budget: Budget,
        loop_key: str | None = None,
    ) -> ToolCallRecord:
        if type(content) is str:
            content = cap_text(content if content.isascii() else encodable(content), op.result_bytes)
        else:
            content = bounded(content, op.result_bytes)
        call = op.call
        message = ChatMessage("tool", content, None, call.id)
        error = None if failure is None else f"{type(failure).__name__}: {_text(failure)}"
        seconds = perf_counter() - start
        return ToolCallRecord(call, message, direct, op.id, status, began, seconds, error, budget.usage, loop_key)

    async def _run_with_context(
        self, op: CallTool, tool: Tool[Any, Any], request: Any, listener: _Listener | None
    ) -> ToolInvocationResult:
        known = self._context
        budget = running.get()
        left = op.remaining if budget is None else budget.left()
        context = ToolContext(op.turn_id, op.id, op.call, known.session, known.language, known.data, listener, left)
        if not self._hooks:
            result = await tool.execute(request, context=context, grace=self._grace)
            return _invoked(tool, result)
        return await self._run_hooked(ToolInvocation(op.call.name, tool, op.call, request, context), 0)

    async def _run_hooked(self, invocation: ToolInvocation, depth: int) -> ToolInvocationResult:
        if depth == len(self._hooks):
            tool = invocation.tool
            result = await tool.execute(invocation.request, context=invocation.context, grace=self._grace)
            return _invoked(tool, result)
        hook = self._hooks[depth]
        given: ToolInvocationResult | None = None
        if hook.before is not None:
            try:
                given = await _result_of(hook.before(invocation))
            except ToolError as exc:
                content = json.dumps({"error": "refused", "detail": _text(exc)})
                given = ToolInvocationResult(content, False, "refused")
        if given is None:
            given = await self._run_hooked(invocation, depth + 1)
        if hook.after is not None:
            changed = await _result_of(hook.after(invocation, given))
            if changed is not None:
                # what the model reads is another; what the tool returned is not
                kept = changed.value is None and changed.return_direct
                given = replace(changed, value=given.value) if kept else changed
        return given


async def _awaited(answer: Any) -> Any:
    if not inspect.isawaitable(answer):
        raise TypeError("call_model must be awaitable: make it an 'async def'")
    return await answer


def _invoked(tool: Tool[Any, Any], result: Any) -> ToolInvocationResult:
    direct = tool.return_direct
    return ToolInvocationResult(tool.render(result), direct, value=result if direct else None)


async def needs_approval(tool: Tool[Any, Any], arguments: Any) -> bool:
    """Return whether somebody has to approve a call; yes where the tool's own rule fails.

    Args:
        tool: The tool.
        arguments: The parsed arguments, as :meth:`Tool.arguments` gives them.
    """
    rule = tool.approval
    if isinstance(rule, bool):
        return rule
    try:
        needed = rule(arguments)
        return bool(await needed if inspect.isawaitable(needed) else needed)
    except Exception:  # noqa: BLE001 - a rule that fails must not let a call through
        return True


async def _asked(approve: Approve, grace: float, *about: Any) -> Any:
    """Ask whoever approves; a function that blocks, as one that waits for a key, does so in a thread."""
    if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(type(approve).__call__):
        return await approve(*about)  # type: ignore[misc]
    decision = await run_in_thread(lambda: approve(*about), grace)
    return await decision if inspect.isawaitable(decision) else decision


async def _result_of(given: Any) -> ToolInvocationResult | None:
    value = await given if inspect.isawaitable(given) else given
    if value is None:
        return None
    if isinstance(value, ToolInvocationResult):
        if type(value.content) is str:
            return value
        content = content_of(value.content)
        if content is None:
            raise TypeError(f"the content a hook gives must be text or parts, not {type(value.content).__name__}")
        return replace(value, content=content)
    raise TypeError(f"a hook must return a ToolInvocationResult or None, not {type(value).__name__}")


def _text(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure
        return ""


def _priced(usage: Usage, price: Price) -> Usage:
    cost: Any = price(usage)
    if not isinstance(cost, (int, float)) or not 0 <= cost < math.inf:
        raise ValueError(f"the price of a reply must be a number of at least 0, not {cost!r:.40}")
    return replace(usage, cost=float(cost))


def _failed(name: object, exc: BaseException) -> str:
    # The class alone: an exception's text may hold what neither model nor user should read.
    return json.dumps({"error": "tool_failed", "tool": str(name), "type": type(exc).__name__})


def _timed_out(tool: Tool[Any, Any] | None, exc: ToolTimeoutError) -> tuple[str, ToolStatus]:
    if left_behind(exc) and exc.tool is tool:
        return closing_content("outcome_unknown"), "outcome_unknown"
    if (
        tool is None or tool.timeout is None or exc.tool is not tool
    ):  # the time-out of another tool, which the handler runs
        return _failed("" if tool is None else tool.name, exc), "error"
    detail = f"the call did not finish within {tool.timeout:g} seconds"
    return json.dumps({"error": "tool_timeout", "detail": detail}), "timeout"
