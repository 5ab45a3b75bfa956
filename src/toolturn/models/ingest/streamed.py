"""The text of a stream as people may see it: thoughts told apart, and no markup of leaked calls."""

from __future__ import annotations

import re

from ...model import Delta

_THOUGHT_OPENERS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<seed:think>", "[think]", "◁think▷")
_THOUGHT_ENDS = ("</think>", "</thinking>", "</thought>", "</reasoning>", "</seed:think>", "[/think]", "◁/think▷")
_CALL_OPENERS = (
    "<tool_call",
    "<|tool_call",
    "<functioncall>",
    "<function_call",
    "<function=",
    "<tools>",
    "<tool>",
    "[tool_calls]",
    "<|python_tag|>",
    "<invoke ",
    "<antml:",
    "<｜",
    "<|dsml",
    "<||dsml",
)
_CLOSED = ("<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>")
_JSON_ALONE = re.compile(r"\s*(?:[\[{]|```(?:json|tool_call|tool_code)|`{0,3}\Z)", re.IGNORECASE)


class _Tags:
    """Finds the first of some tags, and what may be the beginning of one at the end of a text."""

    def __init__(self, *tags: str) -> None:
        self._any = re.compile("|".join(re.escape(tag) for tag in tags), re.IGNORECASE)
        self._prefixes = {tag[:length] for tag in tags for length in range(1, len(tag))}
        self._longest = max(map(len, tags)) - 1

    def first(self, text: str) -> re.Match[str] | None:
        return self._any.search(text)

    def held(self, text: str) -> int:
        """How many characters at the end may begin a tag."""
        for length in range(min(self._longest, len(text)), 0, -1):
            if text[-length:].lower() in self._prefixes:
                return length
        return 0


_OPENERS = _Tags(*_THOUGHT_OPENERS, *_CALL_OPENERS, *_CLOSED)
_ENDS = _Tags(*_THOUGHT_ENDS)


class ShownText:
    """Decides what of a reply's text is handed on while it arrives.

    What may be the beginning of markup is held back until that is decided. From where a call seems to be written
    into the text, and where a reply to an offer of tools is JSON alone, all is held until the end; what was no call
    after all is handed on then.

    Args:
        tools: Whether tools were offered.
    """

    def __init__(self, *, tools: bool) -> None:
        self._tools = tools
        self._text = ""
        self._told: list[str] = []
        self._begun = False
        self._thinks = False
        self._holds = False

    def feed(self, text: str) -> list[Delta]:
        """Take a piece of text and return what may be shown.

        Args:
            text: The piece.
        """
        if self._holds:
            return []
        self._text += text
        if not self._begun:
            if self._tools and _JSON_ALONE.match(self._text):
                # undecided, or JSON from the first character on
                self._holds = len(self._text.strip()) > len("```json")
                return []
            self._begun = bool(self._text.strip())
        shown: list[Delta] = []
        while self._text:
            if not self._advance(shown):
                break
        return shown

    def _advance(self, shown: list[Delta]) -> bool:
        """Hand on what is decided; whether more may follow at once."""
        tags = _ENDS if self._thinks else _OPENERS
        found = tags.first(self._text)
        if found is None:
            keep = tags.held(self._text)
            self._show(self._text[: len(self._text) - keep], shown)
            self._text = self._text[len(self._text) - keep :]
            return False
        self._show(self._text[: found.start()], shown)
        tag = found[0].lower()
        self._text = self._text[found.end() :]
        if self._thinks:
            self._thinks = False
            self._text = self._text.lstrip("\n")
        elif tag in _THOUGHT_OPENERS:
            self._thinks = True
        elif tag not in _CLOSED:
            self._holds = True
            return False
        return True

    def _show(self, text: str, shown: list[Delta]) -> None:
        if not text:
            return
        if self._thinks:
            shown.append(Delta(text, "reasoning"))
            return
        if not self._told:
            text = text.lstrip()  # blanks between thoughts and answer belong to neither
            if not text:
                return
        self._told.append(text)
        shown.append(Delta(text))

    def rest(self, content: str) -> list[Delta]:
        """Return what of the finished reply has not been shown.

        Args:
            content: The text of the reply, after everything in it was mended.
        """
        told = "".join(self._told)
        whole = content.lstrip()
        return [Delta(whole[len(told) :])] if whole.startswith(told) and len(whole) > len(told) else []
