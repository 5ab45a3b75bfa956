"""One action of ReAct text into a tool's name and its arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..arguments import MAX_ARGUMENT_CHARS, mend_arguments, parse_arguments, read_json_at
from ..errors import InvalidToolArguments
from ..messages import Repair
from ..models.ingest.fit import as_text, fit_arguments, text_to_value
from ..models.ingest.names import KnownTools, cut_name
from .react_keys import Keys

_NONE = re.compile(
    r"[\s*_`\"'(\[]*(?:none|null|nil|no[ _-]+(?:action|tool)s?|not[ _]+(?:needed|required|applicable)|n/?a|nothing|-+"
    r"|keine?|ningun[oa]?|ninguna|aucune?|nessun[oa]?|geen|nenhuma?)(?![\w/])",
    re.IGNORECASE,
)
_AROUND = " \t\r*_`\"'“”‘’[]<>"
_BARE_NAME = re.compile(r"[^\s(){}\[\]\"'`*,;<>=]{1,200}\Z")
_CALL = re.compile(r"[*_`\"'\[<]*(?P<name>[^\s(){}\[\]\"'`*,;<>=]{1,200})[*_`\"'\]>]*[ \t]*[:,]?[ \t]*(?P<open>[({\[])")
_INLINE_INPUT = re.compile(r"[ \t,;|.*_]*\baction[ _]?inputs?\b[ \t*_]*[:：]", re.IGNORECASE)
_FIRST_WORD = re.compile(r"[*_`\"'\[<]*(?P<name>[^\s(){}\[\]\"'`*,;<>=]{1,200})[*_`\"'\]>]*[.:]?[ \t]+[^\s,;]")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)[ \t]*[A-Za-z_]*[ \t]*(?:\n|(?=[{\[\"']))")
_FENCE_END = re.compile(r"\n?[ \t]*(?:```|~~~)")
_NOTHING = re.compile(r"[\s`*]*(?:none|null|n/?a|no input|not needed|empty|-|\(\)|\"\"|'')?[\s`.*]*\Z", re.IGNORECASE)
_KEYWORD = re.compile(r"\s*[\"'`]?([^\W\d]\w{0,100})[\"'`]?\s*(?:=(?!=)|:)\s*")
_NAMES = ("action", "tool", "tool_name", "name", "function")
_INPUTS = ("action_input", "tool_input", "arguments", "args", "parameters", "input")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Action:
    """A call that a text asks for.

    Args:
        name: The declared name, or what was written where there is none.
        arguments: JSON text, or what was written where it can not be read.
        repairs: What was mended.
    """

    name: str
    arguments: str
    repairs: tuple[Repair, ...] = ()


def is_none(value: str, tools: KnownTools) -> bool:
    """Return whether an action says that there is none.

    Args:
        value: What stands behind the key.
        tools: What was offered: a tool may be called so.
    """
    if _NONE.match(value) is None or tools.resolve(value.strip(_AROUND)) is not None:
        return False
    name = tool_of(value, tools)
    return name is None or tools.resolve(name) is None


def tool_of(value: str, tools: KnownTools) -> str | None:
    """Return the name in an action's value, declared or not; None where there is none that could be one.

    Args:
        value: What stands behind the key, perhaps with arguments behind the name.
        tools: What was offered.
    """
    value = value.strip()
    if value.startswith(("{", "```", "~~~")):
        return value[:1]  # an object or a block of code holds it
    inline = _INLINE_INPUT.search(value)
    if inline is not None and inline.start():
        value = value[: inline.start()]
    whole = value.strip(_AROUND).rstrip(".:;,")
    if tools.resolve(whole) is not None or _BARE_NAME.match(whole):
        return whole
    called = _CALL.match(value)
    if called is not None:
        return called["name"].rstrip(":.")
    first = _FIRST_WORD.match(value)
    if first is None or tools.resolve(name := first["name"].rstrip(".:")) is None:
        return None
    others = (tools.resolve(word.strip(_AROUND).rstrip(".:;,")) for word in value.split()[1:])
    return name if all(other is None for other in others) else None


def read_action(block: str, tools: KnownTools, keys: Keys, *, blob: bool = False) -> Action | str | None:
    """Return what an action asks for: a call, an answer, or nothing that can be read.

    Args:
        block: What stands behind the key, and the lines below it.
        tools: What was offered.
        keys: The key words.
        blob: The text has no key: it counts only if it is one object that names a declared tool or the answer.
    """
    block = block.strip()
    if len(block) > MAX_ARGUMENT_CHARS:
        return None
    fence = _FENCE.match(block)
    body = block[fence.end() :] if fence is not None else block
    if body.lstrip().startswith("{"):
        return _from_object(body.lstrip(), tools, keys, blob=blob)
    if blob:
        return None
    first, _, below = body.partition("\n")
    if fence is not None and (end := _FENCE_END.search(first)) is not None:
        first = first[: end.start()]
    inline = _INLINE_INPUT.search(first)
    if inline is not None and inline.start():
        below = f"Action Input:{first[inline.end() :]}\n{below}"
        first = first[: inline.start()]
    name = tool_of(first, tools)
    if name is None:
        return None
    given = _written_input(below, keys)
    whole = first.strip(_AROUND).rstrip(".:;,")
    called = None if tools.resolve(whole) is not None or _BARE_NAME.match(whole) else _CALL.match(first)
    if called is not None and (given is None or not given.strip()):
        text = block[block.index(first) + called.start("open") :] if first in block else first[called.start("open") :]
        given = _in_brackets(text) if called["open"] != "{" else text
        if tools.resolve(name) is None and keys.is_final(name) and given.strip():
            return given.strip().strip("\"'")
    return _made(name, given, tools, keys)


def _from_object(text: str, tools: KnownTools, keys: Keys, *, blob: bool) -> Action | str | None:
    """An action that is one object with the name and the input."""
    value, end = read_json_at(text, 0)
    if type(value) is not dict:
        try:
            value, _ = mend_arguments(_balanced(text))
        except InvalidToolArguments:
            return None
        end = len(text)
    if blob and text[end:].strip().strip("`").strip():
        return None
    name: str | None = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    key = next((key for key in _INPUTS if key in value), None)
    if name is None or (blob and (key is None or len(value) > 3)):
        return None
    given = value.get(key) if key is not None else None
    if tools.resolve(name) is None:
        if keys.is_final(name) and given is not None:
            return str(given).strip() if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        if blob:
            return None
    written = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
    return _made(name, written, tools, keys)


def _written_input(below: str, keys: Keys) -> str | None:
    """What stands below an action as its input; None where nothing does."""
    lines = below.split("\n")
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        key = keys.below_action(line)
        if key is not None and key.kind == "input" and not key.foreign:
            return "\n".join((key.rest, *lines[place + 1 :]))
        if key is None and line.lstrip().startswith(("{", "```", "~~~")):
            return "\n".join(lines[place:])
        if key is not None and key.kind in ("observation", "final", "action"):
            return None
    return None


def _made(name: str, given: str | None, tools: KnownTools, keys: Keys) -> Action:
    repairs: list[Repair] = []
    known = tools.resolve(name)
    if known is None:
        known = cut_name(name) or name
    elif known != name:
        repairs.append(Repair("name", "the name was read as that of a declared tool"))
    arguments, more = _read_input(given, tools.parameters(known), keys)
    return Action(known, arguments, (*repairs, *more))


def _read_input(given: str | None, schema: Any, keys: Keys) -> tuple[str, tuple[Repair, ...]]:
    """An action's input as JSON text; what can not be read stays as it was written, for the tool to refuse."""
    if given is None or _NOTHING.match(given):
        return "{}", (Repair("arguments", "missing arguments were read as none"),)
    text = given.strip()
    if text[:4].lower() == "json" and text[4:].lstrip().startswith("{"):
        text = text[4:].lstrip()
    fence = _FENCE.match(text)
    if fence is not None:
        end = _FENCE_END.search(text, fence.end())
        inside = text[fence.end() : end.start() if end is not None else len(text)].strip()
        value, _ = read_json_at(text[fence.end() :].lstrip(), 0)
        text = text[fence.end() :].lstrip() if type(value) is dict else inside
    if text.startswith(("{", "[")):
        return _read_object(text, schema, keys)
    text = _until_key(text, keys).strip()
    if text.startswith('"'):
        try:  # an object in a string
            return _fitted(*mend_arguments(text), schema)
        except InvalidToolArguments:
            pass
    return _read_bare(text.removeprefix("`").removesuffix("`") if text.count("`") == 2 else text, schema)


