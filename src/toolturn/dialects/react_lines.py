"""The lines of a reply in ReAct text: which are the answer, which a thought, which an action.

Quotations, blocks of code and marked thoughts hide key words; an action ends the reading, and so does what follows an
answer.
"""

from __future__ import annotations

import re

from ..messages import Repair
from ..model import Delta
from ..models.ingest.content import is_quoted
from ..models.ingest.leaked import begins_with_markup
from ..models.ingest.names import KnownTools
from .react_action import is_none, tool_of
from .react_keys import Key, Keys
from .react_parts import CLOSER, FENCE, FENCE_END, JSON, OPENER, OTHER_CLOSERS, Flow, State

_BRACKETS = re.compile(r"[(\[{]")
_END_MARKS = re.compile(r"[*_]+[ \t]*\Z")
_LABELLED = re.compile(r"[ \t*_#]*[^\W\d_][^\n:：]{0,40}[:：][ \t]*[*_`]*(?P<name>[^\s`*]{1,100})[`*]*[ \t]*\Z")


class Lines:
    """Takes the lines of a reply one after the other.

    Args:
        tools: What was offered.
        keys: The key words.
        hold: Characters before the first key word that are held back.
    """

    def __init__(self, tools: KnownTools, keys: Keys, hold: float) -> None:
        self._tools = tools
        self._keys = keys
        self._hold: float = hold
        self._state: State = "start"
        self._text, self._thought = Flow("text"), Flow("reasoning")
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

    def _lone_end(self, line: str) -> re.Match[str] | None:
        """Where a thought that began in the prompt ends within a line; behind what was handed on it is text."""
        found = CLOSER.search(line)
        if found is None or is_quoted(line, found.start()):
            return None
        if self._state in ("start", "held") and line[: found.start()].strip():
            return found if self._held_chars + found.end() <= self._hold else None
        return found

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
            opened = OPENER.match(line)
            if opened is not None:
                tag = opened["tag"]
                self._think = f"</{tag.lower()}>" if tag else OTHER_CLOSERS[opened["other"].lower()]
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
            if JSON.match(text) or text.lstrip().startswith("```"):
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
        if self._state == "scaffold" or not FENCE.match(line):
            return False
        if self._state == "start" and self._wrapper is None and not self._wrapped:
            self._wrapper = line
            return True
        if self._wrapped and not self._fenced and FENCE_END.match(line):
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
            if not FENCE.match(line):
                return False
            if self._awaits_name:
                self._begin_action(line)
            elif not (self._wrapped and FENCE_END.match(line)):
                self._code = [line]
            return True
        closed = len(self._code) > 1 and FENCE_END.match(self._code[-1]) is not None
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
        body = [each for each in code if not FENCE.match(each)]
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


def _unquoted(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'" else text
