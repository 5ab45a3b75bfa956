"""An adapter's process as the lab sees it: started, spoken to over lines of JSON, killed when it hangs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .environments import AdapterFile, LabError
from .rows import Run
from .trace import Exit

_WORKER = Path(__file__).parent / "worker.py"
_START_SECONDS = 120.0
_LOOK = 0.02
_TAKEN = ("OPENAI_", "ANTHROPIC_", "AZURE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def _environment() -> dict[str, str]:
    """The environment of a child: no keys, no proxies, no telemetry."""
    env = {key: value for key, value in os.environ.items() if not key.upper().startswith(_TAKEN)}
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "NO_PROXY": "*", "PYTHONWARNINGS": "ignore", "PYTHONUTF8": "1"}
    return {**env, **quiet}


class Child:
    """Runs one adapter; a process that hung or died is replaced at the next turn.

    Args:
        adapter: The adapter.
        python: The Python that runs it.

    Attributes:
        version: The version of the library, once it was started.
        can: What it offers.
        late: What tools did, in the order in which it was heard of, after their turns had ended.
    """

    def __init__(self, adapter: AdapterFile, python: Path) -> None:
        self._adapter = adapter
        self._python = python
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors: list[str] = []
        self._turn = 0
        self.late: list[Run] = []
        self.version = ""
        self.can: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def renew(self) -> None:
        """Take another process, which knows nothing of what happened.

        Raises:
            LabError: The adapter can not be started again.
        """
        self._start()

    def play(
        self,
        task: dict[str, Any],
        bound: float,
        *,
        seen: list[tuple[str, ...]] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> tuple[Exit, Sequence[Run]]:
        """Run one turn and return how it ended and what ran.

        Args:
            task: The task, without its tools.
            bound: Seconds after which it counts as hung.
            seen: Is filled with what is told while the turn runs.
            cancel: Is asked, again and again, whether the turn has to be cancelled now.

        Raises:
            LabError: The adapter can not be started again.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        runs: list[Run] = []
        self._turn += 1
        task = {**task, "turn": self._turn}
        deadline = time.monotonic() + bound
        if not self._say(task):
            return self._died(), runs
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                line = self._lines.get(timeout=left if cancel is None else min(left, _LOOK))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    self._end()
                    return Exit("hung"), runs
                if cancel is not None and cancel():
                    cancel = None
                    self._say("cancel")
                continue
            if line is None:
                return self._died(), runs
            if line["event"] == "ran":
                run = Run(line["name"], line["arguments"])
                if line["turn"] in (None, self._turn):
                    runs.append(run)
                else:
                    self.late.append(run)
            elif line["event"] == "seen":
                if seen is not None:
                    seen.append(tuple(line["what"]))
            elif line["event"] == "done":
                if line["last"]:
                    self._end()
                told = {key: value for key, value in line.items() if key not in ("event", "last")}
                return Exit(**{**told, "pending": tuple(told["pending"])}), runs

    def _say(self, value: Any) -> bool:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def _died(self) -> Exit:
        self._end()
        return Exit("died", self._errors[-1] if self._errors else "")

    def _start(self) -> None:
        self._end()
        self._lines = queue.Queue()
        self._errors = []
        command = [str(self._python), str(_WORKER), str(self._adapter.path)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=_environment(),
            )
        except OSError as exc:
            raise LabError(f"{self._adapter.name} can not be started: {exc}") from None
        self._process = process
        threading.Thread(target=_read, args=(process, self._lines), daemon=True).start()
        threading.Thread(target=_listen, args=(process, self._errors), daemon=True).start()
        try:
            first = self._lines.get(timeout=_START_SECONDS)
        except queue.Empty:
            first = None
        if first is None:
            self._end()
            why = self._errors[-1] if self._errors else "it says nothing"
            raise LabError(f"{self._adapter.name} can not be started: {why}")
        self.version, self.can = first["version"], tuple(first["can"])

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # something was still to be written
            process.stdin.close()


def _read(process: subprocess.Popen[str], lines: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    with process.stdout as out:
        for line in out:
            try:
                lines.put(json.loads(line))
            except ValueError:
                continue
    lines.put(None)


def _listen(process: subprocess.Popen[str], errors: list[str]) -> None:
    assert process.stderr is not None
    with process.stderr as out:
        for line in out:
            if line.strip():
                errors.append(line.strip())
                del errors[:-20]
