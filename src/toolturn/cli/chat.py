"""``toolturn chat``: a conversation from the command line."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

import click

from toolturn import ChatMessage, ChatModel, ToolSet
from toolturn.transcript import rough_tokens

from . import saved
from .chatting import Chat, Lines, converse
from .choose import (
    bounded,
    chosen,
    files_options,
    model_named,
    model_option,
    noting,
    on_limit_option,
    persona_option,
    tools_option,
)
from .mcp_option import mcp_option, with_mcp
from .slash import COMMANDS, Commands
from .talk import Talk, messages_in


@click.command()
@persona_option
@model_option
@tools_option
@files_options
@mcp_option
@click.option("--max-iterations", type=click.IntRange(min=1), help="Model calls a turn.  [default: 8]")
@click.option("--max-tool-calls", type=click.IntRange(min=0), help="Tool calls a turn.  [default: 16]")
@on_limit_option
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for each turn.")
@click.option("--system", help="The system message.")
@click.option("--messages", "messages_file", help="A JSON list of messages to start with, as /save writes it.")
@click.option("-q", "--quiet", is_flag=True, help="Show answers only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document for each line that is read.")
def chat(
    persona: str | None,
    model_name: str | None,
    tool_names: tuple[str, ...],
    files: tuple[str, ...],
    write_files: tuple[str, ...],
    mcp: tuple[str, ...],
    max_iterations: int | None,
    max_tool_calls: int | None,
    on_limit: Literal["answer", "raise"],
    timeout: float | None,
    system: str | None,
    messages_file: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Talk with a model that may use tools.

    Each message is one bounded turn. Ctrl-C stops it and the conversation goes on; Ctrl-D leaves, and so does Ctrl-C
    twice. /help lists the commands. Where standard input is no terminal each of its lines is a message or a command.

    Exit codes: 0, or where standard input is no terminal 1 when a turn ended without an answer; 2 wrong usage; 130
    interrupted.
    """
    talk = Talk(_start(messages_file))
    note = noting(quiet or as_json)
    with_ = chosen(persona, model_name, tool_names, system, files, write_files)
    for text in with_.notes:
        note(f"[persona] {text}")
    if with_.system is not None:
        talk.instruct(with_.system)
    with with_mcp(mcp, with_.tools, note, with_.servers, with_.server_names) as tools:
        talk.limit = _room(with_.window or with_.model.capabilities.window, tools)
        made = Chat(
            with_.model,
            with_.model_name,
            tools,
            limits=bounded(with_.limits, max_iterations, max_tool_calls, timeout),
            on_limit=on_limit,
            talk=talk,
            as_json=as_json,
            quiet=quiet,
            settings=with_.settings,
            concurrency=with_.concurrency,
            language=with_.language,
        )
        try:
            code = asyncio.run(_converse(made))
        except KeyboardInterrupt:  # before the first line was waited for
            code = 130
        sys.exit(code)


async def _converse(made: Chat) -> int:
    return await converse(made, _lines(made.as_json), Commands(lambda name: _model(name, made.tools)))


def _lines(as_json: bool) -> Lines:
    if sys.stdin is None:
        raise click.UsageError("standard input is closed; nothing can be said")
    shown = any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
    if sys.stdin.isatty() and shown and not as_json:
        try:
            from .typed import TypedLines
        except ImportError as exc:
            if exc.name != "prompt_toolkit":
                raise
            raise click.ClickException("chat at a terminal needs prompt_toolkit: pip install 'toolturn[cli]'") from None
        return TypedLines(saved.folder() / "chat-history", [*COMMANDS, "/quit"])
    from .piped import PipedLines

    return PipedLines(sys.stdin.fileno())


def _start(file: str | None) -> tuple[ChatMessage, ...]:
    if file is None:
        return ()
    if file == "-":
        raise click.UsageError("standard input is the conversation; give --messages a file")
    try:
        return messages_in(file)
    except ValueError as exc:
        raise click.ClickException(str(exc)) from None


def _model(name: str, tools: ToolSet) -> tuple[ChatModel, int | None]:
    """The model of a name, and the tokens of messages that it can be shown beside the tools, where that is known."""
    model = model_named(name)
    return model, _room(model.capabilities.window, tools)


def _room(window: int | None, tools: ToolSet) -> int | None:
    """Tokens of messages that fit into a window beside the tools and a reply."""
    if window is None:
        return None
    from toolturn.local.runtime import MAX_TOKENS

    reply = min(MAX_TOKENS, window // 4)
    offered = rough_tokens(ChatMessage("system", str([definition.to_openai() for definition in tools.definitions])))
    return max(0, window - reply - offered)
