"""Tables in Markdown: the figures with their targets, and every adapter beside the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from figures import FLOOR, OURS, Figure, Samples, number, paired

FIRST = ["handwritten", FLOOR, "handwritten_raw", "handwritten_pyreqwest", "handwritten_httpx", OURS]


def print_figures(figures: Iterable[Figure]) -> None:
    """Print what was promised and what came of it."""
    rows = []
    for figure in figures:
        at = "at least " if figure.at_least else "at most "
        shown = at + f"{figure.target:g}{figure.unit}"
        verdict = figure.verdict if figure.checked else f"({figure.verdict})"
        value = "–" if figure.value is None else number(figure.value) + figure.unit
        bounds = [number(bound) for bound in (min(figure.rounds), max(figure.rounds))] if figure.rounds else []
        rows.append([figure.text, value, " … ".join(dict.fromkeys(bounds)), shown, verdict, figure.detail])
    table(["figure", "median", "rounds", "target", "verdict", "made of"], rows)


def print_adapters(samples: Samples, loads: Iterable[str]) -> None:
    """Print a line for each adapter; all numbers are ratios to the floor unless they name a unit."""
    names = _ordered(samples.adapters())
    columns: list[tuple[str, Callable[[str], str]]] = []
    if "w1" in loads:
        for size, label in ((20, "20 B"), (10_000, "10 kB")):
            columns += [(f"w1 {label}, n={n}", _w1(samples, n, size)) for n in (100, 1000)]
        columns.append(("growth", lambda name: _median(samples.growth(name).values())))
    if "w3" in loads:
        columns.append(("w3 CPU", _ratio(samples, "w3")))
        columns.append(("w3 kB per turn", lambda name: _median(samples.memory(name).values())))
    if "w5" in loads:
        columns.append(("w5 async, at once", _at_once(samples, False)))
        columns.append(("w5 blocking", _at_once(samples, True)))
    if "import" in loads:
        columns.append(("import CPU", _ratio(samples, "import")))
        columns.append(("import MB", lambda name: _plain(samples.all(name, "import", "memory_mb"))))
        columns.append(("modules", lambda name: _plain(samples.all(name, "import", "modules"))))
        columns.append(("installed MB", _installed(samples)))
    if columns:
        _adapters_table(f"Beside the others: CPU, times {FLOOR}", names, columns)
    http: list[tuple[str, Callable[[str], str]]] = []
    if "w2" in loads:
        for stream in (False, True):
            for size, label in ((20, "20 B"), (10_000, "10 kB")):
                kind = "streaming " if stream else ""
                http += [(f"w2 {kind}{label}, n={n}", _w2(samples, n, size, stream)) for n in (10, 50, 200)]
    if "w3http" in loads:
        http.append(("w3http", lambda name: _per_turn(samples, name)))
    if http:
        _adapters_table("Over HTTP: ms of the client's CPU per model request; w3http: per turn", names, http)


def _adapters_table(title: str, names: list[str], columns: list[tuple[str, Callable[[str], str]]]) -> None:
    rows = [[name, *(make(name) for _, make in columns)] for name in names]
    print(f"### {title}\n")
    table(["adapter", *(head for head, _ in columns)], [row for row in rows if any(cell != "–" for cell in row[1:])])


def print_versions(samples: Samples) -> None:
    """Print which versions of the other libraries were measured."""
    rows = [(result["adapter"], row) for result in samples.results for row in result.get("rows", ())]
    known = {name: row["versions"] for name, row in rows if row.get("versions")}
    for name in _ordered(known):
        print(f"- {name}: " + ", ".join(f"{dist} {version}" for dist, version in known[name].items()))


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))


def _w1(samples: Samples, n: int, size: int) -> Callable[[str], str]:
    make = _ratio(samples, "w1", n=n, result_size=size)

    def cell(name: str) -> str:
        for result in samples.results:
            if (result["adapter"], result["load"]) == (name, "w1"):
                for row in result.get("rows", ()):
                    if (row["n"], row["result_size"]) == (n, size) and "skipped" in row:
                        return "skipped"
        return make(name)

    return cell


def _ratio(samples: Samples, load: str, **where: Any) -> Callable[[str], str]:
    floor = samples.each(FLOOR, load, "cpu", **where)

    def cell(name: str) -> str:
        ratio = paired(lambda a, b: a / b, samples.each(name, load, "cpu", **where), floor)
        return _median(ratio.values(), "×")

    return cell


def _w2(samples: Samples, n: int, size: int, stream: bool) -> Callable[[str], str]:
    def cell(name: str) -> str:
        cpu = samples.all(name, "w2", "cpu", n=n, result_size=size, stream=stream)
        return "–" if cpu is None else number(cpu * 1e3 / (n + 1))

    return cell


def _per_turn(samples: Samples, name: str) -> str:
    cpu, turns = samples.all(name, "w3http", "cpu"), samples.all(name, "w3http", "turns")
    return "–" if cpu is None or turns is None else number(cpu * 1e3 / turns)


def _at_once(samples: Samples, sync_tool: bool) -> Callable[[str], str]:
    return lambda name: _plain(samples.all(name, "w5", "at_once", sync_tool=sync_tool))


def _installed(samples: Samples) -> Callable[[str], str]:
    def cell(name: str) -> str:
        for result in samples.results:
            for row in result.get("rows", ()):
                if result["adapter"] == name and "distributions" in row and not result.get("here"):
                    return number(sum(size for _, size in row["distributions"].values()) / 1e6)
        return "–"

    return cell


def _median(values: Iterable[float], unit: str = "") -> str:
    known = list(values)
    return number(median(known)) + unit if known else "–"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown that can be read as it stands."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]

    def show(cells: list[str]) -> None:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |")

    show(head)
    show(["-" * width for width in widths])
    for row in rows:
        show(row)
    print()
