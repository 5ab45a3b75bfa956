"""Rows times adapters times plain and streamed: the lab at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .child import Child
from .environments import AdapterFile, Report, find_adapter, python_of
from .judge import Verdict, goes_on, judge
from .labtools import CLEANUP
from .rows import CLOSED_WITHIN, Act, Fault, Mode
from .server import LabServer
from .trace import Trace

PROMPT = "Please do what has to be done."
FURTHER = "And what now?"
BOUND = 30.0
GRACE = 1.0
PAUSE = 0.3
SECRET = "a key that only the lab knows"


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
    return judge(row, play(child, row, server, f"lab-{name}-{mode}", mode == "stream", bound))


def play(child: Child, row: Fault, server: LabServer, key: str, stream: bool, bound: float = BOUND) -> Trace:
    """Play a row with all its acts, and return what it left.

    Args:
        child: Who is put to the test.
        row: The row.
        server: Plays it.
        key: A name for this run.
        stream: Whether replies are streamed.
        bound: Seconds after which a turn counts as hung.
    """
    cancelled = 0.0

    def cancel() -> bool:
        nonlocal cancelled
        now = time.monotonic()
        received = server.received(row.name, key)
        paused = row.cancel == "pause" and received and now - received[-1].at > PAUSE
        if paused or server.stalls(row.name, key):
            cancelled = now
            return True
        return False

    child.late.clear()
    seen: list[tuple[str, ...]] = []
    asks = cancel if row.cancel in ("reply", "pause") else None
    end, runs = child.play(task_of(row, server, key, stream), bound, seen=seen, cancel=asks)
    if row.cancel == "reply" and cancelled:
        _await_close(server, row.name, key)
    runs_of_turn = runs
    trace = Trace(end, runs, server.received(row.name, key), seen, cancelled)
    acts: list[Trace] = []
    for number, act in enumerate(row.acts, 1):
        if not goes_on(row, trace, acts):
            break
        end = (acts or [trace])[-1].exit
        if act.fresh:
            child.renew()
        here = f"{key}#{number}"
        task = {**task_of(row, server, here, stream), "saved": _altered(end.saved or "", act), "prompt": FURTHER}
        if act.decisions:
            task["decisions"] = [_decided(act, dict(pending)) for pending in end.pending]
        end, runs = child.play(task, bound)
        acts.append(Trace(end, runs, server.received(row.name, here)))
    # a cleanup that comes late has missed its time; a tool that begins late has run all the same
    late = [run for run in child.late if run.name != CLEANUP]
    return replace(trace, runs=[*runs_of_turn, *late], acts=acts)


def _await_close(server: LabServer, row: str, key: str) -> None:
    """Wait until the server has seen that the client has gone, or is known to have seen it too late."""
    end = time.monotonic() + CLOSED_WITHIN
    while server.received(row, key)[-1].gone is None and time.monotonic() < end:
        time.sleep(0.01)


def _altered(saved: str, act: Act) -> str:
    if act.altered is None or any(act.altered):
        return saved if act.altered is None else saved.replace(*act.altered)
    middle = len(saved) // 2
    return f"{saved[:middle]}{'b' if saved[middle : middle + 1] == 'a' else 'a'}{saved[middle + 1 :]}"


def _decided(act: Act, pending: dict[str, Any]) -> dict[str, Any]:
    decision = act.decisions[pending["name"]]
    return {**pending, "approved": decision.approved, "reason": decision.reason}


def task_of(row: Fault, server: LabServer, key: str, stream: bool) -> dict[str, Any]:
    """Return what an adapter is told of a row.

    Args:
        row: The row.
        server: Plays it.
        key: A name for this run.
        stream: Whether replies are streamed.
    """
    return {
        "base_url": server.base_url,
        "model": row.name,
        "key": key,
        "stream": stream,
        "prompt": PROMPT,
        "max_iterations": row.max_iterations,
        "max_tool_calls": row.max_tool_calls,
        "timeout": row.timeout,
        "limits": dict(row.limits),
        "answer_at_limit": "answer" in row.needs,
        "choice_none": row.choice_none,
        "approval": list(row.approval),
        "sequential": "sequential" in row.needs,
        "grace": GRACE,
        "keep": bool(row.acts),
        "secret": SECRET if "signed" in row.needs else "",
        "answer_only": row.spoken is not None,
        "cancel_at": "" if row.cancel in ("reply", "pause") else row.cancel,
    }
