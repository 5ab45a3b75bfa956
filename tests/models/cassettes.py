"""Recorded traffic of model providers, where it is at hand, played again to our wire; and the page about it.

The recordings are other projects' and are never kept in this repository. They are looked for in the folder that
``TOOLTURN_CASSETTES`` names, or in ``shared/cassettes`` beside the checkout or any folder above it.
``python -m tests.models.cassettes`` writes ``docs/cassettes.md``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolturn.errors import ModelError
from toolturn.messages import ChatMessage, ChatResponse, ToolDef
from toolturn.model import Delta, ModelSettings
from toolturn.models.transport import HttpReply, HttpRequest, Timeouts, Transport
from toolturn.models.transports import default_transport
from toolturn.models.wires.openai_chat import OpenAIChat

from .cassette_replies import EXPLAINED as REPLIES_EXPLAINED
from .cassette_replies import Reading, differences_of_replies, read
from .cassette_requests import EXPLAINED as REQUESTS_EXPLAINED
from .cassette_requests import asked, differences_of_requests
from .raw_server import Peer, RawServer, serving

PAGE = Path(__file__).parents[2] / "docs/cassettes.md"
KEY = "a-key-of-the-test"
Cut = int | str
CUTS: tuple[Cut, ...] = (1, 7, 4096, "random")

ALIKE = ("stream left out", "empty required", "strict in a schema", "title")
"""Differences in requests that make none to any server."""

# The recordings hold the path alone; the hosts are those of the projects that made them.
HOSTS = {
    "azure": "https://somewhere.services.ai.azure.com",
    "cerebras": "https://api.cerebras.ai",
    "deepseek": "https://api.deepseek.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "gpustack": "https://gpustack.example.com",
    "groq": "https://api.groq.com",
    "huggingface": "https://router.huggingface.co",
    "mistral": "https://api.mistral.ai",
    "ollama": "http://127.0.0.1:11434",
    "ollama-cloud": "https://ollama.com",
    "openai": "https://api.openai.com",
    "openrouter": "https://openrouter.ai",
    "snowflake": "https://somewhere.snowflakecomputing.com",
}


def find() -> Path | None:
    """The folder of the recordings, or None."""
    if named := os.environ.get("TOOLTURN_CASSETTES"):
        return Path(named)
    for parent in Path(__file__).resolve().parents:
        folder = parent / "shared" / "cassettes"
        if (folder / "manifest.json").exists():
            return folder
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """One recorded request and the reply to it."""

    file: str
    place: int
    provider: str
    path: str
    request: dict[str, Any]
    status: int
    content_type: str
    retry_after: str | None
    response: Any

    @property
    def name(self) -> str:
        return f"{self.file.removesuffix('.json')}-{self.place}"

    @property
    def url(self) -> str:
        return HOSTS[self.provider] + self.path

    @property
    def streams(self) -> bool:
        return bool(self.request.get("stream"))

    @property
    def body(self) -> bytes:
        return (self.response if isinstance(self.response, str) else json.dumps(self.response)).encode()


@cache
def exchanges() -> tuple[Exchange, ...]:
    """Every recorded exchange of OpenAI's chat completions, in the order of the recordings; none where they are not."""
    folder = find()
    if folder is None:
        return ()
    found = []
    for entry in json.loads((folder / "manifest.json").read_text()):
        cassette = json.loads((folder / entry["file"]).read_text())
        if not any(one["path"].endswith("/chat/completions") for one in cassette["exchanges"]):
            continue
        found += [
            Exchange(
                entry["file"],
                place,
                cassette["provider"],
                one["path"],
                one["request"],
                one["status"],
                one["content_type"],
                one.get("retry_after"),
                one["response"],
            )
            for place, one in enumerate(cassette["exchanges"])
        ]
    return tuple(found)


def before(exchange: Exchange) -> tuple[Exchange, ...]:
    """The exchanges of the same recording that came before."""
    return tuple(one for one in exchanges() if one.file == exchange.file and one.place < exchange.place)


# --- playing one again -----------------------------------------------------------------


