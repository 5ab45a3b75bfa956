"""TurnSlot: a session has one running turn, and a new one ends the old one first."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
from typing import Any

import pytest
from pydantic import BaseModel

from toolturn import Tool, Turn, run_tool_loop
from toolturn.slot import TurnReplaced, TurnSlot
from toolturn.testing import ScriptedModel, calls
from toolturn.transcript import check

from .support import HELLO, Nothing, run


class Stage:
    """A turn that waits to be cancelled and does something about it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.may_end = asyncio.Event()

    async def cleanly(self) -> str:
        self.log.append(f"{self.name} begins")
        self.begun.set()
        try:
            await self.may_end.wait()
        finally:
            self.log.append(f"{self.name} ends")
        return self.name

    async def slowly(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
            await self.may_end.wait()
            self.log.append(f"{self.name} ends")
        return self.name

    async def refusing(self) -> str:
        self.begun.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
        return self.name


async def say(word: str, log: list[str] | None = None) -> str:
    if log is not None:
        log.append(word)
    return word


def test_a_turn_gives_its_result_or_its_error_and_leaves_nothing_of_its_session() -> None:
    async def fails() -> None:
        raise LookupError("no")

    async def main() -> None:
        slot = TurnSlot()
        assert await slot.run("a", say("hello")) == "hello"
        with pytest.raises(LookupError, match="no"):
            await slot.run("a", fails())
        await asyncio.sleep(0)
        assert slot.sessions == ()

    run(main())


def test_a_new_turn_begins_when_the_old_one_has_ended() -> None:
    async def main() -> None:
        log: list[str] = []
        slot = TurnSlot()
        old = Stage("old", log)
        first = asyncio.ensure_future(slot.run("a", old.slowly()))
        await old.begun.wait()
        second = asyncio.ensure_future(slot.run("a", say("new", log)))
        await old.cancelled.wait()
        await asyncio.sleep(0)
        assert log == []
        old.may_end.set()
        assert await second == "new"
        assert log == ["old ends", "new"]
        with pytest.raises(TurnReplaced, match="session 'a'") as caught:
            await first
        assert caught.value.session == "a"

    run(main())


def test_sessions_do_not_disturb_each_other() -> None:
    async def main() -> None:
        slot = TurnSlot()
        stages = [Stage(str(number), []) for number in range(200)]
        running = [asyncio.ensure_future(slot.run(number, stage.cleanly())) for number, stage in enumerate(stages)]
        for stage in stages:
            await stage.begun.wait()
        assert len(slot.sessions) == 200
        assert await slot.run(200, say("other")) == "other"
        for stage in stages:
            stage.may_end.set()
        assert await asyncio.gather(*running) == [str(number) for number in range(200)]
        await asyncio.sleep(0)
        assert slot.sessions == ()

    run(main())


@pytest.mark.parametrize("how", ["refusing", "slowly"])
def test_a_turn_that_does_not_end_within_the_grace_is_left_behind_and_told_of(how: str) -> None:
    async def main() -> None:
        told: list[tuple[Any, asyncio.Task[Any]]] = []
        slot = TurnSlot(grace=0.01, on_left=lambda session, task: told.append((session, task)))
        old = Stage("old", [])
        first = asyncio.ensure_future(slot.run("a", getattr(old, how)()))
        await old.begun.wait()
        assert await slot.run("a", say("new")) == "new"
        assert [session for session, _ in told] == ["a"]
        assert not told[0][1].done()
        assert slot.left == 1
        with pytest.raises(TurnReplaced):  # who waits for it is not held for ever
            await first
        assert await slot.run("a", say("newer")) == "newer"  # and nobody waits for it a second time
        assert len(told) == 1
        old.may_end.set()
        await asyncio.wait((told[0][1],))
        await asyncio.sleep(0)
        assert slot.left == 0

    run(main())


def test_where_nobody_asked_to_be_told_the_loop_is() -> None:
    async def main() -> None:
        about: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: about.append(context))
        slot = TurnSlot(grace=0)
        old = Stage("old", [])
        first = asyncio.ensure_future(slot.run("a", old.refusing()))
        await old.begun.wait()
        assert await slot.run("a", say("new")) == "new"
        assert "session 'a' did not end within 0 seconds" in about[0]["message"]
        old.may_end.set()
        await asyncio.wait((first, about[0]["task"]))
        assert isinstance(first.exception(), TurnReplaced)

    run(main())


