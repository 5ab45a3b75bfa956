"""Downloads: one process at a time, room on the disk, the hub, and verified before it gets its name."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import queue
import re
import shutil
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from .catalogue import Notice, Progress, Report, Weights, WeightsError, megabytes

SILENCE = 30.0
"""Seconds without an answer, or between two bytes, after which a connection counts as broken."""

PAUSES = (0.0, 1.0, 3.0)
"""Seconds before each further attempt at a download that broke off; there are as many attempts."""

_CHUNK = 1 << 16
_BETWEEN_REPORTS = 0.1


class HubFailure(Exception):
    """The hub could not deliver, which says nothing against another source; the text is the reason."""


class _Broken(Exception):
    """The transfer ended before the file did; trying again can help."""


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a lock that the operating system releases when this process ends, however it ends.

    Args:
        path: The lock file. It is never deleted: whoever waits for a deleted file would share the lock
            with whoever creates the next one.
        waiting: Called once when another process holds the lock, before it is waited for.

    Raises:
        BlockingIOError: Another process holds the lock and ``waiting`` is ``None``.
    """
    with path.open("a+b") as file:
        told = False
        while not _try_to_lock(file):
            if waiting is None:
                raise BlockingIOError(f"{path} is locked")
            if not told:
                waiting()
                told = True
            time.sleep(0.1)
        yield


