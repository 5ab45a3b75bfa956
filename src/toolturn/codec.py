"""Versioned JSON of everything a turn is made of.

The codec is total: it writes what a model really sent, an id of ``7`` or half a surrogate pair too. What JSON has no
form for is written as a capped text, so a provider's raw object never stands in the way of saving a turn. Reading is
strict: anything else than what was written is a ValueError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from . import errors as _errors
from .documents import fault_of
from .errors import ErrorCause, ToolLoopError
from .limits import Limits
from .messages import (
    ChatMessage,
    ChatResponse,
    Content,
    ContentPart,
    FilePart,
    ImagePart,
    Repair,
    TextPart,
    ToolCall,
    Usage,
)
from .results import Approval, ToolCallRecord, ToolLoopResult

VERSION = 1

_MAX_DEPTH = 64
_MAX_REPR = 500
_LONGEST_INT = 10**4000  # beyond this the interpreter refuses to write an integer in decimal

T = TypeVar("T")

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value in JSON's own types; what has no JSON form becomes a capped text.

    Args:
        value: Anything.
        depth: How deep the value lies in the whole.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration its value
    if isinstance(value, int):
        return int(value) if -_LONGEST_INT < value < _LONGEST_INT else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            try:
                items = list(value.items())
            except Exception:  # noqa: BLE001 - a foreign mapping may fail in any way
                return _capped(value)
            return {key if isinstance(key, str) else _capped(key): plain(item, depth + 1) for key, item in items}
        if isinstance(value, (list, tuple)):
            return [plain(item, depth + 1) for item in value]
    return _capped(value)


def _capped(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as exc:  # noqa: BLE001 - a broken repr must not lose the turn
        text = f"<{type(value).__name__} whose repr raised {type(exc).__name__}>"
    return text if len(text) <= _MAX_REPR else text[: _MAX_REPR - 1] + "…"


def dumps(value: Any) -> str:
    """Return compact JSON in ASCII, in which half a surrogate pair has a form too."""
    return _encode(value)


def read(text: str, what: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Return what ``build`` makes of a JSON document of this codec.

    Args:
        text: The document.
        what: What it has to be, such as ``turn``.
        build: Makes the object of the document.

    Raises:
        ValueError: It is no such document, or of another version.
    """
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"this is no saved {what.removeprefix('saved ')}: it is not JSON") from None
    if not isinstance(data, dict) or data.get("kind") != what:
        raise ValueError(f"this is no saved {what.removeprefix('saved ')}")
    version = data.get("v")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"this {what} was saved in version {version!r:.20}; this toolturn reads version {VERSION}")
    if (fault := fault_of(what, data)) is not None:
        raise ValueError(f"this saved {what} is damaged: {fault}")
    try:
        return build(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as exc:
        raise ValueError(f"this saved {what} is damaged: {type(exc).__name__} {exc}") from None


def kind_of(text: str) -> str | None:
    """Return what kind of document of this codec a text is, or None.

    Args:
        text: Anything.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) else None


# --- messages ----------------------------------------------------------------------------


def call_to_dict(call: ToolCall) -> dict[str, Any]:
    """Return a call in JSON's own types."""
    return {"id": plain(call.id), "name": plain(call.name), "arguments": plain(call.arguments)}


def _calls_to_json(calls: Any) -> Any:
    """The calls of a response, which may be anything a model sent."""
    if not isinstance(calls, (list, tuple)):
        return plain(calls)
    return [call_to_dict(call) if isinstance(call, ToolCall) else plain(call) for call in calls]


def _calls_from_json(calls: Any) -> Any:
    if not isinstance(calls, list):
        return calls
    keys = {"id", "name", "arguments"}
    return [call_from_dict(call) if isinstance(call, dict) and call.keys() == keys else call for call in calls]


def call_from_dict(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that :func:`call_to_dict` wrote."""
    return ToolCall(data["id"], data["name"], data["arguments"])


def _content_to_json(content: Any) -> Any:
    if isinstance(content, (list, tuple)):
        return [_part_to_json(part) for part in content]
    return plain(content)


def _part_to_json(part: Any) -> Any:
    if isinstance(part, TextPart):
        return plain({"type": "text", "text": part.text})
    if isinstance(part, FilePart):
        return plain({"type": "file", "url": part.url, "name": part.name})
    return plain({"type": "image_url", "url": part.url} if isinstance(part, ImagePart) else part)


def _part_from_json(part: Any) -> ContentPart:
    match part:
        case {"type": "text", "text": str() as text, **rest} if not rest:
            return TextPart(text)
        case {"type": "image_url", "url": str() as url, **rest} if not rest:
            return ImagePart(url)
        case {"type": "file", "url": str() as url, "name": str() as name, **rest} if not rest:
            return FilePart(url, name)
        case _:
            untyped: ContentPart = part  # kept as it came: a part of a provider's own
            return untyped


def _content_from_json(content: Any) -> Content:
    if isinstance(content, list):
        return [_part_from_json(part) for part in content]
    text: Content = content
    return text


def message_to_dict(message: ChatMessage) -> dict[str, Any]:
    """Return a message in JSON's own types; keys without a value are left out."""
    data: dict[str, Any] = {"role": plain(message.role), "content": _content_to_json(message.content)}
    if message.tool_calls is not None:
        data["tool_calls"] = _calls_to_json(message.tool_calls)
    if message.tool_call_id is not None:
        data["tool_call_id"] = plain(message.tool_call_id)
    if message.opaque is not None:
        data["opaque"] = plain(message.opaque)
    return data


def message_from_dict(data: Mapping[str, Any]) -> ChatMessage:
    """Return the message that :func:`message_to_dict` wrote."""
    calls = data.get("tool_calls")
    return ChatMessage(
        data["role"],
        _content_from_json(data["content"]),
        None if calls is None else [call_from_dict(call) for call in calls],
        data.get("tool_call_id"),
        data.get("opaque"),
    )


def messages_from_json(text: str) -> tuple[ChatMessage, ...]:
    """Return the messages of a JSON list, as :func:`message_to_dict` or OpenAI's chat completions write them.

    Args:
        text: A JSON list of messages, or an object with the key ``messages``.

    Raises:
        ValueError: It is no such list; the message at fault is named.
    """
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("the messages are not JSON") from None
    items = data.get("messages") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise ValueError("the messages must be a JSON list, or an object with the key 'messages'")
    made = []
    for index, item in enumerate(items):
        try:
            calls = item.get("tool_calls")
            unfolded = calls and [{**call, **call["function"]} if "function" in call else call for call in calls]
            content = item.get("content")
            if not unfolded and item.get("role") == "assistant" and isinstance(content, list):
                content, unfolded = _without_calls(content)
            made.append(message_from_dict({**item, "content": content, "tool_calls": unfolded}))
        except (KeyError, TypeError, AttributeError):
            raise ValueError(f"message {index} is no chat message") from None
    return tuple(made)


def _without_calls(parts: list[Any]) -> tuple[list[Any], list[dict[str, Any]] | None]:
    """The parts of an assistant's content that are no calls, and the calls, which some providers write among them."""
    calls = [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]
    if not calls:
        return parts, None
    return [part for part in parts if part not in calls], [
        {"id": part["id"], "name": part["name"], "arguments": dumps(part.get("input") or {})} for part in calls
    ]


def response_to_dict(response: ChatResponse) -> dict[str, Any]:
    """Return a response in JSON's own types, whatever the model sent."""
    data = {
        "content": _content_to_json(response.content),
        "reasoning": plain(response.reasoning),
        "tool_calls": _calls_to_json(response.tool_calls),
        "finish_reason": plain(response.finish_reason),
        "raw": plain(response.raw),
        "usage": None if response.usage is None else asdict(response.usage),
        "repairs": [asdict(repair) for repair in response.repairs],
    }
    if response.opaque is not None:
        data["opaque"] = plain(response.opaque)
    return data


def response_from_dict(data: Mapping[str, Any]) -> ChatResponse:
    """Return the response that :func:`response_to_dict` wrote."""
    content: Any = _content_from_json(data["content"])
    return ChatResponse(
        content,
        data["reasoning"],
        _calls_from_json(data["tool_calls"]),
        data["finish_reason"],
        data["raw"],
        None if data["usage"] is None else Usage(**data["usage"]),
        tuple(Repair(**repair) for repair in data["repairs"]),
        data.get("opaque"),
    )


def approval_to_dict(approval: Approval) -> dict[str, Any]:
    """Return an approval in JSON's own types."""
    return {"approved": approval.approved, "reason": plain(approval.reason), "digest": approval.digest}


def approval_from_dict(data: Mapping[str, Any]) -> Approval:
    """Return the approval that :func:`approval_to_dict` wrote."""
    return Approval(**data)


# --- audit, limits, results, errors ------------------------------------------------------


def record_to_dict(record: ToolCallRecord) -> dict[str, Any]:
    """Return a line of the audit in JSON's own types."""
    return {
        "op": record.op,
        "call": call_to_dict(record.call),
        "message": message_to_dict(record.message),
        "return_direct": record.return_direct,
        "status": record.status,
        "started": record.started,
        "seconds": record.seconds,
        "error": record.error,
        "usage": None if record.usage is None else asdict(record.usage),
        "loop_key": record.loop_key,
    }


def record_from_dict(data: Mapping[str, Any]) -> ToolCallRecord:
    """Return the record that :func:`record_to_dict` wrote."""
    return ToolCallRecord(
        call_from_dict(data["call"]),
        message_from_dict(data["message"]),
        data["return_direct"],
        data["op"],
        data["status"],
        data["started"],
        data["seconds"],
        data["error"],
        None if data["usage"] is None else Usage(**data["usage"]),
        data["loop_key"],
    )


def limits_to_dict(limits: Limits) -> dict[str, Any]:
    """Return limits in JSON's own types."""
    return {name: value for name, value in asdict(limits).items() if name != "spending"}


def limits_from_dict(data: Mapping[str, Any]) -> Limits:
    """Return the limits that :func:`limits_to_dict` wrote."""
    return Limits(**data)


def result_to_dict(result: ToolLoopResult) -> dict[str, Any]:
    """Return a result in JSON's own types."""
    return {
        "v": VERSION,
        "kind": "result",
        "content": result.content,
        "return_direct": result.return_direct,
        "iterations": result.iterations,
        "limit": result.limit,
        "turn_id": result.turn_id,
        "usage": asdict(result.usage),
        "repairs": [asdict(repair) for repair in result.repairs],
        "messages": [message_to_dict(message) for message in result.messages],
        "tool_calls": [record_to_dict(record) for record in result.tool_calls],
        "value": _value_to_json(result.value),
    }


def _value_to_json(value: Any) -> Any:
    if value is None:
        return None
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value)
    except Exception:  # noqa: BLE001 - what can not be written is told as the text it has
        return plain(value)


def result_to_json(result: ToolLoopResult) -> str:
    """Return a result as one JSON document."""
    return dumps(result_to_dict(result))


def result_from_json(text: str) -> ToolLoopResult:
    """Return the result that :func:`result_to_json` wrote.

    Raises:
        ValueError: It is no such document.
    """
    return read(
        text,
        "result",
        lambda data: ToolLoopResult(
            data["content"],
            *_transcript_and_audit(data),
            data["iterations"],
            data["return_direct"],
            Usage(**data["usage"]),
            data["turn_id"],
            data["limit"],
            tuple(Repair(**repair) for repair in data["repairs"]),
            data["value"],
        ),
    )


def _transcript_and_audit(
    data: Mapping[str, Any],
) -> tuple[tuple[ChatMessage, ...], tuple[ToolCallRecord, ...]]:
    return (
        tuple(message_from_dict(message) for message in data["messages"]),
        tuple(record_from_dict(record) for record in data["tool_calls"]),
    )


def cause_of(exc: BaseException) -> ErrorCause:
    """Return type and text of an exception, whatever its ``__str__`` does."""
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure
        text = ""
    return ErrorCause(type(exc).__name__, text)


def error_to_dict(error: ToolLoopError) -> dict[str, Any]:
    """Return an error in JSON's own types."""
    rejected = error.rejected_response
    return {
        "v": VERSION,
        "kind": "error",
        "class": type(error).__name__,
        "message": str(error),
        "iterations": error.iterations,
        "turn_id": error.turn_id,
        "cause": None if error.cause is None else asdict(error.cause),
        "usage": asdict(error.usage),
        "repairs": [asdict(repair) for repair in error.repairs],
        "rejected_response": None if rejected is None else response_to_dict(rejected),
        "messages": [message_to_dict(message) for message in error.messages],
        "tool_calls": [record_to_dict(record) for record in error.tool_calls],
        "state": None if error.state is None else json.loads(error.state),
    }


def error_to_json(error: ToolLoopError) -> str:
    """Return an error with all it carries as one JSON document."""
    return dumps(error_to_dict(error))


def error_from_json(text: str) -> ToolLoopError:
    """Return the error that :func:`error_to_json` wrote, of the same class; its cause is type and text.

    Raises:
        ValueError: It is no such document.
    """
    return read(text, "error", _error)


def _error(data: Mapping[str, Any]) -> ToolLoopError:
    cls = getattr(_errors, data["class"])
    if not (isinstance(cls, type) and issubclass(cls, ToolLoopError)):
        raise TypeError(f"{data['class']} is no ToolLoopError")
    messages, records = _transcript_and_audit(data)
    rejected = data["rejected_response"]
    return cls(
        data["message"],
        messages=messages,
        tool_calls=records,
        iterations=data["iterations"],
        rejected_response=None if rejected is None else response_from_dict(rejected),
        usage=Usage(**data["usage"]),
        turn_id=data["turn_id"],
        state=None if data["state"] is None else dumps(data["state"]),
        cause=None if data["cause"] is None else ErrorCause(**data["cause"]),
        repairs=[Repair(**repair) for repair in data["repairs"]],
    )


def messages_to_json(messages: Sequence[ChatMessage]) -> str:
    """Return messages as a JSON list."""
    return dumps([message_to_dict(message) for message in messages])
