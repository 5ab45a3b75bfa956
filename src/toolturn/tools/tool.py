"""Tool: a name and a description for the model, two pydantic models, and a handler."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from types import CoroutineType, UnionType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from pydantic import BaseModel, ValidationError

from ..arguments import arguments_of, describe_faults, parse_arguments
from ..content import content_of, lifted, may_hold_parts
from ..errors import InvalidToolArguments, ToolTimeoutError
from ..messages import Content, ContentPart, ToolCall, ToolDef
from ..results import ToolStatus
from ..turn import Effect, ToolTraits
from .context import ToolContext
from .running import DEFAULT_GRACE, Guarded, left_behind, run_in_thread

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

Rendered: TypeAlias = Content | ContentPart
"""What a renderer may give: text, one part, or several."""


@dataclass(frozen=True, slots=True)
class ToolInvocationResult:
    """What a call gave.

    Args:
        content: What the model reads: text, or parts with images and files.
        return_direct: Whether it is the turn's answer.
        status: How the call ended.
        value: The object behind it, where it is the turn's answer.
    """

    content: Content
    return_direct: bool
    status: ToolStatus = "ok"
    value: Any = None


class Tool(Generic[RequestT, ResultT]):
    """A tool that a model can call, and that can be run without one.

    Args:
        name: What the model calls it by.
        description: When and how to use it, for the model.
        request_model: The pydantic model of the arguments.
        result_model: The pydantic model of the result; None for a tool that returns nothing. Its fields may hold
            ImagePart and FilePart: the model is shown them behind the rest.
        handler: Takes the request and gives the result, at once or as a coroutine; a parameter annotated
            :class:`ToolContext` is given one.
        return_direct: A good result is the turn's answer.
        render_result: Makes what the model reads: text, a part, or a list of parts; compact JSON where None.
        effect: What running a call again would do: ``none``, nothing when given the same key (``keyed``), or harm
            (``once``).
        parallel: Its calls may run beside those of other parallel tools.
        timeout: Seconds a call may take; None for no bound of its own.
        run_in_thread: A handler that is no coroutine function runs in a worker thread, not on the event loop.
        loop_key: For ``limits.repeats``, what makes two calls the same: a function of the parsed arguments, or False
            for a tool that is meant to be called again with the same result; all arguments where None.
        approval: Whether somebody has to approve each call in a turn, or a function of the parsed arguments that
            says so of this one.

    Raises:
        ValueError: The name or the description is empty, or the timeout is not positive.
        TypeError: A model is no pydantic model, or the handler can not be called.
    """

    @overload
    def __init__(
        self: Tool[RequestT, None],
        name: str,
        description: str,
        request_model: type[RequestT],
        result_model: None,
        handler: Callable[..., Any],
        *,
        return_direct: bool = ...,
        render_result: Callable[[None], Rendered] | None = ...,
        effect: Effect = ...,
        parallel: bool = ...,
        timeout: float | None = ...,
        run_in_thread: bool = ...,
        loop_key: Callable[[Any], Any] | Literal[False] | None = ...,
        approval: bool | Callable[[Any], Any] = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        description: str,
        request_model: type[RequestT],
        result_model: type[ResultT] | None,
        handler: Callable[..., Any],
        *,
        return_direct: bool = ...,
        render_result: Callable[[ResultT], Rendered] | None = ...,
        effect: Effect = ...,
        parallel: bool = ...,
        timeout: float | None = ...,
        run_in_thread: bool = ...,
        loop_key: Callable[[Any], Any] | Literal[False] | None = ...,
        approval: bool | Callable[[Any], Any] = ...,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        description: str,
        request_model: type[RequestT],
        result_model: type[ResultT] | None,
        handler: Callable[..., Any],
        *,
        return_direct: bool = False,
        render_result: Callable[[Any], Rendered] | None = None,
        effect: Effect = "once",
        parallel: bool = False,
        timeout: float | None = None,
        run_in_thread: bool = True,
        loop_key: Callable[[Any], Any] | Literal[False] | None = None,
        approval: bool | Callable[[Any], Any] = False,
    ) -> None:
        self._check_models(name, request_model, result_model)
        if not isinstance(name, str) or not name:
            raise ValueError("tool name must not be empty")
        if not description:
            raise ValueError(f"tool {name!r} needs a description")
        if not callable(handler):
            raise TypeError(f"the handler of tool {name!r} can not be called")
        if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
            raise ValueError(f"the timeout of tool {name!r} must be a positive number of seconds")
        self.name = name
        self.description = description
        self.request_model = request_model
        self.result_model = result_model
        self.handler = handler
        self.return_direct = return_direct
        self.render_result = render_result
        self.timeout = timeout
        self.loop_key = loop_key or None
        self.approval = approval
        self.traits = ToolTraits(return_direct, effect, parallel, loop_key is False, approval is not False)
        self._context_parameter = _context_parameter(handler)
        # an object whose call is a coroutine function is asynchronous too
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
        self._threaded = run_in_thread and not self._is_async
        self._parameters: dict[str, Any] | None = None
        # Where a model does not override pydantic's entry points, what stands behind them is called directly.
        self._plain_request = _is_pydantics(request_model, "model_validate")
        self._plain_result = _is_pydantics(result_model, "model_dump_json")
        self._holds_parts = result_model is not None and may_hold_parts(result_model)

    def _check_models(self, name: str, request_model: Any, result_model: Any) -> None:
        if not (isinstance(request_model, type) and issubclass(request_model, BaseModel)):
            raise TypeError(f"the request model of tool {name!r} must be a pydantic model")
        if result_model is not None and not (isinstance(result_model, type) and issubclass(result_model, BaseModel)):
            raise TypeError(f"the result model of tool {name!r} must be a pydantic model or None")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def wants_context(self) -> bool:
        """Whether the handler has a parameter for a ToolContext."""
        return self._context_parameter is not None

    @property
    def threaded(self) -> bool:
        """Whether the handler runs in a worker thread."""
        return self._threaded

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, made once."""
        if self._parameters is None:
            self._parameters = self._schema()
        return self._parameters

    def _schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self.request_model.model_json_schema()  # type: ignore[attr-defined]
        return schema

    def definition(self, name: str | None = None) -> ToolDef:
        """Return what a model is told of the tool.

        Args:
            name: The name it has in a set; its own where None.
        """
        return ToolDef(name or self.name, self.description, self.parameters)

    def validate(self, arguments: str | ToolCall) -> RequestT:
        """Return the request that a call's argument text holds.

        Args:
            arguments: JSON text as a model wrote it, or the call that has it.

        Raises:
            InvalidToolArguments: It does not fit; the text tells the model what to mend.
        """
        if isinstance(arguments, ToolCall):
            return self._request(arguments_of(arguments))
        return self._request(parse_arguments(arguments))

    def arguments(self, request: RequestT) -> Any:
        """Return the parsed arguments as what a user's function is told of them: here the request itself.

        Args:
            request: What :meth:`validate` gave.
        """
        return request

    def _request(self, arguments: dict[str, Any]) -> RequestT:
        try:
            model: Any = self.request_model
            request: RequestT = (
                model.__pydantic_validator__.validate_python(arguments)
                if self._plain_request
                else model.model_validate(arguments)
            )
        except ValidationError as exc:
            raise InvalidToolArguments(describe_faults(exc)) from None
        return request

    def execute(
        self, request: RequestT, *, context: ToolContext | None = None, grace: float = DEFAULT_GRACE
    ) -> Coroutine[Any, Any, ResultT]:
        """Run the handler and return its result; to be awaited.

        Args:
            request: A request of the tool's model.
            context: What the handler may know of the turn.
            grace: Seconds a cancelled handler has to clean up.

        Returns:
            The result, of the result model; a dictionary the handler gave is validated.

        Raises:
            ToolTimeoutError: It took longer than the timeout; ``__cause__`` is LeftBehind when it still runs.
            TypeError: The result is not of the result model.
            Exception: Whatever the handler raises.
        """
        # no coroutine of its own: each layer of them is felt in every iteration
        return self._run(request, context, grace) if self.timeout is None else self._timed(request, context, grace)

    async def _timed(self, request: RequestT, context: ToolContext | None, grace: float) -> ResultT:
        assert self.timeout is not None
        scope = asyncio.timeout(self.timeout)
        try:
            async with scope:
                return await self._run(request, context, grace)
        except TimeoutError as exc:
            if not scope.expired():
                raise
            # the first patch releases of Python 3.11 leave it as the context
            cancel = exc.__cause__ or exc.__context__
            left = cancel.__cause__ if left_behind(cancel) and cancel is not None else None
            error = ToolTimeoutError(f"tool {self.name!r} took longer than {self.timeout:g} seconds")
            error.tool = self
            raise error from left

    async def _run(self, request: RequestT, context: ToolContext | None, grace: float) -> ResultT:
        handler = self.handler
        extra = self._context_parameter
        if extra is None:
            if self._is_async:
                result: Any = handler(request)
            elif self._threaded:
                result = await run_in_thread(lambda: handler(request), grace)
            else:
                result = handler(request)
        else:
            known = {extra: context or ToolContext()}
            if self._threaded:
                result = await run_in_thread(lambda: handler(request, **known), grace)
            else:
                result = handler(request, **known)
        if type(result) is CoroutineType or inspect.isawaitable(result):
            coroutine = result if type(result) is CoroutineType else _await(result)
            # most handlers that are quick never wait: those need no guard
            try:
                waits_for = coroutine.send(None)
            except StopIteration as stop:
                result = stop.value
            else:
                result = await Guarded(coroutine, waits_for, grace)
        return self._checked(result)

    def _checked(self, result: Any) -> ResultT:
        model: Any = self.result_model
        if model is None:
            if result is not None:
                raise TypeError(f"tool {self.name!r} must return None, not {type(result).__name__}")
        elif not isinstance(result, model):
            if not isinstance(result, dict):
                raise TypeError(f"tool {self.name!r} must return {model.__name__}, not {type(result).__name__}")
            result = model.model_validate(result)
        checked: ResultT = result
        return checked

    def render(self, result: ResultT) -> Content:
        """Return a result as the model reads it: text, or parts where it holds images or files.

        Args:
            result: What :meth:`execute` returned.

        Raises:
            TypeError: ``render_result`` gave neither text nor parts.
            Exception: Whatever it or the serialiser raises.
        """
        if self.render_result is not None:
            given: Any = self.render_result(result)
            content = content_of(given)
            if content is None:
                raise TypeError(f"render_result of tool {self.name!r} gave {type(given).__name__}, not text or parts")
            return content
        return self._text(result)

    def _text(self, result: ResultT) -> Content:
        if result is None:
            return "null"
        made: Any = result
        text: str = (
            made.__pydantic_serializer__.to_json(made).decode()
            if self._plain_result and type(result) is self.result_model
            else made.model_dump_json()
        )
        return lifted(text) if self._holds_parts else text

    async def invoke(
        self, arguments: str, *, context: ToolContext | None = None, grace: float = DEFAULT_GRACE
    ) -> ToolInvocationResult:
        """Run one call from its argument text to what the model reads.

        Args:
            arguments: JSON text as a model wrote it.
            context: What the handler may know of the turn.
            grace: Seconds a cancelled handler has to clean up.

        Returns:
            The result, or an observation about invalid arguments.

        Raises:
            Exception: Whatever the handler or the renderer raises.
        """
        try:
            request = self.validate(arguments)
        except InvalidToolArguments as exc:
            return ToolInvocationResult(invalid_arguments_content(str(exc)), False, "invalid_arguments")
        result = await self.execute(request, context=context, grace=grace)
        return ToolInvocationResult(self.render(result), self.return_direct)


