"""toolturn over its other transport, in the current environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .toolturn import CAN, DISTRIBUTION, TYPED
from .toolturn import run as run_with

if TYPE_CHECKING:
    from ..adapter import Outcome, Task

__all__ = ["CAN", "DISTRIBUTION", "REQUIREMENTS", "TYPED", "run"]

REQUIREMENTS: tuple[str, ...] = ()


async def run(task: Task) -> Outcome:
    """Run one turn.

    Args:
        task: The turn.
    """
    from toolturn.models.transports.httpx2 import Httpx2Transport

    transport = Httpx2Transport()
    try:
        return await run_with(task, transport=transport)
    finally:
        await transport.aclose()
