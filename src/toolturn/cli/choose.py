"""A model and tools from what a user typed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from toolturn.model import ChatModel
from toolturn.tools import ToolSet

DEFAULT_MODEL = "local"

# options of every command that begins a turn
model_option = click.option(
    "--model",
    "model_name",
    default=DEFAULT_MODEL,
    show_default=True,
    help="'local' for the embedded model, the path of a GGUF file, a model of a server such as 'ollama:qwen3' or "
    "'openai:gpt-5', or 'http://127.0.0.1:8080/v1#model'.",
)
tools_option = click.option(
    "--tools", "tool_names", multiple=True, help="Toolboxes, with commas; 'none' for none.  [default: all]"
)
on_limit_option = click.option(
    "--on-limit",
    type=click.Choice(["answer", "raise"]),
    default="answer",
    show_default=True,
    help="At a limit: one last answer without tools, or an error.",
)


def model_named(name: str) -> ChatModel:
    """Return the model of a name.

    Args:
        name: ``local`` for the embedded one, a name that ``toolturn model list`` shows, the path of a GGUF file, or a
            model of a server such as ``ollama:qwen3`` or ``http://127.0.0.1:8080/v1#model``.

    Raises:
        click.ClickException: There is none, or what it needs is missing.
    """
    from toolturn.errors import ModelError
    from toolturn.models.named import model_named as server_model
    from toolturn.models.named import where

    try:
        if where(name, os.environ) is not None:
            return server_model(name)
    except (ModelError, ImportError) as exc:
        raise click.ClickException(str(exc)) from None
    from toolturn.local import WeightsError, local_model

    try:
        return local_model(None if name == DEFAULT_MODEL else name)
    except (WeightsError, ImportError) as exc:
        text = str(exc)
        if name != DEFAULT_MODEL and not name.endswith(".gguf"):
            text += "; a model of a server is written openai:NAME, ollama:NAME or http://HOST:PORT/v1#NAME"
        raise click.ClickException(text) from None


def tools_named(names: Sequence[str]) -> ToolSet:
    """Return the tools of toolboxes.

    Args:
        names: Toolboxes, each entry one or several with commas; all built-in ones where empty; ``none`` for none.

    Raises:
        click.BadParameter: There is no such toolbox.
    """
    from toolturn.toolboxes import TOOLBOXES, toolboxes

    wanted = [part.strip() for name in names for part in name.split(",") if part.strip()] or list(TOOLBOXES)
    if wanted == ["none"]:
        return ToolSet()
    try:
        return toolboxes(wanted)
    except ValueError as exc:
        raise click.BadParameter(str(exc), param_hint="--tools") from None


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input for ``-``.

    Raises:
        click.ClickException: It can not be read.
    """
    try:
        if path == "-":
            return str(sys.stdin.read())
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise click.ClickException(f"{path} can not be read: {exc}") from None
