"""ReAct text into an answer or one action: total, and the same however the text is cut into pieces.

What counts as text of the answer is decided line by line, so that it can be handed on while it arrives and never has
to be taken back. An action ends the reading: what follows it is its input or made up.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import ToolDef
from ..model import Delta
from ..models.ingest.leaked import begins_with_markup, lift_calls
from ..models.ingest.names import KnownTools
from .react_action import Action, read_action
from .react_keys import Keys, keys_of
from .react_lines import Lines
from .react_parts import CLOSER, FENCE, FENCE_END, JSON, OPENER, Reply

__all__ = ["HOLD", "Reply", "ReplyReader", "read_reply"]

HOLD = 200

_UNCERTAIN = ("<", "[", "◁", "`", "~", "{")
_LONGEST_TAG = 60


def read_reply(
    text: str, tools: Sequence[ToolDef] = (), *, keys: Keys | None = None, hold: int = HOLD, calls: bool = True
) -> Reply:
    """Return what a reply in ReAct text says; there is no text for which it fails.

    Args:
        text: The whole reply.
        tools: What was offered.
        keys: The key words; the English ones where None.
        hold: See :class:`ReplyReader`.
        calls: Whether actions are possible at all.
    """
    reader = ReplyReader(KnownTools(tools), keys=keys, hold=hold, calls=calls)
    reader.feed(text)
    return reader.close()[0]


class ReplyReader(Lines):
    """Reads a reply while it arrives.

    Text before the first key word is a thought where a key word follows it soon, as models write it, and else the
    answer. It is held back until that is known, which is after ``hold`` characters at the latest; what was handed on
    stays a part of the answer.

    Args:
        tools: What was offered.
        keys: The key words; the English ones where None.
        hold: Characters before the first key word that are held back; with 0 text is handed on at once.
        calls: Whether actions are possible at all.
    """

    def __init__(self, tools: KnownTools, *, keys: Keys | None = None, hold: int = HOLD, calls: bool = True) -> None:
        super().__init__(tools, keys or keys_of("en"), hold)
        self._calls = calls
        self._line: list[str] = []  # what has arrived of a line that is not decided
        self._head = ""  # its beginning
        self._chars = 0  # its length
        self._waits = False  # it is known to be decided at its end only
        self._through = False  # the rest of the line is text

    # --- pieces into lines ---------------------------------------------------------------

    def feed(self, text: str) -> list[Delta]:
        """Take a piece of the reply and return what can be handed on.

        Args:
            text: The piece.
        """
        self._shown = []
        *whole, last = text.split("\n")
        for piece in whole:
            self._piece(piece, ended=True)
        if last:
            self._piece(last, ended=False)
        return self._shown

    def close(self) -> tuple[Reply, list[Delta]]:
        """Return what the reply says, and what of it was not handed on.

        Nothing may be fed afterwards.
        """
        self._shown = []
        if self._line or self._through:
            self._piece("", ended=True)
        return self._settled(), self._shown

    def _piece(self, piece: str, *, ended: bool) -> None:
        if self._through:
            self._say(piece + "\n" if ended else piece)
            self._through = not ended
            return
        self._line.append(piece)
        self._chars += len(piece)
        if len(self._head) < 2 * _LONGEST_TAG:
            self._head += piece[: 2 * _LONGEST_TAG]
        if ended:
            self._take(self._line_so_far())
        elif self._goes_through():
            self._through = True
            self._take(self._line_so_far(), ended=False)

    def _line_so_far(self) -> str:
        line = "".join(self._line)
        self._line, self._head, self._chars, self._waits = [], "", 0, False
        return line

    def _goes_through(self) -> bool:
        """Whether the line is text from its beginning on, whatever its rest will be."""
        if self._waits:
            return False
        if (
            self._think is not None
            or self._state in ("action", "markup", "done")
            or self._maybe
            or self._code is not None
        ):
            return False
        bare = self._head.lstrip(" \t")
        if not bare or bare[0].isspace():
            return False
        if bare[0] in _UNCERTAIN and len(self._head) < _LONGEST_TAG:
            return False
        if self._fenced and self._state != "held":
            return not FENCE.match(bare)
        if FENCE.match(bare) or OPENER.match(bare) or CLOSER.match(bare) or begins_with_markup(bare):
            return False
        key = self._keys.key(self._head)
        if key is not None:
            return (
                key.kind in ("final", "answer")
                and not key.foreign
                and not key.open_mark
                and bool(key.rest.strip())
                and not self._may_be_quoted()
                and self._state in ("start", "held", "scaffold", "prose")
                and self._begins_answer(key)
                and self._wrapper is None
                and CLOSER.search(self._head) is None
            )
        if self._keys.may_begin(self._head):
            return False
        if self._state not in ("start", "held"):
            self._waits = self._state not in ("prose", "final")
            return not self._waits
        if self._wrapper is not None or (self._state == "start" and (JSON.match(bare) or bare[0] == "`")):
            return False
        # only what is long enough to be no thought is handed on before its line has ended
        if self._held_chars + self._chars <= self._hold:
            return False
        self._waits = not self._fenced and self._lone_end("".join(self._line)) is not None
        return not self._waits

    # --- the end ---------------------------------------------------------------------------------

    def _settled(self) -> Reply:
        for each in self._maybe:
            self._say(each + "\n")
        self._maybe = []
        if self._wrapper is not None:
            self._state, self._held, self._wrapper = "held", [self._wrapper], None
        if self._code is not None:
            self._settle_code()
        actions: tuple[Action, ...] = ()
        if self._state == "action":
            actions = self._settle_action()
        elif self._state in ("held", "markup") and self._calls:
            actions = self._settle_leaked()
        if self._state == "held":
            for piece in self._held:
                self._text.add(piece, self._shown)
        text = self._text.whole
        broken = self._broken and not actions and not (text and self._state in ("held", "prose", "final"))
        return Reply(text, self._thought.whole, actions, broken, tuple(self._repairs))

    def _settle_code(self) -> None:
        code = self._code or []
        closed = len(code) > 1 and FENCE_END.match(code[-1]) is not None
        if closed or not any((key := self._keys.key(each)) and key.kind == "final" for each in code):
            self._code_as_action()
            return
        self._code = None  # it never ends, so it is none
        for each in code[1:]:
            self._take_line(each, "\n")

    def _settle_action(self) -> tuple[Action, ...]:
        block = "\n".join(self._block)
        found = read_action(block, self._tools, self._keys)
        if isinstance(found, str):
            self._state = "final"
            self._text.add(found, self._shown)
            return ()
        if found is None or not self._calls:
            self._broken = True
            self._thought.add(f"Action: {block}", self._shown)
            if found is not None:
                self._note("an action was cut: tools are not offered")
            return ()
        self._repairs += found.repairs
        after = (key for each in self._block[1:] if (key := self._keys.key(each)) is not None)
        if any(key.kind not in ("input", "answer", "question") for key in after):
            self._note("what followed the action was cut")
        return (found,)

    def _settle_leaked(self) -> tuple[Action, ...]:
        """Calls in the form of another dialect, which is what some models fall into."""
        leaked = "".join(self._held) if self._state == "held" else "\n".join(self._block)
        if not any(mark in leaked for mark in "<[{"):
            return ()
        found = lift_calls(leaked, self._tools)
        if found is None:
            blob = None
            if self._state == "held" and not self._text.pieces:
                blob = read_action(leaked, self._tools, self._keys, blob=True)
            if isinstance(blob, str):
                self._held = [blob]
                return ()
            if blob is None:
                if self._state == "held" and begins_with_markup(leaked):
                    self._broken = True
                    self._state, self._held = "done", []
                    self._thought.add(leaked, self._shown)
                return ()
            self._held = []
            self._repairs += blob.repairs
            return (blob,)
        calls, rest = found
        self._note(f"{len(calls)} calls were lifted out of the text" if len(calls) > 1 else "a call was lifted", "leak")
        if self._state == "held":
            self._held = [rest]
        return tuple(Action(call.name, call.arguments) for call in calls)
