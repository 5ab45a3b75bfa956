"""Files of named folders: what is written, whole or not at all, and only where that is allowed."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, ChatResponse, ToolCall, run_tool_loop_sync
from toolturn.errors import ToolError, ToolLoopApprovalRequired
from toolturn.toolboxes import files_writing
from toolturn.toolboxes.files import files_from_section, files_from_texts, files_toolbox
from toolturn.toolboxes.files_confined import Folder, Place
from toolturn.tools import ToolSet

from .files_support import call, refused


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "todo.md").write_text("Milk\n")
    return folder


@pytest.fixture
def tools(notes: Path) -> ToolSet:
    return files_toolbox([notes], write=True)


def below(folder: Path) -> dict[str, str]:
    """Every file and folder, hidden ones too, with what is in it."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else "/" for path in sorted(folder.rglob("*"))
    }


# --- what is allowed -----------------------------------------------------------------------------


def test_nothing_is_written_unless_it_is_allowed(notes: Path) -> None:
    assert files_toolbox([notes]).names == ("list_files", "read_file", "search_files")
    assert files_toolbox([notes], write=True).names == ("list_files", "read_file", "search_files", "write_file")


def test_writing_can_be_allowed_in_some_folders(notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    tools = files_toolbox({"notes": notes, "other": other}, write=["other"])
    assert refused(tools, "write_file", path="notes/new.md", content="x") == ("path: files in notes can only be read")
    assert call(tools, "write_file", path="other/new.md", content="x") == "created other/new.md (1 byte)"
    assert "notes, other (read and write)" in tools.definitions[0].description


def test_writing_is_once_and_can_ask_for_approval(notes: Path) -> None:
    tools = files_toolbox([notes], write=True, approval=True)
    assert [tools.traits[name].effect for name in tools.names] == ["none", "none", "none", "once"]
    assert [tools.traits[name].parallel for name in tools.names] == [True, True, True, False]
    replies = [ChatResponse("", tool_calls=[ToolCall("1", "write_file", '{"path": "a.md", "content": "x"}')])]

    async def model(messages: Any, tools: Any) -> ChatResponse:
        return replies.pop()

    with pytest.raises(ToolLoopApprovalRequired):
        run_tool_loop_sync([ChatMessage("user", "write")], tools, model)
    assert below(notes) == {"todo.md": "Milk\n"}


# --- the three modes -----------------------------------------------------------------------------


def test_a_file_is_created_once(tools: ToolSet, notes: Path) -> None:
    assert call(tools, "write_file", path="notes/a/b/new.md", content="Größe\n") == "created notes/a/b/new.md (8 bytes)"
    assert "is there already; use the mode" in refused(tools, "write_file", path="notes/a/b/new.md", content="x")
    assert below(notes) == {"todo.md": "Milk\n", "a": "/", "a/b": "/", "a/b/new.md": "Größe\n"}


def test_a_file_is_overwritten_where_that_is_said(tools: ToolSet, notes: Path) -> None:
    (notes / "todo.md").chmod(0o640)
    before = (notes / "todo.md").stat()
    assert call(tools, "write_file", path="todo.md", content="Bread\n", mode="overwrite") == (
        "overwrote notes/todo.md (6 bytes)"
    )
    assert call(tools, "write_file", path="new.md", content="", mode="overwrite") == "created notes/new.md (0 bytes)"
    assert below(notes) == {"todo.md": "Bread\n", "new.md": ""}
    assert (notes / "todo.md").stat().st_mode == before.st_mode


def test_a_program_that_is_overwritten_no_longer_runs_as_its_owner(tools: ToolSet, notes: Path) -> None:
    (notes / "todo.md").chmod(0o4755)
    call(tools, "write_file", path="todo.md", content="x", mode="overwrite")
    assert stat.S_IMODE((notes / "todo.md").stat().st_mode) == 0o755


def test_text_is_appended_where_that_is_said(tools: ToolSet, notes: Path) -> None:
    assert call(tools, "write_file", path="todo.md", content="Bread\n", mode="append") == (
        "appended 6 bytes to notes/todo.md, which has 11 bytes now"
    )
    assert call(tools, "write_file", path="log.md", content="a", mode="append") == "created notes/log.md (1 byte)"
    assert below(notes) == {"todo.md": "Milk\nBread\n", "log.md": "a"}


def test_bytes_that_are_no_utf8_stay_as_they_are_when_something_is_appended(tools: ToolSet, notes: Path) -> None:
    (notes / "old.txt").write_bytes(b"\xe4\xff\n")
    call(tools, "write_file", path="old.txt", content="ä", mode="append")
    assert (notes / "old.txt").read_bytes() == b"\xe4\xff\n\xc3\xa4"


@pytest.mark.parametrize("mode", ["delete", "w", "", None, 5])
def test_there_are_no_other_modes(tools: ToolSet, notes: Path, mode: Any) -> None:
    assert "mode" in refused(tools, "write_file", path="todo.md", content="x", mode=mode)
    assert below(notes) == {"todo.md": "Milk\n"}


def test_too_much_is_refused(tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "write at most 500000 at once" in refused(tools, "write_file", path="a.md", content="x" * 500_001)
    with (notes / "big").open("wb") as file:
        file.truncate(2**40)
    assert "nothing is appended to more than" in refused(tools, "write_file", path="big", content="x", mode="append")
    assert (notes / "big").stat().st_size == 2**40
    assert set(below_names(notes)) == {"todo.md", "big"}


def below_names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))]


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "line\nbreak",
        "tab\t",
        "esc\x1b",
        "nul\0",
        "back\\slash",
        "\\xff",
        "\\u202e",
        " before",
        "behind ",
        "dot.",
        "\u202egnp.exe",
        "zero\u200bwidth",
        "wide\u3000",
        "CON",
        "con.txt",
        "Aux.tar.gz",
        "COM1",
        "lpt9.x",
        "a:b",
        "a*b",
        "what?",
        "<x>",
        'quo"te',
        "pi|pe",
        "x" * 201,
        "ä" * 101,
        "x" * 256,
        "x" * 5000,
        ".hidden",
        ".git/hooks/pre-commit",
        "..",
        "...",
        "a/../b",
    ],
)
def test_a_name_that_somebody_would_stumble_over_is_not_made(tools: ToolSet, notes: Path, name: str) -> None:
    for path in (f"notes/{name}", f"notes/new/{name}", f"notes/{name}/new"):
        for mode in ("create", "overwrite", "append"):
            assert "path: " in refused(tools, "write_file", path=path, content="x", mode=mode)
    assert below(notes) == {"todo.md": "Milk\n"}


