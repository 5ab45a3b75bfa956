"""Evaluated system prompts kept on disk, so that a fresh process need not read its tools' descriptions again.

Reading a prompt of a thousand tokens takes a small machine ten seconds or more, and it is the same one each time. Only
system messages are kept, never what a user wrote. The library saves and restores such states through the HTTP port it
opens on loopback, which has a key that only this process knows.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIN_CHARS = 600
MAX_FILES = 8
_SECONDS = 60.0


class PromptStates:
    """The states of one loaded file.

    Args:
        folder: Where they are kept; it is made when it is needed.
        identity: What a state depends on beside the prompt: the file, the window, the library's version.
        address: The library's HTTP address on loopback.
        key: The key of its port.
        evaluate: Reads a system message into the library's memory.
    """

    def __init__(
        self, folder: Path, identity: str, address: str, key: str, evaluate: Callable[[dict[str, Any]], None]
    ) -> None:
        self._folder = folder
        self._identity = identity
        self._address = address
        self._key = key
        self._evaluate = evaluate
        self._held: str | None = None
        self._lock = threading.Lock()

    def prepare(self, messages: list[dict[str, Any]]) -> None:
        """Have the messages' system prompt read already, where it is long; a failure only costs time.

        Args:
            messages: What the model is about to be asked.
        """
        first = messages[0] if messages else {}
        if first.get("role") != "system" or len(first["content"]) < MIN_CHARS:
            self._held = None
            return
        text = f"{self._identity}\n{first['content']}"
        name = f"{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}.state"
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._held == name:
                return
            kept = self._folder / name
            if kept.exists():
                if self._do("restore", name):
                    os.utime(kept)
                    self._held = name
                    return
                kept.unlink(missing_ok=True)
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._evaluate(first)
            draft = f"{name}.{os.getpid()}"
            if self._do("save", draft):
                os.replace(self._folder / draft, kept)
                self._held = name
                self._forget_old()

    def _do(self, action: str, name: str) -> bool:
        import urllib.request

        request = urllib.request.Request(
            f"{self._address}/slots/0?action={action}",
            json.dumps({"filename": name}).encode(),
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy has no business on loopback
        try:
            with opener.open(request, timeout=_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _forget_old(self) -> None:
        files = sorted(self._folder.glob("*.state*"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MAX_FILES:]:
            file.unlink(missing_ok=True)
