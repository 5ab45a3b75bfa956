"""Fitted tools, and what a model wrote for them back in the form of the tools' own names and schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from ...arguments import parse_arguments
from ...errors import InvalidToolArguments
from ...frozen import frozen
from ...messages import ChatResponse, Repair, ToolCall, ToolDef
from .changes import Change
from .names import fold
from .restore import restore


@frozen
class FittedTool:
    """A tool as a provider takes it.

    Args:
        name: Its name on the wire.
        own_name: Its own name.
        description: Its description, with what can not be said of its arguments in the schema.
        parameters: The schema of its arguments; None where the wire wants it left out.
        strict: The provider may be asked to hold the model to the schema.
        dropped: The places of the original schema, as JSON pointers, of which something is lost.
        changes: What must be undone in arguments, by the places of objects in ``parameters``.
        not_strict: Why it is not strict although that was wanted; empty otherwise.
    """

    name: str
    own_name: str
    description: str
    parameters: dict[str, Any] | None
    strict: bool = False
    dropped: tuple[str, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)
    not_strict: str = ""


@frozen
class FittedTools:
    """The tools of a request.

    Args:
        tools: Those that can be offered, in the order they were given.
        aliases: Own names, each with the name on the wire.
        own_names: Names on the wire, each with the tool's own.
        warnings: One sentence for each tool that was left out.
        by_name: The tools by their own names.
    """

    tools: tuple[FittedTool, ...]
    aliases: Mapping[str, str]
    own_names: Mapping[str, str]
    warnings: tuple[str, ...]
    by_name: Mapping[str, FittedTool]

    @property
    def offered(self) -> tuple[ToolDef, ...]:
        """The tools as the model knows them, by which what it wrote can be read before :meth:`unalias`."""
        return tuple(ToolDef(tool.name, tool.description, tool.parameters or {"type": "object"}) for tool in self.tools)

    def own_name(self, name: str) -> str:
        """Return the own name of the tool that a model called; what is no name on the wire comes back unchanged."""
        own = self.own_names.get(name)
        if own is None:
            # Only renamed tools: a name that nearly fits another is for those who record what they mend. No two
            # names on the wire are the same but for case, "-" and "_".
            meant = fold(name.strip().removeprefix("functions."))
            renamed = ((alias, own) for alias, own in self.own_names.items() if alias != own)
            own = next((own for alias, own in renamed if fold(alias) == meant), None)
        return name if own is None else own

    def unalias(self, response: ChatResponse) -> ChatResponse:
        """Return a reply whose calls have the tools' own names and arguments in the form of their own schemas.

        Arguments that are no good JSON stay as they are. What there is nothing to do about is returned itself.

        Args:
            response: The reply to a request with these tools.
        """
        calls = response.tool_calls
        if not calls:
            return response
        restored = [self._unaliased(call) for call in calls]
        if all(new is old for new, old in zip(restored, calls, strict=True)):
            return response
        mended = tuple(
            Repair("name", f"{old.name!r} was read as {new.name!r}")
            for new, old in zip(restored, calls, strict=True)
            if new.name != old.name and old.name not in self.own_names
        )
        return replace(response, tool_calls=restored, repairs=response.repairs + mended)

    def _unaliased(self, call: ToolCall) -> ToolCall:
        if not isinstance(call, ToolCall) or not isinstance(call.name, str):
            return call
        name = self.own_name(call.name)
        arguments = call.arguments
        tool = self.by_name.get(name)
        if tool is not None and tool.changes and isinstance(arguments, str):
            try:
                written = parse_arguments(arguments)
            except InvalidToolArguments:
                # to be mended or refused by those who know how; to read it loosely here would hide what is wrong
                pass
            else:
                mended = restore_arguments(written, tool)
                if mended != written:
                    arguments = json.dumps(mended, ensure_ascii=False)
        if name == call.name and arguments is call.arguments:
            return call
        return replace(call, name=name, arguments=arguments)


def restore_arguments(arguments: dict[str, Any], tool: FittedTool) -> dict[str, Any]:
    """Return a call's arguments in the form of the tool's own schema, to be validated by that.

    Properties get their own names back, and a null that stands for "left out", because the wire has no other way
    to say so, is left out.

    Args:
        arguments: The object the model wrote; it is not touched, and returned itself where there is nothing to do.
        tool: The tool as it was offered.
    """
    if tool.parameters is None or not tool.changes:
        return arguments
    return restore(arguments, tool.parameters, tool.changes)
