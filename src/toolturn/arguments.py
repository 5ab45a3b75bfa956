"""A model's argument text into an object, strictly or with mends.

What is refused here is refused for safety: a check and the code that runs must read the same values, so
duplicate keys, NaN and unbounded numbers are no arguments. The text of each error is short, names the place,
and never repeats what the model wrote.

Only what has one possible meaning is mended, and text is never replaced by an empty object. Everything here takes
time in proportion to the length of the text, whatever the text is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import ValidationError

from .errors import InvalidToolArguments
from .messages import Repair, ToolCall

MAX_ARGUMENT_CHARS = 1_000_000
MAX_DEPTH = 64
_MAX_FAULTS = 20
_MAX_NAME = 60
_MAX_PLACE = 120
_MAX_MESSAGE = 160


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidToolArguments("arguments must not repeat a key")
    return made


def _constant(name: str) -> NoReturn:
    raise InvalidToolArguments("arguments must not contain NaN or Infinity")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidToolArguments("arguments contain a number that is too large")
    return value


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_scan: Any = _decoder.scan_once  # type: ignore[attr-defined]
# Possessive, and a string that never ends is one token: nothing is looked at twice.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_brackets = re.compile(_STRING + r"|[{}\[\]]", re.DOTALL)


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the object that the argument text of a call holds.

    Args:
        text: JSON text as a model wrote it.

    Returns:
        The object, read once; what is checked is what runs.

    Raises:
        InvalidToolArguments: It is no JSON object, repeats a key, holds NaN, Infinity, a lone surrogate or a
            number beyond reason, nests deeper than 64 levels or is longer than a million characters.
    """
    if not isinstance(text, str):
        raise InvalidToolArguments("arguments must be JSON text")
    if len(text) > MAX_ARGUMENT_CHARS:
        raise InvalidToolArguments(f"arguments must not be longer than {MAX_ARGUMENT_CHARS:,} characters")
    # Counting is far cheaper than scanning, and only deep or large arguments have so many brackets.
    if len(text) > MAX_DEPTH and text.count("{") + text.count("[") > MAX_DEPTH and _too_deep(text):
        raise InvalidToolArguments(f"arguments must not be nested deeper than {MAX_DEPTH} levels")
    try:
        # a bare object is by far the most usual, and the scanner alone reads it in half the time
        value: Any = None
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1
        if end != len(text):
            value = _decoder.decode(text)  # knows blanks around, and where a fault is
    except json.JSONDecodeError as exc:
        raise InvalidToolArguments(_place_of(exc)) from None
    except InvalidToolArguments:
        raise
    except ValueError:  # the interpreter's bound on the digits of an integer
        raise InvalidToolArguments("arguments contain a number with too many digits") from None
    except RecursionError:
        raise InvalidToolArguments("arguments are nested too deeply") from None
    if type(value) is not dict:
        raise InvalidToolArguments("arguments must be a JSON object")
    if not text.isascii() or "\\u" in text:
        _refuse_surrogates(value)
    return value


def _place_of(exc: json.JSONDecodeError) -> str:
    text = f"arguments must be valid JSON: {exc.msg.removesuffix(' at')} at line {exc.lineno} column {exc.colno}"
    length = len(exc.doc.rstrip())
    if length and (exc.pos >= length or exc.msg.startswith("Unterminated string")):
        return f"{text}; the text seems to be cut off"
    if exc.msg == "Extra data":
        return f"{text}; a call takes one object and nothing beside it"
    return text


def _too_deep(text: str) -> bool:
    """Whether brackets outside strings nest deeper than is allowed."""
    depth = 0
    for found in _brackets.finditer(text):
        token = found[0]
        if token in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token in "}]":
            depth -= 1
    return False


def _refuse_surrogates(value: Any) -> None:
    """Refuse text that no encoder takes: it would fail later, inside a tool or a result."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidToolArguments("arguments contain half of a surrogate pair, which is no text") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_surrogates(key)
            _refuse_surrogates(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)


# --- what was parsed at the edge -----------------------------------------------------------

_keep = ToolCall._parsed.__set__  # type: ignore[union-attr]


def keep_arguments(call: ToolCall, parsed: dict[str, Any]) -> None:
    """Leave the parsed arguments in a call, so that they are not parsed again.

    Args:
        call: The call.
        parsed: What its argument text holds; whoever takes it owns it.
    """
    _keep(call, parsed)


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the object that a call's argument text holds, parsed only if nobody has done so.

    A kept object is handed out once, since whoever has it may change it.

    Args:
        call: The call.

    Raises:
        InvalidToolArguments: As of :func:`parse_arguments`.
    """
    parsed: dict[str, Any] | None = getattr(call, "_parsed", None)
    if parsed is None:
        return parse_arguments(call.arguments)
    _keep(call, None)
    return parsed


# --- mends ---------------------------------------------------------------------------------

