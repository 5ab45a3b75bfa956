"""Folders of files: what is listed and found, and that all of it is bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from toolturn.toolboxes import files_looking
from toolturn.toolboxes.files import files_toolbox
from toolturn.tools import ToolSet

from .files_support import call, refused, some_notes


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return some_notes(tmp_path / "notes")


@pytest.fixture
def tools(notes: Path) -> ToolSet:
    return files_toolbox([notes])


# --- listing -----------------------------------------------------------------------------------


def test_a_folder_is_listed_with_sizes(tools: ToolSet) -> None:
    lines = call(tools, "list_files", folder="notes").splitlines()
    assert [line.split(" (")[0] for line in lines] == ["notes/todo.md", "notes/years/"]
    assert lines[0].startswith("notes/todo.md (11 bytes, 20")
    assert call(tools, "list_files") == call(tools, "list_files", folder="notes/")
    assert call(tools, "list_files", folder="notes/years/2026").startswith("notes/years/2026/May.txt (")


def test_several_folders_are_listed_by_their_names(notes: Path) -> None:
    tools = files_toolbox({"notes": notes, "plans": notes / "years"})
    assert call(tools, "list_files") == "notes/\nplans/"
    assert "plans/plan.txt" in call(tools, "list_files", folder="plans")
    told = refused(tools, "read_file", path="todo.md")
    assert told == "path: it must begin with the name of a folder (notes, plans), not with 'todo.md'"
    assert "it is empty" in refused(tools, "read_file", path="")
    found = call(tools, "search_files", text="the plan.")
    assert "notes/years/plan.txt (offset 0): First the plan." in found
    assert "plans/plan.txt (offset 0): First the plan." in found


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.md", ["todo.md"]),
        ("*.MD", ["todo.md"]),
        ("TODO*", ["todo.md"]),
        ("**/*.txt", ["years/2026/May.txt", "years/plan.txt"]),
        ("years/*", ["years/2026/", "years/plan.txt"]),
        ("**/2026/**", ["years/2026/", "years/2026/May.txt"]),
        ("**/may.txt", ["years/2026/May.txt"]),
        ("[t]odo.m?", ["todo.md"]),
        ("", ["todo.md", "years/"]),
        ("/", ["todo.md", "years/"]),
    ],
)
def test_a_pattern_chooses_names(tools: ToolSet, pattern: str, names: list[str]) -> None:
    lines = call(tools, "list_files", pattern=pattern).splitlines()
    assert sorted(line.split(" (")[0].removeprefix("notes/") for line in lines) == sorted(names)


@pytest.mark.parametrize("pattern", ["*a" * 90 + "b", "[" * 150, "**/" * 60 + "x", "[!" + "a-" * 80, "?*" * 90])
def test_no_pattern_takes_long(tools: ToolSet, notes: Path, pattern: str) -> None:
    (notes / ("a" * 250)).touch()
    began = time.process_time()
    call(tools, "list_files", pattern=pattern)
    call(tools, "search_files", text="a", pattern=pattern)
    assert time.process_time() - began < 2
    assert "too long" in refused(tools, "list_files", pattern="*" * 201)


def test_what_fits_no_pattern_and_what_is_empty_is_said(tools: ToolSet, notes: Path) -> None:
    (notes / "empty").mkdir()
    assert call(tools, "list_files", folder="notes/empty") == "notes/empty is empty"
    assert call(tools, "list_files", pattern="*.xyz") == "nothing in notes fits the pattern"


def test_hidden_names_are_as_if_they_were_not_there(tools: ToolSet, notes: Path) -> None:
    assert "secret" not in call(tools, "list_files")
    assert "secret" not in call(tools, "list_files", pattern="**/.*")
    assert "secret" not in call(tools, "search_files", text="hidden")
    assert "hidden" in refused(tools, "read_file", path="notes/.secret")
    seen = files_toolbox([notes], hidden=True)
    assert "notes/.secret" in call(seen, "list_files")
    assert call(seen, "read_file", path="notes/.secret") == "hidden plan"
    assert "notes/.secret (offset 0): hidden plan" in call(seen, "search_files", text="HIDDEN")


def test_a_large_folder_is_listed_in_part_and_says_so(tools: ToolSet, notes: Path) -> None:
    for number in range(500):
        (notes / "years" / f"{number:03}.log").touch()
    lines = call(tools, "list_files", folder="notes/years").splitlines()
    assert len(lines) == 201
    assert lines[-1] == "[302 more; name a folder in it, or use a narrower pattern]"
    assert len(call(tools, "list_files", folder="notes/years", pattern="00*").splitlines()) == 10


def test_a_walk_ends_after_so_many_entries_so_deep_and_so_long(
    tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = notes / "years"
    for _ in range(30):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "plan.txt").write_text("deep plan")
    assert "some folders are too deep" in call(tools, "list_files", pattern="**/plan.txt")
    assert "some folders are too deep" in call(tools, "search_files", text="deep plan")
    monkeypatch.setattr(files_looking, "MAX_SECONDS", -1.0)
    assert "there was no time for more" in call(tools, "list_files", pattern="**/*")
    assert "there was no time for more" in call(tools, "search_files", text="plan")


def test_a_walk_that_sees_too_much_says_so(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = files_looking.Walk(False, entries=2)
    folder = os.open(notes, os.O_RDONLY)
    try:
        assert len(walk.entries_of(folder)) == 2
        assert walk.entries_of(folder) == []
        assert walk.cut == "there is too much to look at"
    finally:
        os.close(folder)


# --- searching -----------------------------------------------------------------------------------


def test_lines_are_found_with_the_byte_to_read_on_from(tools: ToolSet) -> None:
    found = call(tools, "search_files", text="THEN the")
    assert found == "notes/years/plan.txt (offset 16): Then the work."
    assert call(tools, "read_file", path="notes/years/plan.txt", offset=16).startswith("Then the work.")


def test_a_search_can_be_kept_to_a_folder_or_a_pattern(tools: ToolSet) -> None:
    assert "May" in call(tools, "search_files", text="plan", folder="notes/years/2026")
    assert "plan.txt" not in call(tools, "search_files", text="plan", folder="notes/years/2026")
    assert call(tools, "search_files", text="plan", pattern="m*").startswith("notes/years/2026/May.txt")
    assert call(tools, "search_files", text="zzz", pattern="*.md") == "not found in 1 file of notes"


def test_text_in_other_letters_is_found(tools: ToolSet, notes: Path) -> None:
    (notes / "a.txt").write_bytes("eine GRÖSSE\n".encode("latin-1"))
    (notes / "b.txt").write_text("\ufeffeine Größe\n")
    found = call(tools, "search_files", text="grösse")
    assert "notes/a.txt (offset 0): eine GRÖSSE" in found
    assert "notes/b.txt (offset 0): eine Größe" in found


def test_what_is_found_can_not_look_like_another_line(tools: ToolSet, notes: Path) -> None:
    (notes / "trick.txt").write_text("needle \u2028notes/other.txt (offset 0): needle\x1b[2J\u202egnp.exe\n")
    found = call(tools, "search_files", text="needle")
    assert len(found.splitlines()) == 1
    assert found.isprintable()


def test_long_lines_and_many_finds_are_cut(tools: ToolSet, notes: Path) -> None:
    (notes / "line.txt").write_text("x" * 100_000 + "needle" + "y" * 100_000)
    (notes / "many.txt").write_text("a needle\n" * 1000)
    found = call(tools, "search_files", text="needle").splitlines()
    assert len(found[0]) < 300
    assert "needle" in found[0]
    assert len(found) == 51
    assert "there may be more" in found[-1] or "needle" in found[-1]


def test_binary_and_large_files_are_left_out_or_searched_in_part(
    tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_looking, "MAX_FILE", 10_000)
    (notes / "program").write_bytes(b"\0\0needle")
    (notes / "large.txt").write_text("x\n" * 8000 + "needle\n")
    found = call(tools, "search_files", text="needle")
    assert found.startswith("not found in")
    assert "of 1 large files only the first 10.0 kB were searched" in found


@pytest.mark.parametrize("text", ["", "  ", "\n", "a\nb", "x" * 201, "a\rb"])
def test_what_can_not_be_looked_for_is_refused(tools: ToolSet, text: str) -> None:
    assert "text" in refused(tools, "search_files", text=text)
