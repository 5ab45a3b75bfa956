"""Dice: a toolbox, a model and a persona for toolturn."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

from toolturn import (
    Capabilities,
    ChatMessage,
    ChatModel,
    ChatResponse,
    ModelSettings,
    Tool,
    ToolCall,
    ToolDef,
    ToolError,
    tool,
)

PERSONA: Mapping[str, Any] = {
    "name": "Gambler",
    "handlers": ["toolturn-native-toolcall-loop"],
    "toolturn-native-toolcall-loop": {
        "system_prompt": "You roll dice.",
        "brain": "toolturn-brain",
        "toolturn-brain": {"model": "dice:lucky"},
        "toolboxes": ["dice"],
        "dice": {"sides": 6, "seed": 7},
    },
}
"""An entry point of ``toolturn.personas``: what could stand in a persona file."""


def tools(*, sides: int = 6, seed: int | None = None) -> list[Tool[Any, Any]]:
    """An entry point of ``toolturn.toolboxes``: dice that a model may roll.

    Args:
        sides: How many sides a die has.
        seed: Makes the rolls repeatable.
    """
    luck = random.Random(seed)

    @tool(effect="none")
    def roll_dice(count: int = 1) -> list[int]:
        """Roll dice and return what each shows.

        Args:
            count: How many dice.
        """
        if not 1 <= count <= 100:
            raise ToolError("count: between 1 and 100 dice can be rolled")
        return [luck.randint(1, sides) for _ in range(count)]

    return [roll_dice]


def model(name: str = "", *, greeting: str = "You rolled") -> ChatModel:
    """An entry point of ``toolturn.models``: a model that rolls as many dice as a question says.

    Args:
        name: Which model; what stands behind ``dice:``.
        greeting: What it says before the numbers.
    """
    return Dicer(name or "plain", greeting)


class Dicer(ChatModel):
    """A model without any intelligence: it calls ``roll_dice`` and reads the numbers out.

    Args:
        name: What it is called.
        greeting: What it says before the numbers.
    """

    def __init__(self, name: str, greeting: str) -> None:
        self.name = name
        self.greeting = greeting

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(tools=True)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        last = messages[-1]
        if last.role == "tool":
            return ChatResponse(f"{self.greeting} {last.content}.", finish_reason="stop")
        if not any(definition.name == "roll_dice" for definition in tools):
            return ChatResponse("There are no dice here.", finish_reason="stop")
        found = re.search(r"\d+", str(last.content))
        arguments = json.dumps({"count": int(found[0]) if found else 1})
        call = ToolCall(f"roll-{len(messages)}", "roll_dice", arguments)
        return ChatResponse("", tool_calls=[call], finish_reason="tool_calls")
