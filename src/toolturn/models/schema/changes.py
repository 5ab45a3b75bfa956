"""What a finished schema has been changed in, and whether it keeps a profile's sizes."""

from __future__ import annotations

from typing import Any

from ...frozen import frozen
from .profiles import Profile
from .source import Json

ROOT = "arguments"
"""The only property of an object that stands for the arguments as a whole."""

CHANGE: Any = object()
"""Under this key an object carries its change until the whole is finished and its place is known."""


@frozen
class Change:
    """What has to be undone in an object that a model wrote.

    Args:
        names: Names on the wire, each with the property's own name.
        optional: Names on the wire of properties that take null only because they can not be left out.
        unwrap: The only property holds the object itself.
    """

    names: dict[str, str]
    optional: frozenset[str] = frozenset()
    unwrap: bool = False


def inside(pointer: str, keyword: str, name: str) -> str:
    """Return the JSON pointer of a property or definition, uncut."""
    return f"{pointer}/{keyword}/{name.replace('~', '~0').replace('/', '~1')}"


class NotExpressible(Exception):
    """The profile has no words for something, and for this tool another must be taken.

    Args:
        place: Where, as a JSON pointer.
        reason: What it is.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place or '/'}: {reason}")


class Measure:
    """Finds what was changed in a finished schema, and whether it keeps the profile's sizes."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._properties = 0
        self._values = 0
        self._chars = 0
        self._changes: dict[str, Change] = {}

    def of(self, node: Json) -> dict[str, Change]:
        self._visit(node, "")
        profile = self._profile
        for count, most, what in (
            (self._properties, profile.max_properties, "properties"),
            (self._values, profile.max_enum_values, "enumerated values"),
            (self._chars, profile.max_chars, "characters of names and enumerated values"),
        ):
            if most and count > most:
                raise NotExpressible("", f"more than {most:,} {what}")
        return self._changes

    def _visit(self, node: Any, pointer: str) -> None:
        if not isinstance(node, dict):
            return
        change = node.pop(CHANGE, None)
        if change is not None:
            self._changes[pointer] = change
        values = node.get("enum", ())
        self._values += len(values)
        self._chars += sum(len(value) for value in values if isinstance(value, str))
        for keyword in ("properties", "$defs"):
            for name, child in node.get(keyword, {}).items():
                self._properties += keyword == "properties"
                self._chars += len(name)
                self._visit(child, inside(pointer, keyword, name))
        for keyword in ("items", "additionalProperties"):
            self._visit(node.get(keyword), f"{pointer}/{keyword}")
        for keyword in ("anyOf", "prefixItems"):
            for number, child in enumerate(node.get(keyword, ())):
                self._visit(child, f"{pointer}/{keyword}/{number}")
