"""A file's text in pieces, each of which says how to go on."""

from __future__ import annotations

import codecs
import os

from ..errors import ToolError
from .files_confined import Place, folder_of, opened_file, told


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
    if is_binary(data):
        raise ToolError(f"{place.shown} is no text file")
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return data.decode("latin-1"), "read as Latin-1"


_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b")


def is_binary(data: bytes) -> bool:
    """Return whether bytes are hardly those of a text.

    Args:
        data: A piece of a file.
    """
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
            data = read_at(file, offset - before, most + before + 4)
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


def read_at(file: int, offset: int, size: int) -> bytes:
    """Return as many bytes as there are, up to a bound; a single read may give less than it was asked for.

    Args:
        file: The open file.
        offset: The byte to begin at.
        size: Bytes at most.
    """
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
