"""The parts of a reply in ReAct text: what it says, what of it is handed on, and the marks in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..messages import Repair
from ..model import Delta
from .react_action import Action

State: TypeAlias = Literal["start", "held", "prose", "scaffold", "action", "markup", "final", "done"]

_NAMES = "think|thinking|thought|reasoning|seed:think"
OPENER = re.compile(rf"[ \t]*(?:<(?P<tag>{_NAMES})>|(?P<other>\[THINK\]|◁think▷))", re.IGNORECASE)
CLOSER = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷", re.IGNORECASE)
OTHER_CLOSERS = {"[think]": "[/think]", "◁think▷": "◁/think▷"}
FENCE = re.compile(r"[ \t]*(?:```|~~~)")
FENCE_END = re.compile(r"[ \t]*(?:```|~~~)[ \t]*\Z")
JSON = re.compile(r"\s*[{\[]")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reply in ReAct text says.

    Args:
        text: The answer; of an action, what was said before it.
        thought: What the model thought, or wrote that is neither answer nor action.
        actions: The calls it asks for: one, or those of another dialect that it fell into; arguments as JSON text
            where they could be read, else as they were written.
        broken: It tried to call a tool, and the call can not be read.
        repairs: What was mended or cut.
    """

    text: str = ""
    thought: str = ""
    actions: tuple[Action, ...] = ()
    broken: bool = False
    repairs: tuple[Repair, ...] = ()


class Flow:
    """Text that is handed on as it comes, without blanks at its ends."""

    __slots__ = ("_begins", "_blanks", "kind", "pieces")

    def __init__(self, kind: Literal["text", "reasoning"]) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self._blanks: list[str] = []
        self._begins = True

    def add(self, text: str, shown: list[Delta]) -> None:
        body = text.rstrip()
        if not body:
            if not self._begins:
                self._blanks.append(text)
            return
        piece = "".join((*self._blanks, body.lstrip() if self._begins else body))
        self._begins = False
        self._blanks = [text[len(body) :]]
        self.pieces.append(piece)
        shown.append(Delta(piece, self.kind))

    def begin_paragraph(self) -> None:
        if self.pieces:
            self._blanks = ["\n\n"]
            self._begins = True

    @property
    def whole(self) -> str:
        return "".join(self.pieces)