@pytest.mark.parametrize(
    "name", ["Überraschung.txt", "e\u0301.md", "日本.txt", "😀", "a b.md", "-rf", "console.txt", "a..b"]
)
def test_names_of_all_languages_are_made(tools: ToolSet, notes: Path, name: str) -> None:
    call(tools, "write_file", path=f"notes/{name}", content="x")
    assert (notes / name).read_text() == "x"
    assert call(tools, "read_file", path=f"notes/{name}") == "x"


@pytest.mark.parametrize("path", ["", "notes", "notes/", "/", ".", "./", "//"])
def test_a_folder_is_not_written(tools: ToolSet, notes: Path, path: str) -> None:
    (notes / "sub").mkdir()
    assert "path: " in refused(tools, "write_file", path=path, content="x", mode="overwrite")
    assert "is a folder" in refused(tools, "write_file", path="notes/sub", content="x", mode="overwrite")
    assert "file and no folder" in refused(tools, "write_file", path="notes/todo.md/x", content="x")
    assert below(notes) == {"todo.md": "Milk\n", "sub": "/"}


def test_half_a_character_is_not_written(tools: ToolSet, notes: Path) -> None:
    refused(tools, "write_file", path="a.md", content="half \ud800")
    with pytest.raises(Exception, match="half a character"):
        files_writing.write_text(Place(Folder("n", notes, True), ("a",)), "\ud800", "create")
    assert below(notes) == {"todo.md": "Milk\n"}


