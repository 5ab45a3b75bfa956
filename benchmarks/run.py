#!/usr/bin/env python3
"""Measure toolturn beside a hand-written loop, and beside any other library that is installed here.

    python benchmarks/run.py                  # the figures, about two minutes
    python benchmarks/run.py --quick          # with less care and the floor alone, half a minute
    python benchmarks/run.py --check          # exit code 1 when a target is missed
    python benchmarks/run.py --json out.json  # everything that was measured

The rounds are interleaved: in each round every adapter runs each load once, in random order, each in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import imports
from figures import FLOOR, OURS, OURS_HTTP, Samples, figures
from process import VENVS, Adapter, FakeServer, Worker, allowed_cores, calmest_first, known_adapters, pin
from report import print_adapters, print_figures, print_versions

SIZES: list[dict[str, Any]] = [{"result_size": 20}, {"result_size": 10_000}]
AT_ONCE = {"n": 5, "result_size": 20, "model_delay": 0.05}

# cap_s: CPU seconds above which a length is skipped; budget_s: seconds after which a length is not repeated again
LOADS: dict[str, dict[str, Any]] = {
    "import": {"repeats": 5},
    "w1": {"load": "w1", "specs": SIZES, "ns": [100, 1000], "repeats": 16, "budget_s": 2.0, "cap_s": 10.0},
    "w3": {"load": "w3", "turns": 1000, "spec": AT_ONCE, "repeats": 3, "budget_s": 2.0},
    "w5": {"load": "w5", "spec": {"n": 1, "batch": 8, "tool_sleep": 0.05}, "repeats": 3},
    "events": {"load": "events", "ns": [100], "repeats": 12, "budget_s": 1.0, "cap_s": 10.0},
    "w2": {
        "load": "w2",
        "specs": [
            *({**size, "stream": stream} for stream in (False, True) for size in SIZES),
            {**SIZES[0], "stream": True, "pieces": 20},
        ],
        "ns": [10, 50, 200],
        "repeats": 3,
        "budget_s": 0.5,
        "cap_s": 20.0,
        "warmups": 1,
    },
    "w3http": {"load": "w3", "turns": 200, "spec": AT_ONCE, "repeats": 3, "budget_s": 2.0},
    "reaction": {"load": "reaction", "repeats": 30},
    "reaction_local": {"load": "reaction_local", "repeats": 10},
}
DEFAULT_LOADS = "import,w1,w3,w5,events,reaction"
HTTP_LOADS = ("w2", "w3http")
QUICK = {
    "import": {"repeats": 2},
    "w1": {"repeats": 6},
    "w3": {"repeats": 1},
    "w5": {"repeats": 1},
    "events": {"repeats": 4},
    "reaction": {"repeats": 10},
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three short rounds of toolturn and the floor")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a target is missed")
    parser.add_argument("--json", metavar="FILE", help="write everything that was measured; - for stdout, no tables")
    parser.add_argument("--rounds", type=int, help="5, or 3 with --quick")
    parser.add_argument("--loads", default=DEFAULT_LOADS, help=f"of {', '.join(LOADS)} (default: {DEFAULT_LOADS})")
    parser.add_argument("--only", metavar="NAMES", help="these adapters and the floor; all installed ones where absent")
    parser.add_argument("--venvs", type=Path, default=VENVS, help="where setup_venvs.py put the others")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one process")
    parser.add_argument("--no-pin", action="store_true", help="leave the choice of cores to the system")
    parser.add_argument(
        "--set", action="append", default=[], metavar="LOAD.KEY=JSON", help="change a load, e.g. w1.ns=[10,100]"
    )
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 5)
    args.loads = [load for load in args.loads.split(",") if load]
    if unknown := [load for load in args.loads if load not in LOADS]:
        parser.error(f"no such load: {', '.join(unknown)}")
    if args.quick:
        for load, changes in QUICK.items():
            LOADS[load].update(changes)
    for item in args.set:
        where, _, value = item.partition("=")
        load, _, key = where.partition(".")
        LOADS[load][key] = json.loads(value)
    return args


def chosen(args: argparse.Namespace) -> list[Adapter]:
    if args.only is not None:
        names = [FLOOR, *args.only.split(",")]
    else:
        names = [FLOOR, OURS, OURS_HTTP] if args.quick else known_adapters()
    adapters = [Adapter(name, args.venvs) for name in dict.fromkeys(names)]
    absent = [adapter.name for adapter in adapters if not adapter.installed]
    if absent:
        say(f"not installed, left out: {', '.join(absent)}")
    return [adapter for adapter in adapters if adapter.installed and adapter.does_any(args.loads)]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def campaign(args: argparse.Namespace, adapters: list[Adapter]) -> Iterator[dict[str, Any]]:
    """Run all rounds and yield the result of each process."""
    everywhere = allowed_cores()
    cores = [] if args.no_pin else everywhere
    server = None
    started = time.time()
    try:
        if any(load in HTTP_LOADS for load in args.loads):
            pin(cores[:1])
            server = FakeServer(args.venvs)
            cores = cores[1:] or cores  # the server has a core of its own
        for number in range(args.rounds):
            core = calmest_first(cores)[:1]
            pin(core)
            for load in args.loads:
                say(f"{time.time() - started:5.0f} s  round {number + 1} of {args.rounds}  {load}")
                todo = [adapter for adapter in adapters if adapter.does(load)]
                random.shuffle(todo)
                url = server.base_url if server is not None and load in HTTP_LOADS else None
                for adapter, result in one_round(todo, load, number, args.timeout, url):
                    if "error" in result:
                        say(f"         {adapter.name}: {result['error'][:200]}")
                    yield {
                        "adapter": adapter.name,
                        "load": load,
                        "round": number,
                        "here": adapter.is_here,
                        "core": core[0] if core else None,
                        "load_average": os.getloadavg()[0],
                        **result,
                    }
        say(f"{time.time() - started:5.0f} s  done")
    finally:
        pin(everywhere)
        if server is not None:
            server.stop()


def one_round(
    adapters: list[Adapter], load: str, number: int, timeout: float, url: str | None
) -> Iterator[tuple[Adapter, dict[str, Any]]]:
    """Let each adapter do a load once, each in a fresh process; their repeats take turns."""
    if load == "import":
        yield from imports_once(adapters, number)
        return
    job = {**LOADS[load], "base_url": url}
    workers = [Worker(adapter, job, number, timeout) for adapter in adapters]
    try:
        left = list(workers)
        while left:
            left = [worker for worker in left if worker.step()]
            random.shuffle(left)
    finally:
        for worker in workers:
            worker.close()
    yield from ((worker.adapter, worker.result) for worker in workers)


def imports_once(adapters: list[Adapter], number: int) -> Iterator[tuple[Adapter, dict[str, Any]]]:
    """The load ``import``, for which there is no worker: what is measured is a whole interpreter."""
    results: dict[Adapter, dict[str, Any]] = {adapter: {"rows": []} for adapter in adapters}
    for repeat in range(LOADS["import"]["repeats"]):
        for adapter, result in results.items():
            try:
                if number == repeat == 0:
                    result["rows"].append(imports.describe(adapter))  # and now the bytecode is there
                if "error" not in result:
                    result["rows"].append(imports.cost(adapter, number))
            except RuntimeError as exc:
                result["error"] = str(exc)
    yield from results.items()


def about_the_machine(args: argparse.Namespace, before: tuple[float, ...]) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "pydantic": metadata.version("pydantic"),
        "rounds": args.rounds,
        "quick": args.quick,
        "load_average_before": before,
        "load_average_after": os.getloadavg(),
    }


def main() -> int:
    args = options()
    adapters = chosen(args)
    before = os.getloadavg()
    samples = Samples(campaign(args, adapters))
    ours = next((adapter for adapter in adapters if adapter.name == OURS), None)
    promised = []
    if ours is not None:
        faults = imports.check(ours) if "import" in args.loads else None
        promised = figures(samples, args.loads, faults)
    machine = about_the_machine(args, before)
    if args.json:
        out = {"machine": machine, "figures": [figure.as_json() for figure in promised], "results": samples.results}
        text = json.dumps(out, indent=1)
        if args.json == "-":
            print(text)
        else:
            Path(args.json).write_text(text + "\n")
    if args.json != "-":
        averages = " to ".join(f"{average[0]:.1f}" for average in (before, machine["load_average_after"]))
        print(
            f"Python {machine['python']}, pydantic {machine['pydantic']}, {machine['system']}, "
            f"{machine['cores']} cores, load average {averages}, "
            f"medians of {args.rounds} rounds. The floor is {FLOOR}.\n"
        )
        if promised:
            print_figures(promised)
        print_adapters(samples, args.loads)
        print_versions(samples)
        for name, load, error in samples.errors():
            print(f"- {name}, {load}: {error[:200]}")
    missed = [figure.name for figure in promised if figure.checked and not figure.kept]
    broken = [name for name, _, _ in samples.errors() if name in (OURS, FLOOR)]
    return 1 if args.check and (missed or broken) else 0


if __name__ == "__main__":
    sys.exit(main())
