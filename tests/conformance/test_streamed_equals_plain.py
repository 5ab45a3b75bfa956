"""A turn is the same whether its replies come whole, streamed, or streamed a few bytes at a time."""

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
from toolturn.conformance.faults import GROUPS
from toolturn.conformance.rows import Fault
from toolturn.conformance.run import PROMPT
from toolturn.conformance.server import LabServer

_GROUPS = {name: rows for name, rows in GROUPS.items() if name != "http"}
_ROWS = [row for rows in _GROUPS.values() for row in rows if "timeout" not in row.needs]


class Player:
    """One client with two servers: one that writes replies as they come, one that writes three bytes at a time."""

    def __init__(self, child: Child, whole: LabServer, split: LabServer) -> None:
        self._child = child
        self._servers = {"plain": whole, "streamed": whole, "split": split}

    def play(self, row: Fault, how: str) -> dict[str, Any]:
        server = self._servers[how]
        task = {
            "base_url": server.base_url,
            "model": row.name,
            "key": how,
            "stream": how != "plain",
            "prompt": PROMPT,
            "max_iterations": row.max_iterations,
            "max_tool_calls": row.max_tool_calls,
            "timeout": row.timeout,
        }
        end, runs = self._child.play(task, 30)
        return {
            "ends": (end.how, end.text if end.how == "answer" else end.error, end.kind, end.results),
            "runs": [str(run) for run in runs],
            "messages": [_without_ids(request.messages) for request in server.received(row.name, how)],
        }


def _without_ids(messages: list[Any]) -> list[Any]:
    """The messages with numbers for ids, since an id that was made up is another one each time."""
    ids: dict[str, int] = {}
    copy: list[Any] = json.loads(json.dumps(messages))
    for message in copy:
        for call in message.get("tool_calls") or ():
            call["id"] = ids.setdefault(call["id"], len(ids))
        if "tool_call_id" in message:
            message["tool_call_id"] = ids.get(message["tool_call_id"])
    return copy


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with ExitStack() as stack:
        child = stack.enter_context(Child(find_adapter("toolturn"), Path(sys.executable)))
        whole = stack.enter_context(LabServer(_ROWS))
        yield Player(child, whole, stack.enter_context(LabServer(_ROWS, split=3)))


@pytest.mark.parametrize("row", [row for row in _ROWS if len(row.modes) == 2], ids=lambda row: row.name)
def test_streamed_is_plain(player: Player, row: Fault) -> None:
    assert player.play(row, "streamed") == player.play(row, "plain")


@pytest.mark.parametrize("row", [row for row in _ROWS if row.modes == ("stream",)], ids=lambda row: row.name)
def test_a_stream_in_pieces_of_three_bytes_is_the_same_stream(player: Player, row: Fault) -> None:
    assert player.play(row, "split") == player.play(row, "streamed")
