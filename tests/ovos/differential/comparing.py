"""Whether two outcomes are equal but for what docs/ovos-differences.md lists.

Each place where they may differ has a function that recognises its listed difference by both values, writes down that
it was met, and raises :class:`Unexplained` for everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .meaning import Session, refused

Outcome = dict[str, Any]

CAP = 16_384
THEIR_PROMPT = "You have access to tools."
THEIR_LAST = "You have used the maximum number of tool calls."
_ACTED = re.compile(r"(?:Thought: (.*?)\n)?Action: (\S+)\nAction Input:\s*(\{.*\})", re.DOTALL)
_FINAL = re.compile(r"Final Answer: (.*?\n\n)")
_FAILED = r"Error: tool '(.*)' failed: "
_HINT = re.compile(r"\n\[This is the same result of the same call, 3 times now\. .*\]$", re.DOTALL)
_FOUND = {"en": "This is what I found: ", "de": "Das habe ich gefunden: ", "pt": "Foi isto que encontrei: "}
_NOT_FOUND = {
    "en": "I could not find an answer to that.",
    "de": "Darauf habe ich keine Antwort gefunden.",
    "pt": "Não consegui encontrar uma resposta.",
}


class Unexplained(Exception):
    """The engines differ where no entry of the list says that they may."""


class Comparison:
    """One session of both engines.

    Args:
        session: The session as it was made.
        theirs: What came of it, read as it was meant, in the reference.
        ours: What came of it in ours.

    Attributes:
        met: The differences that were met.
    """

    def __init__(self, session: Session, theirs: Outcome, ours: Outcome) -> None:
        self.session = session
        self.theirs = theirs
        self.ours = ours
        self.met: set[str] = set()
        self._told = False
        given = [call["id"] for reply in session["script"] for call in reply.get("calls") or ()]
        given += [call["id"] for message in session["messages"] for call in message.get("calls") or ()]
        self._given = {each for each in given if isinstance(each, str) and each}
        self._text = session["brain"] == "text" or session["engine"] == "react"
        self._results = {each["text"]: each["json"] for each in theirs["ran"] if "text" in each}

    def check(self) -> None:
        """Compare all that there is to compare.

        Raises:
            Unexplained: They differ.
        """
        if refused(self.session):
            self._refused()
            return
        asked = self._asked()
        self._same("number of requests", len(self.theirs["asked"]), len(asked))
        ids = (_Ids(self._given), _Ids(self._given))
        for number, (theirs, ours) in enumerate(zip(self.theirs["asked"], asked, strict=True)):
            place = f"request {number}"
            self._same(f"{place}: session, language, units", theirs["known"], ours["known"])
            self._tools(place, theirs["tools"], ours["tools"])
            self._messages(place, list(ids[0].of(theirs["messages"])), list(ids[1].of(ours["messages"])))
        self._same("tools that ran", [_run(each) for each in self.theirs["ran"]], [_run(e) for e in self.ours["ran"]])
        self._end()

    def _same(self, place: str, theirs: Any, ours: Any) -> None:
        if theirs != ours:
            raise Unexplained(f"{place}: {theirs!r} there, {ours!r} here")

    def _refused(self) -> None:
        kind, text = self.ours["raised"] or ("", "")
        if kind != "ValueError" or "max_iterations" not in text or self.ours["asked"]:
            raise Unexplained(f"max_iterations that are none: {self.ours}")
        self.met.add("max-iterations")

    # --- requests --------------------------------------------------------------------

    def _tools(self, place: str, theirs: list[str] | None, ours: list[str] | None) -> None:
        if theirs is not None and ours == list(dict.fromkeys(theirs)) != theirs:
            self.met.add("same-name")
            return
        self._same(f"{place}: tools", theirs, ours)

    def _asked(self) -> list[Any]:
        """Our requests without those that ask once more: where the brain said nothing or was busy."""
        kept: list[Any] = []
        asked, script = self.ours["asked"], self.session["script"]
        for request, reply in zip(asked, [None, *script], strict=False):
            if reply is None or not kept:
                kept.append(request)
            elif reply.get("free"):
                self._same("the request after a brain was busy", kept.pop(), request)
                kept.append(request)
            elif reply.get("blank"):
                for key in ("known", "tools"):
                    self._same(f"{key} after a brain said nothing", kept[-1][key], request[key])
                self._told_again(kept[-1]["messages"], request["messages"])
            else:
                kept.append(request)
        return [*kept, *asked[len(script) + 1 :]]

    def _told_again(self, before: list[Any], now: list[Any]) -> None:
        """The same messages and one that says that the brain has said nothing; in text, in one with a user's."""
        last = now[-1]
        self._same("who was told so before", False, self._told)
        self._told = True
        self._same("who tells a brain that it said nothing", "user", last["role"])
        if len(now) == len(before) and self._text and last["content"].startswith(self._unasked(before[-1]["content"])):
            self._same("that it is told so", True, last["content"] != before[-1]["content"])
            before = before[:-1]
        self._same("the request after a brain said nothing", before, now[:-1])

    def _messages(self, place: str, theirs: list[Any], ours: list[Any]) -> None:
        if self._text:
            theirs, ours = self._written(place, theirs, ours)
        self._same(f"{place}: roles", [each["role"] for each in theirs], [each["role"] for each in ours])
        for index, (there, here) in enumerate(zip(theirs, ours, strict=True)):
            self._message(f"{place}, message {index}", there, here)

    def _message(self, place: str, theirs: Any, ours: Any) -> None:
        for key in ("tool_call_id", "name"):
            self._same(f"{place}: {key}", theirs[key], ours[key])
        if theirs["role"] == "tool":
            self._observation(place, theirs["content"], ours["content"])
        elif self._text and theirs["role"] != "system":
            self._line(place, theirs, ours)
        elif theirs["content"] is None and ours["content"] == "":
            self.met.add("content-null")
        else:
            self._same(f"{place}: content", theirs["content"], ours["content"])
        calls = theirs["calls"] or [], ours["calls"] or []
        self._same(f"{place}: number of calls", len(calls[0]), len(calls[1]))
        for there, here in zip(*calls, strict=True):
            self._same(f"{place}: id of a call", there["id"], here["id"])
            self._same(f"{place}: name of a call", there["name"], here["name"])
            self._arguments(place, there["arguments"], here["arguments"])

    def _line(self, place: str, theirs: Any, ours: Any) -> None:
        """A message of a conversation in text."""
        there, here = theirs["content"], ours["content"]
        seen = "Observation: "
        if theirs["role"] == "user" and there.startswith(seen) and here.startswith(seen):
            self._observation(place, there.removeprefix(seen), here.removeprefix(seen))
        elif theirs["role"] == "assistant" and there != here:
            if f"Final Answer: {there}" == here:
                self.met.add("react-history")
                return
            if (before := _FINAL.match(here)) and there.startswith(before[1]):
                there, here = there.removeprefix(before[1]), here[before.end() :]  # the history ended with an answer
                self.met.add("react-history")
            thought, here_too = _acted(there), _acted(here)
            if len(thought) == len(here_too) == 3 and thought[0] and not here_too[0]:
                thought[0] = ""
                self.met.add("react-thoughts")
            self._same(f"{place}: what the brain wrote", thought, here_too)
        else:
            self._same(f"{place}: content", there, here)

    def _arguments(self, place: str, theirs: Any, ours: Any) -> None:
        if not isinstance(theirs, dict) and isinstance(ours, dict) and set(ours) == {"invalid_json"}:
            written = theirs if isinstance(theirs, str) else json.dumps(theirs, separators=(",", ":"))
            self._same(f"{place}: arguments that are none", written, ours["invalid_json"])
            self.met.add("arguments-unreadable")
            return
        self._same(f"{place}: arguments", theirs, ours)

    # --- results ---------------------------------------------------------------------

    def _observation(self, place: str, theirs: str, ours: str) -> None:
        if _HINT.search(ours):
            ours = _HINT.sub("", ours)
            self.met.add("repeats")
        name = self._known_observation(theirs, ours)
        if not name:
            raise Unexplained(f"{place}: {theirs!r} there, {ours!r} here")
        self._meet(name)

    def _known_observation(self, theirs: str, ours: str) -> str:
        if theirs == ours:
            return "same"
        if theirs in self._results:
            made = self._results[theirs]
            if len(made) > CAP:
                return "cap" if len(ours.encode()) <= CAP and ours.startswith(made[:1000]) else ""
            return "result-json" if ours == made else ""
        if found := re.fullmatch(r"Error: tool '(.*)' not found\.", theirs, re.DOTALL):
            there = re.escape(f"Error: tool '{found[1]}' not found. ")
            return "unknown-tools" if re.match(f"{there}(Available tools: .+|There are no tools)[.]", ours) else ""
        if not (found := re.match(_FAILED, theirs, re.DOTALL)):
            return "" if theirs != ours else "same"
        name, rest = re.escape(found[1]), theirs[found.end() :]
        if rest.startswith("Tool input validation failed") or "unexpected type arguments" in rest:
            told = re.match(f"Error: tool '{name}' was not run, its arguments are invalid: .+", ours, re.DOTALL)
            return "invalid-arguments" if told else ""
        if rest.startswith("Tool execution failed"):
            return "failure-cause" if re.match(f"Error: tool '{name}' failed: (KeyError|SystemExit)", ours) else ""
        if rest.startswith("Tool output validation failed"):
            return "failure-cause" if re.match(f"Error: tool '{name}' failed: .*text", ours) else ""
        if "returned an unexpected type" in rest:
            return "loose-results" if ours == ("ok" if "NoneType" in rest else "a plain text") else ""
        return ""

    # --- text ------------------------------------------------------------------------

    def _written(self, place: str, theirs: list[Any], ours: list[Any]) -> tuple[list[Any], list[Any]]:
        """Both without what the text protocols of the engines say in words of their own."""
        prompted, last = _split(theirs)
        own, rest = _split(ours)
        if prompted and prompted[0].startswith(THEIR_PROMPT):
            names = [tool["name"] for box in self.session["toolboxes"] for tool in box]
            if int(self.session["config"].get("max_iterations", 10)) and not all(
                each in "".join(own) for each in names
            ):
                raise Unexplained(f"{place}: the prompt does not name the tools: {own}")
            self.met.add("react-prompt")
            prompted = prompted[1:]
        if not all(text in "".join(own) for text in prompted):
            raise Unexplained(f"{place}: the system messages {prompted} are not among {own}")
        if last and last[-1]["role"] == "user" and last[-1]["content"].startswith(THEIR_LAST):
            last = last[:-1]
            self.met.add("react-prompt")
        if rest and rest[-1]["content"].startswith("Observation: "):
            rest = [*rest[:-1], rest[-1] | {"content": self._unasked(rest[-1]["content"])}]
        if any(each["role"] == "tool" for each in rest):  # of a history, and no protocol
            return last, rest
        return _folded(last), _folded(rest)

    def _unasked(self, observation: str) -> str:
        """An observation without the paragraph behind it that says what to write now."""
        told, _, ask = observation.rpartition("\n\n")
        if told and not ask.startswith("Observation: "):
            self.met.add("react-prompt")
            return told
        return observation

    # --- the end ---------------------------------------------------------------------

    def _end(self) -> None:
        raised = self.theirs["raised"], self.ours["raised"]
        said = (_said(self.theirs), _said(self.ours))
        if raised[1] is not None:
            self._words(self._preambles(), said[1])
        if raised[0] == raised[1] is not None:
            return
        name = self._known_end(*raised, *said)
        if not name:
            raise Unexplained(f"the end: {said[0]!r} {raised[0]} there, {said[1]!r} {raised[1]} here")
        self._meet(name)

    def _meet(self, name: str) -> None:
        if name != "same":
            self.met.add(name)

    def _known_end(self, theirs: Any, ours: Any, there: str | None, here: str | None) -> str:
        if theirs and theirs[0] == "AttributeError" and ours and ours[0] == "ToolLoopModelError":
            return "no-message"
        if self._text and self._without_tools() and "Action:" in (there or ""):
            nothing = ours is not None and ours[0] == "ToolLoopEmptyResponseError"
            return "react-without-tools" if nothing or self._made_of_results(here or "") else ""
        blank = not (there or "").strip()
        if blank and ours is not None and ours[0] == "ToolLoopMalformedResponseError":
            replies = self.session["script"][len(self.ours["asked"]) - 1 :]
            return "leaked" if replies and "leaked" in replies[0].get("difference", ()) else ""
        if blank and ours is not None:
            return "empty" if ours[0] == "ToolLoopEmptyResponseError" else ""
        if ours is not None or (theirs is not None and not blank):
            return ""
        here = here or ""
        if blank:
            return "empty" if self._made_of_results(_without(here, self._preambles())) else ""
        there = there or ""
        if self._text and "Action:" in there:
            return "react-limit" if self._made_of_results(here) else ""
        if self.session["entry"] in ("continue_chat", "get_response"):
            return "same" if there == here else ""
        preambles = self._preambles()
        if there.split() == "".join(here).split():
            return "streams"
        self._words(f"{preambles} {there}", here)
        return "preamble"

    def _made_of_results(self, text: str) -> bool:
        """Whether a text is the sentence that is made where a brain has none, in the language of the session."""
        language = (self.session["known"]["lang"] or "en")[:2]
        found = text.startswith(_FOUND[language]) and text.count(_FOUND[language]) == 1
        return found or text == _NOT_FOUND[language]

    def _without_tools(self) -> bool:
        rounds = int(self.session["config"].get("max_iterations", 10))
        return not rounds or not any(self.session["toolboxes"])

    def _preambles(self) -> str:
        """What the brain said before calls, which is spoken where the answer is streamed."""
        if self.session["entry"] not in ("stream_tokens", "stream_sentences"):
            return ""
        return " ".join(message["content"] or "" for message in self._rounds())

    def _rounds(self) -> Iterator[Any]:
        asked = self.ours["asked"]
        if not asked:
            return
        given = len(asked[0]["messages"])
        for message in asked[-1]["messages"][given:]:
            if message["role"] == "assistant" and message["calls"]:
                yield message

    def _words(self, theirs: str, ours: str | None) -> None:
        self._same("what was said", theirs.split(), (ours or "").split())


