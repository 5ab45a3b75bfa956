"""What a model can do, in ten lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from toolturn import ChatMessage, ChatModel, ChatResponse, ModelSettings, ModelUnavailableError, ToolDef
from toolturn.conformance.probe import Finding, probe
from toolturn.model import Capabilities, StreamItem
from toolturn.models.named import model_named

from .pretend import pretend


def probed(model: ChatModel) -> dict[str, Finding]:
    findings = asyncio.run(probe(model))
    assert len(findings) == 10
    return {finding.name: finding for finding in findings}


def test_a_good_model_gets_ten_good_lines() -> None:
    with pretend() as url:
        found = probed(model_named(f"{url}#good"))
    assert not [finding for finding in found.values() if finding.says.startswith("failed")]
    assert found["answers"].says.startswith("yes, ready after ")
    assert found["answers"].says.endswith("; 9 tokens in, 5 out")
    assert found["tools"].says == 'yes, get_temp({"city": "Faro"})'
    assert found["arguments"].says == "valid JSON with all four of the right type, as they were said"
    assert found["parallel calls"].says == "yes, 2 in one reply"
    assert found["tool results"].says == "yes, It is 27.4 degrees."
    assert found["tool choice"].says == "none is kept, required is kept, no call where none is needed"
    assert "pieces, the first after" in found["streamed text"].says
    assert found["streamed calls"].says == 'yes, get_temp({"city": "Faro"})'
    assert found["ids"].says.endswith("calls came with one of their own, such as call_1")
    assert found["finish reasons"].says == "stop, tool_calls, length; cut off at 5 tokens: length"


class _Mute(ChatModel):
    """A model that says always the same, and calls nothing."""

    def __init__(self, text: str, *, tools: bool = True, fails: bool = False) -> None:
        self._text, self._tools, self._fails = text, tools, fails

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=self._tools, tools=self._tools)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        if self._fails:
            raise ModelUnavailableError("nobody is there")
        return ChatResponse(self._text, finish_reason="stop")

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        yield await self.complete(messages, tools, settings=settings)


def test_a_model_that_only_talks_is_told_as_one() -> None:
    found = probed(_Mute("Sure thing!"))
    assert found["tools"].says == "no call when asked for one; it said Sure thing!"
    assert found["parallel calls"].says == "no, 0 where two were asked for"
    assert found["tool choice"].says == "none is kept, required is not kept, no call where none is needed"
    assert found["tool results"].says == "no, it says Sure thing!"
    assert found["streamed text"].says == "no, 0 pieces"
    assert found["ids"].says == "no call was seen"


def test_a_model_that_says_nothing_is_told_as_one() -> None:
    assert probed(_Mute(""))["answers"].says.startswith("an empty reply after ")


def test_a_model_without_tools_is_not_asked_for_them() -> None:
    found = probed(_Mute("Hello.", tools=False))
    assert found["tools"].says == "it calls no tools by itself; a dialect has to"
    assert found["streamed text"].says == "no, replies come whole"


class _Once(_Mute):
    """A model that replies to the first question alone."""

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        response = await super().complete(messages, tools, settings=settings)
        self._fails = True
        return response


def test_a_question_at_which_the_model_fails_is_told_in_its_line() -> None:
    found = probed(_Once("Hello."))
    assert found["answers"].says.startswith("yes, Hello.")
    failed = [name for name, finding in found.items() if finding.says == "failed: nobody is there"]
    assert failed == [name for name in found if name not in ("answers", "ids")]


def test_a_model_that_can_not_be_asked_is_one_error() -> None:
    with pytest.raises(ModelUnavailableError, match="nobody is there"):
        probed(_Mute("", fails=True))
