"""The figures that are promised: each one a number made of the samples, its target and a verdict.

Every figure is taken round by round, from processes that ran one after the other, and then its median over the rounds:
what else happens on the machine changes from minute to minute and strikes both of them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

OURS = "toolturn"
OURS_HTTP = "toolturn_http"
FLOOR = "handwritten_pydantic"
HTTP_FLOOR = "handwritten_pyreqwest"
SMALL, LARGE = 20, 10_000

Row = dict[str, Any]


class Samples:
    """The rows of a campaign.

    Args:
        results: One for each process: adapter, load, round, rows or error.
    """

    def __init__(self, results: Iterable[Row]) -> None:
        self.results = list(results)

    def errors(self) -> list[tuple[str, str, str]]:
        return sorted({(r["adapter"], r["load"], r["error"]) for r in self.results if "error" in r})

    def adapters(self) -> list[str]:
        return list(dict.fromkeys(r["adapter"] for r in self.results))

    def each(self, adapter: str, load: str, key: str, **where: Any) -> dict[int, float]:
        """The median of one measure in each round."""
        rounds: dict[int, list[float]] = {}
        for result in self.results:
            if (result["adapter"], result["load"]) == (adapter, load):
                for row in result.get("rows", ()):
                    if key in row and all(row.get(name) == value for name, value in where.items()):
                        rounds.setdefault(result["round"], []).append(row[key])
        return {number: median(values) for number, values in rounds.items()}

    def all(self, adapter: str, load: str, key: str, **where: Any) -> float | None:
        """The median over the rounds."""
        values = self.each(adapter, load, key, **where).values()
        return median(values) if values else None

    def growth(self, adapter: str, load: str = "w1", short: int = 100, long: int = 1000) -> dict[int, float]:
        """The exponent with which a turn's CPU grows with its length: 1 is linear, 2 is quadratic."""
        small = self.each(adapter, load, "cpu", n=short, result_size=SMALL)
        large = self.each(adapter, load, "cpu", n=long, result_size=SMALL)
        return paired(lambda a, b: math.log(b / a) / math.log(long / short), small, large)

    def memory(self, adapter: str) -> dict[int, float]:
        """kB by which each of the turns that run at once lets the process grow."""
        before = self.each(adapter, "w3", "before_mb")
        return paired(
            lambda low, high, turns: (high - low) * 1024 / turns,
            before,
            self.each(adapter, "w3", "peak_mb"),
            self.each(adapter, "w3", "turns"),
        )


def paired(make: Callable[..., float], *columns: dict[int, float]) -> dict[int, float]:
    """Combine measures round by round; rounds that lack one of them are left out."""
    if not columns:
        return {}
    rounds = set(columns[0]).intersection(*columns[1:])
    return {number: make(*(column[number] for column in columns)) for number in sorted(rounds)}


