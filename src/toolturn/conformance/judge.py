"""One run of a row against its criterion: a pure function."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .bounds import further
from .labtools import CLEANUP
from .rows import Act, Answer, Cancelled, Failure, Fault, Refused, Waits, Way
from .server import Received
from .trace import Exit, Trace


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
    wrong += further(row, trace)
    for act, left in zip(row.acts, trace.acts, strict=False):
        wrong += [f"then {text}" for text in _act(act, left)]
    if not wrong and len(trace.acts) < len(row.acts):
        wrong.append("then nothing was kept to go on with")
    if wrong:
        return Verdict(False, "; ".join(wrong))
    end = trace.acts[-1].exit if trace.acts else trace.exit
    ends = {"answer": f"answered {_short(end.text)}", "waits": "waits for approval", "cancelled": "was cancelled"}
    return Verdict(True, ends.get(end.how, f"raised {end.error}"))


def goes_on(row: Fault, trace: Trace, acts: Sequence[Trace]) -> bool:
    """Return whether what was left lets the next act be played.

    Args:
        row: The row.
        trace: What the turn left.
        acts: What the acts left that were played.
    """
    ways, last = (row.acts[len(acts) - 1].ways, acts[-1]) if acts else (row.ways, trace)
    return last.exit.saved is not None and not min((_against(way, last) for way in ways), key=len)


def _act(act: Act, trace: Trace) -> list[str]:
    wrong = min((_against(way, trace) for way in act.ways), key=len)
    wrong += _received(trace.requests, act.requests, none=any(not isinstance(way.ends, Answer) for way in act.ways))
    if trace.requests:
        told = json.dumps(trace.requests[0].messages, ensure_ascii=False)
        lost = [text for text in act.holds if text not in told]
        if lost:
            wrong.append(f"the model is not told {' and '.join(map(repr, lost))}")
        results = [message for message in trace.requests[0].messages if message.get("role") == "tool"]
        told = json.dumps(results, ensure_ascii=False)
        missing = [text for text in act.tells if text not in told]
        if missing:
            wrong.append(f"no call is answered with {' and '.join(map(repr, missing))}")
    return wrong


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
            late = run.name == CLEANUP
            wrong.append("control was back before the tool had cleaned up" if late else f"did not run {run}")
    return wrong + _exit(way, trace.exit)


def _exit(way: Way, end: Exit) -> list[str]:
    if end.how == "hung":
        return ["hung until it was killed"]
    if end.how == "died":
        return [f"the process ended: {_short(end.text)}"]
    wanted = way.ends
    if isinstance(wanted, Refused):
        return [] if end.how == "error" else [_HOW.get(end.how, _answered(end))]
    if end.how == "error" and not end.typed and not (isinstance(wanted, Failure) and wanted.bare):
        return [f"raised a bare {end.error}: {_short(end.text)}"]
    if isinstance(wanted, Cancelled):
        if end.how == "cancelled" or (end.how == "error" and end.kind == "cancelled"):
            return []
        return [f"raised {end.error}: {_short(end.text)}" if end.how == "error" else _HOW.get(end.how, _answered(end))]
    if isinstance(wanted, Waits):
        if end.how != "waits":
            return [
                f"raised {end.error}: {_short(end.text)}" if end.how == "error" else _HOW.get(end.how, _answered(end))
            ]
        names = tuple(str(each.get("name")) for each in end.pending)
        return [] if names == wanted.names else [f"waits for the approval of {' and '.join(names) or 'nothing'}"]
    if end.how in _HOW:
        return [_HOW[end.how]]
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


def _received(requests: Sequence[Received], most: int, *, none: bool = False) -> list[str]:
    wrong = []
    if not requests and not none:
        wrong.append("sent no request")
    if len(requests) > most:
        wrong.append(f"sent {len(requests)} requests where {most} are allowed")
    for number, request in enumerate(requests, 1):
        if request.faults:
            wrong.append(f"request {number} is invalid: {request.faults[0]}")
            break
    return wrong


def _requests(row: Fault, requests: Sequence[Received]) -> list[str]:
    wrong = _received(requests, row.requests)
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


_HOW: Final = {"waits": "waits for an approval", "cancelled": "ended as cancelled"}


def _answered(end: Exit) -> str:
    return f"answered {_short(end.text)}"


def _short(text: str) -> str:
    text = repr(text)
    return text if len(text) <= 72 else f"{text[:68]}…{text[-1]}"
