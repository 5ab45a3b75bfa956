"""What goes out to OpenAI's chat completions: messages and tools into bytes, each once.

A message's bytes are kept in the message itself, so that every later request of the turn and of the conversation
joins what is there. They belong to one :class:`Encoder`: another server, or other names, encode anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any

from ...arguments import parse_arguments
from ...codec import plain
from ...content import as_text, data_of
from ...errors import InvalidToolArguments
from ...messages import ChatMessage, FilePart, ImagePart, TextPart, ToolCall, text_of
from ...model import ModelSettings
from ..schema import wire_name
from ..servers import Wishes

_FIT_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_NINE = re.compile(r"[A-Za-z0-9]{9}\Z")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MAX_SHOWN = 2000

EMPTY_RESULT = "(no output)"
"""What stands in for the text of a result that has none: some servers refuse it empty."""

SHOWN = "These belong to results of tools; they are no words of the user."
"""What begins the message of the user that holds the images of results."""

# https://platform.openai.com/docs/guides/images-vision and the others know these, a file is a PDF
_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_FILES = frozenset(("application/pdf",))

_BRIDGE = b'{"role":"assistant","content":"OK."}'

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=False).encode


def to_bytes(value: Any) -> bytes:
    """Return a value as compact JSON; what is no JSON is capped text, half a surrogate pair a question mark.

    Args:
        value: JSON's own types, or anything.
    """
    try:
        return _dumps(value).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return _dumps(plain(value)).encode("utf-8", "replace")


def wire_id(call_id: object, wishes: Wishes) -> str:
    """Return the form in which a server takes a call's id: its own where that fits, else a digest of it.

    Args:
        call_id: The id of the transcript.
        wishes: What the server takes.
    """
    text = call_id if isinstance(call_id, str) else str(call_id)
    fit = _NINE if wishes.ids == "nine" else _FIT_ID
    if fit.match(text):
        return text
    # a digest and never a part of it: long ids differ in the middle, and call and result must go on to agree
    number = int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
    letters = []
    for _ in range(9):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


class _Trail:
    """A transcript that has been encoded, up to the message that keeps it; moved on as the transcript grows.

    The message itself is not among ``before``: it would keep itself alive.
    """

    __slots__ = ("before", "ids", "pieces", "waiting")

    def __init__(self) -> None:
        self.before: list[ChatMessage] = []
        self.pieces: list[bytes] = []
        self.waiting: list[tuple[Any, list[bytes]]] = []
        self.ids: set[Any] = set()


class _Kept:
    """What an encoder keeps in a message."""

    __slots__ = ("encoder", "later", "piece", "trail")

    def __init__(self, encoder: Encoder, piece: bytes, later: list[bytes]) -> None:
        self.encoder = encoder
        self.piece = piece
        self.later = later
        self.trail: _Trail | None = None


class Encoder:
    """Encodes messages for one kind of server, each once.

    Args:
        wishes: What the server takes.
        origin: The server, by which fields it wants back are known to be its own.
        aliases: The wire's name of each tool that can not keep its own.
    """

    __slots__ = ("_aliases", "_bridges", "_origin", "_wishes")

    def __init__(self, wishes: Wishes, origin: str, aliases: Mapping[str, str]) -> None:
        self._wishes = wishes
        self._bridges = wishes.after_results == "assistant"
        self._origin = origin
        self._aliases = aliases

    def encode(self, messages: Sequence[ChatMessage]) -> tuple[list[bytes], Collection[Any]]:
        """Return each message as JSON, and the ids of the calls that are answered in them.

        A result may hold only text on this wire, so images and files of results follow the last result of their batch
        in a message of the user, each behind the name of its call. Of a transcript that was encoded before only what
        is new is looked at.

        Args:
            messages: A valid transcript.
        """
        start, trail = self._known(messages)
        if trail is None:
            trail = _Trail()
        last: _Kept | None = None
        for place in range(start, len(messages)):
            message = messages[place]
            last = self._kept(message)
            if message.role == "tool":
                trail.ids.add(message.tool_call_id if isinstance(message.tool_call_id, str) else None)
                if last.later:
                    trail.waiting.append((message.tool_call_id, last.later))
            elif trail.waiting:
                trail.pieces += self._shown(trail.waiting, messages, place)
                trail.waiting = []
            elif self._bridges and message.role == "user" and place and messages[place - 1].role == "tool":
                trail.pieces.append(_BRIDGE)
            trail.pieces.append(last.piece)
        if last is not None:
            trail.before += messages[max(start - 1, 0) : -1]
            last.trail = trail
        if trail.waiting:
            return [*trail.pieces, *self._shown(trail.waiting, messages, len(messages))], trail.ids
        return trail.pieces, trail.ids

    def _known(self, messages: Sequence[ChatMessage]) -> tuple[int, _Trail | None]:
        """How many messages have been encoded in this order before, and what is known of them."""
        for place in range(len(messages) - 1, -1, -1):
            message = messages[place]
            kept: _Kept | None = getattr(message, "_encoded", None)
            if kept is None or kept.encoder is not self or kept.trail is None:
                continue
            trail = kept.trail
            # the same objects mostly, so that this compares addresses
            if len(trail.before) == place and trail.before == list(messages[:place]):
                if place < len(messages) - 1:
                    kept.trail = None
                return place + 1, trail
            return 0, None
        return 0, None

    def _kept(self, message: ChatMessage) -> _Kept:
        kept: _Kept | None = getattr(message, "_encoded", None)
        if kept is None or kept.encoder is not self:
            later: list[bytes] = []
            kept = _Kept(self, self._one(message, later), later)
            object.__setattr__(message, "_encoded", kept)
        return kept

    def _one(self, message: ChatMessage, later: list[bytes]) -> bytes:
        role = message.role
        content: Any = message.content
        if role == "tool":
            text = content if type(content) is str else self._result_text(content, later)
            call_id = encode_basestring(wire_id(message.tool_call_id, self._wishes))
            line = f'{{"role":"tool","tool_call_id":{call_id},"content":{encode_basestring(text or EMPTY_RESULT)}}}'
            return line.encode("utf-8", "replace")
        if role == "assistant":
            return to_bytes(self._assistant(message))
        if role in ("system", "developer"):
            return to_bytes({"role": self._wishes.system, "content": _parts(content)})
        return to_bytes({"role": role, "content": _parts(content) if self._wishes.images else as_text(content)})

    def _assistant(self, message: ChatMessage) -> dict[str, Any]:
        wishes = self._wishes
        text = text_of(message.content)
        made: dict[str, Any] = {"role": "assistant", "content": text}
        mine = message.opaque if message.opaque and message.opaque.get("origin") == self._origin else None
        if mine:
            made.update(mine.get("message") or {})
        calls = message.tool_calls
        if calls:
            of_calls = mine.get("calls") or {} if mine else {}
            if not text and wishes.beside_calls == "null":
                made["content"] = None
            elif not text and wishes.beside_calls == "omit":
                del made["content"]
            made["tool_calls"] = [
                self._call(call, of_calls.get(call.id) if of_calls and isinstance(call.id, str) else None)
                for call in calls
            ]
        return made

    def _call(self, call: ToolCall, more: Mapping[str, Any] | None) -> dict[str, Any]:
        arguments: Any = call.arguments
        try:
            parse_arguments(arguments)
        except InvalidToolArguments:
            # What the model wrote is no JSON: servers refuse it, and the model has to see what it did.
            arguments = to_bytes({"invalid_arguments": str(arguments)[:_MAX_SHOWN]}).decode()
        name = self._aliases.get(call.name) or wire_name(call.name)
        return {
            "id": wire_id(call.id, self._wishes),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
            **(more or {}),
        }

    def _result_text(self, content: Any, later: list[bytes]) -> str:
        """The text of a result in parts; what of it can be shown goes to ``later``."""

        def note(part: ImagePart | FilePart) -> str:
            if not self._can_show(part):
                return "can not be shown"
            later.append(to_bytes(_part(part)))
            return "shown in the next message of the user"

        return as_text(content, note)

    def _can_show(self, part: ImagePart | FilePart) -> bool:
        if not self._wishes.result_images:
            return False
        data = data_of(part.url)
        if isinstance(part, FilePart):
            return self._wishes.files and data is not None and data[0] in _FILES
        fits = data[0] in _IMAGES if data else part.url.startswith(("https://", "http://"))
        return self._wishes.images and fits

    def _shown(
        self, waiting: list[tuple[Any, list[bytes]]], messages: Sequence[ChatMessage], end: int
    ) -> Iterator[bytes]:
        """What shows the images and files of the results that end there, each behind the name of its call."""
        if self._bridges:
            yield _BRIDGE
        while end and messages[end - 1].role == "tool":
            end -= 1
        names = {call.id: call.name for call in messages[end - 1].tool_calls or ()} if end else {}
        pieces = [to_bytes({"type": "text", "text": SHOWN})]
        for call_id, parts in waiting:
            name = wire_name(names[call_id]) if call_id in names else "a tool"
            name = self._aliases.get(names.get(call_id, ""), name)
            pieces.append(to_bytes({"type": "text", "text": f"{name}, call {wire_id(call_id, self._wishes)}:"}))
            pieces += parts
        yield b'{"role":"user","content":[' + b",".join(pieces) + b"]}"


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return [_part(part) for part in content]
    return text_of(content)


def _part(part: Any) -> Any:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": part.url}}
    if isinstance(part, FilePart):
        return {"type": "file", "file": {"file_data": part.url, "filename": part.name or "file"}}
    return {"type": "text", "text": part} if isinstance(part, str) else part


def settings_fields(
    settings: ModelSettings, wishes: Wishes, names: Mapping[str, str], *, tools: bool
) -> dict[str, Any]:
    """Return the fields of a request that settings ask for.

    Args:
        settings: How to reply.
        wishes: What the server takes.
        names: The wire's name of each tool.
        tools: Whether tools are offered; without, no tool choice is sent.

    Raises:
        ValueError: The tool choice names no tool.
    """
    fields: dict[str, Any] = {}
    if settings.temperature is not None:
        fields["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        fields[wishes.max_tokens] = settings.max_tokens
    if settings.stop:
        fields["stop"] = list(settings.stop)
    if settings.seed is not None:
        fields["seed"] = settings.seed
    choice = settings.tool_choice
    if choice is not None and tools:
        fields["tool_choice"] = _choice(choice, wishes, names)
    fields.update(settings.extra)
    if not (wishes.parallel_calls and tools):
        fields.pop("parallel_tool_calls", None)
    return fields


def _choice(choice: str, wishes: Wishes, names: Mapping[str, str]) -> Any:
    if choice in ("auto", "none"):
        return choice
    if choice == "required":
        return wishes.required
    if choice not in names:
        raise ValueError(f"tool_choice {choice!r:.80} is none of auto, none, required and the tools offered")
    if wishes.named == "required":
        return wishes.required
    return {"type": "function", "function": {"name": names[choice]}}
