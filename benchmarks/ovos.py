"""What the engines of toolturn cost in OpenVoiceOS, beside those of ovos-agentic-loop, and how soon they speak.

    python benchmarks/ovos.py           # half a minute
    python benchmarks/ovos.py --check   # exit code 1 when a bound is missed
    python benchmarks/ovos.py --json    # each measurement

It needs an environment that has ``toolturn[ovos,http]``, ovos-agentic-loop and ovos-openai-plugin.

A turn is five rounds of one call each and an answer, with the five tools of ovos-agentic-loop's own calculator and
clock. In it are: the engine, the tools, the specification of the tools, each request as the bytes of its body, each
reply from the bytes of its body. Not in it: a network, the HTTP clients, a model; replies are there at once. Ratios are
those of CPU time, of threads too, in one process on the calmest core, where all take turns; a figure is the median over
the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from process import allowed_cores, calmest_first, pin

from toolturn import Capabilities, ChatModel, ChatResponse, Delta, ToolCall
from toolturn.models.transport import HttpRequest, Timeouts
from toolturn.models.wires.openai_chat import OpenAIChat

_home = tempfile.TemporaryDirectory(prefix="toolturn-ovos-")
for _name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
    os.environ[_name] = _home.name  # nobody's own configuration is read

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ovos_openai_plugin.api as openai_api
    from ovos_agentic_loop.native_toolcall import NativeToolCallEngine as ReferenceEngine
    from ovos_agentic_loop.tools.clock import ClockToolBox
    from ovos_agentic_loop.tools.math import MathToolBox
    from ovos_openai_plugin.chat import OpenAIChatEngine
    from ovos_plugin_manager.templates.agent_tools import ToolBox
    from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine, MessageRole
    from ovos_plugin_manager.templates.agents import ToolCall as AgentToolCall
    from ovos_utils.log import LOG

    from toolturn.ovos import NativeToolCallEngine, ToolturnBrain

CALLS = 5
ANSWER = "That is all."
URL = "http://127.0.0.1:9/v1"
QUESTION = [AgentMessage(MessageRole.USER, "What do these come to?")]

OWN_BRAIN = 0.1
"""At most this part of the reference's CPU where ours asks with its own brain."""
SAME_BRAIN = 1.1
"""At most so many times the reference's CPU where both ask with the same brain."""
FIRST_SENTENCE = 0.010
"""Seconds from the character that proves the end of the first sentence until it is there to be spoken."""


# --- brains without a network ----------------------------------------------------------


# the id and the arguments of each call of a turn, and None for its answer
REPLIES: list[tuple[str, str] | None] = [
    *((f"call_{number}", json.dumps({"expression": f"{number} + 17"})) for number in range(CALLS)),
    None,
]


def body_of(reply: tuple[str, str] | None) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
    if reply is not None:
        function = {"name": "evaluate_expression", "arguments": reply[1]}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": reply[0], "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if reply is None else "tool_calls"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


class Posted:
    """What ``requests.post`` returns."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def raise_for_status(self) -> None:
        """Nothing is wrong."""

    def json(self) -> Any:
        return json.loads(self._body)


def openai_brain() -> OpenAIChatEngine:
    """The brain of ovos-openai-plugin over a ``requests.post`` that answers at once."""
    bodies = itertools.cycle(map(body_of, REPLIES))
    brain = OpenAIChatEngine({"api_url": f"{URL}/{next(_hosts)}", "key": "not-a-key", "model": "m"})
    post_of[brain.api.url] = lambda: Posted(next(bodies))
    return brain


post_of: dict[str, Callable[[], Posted]] = {}
_hosts = itertools.count(1)


def posted(url: str, **known: Any) -> Posted:
    """In the place of ``requests.post``; the body is JSON text already."""
    assert known["data"]
    return post_of[url]()


@dataclass
class Reply:
    """A reply of the transport below."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})

    async def read(self) -> bytes:
        return self.body

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self.body


