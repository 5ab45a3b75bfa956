"""The toolboxes of a persona as tools, and what those may do."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

from ..plugins import PluginError, find_plugin, plugin_tools
from ..tools.tool import Tool
from ..tools.toolset import ToolSet
from .persona import Box, Persona, PersonaError

_MAY: Mapping[str, str] = {
    "clock": "reads this machine's clock",
    "math": "computes",
    "units": "computes",
}


def tools_of_box(box: Box) -> ToolSet:
    """Return the tools of a toolbox.

    Args:
        box: The toolbox.

    Raises:
        PersonaError: It can not be used; its place is named, and what it raised is chained.
    """
    try:
        tools = _made(box)
    except (ImportError, OSError, PluginError, RuntimeError, TypeError, ValueError) as exc:
        raise PersonaError(f"{box.place}: the toolbox {box.name!r} can not be used: {exc}") from exc
    if box.timeout is None or all(tool.timeout is not None for tool in tools):
        return tools
    return ToolSet({name: tool if tool.timeout else _bounded(tool, box.timeout) for name, tool in tools.items()})


def _made(box: Box) -> ToolSet:
    if box.kind == "own":
        from ..toolboxes import toolboxes

        return toolboxes([box.toolbox])
    if box.kind == "files":
        from ..toolboxes.files import files_from_section

        return files_from_section(box.config)
    if box.kind == "plugin":
        return plugin_tools(box.toolbox, box.config)
    from ..ovos.entry_points import TOOLBOX, load
    from ..ovos.toolboxes import toolset_of

    return toolset_of(load(TOOLBOX, box.toolbox, "toolbox")(config=dict(box.config), bus=None))


def _bounded(tool: Tool[Any, Any], seconds: float) -> Tool[Any, Any]:
    made = copy(tool)
    made.timeout = seconds
    return made


def tools_of(persona: Persona) -> tuple[ToolSet, tuple[str, ...]]:
    """Return the tools of all toolboxes of a persona, MCP servers left out, and one sentence for each left out.

    Args:
        persona: The persona.

    Raises:
        PersonaError: A toolbox can not be used.
    """
    made: dict[str, Tool[Any, Any]] = {}
    owners: dict[str, str] = {}
    left_out: list[str] = []
    own = [box for box in persona.boxes if box.kind == "own"]
    for box in [*own, *(box for box in persona.boxes if box.kind != "own")]:
        for name, tool in tools_of_box(box).items():
            shown = f"{box.name}__{name}" if persona.clashes == "prefix" else name
            if owners.setdefault(shown, box.name) == box.name:
                made[shown] = tool
            else:
                left_out.append(
                    f"{box.place}: the tool {name!r} of {box.name} is left out: {owners[shown]} has one too"
                )
    if persona.clashes == "first":
        made = _in_order(made, own)
    return ToolSet(made), tuple(left_out)


def _in_order(tools: dict[str, Tool[Any, Any]], own: list[Box]) -> dict[str, Tool[Any, Any]]:
    """Built-in tools first, in the order in which a small model chooses best among them."""
    if not own:
        return tools
    from ..toolboxes import toolboxes

    first = [name for name in toolboxes([box.toolbox for box in own]).names if name in tools]
    return {name: tools[name] for name in [*first, *(name for name in tools if name not in first)]}


# --- what they may do ----------------------------------------------------------------------


def may_of_box(box: Box) -> str:
    """Return what a toolbox lets a model do, as the end of a sentence.

    Args:
        box: The toolbox.
    """
    match box.kind:
        case "own":
            return _MAY.get(box.toolbox.partition(".")[0], "computes")
        case "files":
            return _may_of_files(box.config)
        case "plugin":
            plugin = find_plugin("toolboxes", box.toolbox)
            return f"runs the code of the package {plugin.package} {plugin.version}".rstrip()
        case _:
            return "runs the code of a plug-in of OpenVoiceOS"


def _may_of_files(config: Mapping[str, Any]) -> str:
    given, write = config.get("folders"), config.get("write")
    paths = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
    named = dict(given) if isinstance(given, Mapping) else {Path(str(path)).name: path for path in paths}
    written = {name for name in named if write is True or (isinstance(write, list) and name in write)}
    told = [
        f"{does} files in {', '.join(str(named[name]) for name in names)}"
        for does, names in (
            ("reads", [name for name in named if name not in written]),
            ("reads and writes", [name for name in named if name in written]),
        )
        if names
    ]
    return " and ".join(told) or "reads files"


def may_of_server(server: Any) -> str:
    """Return what an MCP server lets a model do, as the end of a sentence.

    Args:
        server: The server.
    """
    import shlex

    from ..mcp.configuration import Stdio

    if isinstance(server, Stdio):
        return f"starts the program {shlex.join([server.command, *server.args])}, which may do whatever you may"
    return f"talks to {server.place}"


def may_of_brain(persona: Persona) -> str:
    """Return where the conversation of a persona goes, as the end of a sentence.

    Args:
        persona: The persona.

    Raises:
        ModelError: There is no such model.
    """
    import os
    from urllib.parse import urlsplit

    from ..models.named import where
    from ..naming import source_of
    from ..plugins import model_plugin

    name = persona.brain.model
    match source_of(name):
        case "embedded":
            return "runs in this process"
        case "plugin":
            found = model_plugin(name)
            assert found is not None
            return f"runs the code of the package {found[0].package} {found[0].version}".rstrip()
        case _:
            known = where(name, os.environ)
            assert known is not None
            return f"sends the conversation to {urlsplit(known[1]).netloc.rpartition('@')[2]}"
