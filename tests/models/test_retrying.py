"""A server that could not serve is asked again, as long as nothing was handed on and the time it wants is short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolturn import ChatMessage, ChatModel, ChatResponse
from toolturn.errors import (
    ModelAuthenticationError,
    ModelContextError,
    ModelError,
    ModelOverloadedError,
    ModelProtocolError,
    ModelRateLimitError,
    ModelRequestError,
    ModelStreamError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from toolturn.model import Capabilities, Delta
from toolturn.models.wrappers.retrying import Retrying

USER = (ChatMessage("user", "go"),)


class Failing(ChatModel):
    """Fails in the given ways, one after the other, then replies."""

    def __init__(self, *failures: ModelError, after: str = "") -> None:
        self.failures = list(failures)
        self.asked = 0
        self.after = after

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True)

    async def complete(self, *args: Any, **kwargs: Any) -> ChatResponse:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return ChatResponse("done")

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.asked += 1
        if self.failures:
            if self.after:
                yield Delta(self.after)
            raise self.failures.pop(0)
        yield Delta("done")
        yield ChatResponse("done")


def ask(model: Failing, **options: Any) -> tuple[str, list[float]]:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    response = asyncio.run(Retrying(model, sleep=sleep, **options).complete(USER))
    return response.content, pauses


def watch(model: Failing) -> list[Any]:
    async def sleep(seconds: float) -> None:
        return None

    async def run() -> list[Any]:
        return [item async for item in Retrying(model, sleep=sleep).stream(USER)]

    return asyncio.run(run())


@pytest.mark.parametrize(
    "failure",
    [
        ModelRateLimitError("x", status=429),
        ModelOverloadedError("x", status=503),
        ModelTimeoutError("x"),
        ModelUnavailableError("refused the connection"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_passes_by_is_asked_again(failure: ModelError) -> None:
    assert ask(Failing(failure))[0] == "done"


@pytest.mark.parametrize(
    "failure",
    [
        ModelRequestError("x", status=400),
        ModelAuthenticationError("x", status=401),
        ModelContextError("x", status=400),
        ModelUnavailableError("no such model", status=404),
        ModelProtocolError("x"),
        ModelStreamError("x"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_stays_wrong_is_not_asked_again(failure: ModelError) -> None:
    model = Failing(failure)
    with pytest.raises(type(failure)):
        ask(model)
    assert model.asked == 1


def test_the_last_failure_is_raised_when_the_attempts_are_used_up() -> None:
    model = Failing(*(ModelOverloadedError(str(n)) for n in range(5)))
    with pytest.raises(ModelOverloadedError, match="2"):
        ask(model, attempts=3)
    assert model.asked == 3


def test_pauses_double_and_are_jittered() -> None:
    _, pauses = ask(Failing(*(ModelOverloadedError("x") for _ in range(4))), attempts=5, pause=1.0)
    assert len(pauses) == 4
    for pause, middle in zip(pauses, (1, 2, 4, 8), strict=True):
        assert 0.75 * middle <= pause <= 1.25 * middle


def test_a_wait_that_the_server_names_is_kept_to() -> None:
    assert ask(Failing(ModelRateLimitError("x", retry_after=7.0)))[1] == [7.0]


def test_a_wait_that_is_too_long_ends_the_attempts() -> None:
    with pytest.raises(ModelRateLimitError):
        ask(Failing(ModelRateLimitError("x", retry_after=3600.0)))


def test_a_stream_is_asked_for_again_while_nothing_was_handed_on() -> None:
    assert watch(Failing(ModelOverloadedError("x"))) == [Delta("done"), ChatResponse("done")]


def test_a_stream_is_not_asked_for_again_after_text_was_handed_on() -> None:
    model = Failing(ModelOverloadedError("x"), after="Par")
    with pytest.raises(ModelOverloadedError):
        watch(model)
    assert model.asked == 1


def test_a_cancel_ends_the_waiting() -> None:
    async def run() -> None:
        model = Failing(ModelRateLimitError("x", retry_after=50.0))
        async with asyncio.timeout(0.05):
            await Retrying(model).complete(USER)

    with pytest.raises(TimeoutError):
        asyncio.run(run())


def test_a_server_that_is_not_there_is_asked_twice_at_most() -> None:
    model = Failing(*(ModelUnavailableError("nobody there") for _ in range(5)))
    with pytest.raises(ModelUnavailableError):
        ask(model, attempts=5)
    assert model.asked == 2


def test_at_least_one_attempt_is_needed() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Retrying(Failing(), attempts=0)
