"""What a schema says, written down in the form that a profile takes."""

from __future__ import annotations

import math
import re
from typing import Any

from ...frozen import frozen
from .changes import CHANGE, ROOT, Change, Measure, NotExpressible
from .forms import enums_joined, takes_null, with_null
from .keywords import OF_TYPE, extra_of, implied, joined, opened, telling_title
from .names import property_alias
from .patterns import PATTERNS
from .profiles import Profile
from .reader import Alternative, Reader, Reading, Trail
from .source import Json, SchemaFault, is_of, reference_to, step, type_of, unique
from .words import brief, described, said


@frozen
class Written:
    """A schema as a profile takes it.

    Args:
        parameters: The schema; None where the tool is declared without.
        words: What could not be said in it of the arguments as a whole.
        changes: What has to be undone, by the JSON pointers of the objects in ``parameters``.
    """

    parameters: Json | None
    words: list[str]
    changes: dict[str, Change]


class _TooDeep(Exception):
    """Raised where an object or array may not be, for the one around it."""


class Writer:
    """Writes the schema of one tool.

    Args:
        reader: Reads the schema.
        profile: What is taken.
        dropped: Collects the places whose constraint is lost.
    """

    def __init__(self, reader: Reader, profile: Profile, dropped: list[str]) -> None:
        self._reader = reader
        self._profile = profile
        self._places = dropped
        self._left = 4 * profile.max_nodes
        self._definitions: dict[str, str] = {}
        self._simple_pattern = PATTERNS[profile.patterns]

    def write(self, schema: Any) -> Written:
        """Return the schema of a tool's arguments.

        Raises:
            SchemaFault: It is not that of an object, or far too large.
            NotExpressible: The profile can not say it.
        """
        reading = self._reader.read(schema, ("",), "")
        objects = [item for item in reading.alternatives if "object" in item.keywords.get("type", ["object"])]
        objects = [item for item in objects if item.reference is None and "enum" not in item.keywords]
        if not objects:
            raise SchemaFault("", "not the schema of an object")
        words = list(reading.words)
        if len(objects) > 1:
            kept = [keyword for keyword in ("anyOf", "oneOf", "allOf", "$ref") if keyword in schema]
            self._drop(f"/{kept[0]}")
        whole = objects[0] if len(objects) == 1 else joined(objects, words)
        words += whole.keywords.get("words", [])
        self._say(whole.keywords, OF_TYPE["any"], "", words)
        node, object_words = self._object(whole, "", 1, root=True)
        words += object_words
        description = reading.notes.get("description") or whole.keywords.get("description")
        for keyword in ("examples", "default"):
            if keyword in reading.notes:
                words.append(said(keyword, reading.notes[keyword]))
        if not node.get("properties") and self._profile.no_parameters == "omit":
            if not opened(whole.keywords):
                return Written(None, words, {})
            node = self._wrapped(words)
            words = []
        if description:
            node["description"] = description
        self._write_definitions(node)
        changes = Measure(self._profile).of(node)
        return Written(node, words, changes)

    def _wrapped(self, words: list[str]) -> Json:
        """An object of any keys as the only parameter, where one can not be at the root."""
        inner = {"type": "object", "description": described("The arguments, by name", words)}
        change = Change({}, unwrap=True)
        return {"type": "object", "properties": {ROOT: inner}, "required": [ROOT], CHANGE: change}

    def _write_definitions(self, node: Json) -> None:
        made: Json = {}
        while len(made) < len(self._definitions):
            for pointer, key in list(self._definitions.items()):
                if key not in made:
                    made[key] = None
                    made[key] = self._node({"$ref": reference_to(pointer)}, (), f"/$defs/{key}", 1)
        if made:
            node["$defs"] = made

    def _drop(self, place: str) -> None:
        self._places.append(place)

    def _node(self, schema: Any, trail: Trail, place: str, depth: int) -> Json:
        self._left -= 1
        if self._left < 0:
            raise SchemaFault(place, "far too large once its references are followed")
        reading = self._reader.read(schema, trail, place)
        if not reading.alternatives:
            self._drop(place)
            return self._noted(self._any(place, depth), reading, ["no value is allowed here"])
        if len(reading.alternatives) == 1:
            single = reading.alternatives[0]
            node, words = self._alternative(single, place, depth)
            notes = {**single.keywords, **reading.notes}
            return self._noted(node, Reading(notes, [], reading.words), words)
        return self._noted(self._union(reading.alternatives, place, depth), reading, [])

    def _noted(self, node: Json, reading: Reading, words: list[str]) -> Json:
        """A schema with its description, and in it whatever else there is to say."""
        notes = reading.notes
        words = [*reading.words, *words]
        if "default" in notes:
            if "default" in self._profile.keywords and "$ref" not in node:
                node["default"] = notes["default"]
            elif notes["default"] is not None:
                words.append(said("default", notes["default"]))
        if "examples" in notes:
            words.append(said("examples", notes["examples"]))
        text = described(notes.get("description", ""), words)
        if not text:
            return node
        if "$ref" in node:
            # nothing may stand beside a reference
            node = {"anyOf": [node]}
        for target in self._describable(node):
            own = target.get("description")
            target["description"] = text if not own else f"{text}: {own}" if target is not node else f"{text} ({own})"
        return node

    def _describable(self, node: Json) -> list[Json]:
        """Where the description of a schema belongs."""
        branches: list[Json] | None = node.get("anyOf") if self._profile.union_alone else None
        return [node] if branches is None else branches

    def _union(self, alternatives: list[Alternative], place: str, depth: int) -> Json:
        branches: list[Json] = []
        null = False
        for number, item in enumerate(alternatives):
            if item.keywords.get("type") == ["null"] or item.keywords.get("enum") == [None]:
                null = True
                continue
            node, words = self._alternative(item, f"{place}/anyOf/{number}", depth)
            node = self._noted(node, Reading(item.keywords, [], []), words)
            if not node:
                # anything at all: the other branches add nothing
                return {}
            branches += node["anyOf"] if node.keys() == {"anyOf"} else [node]
        return self._either(branches, null, place)

    def _either(self, branches: list[Json], null: bool, place: str) -> Json:
        branches = enums_joined(branches)
        if not branches:
            return self._null(place)
        node = branches[0] if len(branches) == 1 else {"anyOf": branches}
        return with_null(node, self._profile.nulls) if null else node

    def _alternative(self, item: Alternative, place: str, depth: int) -> tuple[Json, list[str]]:
        """One schema without unions, and the words for what it can not say."""
        if item.reference is not None:
            return {"$ref": f"#/$defs/{self._definition(item.reference)}"}, []
        keywords = item.keywords
        words: list[str] = list(keywords.get("words", []))
        self._say(keywords, OF_TYPE["any"], place, words)
        values = keywords.get("enum")
        types = keywords.get("type") or implied(keywords)
        if values is not None:
            values = [value for value in values if not types or is_of(value, types)]
            if values:
                types = list(dict.fromkeys(type_of(value) for value in values))
            else:
                # no value is of the type: one of the two is a mistake, and which of them only the tool can tell
                self._drop(step(place, "enum"))
                words.append(said("enum", keywords["enum"]))
                values = None
        if not types:
            return self._any(place, depth), words
        kinds = [kind for kind in types if kind != "null" and not (kind == "integer" and "number" in types)]
        if not kinds:
            return self._null(place), words
        branches = []
        for kind in kinds:
            own = None if values is None else [value for value in values if is_of(value, [kind])]
            node, lost = self._typed(kind, own, item, place, depth)
            if len(kinds) == 1:
                words += lost
            elif lost:
                node["description"] = described("", lost)
            branches.append(node)
        return self._either(branches, "null" in types, place), words

    def _typed(
        self, kind: str, values: list[Any] | None, item: Alternative, place: str, depth: int
    ) -> tuple[Json, list[str]]:
        if values is not None:
            if kind in ("object", "array"):
                # constants with a shape are said in words; what they must be is enforced locally
                self._drop(step(place, "enum"))
                free = Alternative({"type": [kind]}, item.trail)
                return self._shaped(kind, free, place, depth)[0], [said("enum", values)]
            for keyword in OF_TYPE.get(kind, ()):
                if keyword in item.keywords:
                    self._drop(step(place, keyword))
            return self._enumerated(kind, values, place)
        if kind in ("object", "array"):
            return self._shaped(kind, item, place, depth)
        words: list[str] = []
        node: Json = {"type": kind}
        self._constrain(node, item.keywords, kind, place, words)
        return node, words

    def _enumerated(self, kind: str, values: list[Any], place: str) -> tuple[Json, list[str]]:
        if self._profile.enums == "any" or (kind == "string" and all(values)):
            return {"type": kind, "enum": unique(values)}, []
        self._drop(step(place, "enum"))
        return {"type": kind}, [said("enum", values)]

    def _constrain(self, node: Json, keywords: Json, kind: str, place: str, words: list[str]) -> None:
        """Write the constraints that are taken, and say the others."""
        taken = self._profile.keywords
        for keyword in OF_TYPE.get(kind, ()):
            if keyword not in keywords:
                continue
            value = keywords[keyword]
            if keyword in taken and self._takes(keyword, value):
                node[keyword] = value
                continue
            if kind == "integer" and keyword.startswith("exclusive"):
                # said as an inclusive bound, which for whole numbers is the same
                bound = "minimum" if keyword == "exclusiveMinimum" else "maximum"
                if bound in taken:
                    limit = math.floor(value) + 1 if bound == "minimum" else math.ceil(value) - 1
                    tighter = max if bound == "minimum" else min
                    node[bound] = tighter(node[bound], limit) if bound in node else limit
                    continue
            self._drop(step(place, keyword))
            words.append(said(keyword, value))

    def _say(self, keywords: Json, which: tuple[str, ...], place: str, words: list[str]) -> None:
        for keyword in which:
            if keyword in keywords:
                self._drop(step(place, keyword))
                words.append(said(keyword, keywords[keyword]))

    def _takes(self, keyword: str, value: Any) -> bool:
        if keyword == "format":
            return value in self._profile.formats
        if keyword == "pattern":
            return self._simple_pattern(value)
        return True

    def _array(self, item: Alternative, place: str, depth: int) -> tuple[Json, list[str]]:
        keywords, profile = item.keywords, self._profile
        words: list[str] = []
        node: Json = {"type": "array"}
        if keywords.get("unevaluatedItems") is False:
            keywords = {"items": False, **keywords}
            del keywords["unevaluatedItems"]
        items = keywords.get("items")
        first = keywords.get("prefixItems", [])
        inside = step(place, "items")
        if first and profile.tuples:
            node["prefixItems"] = [
                self._node(member, item.trail, f"{place}/prefixItems/{number}", depth + 1)
                for number, member in enumerate(first)
            ]
            if items is not None:
                node["items"] = items if isinstance(items, bool) else self._node(items, item.trail, inside, depth + 1)
        elif first:
            self._drop(step(place, "prefixItems"))
            words.append("in this order: " + ", ".join(brief(member) for member in first[:20]))
            members = [*first, items] if isinstance(items, dict) else first
            members = [member for number, member in enumerate(members) if member not in members[:number]]
            node["items"] = self._node(
                members[0] if len(members) == 1 else {"anyOf": members}, item.trail, inside, depth + 1
            )
            if items is False and "maxItems" not in keywords:
                keywords = {**keywords, "maxItems": len(first)}
        elif items is False:
            keywords = {**keywords, "maxItems": 0}
            node["items"] = {"type": "string"}
        else:
            node["items"] = self._node(True if items is None else items, item.trail, inside, depth + 1)
        self._constrain(node, keywords, "array", place, words)
        return node, words

    def _object(self, item: Alternative, place: str, depth: int, *, root: bool = False) -> tuple[Json, list[str]]:
        keywords, profile = item.keywords, self._profile
        words: list[str] = []
        properties = keywords.get("properties", {})
        extra = extra_of(keywords)
        node: Json = {"type": "object"}
        if profile.properties_always:
            node["properties"] = {}
        self._constrain(node, keywords, "object", place, words)
        if profile.closed and (extra not in (None, False) or not (root or "properties" in keywords or extra is False)):
            raise NotExpressible(place, "an object of any keys")
        words += self._write_properties(node, item, place, depth)
        if profile.closed:
            node["additionalProperties"] = False
        elif profile.maps == "taken":
            if extra is not None:
                inside = step(place, "additionalProperties")
                node["additionalProperties"] = (
                    extra if isinstance(extra, bool) else (self._node(extra, item.trail, inside, depth + 1) or True)
                )
        elif extra is not None and extra is not True:
            self._drop(step(place, "additionalProperties"))
            if extra is not False:
                words.append(f"any {'other ' if properties else ''}keys, each value: {brief(extra)}")
        elif not properties and not root:
            words.append("any keys")
        return node, words

    def _write_properties(self, node: Json, item: Alternative, place: str, depth: int) -> list[str]:
        keywords, profile = item.keywords, self._profile
        properties = keywords.get("properties", {})
        made: Json = {}
        names: dict[str, str] = {}
        optional: set[str] = set()
        required: list[str] = []
        needed = set(keywords.get("required", ()))
        for name, value in properties.items():
            inside = step(step(place, "properties"), name)
            if value is False:
                self._drop(inside)
                continue
            child = self._node(value, item.trail, inside, depth + 1)
            alias = property_alias(name, profile.property_names, made.keys() | properties.keys())
            words = [telling_title(name, value)] if "description" not in child else []
            if alias != name:
                names[alias] = name
                words.append(f'its own name is "{name[:100]}"')
            if any(words):
                child = {"anyOf": [child]} if "$ref" in child else child
                for target in self._describable(child):
                    target["description"] = described(target.get("description", ""), words)
            if name in needed:
                required.append(alias)
            elif profile.closed:
                required.append(alias)
                if not takes_null(child):
                    optional.add(alias)
                    child = with_null(child, profile.nulls)
            made[alias] = child
        missing = [name for name in keywords.get("required", ()) if name not in properties]
        if missing:
            self._drop(step(place, "required"))
        if made:
            node["properties"] = made
        if required or profile.closed:
            node["required"] = required
        if names or optional:
            node[CHANGE] = Change(names, frozenset(optional))
        return [f"also needs {', '.join(missing[:20])}"] if missing else []

    def _shaped(self, kind: str, item: Alternative, place: str, depth: int) -> tuple[Json, list[str]]:
        """An object or array; one whose content would be too deep takes anything."""
        if depth > self._profile.max_depth:
            raise _TooDeep
        try:
            return self._object(item, place, depth) if kind == "object" else self._array(item, place, depth)
        except _TooDeep:
            pass
        if self._profile.closed:
            raise NotExpressible(place, f"more than {self._profile.max_depth} levels") from None
        self._drop(place)
        if kind == "array":
            items = item.keywords.get("items")
            return {"type": "array", "items": self._any(place, depth + 1)}, [f"of {brief(items)}"] if items else []
        properties = list(item.keywords.get("properties", {}).items())
        listed = ", ".join(f"{name} ({brief(value)})" for name, value in properties[:20])
        node: Json = {"type": "object", "properties": {}} if self._profile.properties_always else {"type": "object"}
        return node, [f"holds {listed}"] if listed else []

    def _any(self, place: str, depth: int) -> Json:
        if self._profile.any_value == "refused":
            raise NotExpressible(place, "a value of any type")
        if self._profile.any_value == "open":
            return {}
        self._drop(place)
        branches: list[Json] = [{"type": kind} for kind in ("string", "number", "boolean")]
        if depth <= self._profile.max_depth:
            branches += [{"type": "object"}, {"type": "array", "items": {"type": "string"}}]
        return with_null({"anyOf": branches}, self._profile.nulls)

    def _null(self, place: str) -> Json:
        if self._profile.nulls == "type":
            return {"type": "null"}
        self._drop(place)
        return {"type": "string", "nullable": True, "description": "Always null"}

    def _definition(self, pointer: str) -> str:
        key = self._definitions.get(pointer)
        if key is None:
            stem = re.sub(r"[^A-Za-z0-9_-]+", "_", pointer.rpartition("/")[2])[:40] or "root"
            key, number = stem, 2
            while key in self._definitions.values():
                key, number = f"{stem}_{number}", number + 1
            self._definitions[pointer] = key
        return key