class Canned:
    """A transport that answers at once."""

    def __init__(self) -> None:
        self._bodies = itertools.cycle(map(body_of, REPLIES))

    @asynccontextmanager
    async def send(self, request: HttpRequest, timeouts: Timeouts) -> AsyncIterator[Reply]:
        assert request.body
        yield Reply(next(self._bodies))

    async def aclose(self) -> None:
        """There is nothing to close."""


class Scripted(ChatEngine):  # type: ignore[misc]
    """A brain that replies at once.

    Args:
        asks: Make the specification of the tools for each reply, as brains do that talk to a server.
    """

    supports_tools = True

    def __init__(self, *, asks: bool) -> None:
        super().__init__({})
        self._asks = asks
        self._replies = itertools.cycle(REPLIES)

    def continue_chat(
        self,
        messages: Any,
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> AgentMessage:
        if self._asks:
            ToolBox.normalize_tools(tools)
        reply = next(self._replies)
        if reply is None:
            return AgentMessage(MessageRole.ASSISTANT, ANSWER)
        call = AgentToolCall(reply[0], "evaluate_expression", json.loads(reply[1]))
        return AgentMessage(MessageRole.ASSISTANT, "", tool_calls=[call])


# --- CPU of a turn ---------------------------------------------------------------------


def engine(cls: Any, brain: Any) -> Callable[[], None]:
    """Return what runs one turn."""
    made = cls({})
    made.load_toolboxes([MathToolBox(), ClockToolBox()])
    assert sum(len(box.tools) for box in made.toolboxes) == 5
    made.set_brain(brain)

    def turn() -> None:
        answer = made.continue_chat(QUESTION, lang="en-US", units="metric")
        assert answer.content == ANSWER, answer

    return turn


def contenders() -> dict[str, Callable[[], None]]:
    return {
        "reference, OpenAI brain": engine(ReferenceEngine, openai_brain()),
        "ours, our brain": engine(
            NativeToolCallEngine,
            ToolturnBrain(model=OpenAIChat("m", base_url=URL, api_key="not-a-key", transport=Canned())),
        ),
        "ours, OpenAI brain": engine(NativeToolCallEngine, openai_brain()),
        "reference, scripted brain": engine(ReferenceEngine, Scripted(asks=False)),
        "ours, scripted brain": engine(NativeToolCallEngine, Scripted(asks=False)),
        "reference, scripted brain that asks for the tools": engine(ReferenceEngine, Scripted(asks=True)),
        "ours, scripted brain that asks for the tools": engine(NativeToolCallEngine, Scripted(asks=True)),
    }


def cpu(rounds: int, turns: int) -> dict[str, list[float]]:
    """CPU seconds of a turn of each contender, by rounds."""
    by_name = contenders()
    taken: dict[str, list[float]] = {name: [] for name in by_name}
    for turn in by_name.values():
        for _ in range(3):
            turn()
    for _ in range(rounds):
        for name, turn in by_name.items():
            turn()  # the caches are those of this contender again
            began = time.process_time()
            for _ in range(turns):
                turn()
            taken[name].append((time.process_time() - began) / turns)
    return taken


def ratio(taken: dict[str, list[float]], ours: str, theirs: str) -> float:
    return median(a / b for a, b in zip(taken[ours], taken[theirs], strict=True))


# --- the first sentence ----------------------------------------------------------------

STORY = "It is ten past three. The next train leaves in a quarter of an hour from track four. Shall I wake you?"
PROOF = STORY.index("The next")
"""The first character of the second sentence: only now can it be known that the first has ended."""


class Speaker(ChatModel):
    """Calls a tool, then streams a text character by character and notes when it gave away the one that proves."""

    def __init__(self) -> None:
        self.proven = 0.0
        self._number = 0

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streaming=True, tools=True, tool_choice_none=True)

    async def complete(self, messages: Any, tools: Any = (), *, settings: Any = None) -> ChatResponse:
        raise NotImplementedError

    async def stream(self, messages: Any, tools: Any = (), *, settings: Any = None) -> AsyncIterator[Any]:
        if messages[-1].role == "user":
            self._number += 1
            call = ToolCall(f"c{self._number}", "evaluate_expression", '{"expression": "1 + 1"}')
            yield ChatResponse("", None, [call], "tool_calls")
            return
        for place, character in enumerate(STORY):
            await asyncio.sleep(0.0005)
            if place == PROOF:
                self.proven = time.perf_counter()
            yield Delta(character)
        yield ChatResponse(STORY, None, None, "stop")


