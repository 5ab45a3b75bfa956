"""A schema as the alternatives it allows: references followed, ``allOf`` merged, unions spread out.

The alternatives of a schema together accept at least what the schema accepts. Where they accept more, the place is
recorded, with words that say what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...frozen import frozen
from .source import ANNOTATIONS, Json, SchemaFault, Source, canonical, is_of, same, step

MAX_ALTERNATIVES = 32
_MAX_CHAIN = 64

Trail = tuple[str, ...]
"""The references that were followed on the way to a schema, by which recursion is seen."""


@frozen
class Alternative:
    """One way to satisfy a schema, with nothing to combine in it.

    Args:
        keywords: Canonical keywords.
        trail: The references followed to get here.
        reference: Where this is the recursion to a schema that is not followed again, its pointer.
    """

    keywords: Json
    trail: Trail = ()
    reference: str | None = None


@frozen
class Reading:
    """What a schema says.

    Args:
        notes: Its own description, default and examples.
        alternatives: The ways to satisfy it; none where it can not be satisfied.
        words: What is lost in this reading.
    """

    notes: Json
    alternatives: list[Alternative]
    words: list[str]


class Reader:
    """Reads the schemas of one tool, within a budget.

    Args:
        source: The whole schema.
        unroll: How often a recursion is followed.
        references: A recursion is kept as a reference, not unrolled.
        budget: Schemas to read; those beyond it are read as their type alone.
        dropped: Told each place whose constraint is lost.
    """

    def __init__(
        self, source: Source, *, unroll: int, references: bool, budget: int, dropped: Callable[[str], None]
    ) -> None:
        self._source = source
        self._follows = 1 if references else unroll
        self._references = references
        self._budget = budget
        self._overrun = 20 * budget
        self._dropped = dropped

    def read(self, schema: Any, trail: Trail, place: str) -> Reading:
        """Return what a schema says.

        Raises:
            SchemaFault: There is far more than the budget.
        """
        return self._read(schema, trail, place, ())

    def _read(self, schema: Any, trail: Trail, place: str, chain: Trail) -> Reading:
        if schema is False:
            return Reading({}, [], [])
        if not isinstance(schema, dict):
            if schema is not True:
                self._dropped(place)
            return Reading({}, [Alternative({}, trail)], [])
        self._budget -= 1
        own = canonical(schema, lambda keyword: self._dropped(step(place, keyword)))
        notes = {key: own.pop(key) for key in ANNOTATIONS if key in own}
        if self._budget < 0:
            return self._beyond(own, notes, trail, place)
        words: list[str] = []
        found = [Alternative(own, trail)]
        reference = schema.get("$ref")
        if isinstance(reference, str):
            found = self._with(found, self._follow(reference, trail, place, chain), notes, words, place)
        elif "$dynamicRef" in schema or "$recursiveRef" in schema:
            self._dropped(place)
        parts = schema.get("allOf")
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            found = self._with(found, self._read(part, trail, f"{place}/allOf/{number}", chain), notes, words, place)
        for keyword in ("anyOf", "oneOf"):
            parts = schema.get(keyword)
            if isinstance(parts, list) and parts:
                branches = self._branches(keyword, parts, trail, place, chain, words)
                found = self._product(found, branches, words, place, keyword)
        return Reading(notes, found, words)

    def _beyond(self, own: Json, notes: Json, trail: Trail, place: str) -> Reading:
        if self._budget < -self._overrun:
            raise SchemaFault(place, "far too large once its references are followed")
        self._dropped(place)
        kept = {key: own[key] for key in ("type",) if key in own}
        return Reading(notes, [Alternative(kept, trail)], [])

    def _follow(self, reference: str, trail: Trail, place: str, chain: Trail) -> Reading:
        target = self._source.find(reference)
        if target is None:
            # nothing outside of the schema is ever fetched
            self._dropped(step(place, "$ref"))
            return Reading({}, [Alternative({}, trail)], [f"see {reference[:80]}"])
        pointer, schema = target
        if pointer in chain or len(chain) > _MAX_CHAIN:
            # defined by nothing but itself
            self._dropped(step(place, "$ref"))
            return Reading({}, [Alternative({}, trail)], [])
        if trail.count(pointer) >= self._follows:
            if self._references:
                return Reading({}, [Alternative({}, trail, pointer)], [])
            self._dropped(step(place, "$ref"))
            kinds = canonical(schema, lambda keyword: None).get("type") if isinstance(schema, dict) else None
            kept = {"type": kinds} if kinds else {}
            return Reading({}, [Alternative(kept, trail)], ["nested in the same way"])
        return self._read(schema, (*trail, pointer), place, (*chain, pointer))

    def _branches(
        self, keyword: str, parts: list[Any], trail: Trail, place: str, chain: Trail, words: list[str]
    ) -> list[Alternative]:
        groups = []
        for number, part in enumerate(parts):
            reading = self._read(part, trail, f"{place}/{keyword}/{number}", chain)
            groups.append([_settled(branch, reading) for branch in reading.alternatives])
        if keyword == "oneOf" and not _disjoint(groups):
            self._dropped(step(place, keyword))
            words.append("exactly one of the alternatives")
        return [branch for group in groups for branch in group]

    def _with(
        self, found: list[Alternative], reading: Reading, notes: Json, words: list[str], place: str
    ) -> list[Alternative]:
        for key, value in reading.notes.items():
            notes.setdefault(key, value)
        words.extend(reading.words)
        return self._product(found, reading.alternatives, words, place, "allOf")

    def _product(
        self, left: list[Alternative], right: list[Alternative], words: list[str], place: str, keyword: str
    ) -> list[Alternative]:
        if len(left) * len(right) > MAX_ALTERNATIVES:
            self._dropped(step(place, keyword))
            words.append("further conditions apply")
            return left
        made = []
        for one in left:
            for other in right:
                merged = self._merged(one, other, place)
                if merged is not None:
                    made.append(merged)
        return made

    def _merged(self, one: Alternative, other: Alternative, place: str) -> Alternative | None:
        common = 0
        for left, right in zip(one.trail, other.trail, strict=False):
            if left != right:
                break
            common += 1
        trail = one.trail + other.trail[common:]
        for side, rest in ((one, other), (other, one)):
            if side.reference is not None and not rest.keywords and rest.reference is None:
                return Alternative({}, trail, side.reference)
        for side in (one, other):
            if side.reference is not None:
                # conditions beside a recursion can not be kept without following it
                self._dropped(step(place, "$ref"))
        keywords = merged(one.keywords, other.keywords, lambda keyword: self._dropped(step(place, keyword)))
        return None if keywords is None else Alternative(keywords, trail)


def _settled(branch: Alternative, reading: Reading) -> Alternative:
    """A branch of a union with the notes of the schema it stands for."""
    notes = dict(reading.notes)
    if reading.words:
        notes["words"] = reading.words + branch.keywords.get("words", [])
    if not notes:
        return branch
    keywords = {**branch.keywords, **notes} if len(reading.alternatives) == 1 else {**notes, **branch.keywords}
    return Alternative(keywords, branch.trail, branch.reference)


def merged(one: Json, other: Json, dropped: Callable[[str], None]) -> Json | None:
    """Return keywords that say what both say; None where nothing satisfies both.

    Args:
        one: Canonical keywords; they win where two annotations differ.
        other: The others.
        dropped: Told each keyword of which only one could be kept.
    """
    made = {**other, **one}
    for keyword in one.keys() & other.keys():
        combine = _COMBINE.get(keyword)
        if combine is not None:
            value = combine(one[keyword], other[keyword])
            if value is None:
                return None
            made[keyword] = value
        elif keyword not in (*ANNOTATIONS, "additionalProperties") and not same(one[keyword], other[keyword]):
            dropped(keyword)
    if "enum" in made and "type" in made:
        made["enum"] = [value for value in made["enum"] if is_of(value, made["type"])]
        if not made["enum"]:
            return None
    for side, rest in ((one, other), (other, one)):
        if "prefixItems" in side and "items" in rest and "prefixItems" not in rest:
            dropped("items")
    _merge_closed(one, other, made, dropped)
    return made


def _merge_closed(one: Json, other: Json, made: Json, dropped: Callable[[str], None]) -> None:
    """What other keys two objects allow together.

    Taken literally, two closed objects with different properties exclude each other; who writes that means one
    object with the properties of both, and the schema itself is still enforced.
    """
    sides = [side["additionalProperties"] for side in (one, other) if "additionalProperties" in side]
    if not sides:
        return
    if False in sides:
        made["additionalProperties"] = False
    elif len(sides) == 2 and not same(*sides):
        made["additionalProperties"] = {"allOf": sides}
    for side, rest in ((one, other), (other, one)):
        extra = side.get("additionalProperties", True)
        if extra not in (True, {}) and rest.get("properties", {}).keys() - side.get("properties", {}).keys():
            dropped("additionalProperties")


def _types(one: list[str], other: list[str]) -> list[str] | None:
    kinds = [kind for kind in one if kind in other or (kind == "integer" and "number" in other)]
    kinds += [kind for kind in other if kind == "integer" and "number" in one and kind not in kinds]
    return kinds or None


def _values(one: list[Any], other: list[Any]) -> list[Any] | None:
    return [value for value in one if any(same(value, item) for item in other)] or None


def _properties(one: Json, other: Json) -> Json:
    made = {**one, **other}
    for name in one.keys() & other.keys():
        made[name] = one[name] if same(one[name], other[name]) else {"allOf": [one[name], other[name]]}
    return made


def _both(one: Any, other: Any) -> Any:
    return one if same(one, other) else {"allOf": [one, other]}


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "type": _types,
    "enum": _values,
    "properties": _properties,
    "required": lambda one, other: list(dict.fromkeys([*one, *other])),
    "items": _both,
    "words": lambda one, other: [*one, *other],
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _disjoint(groups: list[list[Alternative]]) -> bool:
    """Whether no value can satisfy two of several alternatives, as far as that is easily seen."""
    return all(
        _apart(one.keywords, other.keywords) and one.reference is None and other.reference is None
        for number, group in enumerate(groups)
        for one in group
        for rest in groups[number + 1 :]
        for other in rest
    )


def _apart(one: Json, other: Json) -> bool:
    if "enum" in one and "enum" in other:
        return _values(one["enum"], other["enum"]) is None
    if "type" in one and "type" in other and _types(one["type"], other["type"]) is None:
        return True
    # objects that are told apart by a tag
    if one.get("type") != ["object"] or other.get("type") != ["object"]:
        return False
    shared = set(one.get("required", ())) & set(other.get("required", ()))
    for name in shared:
        left, right = one.get("properties", {}).get(name), other.get("properties", {}).get(name)
        if isinstance(left, dict) and isinstance(right, dict):
            tags = [canonical(side, said_nothing).get("enum") for side in (left, right)]
            if tags[0] and tags[1] and _values(tags[0], tags[1]) is None:
                return True
    return False


def said_nothing(keyword: str) -> None:
    """Take no notice."""
