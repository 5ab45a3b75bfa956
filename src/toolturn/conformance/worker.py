"""The process an adapter runs in: tasks come as lines of JSON, what happens goes back as lines of JSON.

Run as a script with the path of an adapter, by the Python of the adapter's environment. toolturn need not be there:
this folder becomes a package of another name, in which the relative imports of adapters hold.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import importlib.util
import json
import os
import queue
import sys
import threading
import time
import types
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_PACKAGE = "toolturn_fault_lab"
_turn: ContextVar[Any] = ContextVar("turn", default=None)
"""The number of the turn: what a tool does that was left behind is not the work of the next turn."""


def main(path: str) -> None:
    """Play tasks until standard input ends.

    Args:
        path: The adapter's file.
    """
    # what libraries print must not get in between
    channel = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(**line: Any) -> None:
        with lock:
            channel.write(json.dumps(line, default=repr) + "\n")
            channel.flush()

    package = types.ModuleType(_PACKAGE)
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules[_PACKAGE] = package
    interface = importlib.import_module(f"{_PACKAGE}.adapter")
    labtools = importlib.import_module(f"{_PACKAGE}.labtools")
    stop = _Stop()

    def ran(name: str, arguments: dict[str, Any]) -> None:
        tell(event="ran", name=name, arguments=arguments, turn=_turn.get())
        if name == stop.at:
            stop()

    labtools.__dict__["report"] = ran
    adapter = _load(path)
    tell(event="ready", version=_version(getattr(adapter, "DISTRIBUTION", "")), can=list(getattr(adapter, "CAN", ())))
    tasks: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_listen, args=(tasks, stop), daemon=True).start()
    with asyncio.Runner() as runner:
        while (given := tasks.get()) is not None:
            at, number = given.pop("cancel_at", ""), given.pop("turn", None)
            task = interface.Task(**given, tools=labtools.TOOLS, seen=lambda *what: tell(event="seen", what=what))
            fatal = False
            began = time.monotonic()
            try:
                outcome = runner.run(stop.guard(adapter.run, task, at, number))
            except Exception as exc:  # noqa: BLE001 - whatever a library raises is what is looked for
                outcome = task.failed(exc)
            except asyncio.CancelledError:
                outcome = task.cancelled(None)
            except BaseException as exc:  # noqa: BLE001 - such as the exit of a tool
                outcome, fatal = task.failed(exc), True
            took = time.monotonic() - (stop.began or began)
            told = _told(outcome, getattr(adapter, "TYPED", ()))
            tell(event="done", last=fatal, **told, took=took, saved=outcome.saved, pending=outcome.pending)
            if fatal:
                os._exit(0)  # the loop may be in any state


class _Stop:
    """Cancels the turn that runs, as a program does: with ``cancel()`` of its task."""

    def __init__(self) -> None:
        self.at = ""
        self.began = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Task[Any] | None = None

    async def guard(self, run: Callable[[Any], Coroutine[Any, Any, Any]], task: Any, at: str, number: Any) -> Any:
        _turn.set(number)
        self.at, self.began = at, 0.0
        self._loop, self._turn = asyncio.get_running_loop(), asyncio.current_task()
        try:
            return await run(task)
        finally:
            self._turn = None

    def __call__(self) -> None:
        """Cancel it, from any thread; at once where it is the one of the loop."""
        if self._loop is None:
            return
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._cancel()
        else:
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._turn is not None and not self.began:
            self.began = time.monotonic()
            self._turn.cancel()


def _listen(tasks: queue.Queue[dict[str, Any] | None], stop: _Stop) -> None:
    for line in sys.stdin:
        given = json.loads(line)
        if given == "cancel":
            stop()
        else:
            tasks.put(given)
    tasks.put(None)


def _told(outcome: Any, typed: tuple[str, ...]) -> dict[str, Any]:
    if outcome.answer is not None:
        return {"how": "answer", "text": outcome.answer, "results": outcome.results}
    if outcome.stopped:
        return {"how": "cancelled"}
    if outcome.error is None:
        return {"how": "waits"}
    error = outcome.error
    kind = type(error)
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__
        text = ""
    if getattr(error, "body", None):  # where clients of HTTP keep the server's words
        text = f"{text} {error.body}"
    return {
        "how": "error",
        "text": text,
        "error": kind.__name__,
        "typed": kind.__module__.partition(".")[0] in typed,
        "kind": outcome.kind,
        "results": outcome.results,
    }


def _load(path: str) -> Any:
    file = Path(path).resolve()
    inside = file.parent == Path(__file__).resolve().parent / "adapters"
    name = f"{_PACKAGE}.adapters.{file.stem}" if inside else f"{_PACKAGE}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _version(distribution: str) -> str:
    if not distribution:
        return ""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # used from a checkout, perhaps
        spec = importlib.util.find_spec(distribution.replace("-", "_"))
        return "" if spec is None else str(getattr(importlib.import_module(spec.name), "__version__", ""))


if __name__ == "__main__":
    # the script's folder holds modules with names that others may want
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    main(sys.argv[1])