def require_space(folder: Path, needed: int, weights: Weights) -> None:
    """Check that a folder has room.

    Args:
        folder: An existing folder.
        needed: How many bytes are going to be written.
        weights: What they are for.

    Raises:
        WeightsError: There is less room than that.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsError(
            f"pulling {weights.name} needs {megabytes(needed)} in {folder} and {megabytes(free)} are free; "
            "make room, or set TOOLTURN_CACHE to a folder on another disk"
        )


def finish(file: Path, target: Path, weights: Weights, origin: str) -> None:
    """Verify a complete download and give it its final name.

    Args:
        file: The download, on the disk of the target; it is deleted when it is not what it should be.
        target: The final name.
        weights: What it should be.
        origin: Where it came from, for the error.

    Raises:
        WeightsError: Its size or its sha256 is not that of the weights.
    """
    with file.open("r+b") as stream:
        size = os.fstat(stream.fileno()).st_size
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        # The name promises that the bytes are right, so they have to be on the disk before it is.
        os.fsync(stream.fileno())
    if (size, found) != (weights.bytes, weights.sha256):
        file.unlink()
        raise WeightsError(
            f"what came from {origin} is not {weights.name} (expected {weights.bytes} bytes with sha256 "
            f"{weights.sha256}, found {size} bytes with {found}) and was deleted; "
            "pull it from another source, or name a GGUF file"
        )
    os.replace(file, target)


def from_hub(weights: Weights, target: Path, report: Report) -> None:
    """Download some weights from the hub that ``HF_ENDPOINT`` names, going on where an earlier try stopped.

    Args:
        weights: What to download.
        target: Where the file goes; its folder exists and is locked by the caller.
        report: Called with every event.

    Raises:
        HubFailure: The hub is out of reach, refuses, or breaks off again and again.
        WeightsError: It sent something else, or there is no room.
        OSError: The partial file could not be written.
    """
    hub = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    if not hub.startswith(("https://", "http://")):
        raise WeightsError(f"HF_ENDPOINT is {hub!r}, which is no http address; set it to one, or unset it")
    url = f"{hub}/{urllib.parse.quote(f'{weights.repository}/resolve/main/{weights.file}')}"
    partial = target.with_name(f"{target.name}.partial")
    kept = _resumable(partial, weights)
    require_space(target.parent, weights.bytes - kept, weights)
    going_on = f", {megabytes(kept)} of it are here" if kept else ""
    report(Notice(f"{weights.name}: {megabytes(weights.bytes)}{going_on}, {weights.licence}, from {url}"))

    answered = False
    pauses = iter(PAUSES)
    while (offset := _length(partial)) < weights.bytes:
        try:
            with _ask(url, partial, offset) as answer:
                answered = True
                _receive(answer, partial, offset, weights, hub, report)
        except _Broken as broken:
            # A hub that never answered is out of reach, and trying again only makes people wait.
            if not answered:
                raise HubFailure(f"the hub {hub} is out of reach ({broken})") from broken
            pause = next(pauses, None)
            if pause is None:
                raise HubFailure(
                    f"the download from {hub} broke off {len(PAUSES) + 1} times ({broken}), what arrived is "
                    "kept and the next pull goes on from there"
                ) from broken
            report(Notice(f"the download broke off ({broken}); trying again"))
            time.sleep(pause)
    report(Notice("verifying the sha256"))
    finish(partial, target, weights, hub)


def _resumable(partial: Path, weights: Weights) -> int:
    """Return how many bytes an earlier download left, after dropping what cannot be gone on with."""
    # The bytes are of use only when they are known to be the beginning of this very file.
    if _remembered(partial).get("sha256") != weights.sha256 or _length(partial) > weights.bytes:
        partial.unlink(missing_ok=True)
    return _length(partial)


def _length(partial: Path) -> int:
    return partial.stat().st_size if partial.exists() else 0


def _sidecar(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _remembered(partial: Path) -> dict[str, Any]:
    try:
        noted = json.loads(_sidecar(partial).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _ask(url: str, partial: Path, offset: int) -> http.client.HTTPResponse:
    headers = {"User-Agent": "toolturn"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        etag = _remembered(partial).get("etag")
        # A weak ETag is not allowed in If-Range; the sha256 of the whole decides then.
        if isinstance(etag, str) and not etag.startswith("W/"):
            headers["If-Range"] = etag
    try:
        return _open(urllib.request.Request(url, headers=headers))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and offset:
            return _ask(url, partial, 0)
        if error.code < 500 and error.code != HTTPStatus.TOO_MANY_REQUESTS:
            raise HubFailure(f"{url} cannot be had: the answer is {error.code} {error.reason}") from error
        raise _Broken(f"the answer is {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(_reason(error)) from error


def _open(request: urllib.request.Request) -> http.client.HTTPResponse:
    # The timeout of a socket counts anew for every address of a name, and none bounds the look-up of the
    # name; waiting for a thread bounds the whole.
    box: queue.SimpleQueue[http.client.HTTPResponse | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            box.put(urllib.request.build_opener().open(request, timeout=SILENCE))
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            box.put(error)

    threading.Thread(target=work, name="toolturn-hub", daemon=True).start()
    try:
        answer = box.get(timeout=SILENCE)
    except queue.Empty:
        raise TimeoutError(f"no answer within {SILENCE:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _receive(
    answer: http.client.HTTPResponse, partial: Path, offset: int, weights: Weights, hub: str, report: Report
) -> None:
    if answer.status == HTTPStatus.PARTIAL_CONTENT:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if found is None or int(found[1]) != offset or found[2] not in ("*", str(weights.bytes)):
            partial.unlink(missing_ok=True)
            raise _Broken("the answer holds another range than the one asked for")
    else:
        if answer.length not in (None, weights.bytes):
            raise WeightsError(
                f"{hub} offers {answer.length} bytes where {weights.name} has {weights.bytes}; something "
                "else answers in its place, so check HF_ENDPOINT and the proxy, or name a GGUF file"
            )
        if offset:
            report(Notice("the hub does not go on where the download stopped; starting over"))
        partial.write_bytes(b"")
        noted = {"sha256": weights.sha256, "etag": answer.headers.get("ETag")}
        _sidecar(partial).write_text(json.dumps(noted), encoding="utf-8")
        offset = 0
    report(Progress(offset, weights.bytes))
    reported = time.monotonic()
    with partial.open("ab") as file:
        # The end of the body is not awaited: a server may keep the connection open after it.
        while offset < weights.bytes:
            chunk = _read(answer, weights.bytes - offset)
            file.write(chunk)
            offset += len(chunk)
            if (now := time.monotonic()) - reported >= _BETWEEN_REPORTS or offset == weights.bytes:
                report(Progress(offset, weights.bytes))
                reported = now


def _read(answer: http.client.HTTPResponse, most: int) -> bytes:
    try:
        chunk = answer.read1(min(most, _CHUNK))
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(_reason(error)) from error
    if not chunk:
        raise _Broken("it ended before the file did")
    return chunk


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__


def _try_to_lock(file: IO[bytes]) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
    else:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
