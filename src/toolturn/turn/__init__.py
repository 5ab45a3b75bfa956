"""The machine: a turn as a protocol without I/O, clock, random or tasks.

Ask :meth:`Turn.ops` what has to be done, do it any way you like, hand what came of it to :meth:`Turn.apply`, until
:attr:`Turn.exit` is a result or an error.
"""

from __future__ import annotations

from .machine import Turn
from .ops import CallModel, CallTool, Effect, ModelFailed, Op, Outcome, OuterLimit, ToolErrors, ToolFailed, ToolTraits

__all__ = [
    "CallModel",
    "CallTool",
    "Effect",
    "ModelFailed",
    "Op",
    "Outcome",
    "OuterLimit",
    "ToolErrors",
    "ToolFailed",
    "ToolTraits",
    "Turn",
]
