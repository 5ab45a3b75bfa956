"""Personas as documents, to be changed by a test."""

from __future__ import annotations

from typing import Any

ENGINE = "toolturn-native-toolcall-loop"
OPENAI = "ovos-chat-openai-plugin"
OWN = "toolturn-brain"


def persona(engine: dict[str, Any] | None = None, *, handler: str = ENGINE, **top: Any) -> dict[str, Any]:
    """Return a persona whose engine has a brain and what is given.

    Args:
        engine: Keys of the engine's section.
        handler: The engine.
        top: Keys beside it.
    """
    section: dict[str, Any] = {"brain": OWN, OWN: {"model": "ollama:qwen3"}}
    return {"name": "Ada", "handlers": [handler], handler: section | (engine or {}), **top}


def openai(brain: dict[str, Any], engine: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    """Return a persona with the brain of OpenVoiceOS.

    Args:
        brain: Keys of the brain's section.
        engine: Keys of the engine's section.
        top: Keys beside it.
    """
    made = persona({"brain": OPENAI, OPENAI: brain} | (engine or {}), **top)
    del made[ENGINE][OWN]
    return made
