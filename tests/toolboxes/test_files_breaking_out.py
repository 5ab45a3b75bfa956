"""Attempts to get out of a folder: nothing outside is ever read or changed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolturn.errors import InvalidToolArguments, ToolError
from toolturn.toolboxes import files_confined, files_writing
from toolturn.toolboxes.files import files_toolbox
from toolturn.tools import ToolSet

SECRET = "the-secret-outside"


class Outside:
    """A folder with another one in it that a model may see, and the means to tell whether what is outside was touched.

    Args:
        place: An empty folder.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.notes = place / "notes"
        (self.notes / "sub").mkdir(parents=True)
        (self.notes / "todo.md").write_text("Milk\n")
        (self.notes / "sub" / "inner.md").write_text("inner\n")
        (place / "secret.txt").write_text(SECRET)
        (place / "other").mkdir()
        (place / "other" / "secret.txt").write_text(SECRET)
        (place / "other" / "inner.md").write_text(SECRET)
        (place / "notes-too").mkdir()
        (place / "notes-too" / "secret.txt").write_text(SECRET)
        self.tools = files_toolbox({"notes": self.notes}, write=True)
        self.before = self.state()

    def state(self) -> dict[str, tuple[Any, ...]]:
        """Everything outside of the folder."""
        found: dict[str, tuple[Any, ...]] = {}
        for path in sorted(self.place.rglob("*")):
            if path == self.notes or self.notes in path.parents:
                continue
            known = path.lstat()
            found[str(path)] = (known.st_ino, known.st_mode, known.st_size, path.is_file() and path.read_bytes())
        return found

    def untouched(self) -> None:
        assert self.state() == self.before

    def everything(self, path: str) -> str:
        """What all tools say of a path, run in this thread."""
        said = []
        for name, arguments in (
            ("read_file", {"path": path}),
            ("list_files", {"folder": path, "pattern": "**/*"}),
            ("search_files", {"text": SECRET[:10], "folder": path}),
            ("write_file", {"path": path, "content": "changed", "mode": "create"}),
            ("write_file", {"path": path, "content": "changed", "mode": "overwrite"}),
            ("write_file", {"path": path, "content": "changed", "mode": "append"}),
        ):
            said.append(run(self.tools, name, arguments))
        return "\n".join(said)


def run(tools: ToolSet, name: str, arguments: dict[str, Any]) -> str:
    tool = tools.get(name)
    assert tool is not None
    try:
        return str(tool.handler(tool.validate(json.dumps(arguments))))
    except (ToolError, InvalidToolArguments) as exc:
        return f"refused: {exc}"


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


# --- paths ---------------------------------------------------------------------------------------

