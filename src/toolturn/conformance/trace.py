"""What one run of a row left, for the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .rows import Run
from .server import Received


@dataclass(frozen=True, slots=True)
class Exit:
    """How a turn ended, as its adapter tells it.

    Args:
        how: ``answer``, ``error``, ``waits`` (for approvals), ``cancelled``, ``hung`` (killed after a bound) or
            ``died`` (the process ended).
        text: The answer, or the text of the error.
        error: The name of the error's class.
        typed: Whether the class is one of the library's own.
        kind: What a caller can tell from the error.
        results: The results of tools in the transcript that came with the exit; None where none came.
        took: Seconds until control was back: after the cancel, where there was one, else after the start.
        saved: What was kept, as text; None where nothing was.
        pending: The calls that wait for approval.
    """

    how: Literal["answer", "error", "waits", "cancelled", "hung", "died"]
    text: str = ""
    error: str = ""
    typed: bool = False
    kind: str = "other"
    results: int | None = None
    took: float = field(default=0.0, compare=False)
    saved: str | None = None
    pending: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """All that one run of a row, or of one of its acts, left.

    Args:
        exit: How the turn ended.
        runs: The tools that ran, in order.
        requests: What the server received.
        seen: What was told while the turn ran.
        cancelled: When the lab cancelled it, on the monotonic clock; 0 where a tool did, or nobody.
        acts: What the acts left that were played.
    """

    exit: Exit
    runs: Sequence[Run]
    requests: Sequence[Received]
    seen: Sequence[Sequence[str]] = ()
    cancelled: float = 0.0
    acts: Sequence[Trace] = ()
