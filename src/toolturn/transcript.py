"""What a valid transcript is, how one that is not becomes one, and how a long one becomes shorter.

A transcript is valid when every call of an assistant message is answered exactly once, by the tool messages that
follow it directly, and no tool message answers anything else. This is what providers check; one bad pair makes each
later request fail.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .messages import ChatMessage, ToolCall, text_of
from .trim import Trimmed, rough_tokens, trim

__all__ = [
    "NO_RESULT",
    "Fault",
    "RepairReport",
    "Trimmed",
    "check",
    "closing_content",
    "pending_calls",
    "repair",
    "rough_tokens",
    "trim",
]

_ROLES = frozenset(("system", "user", "assistant", "tool"))

_CLOSINGS = {
    "denied": "The call was not approved, so it was not run.",
    "approval_required": "The call was not run; it waits for approval.",
    "not_executed": "The call was not run because the turn ended first.",
    "cancelled": "The call was cancelled while it ran; it may have had an effect.",
    "outcome_unknown": "The call did not finish in time and was left behind; it may have had an effect.",
}

NO_RESULT = "The result of the call was not recorded: it may have been run, or not."
"""What answers a call of a transcript that does not say what became of it."""


def closing_content(status: str, reason: str = "") -> str:
    """Return the content that answers a call which has no outcome of its own.

    Args:
        status: ``not_executed``, ``cancelled``, ``outcome_unknown``, ``denied`` or ``approval_required``.
        reason: What to say instead of what is always said.
    """
    return json.dumps({"error": status, "detail": reason or _CLOSINGS[status]})


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one message.

    Args:
        index: The place of the message.
        text: What is wrong, in one sentence without the message's text.
    """

    index: int
    text: str

    def __str__(self) -> str:
        return f"message {self.index}: {self.text}"


def check(messages: Sequence[ChatMessage]) -> list[Fault]:
    """Return all that makes these messages no valid transcript; nothing when they are one.

    Args:
        messages: The transcript, oldest first.
    """
    faults: list[Fault] = []
    waiting: dict[str, int] = {}
    owner = 0
    for index, message in enumerate(messages):
        role = message.role
        if role == "tool":
            call_id = message.tool_call_id
            if not isinstance(call_id, str) or not call_id:
                faults.append(Fault(index, "a tool message without the id of the call it answers"))
            elif not waiting.get(call_id):
                faults.append(Fault(index, "a tool message that answers no open call"))
            else:
                waiting[call_id] -= 1
                if not waiting[call_id]:
                    del waiting[call_id]
            if not isinstance(message.content, (str, list, tuple)):
                faults.append(Fault(index, "a tool message without text"))
            if message.tool_calls:
                faults.append(Fault(index, "only an assistant message may hold calls"))
            continue
        if waiting:
            faults.append(Fault(owner, f"{sum(waiting.values())} of its calls are not answered"))
            waiting = {}
        if not isinstance(role, str) or role not in _ROLES:
            faults.append(Fault(index, "its role is none of system, user, assistant, tool"))
        calls = message.tool_calls
        if calls:
            if role != "assistant":
                faults.append(Fault(index, "only an assistant message may hold calls"))
                continue
            owner = index
            for call in calls if isinstance(calls, (list, tuple)) else [None]:
                if not isinstance(call, ToolCall):
                    faults.append(Fault(index, "one of its calls is no ToolCall"))
                    continue
                if not isinstance(call.id, str) or not call.id.strip():
                    faults.append(Fault(index, "a call without an id"))
                elif call.id in waiting:
                    faults.append(Fault(index, "two of its calls have the same id"))
                else:
                    waiting[call.id] = 1
                if not isinstance(call.name, str) or not isinstance(call.arguments, str):
                    faults.append(Fault(index, "a call whose name or arguments are no text"))
        elif not isinstance(message.content, (str, list, tuple)):
            faults.append(Fault(index, "it has neither text nor calls"))
    if waiting:
        faults.append(Fault(owner, f"{sum(waiting.values())} of its calls are not answered"))
    return faults


