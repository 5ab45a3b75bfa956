"""toolturn passes the rows of the lab, and a turn is the same whole, streamed, and streamed a few bytes at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from toolturn.conformance.child import Child
from toolturn.conformance.environments import find_adapter
from toolturn.conformance.faults import ROWS
from toolturn.conformance.judge import Verdict, judge
from toolturn.conformance.rows import Fault
from toolturn.conformance.run import play
from toolturn.conformance.server import LabServer
from toolturn.conformance.trace import Trace

# but for what is slow by its nature: waits that a server asks for, and silence
_ROWS = [row for row in ROWS if not row.waits and "timeout" not in row.needs]

# whether a client has noticed the close by the time it sends is a matter of microseconds: two ends are right
_RACES = {"http_closes_after_reply", "budget_deadline_slow_replies"}
_DIFFERS = {"budget_repeats_with_change"}  # each result is another one
_BOTH = [row for row in _ROWS if len(row.modes) == 2 and row.name not in _RACES | _DIFFERS]


class Player:
    """One client with two servers: one that writes replies as they come, one that writes three bytes at a time."""

    def __init__(self, child: Child, whole: LabServer, split: LabServer) -> None:
        self._child = child
        self._servers = {"plain": whole, "stream": whole, "split": split}
        self._played: dict[tuple[str, str], tuple[Verdict, dict[str, Any]]] = {}

    def play(self, row: Fault, how: str) -> tuple[Verdict, dict[str, Any]]:
        """What the judge says, and what has to be the same in each way of replying."""
        if (row.name, how) not in self._played:
            self._played[row.name, how] = self._play(row, how)
        return self._played[row.name, how]

    def _play(self, row: Fault, how: str) -> tuple[Verdict, dict[str, Any]]:
        left = play(self._child, row, self._servers[how], how, how != "plain")
        return judge(row, left), {"turn": _compared(left), "acts": [_compared(act) for act in left.acts]}


def _compared(left: Trace) -> dict[str, Any]:
    end = left.exit
    return {
        "ends": (end.how, end.text if end.how == "answer" else end.error, end.kind, end.results),
        "runs": [str(run) for run in left.runs],
        "messages": [_comparable(request.messages) for request in left.requests],
    }


def _comparable(messages: list[Any]) -> list[Any]:
    """The messages with numbers for ids, since one that was made up differs each time, and arguments as objects."""
    ids: dict[str, int] = {}
    copy: list[Any] = json.loads(json.dumps(messages))
    for message in copy:
        for call in message.get("tool_calls") or ():
            call["id"] = ids.setdefault(call["id"], len(ids))
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        if "tool_call_id" in message:
            message["tool_call_id"] = ids.get(message["tool_call_id"])
    return copy


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with ExitStack() as stack:
        child = stack.enter_context(Child(find_adapter("toolturn"), Path(sys.executable)))
        whole = stack.enter_context(LabServer(_ROWS))
        yield Player(child, whole, stack.enter_context(LabServer(_ROWS, split=3)))


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row.name)
def test_toolturn_passes_each_row(player: Player, row: Fault) -> None:
    for mode in row.modes:
        verdict, _ = player.play(row, mode)
        assert verdict.passed, f"{mode}: {verdict.why}"


@pytest.mark.parametrize("row", _BOTH, ids=lambda row: row.name)
def test_a_streamed_turn_is_the_same_as_a_plain_one(player: Player, row: Fault) -> None:
    assert player.play(row, "stream")[1] == player.play(row, "plain")[1]


@pytest.mark.parametrize("row", [row for row in _ROWS if row.modes == ("stream",)], ids=lambda row: row.name)
def test_a_stream_in_pieces_of_three_bytes_is_the_same_stream(player: Player, row: Fault) -> None:
    assert player.play(row, "split")[1] == player.play(row, "stream")[1]
