"""Tools as a provider takes them: names, descriptions and schemas that fit its profile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from ...frozen import frozen
from ...messages import ChatResponse, ToolCall, ToolDef
from .changes import Change, NotExpressible
from .names import fold, wire_name, wire_names
from .profiles import Profile
from .reader import Reader
from .restore import restore
from .source import SchemaFault, Source, plain
from .words import described
from .writer import Writer, Written


class UnusableTool(ValueError):
    """A tool no model could call, whatever is left out of its schema.

    Args:
        tool: The tool's name.
        place: Where in its schema, as a JSON pointer; empty for the tool as a whole.
        reason: What is wrong there.
    """

    def __init__(self, tool: str, place: str, reason: str) -> None:
        super().__init__(tool, place, reason)
        self.tool = tool
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        where = f", at {self.place}" if self.place else ""
        return f"tool {self.tool!r} can not be offered to a model: {self.reason}{where}"


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

    def own_name(self, name: str) -> str:
        """Return the own name of the tool that a model called; what is no name on the wire comes back unchanged."""
        own = self.own_names.get(name)
        if own is None and any(alias != own for alias, own in self.own_names.items()):
            # no two names on the wire are the same but for case, "-" and "_"
            meant = fold(name.strip().removeprefix("functions."))
            own = next((own for alias, own in self.own_names.items() if fold(alias) == meant), None)
        return name if own is None else own

    def unalias(self, response: ChatResponse) -> ChatResponse:
        """Return a reply whose calls have the tools' own names and arguments in the form of their own schemas.

        Arguments that are not JSON stay as they are. What there is nothing to do about is returned itself.

        Args:
            response: The reply to a request with these tools.
        """
        calls = response.tool_calls
        if not calls:
            return response
        restored = [self._unaliased(call) for call in calls]
        if all(new is old for new, old in zip(restored, calls, strict=True)):
            return response
        return replace(response, tool_calls=restored)

    def _unaliased(self, call: ToolCall) -> ToolCall:
        if not isinstance(call.name, str):
            return call
        name = self.own_name(call.name)
        arguments = call.arguments
        tool = self.by_name.get(name)
        if tool is not None and tool.changes and isinstance(arguments, str):
            try:
                written = json.loads(arguments)
            except (ValueError, RecursionError):
                written = None
            if isinstance(written, dict):
                mended = restore_arguments(written, tool)
                if mended != written:
                    arguments = json.dumps(mended, ensure_ascii=False)
        if name == call.name and arguments is call.arguments:
            return call
        return replace(call, name=name, arguments=arguments)


def fit(definition: ToolDef, profile: Profile, name: str | None = None) -> FittedTool:
    """Return a tool in the form a profile takes.

    Whatever the profile does not take is left out and said in the descriptions; the tool's own schema stays what
    is enforced. The definition is not touched.

    Args:
        definition: The tool.
        profile: What is taken.
        name: Its name on the wire; by default its own, cleaned where it must be.

    Raises:
        UnusableTool: Its schema is none, is not that of an object, or is beyond any measure.
    """
    own_name = definition.name
    if not isinstance(own_name, str):
        raise UnusableTool(repr(own_name)[:80], "", "its name is no text")
    parameters: Any = definition.parameters
    if parameters is None or parameters is True:
        parameters = {}
    try:
        if not isinstance(parameters, Mapping):
            raise SchemaFault("", "its schema is no object")
        schema = plain(parameters)
        written, dropped, used, why = _written(schema, profile)
    except SchemaFault as exc:
        raise UnusableTool(own_name, exc.place, exc.reason) from None
    except RecursionError:
        raise UnusableTool(own_name, "", "its schema is nested too deeply") from None
    description = definition.description if isinstance(definition.description, str) else ""
    description = description.encode("utf-8", "replace").decode()
    parameters = written.parameters
    if parameters is not None and parameters.get("description") == description:
        # a class's docstring is both; once is enough
        del parameters["description"]
    description = described(description, written.words)
    description, parameters = _within(description, parameters, used.max_description)
    return FittedTool(
        wire_name(own_name, used.max_name) if name is None else name,
        own_name,
        description,
        parameters,
        used.closed,
        tuple(dict.fromkeys(dropped)),
        written.changes,
        why,
    )


def _written(schema: dict[str, Any], profile: Profile) -> tuple[Written, list[str], Profile, str]:
    why = ""
    while True:
        dropped: list[str] = []
        reader = Reader(
            Source(schema),
            unroll=profile.unroll,
            references=profile.references,
            budget=profile.max_nodes,
            dropped=dropped.append,
        )
        try:
            return Writer(reader, profile, dropped).write(schema), dropped, profile, why
        except NotExpressible as exc:
            if profile.fallback is None:
                raise SchemaFault("", str(exc)) from None
            profile, why = profile.fallback, str(exc)


def _within(description: str, parameters: dict[str, Any] | None, limit: int) -> tuple[str, dict[str, Any] | None]:
    """A description that keeps the limit, with the rest of it in that of the parameters."""
    if not limit or len(description) <= limit:
        return description, parameters
    end = description.rfind(" ", limit // 2, limit)
    end = limit - 1 if end < 0 else end
    if parameters is not None:
        rest = f"…{description[end:].lstrip()}"
        own = parameters.get("description")
        parameters["description"] = f"{rest}\n{own}" if own else rest
    return description[:end] + "…", parameters


def fit_all(definitions: Iterable[ToolDef], profile: Profile) -> FittedTools:
    """Return the tools of a request in the form a profile takes.

    A tool that can not be offered is left out and named in ``warnings``, which are returned and not issued with
    :mod:`warnings`: where those are turned into errors, one bad tool would again fail the whole request.

    Args:
        definitions: The tools.
        profile: What is taken.
    """
    given = tuple(definitions)
    names: dict[str, None] = {}
    warnings = []
    kept = []
    for definition in given:
        if isinstance(definition.name, str) and definition.name in names:
            warnings.append(str(UnusableTool(definition.name, "", "another tool has the same name")))
            continue
        try:
            tool = fit(definition, profile, "")
        except UnusableTool as exc:
            warnings.append(str(exc))
            continue
        names[definition.name] = None
        kept.append(tool)
    aliases = wire_names(names, profile.max_name)
    tools = tuple(replace(tool, name=aliases[tool.own_name]) for tool in kept)
    own_names = {alias: own for own, alias in aliases.items()}
    return FittedTools(tools, aliases, own_names, tuple(warnings), {tool.own_name: tool for tool in tools})


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
