"""The keys of a persona file and the checks of a section, in one place for those who read single sections."""

from __future__ import annotations

from .personas.checking import Finding, below, check_engine, check_section, names_in, number_of, value_of
from .personas.keys import BRAINS, ENGINE, ENGINES, MEMORY, OVOS_BRAIN, OWN_BRAIN, Keys, keys_of
from .plugins import unknown

__all__ = [
    "BRAINS",
    "ENGINE",
    "ENGINES",
    "MEMORY",
    "OVOS_BRAIN",
    "OWN_BRAIN",
    "Finding",
    "Keys",
    "below",
    "check_engine",
    "check_section",
    "keys_of",
    "names_in",
    "number_of",
    "unknown",
    "value_of",
]
