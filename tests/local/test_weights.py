"""What is known, where it is kept, and how it is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolturn.local import weights as store
from toolturn.local.wheels import pins

from .conftest import CONTENT


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_default_model_is_known_and_every_part_of_it_is_pinned() -> None:
    default = store.KNOWN[store.DEFAULT]
    assert default.parts is not None
    pinned = pins(default.parts)
    assert len({each.sha256 for each in pinned}) == len(pinned) == 6
    assert sum(each.bytes for each in pinned) == pytest.approx(default.bytes, rel=0.05)


def test_a_pin_without_a_hash_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a pinned wheel"):
        pins(put(tmp_path / "parts.txt", b"sample==1.0\n"))


def test_the_cache_folder_is_the_one_that_toolturn_cache_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("TOOLTURN_CACHE", str(tmp_path / "own"))
    assert store.cache_folder() == tmp_path / "own"


def test_without_that_it_is_below_the_cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOOLTURN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / "toolturn"


@pytest.mark.parametrize("xdg", ["", "relative/folder"])
@pytest.mark.parametrize(
    ("platform", "below_home"),
    [
        ("linux", ".cache/toolturn"),
        ("darwin", "Library/Caches/toolturn"),
        ("win32", "AppData/Local/toolturn"),
    ],
)
def test_and_without_a_usable_one_it_is_where_the_system_has_its_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, xdg: str, platform: str, below_home: str
) -> None:
    monkeypatch.delenv("TOOLTURN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert store.cache_folder() == tmp_path / below_home


def test_windows_says_itself_where_its_caches_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOOLTURN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "win32")
    assert store.cache_folder() == tmp_path / "toolturn"


def test_a_model_in_the_cache_is_found_by_its_name_and_as_the_default(sample: store.Weights, cache: Path) -> None:
    path = put(cache / sample.file)
    assert store.find() == store.find("sample") == store.find(sample) == path


def test_a_model_that_is_not_there_is_one_sentence_with_the_command_that_brings_it() -> None:
    with pytest.raises(store.WeightsError) as caught:
        store.find()
    assert str(caught.value) == (
        "the embedded model's weights are not here; run `toolturn model pull` (491 MB, Apache-2.0), or name a GGUF file"
    )


def test_a_file_of_another_size_under_the_name_of_a_model_is_not_that_model(sample: store.Weights, cache: Path) -> None:
    put(cache / sample.file, CONTENT[:-1])
    assert not store.is_present(sample)
    with pytest.raises(store.WeightsError, match="are not here"):
        store.find()


def test_a_gguf_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = put(tmp_path / "own.gguf")
    assert store.find(path) == store.find(str(path)) == path


def test_a_path_may_begin_with_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = put(tmp_path / "own.gguf")
    assert store.find("~/own.gguf") == path


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04 something else"])
def test_a_file_without_the_magic_of_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "own.gguf", content)
    with pytest.raises(store.WeightsError, match="is not a GGUF file; name one that is"):
        store.find(path)


def test_a_path_with_nothing_there_is_one_sentence() -> None:
    with pytest.raises(store.WeightsError, match=r"no model and no file named 'nowhere\.gguf'; name a GGUF"):
        store.find("nowhere.gguf")


def test_an_empty_name_is_not_the_default_model(sample: store.Weights, cache: Path) -> None:
    put(cache / sample.file)
    with pytest.raises(store.WeightsError, match="cannot be read"):
        store.find("")


def test_a_folder_is_no_gguf_file(tmp_path: Path) -> None:
    with pytest.raises(store.WeightsError, match="cannot be read"):
        store.find(tmp_path)


def test_an_unknown_name_is_one_sentence_that_names_the_known_ones(sample: store.Weights) -> None:
    for act in (store.pull, store.remove):
        with pytest.raises(store.WeightsError, match="no model named 'other'; name one of the known ones: sample"):
            act("other")


def test_a_model_in_the_cache_is_not_pulled_again(sample: store.Weights, cache: Path, no_hub: str) -> None:
    path = put(cache / sample.file)
    assert store.fetch() == store.Fetched(sample, path, "cache")


def test_a_cache_folder_that_cannot_be_made_is_one_sentence(
    sample: store.Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLTURN_CACHE", str(put(tmp_path / "file")))
    with pytest.raises(store.WeightsError, match=r"cannot be used .*set TOOLTURN_CACHE to another folder"):
        store.pull()


def test_removing_deletes_the_model_and_what_unfinished_pulls_left(sample: store.Weights, cache: Path) -> None:
    put(cache / sample.file)
    put(cache / f"{sample.file}.partial", b"12345")
    put(cache / f"{sample.file}.partial.json", b"{}")
    put(cache / ".index-sample" / "01" / "some.whl", b"123")
    put(cache / "other.gguf")
    assert store.leftover_bytes(sample) == 10
    assert store.remove("sample") == len(CONTENT) + 10
    assert {each.name for each in cache.iterdir()} == {"other.gguf", ".sample-q4.gguf.lock"}


def test_removing_what_is_not_there_frees_nothing(sample: store.Weights) -> None:
    assert store.remove("sample") == 0


def test_looking_for_weights_loads_nothing_that_downloads() -> None:
    code = "import sys, toolturn.cli.model; print(*[m for m in sys.modules if m.startswith('toolturn.local.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["toolturn.local.catalogue", "toolturn.local.weights"]
