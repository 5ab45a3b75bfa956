"""The machine: a turn as a protocol without I/O, clock, random or tasks.

Ask :meth:`Turn.ops` what has to be done, do it any way you like, hand what came of it to :meth:`Turn.apply`, until
:attr:`Turn.exit` is a result or an error.
"""

from __future__ import annotations

from .machine import Turn
from .ops import (
    ApprovalPending,
    AskApproval,
    CallModel,
    CallTool,
    Effect,
    ModelFailed,
    Op,
    Outcome,
    OuterLimit,
    ToolErrors,
    ToolFailed,
    ToolTraits,
    Unfit,
    Valued,
    digest_of,
)

__all__ = [
    "ApprovalPending",
    "AskApproval",
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
    "Unfit",
    "Valued",
    "digest_of",
]
