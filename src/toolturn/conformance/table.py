"""The results of the lab as text, as markdown, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from .rows import Fault, Mode
from .run import Result

_MODES: Final[tuple[Mode, ...]] = ("plain", "stream")
_WORDS: Final = {"plain": "plain", "stream": "streamed"}


def _mark(result: Result | None) -> str:
    if result is None:
        return " "
    if result.verdict is None:
        return "–"
    return "✓" if result.verdict.passed else "✗"


class _Columns:
    """The results by row, adapter and mode."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._cells = {(item.row, item.adapter, item.mode): item for item in results}
        self.adapters = list(dict.fromkeys((item.adapter, item.version) for item in self._cells.values()))
        self.rows = list(dict.fromkeys(row for row, _, _ in self._cells))

    def cell(self, row: str, adapter: str, mode: Mode) -> Result | None:
        return self._cells.get((row, adapter, mode))

    def summary(self, adapter: str, version: str) -> str:
        mine = [item for (_, name, _), item in self._cells.items() if name == adapter]
        judged = [item.verdict.passed for item in mine if item.verdict is not None]
        rows = {item.row for item in mine if item.verdict is not None}
        failed = {item.row for item in mine if item.verdict is not None and not item.verdict.passed}
        text = f"{adapter} {version}".rstrip()
        text += f": {len(rows) - len(failed)} of {len(rows)} rows passed, {sum(judged)} of {len(judged)} turns"
        missing = len({item.row for item in mine} - rows)
        return text + (f"; not offered (–): {missing} row{'s' * (missing > 1)}" if missing else "")


def as_text(results: Sequence[Result], *, failures_only: bool = False) -> str:
    """Return the results for a terminal: a line per row with a mark per turn, and a line per failure.

    Args:
        results: The results.
        failures_only: Leave out rows that everyone passed.
    """
    table = _Columns(results)
    width = max((len(row) for row in table.rows), default=0)
    names = [name for name, _ in table.adapters]
    widths = [max(len(name), 3) for name in names]
    lines = [" " * width + "  " + "  ".join(name.ljust(size) for name, size in zip(names, widths, strict=True))]
    for row in table.rows:
        cells = {(name, mode): table.cell(row, name, mode) for name in names for mode in _MODES}
        failed = [item for item in cells.values() if item is not None and item.verdict and not item.verdict.passed]
        if failures_only and not failed:
            continue
        marks = [f"{_mark(cells[name, 'plain'])} {_mark(cells[name, 'stream'])}" for name in names]
        lines.append(
            f"{row.ljust(width)}  " + "  ".join(m.ljust(size) for m, size in zip(marks, widths, strict=True)).rstrip()
        )
        for item in failed:
            assert item.verdict is not None
            lines.append(f"    {item.adapter}, {_WORDS[item.mode]}: {item.verdict.why}")
    lines += ["", *(table.summary(*adapter) for adapter in table.adapters)]
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(results: Sequence[Result], rows: Iterable[Fault]) -> str:
    """Return the results as a table of markdown, a column per adapter, with a phrase per failure.

    Args:
        results: The results.
        rows: The rows, for their sentences.
    """
    table = _Columns(results)
    sentences = {row.name: row.says for row in rows}
    head = ["fault", *(f"{name} {version}".rstrip() for name, version in table.adapters)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in table.rows:
        cells = [f"`{row}` {_escaped(sentences.get(row, ''))}".rstrip()]
        cells += [_cell(table, row, name) for name, _ in table.adapters]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"- {table.summary(*adapter)}" for adapter in table.adapters)]
    return "\n".join(lines)


def _cell(table: _Columns, row: str, adapter: str) -> str:
    found = [item for mode in _MODES if (item := table.cell(row, adapter, mode)) is not None]
    judged = [item for item in found if item.verdict is not None]
    if not judged:
        return "–"
    phrases: dict[str, list[str]] = {}
    for item in judged:
        if item.verdict is not None and not item.verdict.passed:
            phrases.setdefault(item.verdict.why, []).append(_WORDS[item.mode])
    if not phrases:
        return "✓"
    whole = len(phrases) == 1 and len(next(iter(phrases.values()))) == len(judged)
    told = (_escaped(why) if whole else f"{' and '.join(modes)}: {_escaped(why)}" for why, modes in phrases.items())
    return "✗ " + "; ".join(told)


def _escaped(text: str) -> str:
    for sign in ("\\", "|", "<", "*", "_", "`"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def as_json(results: Sequence[Result]) -> str:
    """Return the results as a JSON list.

    Args:
        results: The results.
    """
    return json.dumps(
        [
            {
                "row": item.row,
                "adapter": item.adapter,
                "version": item.version,
                "mode": item.mode,
                "passed": None if item.verdict is None else item.verdict.passed,
                "why": "not offered" if item.verdict is None else item.verdict.why,
            }
            for item in results
        ],
        indent=1,
        ensure_ascii=False,
    )
