"""Any OPM ToolBox as a set of tools.

A toolbox is read as it is: its tools are converted once and again only when they change, it is never asked to look
for tools anew because a model made up a name, and what it hides behind "Tool execution failed" is told to the model.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ovos_plugin_manager.templates.agent_tools import ToolBox
from ovos_utils.log import LOG
from pydantic import BaseModel

from ..codec import dumps, plain
from ..errors import InvalidToolArguments, ToolError
from ..models.schema.names import wire_names
from ..tools.function import result_text
from ..tools.tool import Tool, _context_parameter
from ..tools.toolset import ToolSet
from ..turn import Effect
from .causes import cause_text, faults_text
from .published import PublishedToolBox

Clashes: TypeAlias = Literal["first", "prefix"]

_KEPT = "_toolturn_tools"
_MAX_OPTIONS = 8
# how OPM's wrapper begins the texts of the errors behind which it hides what happened
_WRAPPED_INPUT = ("Tool input validation failed", "Invalid input for")
_WRAPPED_OUTPUT = ("Tool output validation failed", "Invalid output from")
_WRAPPED = (*_WRAPPED_INPUT, *_WRAPPED_OUTPUT, "Tool execution failed")
# what the toolboxes that stand for tools of other protocols give: the text, whether it is an error, the text again
_ADAPTED = {"content", "is_error", "raw"}


class _Listed(NamedTuple):
    """What a toolbox says of one of its tools; two are equal where nothing has changed."""

    name: str
    description: str
    arguments: Any
    output: Any


class _Options(NamedTuple):
    timeout: float | None
    effect: Effect
    parallel: bool
    approval: bool | Callable[[Any], Any]
    causes: bool


def toolset_of(
    toolbox: Any,
    *,
    timeout: float | None = None,
    effect: Effect = "once",
    parallel: bool = False,
    approval: bool | Callable[[Any], Any] = False,
    causes: bool = True,
) -> ToolSet:
    """Return the tools of an OPM ToolBox, or of any object that has its methods.

    Arguments are checked against the tool's ``argument_schema``; the result is the compact JSON of its output model,
    or text where it gives text. A call runs in a worker thread. The set is kept with the toolbox: it is the same
    object until the toolbox's tools change. A toolbox that was made with :func:`toolturn.ovos.published.toolbox_of`
    gives the tools it was made of, whose own properties stand.

    Args:
        toolbox: The toolbox.
        timeout: Seconds a call may take; None for no bound.
        effect: What running a call again would do; a toolbox does not say so itself.
        parallel: Its calls may run beside those of other parallel tools.
        approval: Whether somebody has to approve each call, or a function of the arguments that says so of this one.
        causes: Tell the model the text of an exception and not its class alone.

    Raises:
        TypeError: It is no toolbox.
        ValueError: An option is out of its range.
    """
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
        raise ValueError("the timeout must be a positive number of seconds")
    if effect not in get_args(Effect):
        raise ValueError(f"effect must be one of {', '.join(get_args(Effect))}")
    options = _Options(timeout, effect, parallel, approval, causes)
    kept = _kept(toolbox)
    with kept.lock:
        ours = _published(toolbox)
        source = _listed(toolbox, kept) if ours is None else ours
        if source != kept.source:
            kept.source = source
            kept.sets = {}
        made = kept.sets.get(options)
        if made is None:
            made = _converted(toolbox, source, options) if isinstance(source, tuple) else _bounded(source, timeout)
            if len(kept.sets) >= _MAX_OPTIONS:
                kept.sets.clear()
            kept.sets[options] = made
        return made


class Toolboxes:
    """Several toolboxes as one set of tools, which stays the same object until one of them changes.

    Args:
        toolboxes: The toolboxes, the first one first.
        clashes: ``first``: of several tools of one name the first toolbox's is there and the others are left out, with
            a warning; ``prefix``: all of them are there, with the toolbox's id and ``__`` before the name.
        options: Keyword arguments of :func:`toolset_of`.

    Raises:
        ValueError: ``clashes`` is neither.
    """

    def __init__(self, toolboxes: Iterable[Any], *, clashes: Clashes = "first", **options: Any) -> None:
        if clashes not in ("first", "prefix"):
            raise ValueError("clashes must be 'first' or 'prefix'")
        self.toolboxes = tuple(toolboxes)
        self._clashes = clashes
        self._options = options
        self._lock = threading.Lock()
        self._made: tuple[list[ToolSet], ToolSet] | None = None
        self._told: set[str] = set()

    @property
    def tools(self) -> ToolSet:
        """The tools as they are now; a toolbox that can not be read has none, with a warning that says why."""
        parts = [self._part(toolbox) for toolbox in self.toolboxes]
        with self._lock:
            made = self._made
            if made is None or any(old is not new for old, new in zip(made[0], parts, strict=True)):
                self._made = made = (parts, self._joined(parts))
            return made[1]

    def _part(self, toolbox: Any) -> ToolSet:
        try:
            return toolset_of(toolbox, **self._options)
        except Exception as exc:  # noqa: BLE001 - one toolbox takes no other down
            self._tell(f"the toolbox {_id_of(toolbox)} has no tools: {cause_text(exc)}")
            return _EMPTY

    def _joined(self, parts: list[ToolSet]) -> ToolSet:
        owners: dict[str, list[int]] = {}
        for number, part in enumerate(parts):
            for name in part.names:
                owners.setdefault(name, []).append(number)
        named: dict[str, Tool[Any, Any]] = {}
        for number, part in enumerate(parts):
            mine = _id_of(self.toolboxes[number])
            for name, tool in part.items():
                if len(owners[name]) == 1:
                    named[name] = tool
                    continue
                first = _id_of(self.toolboxes[owners[name][0]])
                if self._clashes == "first":
                    if owners[name][0] == number:
                        named[name] = tool
                    else:
                        self._tell(f"the tool {name!r} of {mine} is left out: {first} has one of this name")
                    continue
                full, count = f"{mine}__{name}", 2
                while full in named or full in owners:
                    full, count = f"{mine}{count}__{name}", count + 1
                named[full] = tool
        short = wire_names(named) if self._clashes == "prefix" else {name: name for name in named}
        return ToolSet({short[name]: tool for name, tool in named.items()})

    def _tell(self, text: str) -> None:
        if text not in self._told and len(self._told) < 1000:
            self._told.add(text)
            LOG.warning(text)


_EMPTY = ToolSet()


# --- what is kept with a toolbox ---------------------------------------------------------


class _Kept:
    """What is known of a toolbox; it stands in the toolbox, so that it is gone when the toolbox is."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.source: tuple[_Listed, ...] | ToolSet | None = None
        self.sets: dict[_Options, ToolSet] = {}
        self.discovered: list[Any] | None = None
        self.asked_again = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of the toolbox is another toolbox


