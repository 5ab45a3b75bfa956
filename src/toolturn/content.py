"""Content in parts: what tools give beside text, how it reads where only text is taken, and how long it may be.

An image or a file stands in a message as a part of its own, by address. Where a model or a server takes only text, it
is named there by kind and size; its base64 is never part of a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, get_args

from pydantic import BaseModel

from .limits import cap_text
from .messages import Content, ContentPart, FilePart, ImagePart, TextPart, text_of

PARTS = (TextPart, ImagePart, FilePart)

_DATA = re.compile(r"data:([^,;\s]{0,100})([^,\s]{0,200}),", re.IGNORECASE)
_MAX_SHOWN = 500


def data_of(url: str) -> tuple[str, int] | None:
    """Return the media type and the size in bytes of a ``data:`` address; None for any other address.

    Args:
        url: The address of a part.
    """
    found = _DATA.match(url)
    if found is None:
        return None
    kind = found[1].lower() or "text/plain"
    if found[2].lower().endswith(";base64"):
        end = len(url) - (2 if url.endswith("==") else url.endswith("="))
        return kind, (end - found.end()) * 3 // 4
    from urllib.parse import unquote_to_bytes  # hardly ever needed

    return kind, len(unquote_to_bytes(url[found.end() :]))


def placeholder(part: ImagePart | FilePart, note: str = "") -> str:
    """Return what stands for an image or a file in text, such as ``[image image/png, 8 bytes]``.

    Args:
        part: The part.
        note: What else is to be said of it.
    """
    data = data_of(part.url)
    is_file = isinstance(part, FilePart)
    about = [repr(part.name[:_MAX_SHOWN])] if isinstance(part, FilePart) and part.name else []
    if data is None:
        about += [f"{part.url[:_MAX_SHOWN]}…" if len(part.url) > _MAX_SHOWN else part.url] if part.url else []
    else:
        is_file = is_file and not data[0].startswith("audio/")
        about += [data[0], f"{data[1]} bytes"]
    kind = "image" if isinstance(part, ImagePart) else "file" if is_file else "audio"
    return f"[{kind} {', '.join([*about, *([note] if note else [])])}]"


def as_text(content: object, note: Callable[[ImagePart | FilePart], str] | None = None) -> str:
    """Return content for who takes only text: images and files are named where they stand, on lines of their own.

    Args:
        content: Of a message, whatever form a provider gave it.
        note: What else to say of a part.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return text_of(content)
    pieces: list[str] = []
    named = False
    for part in content:
        known = part_of(part) if isinstance(part, dict) else part
        if isinstance(known, (ImagePart, FilePart)) and isinstance(known.url, str):
            text = placeholder(known, note(known) if note else "")
        else:
            text = text_of([part])
        if not text:
            continue
        names = isinstance(known, (ImagePart, FilePart))
        if pieces and (names or named) and not pieces[-1].endswith("\n") and not text.startswith("\n"):
            pieces.append("\n")
        pieces.append(text)
        named = names
    return "".join(pieces)


def part_of(value: dict[str, Any]) -> ContentPart | None:
    """Return the part that a dictionary in the form of OpenAI's chat completions is, or None.

    Args:
        value: Such as ``{"type": "image_url", "image_url": {"url": …}}``.
    """
    match value:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return ImagePart(url)
        case {"type": "file", "file": {"file_data": str(url), "filename": str(name)}}:
            return FilePart(url, name)
        case {"type": "file", "file": {"file_data": str(url)}}:
            return FilePart(url)
    return None


def content_of(value: object) -> Content | None:
    """Return the content that a value is: text, a part, or a list of parts; None where it is neither.

    Args:
        value: What a renderer, a hook or a handler gave.
    """
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration its value
    if is_part(value):
        return [value]
    if isinstance(value, (list, tuple)) and all(is_part(part) for part in value):
        return list(value) or ""
    return None


def is_part(value: object) -> TypeGuard[ContentPart]:
    """Return whether a value is a part as it may stand in a message.

    Args:
        value: Anything.
    """
    if isinstance(value, TextPart):
        return isinstance(value.text, str)
    return isinstance(value, (ImagePart, FilePart)) and isinstance(value.url, str)


