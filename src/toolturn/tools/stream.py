"""AsyncTool: a tool whose result comes in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from .context import ToolContext
from .tool import Tool, _context_parameter

RequestT = TypeVar("RequestT", bound=BaseModel)
ChunkT = TypeVar("ChunkT", bound=BaseModel)


class AsyncTool(Generic[RequestT, ChunkT]):
    """A tool that streams chunks to a program; a model can use what ``as_tool`` makes of it.

    Args:
        name: What it is called.
        description: When and how to use it.
        request_model: The pydantic model of the request.
        chunk_model: The pydantic model of each chunk.
        handler: An async generator function that takes the request.

    Raises:
        ValueError: The name or the description is empty.
    """

    def __init__(
        self,
        name: str,
        description: str,
        request_model: type[RequestT],
        chunk_model: type[ChunkT],
        handler: Callable[..., AsyncIterator[Any]],
    ) -> None:
        if not name:
            raise ValueError("tool name must not be empty")
        if not description:
            raise ValueError(f"tool {name!r} needs a description")
        self.name = name
        self.description = description
        self.request_model = request_model
        self.chunk_model = chunk_model
        self.handler = handler
        self._context_parameter = _context_parameter(handler)

    def __repr__(self) -> str:
        return f"<AsyncTool {self.name}>"

    async def stream(
        self, request: RequestT | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> AsyncIterator[ChunkT]:
        """Yield the chunks as the handler makes them; closing the iterator closes the handler first.

        Args:
            request: A request, or what one is validated from.
            context: What the handler may know of the turn.

        Raises:
            pydantic.ValidationError: The request or a chunk does not fit its model.
            Exception: Whatever the handler raises.
        """
        made = request if isinstance(request, self.request_model) else self.request_model.model_validate(request)
        known = {} if self._context_parameter is None else {self._context_parameter: context or ToolContext()}
        chunks = self.handler(made, **known)
        async with aclosing(chunks) if hasattr(chunks, "aclose") else _nothing():  # type: ignore[type-var]
            async for chunk in chunks:
                yield self.chunk_model.model_validate(chunk)

    def as_tool(self, **options: Any) -> Tool[RequestT, ChunkT]:
        """Return a finite tool: its chunks are told to the turn's audience, the last one is the result.

        Args:
            options: Keyword arguments of :class:`Tool`.
        """

        async def collect(request: RequestT, context: ToolContext) -> ChunkT:
            last: ChunkT | None = None
            stream = self.stream(request, context=context)
            async with aclosing(stream):  # type: ignore[type-var]
                async for chunk in stream:
                    last = chunk
                    context.emit(chunk)
            if last is None:
                raise ValueError(f"tool {self.name!r} gave no chunk")
            return last

        return Tool(self.name, self.description, self.request_model, self.chunk_model, collect, **options)


class _nothing:
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *exc: object) -> None:
        return None
