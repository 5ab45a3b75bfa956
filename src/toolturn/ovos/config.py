"""The section of an engine in a persona file as the engine reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..limits import Limits
from ..personas.checking import Finding, below, check_engine, check_section, names_in, number_of, value_of
from ..personas.keys import ENGINE, OVOS_BRAIN, REACT, keys_of
from ..speech import Preamble

DEFAULT_ITERATIONS = 10
DEFAULT_CALLS = 64
DEFAULT_REPEATS = 3
DEFAULT_TOOL_SECONDS = 30.0
DEFAULT_BYTES = 16 * 1024

# These may be null, for no bound.
_OPEN = ("max_result_bytes", "max_repeats", "tool_timeout", "timeout", "max_turn_tokens")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the section of an engine says.

    Args:
        iterations: Model calls with tools; with 0 there is one, without.
        limits: Every bound of a turn.
        tool_timeout: Seconds of a tool call, or None.
        concurrency: Calls at once, of tools that say they may run beside others.
        preamble: What becomes of text before calls, in sentences and tokens.
        causes: Tell the model the text of exceptions, not their class alone.
        clashes: Of several tools of one name keep the first, or prefix all with their toolbox.
        system_prompt: A system message of the engine's own.
        attempts: How often a brain is asked that can not be reached or is busy.
        alone: Whether a new turn ends the one that runs in its session.
        kept_turns: Turns of a session whose calls the model sees again later.
        strict: Whether every toolbox has to be there.
        supports_tools: Whether tools of the caller's are taken, and calls of them given back.
        react: Options of the text protocol.
    """

    iterations: int
    limits: Limits
    tool_timeout: float | None
    concurrency: int
    preamble: Preamble
    causes: bool
    clashes: Literal["first", "prefix"]
    system_prompt: str
    attempts: int
    alone: bool
    kept_turns: int
    strict: bool
    supports_tools: bool
    react: Mapping[str, Any]


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Return what the section of an engine says; keys under an old name are read too.

    Args:
        config: The section.

    Raises:
        ValueError: A value is of the wrong kind or out of its range; the text names the key.
    """
    react = config.get("react")
    found = check_section(config, ENGINE, sections=_sections(config))
    found += check_section(react, REACT, below("$", "react")) if isinstance(react, Mapping) else []
    for finding in found:
        if finding.level == "problem":
            raise ValueError(str(finding).removeprefix("$."))

    def value(key: str, default: Any) -> Any:
        found = value_of(config, key, ENGINE)
        if found is None:
            if key in config and key in ENGINE.least and key not in _OPEN:
                raise ValueError(f"{key} must be a number, not null")
            return None if key in config and key in _OPEN else default
        found = number_of(found) if key in ENGINE.least else found
        if key in ENGINE.least and found < ENGINE.least[key]:
            raise ValueError(f"{key} must be at least {ENGINE.least[key]:g}")
        return found

    iterations = value("max_iterations", DEFAULT_ITERATIONS)
    return Settings(
        iterations,
        Limits(
            max(1, iterations),
            value("max_tool_calls", DEFAULT_CALLS),
            deadline=value("timeout", None),
            result_bytes=value("max_result_bytes", DEFAULT_BYTES),
            tokens=value("max_turn_tokens", None),
            repeats=value("max_repeats", DEFAULT_REPEATS),
        ),
        value("tool_timeout", DEFAULT_TOOL_SECONDS),
        value("parallel_tools", 4),
        value("preamble", "speak"),
        value("tool_causes", True),
        value("tool_names", "first"),
        value("system_prompt", "").strip(),
        value("brain_attempts", 2),
        value("one_turn_per_session", False),
        value("keep_tool_calls", 0),
        value("strict", False),
        value("supports_tools", False),
        value("react", {}),
    )


def brain_named(config: Mapping[str, Any]) -> str:
    """Return the id of the brain that the section of an engine names; empty where it names none.

    Args:
        config: The section.
    """
    found = value_of(config, "brain", ENGINE)
    return found.strip() if isinstance(found, str) else ""


def toolboxes_named(config: Mapping[str, Any]) -> list[str]:
    """Return the ids of the toolboxes that the section of an engine names, each once.

    Args:
        config: The section.
    """
    return list(dict.fromkeys(names_in(value_of(config, "toolboxes", ENGINE))))


def findings_of(config: Mapping[str, Any]) -> list[Finding]:
    """Return what of an engine's section is most likely a mistake.

    Args:
        config: The section.
    """
    brain = brain_named(config)
    found = check_engine(config, skip=toolboxes_named(config))  # those say it themselves
    if brain and brain not in config:
        hint = f'it belongs inside of the engine\'s; write "{brain}": {{}} where it needs none'
        found.append(Finding("warning", below("$", "brain"), f"the brain {brain!r} has no section: {hint}"))
    return [finding for finding in found if finding.level != "note"]


def brain_section(brain: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section of a brain as the brain reads it: with its keys under the names it knows.

    Args:
        brain: The id of the brain.
        config: The section of the engine, which holds that of the brain.

    Raises:
        ValueError: It is no section.
    """
    given = config.get(brain)
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"the section of {brain} must be an object")
    section = dict(given or {})
    keys = keys_of(brain)
    for old, new in keys.renamed.items() if keys is not None else ():
        if old in section:
            value = section.pop(old)
            section.setdefault(new, value)
    if brain == OVOS_BRAIN:
        url = section.get("api_url")
        if isinstance(url, str):  # which it puts behind the address itself
            section["api_url"] = url.rstrip("/").removesuffix("/chat/completions")
        # else it drops every system message: the persona's, the engine's, the tools of a text protocol
        section.setdefault("allow_system_prompts", True)
    return section


def _sections(config: Mapping[str, Any]) -> list[str]:
    return [*filter(None, (brain_named(config),)), *toolboxes_named(config)]
