"""The rows of the lab, a module for each kind of fault.

A row is added to the table of its module: a name, a sentence about what goes wrong, the replies, and the ways in which
a turn may end. Write the ways before trying any library, and ask of each sound library whether one of them is open to
it. The words are those of :mod:`toolturn.conformance.rows`.
"""

from __future__ import annotations

from typing import Final

from ..rows import Fault
from . import (
    after,
    approvals,
    arguments,
    broken,
    budgets,
    cancels,
    content,
    controls,
    finish,
    http,
    ids,
    last,
    leaks,
    limits,
    names,
    pieces,
    streams,
    told,
    tools,
)

GROUPS: Final[dict[str, tuple[Fault, ...]]] = {
    "controls": controls.ROWS,
    "arguments": arguments.ROWS,
    "ids": ids.ROWS,
    "finish": finish.ROWS,
    "names": names.ROWS,
    "content": content.ROWS,
    "leaks": leaks.ROWS,
    "pieces": pieces.ROWS,
    "streams": streams.ROWS,
    "broken": broken.ROWS,
    "http": http.ROWS,
    "limits": limits.ROWS,
    "tools": tools.ROWS,
    "budgets": budgets.ROWS,
    "last": last.ROWS,
    "cancels": cancels.ROWS,
    "approvals": approvals.ROWS,
    "after": after.ROWS,
    "told": told.ROWS,
}
"""The rows by kind."""

ROWS: Final[tuple[Fault, ...]] = tuple(row for group in GROUPS.values() for row in group)
"""Every row, in the order of the table."""
