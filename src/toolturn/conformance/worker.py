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
import sys
import threading
import types
from pathlib import Path
from typing import Any

_PACKAGE = "toolturn_fault_lab"


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
    labtools.__dict__["report"] = lambda name, arguments: tell(event="ran", name=name, arguments=arguments)
    adapter = _load(path)
    tell(event="ready", version=_version(getattr(adapter, "DISTRIBUTION", "")), can=list(getattr(adapter, "CAN", ())))
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            task = interface.Task(**json.loads(line), tools=labtools.TOOLS)
            fatal = False
            try:
                outcome = runner.run(adapter.run(task))
            except Exception as exc:  # noqa: BLE001 - whatever a library raises is what is looked for
                outcome = task.failed(exc)
            except BaseException as exc:  # noqa: BLE001 - such as the exit of a tool
                outcome, fatal = task.failed(exc), True
            tell(event="done", last=fatal, **_told(outcome, getattr(adapter, "TYPED", ())))
            if fatal:
                os._exit(0)  # the loop may be in any state


def _told(outcome: Any, typed: tuple[str, ...]) -> dict[str, Any]:
    if outcome.answer is not None:
        return {"how": "answer", "text": outcome.answer, "results": outcome.results}
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
