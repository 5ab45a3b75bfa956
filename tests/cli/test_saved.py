"""Turns in files."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from toolturn import ChatMessage, Turn
from toolturn.cli import saved

KEPT = saved.SavedTurn(
    "", "local", ("math",), "why", ("python -m server",), "/a/persona.json", ("notes=/a/notes",), ("/b",)
)


def stopped() -> Turn:
    turn = Turn("t")
    turn.begin([ChatMessage("user", "héllo \ud800")], (), {})
    turn.cancel("stopped")
    return turn


def test_a_saved_turn_is_read_back_equal(tmp_path: Path) -> None:
    turn = stopped()
    path = saved.save(turn, KEPT, tmp_path / "turn.json")
    kept = saved.load(path.read_text())
    assert Turn.from_json(kept.state) == turn
    assert replace(kept, state="") == KEPT


def test_a_turn_that_an_older_version_saved_is_read(tmp_path: Path) -> None:
    path = saved.save(stopped(), KEPT, tmp_path / "turn.json")
    document = json.loads(path.read_text())
    for name in ("mcp", "persona", "files", "write_files"):
        del document[name]
    assert replace(saved.load(json.dumps(document)), state="") == saved.SavedTurn("", "local", ("math",), "why")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *product(("tools", "mcp", "files", "write_files"), ([5], "x", None, {"a": 1})),
        *product(("persona", "why"), (5, None, ["x"])),
        *product(("schema", "model"), (5, ["x"])),
        ("schema", "x"),
    ],
)
def test_a_value_of_the_wrong_kind_is_damage(tmp_path: Path, name: str, value: object) -> None:
    path = saved.save(stopped(), KEPT, tmp_path / "turn.json")
    document = json.loads(path.read_text()) | {name: value}
    with pytest.raises(ValueError, match="is damaged"):
        saved.load(json.dumps(document))


def test_only_the_owner_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLTURN_STATE", str(tmp_path / "new"))
    path = saved.save(stopped(), KEPT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_was_open_to_all_is_closed_when_it_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "turn.json"
    path.write_text("old")
    path.chmod(0o644)
    saved.save(stopped(), KEPT, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_the_state_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLTURN_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert saved.folder() == tmp_path / "toolturn" / "turns"
