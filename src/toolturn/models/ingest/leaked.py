"""Calls that a model or its server wrote into the text: found by their markup, or as JSON that is nothing else.

A call is lifted only when its tool is declared and its arguments are an object; of several calls all are, or none.
JSON is read by a real decoder from where it begins: an end tag may stand in one of its strings. The first thing that
can not be read ends the search, so that the time taken is in proportion to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ...arguments import MAX_ARGUMENT_CHARS, mend_arguments, read_json_at
from ...errors import InvalidToolArguments
from ...messages import ToolCall
from .content import is_quoted
from .fit import as_text, text_to_value
from .names import KnownTools, cut_name

_BAR = r"[|｜]{1,2}"
_SPACE = "[▁_ ]"
_DSML = rf"(?:antml:|{_BAR}DSML{_BAR})?"

_LAST = r"<\|(?:eom_id|eot_id|im_end|end_of_text|endoftext|end)\|>|<｜end▁of▁sentence｜>|</s>"

# What begins a call, and what only stands around calls.
_MARK = re.compile(
    r"(?P<json><tool_call>|<\|tool_call\|>|<function_?call>|<tool_calls>|\[TOOL_CALLS\]|<\|python_tag\|>|<tools?>)"
    r"|<function=(?P<function>[^>\n]{1,200})>"
    rf"|<(?P<prefix>{_DSML})invoke\s+name=\"(?P<invoke>[^\"\n]{{1,200}})\"\s*>"
    rf"|<{_BAR}tool{_SPACE}call{_SPACE}begin{_BAR}>"
    rf"|(?P<around><{_BAR}tool{_SPACE}calls{_SPACE}begin{_BAR}>|<\|tool_calls_section_begin\|>"
    rf"|<{_DSML}(?:function_calls|tool_calls)>)"
)
_WASTE = re.compile(
    r"</?tool_calls?>|</?function_?calls?>|</?tools?>|</function>|<\|/?tool_call\|>|\[/?TOOL_CALLS\]|<\|python_tag\|>"
    rf"|</?{_DSML}(?:function_calls|tool_calls)>|</{_DSML}invoke>"
    rf"|<{_BAR}tool{_SPACE}calls?{_SPACE}(?:begin|end){_BAR}>|<\|tool_calls?_(?:section_)?(?:begin|end)\|>"
    rf"|{_LAST}"
)
_OPENED_FENCE = re.compile(r"\s*```[a-z_]*\s*")
_CLOSED_FENCE = re.compile(r"\s*```")
_BLANKS = re.compile(r"[\s;,]*")
_MISTRAL = re.compile(r"\s*([\w.:-]{1,200})\s*(?:\[CALL_ID\]\s*([\w-]{1,100})\s*)?(?:\[ARGS\])?\s*(?=\{)")
_GLM = re.compile(r"\s*([\w.:-]{1,200})\s*(?=<arg_key>|</tool_call>)")
_GLM_END = re.compile(r"\s*</tool_call>")
_GLM_ARGUMENT = re.compile(r"\s*<arg_key>([^<]{1,200})</arg_key>\s*<arg_value>")
_DEEPSEEK = re.compile(
    rf"(?:\s*function\s*<{_BAR}tool{_SPACE}sep{_BAR}>)?\s*([^\s<{{]{{1,200}})\s*(?:<{_BAR}tool{_SPACE}sep{_BAR}>)?"
)
_KIMI = re.compile(r"\s*([^\s<{]{1,200}?)(?::\d+)?\s*<\|tool_call_argument_begin\|>")
_PARAMETER = re.compile(
    rf"\s*<(?:parameter=(?P<qwen>[^>\n]{{1,200}})"
    rf"|{_DSML}parameter\s+name=\"(?P<name>[^\"\n]{{1,200}})\"(?:\s+string=\"(?P<string>true|false)\")?\s*)>"
)
# The value ends where markup goes on: its own text may hold an end tag.
_PARAMETER_END = re.compile(
    rf"</{_DSML}parameter>(?=\s*(?:<parameter=|<{_DSML}parameter\s|</function>|</{_DSML}invoke>))"
)
_CALL_END = re.compile(rf"\s*(?:</function>|</{_DSML}invoke>)")
_ANSWER_FENCE = re.compile(r"```(?:json|tool_call|tool_calls|tool_code)?[ \t]*\n?")
_LAST_TOKEN = re.compile(rf"(?:{_LAST})\Z")
_EMPTY_FENCE = re.compile(r"```[a-z_]*\s*+(?:```)?\s*+\Z")
_MAX_NESTED = 2
_CALL_KEYS = {"name", "arguments", "parameters", "args", "type", "id", "function", "tool_calls"}


@dataclass(slots=True)
class _Found:
    """Calls as they are found.

    Args:
        tools: The declared tools.
        calls: The calls so far; an id is None where there is none.
    """

    tools: KnownTools
    calls: list[ToolCall] = field(default_factory=list)

    def add(self, name: Any, arguments: Any, call_id: str | None = None) -> bool:
        """Take a call, or say that it is none."""
        if not isinstance(name, str) or (known := self.tools.resolve(name)) is None:
            return False
        try:
            parsed, _ = mend_arguments(arguments)
        except InvalidToolArguments:
            return False
        absent: Any = call_id
        self.calls.append(ToolCall(absent, known, as_text(parsed)))
        return True


def lift_calls(text: str, tools: KnownTools) -> tuple[list[ToolCall], str] | None:
    """Return the calls that stand in a text and what else stands in it; None where there are none.

    Args:
        text: The text of a reply, without what the model thought.
        tools: The declared tools.
    """
    if not tools.by_name or len(text) > MAX_ARGUMENT_CHARS:
        return None
    # first what is JSON alone, since markup may stand in its strings
    return _json_alone(text, tools) or (_marked(text, tools) if _MARK.search(text) else None)


class _AnyTool(KnownTools):
    """Knows each name: for what is only cut out and never run."""

    def resolve(self, name: str) -> str | None:
        return cut_name(name) or None


def cut_calls(text: str) -> str | None:
    """Return what a text says beside marked calls, of a reply for which no tools were offered.

    Such calls can not be meant for anybody. What stands in a block of code is left alone: it is an example.

    Args:
        text: The text of a reply, without what the model thought.

    Returns:
        The rest; None where there is no call that can be read, or where nothing else is said.
    """
    if len(text) > MAX_ARGUMENT_CHARS or "```" in text or not _MARK.search(text):
        return None
    found = _marked(text, _AnyTool(()))
    return None if found is None else found[1] or None


def begins_with_markup(text: str) -> bool:
    """Return whether a text begins as a call does, so that it is no answer.

    Args:
        text: The text of a reply.
    """
    return _MARK.match(text.lstrip()) is not None


def _marked(text: str, tools: KnownTools) -> tuple[list[ToolCall], str] | None:
    found = _Found(tools)
    rest: list[str] = []
    place = 0
    while mark := _MARK.search(text, place):
        start, end = mark.span()
        if is_quoted(text, start):
            return None  # quoted in a sentence about it
        rest.append(text[place:start])
        after = _one(text, mark, end, found)
        if after is None:
            return None
        place = after
    if not found.calls:
        return None
    tail = text[place:]
    left = _WASTE.sub("", "".join(rest) + tail)
    if rest[0].count("```") % 2:  # in a block of code: it is a call only if the reply ends with it
        if _WASTE.sub("", tail).strip() not in ("", "```"):
            return None
        left = _EMPTY_FENCE.sub("", left)
    return found.calls, left.strip()


def _one(text: str, mark: re.Match[str], place: int, found: _Found) -> int | None:
    """Read what begins at a mark and return where it ends, or None where it can not be read."""
    if mark["around"]:
        return place
    if mark["json"]:
        return _json_body(text, place, found)
    if mark["function"] is not None:
        return _parameters(text, place, mark["function"].strip(), found)
    if mark["invoke"] is not None:
        return _parameters(text, place, mark["invoke"].strip(), found)
    head = _KIMI.match(text, place) or _DEEPSEEK.match(text, place)
    return None if head is None else _named_json(text, head.end(), head[1], None, found)


def _json_body(text: str, place: int, found: _Found) -> int | None:
    if (fence := _OPENED_FENCE.match(text, place)) is not None:
        place = fence.end()
    place = _BLANKS.match(text, place).end()  # type: ignore[union-attr]
    if text.startswith(("<", "[TOOL_CALLS]"), place):
        return place  # this one only stood around others, or around nothing
    if not text.startswith(("{", "["), place):
        if (head := _GLM.match(text, place)) is not None:
            return _glm(text, head, found)
        head = _MISTRAL.match(text, place)
        return None if head is None else _named_json(text, head.end(), head[1], head[2], found)
    while text.startswith(("{", "["), place) and not text.startswith("[TOOL_CALLS]", place):
        value, end = read_json_at(text, place)
        if value is None:
            value, end = _by_end_tag(text, place)
        if value is None or not _take_json(value, found, marked=True):
            return None
        place = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
    if (fence := _CLOSED_FENCE.match(text, place)) is not None:
        place = fence.end()
    return place


def _by_end_tag(text: str, place: int) -> tuple[Any, int]:
    """What is no JSON but can be mended, up to the end tag."""
    end = text.find("</tool_call>", place)
    end = len(text) if end < 0 else end
    try:
        value, _ = mend_arguments(text[place:end].strip())
    except InvalidToolArguments:
        return None, place
    return value, end


def _named_json(text: str, place: int, name: str, call_id: str | None, found: _Found) -> int | None:
    if (fence := _OPENED_FENCE.match(text, place)) is not None:
        place = fence.end()
    place = _BLANKS.match(text, place).end()  # type: ignore[union-attr]
    value, end = read_json_at(text, place)
    if type(value) is not dict or not found.add(name, value, call_id):
        return None
    if (fence := _CLOSED_FENCE.match(text, end)) is not None:
        end = fence.end()
    return end


def _glm(text: str, head: re.Match[str], found: _Found) -> int | None:
    place = head.end()
    schema = found.tools.parameters(found.tools.resolve(head[1]) or "")
    arguments: dict[str, Any] = {}
    while (key := _GLM_ARGUMENT.match(text, place)) is not None:
        end = text.find("</arg_value>", key.end())
        name = key[1].strip()
        if end < 0 or name in arguments:
            return None
        arguments[name] = text_to_value(text[key.end() : end], schema, name)
        place = end + len("</arg_value>")
    closed = _GLM_END.match(text, place)
    return None if closed is None or not found.add(head[1], arguments) else closed.end()


def _parameters(text: str, place: int, name: str, found: _Found) -> int | None:
    """The arguments of a call whose parameters are elements, or JSON; its end has to be there."""
    place = _BLANKS.match(text, place).end()  # type: ignore[union-attr]
    if text.startswith("{", place):
        value, end = read_json_at(text, place)
        if type(value) is not dict or not found.add(name, value):
            return None
        closed = _CALL_END.match(text, end)
        return end if closed is None else closed.end()
    schema = found.tools.parameters(found.tools.resolve(name) or "")
    arguments: dict[str, Any] = {}
    while (head := _PARAMETER.match(text, place)) is not None:
        ended = _PARAMETER_END.search(text, head.end())
        key = (head["qwen"] if head["qwen"] is not None else head["name"]).strip()
        if ended is None or key in arguments:
            return None
        value = text[head.end() : ended.start()]
        if head["qwen"] is not None:  # on lines of its own
            value = value.removeprefix("\n").removesuffix("\n")
        arguments[key] = value if head["string"] == "true" else text_to_value(value, schema, key)
        place = ended.end()
    closed = _CALL_END.match(text, place)
    if closed is None or not found.add(name, arguments):
        return None
    return closed.end()


def _take_json(value: Any, found: _Found, *, marked: bool, nested: int = 0) -> bool:
    """Take a call, or a list of calls, of one of the usual JSON forms."""
    if type(value) is list:
        return (
            bool(value)
            and nested <= _MAX_NESTED
            and all(type(item) is dict and _take_json(item, found, marked=marked, nested=nested + 1) for item in value)
        )
    if type(value) is not dict or not (marked or value.keys() <= _CALL_KEYS):
        return False
    if type(several := value.get("tool_calls")) is list and len(value) == 1:
        return _take_json(several, found, marked=marked, nested=nested)
    function = value.get("function")
    inner = function if type(function) is dict else value
    name = function if isinstance(function, str) else inner.get("name")
    keys = [key for key in ("arguments", "parameters", "args") if key in inner]
    if len(keys) > 1 or (not keys and not marked):
        return False  # a name alone is no call
    arguments = inner[keys[0]] if keys else None
    if not marked and not (type(arguments) is dict or (type(arguments) is str and arguments.lstrip()[:1] == "{")):
        return False
    call_id = value.get("id")
    return found.add(name, arguments, call_id if isinstance(call_id, str) else None)


def _json_alone(text: str, tools: KnownTools) -> tuple[list[ToolCall], str] | None:
    """JSON that ends the reply: all of it, the last lines of it, or in the only fence of it."""
    bare = _LAST_TOKEN.sub("", text.strip())
    before = ""
    fence = _ANSWER_FENCE.search(bare)
    if fence is not None:
        if not bare.endswith("```") or bare.count("```") != 2:
            return None
        before, body = bare[: fence.start()], bare[fence.end() : -3].strip()
    else:
        line = re.search(r"^[ \t]*[{\[]", bare, re.MULTILINE)
        if line is None:
            return None
        before, body = bare[: line.start()], bare[line.start() :].strip()
    if _MARK.search(before):
        return None
    found = _Found(tools)
    place = 0
    while place < len(body):
        value, end = read_json_at(body, place)
        if value is None or not _take_json(value, found, marked=False):
            return None
        place = _BLANKS.match(body, end).end()  # type: ignore[union-attr]
    # a reply that is nothing but a call of a declared tool is one, whatever its arguments; the tool checks those
    if not found.calls or (before.strip() and not _fit_their_schemas(found)):
        return None
    return found.calls, before.strip()


def _fit_their_schemas(found: _Found) -> bool:
    """Whether no call has an argument its tool does not know: without markup the evidence has to be good."""
    for call in found.calls:
        schema = found.tools.parameters(call.name)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict) and not mend_arguments(call.arguments)[0].keys() <= properties.keys():
            return False
    return True
