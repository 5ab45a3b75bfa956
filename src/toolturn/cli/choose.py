"""A model, tools and a persona from what a user typed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from toolturn.limits import Limits
from toolturn.model import ChatModel, ModelSettings
from toolturn.tools import ToolSet

from .show import harmless

if TYPE_CHECKING:
    from toolturn.mcp import Server

DEFAULT_MODEL = "local"

# options of every command that begins a turn
model_option = click.option(
    "--model",
    "model_name",
    help="'local' for the embedded model, the path of a GGUF file, a model of a server such as 'ollama:qwen3' or "
    "'openai:gpt-5', 'http://127.0.0.1:8080/v1#model', or 'plugin:model'.  [default: local]",
)
tools_option = click.option(
    "--tools", "tool_names", multiple=True, help="Toolboxes, with commas; 'none' for none.  [default: all built-in]"
)
on_limit_option = click.option(
    "--on-limit",
    type=click.Choice(["answer", "raise"]),
    default="answer",
    show_default=True,
    help="At a limit: one last answer without tools, or an error.",
)
persona_option = click.option(
    "--persona",
    metavar="FILE",
    help="A persona: model, tools, limits and system prompt from a JSON file, or from the plug-in of a name. Other "
    "options replace what it says.",
)


F = TypeVar("F", bound=Callable[..., Any])


def files_options(function: F) -> F:
    """Add the options ``--files`` and ``--write-files`` to a command, which gets them as tuples of texts."""
    read = click.option(
        "--files",
        multiple=True,
        metavar="FOLDER",
        help="A folder whose files may be read, 'name=' before it names it. Can be given several times.",
    )
    write = click.option(
        "--write-files", multiple=True, metavar="FOLDER", help="A folder whose files may be read and written."
    )
    return read(write(function))


def model_named(name: str, *, calling: bool = False) -> ChatModel:
    """Return the model of a name.

    Args:
        name: As :func:`toolturn.naming.any_model` takes it.
        calling: As one that calls tools, whatever it can do by itself.

    Raises:
        click.ClickException: There is none, or what it needs is missing.
    """
    from toolturn.errors import ModelError
    from toolturn.local import WeightsError
    from toolturn.naming import any_model, calling_model

    try:
        return calling_model(name) if calling else any_model(name)
    except (ModelError, WeightsError, ImportError) as exc:
        raise click.ClickException(str(exc)) from None


def tools_named(names: Sequence[str], said_as: str = "--tools") -> ToolSet:
    """Return the tools of toolboxes.

    Args:
        names: Toolboxes, each entry one or several with commas; all built-in ones where empty; ``none`` for none.
        said_as: Where the user named them.

    Raises:
        click.BadParameter: There is no such toolbox, or it can not be used.
    """
    from toolturn.naming import any_tools
    from toolturn.toolboxes import TOOLBOXES

    wanted = [part.strip() for name in names for part in name.split(",") if part.strip()] or list(TOOLBOXES)
    if wanted == ["none"]:
        return ToolSet()
    try:
        return any_tools(wanted)
    except ValueError as exc:
        raise click.BadParameter(str(exc), param_hint=said_as) from None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a turn or a conversation is had with.

    Args:
        model: The model.
        model_name: Its name, for people.
        tools: The tools, those of MCP servers left out.
        servers: The MCP servers of the persona.
        server_names: How their tools are named.
        system: The system message; None for none.
        settings: How the model is to reply.
        limits: The bounds.
        concurrency: How many calls of parallel tools may run at once.
        persona: Where the persona is from, so that it can be read again; empty for none.
        window: Tokens of the model's window, where the persona says so.
        language: What the tools are told of the user's language.
        notes: What should be said of the persona, a line each.
    """

    model: ChatModel
    model_name: str
    tools: ToolSet
    servers: Mapping[str, Server] = field(default_factory=dict)
    server_names: Literal["auto", "prefixed"] = "auto"
    system: str | None = None
    settings: ModelSettings | None = None
    limits: Limits = field(default_factory=Limits)
    concurrency: int = 1
    persona: str = ""
    window: int | None = None
    language: str | None = None
    notes: tuple[str, ...] = ()


