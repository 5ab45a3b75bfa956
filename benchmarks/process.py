"""Adapters as processes: which interpreter runs one, on which core, in which environment."""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
VENVS = HERE / "venvs"
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
QUIET = {
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
    "OTEL_SDK_DISABLED": "true",
    "OPENAI_API_KEY": "not-a-key",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "INSPECT_DISPLAY": "none",
}


# --- cores -----------------------------------------------------------------------------


def allowed_cores() -> list[int]:
    """The cores this process may use; none where the system can not pin."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []


def calmest_first(cores: list[int], seconds: float = 0.2) -> list[int]:
    """The cores in the order of how much they were idle just now."""

    def idle() -> dict[int, int]:
        with open("/proc/stat") as stat:
            lines = [line.split() for line in stat if line.startswith("cpu") and line[3].isdigit()]
        return {int(line[0][3:]): int(line[4]) + int(line[5]) for line in lines}

    if len(cores) < 2:
        return cores
    try:
        before = idle()
        time.sleep(seconds)
        after = idle()
    except OSError:
        return cores
    return sorted(cores, key=lambda core: before.get(core, 0) - after.get(core, 0))


def pin(cores: list[int]) -> None:
    """Keep this process, and those it starts from now on, on these cores."""
    if cores:
        os.sched_setaffinity(0, cores)


# --- adapters --------------------------------------------------------------------------


class Adapter:
    """One library, or one hand-written loop, and the interpreter that has what it needs."""

    def __init__(self, name: str, venvs: Path = VENVS) -> None:
        self.name = name
        self.constants = _constants(HERE / "adapters" / f"{name}.py")
        own = venvs / name / "bin" / "python"
        self.is_here = bool(self.constants.get("HERE")) and not own.exists()
        self.python = Path(sys.executable) if self.is_here else own

    @property
    def installed(self) -> bool:
        return self.python.exists()

    @property
    def imports(self) -> str:
        """What a user must import to run the loop."""
        return self.constants["IMPORTS"]

    def does(self, load: str) -> bool:
        own = {"events": "EVENTS", "reaction": "REACTION", "reaction_local": "REACTION"}  # what not all of them can
        return load not in self.constants.get("SKIP_LOADS", ()) and (load not in own or own[load] in self.constants)

    def does_any(self, loads: list[str]) -> bool:
        """Whether there is more to measure than its import, where more is wanted; of what is here the import counts."""
        only = loads == ["import"] or self.is_here
        return any(self.does(load) for load in loads if load != "import" or only)

    def environment(self, seed: int) -> dict[str, str]:
        kept = (*KEPT, "PYTHONPATH") if self.is_here else KEPT
        known = {key: value for key, value in os.environ.items() if key in kept}
        return {**known, **QUIET, "PYTHONHASHSEED": str(seed)}

    def python_c(self, code: str, *flags: str, seed: int = 0, timeout: float = 180) -> tuple[float, str, str]:
        """Run a line of code in a fresh interpreter: its CPU seconds, stdout and stderr."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # -P: the working directory is no place to import from
        command = [str(self.python), "-P", *flags, "-c", code]
        environment = self.environment(seed)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=HERE, check=False
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"stopped after {timeout:.0f} s") from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-400:] or f"exit code {done.returncode}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu, done.stdout, done.stderr


class Worker:
    """One load of one adapter in a fresh process, which stops after each repeat so that others can have their turn.

    Args:
        adapter: Whose.
        job: The load.
        seed: Of the process's hashes.
        timeout: Seconds it may take from one stop to the next.
    """

    def __init__(self, adapter: Adapter, job: dict[str, Any], seed: int, timeout: float) -> None:
        self.adapter = adapter
        self.result: dict[str, Any] = {}
        self._job = job
        self._seed = seed
        self._timeout = timeout
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        self._process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.adapter.python), str(HERE / "worker.py"), self.adapter.name, json.dumps(self._job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=self.adapter.environment(self._seed),
            cwd=HERE,
        )

    def step(self) -> bool:
        """Let it work until its next stop; False when it has ended and ``result`` holds its rows or an error."""
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(self._timeout, process.kill)
        late.start()
        try:
            process.stdin.write("go\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if line == "stopped\n":
            return True
        if line:
            self.result = json.loads(line)
        else:
            code = process.wait()
            self._stderr.seek(0)
            why = f"killed after {self._timeout:.0f} s" if code == -9 else f"exit code {code}"
            self.result = {"error": f"{why} {self._stderr.read().strip()[-400:]}"}
        return False

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._stderr.close()


def _constants(path: Path) -> dict[str, Any]:
    """The simple constants of a module, read without importing it."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def known_adapters() -> list[str]:
    return sorted(path.stem for path in (HERE / "adapters").glob("*.py") if path.stem != "__init__")


# --- the fake server -------------------------------------------------------------------


class FakeServer:
    """The server for the loads over HTTP, in a process of its own."""

    def __init__(self, venvs: Path = VENVS) -> None:
        own = venvs / "server" / "bin" / "python"
        python = str(own if own.exists() else sys.executable)
        self.process = subprocess.Popen([python, str(HERE / "fakeserver.py")], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.base_url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)
