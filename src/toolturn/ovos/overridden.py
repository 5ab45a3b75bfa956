"""Tools of an engine that its toolboxes do not run: a subclass does, or whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..codec import dumps, plain
from ..messages import ToolDef
from ..tools import Tool, ToolSet
from ..turn import ToolTraits
from .toolboxes import toolset_of

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

    __slots__ = ("_call", "_known", "_timeout")

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
            approval = _approval_of(tools.get(definition.name))
            named.setdefault(definition.name, tool or _Handed(definition, call or default, timeout, approval=approval))
        super().__init__(named)
        self._known = tools
        self._definitions = tuple({definition.name: definition for definition in reversed(told)}.values())[::-1]
        self._call = call
        self._timeout = timeout

    def get(self, name: str) -> Tool[Any, Any] | None:
        """Return the tool of a name; where a subclass runs the calls, it is asked about every name."""
        found = super().get(name)
        if found is None and self._call is not None and name:
            # one that the model was not told of may be a tool of the toolboxes all the same
            approval = _approval_of(self._known.get(name))
            return _Handed(ToolDef(name, name, {"type": "object"}), self._call, self._timeout, approval=approval)
        return found

    @property
    def traits(self) -> Mapping[str, ToolTraits]:
        """What the machine has to know of the tools, those included that the model was not told of."""
        own = super().traits
        if self._call is None:
            return own
        return {**own, **{name: tool.traits for name in self._known.names if (tool := self.get(name)) is not None}}

    def __add__(self, other: Iterable[Tool[Any, Any]]) -> ToolSet:
        """Return the tools of both; names that nobody knows are still asked about."""
        joined = super().__add__(other)
        made = OverriddenTools(joined, None, None, _not_here, self._timeout)
        made._definitions = (*self.definitions, *joined.definitions[len(self) :])
        made._call = self._call
        made._known = self._known
        return made


class _Handed(Tool[dict[str, Any], Any]):
    """A tool whose arguments are handed on as the model made them."""

    def __init__(
        self,
        definition: ToolDef,
        call: Call,
        timeout: float | None,
        *,
        approval: bool | Callable[[Any], Any] = False,
    ) -> None:
        name = definition.name
        super().__init__(
            name,
            definition.description or name,
            dict,
            None,
            lambda arguments: call(name, arguments),
            timeout=timeout,
            approval=approval,
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


def _approval_of(tool: Tool[Any, Any] | None) -> bool | Callable[[Any], Any]:
    """Whether a call of a tool wants approval, whoever runs it in the end."""
    rule = False if tool is None else tool.approval
    if tool is None or isinstance(rule, bool):
        return bool(rule)
    known, asks = tool, rule
    # arguments that do not fit it make this raise, which means that somebody has to be asked
    return lambda arguments: asks(known.arguments(known.validate(dumps(plain(arguments)))))


_NONE = ToolSet()


def relayed_tools(given: Any, known: ToolSet) -> ToolSet:
    """Return the tools that whoever asks runs itself; their calls wait as if for an approval.

    Args:
        given: ToolBoxes, specifications in OpenAI's form, a list of both, or nothing.
        known: The tools of the engine, which are not given away.
    """
    if not given:
        return _NONE
    made = {
        definition.name: _Handed(definition, _not_here, None, approval=True)
        for definition in definitions_of(given)
        if definition.name and definition.name not in known
    }
    return ToolSet(made)


def definitions_of(given: Any) -> tuple[ToolDef, ...]:
    """Return what a caller's ``tools`` hold.

    Args:
        given: ToolBoxes, specifications in OpenAI's form, a list of both, or nothing.
    """
    made: list[ToolDef] = []
    for item in given if isinstance(given, (list, tuple)) else [] if given is None else [given]:
        if isinstance(item, Mapping):
            function = item.get("function", item)
            parameters = function.get("parameters") or {"type": "object", "properties": {}}
            made.append(ToolDef(function.get("name", ""), function.get("description") or "", parameters))
        else:
            made += toolset_of(item).definitions
    return tuple(made)


def _not_here(name: str, arguments: dict[str, Any]) -> Any:
    raise AssertionError(f"{name} is known by its definition only: whoever asked for its traits does not run it")


def _definition(schema: dict[str, Any]) -> ToolDef:
    parameters = schema.get("argument_schema") or {"type": "object", "properties": {}}
    name = str(schema.get("name", ""))
    return ToolDef(name, schema.get("description") or name, parameters)
