"""toolturn in OpenVoiceOS: engines, a brain, and toolboxes both ways.

Names are loaded when they are asked for; all of them need ``pip install 'toolturn[ovos]'`` but ``clashes``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .entry_points import NotLoadable, clashes

if TYPE_CHECKING:
    from .brain import ToolturnBrain
    from .brain_model import BrainModel
    from .engine import AgenticLoopEngine
    from .engines import (
        NativeToolCallEngine,
        NativeToolCallEnginePlugin,
        ReActLoopEngine,
        ReActLoopEnginePlugin,
    )
    from .published import toolbox_of
    from .toolboxes import toolset_of

__all__ = [
    "AgenticLoopEngine",
    "BrainModel",
    "NativeToolCallEngine",
    "NativeToolCallEnginePlugin",
    "NotLoadable",
    "ReActLoopEngine",
    "ReActLoopEnginePlugin",
    "ToolturnBrain",
    "clashes",
    "toolbox_of",
    "toolset_of",
]

_HOMES = {
    "AgenticLoopEngine": "engine",
    "BrainModel": "brain_model",
    "NativeToolCallEngine": "engines",
    "NativeToolCallEnginePlugin": "engines",
    "ReActLoopEngine": "engines",
    "ReActLoopEnginePlugin": "engines",
    "ToolturnBrain": "brain",
    "toolbox_of": "published",
    "toolset_of": "toolboxes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    except ModuleNotFoundError as exc:
        if exc.name is not None and exc.name.partition(".")[0].startswith("ovos"):
            raise ImportError(f"toolturn.ovos.{name} needs the extra 'ovos': pip install 'toolturn[ovos]'") from exc
        raise
