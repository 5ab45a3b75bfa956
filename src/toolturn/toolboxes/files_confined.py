"""Named folders, and how a file in one of them is opened so that nothing outside is ever reached.

A path is never handed to the system as a whole. Each of its parts is opened relative to the open folder before it, and
no link is followed, so that there is no moment between a check and a use in which somebody could put a link in the way.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ToolError

MAX_PATH = 1000
MAX_PARTS = 40
MAX_NAME = 255
_MAX_NEW_NAME = 200
_MAX_HINTS = 500

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# a pipe without a writer and a terminal line must not hold the one who opens them
FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that a model may see.

    Args:
        name: What its paths begin with.
        path: Where it is, links resolved.
        write: Whether files in it may be written.
    """

    name: str
    path: Path
    write: bool = False


class Place(NamedTuple):
    """What a path of a model names: a folder, and the parts below it."""

    folder: Folder
    parts: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The path as a model is told of it."""
        return "/".join([self.folder.name, *map(shown_name, self.parts)])


def require_confinement() -> None:
    """Check that the system can open files relative to an open folder.

    Raises:
        OSError: It can not, as Windows; without it nothing keeps a path in its folder.
    """
    can = os.supports_dir_fd >= {os.open, os.stat, os.mkdir, os.unlink, os.rename} and os.scandir in os.supports_fd
    if not can or not hasattr(os, "O_NOFOLLOW") or not hasattr(os, "O_DIRECTORY"):
        raise OSError(f"the files toolbox does not run on {sys.platform}: files can not be kept in their folder there")


# --- names -------------------------------------------------------------------------------


def shown_name(name: str) -> str:
    """Return a name as a model is told of it: on one line, with nothing in it that is not seen.

    Args:
        name: A name as the system gives it, bytes that are no UTF-8 as half surrogates.

    Returns:
        The name; what is no visible character stands as ``\\xNN`` or ``\\uNNNN``, which :func:`named` reads again.
    """
    if not (name.isprintable() and "\\" not in name and name.strip(" ") == name):
        inner = name.strip(" ")
        blanks = len(name) - len(name.lstrip(" "))
        before, behind = ("\\x20" * blanks, "\\x20" * (len(name) - blanks - len(inner)))
        name = before + "".join(map(_shown_character, inner)) + behind
    return name


def _shown_character(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPE = re.compile(r"\\(?:\\|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")


def named(text: str) -> str:
    """Return the name that :func:`shown_name` shows in this way.

    Args:
        text: One part of a path.
    """

    def character(found: re.Match[str]) -> str:
        if found[1]:
            code = int(found[1], 16)
            return chr(code) if code < 0x80 else chr(0xDC00 + code)
        code = int(found[2] or found[3] or "5c", 16)
        return chr(code) if code < 0x110000 else found[0]

    return _ESCAPE.sub(character, text) if "\\" in text else text


def place_of(text: str, folders: Mapping[str, Folder], *, hidden: bool) -> Place:
    """Return what a path names; nothing is looked up.

    Args:
        text: The path as a model wrote it.
        folders: The folders by name.
        hidden: Whether names that begin with a dot can be used.

    Raises:
        ToolError: It is no path in one of the folders.
    """
    if len(text) > MAX_PATH:
        raise ToolError(f"path: it is too long; use at most {MAX_PATH} characters")
    if text.startswith(("/", "~")):
        raise ToolError(f"path: it must begin with the name of a folder ({_names(folders)}), not with {text[0]!r}")
    parts = [named(part) for part in text.split("/") if part not in ("", ".")]
    for part in parts:
        _check_part(part, hidden)
    if len(parts) > MAX_PARTS:
        raise ToolError(f"path: it is too deep; use at most {MAX_PARTS} folders")
    if parts and parts[0] in folders:
        return Place(folders[parts[0]], tuple(parts[1:]))
    if len(folders) == 1:  # the only one can be left out
        (only,) = folders.values()
        return Place(only, tuple(parts))
    begins = f"not with {shown_name(parts[0])[:80]!r}" if parts else "it is empty"
    raise ToolError(f"path: it must begin with the name of a folder ({_names(folders)}), {begins}")


def _names(folders: Mapping[str, Folder]) -> str:
    return ", ".join(folders)


def _check_part(part: str, hidden: bool) -> None:
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise ToolError('path: it must not hold ".." or a null character; write the way down from the folder')
    try:
        size = len(os.fsencode(part))
    except UnicodeEncodeError:
        raise ToolError("path: it holds a character that names can not have here") from None
    if size > MAX_NAME:
        raise ToolError(f"path: {shown_name(part)[:40]}… is too long for a name; use at most {MAX_NAME} bytes")
    if part.startswith(".") and not hidden:
        raise ToolError(f"path: {shown_name(part)} is hidden; names that begin with a dot can not be used")


_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = frozenset('<>:"|?*\\')


def check_new_name(name: str) -> None:
    """Refuse a name for a new file or folder that some system, or some person, would stumble over.

    Args:
        name: One part of a path.

    Raises:
        ToolError: The name says what has to be changed.
    """
    why = ""
    if shown_name(name) != name or any(ord(character) in range(0xD800, 0xE000) for character in name):
        why = "use visible characters only"
    elif bad := sorted(_FORBIDDEN.intersection(name)):
        why = f"leave out {' '.join(bad)}"
    elif name != name.strip() or name.endswith("."):
        why = "no blank may stand before or after it, and no dot at its end"
    elif _RESERVED.fullmatch(name):
        why = "some systems have another use for it; choose another one"
    elif len(os.fsencode(name)) > _MAX_NEW_NAME:
        why = f"use at most {_MAX_NEW_NAME} bytes"
    if why:
        raise ToolError(f"path: {shown_name(name)[:80]!r} is no good name for something new: {why}")


# --- opening -----------------------------------------------------------------------------


def opened_folder(place: Place, *, make_for: str | None = None) -> int:
    """Open the folder that a place names and return its descriptor, which the caller closes.

    Args:
        place: The place.
        make_for: Make the folders that are not there for a file of this name.

    Raises:
        ToolError: There is a link on the way, or a new name is no good.
        OSError: It can not be opened.
    """
    try:
        # links of the user were resolved when the toolbox was made; one that takes its place later is nobody's word
        folder = os.open(place.folder.path, _DIRECTORY | _NO_LINK)
    except OSError as exc:
        raise ToolError(f"the folder {place.folder.name} can not be opened: {_words(exc)}") from exc
    for depth, part in enumerate(place.parts):
        above = folder
        try:
            folder = _opened_below(above, part, place, () if make_for is None else (*place.parts[depth:], make_for))
        finally:
            os.close(above)
    return folder


def _opened_below(above: int, part: str, place: Place, new: tuple[str, ...]) -> int:
    try:
        return os.open(part, _DIRECTORY | _NO_LINK, dir_fd=above)
    except FileNotFoundError:
        if not new:
            raise
    except OSError:
        refuse_link(above, part, place)
        raise
    for name in new:  # all of them before the first is made
        check_new_name(name)
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=above)
    return os.open(part, _DIRECTORY | _NO_LINK, dir_fd=above)


@contextmanager
def folder_of(place: Place, *, make: bool = False) -> Iterator[int]:
    """Hold the folder open that a file stands in.

    Args:
        place: The file.
        make: Make the folders that are not there.

    Raises:
        ToolError: It names a folder of the toolbox and no file in it, or there is a link on the way.
        OSError: The folder can not be opened.
    """
    if not place.parts:
        raise ToolError(f"path: {place.shown} is a folder; name a file in it")
    folder = opened_folder(Place(place.folder, place.parts[:-1]), make_for=place.parts[-1] if make else None)
    try:
        yield folder
    finally:
        os.close(folder)


def opened_file(folder: int, name: str, place: Place) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; the caller closes the descriptor.

    Args:
        folder: The open folder it stands in.
        name: Its name there.
        place: The same as a path, for what is said of it.

    Returns:
        The descriptor, and what is known of the file.

    Raises:
        ToolError: It is a link, a folder or a device.
        OSError: It can not be opened.
    """
    # looked at first, because opening is enough to make some devices act; looked at again, because it may have changed
    check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), place)
    try:
        file = os.open(name, FILE, dir_fd=folder)
    except OSError:
        refuse_link(folder, name, place)
        raise
    try:
        known = os.fstat(file)
        check_regular(known, place)
    except BaseException:
        os.close(file)
        raise
    return file, known


