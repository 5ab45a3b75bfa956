"""Files of named folders: what is read, listed and found, and that all of it is bounded."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.errors import ToolError
from toolturn.toolboxes import files_reading
from toolturn.toolboxes.files import files_toolbox
from toolturn.toolboxes.files_confined import named, opened_file, shown_name
from toolturn.toolboxes.files_reading import size_text
from toolturn.tools import ToolSet

from .files_support import call, refused, some_notes


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return some_notes(tmp_path / "notes")


@pytest.fixture
def tools(notes: Path) -> ToolSet:
    return files_toolbox([notes])


# --- reading -----------------------------------------------------------------------------------


def test_a_small_file_is_read_as_it_is(tools: ToolSet) -> None:
    assert call(tools, "read_file", path="notes/todo.md") == "Milk\nBread\n"
    assert call(tools, "read_file", path="./notes//years/./plan.txt").startswith("First")


def test_the_only_folder_can_be_left_out(tools: ToolSet) -> None:
    assert call(tools, "read_file", path="todo.md") == "Milk\nBread\n"


def test_an_empty_file_is_said_to_be(tools: ToolSet, notes: Path) -> None:
    (notes / "none.txt").touch()
    (notes / "bom.txt").write_bytes(b"\xef\xbb\xbf")
    assert call(tools, "read_file", path="notes/none.txt") == "(the file is empty)"
    assert "bytes 3 to 3 of 3" in call(tools, "read_file", path="notes/bom.txt")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Größe 😀\n".encode(), "Größe 😀\n"),
        ("\ufeffGröße\n".encode(), "Größe\n[bytes 3 to 11 of 11]"),
        ("Größe\n".encode("latin-1"), "Größe\n[read as Latin-1]"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n"),
        (b"no end", "no end"),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    ],
)
def test_text_in_common_encodings_is_read(tools: ToolSet, notes: Path, data: bytes, text: str) -> None:
    (notes / "file").write_bytes(data)
    assert call(tools, "read_file", path="notes/file") == text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x7fELF\x02\x01\x01\0\0", "no text file"),
        (bytes(range(256)), "no text file"),
        (b"\x01\x02\x03\x04 text", "no text file"),
        (b"a text with one null \0 in it, which no text has", "no text file"),
        ("text".encode("utf-16"), "UTF-16"),
        ("text".encode("utf-16-be").join([b"\xfe\xff", b""]), "UTF-16"),
    ],
)
def test_what_is_no_text_is_refused_with_a_sentence(tools: ToolSet, notes: Path, data: bytes, told: str) -> None:
    (notes / "file").write_bytes(data)
    assert told in refused(tools, "read_file", path="notes/file")


def test_a_long_file_is_read_in_pieces_that_say_how_to_go_on(notes: Path) -> None:
    lines = [f"line {number} of the file\n" for number in range(1000)]
    (notes / "long.txt").write_text("".join(lines))
    tools = files_toolbox([notes], read_bytes=1000)
    first = call(tools, "read_file", path="notes/long.txt")
    assert first.startswith("line 0 of the file\n")
    assert len(first) < 1100
    assert "[bytes 0 to " in first
    assert "; for more, read with offset " in first
    assert first.rpartition("\n[")[0].endswith("of the file")
    assert read_whole(tools, "notes/long.txt") == "".join(lines)


def read_whole(tools: ToolSet, path: str) -> str:
    """What a model gets that goes on as it is told to."""
    pieces: list[str] = []
    offset = 0
    for _ in range(10_000):
        text = call(tools, "read_file", path=path, offset=offset)
        piece, marked, note = text.rpartition("\n[bytes ")
        if not marked:
            return "".join([*pieces, text])
        begin, end = int(note.split()[0]), int(note.split()[2])
        assert begin == offset
        pieces.append(piece if piece.encode()[-1:] != b"\n" and len(piece.encode()) == end - begin else piece + "\n")
        if "read with offset" not in note:
            return "".join(pieces)
        assert end > offset
        offset = end
    raise AssertionError("it never ended")


@given(
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n"), min_size=1, max_size=3000),
    size=st.integers(256, 600),
)
def test_the_pieces_of_any_text_are_the_whole(text: str, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    text = text.lstrip("\ufeff")
    (folder / "f").write_text(text, newline="")
    tools = files_toolbox({"n": folder}, read_bytes=size)
    data, pieces, offset = text.encode(), b"", 0
    while offset < len(data):
        got = call(tools, "read_file", path="f", offset=offset)
        if offset == 0 and len(data) <= size:
            assert got == text
            return
        note = got.rpartition("\n[bytes ")[2]
        begin, end = int(note.split()[0]), int(note.split()[2])
        assert begin == offset < end <= offset + size + 3
        assert got.startswith(data[begin:end].decode())
        pieces += data[begin:end]
        offset = end
    assert pieces == data


@pytest.mark.parametrize("offset", range(12))
def test_an_offset_within_a_character_begins_with_the_whole_of_it(tools: ToolSet, notes: Path, offset: int) -> None:
    (notes / "wide.txt").write_text("aä😀b\u0301ñ")
    text = call(tools, "read_file", path="notes/wide.txt", offset=offset)
    assert "\ufffd" not in text
    assert "Latin-1" not in text


def test_an_offset_behind_the_end_is_refused(tools: ToolSet) -> None:
    assert "has 11 bytes" in refused(tools, "read_file", path="notes/todo.md", offset=11)
    assert "has 11 bytes" in refused(tools, "read_file", path="notes/todo.md", offset=2**62)
    assert "offset" in refused(tools, "read_file", path="notes/todo.md", offset=-1)
    assert "offset" in refused(tools, "read_file", path="notes/todo.md", offset=2**64)


def test_a_huge_file_costs_no_more_than_a_small_one(tools: ToolSet, notes: Path) -> None:
    with (notes / "huge.txt").open("wb") as file:
        file.write(b"begins\n" + b"x" * 20_000)
        file.truncate(2**40)
    began = time.process_time()
    text = call(tools, "read_file", path="notes/huge.txt")
    assert text.startswith("begins\n")
    assert len(text) < 9000
    assert "no text file" in refused(tools, "read_file", path="notes/huge.txt", offset=2**39)
    assert "notes/huge.txt (offset 0): begins" in call(tools, "search_files", text="begins")
    assert "1.1 TB" in call(tools, "list_files")
    assert time.process_time() - began < 5


def test_what_is_not_there_is_said_with_a_name_like_it(tools: ToolSet) -> None:
    assert refused(tools, "read_file", path="notes/todo.txt") == (
        "notes/todo.txt is not there; did you mean notes/todo.md?"
    )
    assert "use list_files" in refused(tools, "read_file", path="notes/years/zzzzzz")
    assert "secret" not in refused(tools, "read_file", path="notes/secret").partition("there;")[2]
    assert "is not there" in refused(tools, "read_file", path="notes/no/such/folder/x.txt")
    assert "file and no folder" in refused(tools, "read_file", path="notes/todo.md/x")


def test_a_folder_is_no_file(tools: ToolSet) -> None:
    assert "is a folder" in refused(tools, "read_file", path="notes")
    assert "is a folder; use list_files" in refused(tools, "read_file", path="notes/years")
    assert "file and no folder" in refused(tools, "list_files", folder="notes/todo.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said_to_have_none(tools: ToolSet, notes: Path) -> None:
    (notes / "todo.md").chmod(0)
    (notes / "years").chmod(0)
    try:
        assert "there is no permission" in refused(tools, "read_file", path="notes/todo.md")
        assert "there is no permission" in refused(tools, "read_file", path="notes/years/plan.txt")
        assert "not found in 0 files" in call(tools, "search_files", text="plan")
    finally:
        (notes / "years").chmod(0o700)


def test_a_folder_that_goes_away_is_said_to(tools: ToolSet, notes: Path) -> None:
    notes.rename(notes.with_name("other"))
    for name, arguments in (("list_files", {}), ("read_file", {"path": "todo.md"}), ("search_files", {"text": "x"})):
        text = refused(tools, name, **arguments)
        assert text == "the folder notes can not be opened: it is not there"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (5 * 10**9, "5.0 GB"),
        (10**18, "1000000.0 TB"),
    ],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


# --- odd names -----------------------------------------------------------------------------------

ODD = [
    b"line\nbreak.txt",
    b"tab\there",
    b"\xff\xfe not utf-8",
    b"latin-\xe9.txt",
    b" blanks around ",
    b"back\\slash",
    b"esc\x1b[31m",
    "\u202egnp.exe".encode(),
    "zero\u200bwidth".encode(),
    "wide\u3000blank".encode(),
    b"x (12 bytes, 2026-01-01)\nfake.txt (1 byte",
    b"C:",
    b"con",
    "Überraschung.txt".encode(),
    "e\u0301".encode(),
    b"x" * 255,
    b"'quoted' \"twice\"",
    b"-rf",
    b"\\x41",
]


def test_files_with_odd_names_are_listed_on_one_line_each_and_read_by_that_name(tools: ToolSet, notes: Path) -> None:
    for number, name in enumerate(ODD):
        with open(os.fsencode(notes / "years") + b"/" + name, "w") as file:
            file.write(f"content {number}")
    lines = call(tools, "list_files", folder="notes/years").splitlines()
    assert len(lines) == len(ODD) + 2
    assert all(line.isprintable() for line in lines)
    contents = set()
    for line in lines:
        path = line.rpartition(" (")[0]
        if path.endswith("plan.txt") or line.endswith("/"):
            continue
        contents.add(call(tools, "read_file", path=path))
    assert contents == {f"content {number}" for number in range(len(ODD))}
    found = call(tools, "search_files", text="content 3").splitlines()
    assert found == ["notes/years/latin-\\xe9.txt (offset 0): content 3"]


@given(st.binary(min_size=1, max_size=255).filter(lambda name: not {0, 47} & set(name)))
def test_any_name_is_shown_in_visible_characters_and_known_again(name: bytes) -> None:
    given_name = os.fsdecode(name)
    shown = shown_name(given_name)
    assert shown.isprintable()
    assert shown == shown.strip()
    assert os.fsencode(named(shown)) == name
    shown.encode()


@given(st.text(max_size=50))
def test_any_text_is_read_as_a_name_or_stays_as_it_is(text: str) -> None:
    named(text)


def test_what_changes_while_it_is_read_does_no_harm(
    tools: ToolSet, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_file

    def vanishing(*args: Any) -> Any:
        (notes / "todo.md").unlink()
        return opened(*args)

    monkeypatch.setattr(files_reading, "opened_file", vanishing)
    assert "is not there" in refused(tools, "read_file", path="notes/todo.md")
    (notes / "todo.md").write_text("Milk")

    def shrinking(*args: Any) -> Any:
        got = opened(*args)
        os.truncate(notes / "todo.md", 0)
        return got

    monkeypatch.setattr(files_reading, "opened_file", shrinking)
    assert call(tools, "read_file", path="notes/todo.md") == "(the file is empty)"


def test_no_descriptor_is_left_open(tools: ToolSet, notes: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("no /proc")
    os.mkfifo(notes / "pipe")
    os.symlink("/etc", notes / "link")
    asyncio.run(asyncio.sleep(0))

    def use() -> None:
        for path in ("notes/todo.md", "notes/no", "notes/pipe", "notes/link/passwd", "notes/years", "notes/todo.md/x"):
            tool = tools.get("read_file")
            assert tool is not None
            with suppress(ToolError):
                tool.handler(tool.validate(json.dumps({"path": path})))
        for name in ("list_files", "search_files"):
            tool = tools.get(name)
            assert tool is not None
            arguments = {"pattern": "**/*"} if name == "list_files" else {"text": "plan"}
            tool.handler(tool.validate(json.dumps(arguments)))

    use()
    before = len(os.listdir("/proc/self/fd"))
    use()
    assert len(os.listdir("/proc/self/fd")) == before
    assert stat.S_ISFIFO((notes / "pipe").stat().st_mode)
