"""What is wrong with a section of a persona file, with the place of each."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from ..plugins import unknown
from .keys import BRAINS, ENGINE, MCP_TOOLBOXES, REACT, SAME_TOOLBOX, Form, Keys, keys_of

Level: TypeAlias = Literal["problem", "warning", "note"]
"""A ``problem`` keeps a persona from being used, a ``warning`` is most likely a mistake, a ``note`` is good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that stands in a persona file and should be known.

    Args:
        level: How bad it is.
        place: Where, as a path from the root ``$``.
        text: One sentence for people.
        line: The line, from 1, where the file is no JSON.
        column: The column, from 1, likewise.
    """

    level: Level
    place: str
    text: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"line {self.line}, column {self.column}: {self.text}"
        return self.text if self.place == "$" else f"{self.place}: {self.text}"


def below(place: str, key: str | int) -> str:
    """Return the path of what stands below a place.

    Args:
        place: A path from the root ``$``.
        key: A key, or the index of an entry in a list.
    """
    if isinstance(key, int):
        return f"{place}[{key}]"
    return f"{place}.{key}" if key.isidentifier() else f'{place}["{key}"]'


def check_section(
    section: Mapping[str, Any], keys: Keys, place: str = "$", *, sections: Collection[str] = ()
) -> list[Finding]:
    """Return what is wrong with the keys and the forms of the values of a section.

    Args:
        section: The section.
        keys: What may stand there.
        place: Where the section stands.
        sections: Further keys that are known, such as those of the sections in it.
    """
    found: list[Finding] = []
    for key, value in section.items():
        where = below(place, str(key))
        if key in keys.known:
            found += _of_value(key, value, keys, where)
        elif key in sections:
            continue
        elif key in keys.wrong:
            found.append(Finding("warning", where, f"{key} is not read here: {keys.wrong[key]}"))
        elif key in keys.renamed:
            right = keys.renamed[key]
            told = f"{key} is not the name of the key; it is {right}"
            told += ", which is there too and counts" if right in section else ""
            found.append(Finding("warning", where, told))
            if right not in section:
                found += _of_value(right, value, keys, where)
        else:
            found.append(Finding("warning", where, _unknown(str(key), value, (*keys.known, *sections))))
    for key in keys.needed:
        if not any(name in section for name in (key, *(old for old, new in keys.renamed.items() if new == key))):
            found.append(Finding("problem", below(place, key), f"{key} is missing"))
    return found


def check_engine(section: Mapping[str, Any], place: str = "$", *, skip: Collection[str] = ()) -> list[Finding]:
    """Return what is wrong with the section of an engine, and with those in it whose keys are known.

    Args:
        section: The section.
        place: Where it stands.
        skip: Sections in it whose keys are not looked at.
    """
    brain = value_of(section, "brain", ENGINE)
    inside = [text for text in (brain, *names_in(value_of(section, "toolboxes", ENGINE))) if isinstance(text, str)]
    unused = [key for key in (*SAME_TOOLBOX, *SAME_TOOLBOX.values(), *MCP_TOOLBOXES) if key not in inside]
    found = check_section(section, ENGINE, place, sections=[*inside, *BRAINS, *unused])
    found += [
        Finding("warning", below(place, key), f'this section is not used: "toolboxes" does not list {key}')
        for key in dict.fromkeys(unused)
        if key in section
    ]
    react = section.get("react")
    if isinstance(react, Mapping):
        found += check_section(react, REACT, below(place, "react"))
    for key in dict.fromkeys([*inside, *(name for name in BRAINS if name in section)]):
        if key not in section:
            continue
        inner, where = section[key], below(place, key)
        if not isinstance(inner, Mapping):
            found.append(Finding("problem", where, f"the section of {key} must be an object"))
            continue
        if key in BRAINS and key != brain:
            named = f"brain is {brain!r}" if brain else f'write "brain": "{key}"'
            found.append(Finding("warning", where, f"this section is not used: {named}"))
        keys = keys_of(key)
        if keys is not None and key not in skip:
            found += check_section(inner, keys, where)
    return found


def value_of(section: Mapping[str, Any], key: str, keys: Keys) -> Any:
    """Return the value of a key, also where it stands under an old name; None where there is none.

    Args:
        section: The section.
        key: The key as it is called now.
        keys: What may stand there.
    """
    if key in section:
        return section[key]
    return next((section[old] for old, new in keys.renamed.items() if new == key and old in section), None)


def names_in(value: Any) -> list[str]:
    """Return the names in a list; one name alone is a list too, and what is no name is left out.

    Args:
        value: The list, or anything else.
    """
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [name for name in found if isinstance(name, str)]


def _unknown(key: str, value: Any, known: Collection[str]) -> str:
    if not isinstance(value, Mapping):
        return unknown("key", key, known)
    near = get_close_matches(key.lower(), list(dict.fromkeys(known)), 1)
    return "this section is not used: nothing names it" + (f"; did you mean {near[0]!r}?" if near else "")


_FORMS: Mapping[Form, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "text or texts": "a text or a list of texts",
    "whole": "a whole number",
    "number": "a number",
    "yes or no": "true or false",
    "object": "an object",
}


def _of_value(key: str, value: Any, keys: Keys, place: str) -> list[Finding]:
    form = keys.known[key]
    if value is None and key not in keys.needed:
        return []
    if form in ("whole", "number") and isinstance(value, str) and _number(value, form) is not None:
        return [Finding("warning", place, f"{key} is a text; write {value.strip()} without the quotation marks")]
    if not _fits(value, form):
        return [Finding("problem", place, f"{key} must be {_FORMS[form]}")]
    if form == "text" and key in keys.needed and not value.strip():
        return [Finding("problem", place, f"{key} must not be empty")]
    if key in keys.choices and value not in keys.choices[key]:
        return [Finding("problem", place, f"{key} must be one of {', '.join(keys.choices[key])}")]
    least = keys.least.get(key)
    if least is not None and value < least:
        return [Finding("problem", place, f"{key} must be at least {least:g}")]
    return []


def _fits(value: Any, form: Form) -> bool:
    match form:
        case "text":
            return isinstance(value, str)
        case "texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "text or texts":
            return isinstance(value, str) or _fits(value, "texts")
        case "whole":
            return type(value) is int
        case "number":
            return type(value) in (int, float) and _finite(value)
        case "yes or no":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, Mapping)
    return True


def _number(text: str, form: Form) -> float | None:
    try:
        value = int(text) if form == "whole" else float(text)
    except ValueError:
        return None
    return value if form == "whole" or _finite(value) else None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no floating-point number comes near to
        return False


def number_of(value: Any) -> Any:
    """Return a number that may stand there as a text, as a number.

    Args:
        value: A number, or anything else, which is returned as it is.
    """
    if not isinstance(value, str):
        return value
    whole = _number(value, "whole")
    return _number(value, "number") if whole is None else whole
