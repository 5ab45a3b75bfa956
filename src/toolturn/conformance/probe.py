"""What a model can do, found out by a dozen short questions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from ..errors import ModelError, ModelTimeoutError
from ..messages import ChatMessage, ChatResponse, ToolCall, ToolDef, text_of
from ..model import ChatModel, Delta, ModelSettings

_SECONDS: Final = 180.0

_TEMP: Final = ToolDef(
    "get_temp",
    "Tell the temperature in a city, in degrees Celsius.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
_ORDER: Final = ToolDef(
    "order",
    "Order goods from a shop.",
    {
        "type": "object",
        "properties": {
            "goods": {"type": "array", "items": {"type": "string"}},
            "amount": {"type": "integer"},
            "express": {"type": "boolean"},
            "note": {"type": "string"},
        },
        "required": ["goods", "amount", "express", "note"],
    },
)
_FARO: Final = ChatMessage("user", "What is the temperature in Faro right now? Use the tool.")
_TWO: Final = ChatMessage(
    "user", "What is the temperature in Faro, and what is it in Braga? Ask for both cities at once, with the tool."
)
_SHOP: Final = ChatMessage(
    "user",
    'Order 3 boxes, each with tea and milk, by express. The note is: He said "knock twice", then leave. Use the tool.',
)
_PLAIN: Final = ChatMessage("user", "Reply with the one word: ready")
_ALPHABET: Final = ChatMessage("user", "Write the numbers from 1 to 200 in words.")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about a model.

    Args:
        name: What it is about.
        says: What was found.
    """

    name: str
    says: str


class _Probe:
    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._reasons: dict[str, None] = {}
        self._calls: list[tuple[ToolCall, ChatResponse]] = []

    async def _ask(self, messages: list[ChatMessage], tools: tuple[ToolDef, ...] = (), **settings: Any) -> ChatResponse:
        chosen = ModelSettings(temperature=0.0, **settings)
        try:
            async with asyncio.timeout(_SECONDS):
                return self._kept(await self._model.complete(tuple(messages), tools, settings=chosen))
        except TimeoutError:
            raise _late() from None

    def _kept(self, response: ChatResponse) -> ChatResponse:
        self._reasons[str(response.finish_reason)] = None
        self._calls += [(call, response) for call in response.tool_calls or ()]
        return response

    async def _streamed(
        self, message: ChatMessage, tools: tuple[ToolDef, ...] = ()
    ) -> tuple[list[float], ChatResponse | None]:
        """The moments at which text came, and the reply."""
        began = perf_counter()
        moments, response = [], None
        try:
            async with asyncio.timeout(_SECONDS):
                async for item in self._model.stream((message,), tools, settings=ModelSettings(temperature=0.0)):
                    if isinstance(item, Delta):
                        moments.append(perf_counter() - began)
                    else:
                        response = self._kept(item)
        except TimeoutError:
            raise _late() from None
        return moments, response

    async def answers(self) -> str:
        began = perf_counter()
        response = await self._ask([_PLAIN])
        text = text_of(response.content).strip()
        usage = response.usage
        told = f"{usage.input} tokens in, {usage.output} out" if usage else "no usage told"
        if not text:
            return f"an empty reply after {perf_counter() - began:.1f} s"
        return f"yes, {_short(text)} after {perf_counter() - began:.1f} s; {told}"

    async def tools(self) -> str:
        response = await self._ask([_FARO], (_TEMP,))
        calls = response.tool_calls or []
        if not calls:
            return f"no call when asked for one; it said {_short(text_of(response.content))}"
        mends = ", ".join(dict.fromkeys(repair.kind for repair in response.repairs))
        return f"yes, {_told(calls[0])}" + (f"; mended: {mends}" if mends else "")

    async def arguments(self) -> str:
        calls = (await self._ask([_SHOP], (_ORDER,))).tool_calls or []
        if not calls:
            return "no call of a tool with four parameters"
        try:
            given = json.loads(calls[0].arguments)
        except (ValueError, TypeError):
            return f"no valid JSON: {_short(str(calls[0].arguments))}"
        wanted = {"goods": list, "amount": int, "express": bool, "note": str}
        if not isinstance(given, dict):
            return "no JSON object"
        wrong = [name for name, kind in wanted.items() if type(given.get(name)) is not kind]
        wrong += [name for name in given if name not in wanted]
        if wrong:
            return f"valid JSON; missing, made up or of the wrong type: {', '.join(wrong)}"
        exact = given["amount"] == 3 and given["express"] and '"knock twice"' in given["note"]
        return "valid JSON with all four of the right type, " + (
            "as they were said" if exact else "not all as they were said"
        )

    async def parallel(self) -> str:
        calls = (await self._ask([_TWO], (_TEMP,))).tool_calls or []
        cities = {str(call.arguments) for call in calls}
        if len(calls) >= 2 and len(cities) >= 2:
            return f"yes, {len(calls)} in one reply"
        return f"no, {len(calls)} where two were asked for"

    async def results(self) -> str:
        call = ToolCall("call_probe_1", "get_temp", '{"city": "Faro"}')
        messages = [_FARO, ChatMessage("assistant", "", [call]), ChatMessage("tool", "27.4", None, call.id)]
        response = await self._ask(messages, (_TEMP,))
        if response.tool_calls:
            return "no, it calls again though the result is there"
        text = text_of(response.content).strip()
        return f"yes, {_short(text)}" if "27.4" in text or "27,4" in text else f"no, it says {_short(text)}"

    async def choice(self) -> str:
        found = []
        quiet = await self._ask([_FARO], (_TEMP,), tool_choice="none")
        found.append("none is kept" if not quiet.tool_calls else "none is not kept")
        forced = await self._ask([_PLAIN], (_TEMP,), tool_choice="required")
        found.append("required is kept" if forced.tool_calls else "required is not kept")
        free = await self._ask([_PLAIN], (_TEMP,))
        found.append("no call where none is needed" if not free.tool_calls else "calls where none is needed")
        return ", ".join(found)

    async def finish(self) -> str:
        cut = await self._ask([_ALPHABET], max_tokens=5)
        told = f"cut off at 5 tokens: {cut.finish_reason}"
        return f"{', '.join(self._reasons)}; {told}"

    async def streamed_text(self) -> str:
        moments, response = await self._streamed(ChatMessage("user", "Write the numbers from 1 to 20 in words."))
        if response is None:
            return "the stream ended without a reply"
        if len(moments) < 2:
            return f"no, {len(moments)} pieces"
        return f"{len(moments)} pieces, the first after {moments[0]:.1f} s, the last after {moments[-1]:.1f} s"

    async def streamed_calls(self) -> str:
        _, response = await self._streamed(_FARO, (_TEMP,))
        calls = (response.tool_calls if response else None) or []
        return f"yes, {_told(calls[0])}" if calls else "no call where one was asked for"

    async def ids(self) -> str:
        if not self._calls:
            return "no call was seen"
        made_up = [call for call, response in self._calls if any("id" in repair.kind for repair in response.repairs)]
        names = [call.id for call, _ in self._calls]
        again = len(names) - len(set(names))
        kept = f"{len(names) - len(made_up)} of {len(names)} calls came with one of their own"
        return f"{kept}, such as {_short(str(names[0]))}" + (f"; {again} came again" if again else "")


