"""The mutation score of the machine: which small changes of its code no test notices.

Run it with ``python -m tests.core.mutation``: it lets mutmut try every change it can make in ``toolturn/turn``,
prints the score, and fails when one survives that ``docs/mutation.md`` does not explain.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mutation.md"
SOURCES = ROOT / "src" / "toolturn" / "turn"
COMMAND = "python -m tests.core.mutation"
KILLED = ("killed", "timeout")
_BLOCK = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A mutant, told by what it changes: its number is another one after every change of the code.

    Args:
        function: The module and the function, such as ``machine.Turn.begin``.
        before: The line as it is, blanks folded.
        after: The line as the mutant has it; empty where it leaves the line out.
    """

    function: str
    before: str
    after: str


def folded(lines: Iterable[str]) -> str:
    """Lines as one, with single blanks."""
    return " ".join(" ".join(lines).split())


def explained(page: str) -> set[Change]:
    """The changes that a page explains: in its ``diff`` blocks, each ``+`` is one change of the ``-`` above it."""
    changes = set()
    for block in _BLOCK.findall(page):
        function = before = ""
        for line in block.splitlines():
            text = folded([line[1:]])
            match line[:1]:
                case "@":
                    function = text.strip("@ ")
                case "-":
                    before = text
                case "+":
                    changes.add(Change(function, before, text))
    return changes


def shown(changes: Iterable[Change]) -> Iterator[str]:
    """Changes in the form in which the page has them."""
    last = Change("", "", "")
    for change in sorted(changes):
        if change.function != last.function:
            yield f"@@ {change.function} @@"
        if (change.function, change.before) != (last.function, last.before):
            yield f"- {change.before}"
        yield f"+ {change.after}".rstrip()
        last = change


# --- what mutmut says ----------------------------------------------------------------


def mutmut(*arguments: str) -> str:
    """What mutmut writes; what went wrong, where it fails."""
    done = subprocess.run([sys.executable, "-m", "mutmut", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mutmut {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def function_of(mutant: str) -> str:
    """The module and the function of a mutant, from its name such as ``package.machine.xǁTurnǁbegin__mutmut_1``."""
    module, _, name = mutant.rpartition("__mutmut_")[0].rpartition(".")
    name = name.removeprefix("x_") if "ǁ" not in name else ".".join(name.split("ǁ")[1:])
    return f"{module.rpartition('.')[2]}.{name}"


def change_of(mutant: str) -> Change:
    """What a mutant changes."""
    lines = mutmut("show", mutant).splitlines()
    lines = [line for line in lines if line[:1] in ("+", "-") and line[:4] not in ("+++ ", "--- ")]
    before, after = ([line[1:] for line in lines if line[0] == sign] for sign in "-+")
    return Change(function_of(mutant), folded(before), folded(after))


def verdicts() -> dict[str, str]:
    """What became of each mutant of the last run."""
    lines = [line.strip().rpartition(": ") for line in mutmut("results", "--all", "true").splitlines()]
    return {name: verdict for name, _, verdict in lines if "__mutmut_" in name}


def score(of: Mapping[str, str]) -> Iterator[str]:
    """How many were killed, file by file, as a table."""
    yield "| file | killed | of |"
    yield "|---|---|---|"
    modules = sorted({function_of(mutant).partition(".")[0] for mutant in of})
    for title, prefix in [*((f"`{module}.py`", f"{module}.") for module in modules), ("together", "")]:
        found = [verdict for mutant, verdict in of.items() if function_of(mutant).startswith(prefix)]
        yield f"| {title} | {sum(verdict in KILLED for verdict in found)} | {len(found)} |"


def main() -> None:
    # mutmut keeps the verdict of a mutant whose function is as it was, even where a test was added since
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    mutmut("run")
    of = verdicts()
    survivors = {change_of(mutant): verdict for mutant, verdict in of.items() if verdict not in KILLED}
    known = explained(PAGE.read_text(encoding="utf-8"))
    lines = [*score(of), ""]
    if gone := known - survivors.keys():
        lines += [f"{PAGE.name} explains what does not survive any more:", *shown(gone), ""]
    if new := survivors.keys() - known:
        lines += [f"Survivors that {PAGE.name} does not explain:", *shown(new), ""]
        lines += [f"{change.function}: {survivors[change]}" for change in new if survivors[change] != "survived"]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(1 if new or not of else 0)


if __name__ == "__main__":
    main()
