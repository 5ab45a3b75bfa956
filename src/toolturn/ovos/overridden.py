"""Tools of an engine whose subclass runs them, or describes them, in its own way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..messages import ToolDef
from ..tools import Tool, ToolSet

Call = Callable[[str, dict[str, Any]], Any]


class OverriddenTools(ToolSet):
    """A set of tools that a method of a subclass runs.

    Args:
        tools: The tools of the toolboxes.
        schemas: What the model is told instead, as ``_collect_tool_schemas`` gives it; None for what the tools say.
        call: Runs each call, those of names that nobody knows too; None where the tools run themselves.
        default: Runs calls of tools that stand in ``schemas`` only.
        timeout: Seconds of a call.
    """

    __slots__ = ("_call", "_timeout")

    def __init__(
        self,
        tools: ToolSet,
        schemas: Sequence[dict[str, Any]] | None,
        call: Call | None,
        default: Call,
        timeout: float | None,
    ) -> None:
        told = list(tools.definitions) if schemas is None else [_definition(schema) for schema in schemas]
        named: dict[str, Tool[Any, Any]] = {}
        for definition in told:
            tool = tools.get(definition.name) if call is None else None
            named.setdefault(definition.name, tool or _Handed(definition, call or default, timeout))
        super().__init__(named)
        self._definitions = tuple({definition.name: definition for definition in reversed(told)}.values())[::-1]
        self._call = call
        self._timeout = timeout

    def get(self, name: str) -> Tool[Any, Any] | None:
        """Return the tool of a name; where a subclass runs the calls, it is asked about every name."""
        found = super().get(name)
        if found is None and self._call is not None and name:
            return _Handed(ToolDef(name, name, {"type": "object"}), self._call, self._timeout)
        return found


class _Handed(Tool[dict[str, Any], Any]):
    """A tool whose arguments are handed on as the model made them."""

    def __init__(self, definition: ToolDef, call: Call, timeout: float | None) -> None:
        name = definition.name
        super().__init__(
            name,
            definition.description or name,
            dict,
            None,
            lambda arguments: call(name, arguments),
            timeout=timeout,
        )
        self._parameters = definition.parameters

    def _check_models(self, name: str, request_model: Any, result_model: Any) -> None:
        """There are no models."""

    def _request(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    def _checked(self, result: Any) -> Any:
        return result

    def _text(self, result: Any) -> str:
        return str(result)


def _definition(schema: dict[str, Any]) -> ToolDef:
    parameters = schema.get("argument_schema") or {"type": "object", "properties": {}}
    name = str(schema.get("name", ""))
    return ToolDef(name, schema.get("description") or name, parameters)
