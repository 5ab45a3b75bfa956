"""What each provider takes of JSON Schema, as data.

The tables say what is *taken*; whatever is not named in them is left out, said in words and enforced locally.
Where a provider's documents and what it refuses in practice differ, or where several servers speak one wire, the
narrower reading stands here: a schema that is too cautious costs little, a refused one costs the whole request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Profile:
    """What one wire takes in the declaration of a tool.

    Args:
        name: What it is called in messages.
        keywords: The constraints and annotations that are taken as they are.
        formats: The values of ``format`` that are taken.
        patterns: Which regular expressions are taken: ``any``, ``portable`` (no look-around, groups with names or
            back references), ``simple`` (anchored and without classes such as ``\\d``), or ``none``.
        references: ``$ref`` and ``$defs`` stay where a schema is recursive; else recursion is unrolled and cut.
        nulls: Null is ``"type": [..., "null"]``, or OpenAPI's ``nullable``.
        any_value: What stands for "any JSON value": ``{}``, a ``union`` of the types, or nothing (``refused``).
        enums: Enumerations of any values, or of non-empty strings alone.
        tuples: ``prefixItems`` is taken.
        maps: Keys that are not declared: ``taken`` with their schema, an ``open`` object at best, or ``refused``.
        closed: Every object is closed and all its properties are required; an optional one takes null.
        union_alone: Nothing may stand beside ``anyOf``.
        properties_always: Each object must have ``properties``, be it empty.
        no_parameters: A tool without parameters has an ``empty`` object, or they are left out (``omit``).
        property_names: What a property's name must match; empty for anything.
        max_name: Characters of a tool's name.
        max_description: Characters of a tool's description; the rest goes into that of the parameters; 0 for any.
        max_depth: Objects and arrays inside each other, the outermost one counted; at least 2.
        max_nodes: Schemas in one tool, once references are inlined.
        max_properties: Properties in one tool; 0 for any number, here and below.
        max_enum_values: Values of all enumerations of one tool.
        max_chars: Characters of all property names and enumerations of one tool.
        unroll: How often a recursive schema is inlined before it is cut.
        fallback: What a tool is fitted to that this profile can not express.
    """

    name: str
    keywords: frozenset[str]
    formats: frozenset[str]
    patterns: Literal["any", "portable", "simple", "none"]
    references: bool = False
    nulls: Literal["type", "nullable"] = "type"
    any_value: Literal["open", "union", "refused"] = "open"
    enums: Literal["any", "strings"] = "any"
    tuples: bool = False
    maps: Literal["taken", "open", "refused"] = "taken"
    closed: bool = False
    union_alone: bool = False
    properties_always: bool = True
    no_parameters: Literal["empty", "omit"] = "empty"
    property_names: str = ""
    max_name: int = 64
    max_description: int = 0
    max_depth: int = 16
    max_nodes: int = 2_000
    max_properties: int = 0
    max_enum_values: int = 0
    max_chars: int = 0
    unroll: int = 2
    fallback: Profile | None = None


_STANDARD_FORMATS = frozenset(("date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_RANGES = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_SIZES = frozenset(("minItems", "maxItems"))
_LENGTHS = frozenset(("minLength", "maxLength"))

# The wire of OpenAI, which many servers speak. Those that turn the schema into a grammar (llama.cpp, vLLM) refuse
# patterns they can not compile and some rarer keywords; the providers that do not would only read them as text.
# Arrays without items and objects without properties are refused:
# https://github.com/spring-projects/spring-ai/issues/4776
OPENAI = Profile(
    name="openai",
    keywords=_RANGES | _SIZES | _LENGTHS | {"pattern", "format", "default"},
    formats=_STANDARD_FORMATS,
    patterns="simple",
    # https://github.com/getsentry/sentry-mcp/issues/106
    max_description=1024,
)

# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
# OpenAI itself allows 10 levels and 5,000 properties by now, Azure's documents say 5 and 100, 500 enumerated values
# was the limit of both; a tool beyond them is sent without "strict", which always works.
OPENAI_STRICT = Profile(
    name="openai_strict",
    keywords=_RANGES | _SIZES | {"multipleOf", "pattern", "format"},
    formats=_STANDARD_FORMATS,
    patterns="portable",
    references=True,
    any_value="refused",
    maps="refused",
    closed=True,
    max_description=1024,
    max_depth=5,
    max_properties=100,
    max_enum_values=500,
    max_chars=15_000,
    fallback=OPENAI,
)

# Takes JSON Schema of draft 2020-12 in full, but no union at the root, no other names of properties, and the whole
# request fails with one schema that is not valid: https://github.com/decocms/studio/pull/6874,
# https://github.com/dearlordylord/huly-mcp/issues/66
ANTHROPIC = Profile(
    name="anthropic",
    keywords=_RANGES
    | _SIZES
    | _LENGTHS
    | {"multipleOf", "uniqueItems", "minProperties", "maxProperties", "pattern", "format", "default"},
    formats=_STANDARD_FORMATS | {"uri", "uri-reference", "json-pointer"},
    patterns="portable",
    tuples=True,
    property_names=r"[a-zA-Z0-9_.-]{1,64}",
)

# The ``parameters`` of a function declaration: a subset of OpenAPI 3.0 that refuses each name it does not know,
# enumerations of anything but non-empty strings, arrays without items, objects at the root without properties:
# https://ai.google.dev/api/caching#Schema, https://github.com/agno-agi/agno/issues/2112,
# https://github.com/diegosouzapw/OmniRoute/pull/760, https://github.com/anomalyco/opencode/pull/46676
# Its limit of depth is not documented; schemas of 4 to 6 levels were refused:
# https://github.com/google-gemini/gemini-cli/issues/5923
GEMINI = Profile(
    name="gemini",
    keywords=_SIZES | {"minimum", "maximum", "format"},
    formats=frozenset(("date-time", "int32", "int64", "float", "double")),
    patterns="none",
    nulls="nullable",
    any_value="union",
    enums="strings",
    maps="open",
    union_alone=True,
    properties_always=False,
    no_parameters="omit",
    property_names=r"[a-zA-Z_$][a-zA-Z0-9_$.-]{0,63}",
    max_depth=5,
)

_NAMED = {profile.name: profile for profile in (OPENAI, OPENAI_STRICT, ANTHROPIC, GEMINI)}


def profile_named(name: str) -> Profile:
    """Return a profile by its name.

    Args:
        name: ``openai``, ``openai_strict``, ``anthropic`` or ``gemini``.

    Raises:
        ValueError: There is no such profile.
    """
    try:
        return _NAMED[name]
    except KeyError:
        raise ValueError(f"there is no schema profile {name!r}; there are {', '.join(_NAMED)}") from None
