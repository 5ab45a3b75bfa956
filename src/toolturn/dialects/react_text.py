"""ReAct text into an answer or one action: total, and the same however the text is cut into pieces.

What counts as text of the answer is decided line by line, so that it can be handed on while it arrives and never has
to be taken back. An action ends the reading: what follows it is its input or made up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..messages import Repair, ToolDef
from ..model import Delta
from ..models.ingest.content import is_quoted
from ..models.ingest.leaked import begins_with_markup, lift_calls
from ..models.ingest.names import KnownTools
from .react_action import Action, is_none, read_action, tool_of
from .react_keys import Key, Keys, keys_of

HOLD = 200

_State: TypeAlias = Literal["start", "held", "prose", "scaffold", "action", "markup", "final", "done"]

_NAMES = "think|thinking|thought|reasoning|seed:think"
_OPENER = re.compile(rf"[ \t]*(?:<(?P<tag>{_NAMES})>|(?P<other>\[THINK\]|◁think▷))", re.IGNORECASE)
_CLOSER = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_OTHER_CLOSERS = {"[think]": "[/think]", "◁think▷": "◁/think▷"}
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_FENCE_END = re.compile(r"[ \t]*(?:```|~~~)[ \t]*\Z")
_JSON = re.compile(r"\s*[{\[]")
_UNCERTAIN = ("<", "[", "◁", "`", "~", "{")
_LONGEST_TAG = 60
_BRACKETS = re.compile(r"[(\[{]")
_END_MARKS = re.compile(r"[*_]+[ \t]*\Z")
_LABELLED = re.compile(r"[ \t*_#]*[^\W\d_][^\n:：]{0,40}[:：][ \t]*[*_`]*(?P<name>[^\s`*]{1,100})[`*]*[ \t]*\Z")


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


class _Flow:
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


class ReplyReader:
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
        self._tools = tools
        self._keys = keys or keys_of("en")
        self._hold: float = hold
        self._calls = calls
        self._state: _State = "start"
        self._line: list[str] = []  # what has arrived of a line that is not decided
        self._head = ""  # its beginning
        self._chars = 0  # its length
        self._waits = False  # it is known to be decided at its end only
        self._through = False  # the rest of the line is text
        self._text, self._thought = _Flow("text"), _Flow("reasoning")
        self._held: list[str] = []
        self._held_chars = 0
        self._shown: list[Delta] = []
        self._think: str | None = None  # the end of a marked thought
        self._fenced = False  # inside a block of code of the text
        self._wrapper: str | None = None  # a fence at the beginning, as long as it may hold all of the reply
        self._wrapped = False
        self._maybe: list[str] = []  # a line that is an action only if its input follows
        self._block: list[str] = []  # the action and what follows it
        self._code: list[str] | None = None  # a block of code in a thought
        self._drops = False  # what an invented observation says
        self._quotes = [0, 0, 0]  # quotation marks in the thought so far that are open
        self._awaits_name = False
        self._refused = False  # the action says that there is none
        self._answer_follows = False  # the action is called the final answer
        self._broken = False
        self._repairs: list[Repair] = []

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
        if not bare or bare[0] in "\r\x0b\x0c":
            return False
        if bare[0] in _UNCERTAIN and len(self._head) < _LONGEST_TAG:
            return False
        if self._fenced and self._state != "held":
            return not _FENCE.match(bare)
        if _FENCE.match(bare) or _OPENER.match(bare) or _CLOSER.match(bare) or begins_with_markup(bare):
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
                and _CLOSER.search(self._head) is None
            )
        if self._keys.may_begin(self._head):
            return False
        if self._state not in ("start", "held"):
            self._waits = self._state not in ("prose", "final")
            return not self._waits
        if self._wrapper is not None or (self._state == "start" and (_JSON.match(bare) or bare[0] == "`")):
            return False
        # only what is long enough to be no thought is handed on before its line has ended
        if self._held_chars + self._chars <= self._hold:
            return False
        self._waits = not self._fenced and self._lone_end("".join(self._line)) is not None
        return not self._waits

    def _lone_end(self, line: str) -> re.Match[str] | None:
        """Where a thought that began in the prompt ends within a line; behind what was handed on it is text."""
        found = _CLOSER.search(line)
        if found is None or is_quoted(line, found.start()):
            return None
        if self._state in ("start", "held") and line[: found.start()].strip():
            return found if self._held_chars + found.end() <= self._hold else None
        return found

    # --- lines -----------------------------------------------------------------------------

    def _take(self, line: str, *, ended: bool = True) -> None:
        if self._think is not None:
            end = line.lower().find(self._think)
            if end < 0:
                self._think_on(line + "\n")
                return
            self._think_on(line[:end])
            line = line[end + len(self._think) :]
            self._think = None
            if not line.strip():
                return
        if self._state == "done":
            return
        if self._state == "markup":
            self._block.append(line)
            return
        if self._state == "action":
            rest = self._after_lone_end(line, begins=True)
            if rest is None:
                self._block.append(line)
            elif rest.strip():
                self._take(rest)
            return
        if not self._fenced:
            opened = _OPENER.match(line)
            if opened is not None:
                tag = opened["tag"]
                self._think = f"</{tag.lower()}>" if tag else _OTHER_CLOSERS[opened["other"].lower()]
                self._take(line[opened.end() :])
                return
            rest = self._after_lone_end(line, begins=self._state in ("prose", "final"))
            if rest is not None:
                if rest.strip():
                    self._take(rest)
                return
        self._take_line(line, "\n" if ended else "")

    def _think_on(self, text: str) -> None:
        self._thought.add(text, self._shown)

    def _after_lone_end(self, line: str, *, begins: bool) -> str | None:
        """The rest of a line in which a marked thought ends that began in the prompt; None where none does."""
        found = self._lone_end(line)
        if found is None:
            return None
        if begins and line[: found.start()].strip():
            return None
        if self._text.pieces:
            return line[found.end() :] if self._state != "action" else None
        before = [*self._held, *self._maybe, *self._block, *(self._code or ()), line[: found.start()]]
        self._thought.add("\n".join(piece.strip("\n") for piece in before) + "\n", self._shown)
        self._held, self._held_chars, self._maybe, self._block, self._code = [], 0, [], [], None
        self._state, self._fenced, self._drops, self._wrapper = "start", False, False, None
        self._broken = self._refused = self._awaits_name = self._answer_follows = False
        self._repairs = []
        return line[found.end() :]

    def _take_line(self, line: str, end: str) -> None:
        if self._maybe and line.strip():
            self._settle_maybe(line, end)
            return
        if self._state == "scaffold" and self._in_code(line):
            return
        if self._fence(line, end):
            return
        key = None if self._fenced else self._keys.key(line)
        if key is not None and self._key(key, line, end):
            return
        if self._state == "start" and not line.strip():
            return
        if self._state == "scaffold":
            self._think_line(line)
            return
        if not self._fenced and self._state != "final" and self._is_foreign(key, line):
            self._broken = True
            self._note("the text has key words of another language")
            self._state = "scaffold"
            self._flush_held_as_thought()
            self._think_line(line)
            return
        if not self._fenced and begins_with_markup(line):
            if self._state == "final":
                self._cut("markup of a call after the answer was cut")
                return
            self._hold = float("inf")
            if self._state == "prose":
                self._state, self._block = "markup", [line]
                self._broken = True
                self._note("markup of a call after text was cut")
                return
        self._say_first(line + end)

    def _say_first(self, text: str) -> None:
        """Say the beginning of a line that is no key line."""
        if self._state == "start":
            self._state = "held"
            if self._wrapper is not None:
                self._fenced = True
                text = f"{self._wrapper}\n{text}"
                self._wrapper = None
            if _JSON.match(text) or text.lstrip().startswith("```"):
                self._hold = float("inf")
        self._say(text)

    def _say(self, text: str) -> None:
        if self._state == "held":
            self._held.append(text)
            self._held_chars += len(text)
            if self._held_chars > self._hold:
                self._state = "prose"
                held, self._held = self._held, []
                for piece in held:
                    self._text.add(piece, self._shown)
        else:
            self._text.add(text, self._shown)

    # --- blocks of code ----------------------------------------------------------------------

    def _fence(self, line: str, end: str) -> bool:
        """Take a line that opens or ends a block of code, where it is no part of the text."""
        if self._state == "scaffold" or not _FENCE.match(line):
            return False
        if self._state == "start" and self._wrapper is None and not self._wrapped:
            self._wrapper = line
            return True
        if self._wrapped and not self._fenced and _FENCE_END.match(line):
            if self._state in ("final", "held", "prose"):
                self._state = "done" if self._state != "held" else "held"
            return True
        if self._state == "start":
            return False
        self._fenced = not self._fenced
        self._say(line + end)
        return True

    def _in_code(self, line: str) -> bool:
        """Take a line of a block of code in a thought: it may hold the action, if the reply ends with it."""
        if self._code is None:
            if not _FENCE.match(line):
                return False
            if self._awaits_name:
                self._begin_action(line)
            elif not (self._wrapped and _FENCE_END.match(line)):
                self._code = [line]
            return True
        closed = len(self._code) > 1 and _FENCE_END.match(self._code[-1]) is not None
        if not closed:
            self._code.append(line)
            return True
        if not line.strip():
            return True
        key = self._keys.key(line)
        if key is not None and key.kind == "observation":
            self._code_as_action()
            return True
        code, self._code = self._code, None
        for each in code:
            self._think_line(each)
        return False

    def _code_as_action(self) -> None:
        """Read what a block of code at the end of a thought holds."""
        code, self._code = self._code or [], None
        body = [each for each in code if not _FENCE.match(each)]
        first = next((each for each in body if each.strip()), "")
        if self._keys.key(first) is None:
            for each in code:
                self._think_line(each)
            return
        self._note("a block of code was taken for the action in it")
        for each in body:
            if self._state == "action":
                self._block.append(each)
            else:
                self._take_line(each, "\n")

    # --- key lines ---------------------------------------------------------------------------

    def _key(self, key: Key, line: str, end: str) -> bool:
        """Take a line with a key word; False where it is text all the same."""
        if key.foreign:
            return False
        if self._state == "final" and self._text.pieces:
            return self._key_in_answer(key, line)
        if self._state == "final":
            self._state = "scaffold"
        unkeyed = self._state in ("held", "prose")
        if key.kind == "question" or (key.kind == "answer" and unkeyed):
            return False
        if key.kind in ("final", "answer"):
            if self._is_quoted(line):
                return False
            self._begin_scaffold()
            self._answer(key, end)
            return True
        if key.kind == "action":
            if unkeyed and not self._names_tool(key.rest):
                self._maybe = [line]
                return True
            if self._is_quoted(line):
                return False
            self._begin_scaffold()
            self._action(key.rest)
            return True
        self._begin_scaffold()
        if key.kind == "observation":
            self._drops = True
            self._note("an invented observation was cut")
        elif key.kind == "input":
            self._input(key, end)
        else:
            self._drops = False
            self._quotes = [0, 0, 0]
            self._think_line(key.rest)
        return True

    def _key_in_answer(self, key: Key, line: str) -> bool:
        if key.kind == "answer":
            return False
        if key.kind == "action" and not self._names_tool(key.rest):
            self._maybe = [line]
            return True
        self._cut("what followed the answer was cut")
        return True

    def _settle_maybe(self, line: str, end: str) -> None:
        """Decide on a line that is an action only if its input follows."""
        waiting, self._maybe = self._maybe, []
        key = self._keys.key(line)
        if key is not None and key.kind == "input" and not key.foreign:
            if self._state == "final":
                self._cut("what followed the answer was cut")
                return
            self._begin_scaffold()
            for each in waiting:
                found = self._keys.key(each)
                if found is not None:
                    self._action(found.rest)
            if self._state == "action":
                self._block.append(line)
            else:
                self._input(key, end)
            return
        for each in waiting:
            self._say(each + "\n")
        self._take_line(line, end)

    def _begin_scaffold(self) -> None:
        if self._state == "start" and self._wrapper is not None:
            self._wrapped, self._wrapper = True, None
        self._flush_held_as_thought()
        self._state = "scaffold"
        self._fenced = False
        self._awaits_name = False

    def _flush_held_as_thought(self) -> None:
        held, self._held = "".join(self._held), []
        self._held_chars = 0
        for each in held.split("\n"):
            self._think_line(each)

    def _answer(self, key: Key, end: str) -> None:
        self._state = "final"
        self._drops = False
        self._text.begin_paragraph()
        rest = key.rest
        if key.open_mark and (marks := _END_MARKS.search(rest)) is not None:
            rest = rest[: marks.start()]
        self._say(rest + end)

    def _input(self, key: Key, end: str) -> None:
        if self._answer_follows:
            self._answer_follows = False
            self._answer(Key("final", _unquoted(key.rest)), end)
            return
        self._drops = True
        if not self._refused:
            self._broken = True

    def _action(self, rest: str) -> None:
        self._drops = self._refused = self._broken = False
        value = rest.strip()
        if not value:
            self._awaits_name = True
            return
        self._begin_action(value)

    def _begin_action(self, value: str) -> None:
        self._awaits_name = False
        if is_none(value, self._tools):
            self._refused = self._drops = True
            self._note("an action that says it is none was cut")
            return
        bare = value.strip(" \t*_`\"'[]")
        word, colon, after = bare.partition(":")
        if self._tools.resolve(bare) is None and not _BRACKETS.search(word) and self._keys.is_final(word):
            if colon and after.strip():
                self._answer(Key("final", after), "\n")
            else:
                self._answer_follows = True
            return
        if tool_of(value, self._tools) is None:
            self._broken = True
            self._think_line(value)
            return
        self._state = "action"
        self._block = [value]

    # --- what is no answer ---------------------------------------------------------------------

    def _think_line(self, line: str) -> None:
        if self._awaits_name and line.strip():
            self._begin_action(line.strip())
            return
        if self._answer_follows and line.strip():
            self._answer_follows = False
            self._answer(Key("final", line), "\n")
            return
        if self._drops:
            return
        for place, (opens, ends) in enumerate((('"', '"'), ("“", "”"), ("«", "»"))):
            if opens == ends:
                self._quotes[place] = (self._quotes[place] + line.count(opens)) % 2
            else:
                self._quotes[place] = max(0, self._quotes[place] + line.count(opens) - line.count(ends))
        if not line.strip():
            self._quotes = [0, 0, 0]  # a quotation does not go on over an empty line
        self._thought.add(line + "\n", self._shown)

    def _may_be_quoted(self) -> bool:
        return self._state == "scaffold" and any(self._quotes)

    def _is_quoted(self, line: str) -> bool:
        """Whether a key line stands in a quotation that began before it and ends in it."""
        if not self._may_be_quoted():
            return False
        straight, curly, pointed = self._quotes
        return (
            (straight == 1 and line.count('"') % 2 == 1)
            or (curly > 0 and line.count("”") > line.count("“"))
            or (pointed > 0 and line.count("»") > line.count("«"))
        )

    def _begins_answer(self, key: Key) -> bool:
        return key.kind == "final" or self._state not in ("held", "prose")

    def _names_tool(self, rest: str) -> bool:
        """Whether an action's value means a declared tool."""
        found = tool_of(rest.strip(), self._tools)
        return found is not None and self._tools.resolve(found) is not None

    def _is_foreign(self, key: Key | None, line: str) -> bool:
        """Whether a line is a key line of a language that is not read here, known or not."""
        if key is not None and key.foreign and key.kind in ("thought", "action", "input"):
            return True
        found = _LABELLED.match(line)
        return (
            found is not None
            and self._state in ("start", "held")
            and self._held_chars + len(line) <= self._hold
            and self._tools.resolve(found["name"].strip("\"'[]")) is not None
        )

    def _cut(self, why: str) -> None:
        self._state = "done"
        self._note(why)

    def _note(self, detail: str, kind: str = "react") -> None:
        repair = Repair(kind, detail)
        if repair not in self._repairs:
            self._repairs.append(repair)

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
        closed = len(code) > 1 and _FENCE_END.match(code[-1]) is not None
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


def _unquoted(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'" else text