def invalid_arguments_content(detail: str) -> str:
    """Return the observation about arguments that do not fit.

    Args:
        detail: What the model has to mend.
    """
    return json.dumps({"error": "invalid_tool_arguments", "detail": detail})


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _context_parameter(handler: Callable[..., Any]) -> str | None:
    """The name of the handler's parameter that is annotated ToolContext, where it has one."""
    function = plain_function(handler)
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - a name that can not be resolved is not ours to complain about
        hints = getattr(function, "__annotations__", {})
    for name, hint in hints.items():
        if name != "return" and takes_context(hint):
            return name
    return None


def takes_context(hint: Any) -> bool:
    """Return whether a parameter with this annotation is given a ToolContext; it may be optional."""
    optional = get_origin(hint) in (Union, UnionType) and ToolContext in get_args(hint)
    return hint is ToolContext or hint == "ToolContext" or optional


def plain_function(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function behind a decorated one, a partial, or an object that can be called."""
    while isinstance(handler, partial):
        handler = handler.func
    return inspect.unwrap(handler) if inspect.isroutine(handler) else type(handler).__call__


def exact_text(text: str) -> str:
    """Return the text as a plain ``str``, also when it is a member of a text enumeration."""
    return text if type(text) is str else str.__str__(text)


def _is_pydantics(model: Any, name: str) -> bool:
    """Whether a model's method is pydantic's own."""
    return _function(getattr(model, name, None)) is _function(getattr(BaseModel, name))


def _function(method: Any) -> Any:
    return getattr(method, "__func__", method)
