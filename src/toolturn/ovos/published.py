"""Any set of tools as an OPM ToolBox, for every engine that takes one and for the message bus."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, ClassVar

from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput
from pydantic import ConfigDict, Field, PrivateAttr, create_model, model_validator

from ..background import background
from ..errors import InvalidToolArguments, ToolError, ToolTimeoutError
from ..messages import Content, TextPart
from ..perform import needs_approval
from ..tools.context import ToolContext
from ..tools.tool import Tool
from ..tools.toolset import ToolSet
from .causes import cause_text

# what is known of the conversation that a call on the message bus belongs to
_asking: ContextVar[ToolContext | None] = ContextVar("_asking", default=None)


class PublishedOutput(ToolOutput):  # type: ignore[misc]
    """What a tool gave: text, or anything made of JSON's types."""

    result: Any = Field(description="The result.")


class PublishedArguments(ToolArguments):  # type: ignore[misc]
    """The arguments of a tool, checked by the tool itself; its JSON Schema is the tool's own."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    tool: ClassVar[Tool[Any, Any]]
    _request: Any = PrivateAttr(None)

    @model_validator(mode="after")
    def _checked(self) -> PublishedArguments:
        # as text, so that the tool sees nothing that a model could not have written
        self._request = type(self).tool.validate(json.dumps(self.model_extra or {}))
        return self

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema of the tool's arguments."""
        return deepcopy(cls.tool.parameters)


class PublishedToolBox(ToolBox):  # type: ignore[misc]
    """A set of tools as a ToolBox; :func:`toolbox_of` makes one.

    A call runs the tool on toolturn's own event loop, whichever thread it comes from. ``tools`` shows what is there
    now, and fails aloud where that can not be said: the base class would swallow it. Of a tool that wants approval the
    engines of toolturn ask for it; anywhere else nobody can be asked, and such a call is not run.

    Args:
        toolset: The tools, or a function that gives them as they are now.
        toolbox_id: The name of its entry point, and what it is called on the message bus.
        config: Its section of a persona; ``timeout`` is the time in seconds that a tool without a bound of its own
            has.
        bus: The message bus to answer on.

    Raises:
        ValueError: The timeout is not a positive number.
    """

    def __init__(
        self,
        toolset: ToolSet | Callable[[], ToolSet],
        toolbox_id: str,
        config: Mapping[str, Any] | None = None,
        bus: Any = None,
    ) -> None:
        self._toolset = toolset
        self._published: tuple[ToolSet, dict[str, Any]] | None = None
        known = dict(config or {})
        self._timeout = _seconds(toolbox_id, known.get("timeout"))
        self._made = False
        super().__init__(toolbox_id=toolbox_id, config=known, bus=bus)
        self._made = True

    @property
    def toolset(self) -> ToolSet:
        """The tools as they are now."""
        return self._toolset if isinstance(self._toolset, ToolSet) else self._toolset()

    @property
    def tools(self) -> dict[str, Any]:
        """The tools by name, as OPM knows them."""
        toolset = self.toolset
        published = self._published
        if published is None or published[0] is not toolset:
            made = {name: _agent_tool(name, tool, self._run) for name, tool in toolset.items()}
            self._published = published = (toolset, made)
        return published[1]

    @tools.setter
    def tools(self, found: Any) -> None:
        """The base class keeps what it discovered; here that is never older than the tools."""

    def discover_tools(self) -> list[Any]:
        """Return the tools as OPM knows them; nothing is started or asked for anew."""
        # the base class asks while the toolbox is made, when nobody would hear what goes wrong
        return list(self.tools.values()) if self._made else []

    def get_tool(self, name: str) -> Any:
        """Return a tool, or None; an unknown name changes nothing.

        Args:
            name: The tool's name.
        """
        return self.tools.get(name)

    def refresh_tools(self) -> None:
        """Do nothing: the tools are never older than what they are made of."""

    def call_tool(self, name: str, tool_kwargs: Any) -> Any:
        """Run a tool and wait for its result.

        Args:
            name: The tool's name.
            tool_kwargs: Its arguments, or its validated argument model.

        Returns:
            What the tool gave, as ``result``.

        Raises:
            ValueError: There is no such tool, or the arguments do not fit; the text names the fields.
            RuntimeError: The tool failed; the text holds the cause.
        """
        tool = self.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            known = ", ".join(self.tools)
            raise ValueError(f"Unknown tool {name!r:.100} for ToolBox {self.toolbox_id!r} (known: {known})")
        arguments = tool_kwargs
        if isinstance(arguments, Mapping):
            arguments = dict(arguments)
            try:
                arguments = tool.argument_schema(**arguments)
            except Exception as exc:
                detail = _input_fault(tool.argument_schema.tool, arguments, exc)
                raise ValueError(
                    f"Tool input validation failed for {name!r} in ToolBox {self.toolbox_id!r}: {detail}"
                ) from exc
        elif not isinstance(arguments, tool.argument_schema):
            raise RuntimeError(f"Tool {name!r} called with {type(arguments).__name__}, not with its arguments")
        try:
            return tool.tool_call(arguments)
        except Exception as exc:
            detail = str(exc) if isinstance(exc, (ToolError, ToolTimeoutError)) else cause_text(exc)
            raise RuntimeError(f"Tool execution failed for {name!r} in ToolBox {self.toolbox_id!r}: {detail}") from exc

    def handle_call(self, message: Any) -> None:
        """Answer a call on the message bus; a tool that asks for it is told the session and its language.

        Args:
            message: The call.
        """
        token = _asking.set(_context_of(message))
        try:
            super().handle_call(message)
        finally:
            _asking.reset(token)

    def _run(self, tool: Tool[Any, Any], arguments: PublishedArguments) -> PublishedOutput:
        return background.run(_executed(tool, arguments._request, _asking.get() or ToolContext(), self._timeout))


