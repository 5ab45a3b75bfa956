"""Any model and any tools by name: the embedded model, a server's, a plug-in's; built-in toolboxes and plug-ins'."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from .model import ChatModel
from .plugins import PluginError, model_plugin, plugin_tools, plugins, unknown
from .tools import ToolSet

EMBEDDED = "local"
"""The name of the embedded model."""

Source: TypeAlias = Literal["embedded", "server", "plugin"]
"""Where a model comes from."""


def source_of(name: str, environ: Mapping[str, str] | None = None) -> Source:
    """Return where the model of a name comes from.

    Args:
        name: As for :func:`any_model`.
        environ: Where addresses are looked up; the process's environment where None.

    Raises:
        ModelUnavailableError: There is no such server, or the model is missing.
    """
    from .models.named import where

    if name == EMBEDDED:
        return "embedded"
    if where(name, os.environ if environ is None else environ) is not None:
        return "server"
    try:
        return "embedded" if os.path.exists(name) or model_plugin(name) is None else "plugin"
    except PluginError:  # there are several: whoever wants it is told
        return "plugin"


def any_model(name: str, **options: Any) -> ChatModel:
    """Return the model of a name.

    Args:
        name: ``local`` for the embedded model, a name that ``toolturn model list`` shows, the path of a GGUF file, or
            anything that :func:`toolturn.models.model_named` takes.
        options: Further arguments of what makes it: :func:`toolturn.local.local_model`, or
            :func:`toolturn.models.model_named`.

    Raises:
        ModelError: There is none, or its key is missing; ``WeightsError`` where a file of weights is not here.
        ImportError: What it needs is not installed; the text says how to install it.
    """
    if source_of(name) != "embedded":
        from .models import model_named

        return model_named(name, **options)
    from .local import WeightsError, local_model

    try:
        return local_model(None if name == EMBEDDED else name, **options)
    except WeightsError as exc:
        if name == EMBEDDED or name.endswith(".gguf"):
            raise
        hint = "a model of a server is written openai:NAME, ollama:NAME or http://HOST:PORT/v1#NAME"
        raise WeightsError(f"{exc}; {hint}") from None


def calling_model(
    name: str, dialect: Literal["native", "react"] = "native", react: Mapping[str, Any] | None = None, **options: Any
) -> ChatModel:
    """Return the model of a name as one that calls tools, whatever it can do by itself.

    A server that turns out to take no tools is offered them by text from then on.

    Args:
        name: As for :func:`any_model`.
        dialect: ``native``: by itself where it can, else by a grammar or by text; ``react``: always by text.
        react: Options of :class:`~toolturn.dialects.react.ReActTools`.
        options: As for :func:`any_model`.

    Raises:
        ModelError: As :func:`any_model`.
        ImportError: As :func:`any_model`.
        ValueError: An option of the text protocol can not be used.
    """
    from .dialects.choose import NativeOrText, text_tools

    model = any_model(name, **options)
    given = dict(react or {})
    if dialect == "react":
        from .dialects.react import ReActTools

        return ReActTools(model, **given)
    if model.capabilities.tools and source_of(name) == "server":
        return NativeOrText(model, **given)
    return text_tools(model, **given)


def any_tools(names: Iterable[str]) -> ToolSet:
    """Return the tools of several toolboxes in one set: built-in ones first, then those of plug-ins as they are named.

    Args:
        names: Names of toolboxes or, as ``toolbox.tool``, of single tools of them; a plug-in's is its name or
            ``package:name``. What is named twice is there once.

    Raises:
        ValueError: There is no such toolbox or tool, a plug-in can not be used, or two toolboxes have a tool of the
            same name; of a plug-in that can not be used the :class:`PluginError` is chained.
    """
    from .toolboxes import TOOLBOXES, toolboxes

    own: list[str] = []
    others: dict[str, set[str] | None] = {}
    for name in dict.fromkeys(names):
        if name.partition(".")[0] in TOOLBOXES:
            own.append(name)
            continue
        box, single = _split(name)
        if single is None or others.get(box, ()) is None:
            others[box] = None
        else:
            others[box] = (others.get(box) or set()) | {single}
    made = toolboxes(own)
    for box, wanted in others.items():
        made = joined(made, _of_plugin(box, wanted, TOOLBOXES), box)
    return made


def joined(tools: ToolSet, more: ToolSet, source: str) -> ToolSet:
    """Return the tools of two sets.

    Args:
        tools: The first ones.
        more: Those that come to them.
        source: Where those come from, for people.

    Raises:
        ValueError: A name occurs in both.
    """
    if both := [name for name in more.names if name in tools]:
        raise ValueError(f"the toolbox {source!r} has a tool {both[0]!r}, and so has another one before it")
    return tools + more


def _split(name: str) -> tuple[str, str | None]:
    """A toolbox and a tool of it, where that is what the name says; names of plug-ins may hold a dot themselves."""
    there = plugins("toolboxes")
    if "." not in name or any(name in (plugin.name, plugin.full_name) for plugin in there):
        return name, None
    box, _, single = name.rpartition(".")
    return (box, single) if any(box in (plugin.name, plugin.full_name) for plugin in there) else (name, None)


def _of_plugin(box: str, wanted: set[str] | None, own: Iterable[str]) -> ToolSet:
    there = [plugin.name for plugin in plugins("toolboxes")]
    if ":" not in box and box not in there:
        raise ValueError(unknown("toolbox", box, [*own, *there]))
    try:
        tools = plugin_tools(box)
    except PluginError as exc:
        raise ValueError(str(exc)) from exc
    if wanted is None:
        return tools
    if missing := sorted(wanted - set(tools.names)):
        raise ValueError(unknown(f"tool in the toolbox {box!r}", missing[0], tools.names))
    return ToolSet({name: tool for name, tool in tools.items() if name in wanted})
