#!/usr/bin/env python3
"""Make a virtual environment for each of the other libraries: requirements/NAME.txt becomes venvs/NAME.

    python benchmarks/setup_venvs.py                         # all that are missing
    python benchmarks/setup_venvs.py --only pydantic_ai,llm  # these
    python benchmarks/setup_venvs.py --xr-ai DIRECTORY       # a checkout of xr-ai, for xr_ai_tools

A requirement that ends in "@ vendor" is taken from that checkout.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from process import HERE, VENVS

VENDORED = {
    "xr-ai-logging": "utils/xr-ai-logging",
    "xr-ai-models": "agent-sdk/xr-ai-models",
    "xr-ai-tools": "agent-sdk/xr-ai-tools",
}


def install(root: Path, lines: list[str], paths: list[str]) -> bool:
    venv.EnvBuilder(with_pip=True).create(root)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pinned:
        pinned.write("\n".join(lines))
        pinned.flush()
        command = [str(root / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        return subprocess.run([*command, "-r", pinned.name, *paths]).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=Path, default=VENVS)
    parser.add_argument("--only", metavar="NAMES", default="")
    parser.add_argument("--xr-ai", type=Path, metavar="DIRECTORY")
    parser.add_argument("--upgrade", action="store_true", help="install again into environments that exist")
    args = parser.parse_args()
    wanted = [name for name in args.only.split(",") if name]
    failed = []
    for file in sorted((HERE / "requirements").glob("*.txt")):
        name, root = file.stem, args.venvs / file.stem
        if (wanted and name not in wanted) or (root.exists() and not args.upgrade):
            continue
        lines = [line.strip() for line in file.read_text().splitlines()]
        vendored = [line.split("@")[0].strip() for line in lines if line.endswith("@ vendor")]
        if vendored and args.xr_ai is None:
            print(f"{name}: needs --xr-ai, left out")
            continue
        print(f"{name}: ...", flush=True)
        paths = [str((args.xr_ai / VENDORED[one]).resolve()) for one in vendored]
        if not install(root, [line for line in lines if not line.endswith("@ vendor")], paths):
            failed.append(name)
    if failed:
        print(f"pip failed for: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