def check_regular(known: os.stat_result, place: Place) -> None:
    """Refuse what is no regular file.

    Args:
        known: What is known of it.
        place: Its path.

    Raises:
        ToolError: It is something else; the text says what.
    """
    if stat.S_ISREG(known.st_mode):
        return
    if stat.S_ISDIR(known.st_mode):
        raise ToolError(f"{place.shown} is a folder; use list_files to see what is in it")
    raise ToolError(f"{place.shown} is {kind_of(known.st_mode)}, which can not be used")


def kind_of(mode: int) -> str:
    """Return what a mode stands for, with its article.

    Args:
        mode: As ``stat`` gives it.
    """
    if stat.S_ISLNK(mode):
        return "a link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def refuse_link(folder: int, name: str, place: Place) -> None:
    """Say that a name is a link, where it is one.

    Raises:
        ToolError: It is.
    """
    with suppress(OSError):
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise ToolError(f"{place.shown}: {shown_name(name)} is a link; links are not followed")


# --- what went wrong -----------------------------------------------------------------------

_WORDS: Mapping[int, str] = MappingProxyType(
    {
        errno.EACCES: "there is no permission",
        errno.EPERM: "there is no permission",
        errno.EROFS: "it can only be read",
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk is full",
        errno.ENAMETOOLONG: "the name is too long",
        errno.EISDIR: "it is a folder",
        errno.ENOTDIR: "a part of its path is a file and no folder",
        errno.ENOTEMPTY: "it is a folder",
        errno.EEXIST: "it is there already",
        errno.ENOENT: "it is not there",
        errno.EMFILE: "too many files are open",
        errno.ENFILE: "too many files are open",
    }
)


def _words(exc: OSError) -> str:
    # never the text of the exception: it may hold where the folder is
    return _WORDS.get(exc.errno or 0) or os.strerror(exc.errno or errno.EIO)


@contextmanager
def told(place: Place) -> Iterator[None]:
    """Turn what the system says into what a model is told.

    Args:
        place: What it is about.

    Raises:
        ToolError: Instead of an OSError.
    """
    try:
        yield
    except FileNotFoundError as exc:
        raise ToolError(f"{place.shown} is not there{_hint(place)}") from exc
    except OSError as exc:
        raise ToolError(f"{place.shown} can not be used: {_words(exc)}") from exc


def _hint(place: Place) -> str:
    """Names like the one that is not there."""
    if not place.parts:
        return ""
    above = Place(place.folder, place.parts[:-1])
    with suppress(OSError, ToolError):
        folder = opened_folder(above)
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry, _ in zip(entries, range(_MAX_HINTS), strict=False)]
        finally:
            os.close(folder)
        folded = {name.casefold(): name for name in names if not name.startswith(".")}
        near = get_close_matches(place.parts[-1].casefold(), folded, 1, 0.6)
        if near:
            return f"; did you mean {Place(above.folder, (*above.parts, folded[near[0]])).shown}?"
    return "; use list_files to see what is there"