_QUESTIONS: Final = (
    ("tools", _Probe.tools, True),
    ("arguments", _Probe.arguments, True),
    ("parallel calls", _Probe.parallel, True),
    ("tool results", _Probe.results, True),
    ("tool choice", _Probe.choice, True),
    ("streamed text", _Probe.streamed_text, False),
    ("streamed calls", _Probe.streamed_calls, True),
    ("ids", _Probe.ids, True),
    ("finish reasons", _Probe.finish, False),
)


async def probe(model: ChatModel, told: Callable[[Finding], None] | None = None) -> list[Finding]:
    """Return in ten lines what a model can do.

    Args:
        model: The model; it is asked about a dozen short questions, one after the other.
        told: Is told each finding as soon as it is made.

    Raises:
        ModelError: It can not be asked at all; a question that only it fails at is told in its line.
    """
    asking = _Probe(model)
    found: list[Finding] = []

    def tell(finding: Finding) -> None:
        found.append(finding)
        if told is not None:
            told(finding)

    tell(Finding("answers", await asking.answers()))
    for name, question, needs_tools in _QUESTIONS:
        if needs_tools and not model.capabilities.tools:
            tell(Finding(name, "it calls no tools by itself; a dialect has to"))
        elif name.startswith("streamed") and not model.capabilities.streaming:
            tell(Finding(name, "no, replies come whole"))
        else:
            tell(await _asked(name, question, asking))
    return found


async def _asked(name: str, question: Callable[[_Probe], Awaitable[str]], asking: _Probe) -> Finding:
    try:
        return Finding(name, await question(asking))
    except ModelError as exc:
        return Finding(name, f"failed: {exc}")


def _late() -> ModelTimeoutError:
    return ModelTimeoutError(f"no reply within {_SECONDS:g} s")


def _told(call: ToolCall) -> str:
    return f"{call.name}({_short(str(call.arguments))})"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:58]}…"
