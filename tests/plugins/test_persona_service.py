"""The persona service of OpenVoiceOS may be too old for our engines, which it does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolturn.ovos.entry_points import outdated

from .packages import metadata


@pytest.mark.parametrize("version", ["0.6.24", "0.7.1", "0.7.5a2"])
def test_a_persona_service_that_knows_no_chat_engines_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    metadata(tmp_path, "ovos-persona", "", version)
    monkeypatch.syspath_prepend(str(tmp_path))
    (told,) = outdated()
    assert told.startswith(f"ovos-persona {version} does not ask engines such as toolturn's; 0.8 and later do: pip ")


@pytest.mark.parametrize("version", ["0.8.0a1", "0.9.0a35", "0.10.0", "1.0"])
def test_one_that_asks_them_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    metadata(tmp_path, "ovos-persona", "", version)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert outdated() == []


def test_where_there_is_none_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert outdated() == []
