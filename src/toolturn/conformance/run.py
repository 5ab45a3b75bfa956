"""Rows times adapters times plain and streamed: the lab at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .child import Child
from .environments import AdapterFile, Report, find_adapter, python_of
from .judge import Trace, Verdict, judge
from .rows import Fault, Mode
from .server import LabServer

PROMPT = "Please do what has to be done."
BOUND = 30.0


@dataclass(frozen=True, slots=True)
class Result:
    """How an adapter did in one row.

    Args:
        row: The row's name.
        adapter: The adapter's name.
        version: The version of its library.
        mode: Plain or streamed.
        verdict: What the judge says; None where the library does not offer what the row is about.
    """

    row: str
    adapter: str
    version: str
    mode: Mode
    verdict: Verdict | None


def conform(
    adapters: Iterable[str],
    rows: Sequence[Fault],
    *,
    modes: Sequence[Mode] = ("plain", "stream"),
    report: Report,
    told: Callable[[Result], None] = lambda result: None,
    bound: float = BOUND,
) -> list[Result]:
    """Put adapters to the test.

    Args:
        adapters: Their names, or paths of files.
        rows: What is played.
        modes: Whether requests are plain, streamed or both.
        report: Is told what goes on, in lines.
        told: Is told each result as soon as it is there.
        bound: Seconds after which a turn counts as hung and its process is killed.

    Returns:
        The results, adapter by adapter, in the order of the rows.

    Raises:
        LabError: There is no such adapter, or it can not be started.
    """
    found = [find_adapter(name) for name in adapters]
    results = []
    with LabServer(rows) as server:
        for adapter in found:
            for result in _played(adapter, rows, modes, server, report, bound):
                told(result)
                results.append(result)
    return results


def _played(
    adapter: AdapterFile, rows: Sequence[Fault], modes: Sequence[Mode], server: LabServer, report: Report, bound: float
) -> Iterator[Result]:
    with Child(adapter, python_of(adapter, report)) as child:
        for row in rows:
            for mode in row.modes:
                if mode in modes:
                    verdict = _one(child, adapter.name, row, mode, server, bound)
                    yield Result(row.name, adapter.name, child.version, mode, verdict)


def _one(child: Child, name: str, row: Fault, mode: Mode, server: LabServer, bound: float) -> Verdict | None:
    if not set(row.needs) <= set(child.can):
        return None
    key = f"lab-{name}-{mode}"
    task = {
        "base_url": server.base_url,
        "model": row.name,
        "key": key,
        "stream": mode == "stream",
        "prompt": PROMPT,
        "max_iterations": row.max_iterations,
        "max_tool_calls": row.max_tool_calls,
        "timeout": row.timeout,
    }
    end, runs = child.play(task, bound)
    return judge(row, Trace(end, runs, server.received(row.name, key)))
