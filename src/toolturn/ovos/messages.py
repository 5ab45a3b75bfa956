"""OpenVoiceOS's messages into ours and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole, MultimodalAgentMessage
from ovos_plugin_manager.templates.agents import ToolCall as AgentToolCall

from ..arguments import mend_arguments, parse_arguments
from ..codec import plain
from ..errors import InvalidToolArguments, ModelProtocolError
from ..messages import ChatMessage, ChatResponse, ContentPart, FilePart, ImagePart, TextPart, ToolCall, text_of
from ..models.ingest.calls import calls_of

# What the first characters of base64 say of a file, whose type the interface does not tell.
_IMAGES: Final = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_AUDIO: Final = {"UklGR": "audio/wav", "SUQz": "audio/mpeg", "T2dnUw": "audio/ogg", "ZkxhQw": "audio/flac"}
_FILES: Final = {"JVBERi": "application/pdf", "UEsDB": "application/zip"}


def chat_messages(messages: Iterable[Any]) -> list[ChatMessage]:
    """Return OpenVoiceOS's messages as ours, one for one; what is wrong with them is not mended here.

    Args:
        messages: The conversation, oldest first: AgentMessages, or dictionaries of their fields.
    """
    return [_chat_message(_message(each) if isinstance(each, Mapping) else each) for each in messages]


def _message(fields: Mapping[str, Any]) -> AgentMessage:
    known = {key: fields.get(key) for key in ("tool_calls", "tool_call_id", "name")}
    return AgentMessage(fields.get("role", "user"), fields.get("content"), **known)


def _chat_message(message: AgentMessage) -> ChatMessage:
    role = plain(message.role)
    given: Any = message.tool_calls
    calls: list[Any] | None = None
    if isinstance(given, (list, tuple)) and given:
        calls = [_tool_call(call) if isinstance(call, AgentToolCall) else call for call in given]
        calls = calls_of(calls)
    if role == "developer":
        role = "system"
    call_id = message.tool_call_id if role == "tool" else None
    return ChatMessage(role, _content(message), calls, call_id)


def _content(message: AgentMessage) -> str | list[ContentPart]:
    text = text_of(message.content)
    if not isinstance(message, MultimodalAgentMessage):
        return text
    parts: list[ContentPart] = [ImagePart(_address(data, _IMAGES)) for data in message.image_content or ()]
    parts += [FilePart(_address(data, _AUDIO)) for data in message.audio_content or ()]
    parts += [FilePart(_address(data, _FILES)) for data in message.file_content or ()]
    return [TextPart(text), *parts] if parts else text


def _address(data: str, known: dict[str, str]) -> str:
    if data.startswith(("data:", "https:", "http:")):
        return data
    kind = next((kind for start, kind in known.items() if data.startswith(start)), None)
    return f"data:{kind or next(iter(known.values()))};base64,{data}"


def _tool_call(call: Any) -> ToolCall:
    arguments: Any = call.arguments
    if arguments is None:
        arguments = "{}"
    elif not isinstance(arguments, str):
        try:
            # with NaN where there is one, which is refused where the text is read
            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            arguments = f"<{type(arguments).__name__}>"
    return ToolCall(call.id, call.name, arguments)


def agent_messages(messages: Sequence[ChatMessage]) -> list[AgentMessage]:
    """Return our messages as OpenVoiceOS's, one for one; a tool message is given the name of its tool.

    Args:
        messages: A valid transcript.
    """
    names: dict[str, str] = {}
    return [agent_message(message, names) for message in messages]


def agent_message(message: ChatMessage, names: dict[str, str]) -> AgentMessage:
    """Return one of our messages as one of OpenVoiceOS's.

    Args:
        message: The message.
        names: The tools of the calls so far by their ids; those of this message are added.
    """
    text = text_of(message.content)
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        return AgentMessage(MessageRole.TOOL, text, tool_call_id=call_id, name=names.get(call_id))
    if message.tool_calls:
        names.update((call.id, call.name) for call in message.tool_calls)
        return AgentMessage(MessageRole.ASSISTANT, text, tool_calls=list(map(agent_call, message.tool_calls)))
    role = MessageRole(message.role)
    if isinstance(message.content, str):
        return AgentMessage(role, text)
    images = [_data(part.url) for part in message.content if isinstance(part, ImagePart)]
    files = [part.url for part in message.content if isinstance(part, FilePart)]
    if not images and not files:
        return AgentMessage(role, text)
    audio = [_data(url) for url in files if url.startswith("data:audio/")]
    files = [_data(url) for url in files if not url.startswith("data:audio/")]
    return MultimodalAgentMessage(role, text, image_content=images, audio_content=audio, file_content=files)


def _data(url: str) -> str:
    return url.partition(";base64,")[2] or url


def agent_call(call: ToolCall) -> AgentToolCall:
    """Return one of our calls as one of OpenVoiceOS's, which holds its arguments as a dictionary.

    Args:
        call: The call; where its arguments are no object, what the model wrote stands under ``invalid_json``.
    """
    try:
        arguments = parse_arguments(call.arguments)
    except InvalidToolArguments:
        try:
            arguments, _ = mend_arguments(call.arguments)
        except InvalidToolArguments:
            arguments = {"invalid_json": text_of(call.arguments)}
    return AgentToolCall(call.id, call.name, arguments)


def response_of(answer: Any, who: str) -> ChatResponse:
    """Return what a brain answered as a reply of a model; nothing of it is mended here.

    Args:
        answer: What its ``continue_chat`` returned.
        who: The name of the brain, for people.

    Raises:
        ModelProtocolError: It is no message.
    """
    if not hasattr(answer, "content"):
        raise ModelProtocolError(f"the brain {who} returned {type(answer).__name__}, not an AgentMessage")
    calls: Any = getattr(answer, "tool_calls", None)
    if isinstance(calls, (list, tuple)):
        calls = [_tool_call(call) if isinstance(call, AgentToolCall) else call for call in calls] or None
    return ChatResponse(answer.content, getattr(answer, "reasoning", None), calls)


def message_of(response: ChatResponse) -> AgentMessage:
    """Return a reply of a model as a brain's answer.

    Args:
        response: The reply.
    """
    calls = [agent_call(call) for call in response.tool_calls] if response.tool_calls else None
    return AgentMessage(MessageRole.ASSISTANT, text_of(response.content), tool_calls=calls)
