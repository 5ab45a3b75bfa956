"""Reported loops: what models do that never end, and how a turn ends all the same, in one piece and streamed."""

from __future__ import annotations

import builtins
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from toolturn import (
    ChatMessage,
    ChatResponse,
    Limits,
    ModelSettings,
    ToolCall,
    ToolDef,
    ToolLoopError,
    ToolLoopResult,
    Usage,
    resume,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.model import StreamItem
from toolturn.models import ingest
from toolturn.models.ingest import seen_ids
from toolturn.testing import ScriptedModel
from toolturn.tools.json_schema import SchemaTool, tool_from_schema
from toolturn.transcript import check

from .support import HELLO, outline, run

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "loop_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
IDS = [case["name"] for case in CASES]
ENDLESS = 60


class Mended(ScriptedModel):
    """Plays its script as a wire does, which mends each reply as it comes in."""

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        return ingest(await super().complete(messages, tools, settings=settings), tools, seen_ids(messages))

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        async for item in super().stream(messages, tools, settings=settings):
            yield ingest(item, tools, seen_ids(messages)) if isinstance(item, ChatResponse) else item


@dataclass
class Seen:
    """What came of a case."""

    model: ScriptedModel
    tools: list[SchemaTool]
    executed: list[str] = field(default_factory=list)
    end: ToolLoopResult | ToolLoopError | None = None


def reply_of(data: dict[str, Any]) -> ChatResponse:
    made = [ToolCall(*call) for call in data.get("calls", ())]
    usage = Usage(*data["usage"]) if "usage" in data else None
    return ChatResponse(data["content"] or "", None, made or None, data["finish_reason"], usage=usage)


def script_of(case: dict[str, Any]) -> Iterator[ChatResponse]:
    yield from map(reply_of, case["replies"])
    for _ in range(ENDLESS if case.get("repeat_last") else 0):
        yield reply_of(case["replies"][-1])


def tool_of(name: str, given: Any, seen: Seen) -> SchemaTool:
    """A tool that records its runs and gives what the case says."""
    told = given if isinstance(given, dict) else {}
    results = iter(told.get("returns", ()))

    def handle(arguments: dict[str, Any]) -> str:
        seen.executed.append(name)
        if "raises" in told:
            raise getattr(builtins, told["raises"])("no")
        return next(results) if "returns" in told else str(told.get("direct", "ok" if told else given))

    direct = "direct" in told
    return tool_from_schema(
        name, f"The tool {name}.", {"type": "object"}, handle, run_in_thread=False, return_direct=direct
    )


def begun(case: dict[str, Any], streaming: bool) -> tuple[Seen, dict[str, Any]]:
    seen = Seen(Mended(script_of(case), streaming=streaming), [])
    named = {name: "ok" for reply in case["replies"] for _, name, _ in reply.get("calls", ())}
    seen.tools = [tool_of(name, given, seen) for name, given in case.get("tools", named).items()]
    options: dict[str, Any] = {"tool_errors": "report", "limits": Limits(**case.get("limits", {}))}
    options |= {key: case[key] for key in ("on_limit", "nudges") if key in case}
    if "tool_choice" in case:
        options["settings"] = ModelSettings(tool_choice=case["tool_choice"])
    return seen, options


def at_once(case: dict[str, Any]) -> Seen:
    seen, options = begun(case, streaming=False)

    async def main() -> ToolLoopResult:
        return await run_tool_loop(HELLO, seen.tools, seen.model, turn_id="t", **options)

    try:
        seen.end = run(main())
    except ToolLoopError as exc:
        seen.end = exc
    return seen


def streamed(case: dict[str, Any]) -> Seen:
    seen, options = begun(case, streaming=True)

    async def main() -> ToolLoopResult:
        async with stream_tool_loop(HELLO, seen.tools, seen.model, turn_id="t", **options) as events:
            async for _ in events:
                pass
            return await events.result()

    try:
        seen.end = run(main())
    except ToolLoopError as exc:
        seen.end = exc
    return seen


@pytest.mark.parametrize(("case", "oracle"), [(case["input"], case["oracle"]) for case in CASES], ids=IDS)
@pytest.mark.parametrize("play", [at_once, streamed])
def test_a_reported_loop_ends_as_it_should(play: Any, case: dict[str, Any], oracle: dict[str, Any]) -> None:
    seen = play(case)
    end, model = seen.end, seen.model
    assert end is not None
    assert check(end.messages) == []
    assert [message for message in end.messages if message.role in ("user", "system")] == list(HELLO)
    assert ("answer" if isinstance(end, ToolLoopResult) else type(end).__name__) == oracle["exit"]
    if isinstance(end, ToolLoopResult):
        assert end.content == oracle["content"]
        assert end.limit == oracle.get("limit")
    elif "rejected_calls" in oracle:
        assert end.rejected_response is not None
        assert len(end.rejected_response.tool_calls or ()) == oracle["rejected_calls"]
    if "model_calls" in oracle:
        assert len(model.requests) == oracle["model_calls"]
    if "iterations" in oracle:
        assert end.iterations == oracle["iterations"]
    if "executed" in oracle:
        assert seen.executed == oracle["executed"]
    if "says" in oracle:
        assert oracle["says"] in str(end)
    if "hints" in oracle:
        observations = [str(message.content) for message in end.messages if message.role == "tool"]
        assert [n for n, text in enumerate(observations) if "times now" in text] == oracle["hints"]
    if "choices" in oracle:
        assert [None if one is None else one.tool_choice for one in model.settings] == oracle["choices"]
    assert len(model.requests) <= oracle.get("asked_at_most", ENDLESS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_reported_loop_ends_the_same_way_when_it_is_streamed(case: dict[str, Any]) -> None:
    one, other = at_once(case["input"]), streamed(case["input"])
    assert one.executed == other.executed
    if isinstance(one.end, ToolLoopResult):
        assert isinstance(other.end, ToolLoopResult)
        assert outline(one.end) == outline(other.end)
    else:
        assert other.end is not None
        assert (type(one.end), str(one.end)) == (type(other.end), str(other.end))
        assert one.end is not None
        assert one.end.messages == other.end.messages


@pytest.mark.parametrize("case", [case for case in CASES if "resumed" in case["oracle"]], ids=lambda case: case["name"])
def test_a_reported_loop_goes_on_from_its_limit(case: dict[str, Any]) -> None:
    wanted = case["oracle"]["resumed"]
    seen = at_once(case["input"])
    assert isinstance(seen.end, ToolLoopError)
    result = run(resume(seen.end, seen.tools, seen.model, limits=Limits(**wanted["limits"])))
    assert (result.content, seen.executed) == (wanted["content"], wanted["executed"])
    assert result.messages[: len(HELLO)] == HELLO
    assert isinstance(result.messages[-1], ChatMessage)
