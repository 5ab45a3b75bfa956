"""A file written as a whole or not at all: beside the old one, which it then takes the place of."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from typing import Literal, TypeAlias

from ..errors import ToolError
from .files_confined import Place, check_new_name, check_regular, folder_of, opened_file, refuse_link, told
from .files_reading import size_text

Mode: TypeAlias = Literal["create", "overwrite", "append"]

MAX_WRITTEN = 500_000
MAX_APPENDED = 10_000_000

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# file systems without hard links, such as FAT
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_text(place: Place, content: str, mode: Mode) -> str:
    """Write a file and return one sentence about it.

    Args:
        place: The file.
        content: The text.
        mode: ``create`` a file that is not there, ``overwrite`` one or create it, or ``append`` to one or create it.

    Raises:
        ToolError: It may not or can not be written; then no file has changed.
    """
    if not place.folder.write:
        raise ToolError(f"path: files in {place.folder.name} can only be read")
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolError("content: it holds half a character") from None
    if len(data) > MAX_WRITTEN:
        raise ToolError(f"content: it has {len(data)} bytes; write at most {MAX_WRITTEN} at once")
    with told(place), folder_of(place, make=True) as folder:
        old = _old(folder, place)
        if old is None:
            check_new_name(place.parts[-1])
        elif mode == "create":
            raise ToolError(f"{place.shown} is there already; use the mode overwrite or append, or another name")
        elif old.st_nlink > 1:
            raise ToolError(f"{place.shown} is one file with {old.st_nlink} names (hard links); it can not be written")
        before = _content(folder, place, old) if mode == "append" and old is not None else b""
        _put(folder, place, before + data, old)
    size = len(before) + len(data)
    if mode == "append" and old is not None:
        return f"appended {size_text(len(data))} to {place.shown}, which has {size_text(size)} now"
    return f"{'created' if old is None else 'overwrote'} {place.shown} ({size_text(size)})"


def _old(folder: int, place: Place) -> os.stat_result | None:
    """What is known of the file that is there."""
    try:
        known = os.stat(place.parts[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    refuse_link(folder, place.parts[-1], place)
    check_regular(known, place)
    return known


def _content(folder: int, place: Place, old: os.stat_result) -> bytes:
    if old.st_size > MAX_APPENDED:
        raise ToolError(f"{place.shown} has {old.st_size} bytes; nothing is appended to more than {MAX_APPENDED}")
    file, known = opened_file(folder, place.parts[-1], place)
    with os.fdopen(file, "rb") as reader:
        data = reader.read(MAX_APPENDED + 1)
    if not _same(known, old) or len(data) != old.st_size:
        raise ToolError(f"{place.shown} is being changed by somebody else; try again")
    return data


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


def _put(folder: int, place: Place, data: bytes, old: os.stat_result | None) -> None:
    name = place.parts[-1]
    # hidden, so that nobody takes it for a file of theirs should the machine stop right now
    beside = f".toolturn-{secrets.token_hex(8)}.tmp"
    file = os.open(beside, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as writer:
            if old is not None:
                os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)
            writer.write(data)
            writer.flush()
            os.fsync(file)
        if old is None:
            _place_new(folder, beside, name)
        else:
            now = _old(folder, place)
            if now is None or not _same(now, old):
                raise ToolError(f"{place.shown} was changed by somebody else; look at it and try again")
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
    with suppress(OSError):  # where a folder can not be synchronised, the system does it in its own time
        os.fsync(folder)


def _place_new(folder: int, beside: str, name: str) -> None:
    """Give a new file its name, unless something has got it meanwhile."""
    try:
        os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        os.close(os.open(name, _NEW, 0o666, dir_fd=folder))
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.unlink(beside, dir_fd=folder)
