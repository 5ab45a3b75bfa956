"""Turns that did not end well, kept in files so that they can be continued."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolturn import codec
from toolturn.turn import Turn

_LISTS = ("tools", "mcp", "files", "write_files")


@dataclass(frozen=True, slots=True)
class SavedTurn:
    """A turn with what is needed to continue it.

    Args:
        state: The turn as JSON.
        model: The name of the model; None for the persona's.
        tools: The names of the toolboxes; where there are none, those of the persona or all built-in ones.
        why: Why it stopped, for people.
        mcp: The MCP servers, as they were written.
        persona: Where the persona is from; empty for none.
        files: Folders whose files may be read, as they were written but with whole paths.
        write_files: Folders whose files may be read and written, likewise.
        schema: The JSON Schema of the answer; None for an answer in text.
    """

    state: str
    model: str | None
    tools: tuple[str, ...]
    why: str
    mcp: tuple[str, ...] = ()
    persona: str = ""
    files: tuple[str, ...] = ()
    write_files: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None


def folder() -> Path:
    """Return where saved turns are kept: ``TOOLTURN_STATE``, or the user's state folder."""
    if given := os.environ.get("TOOLTURN_STATE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "toolturn" / "turns"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "toolturn" / "turns"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all.

    Args:
        path: The file; one that is there is replaced.
        text: What is in it, in ASCII.

    Raises:
        OSError: It can not be written.
    """
    # written beside and moved, so that there is never half a file; no other user may read it, not even for a moment
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def save(turn: Turn, kept: SavedTurn, path: Path | None = None) -> Path:
    """Write a turn to a file that only its owner can read.

    Args:
        turn: The turn.
        kept: What is saved beside it; its ``state`` is not looked at.
        path: Where to; a new file where None.

    Returns:
        The file.

    Raises:
        OSError: It can not be written.
    """
    if path is None:
        path = folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{turn.turn_id[:8]}.json"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    document: dict[str, Any] = {"v": codec.VERSION, "kind": "saved turn", "model": kept.model, "why": kept.why}
    for name in _LISTS:
        document[name] = list(getattr(kept, name))
    document |= {"persona": kept.persona, "schema": kept.schema, "turn": json.loads(turn.to_json())}
    write_private(path, codec.dumps(document))
    return path


def load(text: str) -> SavedTurn:
    """Return the turn that :func:`save` wrote.

    Args:
        text: What is in the file.

    Raises:
        ValueError: It is no saved turn.
    """

    def build(data: dict[str, Any]) -> SavedTurn:
        return SavedTurn(
            codec.dumps(data["turn"]),
            _of_kind(data, "model", str, type(None)),
            why=_of_kind(data, "why", str),
            # a turn that was saved by an older version does not know these
            persona=_of_kind({"persona": "", **data}, "persona", str),
            schema=_of_kind({"schema": None, **data}, "schema", dict, type(None)),
            **{name: _texts(data if name == "tools" else {name: [], **data}, name) for name in _LISTS},
        )

    return codec.read(text, "saved turn", build)


def _of_kind(data: dict[str, Any], name: str, *kinds: type) -> Any:
    value = data[name]
    if not isinstance(value, kinds):
        raise ValueError(f"{name} can not be {type(value).__name__}")
    return value


def _texts(data: dict[str, Any], name: str) -> tuple[str, ...]:
    values = _of_kind(data, name, list)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must hold texts")
    return tuple(values)