def _split(messages: list[Any]) -> tuple[list[str], list[Any]]:
    """The texts of the system messages, and the other messages."""
    systems = [each["content"] for each in messages if each["role"] == "system"]
    return systems, [each for each in messages if each["role"] != "system"]


def _folded(messages: list[Any]) -> list[Any]:
    """User and assistant in turns; calls and results of a history as text."""
    made: list[Any] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "tool":
            role, content = "user", f"Observation: {content}"
        if message["calls"]:
            content = "\n".join(
                f"Action: {call['name']}\nAction Input: {json.dumps(call['arguments'])}" for call in message["calls"]
            )
        if made and made[-1]["role"] == role:
            made[-1]["content"] += f"\n\n{content}"
        else:
            made.append({"role": role, "content": content, "calls": None, "tool_call_id": None, "name": None})
    return made


def _acted(text: str) -> list[Any]:
    """The thought, the tool and the arguments of a text; the text where it has no action."""
    found = _ACTED.fullmatch(text.strip())
    if found is None:
        return [text]
    try:
        return [(found[1] or "").strip(), found[2], json.loads(found[3])]
    except ValueError:
        return [text]


class _Ids:
    """Names ids that no brain has made by the order in which they come."""

    def __init__(self, given: set[str]) -> None:
        self._given = given
        self._new: dict[Any, str] = {}

    def of(self, messages: list[Any]) -> Iterator[Any]:
        for message in messages:
            calls = message["calls"]
            if calls:
                calls = [call | {"id": self._named(call["id"])} for call in calls]
            call_id = message["tool_call_id"]
            yield message | {"calls": calls, "tool_call_id": call_id if call_id is None else self._named(call_id)}

    def _named(self, made: Any) -> Any:
        if made in self._given:
            return made
        return self._new.setdefault(made, f"?{len(self._new) + 1}")


def _run(run: dict[str, Any]) -> list[Any]:
    return [run["box"], run["tool"], run["arguments"]]


def _said(outcome: Outcome) -> str | None:
    if outcome["answer"] is not None:
        content: str | None = outcome["answer"]["content"]
        return content
    pieces = outcome["pieces"]
    if any(piece is None for piece in pieces):
        return None
    return " ".join(pieces)


def _without(text: str, said: str) -> str:
    words, before = text.split(), said.split()
    return " ".join(words[len(before) :] if words[: len(before)] == before else words)
