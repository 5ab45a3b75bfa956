"""Bugs that the tests of the whole turn found, each as small as it can be shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from toolturn import Capabilities, ChatMessage, ChatModel, ChatResponse, ModelSettings, ToolDef, Turn, run_tool_loop
from toolturn.loop import reopened
from toolturn.model import StreamItem
from toolturn.testing import ScriptedModel, calls

from ..core.parts import begun, error_of
from .support import HELLO, Nothing, tool_of
from .whole_turn_clock import run_virtual


class Streaming(ChatModel):
    """A model that streams and never replies."""

    closed = False

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, tools=True)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        raise NotImplementedError

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        try:
            try:
                await asyncio.sleep(1000)
            finally:
                await self.cleans_up()
            yield ChatResponse("")
        finally:
            self.closed = True

    async def cleans_up(self) -> None:
        await asyncio.sleep(1000)


async def _cancelled(model: ChatModel) -> None:
    task = asyncio.ensure_future(run_tool_loop(HELLO, [], model, emit=lambda _: None, grace=1.0))
    await asyncio.sleep(1)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_a_stream_that_cleans_up_for_longer_than_its_grace_is_closed_and_nothing_complains() -> None:
    model = Streaming()
    run_virtual(_cancelled(model))
    assert model.closed


def test_a_call_that_was_cut_short_is_told_as_such_when_the_turn_is_stopped_before_it_runs_again() -> None:
    turn = Turn()

    async def main() -> None:
        async def handler(request: Nothing) -> None:
            await asyncio.sleep(1000)

        tools = [tool_of(handler, effect="none")]
        model = ScriptedModel([calls(("act", "{}"))])
        task = asyncio.ensure_future(run_tool_loop(HELLO, tools, model, turn=turn))
        await asyncio.sleep(1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert [record.status for record in turn.records] == ["cancelled"]
        reopened(turn, tools)
        turn.cancel()

    run_virtual(main())
    assert [record.status for record in turn.records] == ["outcome_unknown"]


def test_time_that_is_added_after_the_end_stands_in_the_state_of_an_error_that_was_looked_at_before() -> None:
    turn = begun()
    turn.cancel()
    assert turn.exit is not None
    turn.tick(2.0)
    assert Turn.from_json(error_of(turn).state or "") == turn
