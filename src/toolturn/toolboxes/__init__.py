"""Built-in read-only tools: ``clock``, ``math`` and ``units``.

A toolbox is loaded when it is asked for, so that naming one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType

from ..tools import ToolSet

__all__ = ["TOOLBOXES", "Toolbox", "toolbox", "toolboxes"]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """A set of tools that is loaded on first use.

    Args:
        name: What it is called in configuration.
        description: One line of what its tools do, for people.
        load: Gives the tools, the same ones each time.
    """

    name: str
    description: str
    load: Callable[[], ToolSet]


@cache
def _clock() -> ToolSet:
    from .clock import clock_toolbox

    return clock_toolbox()


@cache
def _math() -> ToolSet:
    from .math import math_toolbox

    return math_toolbox()


@cache
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

# Measured with a model of half a billion parameters: where current_time comes first it is called for sums, where
# convert_units comes before it the time is taken for a quantity.
_ORDER = ("calculator", "current_time", "convert_units", "add_days", "days_between", "weekday")


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
    return known.load()


def toolboxes(names: Iterable[str]) -> ToolSet:
    """Return the tools of several toolboxes in one set, in an order that does not depend on that of the names.

    Args:
        names: Names of toolboxes, or of single tools such as ``math.calculator``; what is named twice is there once.

    Returns:
        The tools, in the order in which a small model chooses best among them.

    Raises:
        ValueError: There is no toolbox or no tool of a name.
        TypeError: ``names`` is a text instead of several.
    """
    if isinstance(names, str):
        raise TypeError(f"toolboxes takes several names; for one, use toolbox({names!r})")
    chosen: dict[str, set[str]] = {}
    for name in names:
        box, dot, single = name.partition(".")
        there = toolbox(box).names
        if dot and single not in there:
            raise ValueError(_unknown(f"tool in the toolbox {box!r}", single, there))
        chosen.setdefault(box, set()).update((single,) if dot else there)
    tools = [tool for box, wanted in chosen.items() for name, tool in toolbox(box).items() if name in wanted]
    return ToolSet(sorted(tools, key=lambda tool: _ORDER.index(tool.name)))


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no {what} {name!r}{hint} (known: {', '.join(names)})"
