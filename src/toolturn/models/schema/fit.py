"""Tools as a provider takes them: names, descriptions and schemas that fit its profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...messages import ToolDef
from .changes import NotExpressible
from .fitted import FittedTool, FittedTools
from .names import wire_name, wire_names
from .profiles import Profile
from .reader import Reader
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
