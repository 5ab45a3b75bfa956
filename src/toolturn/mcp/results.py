"""What a call gave, as a model reads it: every item in order, images and files as parts, and never base64 in text."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as BrokenBase64
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from ..messages import Content, ContentPart, FilePart, ImagePart, TextPart

MAX_BINARY = 3_750_000
"""Bytes of all images and files of one result together; as base64 that is 5 MB, the least that a provider takes."""

_MAX_URI = 500
_MAX_DEPTH = 100
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_DATA_ADDRESS = re.compile(r"data:[^,\s]{0,200};base64,", re.IGNORECASE)
_KIND = re.compile(r"[a-z0-9][a-z0-9.+_-]{0,99}/[a-z0-9][a-z0-9.+_-]{0,99}")


def result_content(result: CallToolResult, fits: bool, max_binary: int = MAX_BINARY) -> Content:
    """Return the content of a result.

    The structured content stands for text that says the same, and alone where there is nothing else. In a failure the
    text comes first: what is structured is shown only where there is none.

    Args:
        result: The result.
        fits: Whether its structured content is there and fits the schema that the tool promised.
        max_binary: Bytes of images and files that are kept; what is beyond them is named.
    """
    structured = result.structured_content
    items = result.content
    if structured is None:
        return _joined(items, max_binary)
    if not any(not isinstance(item, TextContent) or item.text for item in items):
        return _json(structured)
    if result.is_error or not fits:
        return _joined(items, max_binary)
    told = [item.text.strip() for item in items if isinstance(item, TextContent)]
    values = list(structured.values()) if isinstance(structured, dict) else []
    if len(values) == 1 and isinstance(values[0], str) and values[0].strip() in told:
        return _joined(items, max_binary)  # a wrapper around the text adds nothing but quotes
    if values == [[item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items]]:
        return _joined(items, max_binary)  # and one around the items nothing at all
    # a list is often told element by element
    known = [structured, *values, *(part for value in values if isinstance(value, list) for part in value)]
    kept = [item for item in items if not (isinstance(item, TextContent) and _says(item.text.strip(), known))]
    return _joined([*kept, TextContent(type="text", text=_json(structured))], max_binary)


def _joined(items: list[Any], room: int) -> Content:
    """The items in their order: one text, or pieces of text and parts."""
    made: list[ContentPart] = []
    lines: list[str] = []
    for item in items:
        told = _item(item, room)
        if isinstance(told, str):
            lines.append(told)
            continue
        room -= _size(told.url)
        if lines:
            made.append(TextPart("\n".join(lines)))
            lines = []
        made.append(told)
    if not made:
        return "\n".join(lines)
    return [*made, TextPart("\n".join(lines))] if lines else made


def _item(item: Any, room: int) -> str | ImagePart | FilePart:
    match item:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=kind):
            return _binary("image", kind, data, room)
        case AudioContent(data=data, mime_type=kind):
            return _binary("audio", kind, data, room)
        case ResourceLink(name=name, uri=uri, mime_type=kind, description=about):
            # only its server can read it; a model is told of it and may ask for it
            parts = [f"link to {name!r}", _address(str(uri)), *([kind] if kind else []), *([about] if about else [])]
            return f"[{', '.join(parts)}]"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=kind, blob=blob)):
            return _binary("resource", kind or "", blob, room, _address(str(uri)))
        case EmbeddedResource(resource=resource):
            return f"[resource {_address(str(resource.uri))}]\n{getattr(resource, 'text', '')}"
        case _:
            return f"[{type(item).__name__}]"


# --- binary content ----------------------------------------------------------------------

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_KNOWN_BY_BEGINNING = {*_BEGINNINGS.values(), "image/webp"}


def _binary(what: str, kind: str, data: str, room: int, address: str = "") -> str | ImagePart | FilePart:
    """An image or a file as a part; a text about it where it is broken, too large, or no image as it says.

    What an image is, is told by how it begins: providers refuse one that is not what it is called, and with it each
    later request of the conversation.
    """
    about = f"{what} {f'{address}, ' if address else ''}{kind[:100] or 'of an unknown type'}"
    if _size(data) > room:
        return f"[{about}, {_size(data)} bytes, too large to be shown]"
    raw = _decoded(data)
    if raw is None:
        return f"[{about}, broken: its data is no base64]"
    known = kind.partition(";")[0].strip().lower()
    is_image = what == "image" or known.startswith("image/")
    if is_image:
        begins = next((found for start, found in _BEGINNINGS.items() if raw.startswith(start)), "")
        begins = "image/webp" if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" else begins
        if not begins and (known in _KNOWN_BY_BEGINNING or not known.startswith("image/")):
            return f"[{about}, {len(raw)} bytes, broken: it is no such image]"
        known = begins or known
    if what == "resource" and known.startswith("text/"):
        try:
            return f"[resource {address}]\n{raw.decode()}"  # some servers send every file as bytes
        except UnicodeDecodeError:
            pass
    if not _KIND.fullmatch(known):
        known = "application/octet-stream"
    url = f"data:{known};base64,{b64encode(raw).decode()}"
    return ImagePart(url) if is_image else FilePart(url, address)


def _decoded(data: str) -> bytes | None:
    """What base64 stands for, also in its other alphabet, in lines, without its end or behind ``data:``."""
    if address := _DATA_ADDRESS.match(data):
        data = data[address.end() :]
    text = "".join(data.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (BrokenBase64, ValueError):
        return None


def _size(data: str) -> int:
    """How many bytes base64 stands for."""
    start = address.end() if (address := _DATA_ADDRESS.match(data)) else 0
    return (len(data.rstrip("=")) - start) * 3 // 4


def _address(uri: str) -> str:
    if _DATA_ADDRESS.match(uri):
        return f"data of {_size(uri)} bytes"
    return uri if len(uri) <= _MAX_URI else f"{uri[:_MAX_URI]}…"


def _says(text: str, known: list[Any]) -> bool:
    """Whether a text is one of these values, as it is or as JSON."""
    if text in known:
        return True
    try:
        return json.loads(text) in known
    except (ValueError, RecursionError):
        return False


def _json(value: Any) -> str:
    return json.dumps(_without_binary(value, 0), ensure_ascii=False, separators=(",", ":"))


def _without_binary(value: Any, depth: int) -> Any:
    """The value with the size in place of each long base64 text."""
    if isinstance(value, str):
        address = _DATA_ADDRESS.match(value)
        data = value[address.end() :] if address else value
        return f"[{_size(value)} bytes]" if _BASE64.fullmatch(data) else value
    if depth > _MAX_DEPTH:
        return "[nested too deeply]"
    if isinstance(value, dict):
        if value.get("type") in ("image", "audio") and isinstance(value.get("data"), str):
            value = {**value, "data": f"[{_size(value['data'])} bytes]"}
        elif isinstance(value.get("blob"), str) and "uri" in value:
            value = {**value, "blob": f"[{_size(value['blob'])} bytes]"}
        return {key: _without_binary(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_binary(item, depth + 1) for item in value]
    return value
