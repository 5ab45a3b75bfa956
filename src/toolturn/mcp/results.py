"""What a call gave, as text for a model: every item in order, and never base64."""

from __future__ import annotations

import json
import re
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

_MAX_URI = 500
_MAX_DEPTH = 100
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_DATA_ADDRESS = re.compile(r"data:[^,\s]{0,200};base64,", re.IGNORECASE)


def result_text(result: CallToolResult, fits: bool) -> str:
    """Return the text of a result.

    The structured content stands for text that says the same, and alone where there is nothing else. In a failure the
    text comes first: what is structured is shown only where there is none.

    Args:
        result: The result.
        fits: Whether its structured content is there and fits the schema that the tool promised.
    """
    structured = result.structured_content
    items = result.content
    if structured is None:
        return "\n".join(map(_item_text, items))
    if not any(not isinstance(item, TextContent) or item.text for item in items):
        return _json(structured)
    if result.is_error or not fits:
        return "\n".join(map(_item_text, items))
    told = [item.text.strip() for item in items if isinstance(item, TextContent)]
    values = list(structured.values()) if isinstance(structured, dict) else []
    if len(values) == 1 and isinstance(values[0], str) and values[0].strip() in told:
        return "\n".join(map(_item_text, items))  # a wrapper around the text adds nothing but quotes
    # a list is often told element by element
    known = [structured, *values, *(part for value in values if isinstance(value, list) for part in value)]
    kept = [item for item in items if not (isinstance(item, TextContent) and _says(item.text.strip(), known))]
    return "\n".join([*map(_item_text, kept), _json(structured)])


def _item_text(item: Any) -> str:
    match item:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=kind):
            return f"[image {kind[:100]}, {_size(data)} bytes]"
        case AudioContent(data=data, mime_type=kind):
            return f"[audio {kind[:100]}, {_size(data)} bytes]"
        case ResourceLink(name=name, uri=uri, mime_type=kind, description=about):
            parts = [f"link to {name!r}", _address(str(uri)), *([kind] if kind else []), *([about] if about else [])]
            return f"[{', '.join(parts)}]"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=kind, blob=blob)):
            return f"[resource {_address(str(uri))}, {kind or 'of an unknown type'}, {_size(blob)} bytes]"
        case EmbeddedResource(resource=resource):
            return f"[resource {_address(str(resource.uri))}]\n{getattr(resource, 'text', '')}"
        case _:
            return f"[{type(item).__name__}]"


def _size(data: str) -> int:
    """How many bytes base64 stands for."""
    return len(data.rstrip("=")) * 3 // 4


def _address(uri: str) -> str:
    if found := _DATA_ADDRESS.match(uri):
        return f"data of {_size(uri[found.end() :])} bytes"
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
        return f"[{_size(data)} bytes]" if _BASE64.fullmatch(data) else value
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
