"""A tool of an MCP server as a tool of a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import jsonschema_rs
from mcp_types import CallToolResult
from mcp_types import Tool as ListedTool

from ..content import as_text
from ..errors import ToolError
from ..messages import Content, ContentPart, FilePart, TextPart
from ..tools.context import ToolContext
from ..tools.json_schema import SchemaTool
from ..turn import Effect
from .results import result_content

Call = Callable[[str, dict[str, Any], ToolContext], Awaitable[CallToolResult]]

_MAX_DEPTH = 60


class McpTool(SchemaTool):
    """A tool that a server runs.

    Args:
        server: The server's name.
        tool: What the server says of it.
        call: Makes the call.
        clean: Takes secrets out of a text.
        timeout: Seconds a call may take.
        trust_hints: Whether its effect is what the server says.

    Attributes:
        server: The server's name.
        annotations: What the server says of the tool, such as ``destructiveHint``; it may be wrong.
    """

    def __init__(
        self,
        server: str,
        tool: ListedTool,
        call: Call,
        clean: Callable[[str], str],
        *,
        timeout: float,
        trust_hints: bool,
    ) -> None:
        self.server = server
        hints = tool.annotations
        self.annotations: dict[str, Any] = {} if hints is None else hints.model_dump(by_alias=True, exclude_none=True)
        if _deeper_than(tool.input_schema, _MAX_DEPTH):
            raise ValueError(f"the schema of tool {tool.name!r} is nested too deeply")
        effect: Effect = "once"
        if trust_hints:
            effect = "keyed" if self.annotations.get("idempotentHint") else effect
            effect = "none" if self.annotations.get("readOnlyHint") else effect
        title = self.annotations.get("title")
        name = tool.name

        self._promised = tool.output_schema
        self._output: Any = None

        async def handler(arguments: dict[str, Any], context: ToolContext) -> Any:
            result = await call(name, arguments, context)
            content = _cleaned(result_content(result, self._keeps_promise(result.structured_content)), clean)
            if result.is_error:
                told = as_text(content)
                raise ToolError(told or f"the tool {name} of the MCP server {server} failed and did not say why")
            return content or None

        super().__init__(
            name,
            tool.description or tool.title or title or f"{name} of the server {server}",
            tool.input_schema,
            handler,
            effect=effect,
            parallel=effect == "none",
            timeout=timeout,
        )

    def _keeps_promise(self, structured: Any) -> bool:
        """Whether a result's structure is what the tool said it would be."""
        if structured is None or self._promised is None:
            return False
        try:
            if self._output is None:
                self._output = jsonschema_rs.validator_for(self._promised, retriever=_nothing_outside)
            return bool(self._output.is_valid(structured))
        except Exception:  # noqa: BLE001 - a schema that can not be used promises nothing
            self._promised = None
            return False


def _cleaned(content: Content, clean: Callable[[str], str]) -> Content:
    """The content without secrets in its texts and names."""
    if isinstance(content, str):
        return clean(content)
    made: list[ContentPart] = []
    for part in content:
        if isinstance(part, TextPart):
            made.append(TextPart(clean(part.text)))
        else:
            made.append(FilePart(part.url, clean(part.name)) if isinstance(part, FilePart) else part)
    return made


def _nothing_outside(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}")


def _deeper_than(schema: Any, depth: int) -> bool:
    level = [schema]
    for _ in range(depth):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True