def _read_object(text: str, schema: Any, keys: Keys) -> tuple[str, tuple[Repair, ...]]:
    value, end = read_json_at(text, 0)
    if type(value) is dict and not text[end:].lstrip().startswith("{"):
        return _mended(text[:end], schema)
    if value is None:
        whole = _until_key(text, keys).strip()
        for piece in dict.fromkeys((_balanced(text), whole)):
            try:
                return _fitted(*mend_arguments(piece), schema)
            except InvalidToolArguments:
                continue
        return whole, ()
    return _mended(_until_key(text, keys).strip(), schema)


def _mended(text: str, schema: Any) -> tuple[str, tuple[Repair, ...]]:
    try:
        return _fitted(*mend_arguments(text), schema, text)
    except InvalidToolArguments:
        return text, ()


def _fitted(
    parsed: dict[str, Any], repairs: tuple[Repair, ...], schema: Any, text: str | None = None
) -> tuple[str, tuple[Repair, ...]]:
    fitted, notes = fit_arguments(parsed, schema)
    if text is not None and not repairs and not notes:
        return text, ()
    return as_text(fitted), (*repairs, *(Repair("arguments", note) for note in notes))


def _read_bare(text: str, schema: Any) -> tuple[str, tuple[Repair, ...]]:
    """Arguments that are no object: by keywords, or the value of the only parameter."""
    keyworded = _by_keywords(text)
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if keyworded is not None and isinstance(properties, Mapping) and keyworded.keys() <= properties.keys():
        return _fitted(keyworded, (Repair("arguments", "keyword arguments were read as an object"),), schema)
    name = _only_parameter(schema)
    if name is None:
        return text, ()
    bare = text
    if (
        len(bare) > 1
        and bare[0] == bare[-1]
        and bare[0] in "\"'"
        and bare[0] not in bare[1:-1].replace("\\" + bare[0], "")
    ):
        if bare[0] == '"':
            try:
                bare = parse_arguments(f'{{"v":{bare}}}')["v"]
            except InvalidToolArguments:
                bare = bare[1:-1]
        else:
            bare = bare[1:-1]
    note = Repair("arguments", f"bare text was read as {name}")
    return as_text({name: text_to_value(bare, schema, name)}), (note,)


