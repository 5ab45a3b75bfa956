"""Runs in the environment of one library: one adapter, one load, one line of JSON on stdout.

It waits for a line on stdin before it starts and after each repeat, where it says "stopped".

yes go | python benchmarks/worker.py ADAPTER '{"load": "w1", "specs": [{}], "ns": [10], "repeats": 1, "cap_s": 9}'
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import json
import math
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import FINAL, Spec, counters

Turn = Callable[[], Any]
Row = dict[str, Any]


# --- memory ----------------------------------------------------------------------------


def memory_mb(peak: bool = False) -> float:
    """Resident memory of this process, now or at its highest."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(wanted))
    except OSError:
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return highest / (1024 * 1024 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """Let the highest memory count from now on, where the system can."""
    try:
        with open("/proc/self/clear_refs", "w") as control:
            control.write("5")
    except OSError:
        return


# --- taking turns ----------------------------------------------------------------------

STDOUT = os.dup(1)
os.dup2(2, 1)  # whatever a library prints must not end up among the answers


def wait_for_go() -> None:
    if not sys.stdin.readline():
        os._exit(1)  # nobody is there any more


def stop() -> None:
    """Wait while the other adapters have their turn: what slows the machine down is to strike all of them alike."""
    os.write(STDOUT, b"stopped\n")
    wait_for_go()


# --- loads -----------------------------------------------------------------------------


@dataclass
class Cell:
    """A turn of one length that is measured again and again."""

    spec: Spec
    turn: Turn | None = None
    spent: float = 0.0
    rows: list[Row] = field(default_factory=list)


class Bench:
    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    def once(self, turn: Turn, spec: Spec) -> tuple[float, float]:
        """Run one turn, check what it did, and return its wall and CPU seconds."""
        is_async = inspect.iscoroutinefunction(turn)
        counters.reset()
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        answer = self.loop.run_until_complete(turn()) if is_async else turn()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if answer != FINAL:
            raise AssertionError(f"the final answer was {answer!r}")
        if counters.tool_calls != spec.n * spec.batch:
            raise AssertionError(f"{counters.tool_calls} tool calls, not {spec.n * spec.batch}")
        return wall, cpu

    def sweep(self, job: Row, build: Callable[[Spec], Turn], stats: Callable[[], Row] | None = None) -> list[Row]:
        """Measure turns of several lengths; the repeats go through all lengths in turn.

        A length whose CPU time, extrapolated from the growth so far, might pass ``cap_s`` is skipped.
        """
        cells = []
        for base in job["specs"]:
            shortest = Spec(**base).with_(n=min(5, *job["ns"]))
            warm = build(shortest)
            last = min(self.once(warm, shortest)[1] for _ in range(job.get("warmups", 3)))
            last_n, power = shortest.n, 1.2  # a turn so short costs more than its share
            for n in job["ns"]:
                cell = Cell(Spec(**base).with_(n=n))
                cells.append(cell)
                guess = last * (n / last_n) ** power
                if guess > job["cap_s"]:
                    cell.rows.append({**cell.spec.row(), "skipped": f"might take {guess:.0f} s"})
                    continue
                cell.turn = build(cell.spec)
                cpu = self.measure(cell, stats)
                known = n > last_n > shortest.n and cpu > last > 0
                power = max(1.0, math.log(cpu / last) / math.log(n / last_n)) if known else 2.0
                last, last_n = cpu, n
        for _ in range(1, job["repeats"]):
            stop()
            self.once(warm, shortest)
            for cell in cells:
                if cell.turn is not None and cell.spent < job["budget_s"]:
                    # short turns are measured more often: one of them is soon over
                    for _ in range(max(1, min(3, 300 // cell.spec.n))):
                        self.measure(cell, stats)
        return [row for cell in cells for row in cell.rows]

    def measure(self, cell: Cell, stats: Callable[[], Row] | None) -> float:
        assert cell.turn is not None
        before = stats() if stats else {}
        wall, cpu = self.once(cell.turn, cell.spec)
        cell.spent += wall
        row = {**cell.spec.row(), "wall": wall, "cpu": cpu}
        if stats:
            after = stats()
            row |= {"server_cpu": after["cpu"] - before["cpu"], "bytes_in": after["bytes_in"] - before["bytes_in"]}
        cell.rows.append(row)
        return cpu

    def w1(self, job: Row) -> list[Row]:
        """Turns of growing length, in process."""
        return self.sweep(job, self.adapter.inprocess)

    def w2(self, job: Row) -> list[Row]:
        """Turns of growing length through the library's own HTTP client."""
        url = job["base_url"]
        connection = HTTPConnection(*url.removeprefix("http://").split(":"), timeout=30)

        def stats() -> Row:
            connection.request("GET", "/stats")
            return json.loads(connection.getresponse().read())

        able = {True: getattr(self.adapter, "STREAMING", False), False: getattr(self.adapter, "NON_STREAMING", True)}
        specs = [base for base in job["specs"] if able[base.get("stream", False)]]
        return self.sweep({**job, "specs": specs}, lambda spec: self.adapter.http(url, spec), stats)

    def w3(self, job: Row) -> list[Row]:
        """Many turns at once; the growth of the memory is that of the first time."""
        spec, turns, url = Spec(**job["spec"]), job["turns"], job.get("base_url")
        build = (lambda spec: self.adapter.http(url, spec)) if url else self.adapter.inprocess
        turn = build(spec)
        small = spec.with_(model_delay=0.0)
        self.once(build(small), small)
        gc.collect()
        forget_peak()
        before = memory_mb()
        rows = []
        for number in range(job["repeats"]):
            if number:
                stop()
            counters.reset()
            gc.collect()
            cpu, wall = time.process_time(), time.perf_counter()
            answers = self.many(turn, turns)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if wrong := [answer for answer in answers if answer != FINAL]:
                raise AssertionError(f"{len(wrong)} wrong answers, the first {wrong[0]!r}")
            if counters.tool_calls != spec.n * spec.batch * turns:
                raise AssertionError(f"{counters.tool_calls} tool calls, not {spec.n * spec.batch * turns}")
            rows.append({**spec.row(), "turns": turns, "wall": wall, "cpu": cpu})
            if number == 0:
                rows[0] |= {"before_mb": before, "peak_mb": memory_mb(peak=True)}
            if wall > job["budget_s"]:
                break
        return rows

    def many(self, turn: Turn, turns: int) -> list[Any]:
        if inspect.iscoroutinefunction(turn):
            return self.loop.run_until_complete(together(turn, turns))
        with ThreadPoolExecutor(turns) as pool:
            return list(pool.map(lambda _: turn(), range(turns)))

    def w5(self, job: Row) -> list[Row]:
        """One reply with several calls of a tool that takes a while: async, then a blocking function."""
        rows = []
        kinds = (False, True) if getattr(self.adapter, "ASYNC_TOOLS", True) else (True,)
        for sync_tool in kinds:
            spec = Spec(**job["spec"]).with_(sync_tool=sync_tool)
            quick = spec.with_(tool_sleep=0.0)
            self.once(self.adapter.inprocess(quick), quick)
            turn = self.adapter.inprocess(spec)
            for _ in range(job["repeats"]):
                wall, cpu = self.once(turn, spec)
                span = counters.last_end - counters.first_start
                rows.append({**spec.row(), "wall": wall, "cpu": cpu, "at_once": counters.most_running, "span": span})
        return rows

    def events(self, job: Row) -> list[Row]:
        """The same turn with nobody listening and with each kind of listener the adapter has."""
        kinds = ["", *getattr(self.adapter, "EVENTS", ())]
        return self.sweep({**job, "specs": [{"events": kind} for kind in kinds]}, self.adapter.inprocess)

    def reaction(self, job: Row) -> list[Row]:
        """How soon a turn ends after a cancel, and what else is measured in milliseconds."""
        import reaction

        return self.loop.run_until_complete(reaction.measured(job["repeats"]))

    def reaction_local(self, job: Row) -> list[Row]:
        """How soon a generation of the embedded model ends after a cancel."""
        import reaction

        return self.loop.run_until_complete(reaction.generation(job["repeats"]))


async def together(turn: Turn, turns: int) -> list[Any]:
    return await asyncio.gather(*(turn() for _ in range(turns)))


def main() -> None:
    name, job = sys.argv[1], json.loads(sys.argv[2])
    out: Row = {}
    try:
        wait_for_go()
        bench = Bench(importlib.import_module(f"adapters.{name}"))
        out["rows"] = getattr(bench, job["load"])(job)
    except BaseException as exc:
        out["error"] = f"{type(exc).__name__}: {exc}"[:500]
        traceback.print_exc()
    sys.stderr.flush()
    os.write(STDOUT, json.dumps(out).encode() + b"\n")
    os._exit(0)  # some libraries leave threads behind that hold up the exit


if __name__ == "__main__":
    main()
