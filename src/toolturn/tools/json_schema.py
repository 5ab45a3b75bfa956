"""A tool from a JSON Schema, with any callable behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..content import with_parts
from ..errors import InvalidToolArguments
from ..messages import Content
from .function import result_text
from .tool import Tool

_MAX_FAULTS = 20
_MAX_PATH = 120
_MAX_MESSAGE = 160


class SchemaTool(Tool[dict[str, Any], Any]):
    """A tool whose arguments are checked against a JSON Schema and handed over as a dictionary."""

    def __init__(
        self,
        name: str,
        description: str,
        parameters: dict[str, Any],
        handler: Callable[..., Any],
        **options: Any,
    ) -> None:
        super().__init__(name, description, dict, None, handler, **options)
        self._parameters = parameters
        self._validator = validator_of(f"tool {name!r}", parameters)

    def _check_models(self, name: str, request_model: Any, result_model: Any) -> None:
        """There are no models: the schema is what the arguments are checked against."""

    def _request(self, arguments: dict[str, Any]) -> dict[str, Any]:
        check_against(self._validator, self.parameters, arguments)
        return arguments

    def _checked(self, result: Any) -> Any:
        return result

    def _text(self, result: Any) -> Content:
        return with_parts(result, result_text)


def tool_from_schema(
    name: str,
    description: str,
    parameters: dict[str, Any],
    handler: Callable[..., Any | Awaitable[Any]],
    **options: Any,
) -> SchemaTool:
    """Make a tool of a JSON Schema and a callable.

    Args:
        name: What the model calls it by.
        description: When and how to use it, for the model.
        parameters: The JSON Schema of an object; references must stay within it.
        handler: Takes the validated arguments as one dictionary; text and parts it returns are what the model reads,
            anything else becomes compact JSON.
        options: Keyword arguments of :class:`Tool`.

    Raises:
        ValueError: The schema is not valid, or not that of an object.
        ImportError: The extra ``schema`` is not installed.
    """
    return SchemaTool(name, description, parameters, handler, **options)


def validator_of(what: str, schema: dict[str, Any]) -> Any:
    """Return what checks objects against a JSON Schema.

    Args:
        what: Whose schema it is, for the errors.
        schema: The schema of an object.

    Raises:
        ValueError: It is not valid, or not that of an object.
        ImportError: The extra ``schema`` is not installed.
    """
    try:
        import jsonschema_rs
    except ImportError:
        raise ImportError("what has a JSON Schema needs the extra 'schema': pip install 'toolturn[schema]'") from None

    def refuse(uri: str) -> Any:
        raise ValueError(f"it refers to {uri}, which is outside of it")

    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ValueError(f"the schema of {what} must be that of an object")
    try:
        # the values are masked, so that no error repeats what the model wrote
        return jsonschema_rs.validator_for(schema, mask="the value", retriever=refuse)
    except Exception as exc:  # noqa: BLE001 - whatever the library says of it
        why = str(exc).partition("\n")[0]
        raise ValueError(f"the schema of {what} is not valid: {why}") from None


def check_against(validator: Any, schema: dict[str, Any], value: dict[str, Any]) -> None:
    """Refuse an object that does not fit a schema.

    Args:
        validator: What :func:`validator_of` gave for the schema.
        schema: The schema.
        value: The object a model wrote.

    Raises:
        InvalidToolArguments: It does not fit; the text tells the model what to mend.
    """
    faults = []
    for number, fault in enumerate(validator.iter_errors(value)):
        if number == _MAX_FAULTS:
            faults.append("and more")
            break
        place = ".".join(str(step) for step in fault.instance_path)[:_MAX_PATH]
        message = fault.message[:_MAX_MESSAGE]
        if message.startswith("False schema") and not place:
            place = ", ".join(sorted(value.keys() - schema.get("properties", {}).keys()))[:_MAX_PATH]
            message = "there is no such argument"
        faults.append(f"{place or 'arguments'}: {message}")
    if faults:
        raise InvalidToolArguments("; ".join(faults))
