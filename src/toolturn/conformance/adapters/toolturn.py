"""toolturn itself, in the current environment."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

REQUIREMENTS: tuple[str, ...] = ()
DISTRIBUTION = "toolturn"
TYPED = ("toolturn",)
CAN = (
    "max_tool_calls",
    "timeout",
    "tokens",
    "cost",
    "deadline",
    "per_tool",
    "result_bytes",
    "repeats",
    "answer",
    "go_on",
    "sequential",
    "approval",
    "bound_approval",
    "signed",
    "events",
    "answer_stream",
)


async def run(task: Task, **options: Any) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
        options: Further arguments of the model.
    """
    from toolturn import ChatMessage, ToolLoopApprovalRequired, ToolLoopCancelledError, ToolLoopError, Turn
    from toolturn.codec import messages_to_json

    turn = Turn()

    def kept() -> str | None:
        return json.dumps({"messages": messages_to_json(turn.messages)}) if task.keep else None

    try:
        if not task.decisions:
            history = _history(task)
            content = await _begin(task, [*history, ChatMessage("user", task.prompt)], turn, options)
        else:
            content = await _resume(task, options)
        return task.answered(content, kept())
    except asyncio.CancelledError:
        return task.cancelled(kept())
    except ToolLoopApprovalRequired as error:
        pending = [
            {"id": record.call.id, "name": record.call.name, "arguments": record.call.arguments}
            for record in error.pending
        ]
        return task.waits(pending, _state(task, error))
    except ToolLoopError as error:
        results = sum(message.role == "tool" for message in error.messages)
        kind = "cancelled" if isinstance(error, ToolLoopCancelledError) else _kind(error)
        return task.failed(error, kind, results, kept())


async def _begin(task: Task, messages: list[Any], turn: Any, options: Any) -> str:
    from toolturn import run_tool_loop, stream_tool_loop
    from toolturn.limits import Limits
    from toolturn.speech import answer_stream

    with_limits: dict[str, Any] = {
        "limits": Limits(iterations=task.max_iterations, tool_calls=task.max_tool_calls, **task.limits),
        "on_limit": "answer" if task.answer_at_limit else "raise",
        "grace": task.grace,
        "price": (lambda usage: usage.total * 0.01) if "cost" in task.limits else None,
        "turn": turn,
    }
    model, tools = _model(task, options), _tools(task)
    if not task.stream:
        return (await run_tool_loop(messages, tools, model, **with_limits)).content
    async with stream_tool_loop(messages, tools, model, **with_limits) as events:
        if task.answer_only:
            async for piece in answer_stream(events):
                task.seen("text", piece)
        else:
            async for event in events:
                _tell(task, event)
        return (await events.result()).content


def _tell(task: Task, event: Any) -> None:
    match event.type:
        case "tool_call":
            task.seen("call", event.call.name)
        case "tool_result":
            task.seen("result", event.record.call.name)
        case "answer":
            task.seen("answer")


async def _resume(task: Task, options: Any) -> str:
    from toolturn import Approval, ToolCall, resume
    from toolturn.signing import verify
    from toolturn.turn import digest_of

    assert task.saved is not None
    state = verify(task.saved, task.secret) if task.secret else json.loads(task.saved)["state"]
    approvals = {
        each["id"]: Approval(
            each["approved"], each["reason"], digest_of(ToolCall(each["id"], each["name"], each["arguments"]))
        )
        for each in task.decisions
    }
    emit = (lambda event: None) if task.stream else None
    return (await resume(state, _tools(task), _model(task, options), approvals=approvals, emit=emit)).content


def _state(task: Task, error: Any) -> str:
    from toolturn.codec import messages_to_json
    from toolturn.signing import sign

    if task.secret:
        return sign(error, task.secret, expires_in=3600)
    return json.dumps({"state": error.state, "messages": messages_to_json(error.messages)})


def _history(task: Task) -> list[Any]:
    from toolturn.codec import messages_from_json

    return [] if task.saved is None else list(messages_from_json(json.loads(task.saved)["messages"]))


def _tools(task: Task) -> list[Any]:
    from toolturn import tool

    return [tool(approval=function.__name__ in task.approval)(function) for function in task.tools]


def _model(task: Task, options: Any) -> Any:
    from toolturn.models.named import model_named
    from toolturn.models.transport import Timeouts

    waits = Timeouts(task.timeout, task.timeout, task.timeout)
    wishes = {"choice_none": task.choice_none}
    return model_named(f"{task.base_url}#{task.model}", api_key=task.key, timeouts=waits, wishes=wishes, **options)


def _kind(error: Exception) -> str:
    from toolturn.errors import ModelAuthenticationError, ModelContextError, ModelRateLimitError, ToolLoopLimitError

    if isinstance(error, ToolLoopLimitError):
        return "limit"
    match error.__cause__:
        case ModelAuthenticationError():
            return "authentication"
        case ModelContextError():
            return "context"
        case ModelRateLimitError():
            return "rate_limit"
    return "other"
