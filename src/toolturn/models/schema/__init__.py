"""A tool's JSON Schema into what each provider accepts, and a call's arguments back.

Per provider a table says what is taken; one walker writes it, by position, so that a parameter may be called
``title``. What is not taken is said in words and still enforced by the tool's own schema.
"""

from .changes import Change
from .fit import UnusableTool, fit, fit_all
from .fitted import FittedTool, FittedTools, restore_arguments
from .names import wire_name, wire_names
from .profiles import ANTHROPIC, GEMINI, OPENAI, OPENAI_STRICT, Profile, profile_named

__all__ = [
    "ANTHROPIC",
    "GEMINI",
    "OPENAI",
    "OPENAI_STRICT",
    "Change",
    "FittedTool",
    "FittedTools",
    "Profile",
    "UnusableTool",
    "fit",
    "fit_all",
    "profile_named",
    "restore_arguments",
    "wire_name",
    "wire_names",
]
