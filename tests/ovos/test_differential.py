"""The reference engine and ours play the same random sessions; what differs stands in docs/ovos-differences.md.

``TOOLTURN_OVOS_SESSIONS`` says how many; a session that differs is shown with the number that makes it anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from .differential.comparing import Comparison, Unexplained
from .differential.meaning import meant, refused
from .differential.sessions import session

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ovos-differences.md"
SESSIONS = int(os.environ.get("TOOLTURN_OVOS_SESSIONS", "2000"))
LISTED = set(re.findall(r"^### ([a-z-]+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

pytestmark = [
    pytest.mark.skipif(find_spec("ovos_agentic_loop") is None, reason="the reference engine is not installed"),
    pytest.mark.timeout(60 + SESSIONS * 0.1),
]


@dataclass
class Played:
    """A session with what came of it.

    Args:
        session: The session.
        read: The differences with which it was read before the reference played it.
        reference: What came of it in the reference, as it stands.
        expected: What came of it in the reference, as it is meant.
        ours: What came of it in ours.
    """

    session: dict[str, Any]
    read: set[str]
    reference: dict[str, Any]
    expected: dict[str, Any]
    ours: dict[str, Any]

    def met(self) -> set[str]:
        comparison = Comparison(self.session, self.expected, self.ours)
        comparison.check()
        return comparison.met | self.read


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[Played]:
    folder = tmp_path_factory.mktemp("sessions")
    sessions = [session(seed) for seed in range(SESSIONS)]
    read = [(each, set[str]()) if refused(each) else meant(each) for each in sessions]
    ours = start("toolturn", sessions, folder / "ours")
    theirs = start("reference", sessions + [each for each, _ in read], folder / "theirs")
    came, reference = finish(ours, folder / "ours"), finish(theirs, folder / "theirs")
    rows = zip(sessions, read, reference[:SESSIONS], reference[SESSIONS:], came, strict=True)
    return [Played(each, names, there, expected, here) for each, (_, names), there, expected, here in rows]


def start(engine: str, sessions: list[Any], path: Path) -> subprocess.Popen[str]:
    path.with_suffix(".in").write_text("".join(json.dumps(each) + "\n" for each in sessions), encoding="utf-8")
    worker = [sys.executable, "-m", "tests.ovos.differential.play", engine]
    files = [str(path.with_suffix(".in")), str(path.with_suffix(".out"))]
    return subprocess.Popen([*worker, *files], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(worker: subprocess.Popen[str], path: Path) -> list[Any]:
    said, _ = worker.communicate()
    assert worker.returncode == 0, said
    return [json.loads(line) for line in path.with_suffix(".out").read_text(encoding="utf-8").splitlines()]


def test_every_session_comes_to_the_same_but_for_the_listed_differences(played: list[Played]) -> None:
    unexplained: list[str] = []
    for each in played:
        try:
            each.met()
        except Unexplained as problem:
            unexplained.append(f"session {each.session['seed']}: {problem}")
    assert not unexplained, f"{len(unexplained)} of {len(played)}:\n" + "\n".join(unexplained[:10])


def test_every_listed_difference_is_met_and_no_other(
    played: list[Played], record_property: Callable[[str, object], None]
) -> None:
    met = Counter(name for each in played for name in each.met())
    record_property("met", dict(met.most_common()))
    assert set(met) <= LISTED
    if SESSIONS >= 2000:
        assert set(met) == LISTED, met


def test_a_session_that_is_read_in_another_way_is_one_with_which_the_reference_does_otherwise(
    played: list[Played],
) -> None:
    alone = [each for each in played if len(each.read) == 1]
    idle: set[str] = {name for each in alone for name in each.read}
    for each in alone:
        if differs(each.session, each.reference, each.ours):
            idle -= each.read
    assert not idle


def differs(asked: Any, theirs: Any, ours: Any) -> bool:
    try:
        Comparison(asked, theirs, ours).check()
    except Unexplained:
        return True
    return False


def test_the_comparison_sees_whatever_is_changed_in_an_outcome(played: list[Played]) -> None:
    rng = Random(5)
    seen: Counter[str] = Counter()
    for each in played[:1000]:
        if refused(each.session) or not each.ours["asked"]:
            continue
        for name, change in CHANGES.items():
            changed = deepcopy(each.ours)
            if change(changed, rng):
                seen[name] += 1
                assert differs(each.session, each.expected, changed), (name, each.session["seed"])
    assert set(seen) == set(CHANGES)


def _one_run_less(outcome: Any, rng: Random) -> bool:
    return bool(outcome["ran"]) and outcome["ran"].pop(rng.randrange(len(outcome["ran"]))) is not None


def _other_arguments(outcome: Any, rng: Random) -> bool:
    runs = [run for run in outcome["ran"] if run["arguments"]]
    if runs:
        rng.choice(runs)["arguments"] = {}
    return bool(runs)


def _one_request_more(outcome: Any, rng: Random) -> bool:
    outcome["asked"].append(deepcopy(outcome["asked"][-1]))
    return True


def _other_session(outcome: Any, rng: Random) -> bool:
    rng.choice(outcome["asked"])["known"]["session_id"] = "another"
    return True


def _tools_withheld(outcome: Any, rng: Random) -> bool:
    request = rng.choice(outcome["asked"])
    if not request["tools"]:
        return False
    request["tools"] = None
    return True


def _results_exchanged(outcome: Any, rng: Random) -> bool:
    messages = outcome["asked"][-1]["messages"]
    for place, (one, next_one) in enumerate(pairwise(messages)):
        if one["role"] == next_one["role"] == "tool":
            messages[place : place + 2] = next_one, one
            return True
    return False


def _result_lost(outcome: Any, rng: Random) -> bool:
    messages = outcome["asked"][-1]["messages"]
    found = [message for message in messages if message["role"] == "tool"]
    if found:
        messages.remove(rng.choice(found))
    return bool(found)


def _other_id(outcome: Any, rng: Random) -> bool:
    found = [message for message in outcome["asked"][-1]["messages"] if message["role"] == "tool"]
    if found:
        rng.choice(found)["tool_call_id"] = "another"
    return bool(found)


def _other_result(outcome: Any, rng: Random) -> bool:
    found = [message for message in outcome["asked"][-1]["messages"] if message["role"] == "tool"]
    if found:
        rng.choice(found)["content"] = '{"text":"another"}'
    return bool(found)


def _other_answer(outcome: Any, rng: Random) -> bool:
    if outcome["answer"] is None:
        return False
    outcome["answer"]["content"] = "something else"
    return True


def _something_said_twice(outcome: Any, rng: Random) -> bool:
    if not outcome["pieces"] or not any(outcome["pieces"]):
        return False
    outcome["pieces"] += outcome["pieces"]
    return True


CHANGES = {
    change.__name__: change
    for change in (
        _one_run_less,
        _other_arguments,
        _one_request_more,
        _other_session,
        _tools_withheld,
        _results_exchanged,
        _result_lost,
        _other_id,
        _other_result,
        _other_answer,
        _something_said_twice,
    )
}