def toolbox_of(
    toolset: ToolSet | Callable[[], ToolSet], toolbox_id: str, config: Mapping[str, Any] | None = None, bus: Any = None
) -> PublishedToolBox:
    """Return a set of tools as an OPM ToolBox.

    Args:
        toolset: The tools, or a function that gives them as they are now, such as ``lambda: servers.tools``.
        toolbox_id: What it is called.
        config: ``timeout`` is the time in seconds that a tool without a bound of its own has.
        bus: The message bus to answer on.

    Raises:
        ValueError: The timeout is not a positive number.
    """
    return PublishedToolBox(toolset, toolbox_id, config, bus)


def _agent_tool(
    name: str, tool: Tool[Any, Any], run: Callable[[Tool[Any, Any], PublishedArguments], PublishedOutput]
) -> Any:
    made: Any = create_model(f"{name}_arguments", __base__=PublishedArguments)
    made.tool = tool
    return AgentTool(
        name=name,
        description=tool.description,
        argument_schema=made,
        output_schema=PublishedOutput,
        tool_call=lambda arguments: run(tool, arguments),
    )


async def _executed(tool: Tool[Any, Any], request: Any, context: ToolContext, bound: float | None) -> PublishedOutput:
    if await needs_approval(tool, tool.arguments(request)):
        raise ToolError("it was not run: it needs somebody's approval, and nobody can be asked here")
    try:
        scope = asyncio.timeout(bound if tool.timeout is None else None)
        try:
            async with scope:
                result = await tool.execute(request, context=context)
        except TimeoutError as exc:
            if not scope.expired():
                raise
            raise ToolTimeoutError(f"tool {tool.name!r} took longer than {bound:g} seconds") from exc
        content = tool.render(result)
    except SystemExit as exc:
        raise RuntimeError(f"the tool wanted to end the program (SystemExit: {exc})") from exc
    except asyncio.CancelledError as exc:
        raise RuntimeError("the call was cancelled") from exc
    if isinstance(content, str) and not isinstance(result, str) and tool.render_result is None:
        with suppress(ValueError, RecursionError):  # the text of a tool that renders in its own way
            return PublishedOutput(result=json.loads(content))
    return PublishedOutput(result=_text(content))


def _text(content: Content) -> str:
    """A result as text; OPM has no place for images and files."""
    if isinstance(content, str):
        return content
    return "\n".join(
        part.text if isinstance(part, TextPart) else f"[{part.type.partition('_')[0]}]" for part in content
    )


def _input_fault(tool: Tool[Any, Any], arguments: dict[str, Any], exc: Exception) -> str:
    """What the tool itself says of arguments that were refused."""
    try:
        tool.validate(json.dumps(arguments))
    except InvalidToolArguments as fault:
        return str(fault)
    except (TypeError, ValueError, RecursionError):
        pass
    return cause_text(exc)


def _context_of(message: Any) -> ToolContext:
    known = getattr(message, "context", None)
    context = known if isinstance(known, dict) else {}
    session = context.get("session")
    session = session if isinstance(session, dict) else {}
    language = session.get("lang") or context.get("lang")
    name = session.get("session_id")
    return ToolContext(
        session=name if isinstance(name, str) else None, language=language if isinstance(language, str) else None
    )


def _seconds(toolbox_id: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"{toolbox_id}: timeout must be a positive number of seconds")
    return float(value)
