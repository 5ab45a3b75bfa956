"""Names of tools: what a model wrote, to what is declared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...messages import ToolDef

_PREFIXES = (
    *("functions.", "function.", "tools.", "tool.", "default_api."),
    *("functions:", "function:", "tools:", "tool:", "default_api:"),
)
# Where the text of a model's template runs into a name; full-width bars are DeepSeek's.
_SPECIAL = re.compile(r"<[|｜/]|<s>|<tool_call>|\[(?:TOOL_CALLS|TOOL_CONTENT|CALL_ID|ARGS|/?INST)\]")


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


class KnownTools:
    """The declared tools by name, and by name folded.

    Args:
        tools: The definitions.
    """

    __slots__ = ("_folded", "by_name", "tools")

    def __init__(self, tools: Sequence[ToolDef]) -> None:
        self.tools = tools
        self.by_name = {tool.name: tool for tool in tools}
        self._folded: dict[str, str | None] | None = None

    def parameters(self, name: str) -> Any:
        """Return the JSON Schema of a declared tool's arguments, or None."""
        tool = self.by_name.get(name)
        return None if tool is None else tool.parameters

    def resolve(self, name: str) -> str | None:
        """Return the declared name that is meant, or None: nothing is guessed.

        Args:
            name: What the model wrote.
        """
        for candidate in (name, name.strip(), cut_name(name)):
            if candidate in self.by_name:
                return candidate
        bare = cut_name(name)
        prefix = next((prefix for prefix in _PREFIXES if bare.startswith(prefix)), None)
        if prefix is not None:
            bare = bare[len(prefix) :].strip()
            if bare in self.by_name:
                return bare
        if self._folded is None:
            self._folded = {}
            for known in self.by_name:
                folded = _fold(known)
                self._folded[folded] = None if folded in self._folded else known
        return self._folded.get(_fold(bare))


def cut_name(name: str) -> str:
    """Return a name without blanks around it and without what a template left behind it.

    Args:
        name: What the model wrote.
    """
    found = _SPECIAL.search(name)
    return (name if found is None else name[: found.start()]).strip()


_last: KnownTools | None = None


def known_tools(tools: Sequence[ToolDef]) -> KnownTools:
    """Return the tools by name; the last tuple asked for is remembered, since a turn offers the same one each time.

    Args:
        tools: The definitions.
    """
    global _last
    last = _last
    if last is not None and last.tools is tools:
        return last
    known = KnownTools(tools)
    if type(tools) is tuple:
        _last = known
    return known