def chosen(
    persona: str | None,
    model_name: str | None,
    tool_names: Sequence[str],
    system: str | None,
    files: Sequence[str] = (),
    write_files: Sequence[str] = (),
) -> Chosen:
    """Return what a user has chosen.

    Args:
        persona: A persona file or plug-in; None for none.
        model_name: The model, in place of the persona's.
        tool_names: Toolboxes, in place of all tools of the persona.
        system: The system message, in place of the persona's.
        files: Folders whose files may be read.
        write_files: Folders whose files may be read and written.

    Raises:
        click.ClickException: Something of it can not be used.
    """
    made = _chosen(persona, model_name, tool_names, system)
    if not files and not write_files:
        return made
    from toolturn.naming import joined
    from toolturn.toolboxes.files import files_from_texts

    try:
        return replace(made, tools=joined(made.tools, files_from_texts(files, write_files), "files"))
    except (OSError, ValueError) as exc:
        raise click.BadParameter(str(exc), param_hint="--files") from None


def _chosen(persona: str | None, model_name: str | None, tool_names: Sequence[str], system: str | None) -> Chosen:
    if persona is None:
        name = model_name or DEFAULT_MODEL
        model = model_named(name, calling=True)
        return Chosen(model, name, tools_named(tool_names), system=system, limits=Limits(8, 16, repeats=3))
    from toolturn.errors import ModelError
    from toolturn.local import WeightsError
    from toolturn.personas import PersonaError, load_persona, model_of, read_persona
    from toolturn.personas.boxes import tools_of
    from toolturn.personas.opening import server_names

    reading = read_persona(persona)
    try:
        known = reading.persona or load_persona(persona)
        tools, left_out = (tools_named(tool_names), ()) if tool_names else tools_of(known)
        model = model_named(model_name, calling=True) if model_name else model_of(known)
    except (PersonaError, ModelError, WeightsError, ImportError, ValueError) as exc:
        raise click.ClickException(str(exc)) from None
    warnings = tuple(str(finding) for finding in reading.findings if finding.level == "warning")
    return Chosen(
        model,
        model_name or known.brain.model,
        tools,
        {} if tool_names else known.servers,
        server_names(known),
        known.system_prompt if system is None else system,
        None if model_name else known.settings,
        known.limits,
        known.concurrency,
        str(Path(persona).absolute()) if Path(persona).exists() else persona,
        None if model_name else known.brain.options.get("context"),
        known.language,
        (*warnings, *left_out),
    )


def absolute(folders: Sequence[str]) -> tuple[str, ...]:
    """Return folders as they are typed, with paths that mean the same from everywhere.

    Args:
        folders: Each a path, or ``name=path``.
    """
    found = []
    for text in folders:
        name, given, path = text.partition("=")
        named = bool(given) and "/" not in name
        whole = str(Path(path if named else text).expanduser().absolute())
        found.append(f"{name}={whole}" if named else whole)
    return tuple(found)


def bounded(limits: Limits, max_iterations: int | None, max_tool_calls: int | None, timeout: float | None) -> Limits:
    """Return limits of which some were given as options.

    Args:
        limits: The limits.
        max_iterations: Model calls; None where not given, like those that follow.
        max_tool_calls: Tool calls.
        timeout: Seconds.
    """
    given: dict[str, Any] = {"iterations": max_iterations, "tool_calls": max_tool_calls, "deadline": timeout}
    return replace(limits, **{name: value for name, value in given.items() if value is not None})


def noting(silent: bool) -> Callable[[str], None]:
    """Return what shows a line on standard error.

    Args:
        silent: Show nothing.
    """
    return lambda text: None if silent else click.echo(harmless(text), err=True)


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input for ``-``.

    Raises:
        click.ClickException: It can not be read.
    """
    try:
        if path == "-":
            return str(sys.stdin.read())
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} can not be read: it is no text in UTF-8") from None
    except OSError as exc:
        raise click.ClickException(f"{path} can not be read: {exc.strerror or exc}") from None