class Teller(ChatEngine):  # type: ignore[misc]
    """A brain of another package that streams text and knows no tools."""

    def __init__(self) -> None:
        super().__init__({})
        self.proven = 0.0

    def continue_chat(self, messages: Any, *args: Any, **known: Any) -> AgentMessage:
        return AgentMessage(MessageRole.ASSISTANT, STORY)

    def stream_tokens(self, messages: Any, *args: Any, **known: Any) -> Iterator[str]:
        for place, character in enumerate(STORY):
            time.sleep(0.0005)
            if place == PROOF:
                self.proven = time.perf_counter()
            yield character


def first_sentence(speaker: Any, brain: Any, boxes: list[Any], repeats: int) -> list[float]:
    """Seconds from the character that proves the end of the first sentence until it comes out of the engine."""
    made = NativeToolCallEngine({})
    made.load_toolboxes(boxes)
    made.set_brain(brain)
    waits: list[float] = []
    for _ in range(repeats):
        spoken = made.stream_sentences(QUESTION, lang="en-US")
        first = next(spoken)
        waits.append(time.perf_counter() - speaker.proven)
        assert first.strip() == "It is ten past three.", first
        assert "".join([first, *spoken]) == STORY
    return waits


def sentences(repeats: int) -> dict[str, list[float]]:
    speaker, teller = Speaker(), Teller()
    return {
        "our brain, after a tool": first_sentence(
            speaker, ToolturnBrain(model=speaker), [MathToolBox(), ClockToolBox()], repeats
        ),
        "a text brain of another package": first_sentence(teller, teller, [], repeats),
    }


# --- the report ------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=10, help="of each contender in a round")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a bound is missed")
    parser.add_argument("--json", action="store_true", help="print what was measured")
    args = parser.parse_args()
    LOG.set_level("ERROR")
    pin(calmest_first(allowed_cores())[:1])
    openai_api.requests.post = posted
    taken = cpu(args.rounds, args.turns)
    waits = sentences(30)
    theirs = "reference, OpenAI brain"
    own, same = ratio(taken, "ours, our brain", theirs), ratio(taken, "ours, OpenAI brain", theirs)
    slowest = max(median(each) for each in waits.values())
    if args.json:
        print(json.dumps({"cpu": taken, "first_sentence": waits, "own_brain": own, "same_brain": same}, indent=1))
    else:
        print(f"CPU of a turn of {CALLS} calls with 5 tools, medians of {args.rounds} rounds of {args.turns} turns:")
        for name, values in taken.items():
            print(f"  {median(values) * 1e3:8.2f} ms  {name}")
        print(f"  {own:8.3f} ×   ours with our brain over {theirs} (at most {OWN_BRAIN})")
        print(f"  {same:8.3f} ×   ours with that brain over the same (at most {SAME_BRAIN})")
        for brain in ("scripted brain", "scripted brain that asks for the tools"):
            print(
                f"  {ratio(taken, f'ours, {brain}', f'reference, {brain}'):8.3f} ×   ours over the reference, {brain}"
            )
        print(f"From the proof of the first sentence's end until it is there (at most {FIRST_SENTENCE * 1e3:.0f} ms):")
        for name, values in waits.items():
            print(
                f"  {median(values) * 1e3:8.2f} ms  {name} (the slowest of {len(values)}: {max(values) * 1e3:.2f} ms)"
            )
    kept = own <= OWN_BRAIN and same <= SAME_BRAIN and slowest <= FIRST_SENTENCE
    if not kept:
        print("A bound is missed.", file=sys.stderr)
    return 1 if args.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
