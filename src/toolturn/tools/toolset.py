"""ToolSet: tools by the names a model calls them by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..codec import plain
from ..messages import ToolDef
from ..turn import ToolTraits
from .tool import Tool

AnyTool = Tool[Any, Any]

_MAX_LISTED = 50
_MAX_NAME = 200


class ToolSet:
    """An ordered, unchangeable set of tools; what a model is told of them is made once.

    Args:
        tools: Tools under their own names, or a mapping from the names a model shall see.

    Raises:
        ValueError: A name is empty or occurs twice.
        TypeError: Something is no finite tool; an AsyncTool becomes one with ``as_tool()``.
    """

    __slots__ = ("_definitions", "_tools", "_traits")

    def __init__(self, tools: Iterable[AnyTool] | Mapping[str, AnyTool] = ()) -> None:
        named: Iterable[tuple[str, AnyTool]]
        if isinstance(tools, (ToolSet, Mapping)):
            named = tools.items()
        else:
            named = ((getattr(tool, "name", ""), tool) for tool in tools)
        made: dict[str, AnyTool] = {}
        for name, tool in named:
            if not isinstance(tool, Tool):
                raise TypeError(
                    f"tool sets may contain only finite Tool instances, not {type(tool).__name__}"
                    + (
                        " (use its as_tool())"
                        if hasattr(tool, "as_tool")
                        else " (make one with @tool)"
                        if callable(tool)
                        else ""
                    )
                )
            if not isinstance(name, str) or not name:
                raise ValueError("tool name must not be empty")
            if name in made:
                raise ValueError(f"duplicate tool name: {name}")
            made[name] = tool
        self._tools = made
        self._definitions: tuple[ToolDef, ...] | None = None
        self._traits: Mapping[str, ToolTraits] = MappingProxyType({n: t.traits for n, t in made.items()})

    @classmethod
    def namespaced(cls, tools: Mapping[str, Iterable[AnyTool]]) -> ToolSet:
        """Return the tools of several sources under names ``namespace__tool``.

        Args:
            tools: The tools of each namespace.

        Raises:
            ValueError: A name is empty or occurs twice.
        """
        named: list[tuple[str, AnyTool]] = []
        for namespace, members in tools.items():
            if not namespace:
                raise ValueError("tool namespace must not be empty")
            pairs = (
                members.items()
                if isinstance(members, ToolSet)
                else [(getattr(tool, "name", ""), tool) for tool in members]
            )
            named += [(f"{namespace}__{name}", tool) for name, tool in pairs]
        made: dict[str, AnyTool] = {}
        for name, tool in named:
            if name in made:
                raise ValueError(f"duplicate tool name: {name}")
            made[name] = tool
        return cls(made)

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name, or None."""
        return self._tools.get(name)

    def items(self) -> tuple[tuple[str, AnyTool], ...]:
        """Return the names and tools in order."""
        return tuple(self._tools.items())

    @property
    def names(self) -> tuple[str, ...]:
        """The names in order."""
        return tuple(self._tools)

    @property
    def definitions(self) -> tuple[ToolDef, ...]:
        """What a model is told of the tools; the same object each time."""
        if self._definitions is None:
            self._definitions = tuple(tool.definition(name) for name, tool in self._tools.items())
        return self._definitions

    @property
    def traits(self) -> Mapping[str, ToolTraits]:
        """What the machine has to know of the tools, by name."""
        return self._traits

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __contains__(self, item: object) -> bool:
        """Whether a tool, or one of this name, is in the set."""
        return item in self._tools if isinstance(item, str) else any(item is tool for tool in self._tools.values())

    def __add__(self, other: Iterable[AnyTool]) -> ToolSet:
        """Return the tools of both.

        Raises:
            ValueError: A name occurs in both.
        """
        added = other if isinstance(other, ToolSet) else ToolSet(other)
        if both := self._tools.keys() & added._tools.keys():
            raise ValueError(f"duplicate tool name: {min(both)}")
        return ToolSet({**self._tools, **added._tools})

    def __repr__(self) -> str:
        return f"<ToolSet {', '.join(self._tools) or '(empty)'}>"


def tool_definitions(tools: Iterable[AnyTool] | ToolSet) -> tuple[ToolDef, ...]:
    """Return what a model is told of the tools.

    Args:
        tools: Tools, or a set of them under the names it gives them.
    """
    return (tools if isinstance(tools, ToolSet) else ToolSet(tools)).definitions


def unknown_tool_content(name: Any, tools: ToolSet) -> str:
    """Return the observation about a call of a tool that is not there.

    Args:
        name: What the model wrote.
        tools: What is there.
    """
    if isinstance(name, str) and len(name) > _MAX_NAME:
        name = name[:_MAX_NAME]
    return json.dumps({"error": "unknown_tool", "tool": plain(name), "available": list(tools.names[:_MAX_LISTED])})
