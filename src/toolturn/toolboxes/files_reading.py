"""A file's text in pieces, and what is in folders, all of it bounded."""

from __future__ import annotations

import codecs
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
from .files_confined import Place, folder_of, kind_of, opened_file, opened_folder, told

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

# --- text ----------------------------------------------------------------------------------


def decoded(data: bytes, place: Place) -> tuple[str, str]:
    """Return the text that bytes hold, and a note where it was not read as UTF-8.

    Args:
        data: A piece of a file that begins and ends between characters.
        place: Where it is from.

    Raises:
        ToolError: They are no text.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ToolError(f"{place.shown} is UTF-16 text, which can not be read here; only UTF-8 and Latin-1 can")
    if _is_binary(data):
        raise ToolError(f"{place.shown} is no text file")
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return data.decode("latin-1"), "read as Latin-1"


_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b")


def _is_binary(data: bytes) -> bool:
    return b"\0" in data or len(data) - len(data.translate(None, _CONTROLS)) > len(data) // 10


def read_text(place: Place, offset: int, most: int) -> str:
    """Return a piece of a file, with a last line that says how to go on where it is not all.

    Args:
        place: The file.
        offset: The byte to begin at.
        most: Bytes of the piece at most.

    Raises:
        ToolError: It is no text file, or can not be read.
    """
    asked = offset
    with told(place), folder_of(place) as folder:
        file, known = opened_file(folder, place.parts[-1], place)
        try:
            begins = os.pread(file, 3, 0)
            if begins == codecs.BOM_UTF8:
                offset = max(offset, 3)
            # three bytes before it tell whether it lies within a character, three behind whether the last one is whole
            before = min(3, offset)
            data = _read(file, offset - before, most + before + 4)
        finally:
            os.close(file)
    if begins[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        decoded(begins[:2], place)
    if asked and len(data) <= before:
        raise ToolError(f"offset: {place.shown} has {known.st_size} bytes; begin before its end")
    skipped = _inside(data, before)
    piece = data[before - skipped :]
    start = offset - skipped
    last = len(piece) <= most + skipped
    if not last:
        piece = _whole(piece[: most + skipped])
    text, note = decoded(piece, place)
    end = start + len(piece)
    notes = [note] if note else []
    if start or not last:
        notes.insert(0, f"bytes {start} to {end} of {max(known.st_size, end)}")
    if not last:
        notes.append(f"for more, read with offset {end}")
    if not notes:
        return text or "(the file is empty)"
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{'; '.join(notes)}]"


def _read(file: int, offset: int, size: int) -> bytes:
    """As many bytes as there are, up to a bound; a read may give less than was asked for."""
    pieces = []
    while size > 0:
        piece = os.pread(file, size, offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        size -= len(piece)
    return b"".join(pieces)


def _inside(data: bytes, place: int) -> int:
    """How many bytes before a place the UTF-8 character begins that the place lies in; 0 where it lies in none."""
    if not data[place : place + 1] or data[place] & 0xC0 != 0x80:
        return 0
    for back in range(1, min(place, 3) + 1):
        lead = data[place - back]
        if lead & 0xC0 != 0x80:
            size = 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 0b11110 else 1
            return back if size > back else 0
    return 0


def _whole(piece: bytes) -> bytes:
    """A piece without the line that is cut off at its end, or without the character where there is one line only."""
    line = piece.rfind(b"\n", len(piece) // 2)
    if line >= 0:
        return piece[: line + 1]
    for back in range(1, min(4, len(piece)) + 1):
        lead = piece[-back]
        if lead & 0xC0 != 0x80:
            size = 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 0b11110 else 1
            return piece[:-back] if size > back else piece
    return piece


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


def size_text(size: int) -> str:
    """Return a number of bytes for people.

    Args:
        size: Bytes.
    """
    if size < 1000:
        return "1 byte" if size == 1 else f"{size} bytes"
    value, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


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
        begins = _read(file, 0, min(most, 8192))
        if _is_binary(begins):
            return b"", False
        if len(begins) < min(most, 8192):
            return begins, False
        data = begins + _read(file, len(begins), most - len(begins))
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
