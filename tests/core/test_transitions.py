"""The published transition table is what the machine does, and leaves nothing out."""

from __future__ import annotations

from typing import get_args

from toolturn.turn import rules
from toolturn.turn.state import Phase

from .parts import error_of
from .transitions import COMMAND, HEAD, PAGE, SECTIONS, columns, page


def test_the_published_table_is_what_the_machine_does() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), f"docs/transitions.md is not current; write it anew with: {COMMAND}"


def test_the_page_says_how_it_is_written() -> None:
    assert COMMAND in HEAD


def test_every_phase_has_a_section() -> None:
    assert tuple(SECTIONS) == get_args(Phase)


def test_every_refusal_has_a_line() -> None:
    refusals = {value.text for value in vars(rules).values() if isinstance(value, rules.Refusal)}
    reached = set()
    for _, rows in SECTIONS.values():
        for row in rows():
            turn = row.before()
            if turn.phase != "model":
                continue
            try:
                row.happens(turn)
            except ValueError:
                continue
            if turn.exit is not None and columns(row)[3].startswith("`"):
                reached.add(str(error_of(turn)))
    assert refusals <= reached


def test_no_line_stands_twice() -> None:
    for _, rows in SECTIONS.values():
        events = [row.event for row in rows()]
        assert len(set(events)) == len(events)
