"""What a persona would do: everything that is wrong with it, where its model is, and what its tools may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ..errors import ModelAuthenticationError, ModelError
from ..plugins import PluginError
from ..turn import Effect
from .boxes import may_of_box, may_of_brain, may_of_server, tools_of, tools_of_box
from .checking import Finding, Level
from .opening import model_of
from .persona import Box, Persona, PersonaError, Reading
from .reading import read_persona


@dataclass(frozen=True, slots=True)
class ToolAbility:
    """What is known of a tool before it runs.

    Args:
        name: The name the model calls it by.
        effect: What running a call again would do: ``none``, ``keyed`` or ``once``.
        approval: Whether somebody has to approve its calls: ``never``, ``always``, or ``by its arguments``.
    """

    name: str
    effect: Effect
    approval: Literal["never", "always", "by its arguments"]


@dataclass(frozen=True, slots=True)
class Ability:
    """What a toolbox or an MCP server lets the model do.

    Args:
        name: The toolbox or the server.
        may: What it may do, as the end of a sentence.
        tools: Its tools; None of a server, which tells them when it runs.
    """

    name: str
    may: str
    tools: tuple[ToolAbility, ...] | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """A persona that was looked at as a whole.

    Args:
        reading: What came of reading it, with what else was found.
        brain: What becomes of the conversation, as the end of a sentence; empty where that is not known.
        abilities: What its toolboxes and servers may do.
    """

    reading: Reading
    brain: str = ""
    abilities: tuple[Ability, ...] = ()


def inspect_persona(source: str | Path | Mapping[str, Any], *, environ: Mapping[str, str] | None = None) -> Inspection:
    """Look at a persona as a whole: the plug-ins it names are imported, no server is started and no model is asked.

    Args:
        source: As for :func:`toolturn.personas.read_persona`.
        environ: As for :func:`toolturn.personas.read_persona`.
    """
    reading = read_persona(source, environ=environ)
    persona = reading.persona
    if persona is None:
        return Inspection(reading)
    found: list[Finding] = []
    abilities: list[Ability] = []
    for box in persona.boxes:
        try:
            abilities.append(Ability(box.name, may_of_box(box), _tools_of(box)))
        except (PersonaError, PluginError) as exc:
            found.append(Finding("problem", box.place, str(exc).removeprefix(f"{box.place}: ")))
    abilities += [Ability(name, may_of_server(server), None) for name, server in persona.servers.items()]
    if not found:
        for text in tools_of(persona)[1]:
            place, _, what = text.partition(": ")
            found.append(Finding("warning", place, what))
    found += _of_model(persona)
    broken = any(finding.level == "problem" for finding in found)
    seen = replace(reading, persona=None if broken else persona, findings=(*reading.findings, *found))
    return Inspection(seen, may_of_brain(persona), tuple(abilities))


def _tools_of(box: Box) -> tuple[ToolAbility, ...]:
    return tuple(
        ToolAbility(
            name,
            tool.traits.effect,
            "always" if tool.approval is True else "never" if tool.approval is False else "by its arguments",
        )
        for name, tool in tools_of_box(box).items()
    )


def _of_model(persona: Persona) -> list[Finding]:
    """What stands in the way of the model; what only this machine lacks is no fault of the persona."""
    from ..local import WeightsError

    level: Level = "warning"
    try:
        model_of(persona)
    except (ModelAuthenticationError, WeightsError, ImportError) as exc:
        text = str(exc)
    except (ModelError, TypeError, ValueError) as exc:
        level, text = "problem", str(exc)
    else:
        return []
    return [Finding(level, persona.brain.place, f"the model {persona.brain.model}: {text}")]