_keeping = threading.Lock()


def _kept(toolbox: Any) -> _Kept:
    with _keeping:
        kept = getattr(toolbox, "__dict__", {}).get(_KEPT)
        if not isinstance(kept, tuple) or kept[0] != id(toolbox) or kept[1] is None:
            kept = (id(toolbox), _Kept())
            with suppress(AttributeError, TypeError):  # without a place for it the tools are converted each time
                object.__setattr__(toolbox, _KEPT, kept)
        known: _Kept = kept[1]
        return known


def _published(toolbox: Any) -> ToolSet | None:
    """The tools that a toolbox was made of, where it is one of ours that nobody has changed."""
    if not isinstance(toolbox, PublishedToolBox) or not _unchanged(
        toolbox, PublishedToolBox, ("call_tool", "get_tool")
    ):
        return None
    tools: ToolSet = toolbox.toolset
    return tools


def _bounded(tools: ToolSet, timeout: float | None) -> ToolSet:
    """The same tools, where those without a bound of their own have this one."""
    if timeout is None or all(tool.timeout is not None for tool in tools):
        return tools
    return ToolSet({name: tool if tool.timeout is not None else _copied(tool, timeout) for name, tool in tools.items()})


def _copied(tool: Tool[Any, Any], timeout: float) -> Tool[Any, Any]:
    made = copy(tool)
    made.timeout = timeout
    return made


