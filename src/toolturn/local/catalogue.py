"""What weights there are, where they are kept, and what is told while they are fetched."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


class WeightsError(RuntimeError):
    """The weights cannot be had; the text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One GGUF file that can be pulled.

    Args:
        name: What a user types.
        file: File name, the same on the hub and in the cache folder.
        bytes: Size of the file in bytes.
        sha256: Lower-case hexadecimal digest of the whole file.
        licence: Licence of the weights, an SPDX identifier.
        repository: Repository on the hub, ``owner/name``.
        parts: Requirements file that pins the wheels which hold the same file in pieces, in the order of
            the pieces; ``None`` when no package index has it.
    """

    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    repository: str
    parts: Path | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """One line for a person to read."""

    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is.

    Args:
        done: Bytes that are here; the first report of a download that goes on does not start at 0.
        total: Bytes that are needed.
    """

    done: int
    total: int


Report: TypeAlias = Callable[[Notice | Progress], None]
"""What a pull calls with its events, in the thread that pulls."""


def cache_folder() -> Path:
    """Return the folder that all cached files live in, whether or not it exists.

    ``TOOLTURN_CACHE`` names it; without that it is ``toolturn`` below ``XDG_CACHE_HOME``, else below the
    place the operating system has for caches.
    """
    if own := os.environ.get("TOOLTURN_CACHE"):
        return Path(own).expanduser().absolute()
    # The XDG specification has relative paths ignored.
    if (xdg := os.environ.get("XDG_CACHE_HOME")) and os.path.isabs(xdg):
        return Path(xdg, "toolturn")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local", "toolturn")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "toolturn"
    return Path.home() / ".cache" / "toolturn"


def path_of(weights: Weights) -> Path:
    """Return where the file of these weights is, or would be."""
    return cache_folder() / "models" / weights.file


def is_present(weights: Weights) -> bool:
    """Return whether the verified file of these weights is in the cache folder."""
    # The sha256 was checked before the file got this name, so its size is enough to trust it.
    try:
        return path_of(weights).stat().st_size == weights.bytes
    except OSError:
        return False


def file_sizes(path: Path) -> list[int]:
    """Return the sizes in bytes of a file, or of all files below a folder."""
    files = [path, *(Path(folder, name) for folder, _, names in os.walk(path) for name in names)]
    sizes = []
    for file in files:
        # What a download in progress has there can be gone the next moment.
        with contextlib.suppress(OSError):
            if file.is_file():
                sizes.append(file.stat().st_size)
    return sizes


def megabytes(count: int) -> str:
    """Return a number of bytes as people read it, such as ``491 MB``."""
    return f"{count / 1e6:.0f} MB" if count >= 1_000_000 else f"{count:,} bytes"