MAX_LAYERS = 3
_MAX_LITERAL_CHARS = 100_000
_MAX_COPIES = 100
_NOTHING: Any = object()  # stands for text that can not be read in this way
_tolerant = json.JSONDecoder(strict=False, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_blanks = re.compile(r"[ \t\n\r]*")
_opened_fence = re.compile(r"```[A-Za-z0-9_+-]*\s*")
_commas = re.compile(_STRING + r"|[{\[,]\s*+,|,(?=\s*+[}\]])", re.DOTALL)
# Patterns that only a mend needs are compiled by the first one.
_LITERAL = (
    r"\s++|'''(?P<a>.*?)'''|\"\"\"(?P<b>.*?)\"\"\"|'(?P<c>[^']*+)'|\"(?P<d>[^\"]*+)\"|[\[\]{}():,]"
    r"|(?P<word>True|False|None)\b|-?[0-9][0-9.eE+-]*+"
)
_PAIRS = "[\ud800-\udbff][\udc00-\udfff]"
_HALVES = "[\ud800-\udfff]+"
_WORDS = {"True": "true", "False": "false", "None": "null"}


def mend_arguments(value: object) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Return the object that a call's arguments hold, with what a model got wrong mended where it has one meaning.

    Strict JSON is tried first. Then, in this order: control characters in strings, one fenced object, commas before
    a closing bracket, a Python literal without backslashes, copies of one object glued together. Blank text and null
    are an empty object; a JSON string is decoded again, three times at most; half a surrogate pair becomes U+FFFD.

    Args:
        value: Text as a model wrote it; None and mappings are taken too.

    Returns:
        The object, and one repair for each mend.

    Raises:
        InvalidToolArguments: There is no object in it, or there are several different ones; a key is repeated, a
            number is none or beyond reason, it is too long or too deep. The text holds no value of it.
    """
    if isinstance(value, str):
        text = value if type(value) is str else str.__str__(value)
    elif value is None:
        return {}, (Repair("arguments", "missing arguments were read as none"),)
    elif isinstance(value, Mapping):
        text = _text_of_mapping(value)
    else:
        raise InvalidToolArguments("arguments must be a JSON object")
    try:
        return parse_arguments(text), ()
    except InvalidToolArguments as exc:
        strict = exc
    notes: list[str] = []
    found = _unwrapped(text, notes)
    if found is _NOTHING:
        raise strict
    if found is None:
        notes.append("null was read as no arguments")
        found = {}
    if type(found) is not dict:
        raise InvalidToolArguments("arguments must be a JSON object")
    well = _with_whole_characters(found)
    if well is not found:
        notes.append("half a surrogate pair was replaced by U+FFFD")
    return well, tuple(Repair("arguments", note) for note in notes)


def _text_of_mapping(value: Mapping[Any, Any]) -> str:
    try:
        return json.dumps(value if type(value) is dict else dict(value), ensure_ascii=False, allow_nan=False)
    except Exception:  # noqa: BLE001 - a foreign mapping may fail in any way
        raise InvalidToolArguments("arguments must hold nothing but JSON's own types") from None


def _unwrapped(text: str, notes: list[str]) -> Any:
    """What the text holds, strings in it decoded again; ``_NOTHING`` where that can not be read."""
    for layer in range(MAX_LAYERS + 1):
        if layer:
            notes.append("a JSON string was decoded again")
        if not text.strip():
            notes.append("blank arguments were read as none")
            return {}
        found = _read(text, notes)
        if type(found) is not str:
            return found
        text = found
    return _NOTHING


def _read(text: str, notes: list[str], *, fenced: bool = False) -> Any:
    _refuse_too_much(text)
    found = _decode(text, _decoder)
    if found is not _NOTHING:
        return found
    if (found := _decode(text, _tolerant)) is not _NOTHING:
        notes.append("control characters in a string were accepted")
        return found
    if not fenced and (body := _fenced(text)) is not None:
        # what stands beside a fence has no meaning of its own, so that nothing else can be in the text
        if (found := _read(body, notes, fenced=True)) is not _NOTHING:
            notes.append("a fenced object was taken out of its fence")
        return found
    without = _without_commas(text)
    if without != text and (found := _decode(without, _tolerant)) is not _NOTHING:
        notes.append("a comma before a closing bracket was removed")
        return found
    if (plain := _from_literal(text)) is not None:
        _refuse_too_much(plain)
        if (found := _decode(plain, _decoder)) is not _NOTHING:
            notes.append("a Python literal was read as JSON")
            return found
    return _copies(text, notes)


def _refuse_too_much(text: str) -> None:
    if len(text) > MAX_ARGUMENT_CHARS:
        raise InvalidToolArguments(f"arguments must not be longer than {MAX_ARGUMENT_CHARS:,} characters")
    if text.count("{") + text.count("[") > MAX_DEPTH and _too_deep(text):
        raise InvalidToolArguments(f"arguments must not be nested deeper than {MAX_DEPTH} levels")


def _decode(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError:
        return _NOTHING
    except InvalidToolArguments:
        raise
    except ValueError:  # the interpreter's bound on the digits of an integer
        raise InvalidToolArguments("arguments contain a number with too many digits") from None
    except RecursionError:
        raise InvalidToolArguments("arguments are nested too deeply") from None


def _fenced(text: str) -> str | None:
    """What stands in the only fence of a text, if no brackets or quotes stand around it; it may lack its end."""
    opened = _opened_fence.search(text)
    if opened is None:
        return None
    end = text.rfind("```")
    if end < opened.end():
        end = len(text)
    around = text[: opened.start()] + text[end:]
    if any(mark in around for mark in '{["'):
        return None
    return text[opened.end() : end]


def _without_commas(text: str) -> str:
    return _commas.sub(lambda found: "" if found[0] == "," else found[0], text)


def _from_literal(text: str) -> str | None:
    """A Python literal as JSON text; None where it is none, or holds a backslash, which means something else there."""
    if len(text) > _MAX_LITERAL_CHARS or "\\" in text:
        return None
    token_at = re.compile(_LITERAL, re.DOTALL).match
    pieces: list[str] = []
    tuples: list[bool | None] = []  # for each open bracket: whether a comma has made a tuple of it; None: no round one
    place, length, previous = 0, len(text), ""
    while place < length:
        found = token_at(text, place)
        if found is None:
            return None
        place = found.end()
        token = found[0]
        if (kind := found.lastgroup) == "word":
            token = _WORDS[token]
        elif kind is not None:
            token = json.dumps(found[kind], ensure_ascii=False)
        elif token in "([{":
            tuples.append(False if token == "(" else None)
            token = "[" if token == "(" else token
        elif token in ")]}":
            made = tuples.pop() if tuples else None
            if token == ")":
                if not made and previous != "(":  # brackets around a value alone
                    return None
                token = "]"
        elif token == "," and tuples and tuples[-1] is False:
            tuples[-1] = True
        pieces.append(token)
        previous = found[0] if found[0].strip() else previous
    return _without_commas("".join(pieces))


def _copies(text: str, notes: list[str]) -> Any:
    """The object of which the text is nothing but copies.

    Raises:
        InvalidToolArguments: It is several objects that differ.
    """
    text = text.strip()
    first, end = read_json_at(text, 0)
    if type(first) is not dict:
        return _NOTHING
    piece, same = text[:end], None
    copies = 1
    while end < len(text):
        copies += 1
        if copies > _MAX_COPIES:  # whoever repeats himself that often has lost his way
            return _NOTHING
        end = _blanks.match(text, end).end()  # type: ignore[union-attr]
        if text.startswith(piece, end):
            end += len(piece)
            continue
        other, end = read_json_at(text, end)
        if type(other) is not dict:
            return _NOTHING
        # not ==, for which 1, 1.0 and true are the same
        same = same or json.dumps(first, sort_keys=True)
        if json.dumps(other, sort_keys=True) != same:
            raise InvalidToolArguments("arguments are several different objects; make one call for each")
    notes.append("copies of one object were read as one")
    return first


def read_json_at(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON object or array that begins at a place in a text, and where it ends.

    Args:
        text: The text.
        place: Where the bracket stands.

    Returns:
        None and the place itself where nothing can be read there.
    """
    if not text.startswith(("{", "["), place):
        return None, place
    try:
        return _tolerant.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place


def _with_whole_characters(value: Any) -> Any:
    """The value with U+FFFD for each half of a surrogate pair; the same object where there is none."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _replaced(value)
    return value


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return _object([(_replaced(key), _replaced(item)) for key, item in value.items()])
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    return value


def whole_characters(text: str) -> str:
    """Return the text with U+FFFD for each half of a surrogate pair, which no encoder takes.

    Args:
        text: Any text; the same object is returned where there is none in it.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # two halves that stand side by side are a character
        whole = re.sub(_PAIRS, lambda found: found[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
        return re.sub(_HALVES, lambda found: "\ufffd" * len(found[0]), whole)
    return text


# --- what a validator found ------------------------------------------------------------------


def describe_faults(exc: ValidationError) -> str:
    """Return what a model has to know to mend its arguments.

    Args:
        exc: What pydantic found.

    Returns:
        ``field: what is wrong`` for each fault, the declared fields first; the values themselves are left out.
    """
    faults = exc.errors(include_url=False, include_input=False)
    # Keys the model made up must not crowd out the fields it has to mend.
    faults.sort(key=lambda fault: fault["type"] == "extra_forbidden")
    lines = []
    for fault in faults[:_MAX_FAULTS]:
        place = ".".join(_short(str(step), _MAX_NAME) for step in fault["loc"]) or "arguments"
        message = fault["msg"]
        if fault["type"] == "union_tag_invalid":  # the only message of pydantic's own that repeats what was written
            known = fault["ctx"]
            message = f"{known['discriminator']} must be one of {known['expected_tags']}"
        lines.append(f"{_short(place, _MAX_PLACE)}: {_short(message, _MAX_MESSAGE)}")
    if len(faults) > _MAX_FAULTS:
        lines.append(f"and {len(faults) - _MAX_FAULTS} more")
    return "; ".join(lines)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