def _unchanged(toolbox: Any, cls: type, names: Iterable[str]) -> bool:
    """Whether these methods of a toolbox are those of a class."""
    return all(
        getattr(getattr(toolbox, name), "__func__", getattr(toolbox, name)) is getattr(cls, name) for name in names
    )


# --- reading a toolbox -------------------------------------------------------------------


def _id_of(toolbox: Any) -> str:
    found = getattr(toolbox, "toolbox_id", None)
    return found if isinstance(found, str) and found else type(toolbox).__name__


def _listed(toolbox: Any, kept: _Kept) -> tuple[_Listed, ...]:
    tools = getattr(toolbox, "tools", None)
    if isinstance(tools, Mapping):
        if not tools and not kept.asked_again:
            tools = _asked_again(toolbox, kept)
        return tuple(_of_object(name, tool) for name, tool in list(tools.items()))
    if isinstance(tools, (list, tuple)):
        return tuple(_of_object(getattr(tool, "name", None), tool) for tool in tools)
    entries = getattr(toolbox, "tool_json_list", None)
    if callable(entries):
        entries = entries()
    if isinstance(entries, (list, tuple)):
        return tuple(_of_entry(entry) for entry in entries)
    if callable(getattr(toolbox, "discover_tools", None)):
        if kept.discovered is None:
            kept.discovered = list(toolbox.discover_tools())
        return tuple(_of_object(getattr(tool, "name", None), tool) for tool in kept.discovered)
    raise TypeError(f"{type(toolbox).__name__} is no toolbox: it has neither tools nor discover_tools()")


def _asked_again(toolbox: Any, kept: _Kept) -> Mapping[str, Any]:
    """The tools of a toolbox that had none when it was made: its base class swallows what went wrong then."""
    kept.asked_again = True
    refresh = getattr(toolbox, "refresh_tools", None)
    if callable(refresh):
        try:
            refresh()
        except Exception as exc:  # noqa: BLE001 - said aloud, once
            LOG.warning(f"the toolbox {_id_of(toolbox)} has no tools: {cause_text(exc)}")
    found = toolbox.tools
    return found if isinstance(found, Mapping) else {}


def _of_object(name: Any, tool: Any) -> _Listed:
    return _Listed(
        name,
        getattr(tool, "description", None) or "",
        getattr(tool, "argument_schema", None),
        getattr(tool, "output_schema", None),
    )


def _of_entry(entry: Any) -> _Listed:
    if not isinstance(entry, Mapping):
        return _Listed("", "", None, None)
    return _Listed(entry.get("name", ""), entry.get("description") or "", entry.get("argument_schema"), None)


def _converted(toolbox: Any, listed: tuple[_Listed, ...], options: _Options) -> ToolSet:
    made: dict[str, Tool[Any, Any]] = {}
    for item in listed:
        try:
            if item.name in made:
                raise ValueError("there are two of this name")
            made[item.name] = ToolBoxTool(toolbox, item, options)
        except Exception as exc:  # noqa: BLE001 - one bad tool takes no other down
            LOG.warning(f"the tool {item.name!r} of the toolbox {_id_of(toolbox)} is left out: {cause_text(exc)}")
    return ToolSet(made)


# --- a tool ------------------------------------------------------------------------------


