"""Personas: a JSON file into a model, tools, limits and a system prompt, with or without OpenVoiceOS.

::

    persona = load_persona("assistant.json")
    async with open_persona(persona) as opened:
        result = await opened.ask("How many pounds is 70 kg?")

:func:`read_persona` says everything that is wrong with a file instead of refusing it.
"""

from __future__ import annotations

from .checking import Finding
from .opening import OpenPersona, model_of, open_persona, turn_options
from .persona import Box, Brain, Persona, PersonaError, Reading
from .reading import load_persona, read_persona

__all__ = [
    "Box",
    "Brain",
    "Finding",
    "OpenPersona",
    "Persona",
    "PersonaError",
    "Reading",
    "load_persona",
    "model_of",
    "open_persona",
    "read_persona",
    "turn_options",
]
