"""How soon a turn reacts: control after a cancel, a sentence after its last character, the end of a generation.

    python benchmarks/reaction.py             # the figures of one process, ten seconds
    python benchmarks/reaction.py --local     # of the embedded model too, where its weights are
    python benchmarks/reaction.py --json      # each measurement

As a load of ``run.py`` it is ``reaction``, and with the embedded model ``reaction_local``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from statistics import median
from typing import Any

from pydantic import BaseModel

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ModelSettings,
    Tool,
    ToolCall,
    ToolLoopCancelledError,
    Turn,
    run_tool_loop,
    stream_tool_loop,
)
from toolturn.events import Text
from toolturn.speech import sentences

HELLO = (ChatMessage("user", "hello"),)
STORY = "It is ten past three. The next train leaves at 3.15 p.m. from track 4! Shall I wake you? Good. " * 5
Row = dict[str, Any]
Ready = Callable[[], Any]


class Nothing(BaseModel):
    pass


# --- cancelled turns -------------------------------------------------------------------


async def cancelled(start: Callable[[Ready], Awaitable[Any]], turn: Turn | None = None) -> float:
    """Cancel what was started as soon as it says that it is ready, and return the seconds until it has ended.

    Args:
        start: Runs the turn and calls what it is given when it hangs where it is to be cancelled.
        turn: One to cancel by itself; the task where None.
    """
    ready = asyncio.Event()
    task = asyncio.ensure_future(start(ready.set))
    await asyncio.wait_for(ready.wait(), 30)
    await asyncio.sleep(0.002)  # so that everybody waits
    began = time.perf_counter()
    if turn is None:
        task.cancel()
    else:
        turn.cancel("the user said stop")
    with contextlib.suppress(asyncio.CancelledError, ToolLoopCancelledError):
        await task
    return time.perf_counter() - began


def in_a_tool(turn: Turn | None = None, calls: int = 1) -> Callable[[Ready], Awaitable[Any]]:
    async def start(ready: Ready) -> None:
        running = 0

        async def handler(request: Nothing) -> None:
            nonlocal running
            running += 1
            if running == calls:
                ready()
            await asyncio.Event().wait()

        async def model(messages: Any, tools: Any) -> ChatResponse:
            return ChatResponse("", None, [ToolCall(f"c{n}", "wait", "{}") for n in range(calls)], "tool_calls")

        tool = Tool("wait", "It waits.", Nothing, None, handler, parallel=True)
        await run_tool_loop(HELLO, [tool], model, concurrency=calls, turn=turn)

    return start


async def hanging_server(hangs_after: bytes, ready: list[Ready]) -> tuple[asyncio.Server, str]:
    """A server on loopback that stops within its reply and says so."""
    open_ones: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                await reader.readexactly(length)
                writer.write(hangs_after)
                await writer.drain()
                ready[-1]()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


EVENT = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"One moment"}}]}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (
    len(EVENT),
    EVENT,
)


async def over_http(hangs_after: bytes, repeats: int) -> list[float]:
    from toolturn.models.wires.openai_chat import OpenAIChat

    ready: list[Ready] = []
    server, url = await hanging_server(hangs_after, ready)
    model = OpenAIChat("m", base_url=url, api_key="not-a-key")
    took = []
    for _ in range(repeats):

        async def start(told: Ready) -> None:
            if hangs_after:  # ready as soon as the text has come through
                ready.append(lambda: None)

                def emit(event: object) -> None:
                    if isinstance(event, Text):
                        told()

                await run_tool_loop(HELLO, [], model, emit=emit)
            else:
                ready.append(told)
                await run_tool_loop(HELLO, [], model)

        took.append(await cancelled(start))
    server.close()
    return took


# --- sentences -------------------------------------------------------------------------


class Speaker(ChatModel):
    """Streams a text character by character and notes when each of them was given away."""

    def __init__(self) -> None:
        self.sent: list[float] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, tools=True)

    async def complete(self, messages: Any, tools: Any = (), *, settings: Any = None) -> ChatResponse:
        raise NotImplementedError

    async def stream(
        self, messages: Any, tools: Any = (), *, settings: ModelSettings | None = None
    ) -> AsyncIterator[Delta | ChatResponse]:
        for character in STORY:
            await asyncio.sleep(0.0005)
            self.sent.append(time.perf_counter())
            yield Delta(character)
        yield ChatResponse(STORY, None, None, "stop")


async def spoken() -> list[float]:
    """Seconds from the last character that was given away to each sentence that came of it."""
    model, waits = Speaker(), []
    tool = Tool("wait", "It waits.", Nothing, None, lambda request: None)
    async with stream_tool_loop(HELLO, [tool], model) as events:
        async for _ in sentences(events, preamble="speak", language="en"):
            waits += [time.perf_counter() - model.sent[-1]]
    return waits


# --- calls beside each other -----------------------------------------------------------


async def turn_of(calls: int, seconds: float = 0.05) -> float:
    """Wall seconds of a turn whose one reply makes so many calls of this length."""

    async def handler(request: Nothing) -> None:
        await asyncio.sleep(seconds)

    async def model(messages: Any, tools: Any) -> ChatResponse:
        if messages[-1].role == "tool":
            return ChatResponse("done", None, None, "stop")
        return ChatResponse("", None, [ToolCall(f"c{n}", "wait", "{}") for n in range(calls)], "tool_calls")

    tool = Tool("wait", "It waits.", Nothing, None, handler, parallel=True)
    began = time.perf_counter()
    await run_tool_loop(HELLO, [tool], model, concurrency=8)
    return time.perf_counter() - began


# --- the embedded model ----------------------------------------------------------------


async def embedded(context: int) -> tuple[Any, Callable[[], Row]]:
    """The embedded model, and what its runtime says of its one place; tokens it has made count as its prompt's."""
    from toolturn.local import runtime
    from toolturn.local.weights import find

    model = runtime.LocalModel(find(), context=context)
    await model.load()
    (loaded,) = runtime._loaded.values()
    states = loaded._states

    def slot() -> Row:
        request = urllib.request.Request(f"{states._address}/slots", headers={"Authorization": f"Bearer {states._key}"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=90) as answer:
            return json.load(answer)[0]

    return model, slot


async def ended(slot: Callable[[], Row]) -> Row:
    while (now := await asyncio.to_thread(slot))["is_processing"]:  # noqa: ASYNC110 - nobody tells of its end
        await asyncio.sleep(0.005)
    return now


async def reading(tokens: int) -> Row:
    """Cancel while a prompt of so many tokens is read: seconds until the caller is free, and tokens that were read."""
    model, slot = await embedded(2048)

    async def start(ready: Ready) -> None:
        asyncio.get_running_loop().call_later(0.3, ready)
        await run_tool_loop((ChatMessage("user", "word " * tokens),), [], model)

    seconds = await cancelled(start)
    return {"kind": "reading", "seconds": seconds, "read": (await ended(slot))["n_prompt_tokens"]}


async def generation(repeats: int) -> list[Row]:
    """Cancel real generations: seconds until the caller is free, and tokens that were still made."""
    model, slot = await embedded(1024)
    question = (ChatMessage("user", "Count from 1 to 500 in words."),)
    first = await model.complete(question, settings=ModelSettings(max_tokens=1))
    prompt = first.usage.input
    rows = []
    for number in range(repeats):
        heard = 0

        async def start(ready: Ready, after: int = 5 + number) -> None:
            nonlocal heard

            def emit(event: object) -> None:
                nonlocal heard
                if isinstance(event, Text):
                    heard += 1
                    if heard == after:
                        ready()

            await run_tool_loop(question, [], model, emit=emit)

        seconds = await cancelled(start)
        at_cancel = heard
        # the last token it made is one it has not read yet, and so not counted
        made = (await ended(slot))["n_prompt_tokens"] - prompt + 1
        rows.append({"kind": "generation", "seconds": seconds, "tokens_after": made - at_cancel})
    return [*rows, {"kind": "generation_worst", "tokens_after": max(row["tokens_after"] for row in rows)}]


# --- all of it -------------------------------------------------------------------------


async def measured(repeats: int) -> list[Row]:
    """Measure everything that needs no weights."""
    took: dict[str, list[float]] = {"tool": [], "tools": [], "cooperative": []}
    for _ in range(repeats):
        took["tool"].append(await cancelled(in_a_tool()))
        took["tools"].append(await cancelled(in_a_tool(calls=8)))
        turn = Turn()
        took["cooperative"].append(await cancelled(in_a_tool(turn), turn))
    took["request"] = await over_http(b"", repeats)
    took["stream"] = await over_http(STREAM, repeats)
    took["sentence"] = await spoken()
    rows = [{"kind": kind, "seconds": seconds} for kind, values in took.items() for seconds in values]
    rows.append({"kind": "sentence_worst", "seconds": max(took["sentence"])})
    # the quickest of each: what other programs do at that moment is none of this
    times = [(await turn_of(1), await turn_of(8)) for _ in range(max(4, repeats // 5))]
    one, eight = (min(column) for column in zip(*times, strict=True))
    rows.append({"kind": "beside", "ratio": eight / one, "one": one, "eight": eight})
    return rows


def main() -> None:
    rows = asyncio.run(measured(30))
    if "--local" in sys.argv:
        rows += asyncio.run(generation(10))
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for key, scale, unit in (("seconds", 1e3, "ms"), ("ratio", 1, "times"), ("tokens_after", 1, "tokens after")):
            values = [row[key] * scale for row in rows if row["kind"] == kind and key in row]
            if values:
                print(f"{kind:16} median {median(values):.2f}, at most {max(values):.2f} {unit}, of {len(values)}")


if __name__ == "__main__":
    main()
