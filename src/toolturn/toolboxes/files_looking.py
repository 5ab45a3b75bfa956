"""What is in folders and in the files below them, all of it bounded: in entries, depth, bytes and time."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from ..errors import ToolError
from .files_confined import Place, kind_of, opened_file, opened_folder, told
from .files_reading import is_binary, read_at, size_text

MAX_DEPTH = 20
MAX_SEEN = 20_000
MAX_SECONDS = 5.0
MAX_SEARCHED = 100_000_000
MAX_FILE = 4_000_000
MAX_LISTED = 200
MAX_FOUND = 50
MAX_LISTED_BYTES = 12_000
_MAX_LINE = 200
_MAX_PATTERN = 200
_MAX_TEXT = 200

# --- patterns ------------------------------------------------------------------------------


class Pattern:
    """A shell pattern for names, or with ``/`` and ``**`` for paths below a folder; case makes no difference.

    Args:
        text: The pattern.

    Raises:
        ToolError: It is too long.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_PATTERN:
            raise ToolError(f"pattern: it is too long; use at most {_MAX_PATTERN} characters")
        parts = [part for part in text.casefold().split("/") if part not in ("", ".")]
        self.deep = len(parts) > 1
        self._parts = tuple(parts) or ("*",)

    def fits(self, parts: Sequence[str]) -> bool:
        """Return whether the path below the folder fits.

        Args:
            parts: Its parts.
        """
        return _fits(self._parts, tuple(part.casefold() for part in (parts if self.deep else parts[-1:])))


