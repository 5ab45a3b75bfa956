"""The section of an engine in a persona file: its keys, what they mean, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..limits import Limits
from ..persona_keys import ENGINE, OVOS_BRAIN, Finding, Keys, check_section, keys_of, number_of, value_of
from ..speech import Preamble

DEFAULT_ITERATIONS = 10
DEFAULT_CALLS = 64
DEFAULT_REPEATS = 3
DEFAULT_TOOL_SECONDS = 30.0
DEFAULT_BYTES = 16 * 1024

_OF_BRAINS = ("api_key", "base_url", "temperature", "max_tokens", "top_p", "seed", "stop")

KEYS = Keys(
    {
        **ENGINE.known,
        "lang": "text",  # the language where a request has none
        "max_repeats": "whole",  # how often in a row the same call may give the same result
        "tool_timeout": "number",  # seconds of a tool call
        "parallel_tools": "whole",  # calls at once, of tools that say they may run beside others
        "preamble": "text",  # "speak" or "hold" what the model says before it calls tools
        "tool_causes": "yes or no",  # tell the model the text of an exception, not its class alone
        "tool_names": "text",  # of several tools of one name keep the "first", or "prefix" all
        "brain_attempts": "whole",  # how often a brain is asked that can not be reached or is busy
        "one_turn_per_session": "yes or no",  # a new turn ends the one that runs in its session
        "keep_tool_calls": "whole",  # turns of a session whose tool calls the model sees again later
        "react": "object",  # options of the text protocol
        "strict": "yes or no",  # a toolbox that can not be loaded is an error
    },
    {
        **ENGINE.renamed,
        "llm": "brain",
        "solver": "brain",
        "chat_engine": "brain",
        "tool_boxes": "toolboxes",
        "max_iters": "max_iterations",
        "iterations": "max_iterations",
        "max_turns": "max_iterations",
        "max_steps": "max_iterations",
        "prompt": "system_prompt",
        "language": "lang",
        "concurrency": "parallel_tools",
    },
    {**ENGINE.wrong, **dict.fromkeys(_OF_BRAINS, "it belongs into the section of the brain")},
    {
        **ENGINE.least,
        "max_repeats": 2,
        "tool_timeout": 0.001,
        "parallel_tools": 1,
        "brain_attempts": 1,
        "keep_tool_calls": 0,
    },
)
"""The keys of an engine's section."""

# These may be null, for no bound.
_OPEN = ("max_result_bytes", "max_repeats", "tool_timeout", "timeout", "max_turn_tokens")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the section of an engine says.

    Args:
        iterations: Model calls with tools; with 0 there is one, without.
        limits: Every bound of a turn.
        tool_timeout: Seconds of a tool call, or None.
        concurrency: Calls at once.
        preamble: What becomes of text before calls, in sentences and tokens.
        causes: Tell the model the text of exceptions.
        clashes: What becomes of several tools of one name.
        system_prompt: A system message of the engine's own.
        attempts: How often a brain is asked.
        alone: Whether a session has one turn at a time.
        kept_turns: Turns of a session whose calls are shown again.
        strict: Whether every toolbox has to be there.
        supports_tools: Whether tools of the caller's are taken.
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
    for finding in check_section(config, KEYS, sections=_sections(config)):
        if finding.level == "problem":
            raise ValueError(f"{finding.place.removeprefix('$.')}: {finding.text}")
    bare = [key for key in KEYS.known if key in config and config[key] is None and key not in _OPEN]
    if unset := [key for key in bare if key in KEYS.least]:
        raise ValueError(f"{unset[0]} must be a number, not null")

    def value(key: str, default: Any) -> Any:
        if key in config and config[key] is None:
            return None if key in _OPEN else default
        found = value_of(config, key, KEYS)
        return default if found is None else number_of(found) if key in KEYS.least else found

    iterations = value("max_iterations", DEFAULT_ITERATIONS)
    limits = Limits(
        max(1, iterations),
        value("max_tool_calls", DEFAULT_CALLS),
        deadline=value("timeout", None),
        result_bytes=value("max_result_bytes", DEFAULT_BYTES),
        tokens=value("max_turn_tokens", None),
        repeats=value("max_repeats", DEFAULT_REPEATS),
    )
    preamble: Preamble = value("preamble", "speak")
    clashes: Literal["first", "prefix"] = value("tool_names", "first")
    if preamble not in ("speak", "hold"):
        raise ValueError("preamble must be 'speak' or 'hold'")
    if clashes not in ("first", "prefix"):
        raise ValueError("tool_names must be 'first' or 'prefix'")
    return Settings(
        iterations,
        limits,
        value("tool_timeout", DEFAULT_TOOL_SECONDS),
        value("parallel_tools", 4),
        preamble,
        value("tool_causes", True),
        clashes,
        value("system_prompt", "").strip(),
        value("brain_attempts", 2),
        value("one_turn_per_session", False),
        value("keep_tool_calls", 0),
        value("strict", False),
        value("supports_tools", False),
        value("react", {}),
    )


def brain_of(config: Mapping[str, Any]) -> str:
    """Return the id of the brain that the section of an engine names; empty where it names none.

    Args:
        config: The section.
    """
    found = value_of(config, "brain", KEYS)
    return found.strip() if isinstance(found, str) else ""


def toolboxes_of(config: Mapping[str, Any]) -> list[str]:
    """Return the ids of the toolboxes that the section of an engine names.

    Args:
        config: The section.
    """
    found = value_of(config, "toolboxes", KEYS)
    return list(found) if isinstance(found, (list, tuple)) else []


def findings_of(config: Mapping[str, Any]) -> list[Finding]:
    """Return what of an engine's section is most likely a mistake.

    Args:
        config: The section.
    """
    found = check_section(config, KEYS, sections=_sections(config))
    brain = brain_of(config)
    if brain and brain not in config:
        hint = f'it belongs inside of the engine\'s; write "{brain}": {{}} where it needs none'
        found.append(Finding("warning", "$.brain", f"the brain {brain!r} has no section: {hint}"))
    return [finding for finding in found if finding.level == "warning"]


def brain_section(brain: str, config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """Return the section of a brain as the brain reads it, and what of it was mended or is most likely a mistake.

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
    if keys is None:
        return section, []
    found = check_section(section, keys, f"$.{brain}")
    for old, new in keys.renamed.items():
        if old in section:
            kept = section.pop(old)
            section.setdefault(new, kept)
    if brain == OVOS_BRAIN:
        url = section.get("api_url")
        if isinstance(url, str) and url.rstrip("/").endswith("/chat/completions"):
            section["api_url"] = url.rstrip("/").removesuffix("/chat/completions")
            told = f"api_url ends before /chat/completions; it was read as {section['api_url']}"
            found.append(Finding("warning", f"$.{brain}.api_url", told))
        # else it drops every system message: the persona's, the engine's, the tools of a text protocol
        section.setdefault("allow_system_prompts", True)
    return section, found


def _sections(config: Mapping[str, Any]) -> list[str]:
    return [*filter(None, (brain_of(config),)), *toolboxes_of(config)]