def pieces_of(body: bytes, cut: Cut | None, seed: str) -> Iterator[bytes]:
    """A body in pieces of one size, or of sizes drawn from a seed."""
    if cut is None:
        yield body
        return
    draw = random.Random(seed)
    place = 0
    while place < len(body):
        size = cut if isinstance(cut, int) else draw.choice((1, 2, 3, 5, 17, 200, 1500))
        yield body[place : place + size]
        place += size


class Rerouted(Transport):
    """Sends what is meant for a provider to a server on loopback, over the real transport; keeps what was sent."""

    def __init__(self, server: RawServer, inner: Transport) -> None:
        self._server = server
        self._inner = inner
        self.sent: list[HttpRequest] = []

    @asynccontextmanager
    async def send(self, request: HttpRequest, timeouts: Timeouts) -> AsyncIterator[HttpReply]:
        self.sent.append(request)
        here = urlsplit(request.url)._replace(scheme="http", netloc=f"127.0.0.1:{self._server.port}").geturl()
        async with self._inner.send(replace(request, url=here), timeouts) as reply:
            yield reply

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True, slots=True)
class Played:
    """What came of an exchange: a response or an error, what people saw meanwhile, and the request that went out."""

    outcome: ChatResponse | ModelError
    deltas: tuple[Delta, ...]
    request: HttpRequest
    pieces: int

    @property
    def body(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.request.body)
        return made


@cache
def played(exchange: Exchange, cut: Cut | None = None) -> Played:
    """Ask as the recording asked, over loopback, with the replies before it as our wire read them."""
    earlier = [(one.request, played(one).outcome) for one in before(exchange)]
    responses = [outcome for _, outcome in earlier if isinstance(outcome, ChatResponse)]
    messages, tools, settings = asked(exchange.request, responses)
    return asyncio.run(_play(exchange, cut, messages, tools, settings))


async def _play(
    exchange: Exchange,
    cut: Cut | None,
    messages: tuple[ChatMessage, ...],
    tools: tuple[ToolDef, ...],
    settings: ModelSettings,
) -> Played:
    pieces = list(pieces_of(exchange.body, cut, exchange.name))

    async def script(peer: Peer) -> None:
        while await peer.request() is not None:
            head = [f"HTTP/1.1 {exchange.status} Recorded", f"content-type: {exchange.content_type}"]
            if exchange.retry_after is not None:
                head.append(f"retry-after: {exchange.retry_after}")
            await peer.send("\r\n".join([*head, "transfer-encoding: chunked", "", ""]).encode())
            for piece in pieces:
                await peer.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await peer.send(b"0\r\n\r\n")

    async with asyncio.timeout(30), serving(script) as server:
        transport = Rerouted(server, default_transport())
        key = None if exchange.url.startswith("http:") else KEY
        model = OpenAIChat(exchange.request["model"], base_url=exchange.url, api_key=key, transport=transport)
        deltas: list[Delta] = []
        outcome: ChatResponse | ModelError
        try:
            if exchange.streams:
                response: ChatResponse | None = None
                async for item in model.stream(messages, tools, settings=settings):
                    assert response is None, "something came after the response"
                    if isinstance(item, Delta):
                        deltas.append(item)
                    else:
                        response = item
                assert response is not None
                outcome = response
            else:
                outcome = await model.complete(messages, tools, settings=settings)
        except ModelError as error:
            outcome = error
        return Played(outcome, tuple(deltas), transport.sent[0], len(pieces))


def reading(exchange: Exchange) -> Reading:
    """What the recorded reply says, read without our wire."""
    return read(exchange.status, exchange.content_type, exchange.response)


def differences_of_reply(exchange: Exchange) -> list[str]:
    """In what our reading of the recorded reply differs, the error that it is included."""
    outcome = played(exchange).outcome
    said = reading(exchange)
    if isinstance(outcome, ChatResponse):
        if said.error is not None:
            return [f"{said.error.__name__} there and a reply here"]
        return list(differences_of_replies(said, outcome))
    if type(outcome) is not said.error:
        return [f"{said.error and said.error.__name__} there and {outcome!r} here"]
    told = []
    if said.words not in str(outcome) and said.words[:400] not in str(outcome):
        told.append(f"the words {said.words!r} are not in {str(outcome)!r}")
    if said.status is not None and outcome.status != said.status:
        told.append(f"status {said.status} there and {outcome.status} here")
    if outcome.retry_after != (None if exchange.retry_after is None else float(exchange.retry_after)):
        told.append(f"retry after {exchange.retry_after} there and {outcome.retry_after} here")
    if outcome.partial != said.text:
        told.append(f"{said.text!r:.200} had arrived, and {outcome.partial!r:.200} is told")
    return told


