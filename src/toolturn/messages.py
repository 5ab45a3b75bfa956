"""The vocabulary: messages, tool calls, tool definitions, responses and usage.

Nothing here validates. A response is what a model really sent, an id of ``7`` included; what
may enter a transcript is decided by the machine in :mod:`toolturn.turn`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from .frozen import frozen

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@frozen
class TextPart:
    """A piece of text in a message of several parts."""

    text: str
    type: Literal["text"] = "text"


@frozen
class ImagePart:
    """An image in a message, by address (``https:`` or ``data:``)."""

    url: str
    type: Literal["image_url"] = "image_url"

    def __repr__(self) -> str:
        return f"ImagePart(url={_without_data(self.url)!r})"


@frozen
class FilePart:
    """A file in a message, by address (``https:`` or ``data:``).

    Args:
        url: The address.
        name: The file's name; empty where it has none.
    """

    url: str
    name: str = ""
    type: Literal["file"] = "file"

    def __repr__(self) -> str:
        return f"FilePart(url={_without_data(self.url)!r}, name={self.name!r})"


def _without_data(url: object) -> object:
    """The address without the base64 in it, of which logs and tracebacks would be full."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return url
    head, comma, data = url.partition(",")
    return f"{head},… {len(data)} characters" if comma else url


ContentPart: TypeAlias = TextPart | ImagePart | FilePart
Content: TypeAlias = str | Sequence[ContentPart]


class _Encoded:
    """The hidden slot that keeps the encoded form of a message.

    It stands in a base class because a dataclass knows only its own slots: the kept bytes take no
    part in construction, comparison, ``replace``, copying, pickling or JSON.
    """

    __slots__ = ("_encoded",)
    _encoded: Any


class _Parsed:
    """The hidden slot that keeps a call's parsed arguments from the edge to the tool; see :mod:`toolturn.arguments`.

    Like the encoded form of a message it takes no part in anything a dataclass does.
    """

    __slots__ = ("_parsed",)
    _parsed: dict[str, Any] | None


@frozen
class ToolCall(_Parsed):
    """A request of the model to run a tool.

    Args:
        id: The provider's id of the call; nothing is checked here.
        name: The tool's name as the model wrote it.
        arguments: The arguments as JSON text.
    """

    id: str
    name: str
    arguments: str


@frozen
class ChatMessage(_Encoded):
    """One message of a transcript.

    Args:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        content: Text, or a sequence of parts.
        tool_calls: The calls an assistant message asks for.
        tool_call_id: The id of the call that a tool message answers.
        opaque: Fields of the model's reply that its provider wants back unchanged, such as signatures of its
            reasoning; only the wire that read them writes them, and only to the same server.
    """

    role: str
    content: Content
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    opaque: Mapping[str, Any] | None = None


@frozen
class ToolDef:
    """What a model is told of a tool.

    Args:
        name: The name the model calls it by.
        description: When and how to use it.
        parameters: The JSON Schema of its arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]

    def to_openai(self) -> dict[str, Any]:
        """Return the definition in the form of OpenAI's chat completions."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


@frozen
class Usage:
    """Tokens of one or several model calls; a count that is not known is 0.

    Args:
        input: Tokens read, the cached ones included.
        output: Tokens written, the reasoning included.
        cached: Tokens of the input that came from the provider's cache.
        reasoning: Tokens of the output that were reasoning.
        cost: What it cost, in the unit of the price a turn is run with, or as the provider says.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float = 0.0

    @property
    def total(self) -> int:
        """Tokens of input and output."""
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            self.cost + other.cost,
        )


@frozen
class Repair:
    """Something a model or server got wrong that was mended on the way in.

    Args:
        kind: What was mended, in one word.
        detail: One short sentence about it.
        op: The model call of a turn whose reply it was; empty outside of one.
    """

    kind: str
    detail: str
    op: str = ""


@frozen
class ChatResponse:
    """One reply of a model.

    Args:
        content: The text of the reply.
        reasoning: What the model thought before, where it is told apart.
        tool_calls: The calls it asks for; the list that was given stays the list that is read.
        finish_reason: Why the model stopped, in the provider's word.
        raw: The provider's own object.
        usage: Tokens of this call, where they are known.
        repairs: What was mended on the way in.
        opaque: Fields that the provider wants back unchanged; they go on into the assistant message.
    """

    content: str
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None
    finish_reason: str | None = None
    raw: Any = None
    usage: Usage | None = None
    repairs: tuple[Repair, ...] = ()
    opaque: Mapping[str, Any] | None = None


def text_of(content: object) -> str:
    """Return the text of a message's or reply's content, whatever form a provider gave it.

    Args:
        content: Text, null, or a list of parts (objects with ``text``, or dictionaries).

    Returns:
        The text; of parts without text, such as images, nothing remains.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, (list, tuple)):
        pieces = []
        for part in content:
            text = part.get("text") if isinstance(part, dict) else getattr(part, "text", part)
            if isinstance(text, str):
                pieces.append(text)
        return "".join(pieces)
    try:
        return str(content)
    except Exception:  # noqa: BLE001 - such as a number with too many digits
        return ""
