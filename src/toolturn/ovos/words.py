"""What an engine says when the model has no words: a sentence made from the results of the turn, in its language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..messages import text_of
from ..results import ToolCallRecord
from ..turn.repeating import HINT

_LONGEST = 300
_HINT = HINT.partition("{")[0]  # what a repeated call is told is for the model
_MOST = 8

# language: before results; where there are none
_WORDS: Mapping[str, tuple[str, str]] = {
    "en": ("This is what I found: {}.", "I could not find an answer to that."),
    "de": ("Das habe ich gefunden: {}.", "Darauf habe ich keine Antwort gefunden."),
    "fr": ("Voici ce que j'ai trouvé : {}.", "Je n'ai pas trouvé de réponse à cela."),
    "es": ("Esto es lo que he encontrado: {}.", "No he podido encontrar una respuesta."),
    "it": ("Ecco cosa ho trovato: {}.", "Non ho trovato una risposta."),
    "pt": ("Foi isto que encontrei: {}.", "Não consegui encontrar uma resposta."),
    "nl": ("Dit heb ik gevonden: {}.", "Daar heb ik geen antwoord op gevonden."),
    "ca": ("Això és el que he trobat: {}.", "No he pogut trobar una resposta."),
    "gl": ("Isto é o que atopei: {}.", "Non puiden atopar unha resposta."),
    "eu": ("Hau da aurkitu dudana: {}.", "Ezin izan dut erantzunik aurkitu."),
    "da": ("Det fandt jeg: {}.", "Det kunne jeg ikke finde et svar på."),
    "sv": ("Det här hittade jag: {}.", "Jag kunde inte hitta något svar på det."),
    "nb": ("Dette fant jeg: {}.", "Jeg fant ikke noe svar på det."),
    "pl": ("Oto co udało mi się znaleźć: {}.", "Nie udało mi się znaleźć odpowiedzi."),
    "cs": ("Tohle se podařilo najít: {}.", "Odpověď se nepodařilo najít."),
    "hu": ("Ezt találtam: {}.", "Erre nem találtam választ."),
    "ru": ("Вот что нашлось: {}.", "Ответа на это найти не удалось."),
    "uk": ("Ось що знайшлося: {}.", "Відповіді на це знайти не вдалося."),
}
_SAY_NOTHING = ("ok", "null", "done")
_SAME = {"no": "nb", "nn": "nb"}


def found_or_not(records: Sequence[ToolCallRecord], language: str | None) -> str:
    """Return a sentence of what the calls of a turn gave, or one that says that there is no answer.

    Args:
        records: The calls, in order; only those that ended well are told.
        language: A BCP 47 tag; English where it is None or another one than is known here.
    """
    code = re.split("[-_]", language or "en")[0].lower()
    found, nothing = _WORDS.get(_SAME.get(code, code), _WORDS["en"])
    told: list[str] = []
    for record in records:
        if record.status == "ok":
            text = _spoken(text_of(record.message.content).partition(_HINT)[0])
            if text and text not in _SAY_NOTHING and text not in told:
                told.append(text)
    if not told:
        return nothing
    return found.format(_short("; ".join(told)))


def _spoken(content: str) -> str:
    """A tool's result without what is for machines: braces, quotation marks, names of fields that say nothing."""
    try:
        value = json.loads(content)
    except ValueError:
        return " ".join(content.split()).rstrip(".!? ")
    pairs = [(name, text) for name, text in _leaves("", value) if text]
    if len(pairs) == 1:
        return pairs[0][1]
    return ", ".join(f"{name} {text}".strip() for name, text in pairs[:_MOST])


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(str(key).replace("_", " "), item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(name, item)
    elif isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        yield name, str(int(value))
    elif value is not None and not isinstance(value, bool):
        yield name, " ".join(str(value).split()).rstrip(".!? ")


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    cut = text[:_LONGEST]
    return (cut[: cut.rfind(" ")] if " " in cut[_LONGEST // 2 :] else cut) + "…"