def test_what_a_turn_raises_while_it_cleans_up_hinders_nobody() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def breaks() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                raise LookupError("in the cleanup")

        slot = TurnSlot()
        first = asyncio.ensure_future(slot.run("a", breaks()))
        await begun.wait()
        assert await slot.run("a", say("new")) == "new"
        with pytest.raises(TurnReplaced) as caught:
            await first
        assert isinstance(caught.value.__cause__, LookupError)

    run(main())


def test_an_answer_that_a_turn_gives_after_it_was_replaced_is_no_answer() -> None:
    async def main() -> None:
        old = Stage("old", [])
        slot = TurnSlot()
        first = asyncio.ensure_future(slot.run("a", old.refusing()))
        await old.begun.wait()
        second = asyncio.ensure_future(slot.run("a", say("new")))
        await old.cancelled.wait()
        old.may_end.set()
        assert await second == "new"
        with pytest.raises(TurnReplaced):
            await first

    run(main())


def test_of_turns_that_wait_only_the_newest_begins() -> None:
    async def main() -> None:
        log: list[str] = []
        slot = TurnSlot()
        old = Stage("old", log)
        first = asyncio.ensure_future(slot.run("a", old.slowly()))
        await old.begun.wait()
        waiting = [asyncio.ensure_future(slot.run("a", say(str(number), log))) for number in range(5)]
        await old.cancelled.wait()
        old.may_end.set()
        done = await asyncio.gather(first, *waiting, return_exceptions=True)
        assert log == ["old ends", "4"]
        assert [type(outcome) for outcome in done] == [*[TurnReplaced] * 5, str]

    run(main())


def test_a_cleanup_is_not_broken_off_by_a_second_turn() -> None:
    async def main() -> None:
        cancels: list[int] = []
        slot = TurnSlot()
        begun, cleaned, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def counts() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancels.append(1)
                cleaned.set()
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    cancels.append(2)
                raise

        first = asyncio.ensure_future(slot.run("a", counts()))
        await begun.wait()
        second = asyncio.ensure_future(slot.run("a", say("second")))
        await cleaned.wait()
        third = asyncio.ensure_future(slot.run("a", say("third")))
        await asyncio.sleep(0)
        may_end.set()
        assert await third == "third"
        assert cancels == [1]
        await asyncio.wait((first, second))
        assert isinstance(first.exception(), TurnReplaced)
        assert isinstance(second.exception(), TurnReplaced)

    run(main())


def test_who_waits_for_the_old_turn_can_be_cancelled() -> None:
    async def main() -> None:
        log: list[str] = []
        slot = TurnSlot()
        old = Stage("old", log)
        first = asyncio.ensure_future(slot.run("a", old.slowly()))
        await old.begun.wait()
        second = asyncio.ensure_future(slot.run("a", say("never", log)))
        await old.cancelled.wait()
        second.cancel()
        await asyncio.wait((second,))
        assert second.cancelled()
        old.may_end.set()
        await asyncio.wait((first,))
        assert isinstance(first.exception(), TurnReplaced)
        assert log == ["old ends"]
        await asyncio.sleep(0)
        assert slot.sessions == ()

    run(main())


def test_a_cancel_of_the_caller_cleans_the_turn_up() -> None:
    async def main() -> None:
        log: list[str] = []
        slot = TurnSlot()
        stage = Stage("it", log)
        caller = asyncio.ensure_future(slot.run("a", stage.cleanly()))
        await stage.begun.wait()
        caller.cancel()
        await asyncio.wait((caller,))
        assert caller.cancelled()
        assert log == ["it begins", "it ends"]
        await asyncio.sleep(0)
        assert slot.sessions == ()

    run(main())


