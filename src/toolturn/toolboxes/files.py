"""The toolbox ``files``: read, list, search and, where that is allowed, write files in named folders.

It is there only where somebody names the folders::

    tools = files_toolbox({"notes": "~/notes"}, write=True)

A model sees ``notes/todo.md`` and never where the folder is. Nothing outside is read or changed: links are not
followed, devices and pipes are not opened, and names that begin with a dot are as if they were not there. A file that
has another name outside of the folder (a hard link) can be read, since it is in the folder, but not written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from ..tools import ToolSet, tool
from .files_confined import Folder, Place, place_of, require_confinement, shown_name
from .files_looking import list_folder, search_folders
from .files_reading import read_text
from .files_writing import Mode, write_text

PathLike: TypeAlias = str | os.PathLike[str]
Folders: TypeAlias = Mapping[str, PathLike] | Iterable[PathLike]

READ_BYTES = 8_000
"""How much of a file one call shows, unless the toolbox is made with another bound."""

_TIMEOUT = 30.0
_KEYS = ("folders", "write", "approval", "hidden", "read_bytes")

_File = Annotated[str, Field(description="Path of the file, beginning with the folder's name.")]
_Folder = Annotated[str, Field(description="Path of the folder; all where empty.")]
_Pattern = Annotated[str, Field(description="What names must fit, such as *.txt; **/*.txt also in folders below.")]
_Offset = Annotated[int, Field(ge=0, le=2**62, description="The byte to begin at.")]
_Text = Annotated[str, Field(description="A word, or a part of a line.")]
_Mode = Annotated[Mode, Field(description="create a new file, overwrite one, or append to one.")]


def files_toolbox(
    folders: Folders,
    *,
    write: bool | Collection[str] = False,
    approval: bool | Callable[[Any], Any] = False,
    hidden: bool = False,
    read_bytes: int = READ_BYTES,
) -> ToolSet:
    """Return the tools ``list_files``, ``read_file``, ``search_files`` and, where writing is allowed, ``write_file``.

    Args:
        folders: The folders by the names a model knows them by, or their paths alone, whose last parts are the names.
        write: Whether files may be written: in all folders, in none, or in those of these names.
        approval: Whether somebody has to approve each ``write_file``, or a function of its arguments that says so.
        hidden: Whether names that begin with a dot can be used.
        read_bytes: How much of a file one call shows.

    Raises:
        ValueError: There is no folder, one is not there, or a name can not be used.
        TypeError: Something is of another type.
        OSError: The system can not keep files in their folder.
    """
    require_confinement()
    if type(read_bytes) is not int or not 256 <= read_bytes <= 1_000_000:
        raise ValueError("read_bytes must be a whole number from 256 to 1000000")
    known = _folders(folders, write)

    one_at_a_time = Lock()

    def place(text: str) -> Place:
        return place_of(text, known, hidden=hidden)

    names = ", ".join(f"{folder.name} (read and write)" if folder.write else folder.name for folder in known.values())

    @tool(effect="none", parallel=True, timeout=_TIMEOUT, description=f"List the files in a folder. Folders: {names}.")
    def list_files(folder: _Folder = "", pattern: _Pattern = "*") -> str:
        if _is_top(folder) and len(known) > 1:
            return "\n".join(f"{name}/" for name in known)
        return list_folder(place(folder), pattern, hidden=hidden)

    @tool(effect="none", parallel=True, timeout=_TIMEOUT, description=f"Read a text file. Folders: {names}.")
    def read_file(path: _File, offset: _Offset = 0) -> str:
        return read_text(place(path), offset, read_bytes)

    @tool(
        effect="none",
        parallel=True,
        timeout=_TIMEOUT,
        description=f"Find the files that hold a word or text. Folders: {names}.",
    )
    def search_files(text: _Text, folder: _Folder = "", pattern: _Pattern = "*") -> str:
        everywhere = _is_top(folder) and len(known) > 1
        places = [Place(each, ()) for each in known.values()] if everywhere else [place(folder)]
        return search_folders(places, text, pattern, hidden=hidden)

    @tool(effect="once", approval=approval, timeout=_TIMEOUT, description="Write a text file.")
    def write_file(path: _File, content: str, mode: _Mode = "create") -> str:
        with one_at_a_time:  # two that append at once would each keep what was there before
            return write_text(place(path), content, mode)

    tools = [list_files, read_file, search_files]
    return ToolSet([*tools, write_file] if any(folder.write for folder in known.values()) else tools)


def files_from_section(section: Mapping[str, Any]) -> ToolSet:
    """Return the tools that a section of a persona, or of any other configuration, describes.

    Args:
        section: ``folders``: a path, a list of paths, or an object of names and paths; ``write``: true, false, or a
            list of names of folders; ``approval``: whether somebody has to approve each writing; ``hidden`` and
            ``read_bytes`` as for :func:`files_toolbox`.

    Raises:
        ValueError: Something in it can not be used; the text names the key.
        OSError: The system can not keep files in their folder.
    """
    if not isinstance(section, Mapping):
        raise ValueError(f"the section of the files toolbox must be an object, not {type(section).__name__}")
    for key in section:
        if key not in _KEYS:
            near = get_close_matches(str(key), _KEYS, 1)
            raise ValueError(f"nobody knows the key {key!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    options = dict(section)
    folders = options.pop("folders", None)
    if not folders:
        raise ValueError("folders: name at least one folder")
    for key in ("approval", "hidden"):
        if not isinstance(options.get(key, False), bool):
            raise ValueError(f"{key}: it must be true or false")
    try:
        return files_toolbox([folders] if isinstance(folders, str) else folders, **options)
    except TypeError as exc:
        raise ValueError(str(exc)) from None


def files_from_texts(read: Iterable[str], write: Iterable[str] = (), **options: Any) -> ToolSet:
    """Return the tools for folders as they are typed: a path, or ``name=path``.

    Args:
        read: Folders whose files may be read.
        write: Folders whose files may be read and written.
        options: Further keyword arguments of :func:`files_toolbox`.

    Raises:
        ValueError: One is not there, or two have one name.
        OSError: The system can not keep files in their folder.
    """
    folders: dict[str, PathLike] = {}
    writable: list[str] = []
    for texts, may in ((read, False), (write, True)):
        for text in texts:
            name, given, path = text.partition("=")
            if not given or "/" in name:
                name, path = _name_of(text), text
            if name in folders:
                raise ValueError(f"there are two folders of the name {name!r}; write other=PATH for one of them")
            folders[name] = path
            writable += [name] if may else []
    return files_toolbox(folders, write=writable, **options)


def _is_top(folder: str) -> bool:
    return not folder or all(part in ("", ".") for part in folder.split("/"))


def _name_of(path: PathLike) -> str:
    name = Path(path).expanduser().absolute().name
    if not name:
        raise ValueError(f"the folder {os.fspath(path)!r} needs a name of its own: give a mapping of names to paths")
    return name


def _folders(folders: Folders, write: bool | Collection[str]) -> Mapping[str, Folder]:
    if isinstance(folders, (str, bytes, os.PathLike)):
        raise TypeError("folders: give a mapping of names to paths, or a list of paths")
    pairs: list[tuple[str, PathLike]] = (
        list(folders.items())
        if isinstance(folders, Mapping)
        else [(_name_of(_path(path, "folders")), path) for path in folders]
    )
    if isinstance(write, str) or not isinstance(write, (bool, Collection)):
        raise TypeError("write: it must be true, false, or a list of names of folders")
    made: dict[str, Folder] = {}
    for name, path in pairs:
        _check_name(name)
        if name in made:
            raise ValueError(f"folders: two have the name {name!r}; give a mapping of names to paths")
        made[name] = Folder(name, _there(name, path), write if isinstance(write, bool) else name in write)
    if not made:
        raise ValueError("folders: name at least one folder")
    if not isinstance(write, bool) and (strange := [name for name in write if name not in made]):
        raise ValueError(f"write: there is no folder {strange[0]!r} (known: {', '.join(made)})")
    return MappingProxyType(made)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name or name != name.strip() or name.startswith((".", "~")) or "/" in name:
        raise ValueError(f"folders: {name!r} can not be the name of a folder")
    if shown_name(name) != name or len(name) > 100 or not name.isprintable():
        raise ValueError(f"folders: {shown_name(name)[:100]!r} can not be the name of a folder; use visible characters")


def _path(path: Any, what: str) -> PathLike:
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise TypeError(f"{what}: a path must be a text, not {type(path).__name__}")
    return path


def _there(name: str, path: Any) -> Path:
    try:
        found = Path(_path(path, f"folders: {name}")).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ValueError(f"folders: {name}: {os.fspath(path)!r} can not be found: {why}") from None
    if not found.is_dir():
        raise ValueError(f"folders: {name}: {os.fspath(path)!r} is no folder")
    return found
