"""@tool: a tool from a function's signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, get_type_hints, overload

from pydantic import BaseModel

from ..content import with_parts
from ..messages import Content
from .as_json import json_text
from .tool import Tool, exact_text, plain_function, takes_context


class FunctionTool(Tool[BaseModel, Any]):
    """A tool made of a function; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], name: str, description: str, **options: Any) -> None:
        self.function = function
        names, model = _request_model(function, name)
        self._names = names
        super().__init__(name, description, model, None, function, **options)
        self.__doc__ = plain_function(function).__doc__
        # The machinery calls handler(request); the function wants its parameters.
        self.handler = self._call_async if self._is_async else self._call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def arguments(self, request: BaseModel) -> dict[str, Any]:
        """Return the values of the function's parameters by name."""
        return {name: getattr(request, field) for field, name in self._names.items()}

    def _call(self, request: BaseModel, /, **known: Any) -> Any:
        return self.function(**self.arguments(request), **known)

    async def _call_async(self, request: BaseModel, /, **known: Any) -> Any:
        return await self._call(request, **known)

    def _checked(self, result: Any) -> Any:
        return result

    def _text(self, result: Any) -> Content:
        return with_parts(result, result_text)


def result_text(result: Any) -> str:
    """Return a result as text: text as it is, everything else as compact JSON.

    Args:
        result: Text, None, a pydantic model, a dataclass, or anything made of JSON's types.

    Raises:
        pydantic_core.PydanticSerializationError: JSON has no form for it.
    """
    return exact_text(result) if isinstance(result, str) else json_text(result)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function: parameters from its signature, descriptions from its docstring.

    A text result is what the model reads; an :class:`ImagePart` or :class:`FilePart`, alone or in a list with texts,
    is shown to it; anything else becomes compact JSON. A parameter annotated :class:`ToolContext` is not shown to the
    model.

    Args:
        function: With annotated parameters; plain or ``async``.
        name: Another name than the function's.
        description: Another description than the docstring's text before its sections.
        options: Keyword arguments of :class:`Tool`, such as ``effect`` or ``timeout``.

    Raises:
        TypeError: The function takes ``*args``, ``**kwargs`` or positional-only parameters.
        ValueError: There is no description.
    """
    if function is None:
        return partial(_make, name=name, description=description, options=options)
    return _make(function, name=name, description=description, options=options)


def _make(
    function: Callable[..., Any], *, name: str | None, description: str | None, options: dict[str, Any]
) -> FunctionTool:
    shown: str = name or str(getattr(plain_function(function), "__name__", ""))
    text = description or _sections(_doc(function))[0]
    if not text:
        raise ValueError(f"tool {shown!r} needs a description: give the function a docstring")
    return FunctionTool(function, shown, text, **options)


def _request_model(function: Callable[..., Any], name: str) -> tuple[dict[str, str], type[BaseModel]]:
    """The model of the arguments, and which of its fields is which parameter."""
    # these cost a fifth of the whole import and are needed by users of @tool only
    from pydantic import ConfigDict, Field, create_model

    hints = get_type_hints(plain_function(function), include_extras=True)
    told = _sections(_doc(function))[1]
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        if takes_context(hint):
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name!r}: the parameter {parameter.name!r} can not be given by name")
        default = ... if parameter.default is parameter.empty else parameter.default
        # The field has a name of its own because pydantic reserves some, such as "model_config" and "copy".
        field = f"p{len(names)}"
        names[field] = parameter.name
        known: dict[str, Any] = {"description": told[parameter.name]} if parameter.name in told else {}
        about = Field(default, alias=parameter.name, title=parameter.name, **known)
        fields[field] = (Annotated[hint, about], default)
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    return names, model


def _doc(function: Callable[..., Any]) -> str:
    plain = plain_function(function)
    doc = inspect.getdoc(plain)
    if doc is None and not inspect.isroutine(function):
        doc = inspect.getdoc(type(function))  # of an object that can be called, where its call is not described
    return doc or ""


_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?|See Also|Attributes):?\s*$"
)
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_FIELD = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """The text of a docstring before its sections, and what it says of each parameter (Google or Sphinx style)."""
    text: list[str] = []
    about: dict[str, str] = {}
    section: str | None = None
    current: str | None = None
    for line in doc.splitlines():
        if found := _SECTION.match(line):
            section, current = found[1], None
        elif found := _FIELD.match(line):
            section, current = "Args", found[1]
            about[found[1]] = found[2].strip()
        elif line.startswith(":"):
            section, current = "other", None
        elif section is None:
            text.append(line)
        elif section in ("Args", "Arguments", "Parameters"):
            entry = _ENTRY.match(line.strip())
            indent = len(line) - len(line.lstrip())
            if entry and 0 < indent <= 4:
                current = entry[1]
                about[current] = entry[2].strip()
            elif current is not None and line.strip():
                about[current] = f"{about[current]} {line.strip()}".strip()
    return "\n".join(text).strip(), about
