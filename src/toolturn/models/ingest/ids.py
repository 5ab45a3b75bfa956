"""Ids of calls: opaque text that is given once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from ...messages import ChatMessage

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LENGTH = 9  # nine alphanumerics are an id for every known provider


def fresh_id(name: str, arguments: str, place: int, *taken: Collection[str]) -> str:
    """Return an id for a call that has none: the same for the same call, and none of those that are taken.

    Args:
        name: The tool.
        arguments: The argument text.
        place: The call's place in its batch.
        taken: Ids that are in use.
    """
    import hashlib  # for the few that need it; it is a tenth of this package's import

    number = 0
    while True:
        seed = f"{number}\0{place}\0{name}\0{arguments}".encode("utf-8", "surrogatepass")
        rest = int.from_bytes(hashlib.sha256(seed).digest(), "big")
        letters = []
        for _ in range(_LENGTH):
            rest, index = divmod(rest, len(_ALPHABET))
            letters.append(_ALPHABET[index])
        made = "".join(letters)
        if not any(made in ids for ids in taken):
            return made
        number += 1


def id_of(given: Any) -> tuple[str | None, str]:
    """Return an id as text, or None where one has to be made; and what was wrong with it.

    Args:
        given: What the provider sent.

    Returns:
        The id and an empty text where it was good.
    """
    if isinstance(given, str):
        text = given if type(given) is str else str.__str__(given)
        if not text.strip():
            return None, "it had a blank id"
        try:
            text.encode()
        except UnicodeEncodeError:
            return None, "its id was no text"
        return text, ""
    if given is None:
        return None, "it had no id"
    if type(given) is int or (type(given) is float and math.isfinite(given)):
        try:
            return str(given), "its id was a number"
        except ValueError:  # the interpreter's bound on the digits of an integer
            return None, "its id was no text"
    return None, "its id was no text"


def seen_ids(messages: Iterable[ChatMessage]) -> set[str]:
    """Return the ids of all calls of a transcript.

    Args:
        messages: The transcript.
    """
    seen: set[str] = set()
    for message in messages:
        if message.tool_calls:
            for call in message.tool_calls:
                if isinstance(call_id := getattr(call, "id", None), str):
                    seen.add(call_id)
    return seen