# --- whole or not at all -------------------------------------------------------------------------


STEPS = {
    "create": ["write", "fsync", "link"],
    "overwrite": ["write", "fsync", "fchmod", "rename"],
    "append": ["write", "fsync", "fchmod", "rename"],
}


@pytest.mark.parametrize(("mode", "step"), [(mode, step) for mode, steps in STEPS.items() for step in steps])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch, step: str, mode: str
) -> None:
    path = "new.md" if mode == "create" else "todo.md"

    def full(*args: Any, **known: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", "/a/secret/place")

    if step == "write":
        real = os.fdopen

        def opened(file: int, how: str) -> Any:
            made = real(file, how, buffering=0)
            if how == "rb":
                return made
            return _Full(made)

        monkeypatch.setattr(os, "fdopen", opened)
    else:
        monkeypatch.setattr(os, step, full)
    text = refused(tools, "write_file", path=path, content="x", mode=mode)
    assert text == f"notes/{path} can not be used: the disk is full"
    monkeypatch.undo()
    assert below(notes) == {"todo.md": "Milk\n"}


class _Full:
    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> _Full:
        return self

    def __exit__(self, *exc: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> None:
        self.file.write(data[:1])
        raise OSError(errno.ENOSPC, "full")


def test_a_file_system_without_hard_links_will_do(tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*args: Any, **known: Any) -> Any:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    assert call(tools, "write_file", path="new.md", content="x") == "created notes/new.md (1 byte)"
    assert below(notes) == {"todo.md": "Milk\n", "new.md": "x"}


@pytest.mark.parametrize("links", [True, False])
def test_of_several_that_create_one_file_one_does(
    tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:

        def none(*args: Any, **known: Any) -> Any:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", none)
    start = threading.Barrier(6)
    done: list[str] = []
    failed: list[str] = []

    def write(number: int) -> None:
        start.wait(10)
        try:
            done.append(call(tools, "write_file", path="one/new.md", content=str(number)))
        except ToolError as exc:
            failed.append(str(exc))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert done == ["created notes/one/new.md (1 byte)"]
    assert len(failed) == 5
    assert all("is there already" in text for text in failed)
    assert set(below(notes)) == {"todo.md", "one", "one/new.md"}


def test_nothing_of_what_several_append_at_once_is_lost(tools: ToolSet, notes: Path) -> None:
    start = threading.Barrier(6)

    def write(number: int) -> None:
        start.wait(10)
        for _ in range(5):
            call(tools, "write_file", path="todo.md", content=f"{number}\n", mode="append")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted((notes / "todo.md").read_text().splitlines()) == sorted(["Milk", *"012345" * 5])


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def changed(file: int) -> None:
        (notes / "todo.md").write_text("of somebody else")
        real(file)

    monkeypatch.setattr(os, "fsync", changed)
    assert "changed by somebody else" in refused(tools, "write_file", path="todo.md", content="x", mode="append")
    monkeypatch.undo()
    assert below(notes) == {"todo.md": "of somebody else"}


def test_a_reader_never_sees_half_a_file(tools: ToolSet, notes: Path) -> None:
    contents = ["a" * 100_000, "b" * 90_000]
    (notes / "todo.md").write_text(contents[0])
    end = threading.Event()
    seen: set[str] = set()

    def read() -> None:
        while not end.is_set():
            seen.add((notes / "todo.md").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(30):
            call(tools, "write_file", path="todo.md", content=contents[number % 2], mode="overwrite")
    finally:
        end.set()
        reader.join(20)
    assert seen <= set(contents)


@given(
    writes=st.lists(
        st.tuples(
            st.sampled_from(["a.md", "b/c.md", "b", "a.md/x"]),
            st.text(max_size=20),
            st.sampled_from(["create", "overwrite", "append"]),
        ),
        max_size=12,
    )
)
def test_any_sequence_of_writes_is_that_of_a_dictionary(
    writes: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("writes")
    tools = files_toolbox({"n": folder}, write=True)
    expected: dict[str, str] = {}
    for path, content, mode in writes:
        parent, _, _ = path.partition("/")
        impossible = (path == "b" and any(name.startswith("b/") for name in expected)) or (
            parent != path and parent in expected
        )
        folder_is_there = (folder / path).is_dir()
        try:
            call(tools, "write_file", path=path, content=content, mode=mode)
        except Exception:
            assert impossible or folder_is_there or (mode == "create" and path in expected)
            continue
        assert not impossible
        expected[path] = expected.get(path, "") + content if mode == "append" else content
    for path, content in expected.items():
        assert (folder / path).read_bytes().decode() == content
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == set(expected)


# --- how it is configured ------------------------------------------------------------------------


def test_a_section_of_a_persona_gives_the_tools(notes: Path) -> None:
    for folders in ({"notes": str(notes)}, [str(notes)], str(notes)):
        tools = files_from_section({"folders": folders, "write": True, "approval": True})
        assert len(tools) == 4
        assert "todo.md" in call(tools, "list_files", folder="notes")


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (None, "must be an object"),
        ({}, "folders: name at least one"),
        ({"folders": []}, "folders: name at least one"),
        ({"folders": 5}, "not iterable"),
        ({"folders": [5]}, "a path must be a text"),
        ({"folders": {"a": None}}, "a path must be a text"),
        ({"folders": ["/no/such/folder"]}, "can not be found: No such file"),
        ({"folders": ["/"]}, "needs a name"),
        ({"folders": ["bad\0name"]}, "visible characters"),
        ({"folders": {"..": "."}}, "can not be the name"),
        ({"folders": {"a/b": "."}}, "can not be the name"),
        ({"folders": {"": "."}}, "can not be the name"),
        ({"folders": {"a\nb": "."}}, "can not be the name"),
        ({"folders": {"n": "."}, "write": "yes"}, "write: it must be true, false"),
        ({"folders": {"n": "."}, "write": 5}, "write: it must be true, false"),
        ({"folders": {"n": "."}, "write": ["m"]}, "write: there is no folder 'm'"),
        ({"folders": {"n": "."}, "approval": "yes"}, "approval: it must be"),
        ({"folders": {"n": "."}, "hidden": 1}, "hidden: it must be"),
        ({"folders": {"n": "."}, "read_bytes": 0}, "read_bytes"),
        ({"folder": {"n": "."}}, "nobody knows the key 'folder'; did you mean 'folders'?"),
    ],
)
def test_a_section_that_can_not_be_used_is_refused_with_the_key(section: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        files_from_section(section)


def test_a_file_is_no_folder_and_two_of_one_name_are_refused(notes: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no folder"):
        files_toolbox([notes / "todo.md"])
    with pytest.raises(ValueError, match="two have the name 'notes'"):
        files_toolbox([notes, str(notes)])
    with pytest.raises(TypeError, match="give a mapping"):
        files_toolbox(str(notes))


def test_folders_are_named_as_they_are_typed(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a=b").mkdir()
    monkeypatch.chdir(tmp_path)
    tools = files_from_texts(["notes", "x=notes"], [f"{tmp_path}/a=b", "w=."])
    assert call(tools, "list_files") == "notes/\nx/\na=b/\nw/"
    assert "can only be read" in refused(tools, "write_file", path="x/n.md", content="")
    call(tools, "write_file", path="w/n.md", content="")
    with pytest.raises(ValueError, match="two folders of the name"):
        files_from_texts(["notes"], ["notes"])


def test_a_system_that_can_not_keep_files_in_their_folder_is_refused(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(OSError, match="the files toolbox does not run on"):
        files_toolbox([notes])


def test_it_is_not_there_unless_it_is_named() -> None:
    from toolturn.toolboxes import TOOLBOXES

    assert "files" not in TOOLBOXES