def differences_of_request(exchange: Exchange) -> list[str]:
    """In what the request that we make of the recorded one differs from it."""
    sent = played(exchange)
    found = [] if sent.request.url == exchange.url else [f"{exchange.url} there and {sent.request.url} here"]
    return [*found, *dict.fromkeys(differences_of_requests(exchange.request, sent.body))]


# --- the page --------------------------------------------------------------------------


def rows() -> Iterator[tuple[str, str, list[Exchange]]]:
    """Provider, plain or streamed, and the exchanges."""
    for provider in sorted({one.provider for one in exchanges()}):
        for streams in (False, True):
            found = [one for one in exchanges() if (one.provider, one.streams) == (provider, streams)]
            if found:
                yield provider, "stream" if streams else "plain", found


def _kinds(of: Iterable[list[str]]) -> str:
    counted = Counter(kind for found in of for kind in found)
    return ", ".join(f"{kind} {number}" for kind, number in sorted(counted.items())) or "none"


def page() -> str:
    """What ``docs/cassettes.md`` says."""
    lines = [_INTRODUCTION]
    lines += ["| provider | | exchanges | errors | replies equal | requests equal |", "|---|---|--:|--:|--:|--:|"]
    sums = Counter[str]()
    told = []
    for provider, kind, found in rows():
        replies = [differences_of_reply(one) for one in found]
        requests = [differences_of_request(one) for one in found]
        counts = {
            "exchanges": len(found),
            "errors": sum(reading(one).error is not None for one in found),
            "replies": sum(not one for one in replies),
            "requests": sum(not [kind for kind in one if kind not in ALIKE] for one in requests),
        }
        sums.update(counts)
        lines.append(f"| {provider} | {kind} | " + " | ".join(map(str, counts.values())) + " |")
        told.append(f"| {provider} | {kind} | {_kinds(replies)} | {_kinds(requests)} |")
    lines.append("| together | | " + " | ".join(map(str, sums.values())) + " |")
    lines += [_DIFFERENCES, "| provider | | in replies | in requests |", "|---|---|---|---|", *told]
    lines += ["", "## The kinds of differences", "", "In replies:", ""]
    lines += [f"- **{kind}**: {why}" for kind, why in REPLIES_EXPLAINED.items()]
    lines += ["", "In requests:", ""]
    lines += [f"- **{kind}**: {why}" for kind, why in REQUESTS_EXPLAINED.items()]
    return "\n".join(lines) + "\n"


_INTRODUCTION = """\
# Recorded traffic of providers, played again

Other projects keep recordings of their clients' traffic with model providers. Where such
recordings are at hand (`TOOLTURN_CASSETTES` names their folder; they are not part of this repository),
`tests/models/test_cassettes.py` plays every exchange over OpenAI's chat completions again:

- The recorded status, type and body come from a server on loopback, through the transport, the wire and the mending,
  and what comes out is compared with a reading of the recorded body in plain code: text, reasoning, calls with ids,
  names and parsed arguments, finish reason, tokens, or the error with its words, its status and the text before it.
  A stream comes whole, and again in pieces of 1, 7 and 4096 bytes and of random sizes: all give the same.
- The recorded request is put in our words, with the replies before it as we read them, and the request that we make
  of it for the same address is compared with the recorded one: messages, calls, tools, their schemas, settings.

`python -m tests.models.cassettes` writes this page; a test holds that it is up to date and that every difference is
of a kind that is explained below.

## Agreement

A request counts as equal where nothing differs but what says the same to every server: `stream: false` left out, an
empty `required` left out, `strict` as a keyword of a schema left out, the title of a schema left out.
"""

_DIFFERENCES = """
## Differences

How many exchanges of each row show which difference:
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