class ToolBoxTool(Tool[Any, Any]):
    """A tool that a toolbox runs."""

    def __init__(self, toolbox: Any, listed: _Listed, options: _Options) -> None:
        self.toolbox = toolbox
        self._output = _model(listed.output)
        self._causes = options.causes
        self._arguments = _model(listed.arguments)
        # Where OPM's own wrapper would be around the call, it is left out: it takes neither text nor None, and hides
        # what went wrong. A toolbox that has one of its own is called through it.
        self._direct = (
            self._arguments is not None
            and isinstance(toolbox, ToolBox)
            and isinstance(toolbox.tools, Mapping)
            and _unchanged(toolbox, ToolBox, ("call_tool", "get_tool", "validate_input", "validate_output"))
        )
        super().__init__(
            listed.name,
            str(listed.description).strip() or f"{listed.name} of {_id_of(toolbox)}",
            self._arguments or dict,
            None,
            self._call,
            timeout=options.timeout,
            effect=options.effect,
            parallel=options.parallel,
            approval=options.approval,
        )
        if self._direct:
            self._context_parameter = _context_parameter(toolbox.tools[listed.name].tool_call)
        self._parameters = _schema(listed.arguments)

    def _check_models(self, name: str, request_model: Any, result_model: Any) -> None:
        """The toolbox has its own."""

    def _request(self, arguments: dict[str, Any]) -> Any:
        if self._arguments is None:
            return arguments
        try:
            request = super()._request(arguments)
        except (InvalidToolArguments, RecursionError):
            raise
        except Exception as exc:
            raise InvalidToolArguments(cause_text(exc)) from exc
        return request if self._direct else arguments

    def _call(self, request: Any, **known: Any) -> Any:
        try:
            result = self._called(request, known)
            if inspect.isawaitable(result):
                return self._awaited(result)
            return self._content(result)
        except ToolError:
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as exc:
            raise self._failure(exc) from exc

    async def _awaited(self, result: Any) -> str:
        try:
            return self._content(await result)
        except ToolError:
            raise
        except (Exception, SystemExit) as exc:
            raise self._failure(exc) from exc

    def _called(self, request: Any, known: dict[str, Any]) -> Any:
        tools = getattr(self.toolbox, "tools", None)
        if isinstance(tools, Mapping) and self.name not in tools:
            raise ToolError("the toolbox does not have this tool any more")
        if not self._direct:
            return self.toolbox.call_tool(self.name, request)
        return self.toolbox.tools[self.name].tool_call(request, **known)

    def _content(self, result: Any) -> str:
        """What a tool gave, as text for the model."""
        if result is None:
            return "ok"
        if self._output is not None and isinstance(result, dict):
            try:
                result = self._output.model_validate(result)
            except Exception as exc:
                raise ToolError(
                    f"the call was made, but its result is not what it should be: {faults_text(exc)}"
                ) from exc
        if isinstance(result, BaseModel) and type(result).model_fields.keys() == _ADAPTED:
            return _adapted(result)
        try:
            return result.model_dump_json() if isinstance(result, BaseModel) else result_text(result)
        except Exception:  # noqa: BLE001 - such as half a character, or a type JSON does not know
            return dumps(plain(result.model_dump() if isinstance(result, BaseModel) else result))

    def _failure(self, exc: BaseException) -> ToolError:
        """What the model is told of an exception of the tool, or of the toolbox around it."""
        wrapped = exc
        while wrapped.__cause__ is not None and str(wrapped).startswith(_WRAPPED):
            exc, wrapped = wrapped, wrapped.__cause__
        around = str(exc)
        if around.startswith(_WRAPPED_INPUT):
            return ToolError(f"the arguments do not fit: {faults_text(wrapped)}")
        LOG.error(f"the tool {self.name!r} of the toolbox {_id_of(self.toolbox)} failed: {cause_text(wrapped)}")
        if around.startswith(_WRAPPED_OUTPUT):
            return ToolError(f"the call was made, but its result is not what it should be: {faults_text(wrapped)}")
        return ToolError(faults_text(wrapped) if self._causes else type(wrapped).__name__)

    def _checked(self, result: Any) -> Any:
        return result

    def _text(self, result: Any) -> str:
        return str(result)


def _model(schema: Any) -> type[BaseModel] | None:
    return schema if isinstance(schema, type) and issubclass(schema, BaseModel) else None


def _schema(arguments: Any) -> dict[str, Any]:
    model = _model(arguments)
    schema = arguments if model is None else model.model_json_schema()
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise ValueError("its argument schema is not that of an object")
    made = dict(schema)
    json.dumps(made)
    return made


def _adapted(result: Any) -> str:
    text = result.content if isinstance(result.content, str) else ""
    if result.is_error:
        raise ToolError(text or "the tool failed and did not say why")
    kinds = [block.get("type") for block in result.raw if isinstance(block, dict)]
    others = [f"[{kind}]" for kind in kinds if isinstance(kind, str) and kind != "text"]
    return "\n".join([*([text] if text else []), *others]) or "ok"
