"""The key words of ReAct text, and which of them a line begins with.

ReAct: https://arxiv.org/abs/2210.03629
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["thought", "action", "input", "observation", "final", "answer", "question"]

WORDS: Mapping[str, Mapping[Kind, tuple[str, ...]]] = {
    "en": {
        "thought": ("Thought", "Thoughts"),
        "action": ("Action",),
        "input": ("Action Input", "Action Inputs"),
        "observation": ("Observation", "Observations"),
        "final": ("Final Answer", "Final Response"),
        "answer": ("Answer",),
        "question": ("Question",),
    },
    "de": {
        "thought": ("Gedanke", "Gedanken", "Überlegung"),
        "action": ("Aktion",),
        "input": ("Aktionseingabe", "Aktion Eingabe", "Aktions Eingabe", "Eingabe der Aktion"),
        "observation": ("Beobachtung",),
        "final": ("Endgültige Antwort", "Finale Antwort", "Abschließende Antwort", "Endantwort"),
        "answer": ("Antwort",),
        "question": ("Frage",),
    },
    "es": {
        "thought": ("Pensamiento",),
        "action": ("Acción",),
        "input": ("Entrada de la acción", "Entrada de acción", "Entrada acción", "Acción Entrada"),
        "observation": ("Observación",),
        "final": ("Respuesta final",),
        "answer": ("Respuesta",),
        "question": ("Pregunta",),
    },
    "fr": {
        "thought": ("Pensée", "Réflexion"),
        "action": ("Action",),
        "input": ("Entrée de l'action", "Entrée d'action", "Entrée action", "Action entrée"),
        "observation": ("Observation",),
        "final": ("Réponse finale",),
        "answer": ("Réponse",),
        "question": ("Question",),
    },
    "it": {
        "thought": ("Pensiero",),
        "action": ("Azione",),
        "input": ("Input dell'azione", "Input azione", "Azione input", "Ingresso dell'azione"),
        "observation": ("Osservazione",),
        "final": ("Risposta finale",),
        "answer": ("Risposta",),
        "question": ("Domanda",),
    },
    "nl": {
        "thought": ("Gedachte",),
        "action": ("Actie",),
        "input": ("Actie-invoer", "Invoer van de actie", "Invoer actie"),
        "observation": ("Observatie", "Waarneming"),
        "final": ("Definitief antwoord", "Eindantwoord", "Uiteindelijk antwoord"),
        "answer": ("Antwoord",),
        "question": ("Vraag",),
    },
    "pt": {
        "thought": ("Pensamento",),
        "action": ("Ação",),
        "input": ("Entrada da ação", "Entrada de ação", "Entrada ação", "Ação entrada"),
        "observation": ("Observação",),
        "final": ("Resposta final",),
        "answer": ("Resposta",),
        "question": ("Pergunta",),
    },
}
"""The key words by language; those of English are read in every language."""

# What small models write in the place of "Action Input", believed only below an action.
_INPUT_ALIASES = (
    *("input", "inputs", "args", "arguments", "parameters", "params", "actionargs", "actionarguments"),
    *("actionparameters", "actionparams", "toolinput", "toolargs", "toolarguments", "inputjson", "actioninputjson"),
)

_MARK = r"[ \t]{0,40}(?P<mark>[*_#][*_# \t]{0,20})?"
_COLON = re.compile(_MARK + r"(?P<label>[^\W\d_](?:[\w \t’'()\-]{0,48}[\w)])?)[ \t]*[*_`]*[ \t]*[:：]")
_WORDED = re.compile(
    _MARK + r"(?P<label>[^\W\d_][\w’'\-]*(?:[ \t]+[\w’'\-]+){0,3}?)"
    r"(?:(?P<bold>[*_]++)[ \t]*(?![ \t:：])|[ \t]+(?P<dash>[-–—=]+>?)[ \t]+|[ \t]*(?P<end>\Z)"
    r"|[ \t]*(?P<value>(?=[{\[\"`]))|(?P<blank>[ \t]+)(?=[^\s\-–—=*_:：]))"
)
_LABEL_SO_FAR = re.compile(_MARK + r"(?P<label>(?:[^\W\d_][\w \t’'()\-]{0,60})?)(?P<after>[*_`–—=> \t]*)")
_CLOSERS = re.compile(r"[*_]+[ \t]*")


def folded(label: str) -> str:
    """Return a label as letters alone, without case and accents.

    Args:
        label: What stands before the colon.
    """
    plain = unicodedata.normalize("NFKD", label) if not label.isascii() else label
    return "".join(letter for letter in plain.casefold() if letter.isalpha())


@dataclass(frozen=True, slots=True)
class Key:
    """A key word at the beginning of a line.

    Args:
        kind: Which one.
        rest: What stands behind it in the line, as it is.
        open_mark: Bold or italics that begin before the key and do not end with it.
        foreign: It is a word of a language that is not read here.
    """

    kind: Kind
    rest: str
    open_mark: str = ""
    foreign: bool = False


class Keys:
    """The key words that count.

    Args:
        languages: Those whose words are read beside the English ones; words of the others are only known as such.
    """

    def __init__(self, languages: Iterable[str] = ()) -> None:
        read = ["en", *(language for language in languages if language in WORDS)]
        self._kinds: dict[str, tuple[Kind, bool]] = {}
        for language in (*read, *WORDS):
            for kind, words in WORDS[language].items():
                for word in words:
                    # an answer runs nothing, so it may be announced in any language
                    self._kinds.setdefault(folded(word), (kind, language not in read and kind != "final"))
        self._beginnings = {word[:length] for word in self._kinds for length in range(len(word) + 1)}

    def key(self, line: str) -> Key | None:
        """Return the key word that a line begins with, or None.

        Args:
            line: A line, or its beginning.
        """
        # what needs no colon comes first, so that a line means the same while it arrives
        found = _WORDED.match(line)
        while found is not None:
            known = self._kinds.get(folded(found["label"]))
            if known is not None and self._counts(found, known[0]):
                return self._made(line, found.end(), None if found["bold"] else found["mark"], known)
            found = self._longer(line, found)
        found = _COLON.match(line)
        if found is not None and (known := self._kinds.get(folded(found["label"]))) is not None:
            return self._made(line, found.end(), found["mark"], known)
        return None

    @staticmethod
    def _longer(line: str, found: re.Match[str]) -> re.Match[str] | None:
        """The same line with a label of one word more."""
        words = len(found["label"].split()) + 1
        return _worded(words).match(line) if words <= 4 else None

    @staticmethod
    def _counts(found: re.Match[str], kind: Kind) -> bool:
        """Whether a key word without a colon is one."""
        marked = bool(found["mark"])
        if found["bold"] is not None:
            return marked and kind not in ("answer", "question")
        if found["dash"] is not None:
            return kind in ("final", "input")
        if found["end"] is not None:
            return kind in ("final", "input") or (marked and kind not in ("answer", "question"))
        if found["value"] is not None:
            return kind == "input"
        joined = len(found["label"].split()) == 1
        return kind == "final" and joined and ("_" in found["label"] or not found["label"].islower())

    @staticmethod
    def _made(line: str, end: int, mark: str | None, known: tuple[Kind, bool]) -> Key:
        mark = "".join(sign for sign in mark or "" if sign in "*_")
        if mark:
            closers = _CLOSERS.match(line, end)
            head = line[:end].rstrip(" \t:：")
            if closers is not None:
                end, mark = closers.end(), ""
            elif head.endswith(("*", "_")):
                mark = ""
        return Key(known[0], line[end:], mark, known[1])

    def may_begin(self, line: str) -> bool:
        """Return whether a line that is not complete yet may turn out to begin with a key word.

        Args:
            line: What has arrived of it.
        """
        found = _LABEL_SO_FAR.match(line)
        if found is None:  # pragma: no cover - each part of it may be empty
            return False
        label = folded(found["label"])
        if found.end() < len(line):
            # what follows decides, and the key itself was looked for before
            return line[found.end()] in ":：" and label in self._kinds
        return label in self._beginnings

    def is_final(self, word: str) -> bool:
        """Return whether a word in the place of a tool's name means the answer.

        Args:
            word: What stands there.
        """
        known = self._kinds.get(folded(word))
        return (known is not None and known[0] in ("final", "answer")) or folded(word) in ("finish", "final")

    def below_action(self, line: str) -> Key | None:
        """Return the key of a line below an action, where other words mean its input too.

        Args:
            line: The line.
        """
        found = self.key(line)
        if found is not None:
            return found
        alias = _COLON.match(line)
        if alias is None or folded(alias["label"]) not in _INPUT_ALIASES:
            return None
        return self._made(line, alias.end(), alias["mark"], ("input", False))


@lru_cache(maxsize=8)
def _worded(words: int) -> re.Pattern[str]:
    return re.compile(_WORDED.pattern.replace("{0,3}?", f"{{{words - 1}}}"))


@lru_cache(maxsize=16)
def keys_of(language: str) -> Keys:
    """Return the key words of a language.

    Args:
        language: A tag such as ``de`` or ``pt-BR``.
    """
    return Keys((language.partition("-")[0].partition("_")[0].lower(),))
