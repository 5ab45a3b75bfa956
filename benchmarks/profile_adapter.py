"""Where one turn of an adapter spends its time, by function.

    python benchmarks/profile_adapter.py NAME N [--size BYTES] [--url URL] [--lines COUNT]

To be run with the interpreter that has the library. With the address of a running fakeserver.py the turn goes over
HTTP, otherwise it stays in process. A profiler makes calls dearer than they are: what it finds has to be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import importlib
import inspect
import pstats
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import Spec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("n", type=int)
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--url")
    parser.add_argument("--lines", type=int, default=25)
    args = parser.parse_args()
    adapter = importlib.import_module(f"adapters.{args.name}")
    loop = asyncio.new_event_loop()

    def run(turn):
        return loop.run_until_complete(turn()) if inspect.iscoroutinefunction(turn) else turn()

    def build(spec):
        return adapter.http(args.url, spec) if args.url else adapter.inprocess(spec)

    run(build(Spec(n=1)))  # caches, lazily imported code
    turn = build(Spec(n=args.n, result_size=args.size))
    profile = cProfile.Profile()
    profile.runcall(run, turn)
    for order in ("tottime", "cumulative"):
        pstats.Stats(profile).strip_dirs().sort_stats(order).print_stats(args.lines)


if __name__ == "__main__":
    main()
