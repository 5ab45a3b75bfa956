"""The specification of a toolbox's tools made once: OpenVoiceOS makes it anew for each call of a brain."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from ovos_plugin_manager.templates.agent_tools import ToolBox

_KEPT = "_toolturn_specs"


def remember_specs(toolbox: Any) -> None:
    """Have a toolbox make the JSON Schemas of its tools once, until its tools change.

    The toolbox stays the object that it is; its class becomes a subclass of the one it had, of the same name. One that
    makes the schemas in a way of its own is left alone, and so is what is no ToolBox.

    Args:
        toolbox: The toolbox.
    """
    if isinstance(toolbox, ToolBox) and type(toolbox).tool_json_list is ToolBox.tool_json_list:
        with suppress(TypeError):  # its class has slots
            toolbox.__class__ = _remembering(type(toolbox))


_made: dict[Any, Any] = {}


def _remembering(cls: Any) -> Any:
    made = _made.get(cls)
    if made is None:
        space = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        # of one base alone, or the objects of both classes would not be laid out in the same way
        made = type(cls)(cls.__name__, (cls,), {**space, "tool_json_list": property(_specs)})
        _made[cls] = made
    return made


def _specs(toolbox: Any) -> Any:
    tools = tuple(toolbox.tools.values())
    kept = toolbox.__dict__.get(_KEPT)
    if (
        kept is None
        or len(kept[0]) != len(tools)
        or any(old is not new for old, new in zip(kept[0], tools, strict=True))
    ):
        made = ToolBox.tool_json_list.fget(toolbox)
        try:
            kept = (tools, json.dumps(made))
        except (TypeError, ValueError):
            return made  # a schema that is no JSON
        toolbox.__dict__[_KEPT] = kept
    return json.loads(kept[1])  # of one's own: whoever asks may change it
