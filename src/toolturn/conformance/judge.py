"""One run of a row against its criterion: a pure function."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .rows import Answer, Failure, Fault, Run, Way
from .server import Received


@dataclass(frozen=True, slots=True)
class Exit:
    """How a turn ended, as its adapter tells it.

    Args:
        how: ``answer``, ``error``, ``hung`` (killed after a bound) or ``died`` (the process ended).
        text: The answer, or the text of the error.
        error: The name of the error's class.
        typed: Whether the class is one of the library's own.
        kind: What a caller can tell from the error.
        results: The results of tools in the transcript that came with the exit; None where none came.
    """

    how: Literal["answer", "error", "hung", "died"]
    text: str = ""
    error: str = ""
    typed: bool = False
    kind: str = "other"
    results: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """All that one run of a row left.

    Args:
        exit: How the turn ended.
        runs: The tools that ran, in order.
        requests: What the server received.
    """

    exit: Exit
    runs: Sequence[Run]
    requests: Sequence[Received]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says.

    Args:
        passed: Whether the criterion holds.
        why: What does not, in a phrase; how the turn ended where all holds.
    """

    passed: bool
    why: str


def judge(row: Fault, trace: Trace) -> Verdict:
    """Return whether a run of a row keeps its criterion.

    Args:
        row: The row.
        trace: What the run left.
    """
    wrong = min((_against(way, trace) for way in row.ways), key=len)
    wrong += _requests(row, trace.requests)
    if wrong:
        return Verdict(False, "; ".join(wrong))
    end = trace.exit
    return Verdict(True, f"answered {_short(end.text)}" if end.how == "answer" else f"raised {end.error}")


def _against(way: Way, trace: Trace) -> list[str]:
    """What of a trace does not fit to a way."""
    wrong = []
    wanted, happened = Counter(run.key for run in way.runs), Counter(run.key for run in trace.runs)
    said: set[str] = set()
    for run in trace.runs:
        if happened[run.key] > wanted[run.key] and run.key not in said:
            said.add(run.key)
            times = f" {happened[run.key]} times" if wanted[run.key] else ", which must not run"
            wrong.append(f"ran {run}{times}")
    for run in way.runs:
        if happened[run.key] < wanted[run.key] and run.key not in said:
            said.add(run.key)
            wrong.append(f"did not run {run}")
    return wrong + _exit(way, trace.exit)


def _exit(way: Way, end: Exit) -> list[str]:
    if end.how == "hung":
        return ["hung until it was killed"]
    if end.how == "died":
        return [f"the process ended: {_short(end.text)}"]
    if end.how == "error" and not end.typed:
        return [f"raised a bare {end.error}: {_short(end.text)}"]
    wanted = way.ends
    if isinstance(wanted, Answer):
        if end.how == "error":
            return [f"raised {end.error}: {_short(end.text)}"]
        return [] if end.text.strip() == wanted.text.strip() else [f"answered {_short(end.text)}"]
    if end.how == "answer":
        return [f"answered {_short(end.text)}"]
    return _error(wanted, end, len(way.runs))


def _error(wanted: Failure, end: Exit, runs: int) -> list[str]:
    wrong = []
    if wanted.kind is not None and end.kind != wanted.kind:
        wrong.append(f"{end.error} can not be told to be of the kind {wanted.kind}")
    if wanted.says and wanted.says not in end.text:
        wrong.append(f"{end.error} hides the server's words: {_short(end.text)}")
    if wanted.transcript and (end.results is None or end.results < runs):
        wrong.append(f"{end.error} came without the transcript")
    return wrong


def _requests(row: Fault, requests: Sequence[Received]) -> list[str]:
    wrong = []
    if not requests:
        wrong.append("sent no request")
    if len(requests) > row.requests:
        wrong.append(f"sent {len(requests)} requests where {row.requests} are allowed")
    for number, request in enumerate(requests, 1):
        if request.faults:
            wrong.append(f"request {number} is invalid: {request.faults[0]}")
            break
    texts = [json.dumps(request.body, ensure_ascii=False) for request in requests] if row.hides else []
    wrong += [f"sent {secret!r} to the model" for secret in row.hides if any(secret in text for text in texts)]
    if len(requests) > 1:
        wrong += _second(row, requests[0], requests[1])
    return wrong


def _second(row: Fault, first: Received, second: Received) -> list[str]:
    wrong = []
    if second.at - first.at < row.waits - 0.05:
        wrong.append(f"asked again after {second.at - first.at:.1f} s")
    added = second.messages[len(first.messages) :]
    if row.told and not added:
        wrong.append("sent the same request again instead of saying what was wrong")
    told = json.dumps([m for m in added if m.get("role") != "assistant"], ensure_ascii=False)
    missing = [text for text in row.tells if text not in told]
    if added and missing:
        wrong.append(f"did not tell the model about {' and '.join(map(repr, missing))}")
    return wrong


def _short(text: str) -> str:
    text = repr(text)
    return text if len(text) <= 72 else f"{text[:68]}…{text[-1]}"
