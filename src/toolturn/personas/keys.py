"""The keys of a persona file: what stands where, in which form, and what was renamed or moved.

A persona file is what OpenVoiceOS reads too; this module imports nothing of it, nor anything else that is heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["text", "texts", "text or texts", "whole", "number", "yes or no", "object", "any"]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one kind of section.

    Args:
        known: What stands there, and in which form.
        renamed: Other spellings, with the right one for each.
        wrong: Keys that are not read there, each with a sentence about what to write instead.
        least: The least number that a key may have.
        needed: Keys that must be there.
        choices: The texts that a key may have.
    """

    known: Mapping[str, Form]
    renamed: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
MCP_TOOLBOXES = ("ovos-mcp-toolbox", "toolturn-mcp", "mcp")

SAME_TOOLBOX: Mapping[str, str] = MappingProxyType(
    {
        "ovos-math-tools": "math",
        "ovos-clock-tools": "clock",
        "toolturn-clock": "clock",
        "toolturn-math": "math",
        "toolturn-units": "units",
        "toolturn-files": "files",
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
        "toolboxes": "text or texts",
        "max_iterations": "whole",
        "enabled": "yes or no",
        "lang": "text",
        "system_prompt": "text",
        "supports_tools": "yes or no",
        "max_tool_calls": "whole",
        "max_repeats": "whole",
        "max_result_bytes": "whole",
        "max_turn_tokens": "whole",
        "timeout": "number",
        "tool_timeout": "number",
        "parallel_tools": "whole",
        "preamble": "text",
        "tool_causes": "yes or no",
        "tool_names": "text",
        "brain_attempts": "whole",
        "one_turn_per_session": "yes or no",
        "keep_tool_calls": "whole",
        "react": "object",
        "strict": "yes or no",
    },
    {
        "chat_module": "brain",
        "llm": "brain",
        "solver": "brain",
        "chat_engine": "brain",
        "tools": "toolboxes",
        "toolbox": "toolboxes",
        "tool_boxes": "toolboxes",
        "max_iters": "max_iterations",
        "iterations": "max_iterations",
        "max_turns": "max_iterations",
        "max_steps": "max_iterations",
        "persona": "system_prompt",
        "prompt": "system_prompt",
        "system": "system_prompt",
        "language": "lang",
        "concurrency": "parallel_tools",
    },
    dict.fromkeys(
        ("api_url", "base_url", "key", "api_key", "model", "temperature", "max_tokens", "top_p", "seed", "stop"),
        "it belongs into the section of the brain",
    ),
    {
        "max_iterations": 0,
        "max_tool_calls": 0,
        "max_repeats": 2,
        "max_result_bytes": 256,
        "max_turn_tokens": 1,
        "timeout": 0.001,
        "tool_timeout": 0.001,
        "parallel_tools": 1,
        "brain_attempts": 1,
        "keep_tool_calls": 0,
    },
    choices={"preamble": ("speak", "hold"), "tool_names": ("first", "prefix")},
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
_REPLY_RENAMED = {
    "api_key": "key",
    "apikey": "key",
    "token": "key",
    "persona": "system_prompt",
    "prompt": "system_prompt",
    "initial_prompt": "system_prompt",
}

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
                "send_key_in_clear": "yes or no",
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
                "allow_system_prompt": "allow_system_prompts",
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

MCP_SERVER = Keys(
    {
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
    },
    {"arguments": "args", "environment": "env", "address": "url"},
    least={"timeout": 0.001, "start_timeout": 0.001, "close_timeout": 0.001, "max_bytes": 1000},
)

MCP = Keys(
    {**MCP_SERVER.known, "servers": "any", "mcpServers": "object", "file": "text", "names": "text", "enabled": "any"},
    MCP_SERVER.renamed,
    least=MCP_SERVER.least,
    choices={"names": ("auto", "prefixed")},
)
"""The section of MCP servers: one of them as in :data:`MCP_SERVER`, or several."""

_BOX: dict[str, Form] = {"timeout": "number", "enabled": "yes or no"}

FILES = Keys(
    {
        **_BOX,
        "folders": "any",
        "write": "any",
        "approval": "yes or no",
        "hidden": "yes or no",
        "read_bytes": "whole",
    },
    {"folder": "folders", "root": "folders", "roots": "folders", "paths": "folders", "allow_write": "write"},
    least={"timeout": 0.001, "read_bytes": 256},
    needed=("folders",),
)

REACT = Keys(
    {"language": "text", "prompt": "text", "stop": "yes or no", "hold": "whole"},
    {"lang": "language", "system_prompt": "prompt"},
    least={"hold": 0},
)
"""Options of the text protocol."""


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
            return Keys(_BOX, least={"timeout": 0.001})
    return MEMORY_KEYS if name == MEMORY else None
