"""Thousands of recorded sessions of the published implementation, where they are at hand.

They are looked for in the folder ``TOOLTURN_REFERENCE`` names, or in ``shared/reference`` beside the checkout or any
folder above it. Every name of the contract is taken from :mod:`toolturn.tool_calling` alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from toolturn import tool_calling

SHARDS = 8


def find() -> Path | None:
    """The folder of the sessions, or None."""
    if named := os.environ.get("TOOLTURN_REFERENCE"):
        return Path(named)
    for parent in Path(__file__).resolve().parents:
        folder = parent / "shared" / "reference"
        if (folder / "sessions.jsonl.gz").exists():
            return folder
    return None


REFERENCE = find()
pytestmark = pytest.mark.skipif(REFERENCE is None, reason="the recorded sessions are not here (TOOLTURN_REFERENCE)")


def load(name: str) -> ModuleType:
    """A module of that folder, which may be read only."""
    assert REFERENCE is not None
    spec = importlib.util.spec_from_file_location(f"toolturn_reference_{name}", REFERENCE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@cache
def parts() -> tuple[ModuleType, ModuleType]:
    """What compares, and what runs a session."""
    return load("compare"), load("scripted")


def outcomes(name: str, shard: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Each session of a shard with the recorded outcome and ours."""
    compare, scripted = parts()
    api = SimpleNamespace(**{public: getattr(tool_calling, public) for public in tool_calling.__all__})
    for number, session in enumerate(compare.load(name)):
        if number % SHARDS != shard:
            continue
        want = session.pop("outcome")
        given = {key: value for key, value in session.items() if key != "deliberate"}
        got = compare.shorten(json.loads(json.dumps(scripted.run_with(api, given))))
        yield session, want, got


def told(session: dict[str, Any], found: list[tuple[str, Any, Any]]) -> str:
    title = session.get("title") or session.get("scenario")
    return "\n".join([f"{session['id']} ({title})", *(f"  {at}: want {w!r}, got {g!r}" for at, w, g in found[:3])])


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_recorded_session_has_the_recorded_outcome(shard: int) -> None:
    compare, _ = parts()
    options = argparse.Namespace(strict=False, allow_empty_calls=False)
    different = []
    for session, want, got in outcomes("sessions", shard):
        if found := list(compare.differences(want, got, options)):
            different.append(told(session, found))
    assert different == []


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_session_that_is_changed_on_purpose_comes_out_as_asked(shard: int) -> None:
    compare, _ = parts()
    different = []
    for session, want, got in outcomes("deliberate", shard):
        if found := list(compare.unmet(session, want, got)):
            different.append(told(session, found))
    assert different == []


def test_the_sessions_are_all_there() -> None:
    compare, _ = parts()
    assert sum(1 for _ in compare.load("sessions")) > 4000
    assert sum(1 for _ in compare.load("deliberate")) > 400