def _fits(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    @cache
    def rest(i: int, j: int) -> bool:
        if i == len(pattern):
            return j == len(parts)
        if pattern[i] == "**":
            return rest(i + 1, j) or (j < len(parts) and rest(i, j + 1))
        return j < len(parts) and fnmatchcase(parts[j], pattern[i]) and rest(i + 1, j + 1)

    return rest(0, 0)


# --- walking -------------------------------------------------------------------------------


class Entry(NamedTuple):
    """Something in a folder."""

    name: str
    known: os.stat_result | None


class Seen(NamedTuple):
    """Something below a folder: the open folder it is in, the path to it, and what is known of it."""

    folder: int
    parts: tuple[str, ...]
    known: os.stat_result


@dataclass(slots=True)
class Walk:
    """What a walk may still do.

    Args:
        hidden: Whether names that begin with a dot are seen.
        entries: Entries it may look at.
        until: When it has to end, of the monotonic clock.
        cut: Why it has not seen everything; empty where it has.
    """

    hidden: bool
    entries: int = MAX_SEEN
    until: float = 0.0
    cut: str = ""

    def __post_init__(self) -> None:
        self.until = time.monotonic() + MAX_SECONDS

    def goes_on(self) -> bool:
        """Return whether there is time left."""
        if time.monotonic() < self.until:
            return True
        self.cut = self.cut or "there was no time for more"
        return False

    def entries_of(self, folder: int) -> list[Entry]:
        """Return what is in an open folder, by name.

        Args:
            folder: Its descriptor.
        """
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") and not self.hidden:
                    continue
                if self.entries <= 0 or (self.entries % 256 == 0 and not self.goes_on()):
                    self.cut = self.cut or "there is too much to look at"
                    break
                self.entries -= 1
                try:
                    found.append(Entry(entry.name, entry.stat(follow_symlinks=False)))
                except OSError:  # gone meanwhile, or not to be looked at
                    found.append(Entry(entry.name, None))
        return sorted(found, key=lambda entry: (entry.name.casefold(), entry.name))

    def within(self, folder: int, parts: tuple[str, ...] = ()) -> Iterator[Seen]:
        """Yield what is in an open folder.

        Args:
            folder: Its descriptor.
            parts: The path from where the walk began.

        Raises:
            OSError: The folder can not be read.
        """
        for name, known in self.entries_of(folder):
            if known is not None:
                yield Seen(folder, (*parts, name), known)

    def below(self, folder: int, parts: tuple[str, ...] = ()) -> Generator[Seen, None, None]:
        """Yield what is below an open folder, what is in folders right behind them; links are seen, not followed.

        Args:
            folder: Its descriptor, open until the walk has ended.
            parts: The path from where the walk began.

        Raises:
            OSError: The first folder can not be read; others are left out.
        """
        for seen in self.within(folder, parts):
            name, known = seen.parts[-1], seen.known
            yield seen
            if not stat.S_ISDIR(known.st_mode) or not self.goes_on():
                continue
            if len(parts) + 1 >= MAX_DEPTH:
                self.cut = self.cut or "some folders are too deep"
                continue
            with suppress(OSError):
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    yield from self.below(inner, (*parts, name))
                finally:
                    os.close(inner)


# --- listing -------------------------------------------------------------------------------


def list_folder(place: Place, pattern: str, *, hidden: bool) -> str:
    """Return what is in a folder, a line for each.

    Args:
        place: The folder.
        pattern: What the names have to fit; with ``/`` or ``**`` also what is below.
        hidden: Whether names that begin with a dot are seen.

    Raises:
        ToolError: It can not be read.
    """
    wanted = Pattern(pattern)
    walk = Walk(hidden)
    lines: list[str] = []
    size = more = 0
    with told(place):
        folder = opened_folder(place)
        try:
            for seen in walk.below(folder) if wanted.deep else walk.within(folder):
                if not wanted.fits(seen.parts):
                    continue
                line = _line(Place(place.folder, (*place.parts, *seen.parts)), seen.known)
                size += len(line.encode("utf-8", "replace")) + 1
                if len(lines) < MAX_LISTED and size <= MAX_LISTED_BYTES:
                    lines.append(line)
                else:
                    more += 1
        finally:
            os.close(folder)
    if more or walk.cut:
        seen_all = f"{more} more" if not walk.cut else f"at least {more} more, {walk.cut}" if more else walk.cut
        lines.append(f"[{seen_all}; name a folder in it, or use a narrower pattern]")
    if not lines:
        return f"{place.shown} is empty" if pattern == "*" else f"nothing in {place.shown} fits the pattern"
    return "\n".join(lines)


def _line(place: Place, known: os.stat_result) -> str:
    if stat.S_ISDIR(known.st_mode):
        return f"{place.shown}/"
    if not stat.S_ISREG(known.st_mode):
        return f"{place.shown} ({kind_of(known.st_mode)}, can not be used)"
    with suppress(ValueError, OverflowError, OSError):
        return (
            f"{place.shown} ({size_text(known.st_size)}, {time.strftime('%Y-%m-%d', time.localtime(known.st_mtime))})"
        )
    return f"{place.shown} ({size_text(known.st_size)})"


# --- searching -----------------------------------------------------------------------------


def search_folders(places: Sequence[Place], text: str, pattern: str, *, hidden: bool) -> str:
    """Return the lines below folders that hold a text, with the file and the byte that ``read_text`` can begin at.

    Args:
        places: The folders.
        text: What is looked for; case makes no difference.
        pattern: What names, or with ``/`` paths, have to fit.
        hidden: Whether names that begin with a dot are seen.

    Raises:
        ToolError: The text or the pattern is too long, or a folder can not be read.
    """
    if not text.strip():
        raise ToolError("text: it is empty; name a word or a part of a line")
    if len(text) > _MAX_TEXT or "\n" in text or "\r" in text:
        raise ToolError(f"text: use one line of at most {_MAX_TEXT} characters")
    search = _Search(text.casefold(), Pattern(pattern), Walk(hidden))
    for place in places:
        with told(place):
            folder = opened_folder(place)
            try:
                search.below(folder, place)
            finally:
                os.close(folder)
    notes = [f"{search.walk.cut}; name a folder or use a narrower pattern"] if search.walk.cut else []
    if search.large:
        notes.append(f"of {search.large} large files only the first {size_text(MAX_FILE)} were searched")
    lines = search.lines
    if not lines:
        where = ", ".join(place.shown for place in places)
        lines = [f"not found in {search.files} {'file' if search.files == 1 else 'files'} of {where}"]
    return "\n".join([*lines, *([f"[{'; '.join(notes)}]"] if notes else [])])


@dataclass(slots=True)
class _Search:
    """What is looked for, and what was found so far."""

    needle: str
    pattern: Pattern
    walk: Walk
    lines: list[str] = field(default_factory=list)
    left: int = MAX_SEARCHED
    files: int = 0
    large: int = 0

    def below(self, folder: int, place: Place) -> None:
        with closing(self.walk.below(folder)) as every:
            for seen in every:
                if not stat.S_ISREG(seen.known.st_mode) or not self.pattern.fits(seen.parts):
                    continue
                if len(self.lines) >= MAX_FOUND or self.left <= 0 or not self.walk.goes_on():
                    self.walk.cut = self.walk.cut or ("there may be more" if self.lines else "there is too much")
                    return
                with suppress(OSError, ToolError):  # gone meanwhile, or not to be read
                    self.look_into(seen, Place(place.folder, (*place.parts, *seen.parts)))

    def look_into(self, seen: Seen, place: Place) -> None:
        data, cut = _searched(seen, place, min(self.left, MAX_FILE))
        self.files += 1
        self.left -= len(data)
        self.large += cut
        self.lines += _found(data, self.needle, place, MAX_FOUND - len(self.lines))


def _searched(seen: Seen, place: Place, most: int) -> tuple[bytes, bool]:
    file, known = opened_file(seen.folder, seen.parts[-1], place)
    try:
        begins = read_at(file, 0, min(most, 8192))
        if is_binary(begins):
            return b"", False
        if len(begins) < min(most, 8192):
            return begins, False
        data = begins + read_at(file, len(begins), most - len(begins))
        return data, known.st_size > len(data)
    finally:
        os.close(file)


def _found(data: bytes, needle: str, place: Place, most: int) -> list[str]:
    encoding = "utf-8"
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        encoding, whole = "latin-1", data.decode("latin-1")
    if most <= 0 or needle not in whole.casefold():
        return []
    found: list[str] = []
    offset = 0
    for raw in data.split(b"\n"):
        line = raw.decode(encoding, "replace").rstrip("\r").lstrip("\ufeff")
        at = line.casefold().find(needle)
        if at >= 0:
            found.append(f"{place.shown} (offset {offset}): {_around(line, at, len(needle))}")
            if len(found) == most:
                break
        offset += len(raw) + 1
    return found


def _around(line: str, at: int, size: int) -> str:
    """The part of a line that holds what was found, as it may stand on a line of its own."""
    first = 0 if len(line) <= _MAX_LINE else max(0, min(at - (_MAX_LINE - size) // 2, len(line) - _MAX_LINE))
    part = line[first : first + _MAX_LINE]
    shown = "".join(character if character.isprintable() or character == "\t" else "\ufffd" for character in part)
    return f"{'…' if first else ''}{shown.strip()}{'…' if first + _MAX_LINE < len(line) else ''}"