PATHS = [
    "../secret.txt",
    "notes/../secret.txt",
    "notes/../../secret.txt",
    "notes/sub/../../secret.txt",
    "notes/./../secret.txt",
    "notes//../secret.txt",
    "notes/..",
    "..",
    "notes/sub/..",
    "./../secret.txt",
    "notes-too/secret.txt",
    "notes/../notes-too/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "~/secret.txt",
    "~root/x",
    "$HOME/secret.txt",
    "notes/~/secret.txt",
    "notes/$(cat secret.txt)",
    "notes/%2e%2e/secret.txt",
    "notes/%2e%2e%2fsecret.txt",
    "notes/..%2fsecret.txt",
    "notes/..\\secret.txt",
    "notes\\..\\secret.txt",
    "..\\secret.txt",
    "notes/\\x2e\\x2e/secret.txt",
    "notes/\\u002e\\u002e/secret.txt",
    "notes/\\x2e./secret.txt",
    "notes/x\\x2f..\\x2f..\\x2fsecret.txt",
    "notes/\\x2fetc\\x2fpasswd",
    "notes/\\U0000002e\\U0000002e/secret.txt",
    "notes/．．/secret.txt",
    "notes/\u2025/secret.txt",
    "notes/..\u200b/secret.txt",
    "notes/.. /secret.txt",
    "notes/ ../secret.txt",
    "notes/.../secret.txt",
    "notes/..\0/secret.txt",
    "notes/todo.md\0/../secret.txt",
    "notes/todo.md/../../secret.txt",
    "notes/sub\n/../../secret.txt",
    "file:///etc/passwd",
    "notes/../" * 40 + "etc/passwd",
    "notes/" + "sub/" * 30 + "../" * 40 + "etc/passwd",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "\\\\server\\share\\x",
    "/proc/self/cwd/secret.txt",
    "/dev/stdin",
    "notes/\u0000",
    "",
    " ",
    "\n",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_spelling_of_a_path_leads_out(outside: Outside, path: str) -> None:
    said = outside.everything(path)
    assert SECRET not in said
    assert "root:" not in said
    outside.untouched()


@pytest.mark.parametrize("path", PATHS)
def test_no_spelling_of_a_path_leads_out_where_hidden_names_can_be_used(outside: Outside, path: str) -> None:
    outside.tools = files_toolbox({"notes": outside.notes}, write=True, hidden=True)
    said = outside.everything(path)
    assert SECRET not in said
    assert "root:" not in said
    outside.untouched()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/etc/passwd", "must begin with the name of a folder (notes), not with '/'"),
        ("/notes/todo.md", "must begin with the name of a folder (notes), not with '/'"),
        ("~/x", "not with '~'"),
        ("notes/../x", 'must not hold ".."'),
        ("a" * 1001, "use at most 1000 characters"),
        ("a/" * 45, "use at most 40 folders"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_what_to_write(outside: Outside, path: str, told: str) -> None:
    assert told in run(outside.tools, "read_file", {"path": path})


@pytest.mark.parametrize("path", [str(Path("x")), "secret.txt", "other/secret.txt", "notes-too"])
def test_the_path_of_the_folder_itself_is_of_no_use(outside: Outside, path: str) -> None:
    for said in (outside.everything(f"{outside.place}/{path}"), outside.everything(f"{outside.notes}/../{path}")):
        assert SECRET not in said
        assert str(outside.place) not in said.replace(f"{outside.place}/{path}", "")
    outside.untouched()


_PART = st.sampled_from(
    [
        "..",
        ".",
        "",
        "notes",
        "sub",
        "todo.md",
        "secret.txt",
        "other",
        "notes-too",
        "link",
        "up",
        "~",
        "\\x2e\\x2e",
        "\\x2f",
    ]
) | st.text(max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(parts=st.lists(_PART, max_size=8), first=st.sampled_from(["", "/", "notes/", "./", "\\"]))
def test_no_path_at_all_leads_out(parts: list[str], first: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = Outside(tmp_path_factory.mktemp("any"))
    os.symlink("../secret.txt", outside.notes / "link")
    os.symlink("..", outside.notes / "up")
    os.symlink("../../other", outside.notes / "sub" / "other")
    said = outside.everything(first + "/".join(parts))
    assert SECRET not in said
    outside.untouched()


# --- links ---------------------------------------------------------------------------------------


def _file(outside: Outside) -> list[str]:
    os.symlink("../secret.txt", outside.notes / "link")
    return ["link"]


def _absolute(outside: Outside) -> list[str]:
    os.symlink(outside.place / "secret.txt", outside.notes / "link")
    return ["link"]


def _folder(outside: Outside) -> list[str]:
    os.symlink("../other", outside.notes / "link")
    return ["link/secret.txt", "link", "link/new.txt", "link/new/new.txt"]


def _parent(outside: Outside) -> list[str]:
    os.symlink("..", outside.notes / "up")
    return ["up/secret.txt", "up", "up/other/secret.txt", "up/new.txt", "up/notes/up/secret.txt"]


def _chain(outside: Outside) -> list[str]:
    os.symlink("two", outside.notes / "one")
    os.symlink("sub/three", outside.notes / "two")
    os.symlink("../../other", outside.notes / "sub" / "three")
    return ["one/secret.txt", "two/secret.txt", "sub/three/secret.txt", "one", "sub/three"]


def _loop(outside: Outside) -> list[str]:
    os.symlink("loop", outside.notes / "loop")
    os.symlink("sub/../around", outside.notes / "around")
    return ["loop", "loop/x", "around", "around/x"]


def _dangling(outside: Outside) -> list[str]:
    os.symlink("../made.txt", outside.notes / "link")
    os.symlink("../made", outside.notes / "folder")
    return ["link", "folder/new.txt", "folder"]


def _inside(outside: Outside) -> list[str]:
    os.symlink("todo.md", outside.notes / "link")
    os.symlink("sub", outside.notes / "folder")
    return ["link", "folder/inner.md"]


def _proc(outside: Outside) -> list[str]:
    os.symlink("/proc/self/cwd", outside.notes / "cwd")
    os.symlink("/proc/self/root", outside.notes / "root")
    os.symlink("/dev/fd/0", outside.notes / "in")
    return ["cwd/x", "root/etc/passwd", "in"]


@pytest.mark.parametrize("make", [_file, _absolute, _folder, _parent, _chain, _loop, _dangling, _inside, _proc])
def test_no_link_is_followed_wherever_it_leads(outside: Outside, make: Callable[[Outside], list[str]]) -> None:
    for path in make(outside):
        said = outside.everything(f"notes/{path}")
        assert SECRET not in said
        assert "root:" not in said
        assert "Milk" not in said
        assert "link" in said
        assert all(line.startswith("refused: ") for line in said.splitlines())
    outside.untouched()
    assert (outside.notes / "todo.md").read_text() == "Milk\n"


def test_links_are_listed_as_links_and_not_searched(outside: Outside) -> None:
    for make in (_folder, _parent, _chain, _loop):
        make(outside)
    listed = run(outside.tools, "list_files", {"pattern": "**/*"})
    assert "notes/link (a link, can not be used)" in listed.splitlines()
    assert "secret.txt" not in listed
    assert run(outside.tools, "search_files", {"text": "secret"}) == "not found in 2 files of notes"


def test_the_folder_itself_may_be_reached_through_a_link_of_the_user(outside: Outside) -> None:
    os.symlink(outside.notes, outside.place / "alias")
    tools = files_toolbox([outside.place / "alias"])
    assert run(tools, "read_file", {"path": "alias/todo.md"}) == "Milk\n"


def test_a_link_that_takes_the_place_of_the_folder_itself_is_not_followed(outside: Outside) -> None:
    outside.notes.rename(outside.place / "aside")
    os.symlink("other", outside.notes)
    said = outside.everything("notes/secret.txt") + outside.everything("notes")
    assert SECRET not in said
    assert all(line.startswith("refused: ") for line in said.splitlines())
    assert sorted(path.name for path in (outside.place / "other").iterdir()) == ["inner.md", "secret.txt"]


class Swapping:
    """A thread that swaps a name between what is inside and a link to what is outside, as fast as it can.

    Args:
        path: The name.
        inside: What it is at first.
        target: Where the link leads.
    """

    def __init__(self, path: Path, target: Path) -> None:
        self.path, self.target = path, target
        self.kept, self.link = path.with_name("kept-aside"), path.with_name("link-aside")
        self.end = threading.Event()
        self.swaps = 0
        self.thread = threading.Thread(target=self._swap)

    def _swap(self) -> None:
        os.symlink(self.target, self.link)
        while not self.end.is_set():
            with suppress(OSError):  # a folder was made there in the meantime
                os.rename(self.path, self.kept)
                os.rename(self.link, self.path)
                os.rename(self.path, self.link)
                os.rename(self.kept, self.path)
                self.swaps += 1
                continue
            if self.path.is_symlink():
                os.rename(self.path, self.link)
            elif self.kept.exists():
                shutil.rmtree(self.path, ignore_errors=True)
            with suppress(OSError):
                os.rename(self.kept, self.path)

    def __enter__(self) -> Swapping:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end.set()
        self.thread.join(20)


def rounds() -> Iterator[int]:
    """Many tries, within a second."""
    until = time.monotonic() + 1
    number = 0
    while time.monotonic() < until:
        yield number
        number += 1


@pytest.mark.parametrize("name", ["read_file", "list_files", "search_files"])
def test_a_link_that_is_put_in_the_way_meanwhile_is_not_followed(outside: Outside, name: str) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "read_file": {"path": "notes/sub/inner.md"},
        "list_files": {"folder": "notes", "pattern": "**/*"},
        "search_files": {"text": "e"},
    }
    said: set[str] = set()
    with Swapping(outside.notes / "sub", outside.place / "other") as swapping:
        for _ in rounds():
            said.add(run(outside.tools, name, arguments[name]))
    assert swapping.swaps > 100
    assert not any(SECRET in text or "secret.txt" in text for text in said)
    assert any(("inner" in text) if name != "search_files" else ("inner.md" in text) for text in said)
    outside.untouched()


def test_a_file_that_becomes_a_link_meanwhile_is_neither_read_nor_written(outside: Outside) -> None:
    said: set[str] = set()
    with Swapping(outside.notes / "todo.md", outside.place / "secret.txt") as swapping:
        for number in rounds():
            mode = ("overwrite", "append")[number % 2]
            said.add(run(outside.tools, "read_file", {"path": "todo.md"})[:200])
            said.add(run(outside.tools, "write_file", {"path": "todo.md", "content": "x", "mode": mode}))
    assert swapping.swaps > 100
    assert not any(SECRET in text for text in said)
    outside.untouched()


def test_a_folder_that_becomes_a_link_meanwhile_is_not_written_through(outside: Outside) -> None:
    with Swapping(outside.notes / "sub", outside.place / "other") as swapping:
        for number in rounds():
            run(outside.tools, "write_file", {"path": f"sub/{number % 50}/new.md", "content": "x", "mode": "overwrite"})
            run(outside.tools, "write_file", {"path": "sub/inner.md", "content": "x", "mode": "append"})
    assert swapping.swaps > 100
    outside.untouched()


# --- hard links ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
def test_a_file_with_another_name_outside_is_not_written(outside: Outside, mode: str) -> None:
    os.link(outside.place / "secret.txt", outside.notes / "hard.txt")
    said = run(outside.tools, "write_file", {"path": "hard.txt", "content": "x", "mode": mode})
    assert "is there already" in said if mode == "create" else "2 names (hard links)" in said
    outside.untouched()
    assert (outside.notes / "hard.txt").stat().st_nlink == 2


# --- what is no file -----------------------------------------------------------------------------


def test_pipes_sockets_and_devices_are_not_opened(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(outside.notes / "pipe")
    monkeypatch.chdir(outside.notes)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name, kind in (("pipe", "a pipe"), ("socket", "a socket")):
            began = time.monotonic()
            said = outside.everything(f"notes/{name}")
            assert f"notes/{name} is {kind}, which can not be used" in said
            assert time.monotonic() - began < 5
        listed = run(outside.tools, "list_files", {})
        assert "notes/pipe (a pipe, can not be used)" in listed
        assert stat.S_ISFIFO((outside.notes / "pipe").lstat().st_mode)
        assert "not found" in run(outside.tools, "search_files", {"text": "x" * 20})


@pytest.mark.parametrize("become", ["a pipe", "a link", "a device", "nothing"])
@pytest.mark.parametrize("name", ["read_file", "search_files", "write_file"])
def test_what_takes_the_place_of_a_file_between_two_looks_is_not_opened(
    outside: Outside, monkeypatch: pytest.MonkeyPatch, become: str, name: str
) -> None:
    if become == "a device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    real = files_confined.check_regular
    file, looks = outside.notes / "todo.md", []

    def swapped(known: os.stat_result, place: Any) -> None:
        real(known, place)
        looks.append(place)
        # the first look of those who write is at what they would overwrite
        if "todo" in place.shown and len(looks) == (2 if name == "write_file" else 1):
            file.unlink()
            if become == "a pipe":
                os.mkfifo(file)
            elif become == "a link":
                os.symlink("../secret.txt", file)
            elif become == "a device":
                os.mknod(file, 0o666 | stat.S_IFCHR, os.makedev(1, 5))

    (outside.notes / "sub" / "inner.md").unlink()
    for module in (files_confined, files_writing):
        monkeypatch.setattr(module, "check_regular", swapped)
    arguments = {
        "read_file": {"path": "todo.md"},
        "search_files": {"text": "secret"},
        "write_file": {"path": "todo.md", "content": "x", "mode": "append"},
    }
    open_before = _open_files()
    began = time.monotonic()
    said = run(outside.tools, name, arguments[name])
    assert time.monotonic() - began < 10
    assert looks
    assert SECRET not in said
    assert said.startswith("not found in 0 files" if name == "search_files" else "refused: ")
    assert _open_files() == open_before
    outside.untouched()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there is no /dev/zero")
def test_devices_are_not_read() -> None:
    tools = files_toolbox({"dev": "/dev"})
    assert "a device, which can not be used" in run(tools, "read_file", {"path": "dev/zero"})
    assert "a device" in run(tools, "list_files", {"folder": "dev"})
    run(tools, "search_files", {"text": "x"})


# --- what is said --------------------------------------------------------------------------------


def test_no_error_tells_where_the_folder_is(outside: Outside) -> None:
    _chain(outside)
    paths = ["notes/no", "notes/todo.md/x", "notes/one", "notes/sub", "notes/no/no", "x" * 300, "notes/" + "y/" * 50]
    for path in paths:
        assert str(outside.place) not in outside.everything(path)
    outside.notes.rename(outside.place / "gone")
    assert str(outside.place) not in outside.everything("notes/todo.md")


def test_deep_trees_and_many_links_end(outside: Outside) -> None:
    deep = outside.notes
    for number in range(100):
        deep = deep / "d"
        deep.mkdir()
        os.symlink("..", deep / f"up{number}")
    began = time.monotonic()
    assert "too deep" in run(outside.tools, "list_files", {"pattern": "**/*.md"})
    assert "too deep" in run(outside.tools, "search_files", {"text": "zzz"})
    assert "too deep" in run(outside.tools, "read_file", {"path": "notes/" + "d/" * 60 + "x"})
    assert time.monotonic() - began < 10