def test_a_cancel_that_comes_before_the_turn_has_begun_leaves_no_coroutine_behind() -> None:
    async def main() -> None:
        slot = TurnSlot()
        caller = asyncio.ensure_future(slot.run("a", say("never")))
        await asyncio.sleep(0)  # the task is made and has not run
        caller.cancel()
        await asyncio.wait((caller,))
        assert caller.cancelled()
        gc.collect()  # a coroutine that was never awaited would warn now

    run(main())


def test_a_session_can_be_stopped() -> None:
    async def main() -> None:
        log: list[str] = []
        slot = TurnSlot()
        stage = Stage("it", log)
        caller = asyncio.ensure_future(slot.run("a", stage.cleanly()))
        await stage.begun.wait()
        assert await slot.stop("a") is True
        assert log == ["it begins", "it ends"]
        await asyncio.wait((caller,))
        assert isinstance(caller.exception(), TurnReplaced)
        assert await slot.stop("a") is False

    run(main())


def test_a_tool_may_stop_its_own_session() -> None:
    async def main() -> None:
        slot = TurnSlot()

        async def stops() -> str:
            await slot.stop("a")
            await asyncio.Event().wait()
            return "never"

        with pytest.raises(TurnReplaced):
            await slot.run("a", stops())

    run(main())


def test_a_turn_can_not_be_replaced_from_within_but_may_run_one_of_another_session() -> None:
    async def main() -> None:
        slot = TurnSlot()

        async def nests() -> str:
            with pytest.raises(RuntimeError, match="from within"):
                await slot.run("a", say("never"))
            return await slot.run("b", say("inner"))

        assert await slot.run("a", nests()) == "inner"

    run(main())


def test_closing_ends_all_sessions_at_once() -> None:
    async def main() -> None:
        stages = [Stage(str(number), []) for number in range(5)]
        async with TurnSlot() as slot:
            callers = [asyncio.ensure_future(slot.run(stage.name, stage.cleanly())) for stage in stages]
            for stage in stages:
                await stage.begun.wait()
        done = await asyncio.gather(*callers, return_exceptions=True)
        assert {type(outcome) for outcome in done} == {TurnReplaced}

    run(main())


def test_it_serves_one_event_loop_at_a_time() -> None:
    slot = TurnSlot()

    async def main() -> None:
        stage = Stage("it", [])
        caller = asyncio.ensure_future(slot.run("a", stage.cleanly()))
        await stage.begun.wait()
        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(slot.run("a", say("never"))))
        stage.may_end.set()
        assert await caller == "it"

    run(main())
    assert asyncio.run(slot.run("a", say("later"))) == "later"


def test_a_negative_grace_is_refused() -> None:
    for grace in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="grace must not be negative"):
            TurnSlot(grace=grace)


def test_the_error_can_be_copied_and_pickled() -> None:
    error = TurnReplaced("a")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(again), again.session) == (str(error), "a")


def test_the_transcript_of_a_turn_that_was_replaced_is_valid_and_its_handler_cleaned_up_first() -> None:
    class Request(BaseModel):
        pass

    async def main() -> None:
        log: list[str] = []
        begun = asyncio.Event()

        async def waits(request: Request) -> Nothing:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                log.append("cleaned up")
            return Nothing()

        async def answers(*_: object) -> Any:
            log.append("asked")
            return await ScriptedModel(["hello"]).complete(HELLO)

        slot = TurnSlot()
        turn = Turn()
        tool = Tool("wait", "Wait.", Request, Nothing, waits)
        model = ScriptedModel([calls(("1", "wait", "{}"))])
        first = asyncio.ensure_future(slot.run("a", run_tool_loop(HELLO, [tool], model, turn=turn)))
        await begun.wait()
        result = await slot.run("a", run_tool_loop(HELLO, [tool], answers))
        assert result.content == "hello"
        assert log == ["cleaned up", "asked"]
        await asyncio.wait((first,))
        assert isinstance(first.exception(), TurnReplaced)
        assert check(turn.messages) == []
        assert turn.messages[-1].role == "tool"

    run(main())
