"""``toolturn`` with one toolbox more: ``slow``, whose tool ends only when it is told to stop."""

from __future__ import annotations

import asyncio
import types
from typing import Any

import toolturn.toolboxes
from toolturn import ToolContext, ToolSet, tool
from toolturn.cli import main
from toolturn.toolboxes import TOOLBOXES, Toolbox


@tool
async def dig(context: ToolContext, depth: int) -> str:
    """Dig a hole."""
    context.emit("digging")
    await asyncio.Event().wait()
    return "never"


changed: Any = toolturn.toolboxes
changed.TOOLBOXES = types.MappingProxyType({**TOOLBOXES, "slow": Toolbox("slow", "digs", lambda: ToolSet([dig]))})
changed._ORDER = (*changed._ORDER, "dig")
main()
