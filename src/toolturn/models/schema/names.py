"""Names that a wire takes for tools and properties that may have any name."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable

_FITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def wire_names(names: Iterable[str], max_length: int = 64) -> dict[str, str]:
    """Return a name for each tool that every provider takes.

    A name that fits stays as it is. Another is cleaned; it gets a digest of the original where something of it was
    lost, or where it would be the same as another one but for case, ``-`` and ``_``, by which models mix names up.
    The order does not matter, and what a name becomes depends on other names only where they collide.

    Args:
        names: The tools' own names, whatever they are; each once.
        max_length: Characters at most.

    Returns:
        The own names, each with its name on the wire; the latter match ``[A-Za-z_][A-Za-z0-9_-]*`` and are unique.
    """
    taken: set[str] = set()
    aliases: dict[str, str] = {}
    # those that fit come first, so that a tool is never renamed for the sake of one that must be renamed anyway
    for name in sorted(names, key=lambda name: (not _fits(name, max_length), name)):
        alias = wire_name(name, max_length)
        tries = 0
        while fold(alias) in taken:
            alias = _with_digest(name, max_length, tries)
            tries += 1
        taken.add(fold(alias))
        aliases[name] = alias
    return aliases


def wire_name(name: str, max_length: int = 64) -> str:
    """Return what a tool is called on the wire where no other tool stands in the way."""
    if _fits(name, max_length):
        return name
    cleaned, lossy = _cleaned(name)
    return _with_digest(name, max_length) if lossy or len(cleaned) > max_length else cleaned


def property_alias(name: str, pattern: str, taken: Collection[str], max_length: int = 64) -> str:
    """Return a property's name on the wire.

    Args:
        name: Its own name.
        pattern: What it must match; empty for anything.
        taken: The names that it must not get.
        max_length: Characters at most of a name that is made here.
    """
    if not pattern or re.fullmatch(pattern, name):
        return name
    cleaned, lossy = _cleaned(name)
    alias = _with_digest(name, max_length) if lossy or len(cleaned) > max_length else cleaned
    tries = 0
    while alias in taken:
        alias = _with_digest(name, max_length, tries)
        tries += 1
    return alias


def _fits(name: str, max_length: int) -> bool:
    return len(name) <= max_length and _FITS.fullmatch(name) is not None


def fold(name: str) -> str:
    """Return what is the same for names that models mix up."""
    return name.casefold().replace("-", "_")


def _cleaned(name: str) -> tuple[str, bool]:
    """The name in ASCII, and whether letters of it were lost on the way."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char))
    lossy = any(not char.isascii() and char.isalnum() for char in plain)
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_")
    if not cleaned:
        return "tool", True
    return (cleaned if cleaned[0].isalpha() else f"_{cleaned}"), lossy


def _with_digest(name: str, max_length: int, tries: int = 0) -> str:
    text = name if not tries else f"{name}\n{tries}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_cleaned(name)[0][: max_length - 9].rstrip('_-')}_{digest}"
