"""The process of an adapter: what it tells, and what becomes of one that hangs or dies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn.conformance.child import Child
from toolturn.conformance.environments import AdapterFile, LabError, find_adapter, known_adapters
from toolturn.conformance.rows import ran
from toolturn.conformance.trace import Exit

HERE = Path(__file__).parent
PYTHON = Path(sys.executable)


def task(model: str) -> dict[str, Any]:
    return {
        "base_url": "http://127.0.0.1:9/v1",
        "model": model,
        "key": "k",
        "stream": False,
        "prompt": "go",
        "max_iterations": 4,
        "max_tool_calls": 16,
        "timeout": 1.0,
    }


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child(find_adapter(str(HERE / "awkward.py")), PYTHON) as started:
        yield started


def test_a_child_tells_its_version_and_what_it_can_be_given(child: Child) -> None:
    assert child.version == pytest.__version__
    assert child.can == ("max_tool_calls",)


def test_runs_and_the_answer_come_back(child: Child) -> None:
    assert child.play(task("hello"), 30) == (Exit("answer", "hello"), [ran("ping")])


def test_no_answer_counts_as_an_empty_one(child: Child) -> None:
    assert child.play(task("none"), 30)[0] == Exit("answer", "")


def test_an_exception_comes_back_with_its_class(child: Child) -> None:
    end, _ = child.play(task("fails"), 30)
    assert (end.how, end.error, end.text, end.typed, end.kind) == ("error", "KeyError", "'choices'", False, "other")


def test_the_status_of_an_error_behind_the_error_says_its_kind(child: Child) -> None:
    assert child.play(task("refused"), 30)[0].kind == "authentication"


def test_an_exception_without_text_is_no_trouble(child: Child) -> None:
    assert child.play(task("unprintable"), 30)[0].error == "_Unprintable"


@pytest.mark.parametrize(
    ("model", "how", "text"), [("hangs", "hung", ""), ("dies", "died", "Fatal: out of cheese"), ("exits", "error", "3")]
)
def test_after_a_hang_a_crash_or_an_exit_another_process_takes_over(
    child: Child, model: str, how: str, text: str
) -> None:
    end, runs = child.play(task(model), 1.0 if model == "hangs" else 30)
    assert (end.how, end.text) == (how, text)
    assert runs == [ran("ping")], "what ran before is not lost"
    assert child.play(task("hello"), 30)[0] == Exit("answer", "hello")


def test_a_turn_is_cancelled_as_soon_as_somebody_says_so_and_what_was_kept_comes_back(child: Child) -> None:
    asked = iter([False, False, True])
    end, runs = child.play(task("stopped"), 30, cancel=lambda: next(asked))
    assert (end.how, end.saved, runs) == ("cancelled", "what was kept", [ran("ping")])
    assert end.took < 1


def test_a_turn_is_cancelled_by_the_tool_that_is_named(child: Child) -> None:
    end, _ = child.play({**task("stopped"), "cancel_at": "ping"}, 30)
    assert (end.how, end.saved) == ("cancelled", "what was kept")


def test_an_adapter_that_swallows_a_cancel_gives_its_answer(child: Child) -> None:
    assert child.play({**task("deaf"), "cancel_at": "ping"}, 30)[0] == Exit("answer", "deaf")


def test_calls_that_wait_come_back_and_decisions_go_there(child: Child) -> None:
    end, _ = child.play(task("waits"), 30)
    assert (end.how, end.saved) == ("waits", "a state")
    assert [each["name"] for each in end.pending] == ["ping"]
    child.renew()
    decided = {**task("goes on"), "saved": end.saved, "decisions": [{"id": "c1", "approved": True}]}
    assert child.play(decided, 30)[0].text == "a state: [{'id': 'c1', 'approved': True}]"


def test_what_is_told_of_a_turn_is_kept_in_order(child: Child) -> None:
    seen: list[tuple[str, ...]] = []
    child.play(task("tells"), 30, seen=seen)
    assert seen == [("call", "ping"), ("text", "pong")]


def test_what_a_tool_does_after_its_turn_is_not_the_work_of_the_next_turn(child: Child) -> None:
    child.late.clear()
    child.play(task("leaves"), 30)
    assert child.play(task("hello"), 30)[1] == [ran("ping")]
    assert child.late == [ran("blank")]


def test_an_adapter_that_can_not_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("REQUIREMENTS = ()\nimport no_such_module\n")
    with (
        pytest.raises(LabError, match=r"^broken can not be started: .*no_such_module"),
        Child(find_adapter(str(broken)), PYTHON),
    ):
        pass


def test_a_python_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    adapter = AdapterFile("a", tmp_path / "a.py", ())
    with pytest.raises(LabError, match=r"^a can not be started: "), Child(adapter, tmp_path / "python"):
        pass


def test_the_adapters_that_come_with_the_lab_are_found_with_what_they_need() -> None:
    assert {"toolturn", "pydantic_ai", "openai_agents"} <= set(known_adapters())
    assert find_adapter("toolturn").requirements == ()
    assert find_adapter("openai-agents").requirements == ("openai-agents>=0.24",)


@pytest.mark.parametrize("name", ["langchain", "nowhere.py", "__init__", ""])
def test_an_unknown_adapter_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(LabError, match="pydantic_ai"):
        find_adapter(name)


@pytest.mark.parametrize(
    ("source", "says"), [("x = 1", "REQUIREMENTS"), ("REQUIREMENTS = 'a'", "tuple"), ("def", "can not be read")]
)
def test_a_file_that_is_no_adapter_is_refused(tmp_path: Path, source: str, says: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(LabError, match=says):
        find_adapter(str(file))
