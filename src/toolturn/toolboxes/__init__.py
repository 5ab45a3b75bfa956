"""Built-in read-only tools: ``clock``, ``math`` and ``units``.

A toolbox is loaded when it is asked for, so that naming one costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType

from ..tools import ToolSet
from ..tools.toolset import AnyTool

__all__ = ["TOOLBOXES", "Toolbox", "toolbox", "toolboxes"]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """A set of tools that is made on first use.

    Args:
        name: What it is called in configuration.
        description: One line of what its tools do, for people.
        make: Makes the tools.
    """

    name: str
    description: str
    make: Callable[[], ToolSet]
    _made: list[ToolSet] = field(default_factory=list, init=False, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def tools(self) -> ToolSet:
        """The tools; the same set each time."""
        with self._lock:
            if not self._made:
                self._made.append(self.make())
            return self._made[0]


def _clock() -> ToolSet:
    from .clock import clock_toolbox

    return clock_toolbox()


def _math() -> ToolSet:
    from .math import math_toolbox

    return math_toolbox()


def _units() -> ToolSet:
    from .units import units_toolbox

    return units_toolbox()


TOOLBOXES: Mapping[str, Toolbox] = MappingProxyType(
    {
        each.name: each
        for each in (
            Toolbox("clock", "the time and date in a place, days between dates, weekdays", _clock),
            Toolbox("math", "a calculator for arithmetic, percents, powers, roots and common functions", _math),
            Toolbox("units", "conversion between units of measurement", _units),
        )
    }
)
"""The toolboxes that come with toolturn, by name."""


def toolbox(name: str) -> ToolSet:
    """Return the tools of a toolbox.

    Args:
        name: A name in :data:`TOOLBOXES`.

    Raises:
        ValueError: There is no toolbox of this name.
    """
    known = TOOLBOXES.get(name)
    if known is None:
        raise ValueError(_unknown("toolbox", name, TOOLBOXES))
    return known.tools


def toolboxes(names: Iterable[str]) -> ToolSet:
    """Return the tools of several toolboxes in one set.

    Args:
        names: Names of toolboxes, or of single tools such as ``math.calculator``; what is named twice is there once.

    Raises:
        ValueError: There is no toolbox or no tool of a name.
        TypeError: ``names`` is a text instead of several.
    """
    if isinstance(names, str):
        raise TypeError(f"toolboxes takes several names; for one, use toolbox({names!r})")
    chosen: dict[str, AnyTool] = {}
    for name in names:
        box, dot, single = name.partition(".")
        tools = toolbox(box)
        if not dot:
            chosen.update(tools.items())
            continue
        tool = tools.get(single)
        if tool is None:
            raise ValueError(_unknown(f"tool in the toolbox {box!r}", single, tools.names))
        chosen[single] = tool
    return ToolSet(chosen)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no {what} {name!r}{hint} (known: {', '.join(names)})"
