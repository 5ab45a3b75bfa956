"""The keys of a persona file: what stands where, what was renamed or moved, and what is wrong with a section.

A persona file is what OpenVoiceOS reads too; this module imports nothing of it, nor anything else that is heavy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["problem", "warning", "note"]
"""A ``problem`` keeps a persona from being used, a ``warning`` is most likely a mistake, a ``note`` is good to know."""

Form: TypeAlias = Literal["text", "texts", "text or texts", "whole", "number", "yes or no", "object", "any"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that stands in a persona file and should be known.

    Args:
        level: How bad it is.
        place: Where, as a path from the root ``$``.
        text: One sentence for people.
        line: The line, from 1, where the file is no JSON.
        column: The column, from 1, likewise.
    """

    level: Level
    place: str
    text: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = self.place if self.line is None else f"line {self.line}, column {self.column}"
        return f"{where}: {self.text}"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one kind of section.

    Args:
        known: What stands there, and in which form.
        renamed: Other spellings, with the right one for each.
        wrong: Keys that are not read there, each with a sentence about what to write instead.
        least: The least number that a key may have.
        needed: Keys that must be there.
    """

    known: Mapping[str, Form]
    renamed: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    needed: tuple[str, ...] = ()


# --- the tables ----------------------------------------------------------------------------

ENGINES: Mapping[str, Literal["native", "react"]] = MappingProxyType(
    {
        "toolturn-native-toolcall-loop": "native",
        "ovos-native-toolcall-loop": "native",
        "toolturn-react-loop": "react",
        "ovos-react-loop": "react",
    }
)
"""The engines, by the ids that ``handlers`` lists; ``react`` ones call tools by text whatever the brain can."""

OVOS_BRAIN = "ovos-chat-openai-plugin"
OWN_BRAIN = "toolturn-brain"
MEMORY = "ovos-agents-short-term-memory-plugin"
MCP_TOOLBOXES = ("ovos-mcp-toolbox", "mcp")

SAME_TOOLBOX: Mapping[str, str] = MappingProxyType(
    {
        "ovos-math-tools": "math",
        "ovos-clock-tools": "clock",
        "toolturn-clock-tools": "clock",
        "toolturn-math-tools": "math",
        "toolturn-units-tools": "units",
        "toolturn-files-tools": "files",
    }
)
"""Ids of toolboxes in OpenVoiceOS, and the toolbox that does the same here."""

_IN_ENGINE = "it belongs into the section of an engine, such as toolturn-native-toolcall-loop"

PERSONA = Keys(
    {
        "name": "text",
        "description": "text",
        "handlers": "texts",
        "solvers": "texts",
        "memory_module": "any",
    },
    {"memory": "memory_module", "handler": "handlers", "solver": "handlers"},
    {
        "chat_module": 'it is not read; write "handlers": [the id of an engine], and the section of that id beside it',
        "brain": _IN_ENGINE,
        "toolboxes": _IN_ENGINE,
        "max_iterations": _IN_ENGINE,
        "system_prompt": _IN_ENGINE,
    },
    needed=("name",),
)

ENGINE = Keys(
    {
        "brain": "text",
        "toolboxes": "texts",
        "max_iterations": "whole",
        "system_prompt": "text",
        "enabled": "yes or no",
        "supports_tools": "yes or no",
        "max_tool_calls": "whole",
        "timeout": "number",
        "max_turn_tokens": "whole",
        "max_result_bytes": "whole",
    },
    {
        "chat_module": "brain",
        "model": "brain",
        "tools": "toolboxes",
        "toolbox": "toolboxes",
        "persona": "system_prompt",
    },
    {"api_url": "it belongs into the section of the brain", "key": "it belongs into the section of the brain"},
    {"max_iterations": 0, "max_tool_calls": 0, "timeout": 0.001, "max_turn_tokens": 1, "max_result_bytes": 256},
)

_REPLY: dict[str, Form] = {
    "max_tokens": "whole",
    "temperature": "number",
    "top_p": "number",
    "frequency_penalty": "number",
    "presence_penalty": "number",
    "system_prompt": "text",
}
_REPLY_LEAST = {"max_tokens": 1, "temperature": 0, "top_p": 0, "frequency_penalty": -2, "presence_penalty": -2}
_REPLY_RENAMED = {"api_key": "key", "apikey": "key", "token": "key", "persona": "system_prompt"}

BRAINS: Mapping[str, Keys] = MappingProxyType(
    {
        OVOS_BRAIN: Keys(
            {
                **_REPLY,
                "api_url": "text",
                "key": "text",
                "model": "text",
                "allow_system_prompts": "yes or no",
                "stop_token": "text or texts",
                "extra_params": "object",
                "enable_memory": "yes or no",
                "memory_size": "whole",
            },
            {
                **_REPLY_RENAMED,
                "base_url": "api_url",
                "url": "api_url",
                "endpoint": "api_url",
                "stop": "stop_token",
                "extra": "extra_params",
            },
            least=_REPLY_LEAST,
        ),
        OWN_BRAIN: Keys(
            {
                **_REPLY,
                "model": "text",
                "key": "text",
                "stop": "text or texts",
                "seed": "whole",
                "extra": "object",
                "wishes": "object",
                "send_key_in_clear": "yes or no",
                "context": "whole",
                "threads": "whole",
            },
            {**_REPLY_RENAMED, "stop_token": "stop", "extra_params": "extra"},
            {"api_url": 'write the address into the model: "model": "http://127.0.0.1:8080/v1#name"'},
            {**_REPLY_LEAST, "context": 256, "threads": 1},
            ("model",),
        ),
    }
)
"""The brains whose sections are understood."""

MEMORY_KEYS = Keys(
    {"system_prompt": "text", "max_history": "whole"}, {"persona": "system_prompt"}, least={"max_history": 0}
)

MCP = Keys(
    {
        "name": "text",
        "transport": "text",
        "type": "text",
        "command": "text",
        "args": "texts",
        "env": "object",
        "cwd": "text",
        "url": "text",
        "headers": "object",
        "timeout": "number",
        "start_timeout": "number",
        "close_timeout": "number",
        "allow": "texts",
        "deny": "texts",
        "trust_hints": "yes or no",
        "max_bytes": "whole",
        "mcpServers": "object",
    },
    {"servers": "mcpServers", "arguments": "args", "environment": "env", "address": "url"},
    least={"timeout": 0.001, "start_timeout": 0.001, "close_timeout": 0.001, "max_bytes": 1000},
)

FILES = Keys(
    {"folders": "texts", "write": "yes or no"},
    {
        "folder": "folders",
        "root": "folders",
        "roots": "folders",
        "paths": "folders",
        "allow_write": "write",
    },
    needed=("folders",),
)


# --- checking ------------------------------------------------------------------------------


def below(place: str, key: str | int) -> str:
    """Return the path of what stands below a place.

    Args:
        place: A path from the root ``$``.
        key: A key, or the index of an entry in a list.
    """
    if isinstance(key, int):
        return f"{place}[{key}]"
    return f"{place}.{key}" if key.isidentifier() else f'{place}["{key}"]'


def check_section(
    section: Mapping[str, Any], keys: Keys, place: str = "$", *, sections: Collection[str] = ()
) -> list[Finding]:
    """Return what is wrong with the keys and the forms of the values of a section.

    Args:
        section: The section.
        keys: What may stand there.
        place: Where the section stands.
        sections: Further keys that are known, such as those of the sections in it.
    """
    found: list[Finding] = []
    for key, value in section.items():
        where = below(place, str(key))
        if key in keys.known:
            found += _of_value(key, value, keys, where)
        elif key in sections:
            continue
        elif key in keys.wrong:
            found.append(Finding("warning", where, f"{key} is not read here: {keys.wrong[key]}"))
        elif key in keys.renamed:
            right = keys.renamed[key]
            told = f"the key is {right}" + (", which is there too and counts" if right in section else "")
            found.append(Finding("warning", where, told))
            if right not in section:
                found += _of_value(right, value, keys, where)
        else:
            found.append(Finding("warning", where, unknown("key", str(key), (*keys.known, *sections))))
    for key in keys.needed:
        if not any(name in section for name in (key, *(old for old, new in keys.renamed.items() if new == key))):
            found.append(Finding("problem", below(place, key), f"{key} is missing"))
    return found


def check_engine(section: Mapping[str, Any], place: str = "$") -> list[Finding]:
    """Return what is wrong with the section of an engine, and with those in it whose keys are known.

    Args:
        section: The section.
        place: Where it stands.
    """
    brain, boxes = section.get("brain"), section.get("toolboxes")
    inside = [text for text in (brain, *(boxes if isinstance(boxes, list) else ())) if isinstance(text, str)]
    found = check_section(section, ENGINE, place, sections=[*inside, *BRAINS, *SAME_TOOLBOX, *MCP_TOOLBOXES])
    for key in dict.fromkeys([*inside, *(name for name in BRAINS if name in section)]):
        if key not in section:
            continue
        inner, where = section[key], below(place, key)
        if not isinstance(inner, Mapping):
            found.append(Finding("problem", where, f"the section of {key} must be an object"))
            continue
        if key in BRAINS and key != brain:
            named = f"brain is {brain!r}" if brain else f'write "brain": "{key}"'
            found.append(Finding("warning", where, f"this section is not used: {named}"))
        keys = keys_of(key)
        if keys is not None:
            found += check_section(inner, keys, where)
    return found


def keys_of(name: str) -> Keys | None:
    """Return what may stand in the section of a brain, a toolbox or a memory; None where that is not known here.

    Args:
        name: The id.
    """
    if name in BRAINS:
        return BRAINS[name]
    if name in MCP_TOOLBOXES:
        return MCP
    match SAME_TOOLBOX.get(name, name):
        case "files":
            return FILES
        case "clock" | "math" | "units":
            return Keys({})
    return MEMORY_KEYS if name == MEMORY else None


def value_of(section: Mapping[str, Any], key: str, keys: Keys) -> Any:
    """Return the value of a key, also where it stands under an old name; None where there is none.

    Args:
        section: The section.
        key: The key as it is called now.
        keys: What may stand there.
    """
    if key in section:
        return section[key]
    return next((section[old] for old, new in keys.renamed.items() if new == key and old in section), None)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence about a name that nobody knows, with the nearest one that is known.

    Args:
        what: What it should name.
        name: The name.
        known: Those that are known.
    """
    names = list(dict.fromkeys(known))
    near = get_close_matches(name.lower(), names, 1)
    if near:
        return f"there is no {what} {name!r:.100}; did you mean {near[0]!r}?"
    return f"there is no {what} {name!r:.100}" + (f" (known: {', '.join(names)})" if names else "")