def _only_parameter(schema: Any) -> str | None:
    """The parameter that bare text can only mean: the only one there is, or the only required one if it is a text."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return None
    if len(properties) == 1:
        name, about = next(iter(properties.items()))
        kind = about.get("type") if isinstance(about, Mapping) else None
        return str(name) if kind in ("string", "integer", "number", "boolean") else None
    texts: list[str] = [
        name for name, about in properties.items() if isinstance(about, Mapping) and about.get("type") == "string"
    ]
    required = schema.get("required")
    if len(texts) == 1 and isinstance(required, (list, tuple)) and list(required) == texts:
        return texts[0]
    return None


def _by_keywords(text: str) -> dict[str, Any] | None:
    """The arguments of ``name="value", other: 3``; None where it is something else."""
    pieces: list[str] = []
    place = 0
    while place < len(text):
        head = _KEYWORD.match(text, place)
        if head is None:
            return None
        end = _end_of_value(text, head.end())
        value = text[head.end() : end].strip()
        if not value:
            return None
        pieces.append(f"{json.dumps(head[1])}: {value}")
        place = end + 1
    try:
        return mend_arguments("{" + ", ".join(pieces) + "}")[0] if pieces else None
    except InvalidToolArguments:
        return None


def _end_of_value(text: str, place: int) -> int:
    """Where the comma behind a value stands, or the end of the text."""
    depth = 0
    while place < len(text):
        letter = text[place]
        if letter in "\"'":
            place = _end_of_string(text, place)
            continue
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            return place
        place += 1
    return place


def _end_of_string(text: str, place: int) -> int:
    quote = text[place]
    at = place + 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == quote:
            return at + 1
        else:
            at += 1
    return place + 1  # it has no end, so it is no string


def _in_brackets(text: str) -> str:
    """What stands in the brackets that a text begins with."""
    return _balanced(text)[1:-1] if len(_balanced(text)) > 1 else text[1:]


def _balanced(text: str) -> str:
    """The text up to the bracket that closes its first one; all of it where none does."""
    closing: list[str] = []
    place = 0
    while place < len(text):
        letter = text[place]
        if letter in "\"'" and (letter == '"' or not (place and text[place - 1].isalnum())):
            place = _end_of_string(text, place)
            continue
        if letter in _CLOSING:
            closing.append(_CLOSING[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
            if not closing:
                return text[: place + 1]
        place += 1
    return text


def _until_key(text: str, keys: Keys) -> str:
    """The text up to the next line with a key word."""
    lines = text.split("\n")
    for place, line in enumerate(lines[1:], 1):
        key = keys.key(line)
        if key is not None and key.kind != "answer":
            return "\n".join(lines[:place])
    return text
