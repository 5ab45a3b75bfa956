"""Coverage-guided fuzzing of what reads foreign input: ``python -m tests.fuzz``, a part of ``make nightly``.

Each target takes bytes and may raise its own typed error and nothing else. Reported inputs of ``tests/data`` are the
seeds. An input that breaks a target is written to a file, which ``python -m tests.fuzz TARGET FILE`` plays again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["toolturn.models", "toolturn.arguments", "toolturn.dialects"]):
    from toolturn.arguments import mend_arguments
    from toolturn.dialects.react_text import ReplyReader, read_reply
    from toolturn.errors import InvalidToolArguments, ModelError
    from toolturn.messages import ChatMessage, ChatResponse, ToolDef
    from toolturn.models.ingest import ingest
    from toolturn.models.ingest.names import KnownTools
    from toolturn.models.ingest.streamed import ShownText
    from toolturn.models.schema import UnusableTool, fit, profile_named
    from toolturn.models.sse import EventDecoder
    from toolturn.models.wires.openai_reply import UNREADABLE, parsed, read_body
    from toolturn.models.wires.openai_stream import Assembler

from toolturn.transcript import check
from toolturn.turn import Turn

DATA = Path(__file__).parents[1] / "data"
TOOLS = (
    ToolDef("ping", "ping", {"type": "object", "properties": {}}),
    ToolDef("get_temp", "", {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "array"}}}),
)


def arguments(data: bytes) -> None:
    try:
        made, _ = mend_arguments(data.decode("utf-8", "replace"))
    except InvalidToolArguments:
        return
    json.dumps(made, allow_nan=False)


def replies(data: bytes) -> None:
    body = parsed(data)
    if body is UNREADABLE:
        return
    try:
        response = read_body(body, "server", "", ("reasoning_content",))
    except ModelError:
        given: Any = body
        response = ChatResponse(given, given, given if isinstance(given, list) else None, given)
    _settled(response)


def _settled(response: ChatResponse) -> None:
    made = ingest(response, TOOLS, {"c1"})
    assert isinstance(made.content, str)
    assert ingest(made, TOOLS, {"c1"}).tool_calls == made.tool_calls
    turn = Turn("t")
    turn.begin([ChatMessage("user", "go")], TOOLS, {})
    turn.apply(turn.ops()[0], made)
    assert not check(list(turn.messages))
    Turn.from_json(turn.to_json())


def streams(data: bytes) -> None:
    if not data:
        return
    step = data[0] + 1
    decoder, assembler, shown = EventDecoder(), Assembler(("ping", "get_temp")), ShownText(tools=True)
    events = [event for at in range(1, len(data), step) for event in decoder.feed(data[at : at + step])]
    for event in events + decoder.close():
        for delta in assembler.feed(parsed(event.data)):
            shown.feed(delta.text)
    response = read_body(assembler.body(), "server", "", ())
    _settled(response)
    shown.rest(ingest(response, TOOLS, ()).content)


def schemas(data: bytes) -> None:
    schema = parsed(data)
    if schema is UNREADABLE:
        return
    for name in ("openai", "openai_strict", "anthropic", "gemini"):
        try:
            made = fit(ToolDef("tool", "", schema), profile_named(name))
        except UnusableTool:
            continue
        json.dumps(made.parameters, allow_nan=False)


def react(data: bytes) -> None:
    if not data:
        return
    step, hold = data[0] % 16 + 1, (0, 20, 200)[data[0] % 3]
    text = data[1:].decode("utf-8", "replace")
    reader = ReplyReader(KnownTools(TOOLS), hold=hold)
    shown = [delta for at in range(0, len(text), step) for delta in reader.feed(text[at : at + step])]
    reply, rest = reader.close()
    assert reply == read_reply(text, TOOLS, hold=hold)
    assert "".join(delta.text for delta in shown + rest if delta.kind == "text") == reply.text
    assert all(action.name.casefold()[:1] in text.casefold() for action in reply.actions)
    ChatResponse(reply.text, reply.thought)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "arguments": arguments,
    "replies": replies,
    "streams": streams,
    "schemas": schemas,
    "react": react,
}


def seeds(target: str) -> Iterator[bytes]:
    """Inputs to begin with."""
    for file in sorted(DATA.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            given = json.loads(line).get("input")
            if not isinstance(given, dict):
                continue
            if target == "react":
                for text in given.get("texts", ()):
                    yield b"\x04" + text.replace("search", "get_temp").replace('"q"', '"city"').encode()
            elif target == "streams":
                if "chunks" in given:
                    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in given["chunks"])
                    yield b"\x07" + events.encode() + b"data: [DONE]\n\n"
                elif "lines" in given:
                    yield b"\x07" + "\n".join(given["lines"]).encode()
            elif target == "schemas":
                if "schema" in given:
                    yield json.dumps(given["schema"]).encode()
            else:
                body = given.get("body")
                if target == "replies" and body is not None:
                    yield json.dumps(body).encode()
                for call in _calls(body) if target == "arguments" else ():
                    if isinstance(call, str):
                        yield call.encode("utf-8", "replace")


def _calls(body: Any) -> Iterator[Any]:
    try:
        for call in body["choices"][0]["message"]["tool_calls"]:
            yield call["function"]["arguments"]
    except (TypeError, KeyError, IndexError):
        return


def main() -> int:
    """Fuzz all targets, or one; or play one input again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", choices=list(TARGETS))
    parser.add_argument("file", nargs="?", type=Path, help="an input to play again")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    args = parser.parse_args()
    if args.file is not None:
        TARGETS[args.target](args.file.read_bytes())
        return 0
    if args.target is None:  # libFuzzer ends its process
        codes = [
            subprocess.run([sys.executable, "-m", "tests.fuzz", name, "--seconds", str(args.seconds)]).returncode
            for name in TARGETS
        ]
        return max(codes)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds(args.target)):
            Path(corpus, str(number)).write_bytes(seed)
        options = [f"-max_total_time={args.seconds}", "-max_len=4096", "-timeout=10", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *options, corpus], TARGETS[args.target])
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