def pending_calls(messages: Sequence[ChatMessage]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of the transcript that no message answers yet, in emitted order.

    Args:
        messages: The transcript, oldest first.
    """
    answered: list[Any] = []
    for message in reversed(messages):
        if message.role == "tool":
            answered.append(message.tool_call_id)
        elif message.role == "assistant" and message.tool_calls and isinstance(message.tool_calls, (list, tuple)):
            return tuple(c for c in message.tool_calls if isinstance(c, ToolCall) and c.id not in answered)
        else:
            break
    return ()


@dataclass(frozen=True, slots=True)
class RepairReport:
    """A mended transcript and what was done to it.

    Args:
        messages: The valid transcript.
        changes: One sentence per change, with the place in the transcript that was given.
    """

    messages: tuple[ChatMessage, ...]
    changes: tuple[Fault, ...]


def repair(messages: Sequence[ChatMessage]) -> RepairReport:
    """Return a valid transcript made of these messages, and a report of each change.

    Calls without a result are closed as of an unknown outcome, results that answer nothing are dropped, unusable or
    repeated ids are replaced together with their results, and messages of an unknown role become user messages.

    Args:
        messages: The transcript, oldest first.
    """
    if not check(messages):
        return RepairReport(tuple(messages), ())
    made: list[ChatMessage] = []
    changes: list[Fault] = []
    batch: list[_OpenCall] = []
    answers: list[ChatMessage] = []

    def close() -> None:
        if all(item.answer for item in batch):
            made.extend(answers)  # nothing is wrong with the order in which they came
            batch.clear()
        answers.clear()
        for item in batch:
            if item.answer is None:
                changes.append(Fault(item.index, "a call without a result was closed as of an unknown outcome"))
                made.append(ChatMessage("tool", closing_content("outcome_unknown", NO_RESULT), None, item.id))
            else:
                made.append(item.answer)
        batch.clear()

    for index, message in enumerate(messages):
        if message.role == "tool":
            match = next((c for c in batch if c.given == message.tool_call_id and c.answer is None), None)
            if match is None:
                changes.append(Fault(index, "a tool message that answers no open call was dropped"))
                continue
            content = message.content
            if not isinstance(content, (str, list, tuple)):
                changes.append(Fault(index, "a tool message without text was given some"))
                content = text_of(content) or "null"
            if message.tool_calls:
                changes.append(Fault(index, "calls outside an assistant message were dropped"))
            match.answer = ChatMessage("tool", content, None, match.id)
            answers.append(match.answer)
            continue
        close()
        made.append(_mended(index, message, batch, changes))
    close()
    return RepairReport(tuple(made), tuple(changes))


@dataclass(slots=True)
class _OpenCall:
    index: int
    given: Any
    id: str
    answer: ChatMessage | None = None


def _mended(index: int, message: ChatMessage, batch: list[_OpenCall], changes: list[Fault]) -> ChatMessage:
    """The message as it may stand in a transcript; its calls are opened in ``batch``."""
    role, content = message.role, message.content
    calls: Any = message.tool_calls
    if not isinstance(role, str) or role not in _ROLES:
        changes.append(Fault(index, "a message of an unknown role became a user message"))
        role = "user"
    if calls and role != "assistant":
        changes.append(Fault(index, "calls outside an assistant message were dropped"))
        calls = None
    kept: list[ToolCall] = []
    if calls is not None and not isinstance(calls, (list, tuple)):
        calls = [None]
    for place, call in enumerate(calls or ()):
        if not isinstance(call, ToolCall):
            changes.append(Fault(index, "a call that is no ToolCall was dropped"))
            continue
        name = call.name if isinstance(call.name, str) else text_of(call.name) or "unknown"
        arguments = call.arguments if isinstance(call.arguments, str) else _as_json(call.arguments)
        used = {item.id for item in batch}
        call_id = call.id if isinstance(call.id, str) and call.id.strip() else ""
        if not call_id or call_id in used:
            changes.append(Fault(index, "a call with an unusable or repeated id was given another"))
            call_id = next(i for n in range(len(used) + 1) if (i := f"call_{index}_{place}_{n}") not in used)
        if name != call.name or arguments != call.arguments:
            changes.append(Fault(index, "the name or the arguments of a call became text"))
        batch.append(_OpenCall(index, call.id, call_id))
        kept.append(ToolCall(call_id, name, arguments))
    if not isinstance(content, (str, list, tuple)) and not (content is None and kept):
        changes.append(Fault(index, "a message without text was given an empty one"))
        content = text_of(content)
    if (role, content) == (message.role, message.content) and (kept or None) == (message.tool_calls or None):
        return message
    return ChatMessage(role, content, kept or None, message.tool_call_id if role == "tool" else None)


def _as_json(value: Any) -> str:
    try:
        return json.dumps({} if value is None else value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return "{}"