def bounded(content: Content, limit: int | None) -> Content:
    """Return content whose text is at most so long; images and files are no text.

    The bound is for all pieces of text together. Where they are cut they become one, before the other parts.

    Args:
        content: A tool's result.
        limit: Bytes of UTF-8, at least 256, or None for no bound.
    """
    if isinstance(content, str):
        return cap_text(encodable(str.__str__(content)), limit)
    parts = [TextPart(encodable(part.text)) if isinstance(part, TextPart) else part for part in content]
    whole = "".join(part.text for part in parts if isinstance(part, TextPart))
    cut = cap_text(whole, limit)
    if cut is whole:
        return parts
    return [TextPart(cut), *(part for part in parts if not isinstance(part, TextPart))]


def encodable(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair, which no provider would take.

    Args:
        text: Of a tool's result.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


# --- parts inside of a result ------------------------------------------------------------


def with_parts(result: Any, to_text: Callable[[Any], str]) -> Content:
    """Return a result as a model reads it: images and files in a list stay where they stand, deeper ones come behind.

    Args:
        result: Text, None, a part, or anything that holds them.
        to_text: Makes text or JSON of everything else.
    """
    if isinstance(result, str):
        return to_text(result)
    if is_part(result):
        return [result]
    if isinstance(result, (list, tuple)) and any(map(is_part, result)):
        made: list[ContentPart] = []
        for item in result:
            content = with_parts(item, to_text)
            made += [TextPart(content)] if isinstance(content, str) else content
        return made
    text = to_text(result)
    return lifted(text) if '"image_url"' in text or '"type":"file"' in text else text


def may_hold_parts(hint: Any, seen: tuple[Any, ...] = ()) -> bool:
    """Return whether a value of this type may hold an image or a file somewhere.

    Args:
        hint: An annotation, or a pydantic model.
        seen: The models it was asked of on the way here.
    """
    if hint is ImagePart or hint is FilePart:
        return True
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        if any(hint is model for model in seen):
            return False
        return any(may_hold_parts(field.annotation, (*seen, hint)) for field in hint.model_fields.values())
    return any(may_hold_parts(inner, seen) for inner in get_args(hint))


def lifted(text: str) -> Content:
    """Return a result with the images and files in it as parts behind it; in their place it says what they are.

    A list of nothing but parts becomes these parts. Dictionaries in the form of OpenAI's chat completions count too,
    so that what a tool made for that interface is shown and not spelled out. An ordinary dictionary that describes a
    file has an address of its own and stays what it is.

    Args:
        text: The result as JSON.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if listed := _as_list(value):
        return listed
    parts: list[ContentPart] = []
    try:
        value = _without_parts(value, parts)
    except RecursionError:
        return text
    if not parts:
        return text
    return [TextPart(json.dumps(value, ensure_ascii=False, separators=(",", ":"))), *parts]


def _as_list(value: Any) -> Sequence[ContentPart] | None:
    """The parts of a list that holds nothing else, and among them one that is no text."""
    made = []
    for item in value if isinstance(value, list) else [value]:
        part = (_nested(item) or part_of(item)) if isinstance(item, dict) else None
        if part is None:
            return None
        made.append(part)
    return made if any(not isinstance(part, TextPart) for part in made) else None


def _without_parts(value: Any, parts: list[ContentPart]) -> Any:
    if isinstance(value, dict):
        if part := _nested(value):
            parts.append(part)
            return placeholder(part)
        return {key: _without_parts(item, parts) for key, item in value.items()}
    return [_without_parts(item, parts) for item in value] if isinstance(value, list) else value


def _nested(value: dict[str, Any]) -> ImagePart | FilePart | None:
    """The part that a dictionary is which was one of ours before it became JSON, or that holds its data itself."""
    match value:
        case {"type": "image_url", "url": str(url), **rest} if not rest:
            return ImagePart(url)
        case {"type": "file", "url": str(url), "name": str(name), **rest} if not rest and url.startswith("data:"):
            return FilePart(url, name)
    part = part_of(value)
    return part if isinstance(part, (ImagePart, FilePart)) and part.url.startswith("data:") else None