@dataclass(frozen=True)
class Figure:
    """One number with its target.

    Args:
        name: A short, stable name.
        text: What it is.
        rounds: Its value in each round.
        target: What it may be at most, or has to be at least.
        unit: What stands after the number.
        at_least: Whether more is better.
        checked: Whether a miss is a failure.
        detail: The numbers it is made of.
    """

    name: str
    text: str
    rounds: list[float]
    target: float
    unit: str = "×"
    at_least: bool = False
    checked: bool = True
    detail: str = ""

    @property
    def value(self) -> float | None:
        return median(self.rounds) if self.rounds else None

    @property
    def kept(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "NOT MEASURED" if self.checked else "not measured"
        if self.checked:
            return "OK" if self.kept else "MISSED"
        return "within" if self.kept else "above"

    def as_json(self) -> Row:
        return {
            "name": self.name,
            "text": self.text,
            "value": self.value,
            "unit": self.unit,
            "rounds": self.rounds,
            "target": self.target,
            "at_least": self.at_least,
            "checked": self.checked,
            "kept": self.kept,
            "detail": self.detail,
        }


def figures(samples: Samples, loads: Iterable[str], import_faults: list[str] | None) -> list[Figure]:
    """Return the figures of the loads that were run.

    Args:
        samples: What was measured.
        loads: Which loads.
        import_faults: What the check of the import found; None where it was not made.
    """
    makers = {
        "w1": _w1,
        "w3": _w3,
        "w5": _w5,
        "import": _import,
        "events": _events,
        "w2": _w2,
        "w3http": _w3http,
        "reaction": _reaction,
        "reaction_local": _reaction_local,
    }
    made = [figure for load in makers if load in loads for figure in makers[load](samples)]
    if import_faults is not None:
        detail = "; ".join(import_faults) or "no HTTP client, no extra, no pydantic model or adapter"
        text = "import: what it loads or builds needlessly"
        made.append(Figure("import_faults", text, [float(len(import_faults))], 0, "", detail=detail))
    return made


def _w1(samples: Samples) -> Iterable[Figure]:
    def cpu(adapter: str, n: int, size: int) -> dict[int, float]:
        """µs for each iteration."""
        return paired(lambda cpu: cpu * 1e6 / n, samples.each(adapter, "w1", "cpu", n=n, result_size=size))

    for n in (100, 1000):
        ours, floor = cpu(OURS, n, SMALL), cpu(FLOOR, n, SMALL)
        yield Figure(
            f"w1_{n}_small",
            f"w1, n={n}, 20 B: CPU",
            values(paired(lambda a, b: a / b, ours, floor)),
            2.5,
            detail=against(ours, floor, "µs per iteration"),
        )
    ours, floor = samples.growth(OURS), samples.growth(FLOOR)
    yield Figure(
        "w1_growth",
        "w1, growth exponent of a turn's CPU, n=100 to 1000, over the floor's",
        values(paired(lambda a, b: a - b, ours, floor)),
        0.1,
        "",
        detail=against(ours, floor, ""),
    )
    for n in (100, 1000):
        ours, floor = cpu(OURS, n, LARGE), cpu(FLOOR, n, LARGE)
        yield Figure(
            f"w1_{n}_large",
            f"w1, n={n}, 10 kB: CPU less the 20 B difference",
            values(
                paired(
                    lambda large, floor_large, small, floor_small: (large - (small - floor_small)) / floor_large,
                    ours,
                    floor,
                    cpu(OURS, n, SMALL),
                    cpu(FLOOR, n, SMALL),
                )
            ),
            1.5,
            detail=against(ours, floor, "µs per iteration"),
        )


def _w3(samples: Samples) -> Iterable[Figure]:
    def cpu(adapter: str) -> dict[int, float]:
        """ms for each turn."""
        seconds, turns = samples.each(adapter, "w3", "cpu"), samples.each(adapter, "w3", "turns")
        return paired(lambda cpu, turns: cpu * 1e3 / turns, seconds, turns)

    ours, floor = cpu(OURS), cpu(FLOOR)
    ratio = values(paired(lambda a, b: a / b, ours, floor))
    yield Figure("w3_cpu", "w3, 1000 turns at once: CPU", ratio, 2.5, detail=against(ours, floor, "ms per turn"))
    ours, floor = samples.memory(OURS), samples.memory(FLOOR)
    grown = {number: kilobytes for number, kilobytes in floor.items() if kilobytes > 0}
    ratio = values(paired(lambda a, b: a / b, ours, grown))
    text = "w3, 1000 turns at once: growth of the memory"
    yield Figure("w3_memory", text, ratio, 2.5, checked=False, detail=against(ours, floor, "kB per turn"))


def _w5(samples: Samples) -> Iterable[Figure]:
    for sync_tool, kind in ((False, "async"), (True, "blocking")):
        together = samples.each(OURS, "w5", "at_once", sync_tool=sync_tool)
        span = samples.all(OURS, "w5", "span", sync_tool=sync_tool)
        yield Figure(
            f"w5_{kind}",
            f"w5, {kind} tool: calls of 8 that run together",
            values(together),
            8,
            "",
            at_least=True,
            detail="" if span is None else f"{span * 1e3:.0f} ms for 8 calls of 50 ms",
        )


def _import(samples: Samples) -> Iterable[Figure]:
    ours, floor = (samples.each(name, "import", "cpu") for name in (OURS, FLOOR))
    ratio = values(paired(lambda a, b: a / b, ours, floor))
    milliseconds = [paired(lambda s: s * 1e3, column) for column in (ours, floor)]
    text = "import, less a bare interpreter: CPU"
    yield Figure("import_cpu", text, ratio, 1.5, detail=against(*milliseconds, "ms"))
    http = samples.each(OURS_HTTP, "import", "cpu")
    ratio = values(paired(lambda a, b: a / b, http, ours))
    milliseconds = [paired(lambda s: s * 1e3, column) for column in (http, ours)]
    text = "import for a model behind HTTP, over import toolturn: CPU"
    yield Figure("import_http", text, ratio, 1.5, detail=against(*milliseconds, "ms"))


def _events(samples: Samples) -> Iterable[Figure]:
    texts = {
        "listener": "events, n=100: emit=list.append, CPU over emit=None",
        "streaming": "events, n=100: the same and the model streams, three pieces each",
        "iterator": "events, n=100: the same through stream_tool_loop",
    }
    silent = samples.each(OURS, "events", "cpu", events="")
    for kind, text in texts.items():
        heard = samples.each(OURS, "events", "cpu", events=kind)
        ratio = values(paired(lambda a, b: a / b, heard, silent))
        per_iteration = [paired(lambda s: s * 1e4, column) for column in (heard, silent)]
        detail = against(*per_iteration, "µs per iteration")
        yield Figure(f"events_{kind}", text, ratio, 1.5, checked=False, detail=detail)


def _w2(samples: Samples) -> Iterable[Figure]:
    def cpu(adapter: str, n: int, size: int, stream: bool = False, pieces: int = 0) -> dict[int, float]:
        """ms for each request."""
        seconds = samples.each(adapter, "w2", "cpu", n=n, result_size=size, stream=stream, pieces=pieces)
        return paired(lambda cpu: cpu * 1e3 / (n + 1), seconds)

    for size, label, target in ((SMALL, "20 B", 1.6), (LARGE, "10 kB", 1.5)):
        for n in (10, 50, 200):
            ours, floor = cpu(OURS, n, size), cpu(HTTP_FLOOR, n, size)
            yield Figure(
                f"w2_{n}_{size}",
                f"w2 over HTTP, n={n}, {label}: CPU, times {HTTP_FLOOR}",
                values(paired(lambda a, b: a / b, ours, floor)),
                target,
                detail=against(ours, floor, "ms per request"),
            )
    streamed, whole = cpu(OURS, 50, SMALL, True, 20), cpu(OURS, 50, SMALL)
    yield Figure(
        "w2_streamed",
        "w2 over HTTP, n=50, 20 B: replies in 20 chunks, over our own not streaming",
        values(paired(lambda a, b: a / b, streamed, whole)),
        2.0,
        detail=against(streamed, whole, "ms per request"),
    )


def _w3http(samples: Samples) -> Iterable[Figure]:
    def cpu(adapter: str) -> dict[int, float]:
        """ms for each turn."""
        seconds, turns = samples.each(adapter, "w3http", "cpu"), samples.each(adapter, "w3http", "turns")
        return paired(lambda cpu, turns: cpu * 1e3 / turns, seconds, turns)

    ours, floor = cpu(OURS), cpu(HTTP_FLOOR)
    ratio = values(paired(lambda a, b: a / b, ours, floor))
    text = f"200 turns at once over HTTP: CPU, times {HTTP_FLOOR}"
    yield Figure("w3http_cpu", text, ratio, 2.0, detail=against(ours, floor, "ms per turn"))


def _reaction(samples: Samples) -> Iterable[Figure]:
    texts = {
        "tool": "cancel of the task while a tool runs: until control is back",
        "tools": "the same while 8 tools run",
        "cooperative": "turn.cancel() while a tool runs",
        "request": "cancel of the task while a request over HTTP waits",
        "stream": "the same while its reply streams",
    }
    for kind, text in texts.items():
        yield Figure(f"reaction_{kind}", text, _milliseconds(samples, "reaction", kind), 10, " ms")
    text = "sentences, spoken: the latest after the character that proves it"
    yield Figure("reaction_sentence", text, _milliseconds(samples, "reaction", "sentence_worst"), 5, " ms")
    ratio = samples.each(OURS, "reaction", "ratio", kind="beside")
    one, eight = (samples.each(OURS, "reaction", key, kind="beside") for key in ("one", "eight"))
    milliseconds = [paired(lambda s: s * 1e3, column) for column in (eight, one)]
    detail = against(*milliseconds, "ms")
    yield Figure(
        "reaction_beside", "8 calls of 50 ms beside each other, over one call", values(ratio), 1.3, detail=detail
    )


def _reaction_local(samples: Samples) -> Iterable[Figure]:
    text = "cancel while the embedded model replies: until control is back"
    yield Figure("reaction_generation", text, _milliseconds(samples, "reaction_local", "generation"), 10, " ms")
    tokens = samples.each(OURS, "reaction_local", "tokens_after", kind="generation_worst")
    yield Figure("reaction_tokens", "the same: tokens that were still made, at most", values(tokens), 2, "")


def _milliseconds(samples: Samples, load: str, kind: str) -> list[float]:
    return [seconds * 1e3 for seconds in samples.each(OURS, load, "seconds", kind=kind).values()]


def values(rounds: dict[int, float]) -> list[float]:
    return list(rounds.values())


def against(ours: dict[int, float], floor: dict[int, float], unit: str) -> str:
    if not ours or not floor:
        return ""
    return f"{number(median(ours.values()))} against {number(median(floor.values()))} {unit}".rstrip()


def number(value: float) -> str:
    """At most three figures and two decimals, which is more than such a sample is good for."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:.0f}"
    return f"{value:.{max(0, min(2, 2 - math.floor(math.log10(abs(value)))))}f}"
