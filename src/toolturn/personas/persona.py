"""What a persona is: a model, tools, limits and a system prompt, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..limits import Limits
from ..mcp.configuration import Server
from ..model import ModelSettings
from .checking import Finding


@dataclass(frozen=True, slots=True)
class Brain:
    """The model of a persona.

    Args:
        model: Its name, as :func:`toolturn.naming.any_model` takes it.
        options: Further arguments of what makes it, its key among them.
        place: Where the persona describes it.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    place: str = "$"


@dataclass(frozen=True, slots=True)
class Box:
    """A toolbox of a persona.

    Args:
        name: What the persona calls it.
        toolbox: A built-in toolbox, or a plug-in as ``name`` or ``package:name``.
        kind: Which of these, or ``ovos`` for a plug-in of OpenVoiceOS.
        config: Its section.
        place: Where the persona names it.
        timeout: Seconds that a tool without a bound of its own has.
    """

    name: str
    toolbox: str
    kind: Literal["own", "files", "plugin", "ovos"]
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    place: str = "$"
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Persona:
    """A model, tools, limits and a system prompt.

    Args:
        name: Its name.
        brain: The model.
        dialect: How the model calls tools: by itself where it can (``native``), or always by text (``react``).
        boxes: The toolboxes.
        servers: The MCP servers by name.
        limits: The bounds of a turn.
        system_prompt: The system message; None for none.
        settings: How the model is to reply.
        concurrency: How many calls of parallel tools may run at once.
        clashes: Of several tools of one name the ``first`` is there, or all are with a ``prefix``.
        attempts: How often a server is asked that can not serve.
        react: Options of the text protocol.
        language: What its tools are told of the user's language; None where it does not say.
    """

    name: str
    brain: Brain
    dialect: Literal["native", "react"] = "native"
    boxes: tuple[Box, ...] = ()
    servers: Mapping[str, Server] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    system_prompt: str | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)
    concurrency: int = 1
    clashes: Literal["first", "prefix"] = "first"
    attempts: int = 5
    react: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading a persona.

    Args:
        source: What was read, for people.
        persona: The persona; None where there is a problem.
        findings: Everything that should be known of it.
    """

    source: str
    persona: Persona | None
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What keeps the persona from being used."""
        return tuple(finding for finding in self.findings if finding.level == "problem")


class PersonaError(ValueError):
    """A persona can not be used.

    Args:
        text: One sentence for people.
        findings: What is wrong with it, each with its place.
    """

    def __init__(self, text: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(text)
        self.findings = findings

    def __reduce__(self) -> tuple[Any, ...]:
        return PersonaError, (str(self), self.findings)
