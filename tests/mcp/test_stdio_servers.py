"""A server's process may do anything: the call becomes something the model can act on, and the turn goes on."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from toolturn import Limits, run_tool_loop
from toolturn.events import Event
from toolturn.mcp import mcp_servers
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, bad, called, content, observe, one, progress_of, received, run, until


def test_a_call_is_made_and_its_text_is_the_observation() -> None:
    record = run(called(bad("fine")))
    assert (content(record), record.status) == ("hi", "ok")


def test_where_there_is_no_python_of_this_name_it_is_our_own(tmp_path: Path) -> None:
    server = replace(bad("fine"), command="python", env={"PATH": str(tmp_path)})
    assert content(run(called(server))) == "hi"


# --- servers that end -------------------------------------------------------------------


def test_a_server_that_dies_in_a_call_says_so_with_its_last_words() -> None:
    record = run(called(bad("dies-on-call")))
    assert record.status == "error"
    assert "the MCP server 'box' is unavailable: its process ended with code 3" in content(record)
    assert "the disk is full" in content(record)
    assert "whether the call had an effect is not known" in content(record)


def test_a_server_that_died_is_started_again_for_the_next_call_but_no_call_is_made_twice(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with one(bad(f"dies-once:{tmp_path / 'marker'}", log)) as servers:
            first = await observe(servers.tools, arguments={"text": "one"})
            second = await observe(servers.tools, arguments={"text": "two"})
            assert (first.status, second.status) == ("error", "ok")
            assert content(second) == "after all: two"
            assert servers.problems == ()

    run(main())
    assert [call["params"]["arguments"]["text"] for call in received(log, "tools/call")] == ["one", "two"]
    assert len(received(log, "initialize")) == 2


def test_a_server_that_dies_at_each_call_is_not_started_for_each_of_them(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with one(bad("dies-on-call", log)) as servers:
            records = [await observe(servers.tools) for _ in range(5)]
            assert all("is unavailable: its process ended" in content(record) for record in records)
            assert [problem.kind for problem in servers.problems] == ["not_running"]

    run(main())
    assert len(received(log, "initialize")) == 2


def test_the_turn_goes_on_with_the_other_servers_when_one_dies() -> None:
    async def main() -> None:
        async with mcp_servers({"a": bad("dies-on-call"), "b": bad("fine")}) as servers:
            first, second = calls(("a__echo", "{}")), calls(("b__echo", '{"text":"yes"}'))
            with ScriptedModel([first, second, "done"]) as model:
                result = await run_tool_loop(HELLO, servers.tools, model, tool_errors="raise")
            assert [record.status for record in result.tool_calls] == ["error", "ok"]

    run(main())


def test_half_a_message_and_an_end_is_a_server_that_ended() -> None:
    record = run(called(bad("half-a-message")))
    assert "is unavailable: its process ended with code 0" in content(record)


# --- servers that hang ------------------------------------------------------------------


def test_a_call_that_is_not_answered_times_out_and_the_server_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with one(bad("hangs-once", log, timeout=0.5)) as servers:
            record = await observe(servers.tools)
            assert record.status == "timeout"
            assert json.loads(content(record))["error"] == "tool_timeout"
            assert content(await observe(servers.tools, arguments={"text": "still alive"})) == "still alive"

    run(main())
    [call, _] = received(log, "tools/call")
    [cancelled] = received(log, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == call["id"]


def test_a_server_that_answers_nothing_any_more_is_found_out_before_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolturn.mcp.connection._PING", 0.2)

    async def main() -> None:
        async with one(bad("hangs-on-call", timeout=0.5)) as servers:
            assert (await observe(servers.tools)).status == "timeout"
            assert "is unavailable: it does not answer any more" in content(await observe(servers.tools))

    run(main())


def test_a_server_that_does_not_read_holds_nobody_longer_than_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.shared.jsonrpc_dispatcher._ABANDON_WRITE_TIMEOUT", 0.2)

    async def main() -> None:
        async with one(bad("deaf", timeout=0.3, close_timeout=0.2)) as servers:
            long = {"text": "x" * 200_000}
            for _ in range(2):
                async with asyncio.timeout(10):
                    record = await observe(servers.tools, arguments=long)
                assert record.status in ("timeout", "error")

    run(main())


def test_cancelling_the_turn_sends_the_cancel_of_the_protocol(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with one(bad("hangs-on-call", log)) as servers:
            task = asyncio.create_task(observe(servers.tools))
            await until(lambda: received(log, "tools/call"))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: received(log, "notifications/cancelled"))

    run(main())


def test_a_result_that_comes_after_its_call_was_given_up_is_nobodys() -> None:
    async def main() -> None:
        async with one(bad("answers-late", timeout=0.5)) as servers:
            assert (await observe(servers.tools)).status == "timeout"
            assert content(await observe(servers.tools, arguments={"text": "mine"})) == "mine"

    run(main())


# --- servers that talk rubbish ----------------------------------------------------------


def test_what_is_printed_to_standard_output_is_passed_over() -> None:
    record = run(called(bad("prints")))
    assert (content(record), record.status) == ("hi", "ok")


def test_a_flood_on_standard_error_holds_nobody() -> None:
    record = run(called(bad("complains")))
    assert (content(record), record.status) == ("hi", "ok")


def test_replies_to_others_are_passed_over() -> None:
    record = run(called(bad("wrong-ids", timeout=0.5)))
    assert record.status == "timeout"


def test_the_first_of_two_replies_counts() -> None:
    record = run(called(bad("answers-twice")))
    assert content(record) == "first hi"


def test_a_reply_that_can_not_be_read_fails_its_call_at_once() -> None:
    record = run(called(bad("null-result")))
    assert "the server sent a message that can not be read" in content(record)


@pytest.mark.parametrize("way", ["huge", "huge-id-last"])
def test_a_message_over_the_bound_fails_its_call_and_the_next_one_works(way: str) -> None:
    async def main() -> None:
        async with one(bad(f"{way}:2000000", max_bytes=100_000)) as servers:
            for _ in range(2):
                record = await observe(servers.tools)
                assert "the server sent a message of more than 100000 bytes" in content(record)
            assert servers.problems == ()

    run(main())


@pytest.mark.parametrize("way", ["huge", "huge-id-last"])
def test_a_hundred_megabytes_are_refused_without_being_kept(way: str) -> None:
    async def main() -> None:
        async with one(bad(f"{way}:100000000", timeout=15)) as servers:
            tracemalloc.start()
            record = await observe(servers.tools)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert "the server sent a message of more than 16000000 bytes" in content(record)
            assert peak < 120_000_000

    run(main())


def test_a_large_result_within_the_bound_is_cut_for_the_model() -> None:
    async def main() -> None:
        async with one(bad("huge:3000000")) as servers:
            record = await observe(servers.tools, limits=Limits(result_bytes=1000))
            assert record.status == "ok"
            assert len(content(record)) <= 1000

    run(main())


def test_a_refusal_without_a_text_is_still_something_to_read() -> None:
    assert "the MCP server 'box' refused the call: error -32000 without a text" in content(run(called(bad("error:"))))
    assert "refused the call: no such city" in content(run(called(bad("error:no such city"))))


def test_a_server_that_asks_for_something_is_refused_and_goes_on() -> None:
    assert content(run(called(bad("asks-back")))) == "hi"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ('{"content":[{"type":"video","data":"AAAA"},{"type":"text","text":"b"}]}', "[content of an unknown form, "),
        ('{"content":[{"type":"image"}]}', "[content of an unknown form, type 'image'"),
        ('{"content":"plain"}', "plain"),
        ('{"content":[]}', "null"),
        ("{}", "null"),
        ('{"content":null,"structuredContent":[1,2]}', "[1,2]"),
        ('{"task":{"taskId":"7","status":"working"}}', "without content, only task"),
    ],
)
def test_an_odd_result_is_shown_as_far_as_it_can_be(result: str, text: str) -> None:
    assert text in content(run(called(bad(f"result:{result}"))))


# --- progress and changes ---------------------------------------------------------------


def test_progress_is_told_as_events_and_lines_of_a_log_are_not() -> None:
    events: list[Event] = []

    async def main() -> None:
        async with one(bad("progress")) as servers:
            await observe(servers.tools, emit=events.append)

    run(main())
    assert progress_of(events) == [
        {"progress": 1.0, "total": 2.0, "message": "step 1"},
        {"progress": 2.0, "total": 2.0, "message": "step 2"},
    ]


def test_a_changed_list_is_in_the_next_set_and_a_turn_keeps_its_own() -> None:
    async def main() -> None:
        async with one(bad("changes-tools")) as servers:
            before = servers.tools
            assert content(await observe(before)) == "changed"
            await until(lambda: servers.tools.names == ("new",))
            assert before.names == ("echo", "other")

    run(main())


def test_refresh_asks_for_the_tools_anew_and_starts_what_does_not_run(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with one(bad("dies-on-call", log)) as servers:
            for _ in range(3):
                await observe(servers.tools)
            assert servers.problems
            await servers.refresh()
            assert servers.problems == ()
            assert servers.tools.names == ("echo", "other")

    run(main())
    assert len(received(log, "initialize")) == 3
