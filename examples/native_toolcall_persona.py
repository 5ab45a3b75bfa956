"""The engine of OpenVoiceOS in Python, with a tool of one's own: each sentence is there as soon as it is made.

    pip install '.[ovos]'
    python examples/native_toolcall_persona.py ollama:qwen3 "Is there enough flour for two cakes?"

Beside ``ollama:…`` any model will do that toolturn knows, such as ``local`` for the embedded one (extra ``local``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

from toolturn.ovos import NativeToolCallEngine, toolbox_of
from toolturn.tools import ToolSet, tool

LARDER = {"flour": 1200, "sugar": 300, "butter": 0}


@tool(effect="none")
def look_into_larder(ingredient: str) -> str:
    """Says how many grams of an ingredient there are.

    Args:
        ingredient: Such as flour.
    """
    return f"{LARDER.get(ingredient.lower(), 0)} grams"


def answer(model: str, question: str, language: str = "en-US") -> Iterator[str]:
    """Yield the sentences of the answer."""
    engine = NativeToolCallEngine(
        {
            "brain": "toolturn-brain",
            "toolturn-brain": {"model": model},
            "max_iterations": 4,
            "system_prompt": "You are a kitchen help. Answer in one or two short sentences.",
        }
    )
    engine.load_toolboxes([toolbox_of(ToolSet([look_into_larder]), "larder")])
    yield from engine.stream_sentences([AgentMessage(MessageRole.USER, question)], lang=language)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f'usage: {sys.argv[0]} MODEL QUESTION, such as ollama:qwen3 "Is there enough flour for two cakes?"')
    for sentence in answer(*sys.argv[1:3]):
        print(sentence.strip(), flush=True)