_FORMS: Mapping[Form, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "text or texts": "a text or a list of texts",
    "whole": "a whole number",
    "number": "a number",
    "yes or no": "true or false",
    "object": "an object",
}


def _of_value(key: str, value: Any, keys: Keys, place: str) -> list[Finding]:
    form = keys.known[key]
    if value is None and key not in keys.needed:
        return []
    if form in ("whole", "number") and isinstance(value, str) and _number(value, form) is not None:
        return [Finding("warning", place, f"{key} is a text; write {value.strip()} without the quotation marks")]
    if not _fits(value, form):
        return [Finding("problem", place, f"{key} must be {_FORMS[form]}")]
    if form == "text" and key in keys.needed and not value.strip():
        return [Finding("problem", place, f"{key} must not be empty")]
    least = keys.least.get(key)
    if least is not None and value < least:
        return [Finding("problem", place, f"{key} must be at least {least:g}")]
    return []


def _fits(value: Any, form: Form) -> bool:
    match form:
        case "text":
            return isinstance(value, str)
        case "texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "text or texts":
            return isinstance(value, str) or _fits(value, "texts")
        case "whole":
            return type(value) is int
        case "number":
            return type(value) in (int, float) and math.isfinite(value)
        case "yes or no":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, Mapping)
    return True


def _number(text: str, form: Form) -> float | None:
    try:
        value = int(text) if form == "whole" else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def number_of(value: Any) -> Any:
    """Return a number that may stand there as a text, as a number.

    Args:
        value: A number, or anything else, which is returned as it is.
    """
    if not isinstance(value, str):
        return value
    whole = _number(value, "whole")
    return _number(value, "number") if whole is None else whole
