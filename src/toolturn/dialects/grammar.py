"""The grammar dialect: a model of text calls tools because a grammar lets it write one valid call, or an answer.

The tools are described in the system message. While they are offered, each reply is held to an llguidance grammar
(https://github.com/guidance-ai/llguidance) that admits one call whose arguments fit the tool's schema, or text. What
starts like a call is one, so text can be handed on from its first character.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..content import as_text
from ..messages import ChatMessage, ChatResponse, ToolCall, ToolDef, text_of
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem

_DEFAULT_SYSTEM = "You are a helpful assistant. Use a tool to {tasks}. Otherwise answer directly."

_TOOL_PROMPT = """

# Tools

You may call one function to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For a function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""

_USE_RESULT = "Answer the question in one short sentence using the tool result."
_ANSWER_FORM = "Give the final answer as a JSON object that fits this JSON Schema, and nothing else:\n{schema}"

_PREFIX = re.compile(r"\s*(?:```(?:json)?\s*|<tool_call>\s*)?")
_OPENERS = "{<`"


class GrammarTools(ChatModel):
    """Makes a model of text call tools.

    Args:
        model: A model whose ``settings.extra["grammar"]`` takes an llguidance grammar.
        withdraw: After a good result the tools are no longer offered and the model is asked to answer with it; what
            small models need, which otherwise repeat the call. They can then not chain calls.

    Raises:
        ValueError: The model takes no grammar.
    """

    def __init__(self, model: ChatModel, *, withdraw: bool = False) -> None:
        if not model.capabilities.grammar:
            raise ValueError("the grammar dialect needs a model that takes a grammar")
        self._model = model
        self._withdraw = withdraw

    @property
    def capabilities(self) -> Capabilities:
        """Those of the model, tools, and answers of a form."""
        return replace(self._model.capabilities, tools=True, answers="beside_tools")

    def __repr__(self) -> str:
        return f"<GrammarTools {self._model!r}>"

    async def load(self) -> None:
        """Load the model now instead of at the first request, where it can be.

        Raises:
            ModelError: It can not be loaded.
        """
        load = getattr(self._model, "load", None)
        if load is not None:
            await load()

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        """Return an answer or one call.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        folded, offered, settings = self._prepare(messages, tools, settings)
        response = await self._model.complete(folded, settings=settings)
        return self._read(response, messages, offered, settings)

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Yield the text of an answer as it is made; a call comes with the response alone.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        folded, offered, settings = self._prepare(messages, tools, settings)
        is_text = not offered
        is_call = False
        async with aclosing(self._model.stream(folded, settings=settings)) as stream:  # type: ignore[type-var]
            async for item in stream:
                if isinstance(item, ChatResponse):
                    yield self._read(item, messages, offered, settings)
                elif is_text or item.kind == "reasoning":
                    yield item
                elif not is_call and (first := item.text.lstrip()):
                    # the grammar lets a call begin with these characters only, and text with any other
                    is_call = first[0] in _OPENERS
                    if not is_call:
                        is_text = True
                        yield Delta(first)

    async def aclose(self) -> None:
        """Close the model below."""
        await self._model.aclose()

    def _prepare(
        self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], settings: ModelSettings | None
    ) -> tuple[tuple[ChatMessage, ...], tuple[ToolDef, ...], ModelSettings | None]:
        given = settings or ModelSettings()
        offered = () if given.tool_choice == "none" else tools
        answer = given.answer
        if self._withdraw and _has_result(messages):
            offered, folded = (), fold_result(messages, answer)
        else:
            folded = fold(messages, offered, answer)
        if not offered:
            if answer is not None:
                grammar = _grammar((), False, json.dumps(answer.parameters))
                settings = replace(given, extra={**given.extra, "grammar": grammar})
            return folded, (), settings
        must_call = given.tool_choice not in (None, "auto")
        if must_call and given.tool_choice != "required":
            offered = tuple(tool for tool in offered if tool.name == given.tool_choice) or offered
        grammar = _grammar(
            tuple((tool.name, json.dumps(tool.parameters)) for tool in offered),
            must_call,
            "" if answer is None else json.dumps(answer.parameters),
        )
        return folded, offered, replace(given, extra={**given.extra, "grammar": grammar})

    def _read(
        self,
        response: ChatResponse,
        messages: tuple[ChatMessage, ...],
        offered: tuple[ToolDef, ...],
        settings: ModelSettings | None,
    ) -> ChatResponse:
        """Take the call out of a reply; a reply that was cut off keeps its finish reason and is refused later."""
        if not offered:
            return response
        found = _parse_call(response.content)
        if found is None:
            return response
        if settings is not None and settings.answer is not None and all(tool.name != found[0] for tool in offered):
            return response  # an answer is an object too, and this one has such keys
        used = {call.id for message in messages for call in message.tool_calls or ()}
        number = len(used) + 1
        while f"call_{number}" in used:
            number += 1
        finish = "tool_calls" if response.finish_reason in (None, "stop") else response.finish_reason
        return replace(response, content="", tool_calls=[ToolCall(f"call_{number}", *found)], finish_reason=finish)


def _parse_call(text: str) -> tuple[str, str] | None:
    start = _PREFIX.match(text)
    at = start.end() if start else 0
    if not text.startswith("{", at):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value.get("name"), str) or not isinstance(value.get("arguments"), dict):
        return None
    return value["name"], json.dumps(value["arguments"], ensure_ascii=False)


@lru_cache(maxsize=64)
def _grammar(tools: tuple[tuple[str, str], ...], must_call: bool, answer: str = "") -> str:
    """The grammar of one reply: a call of one of the tools, or an answer: text, or an object of a schema."""
    rules = []
    if tools:
        rules.append(f"obj: %json {json.dumps(_calls_schema(tools))}")
        rules.append('call: ("```json\\n" | "<tool_call>\\n")? obj')
    if answer:
        rules.append(f"answer: %json {json.dumps(_local_schema(json.loads(answer), 'a'))}")
    else:
        rules.append("answer: /[^{<`\\s](.|\\n)*/")
    start = "answer" if not tools else "call" if must_call else "call | answer"
    return "\n".join(("%llguidance {}", f"start: {start}", *rules, ""))


def _calls_schema(tools: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    choices = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": _local_schema(json.loads(schema), f"t{number}")},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for number, (name, schema) in enumerate(tools)
    ]
    definitions: dict[str, Any] = {}
    for choice in choices:
        arguments: Any = choice["properties"]
        definitions.update(arguments["arguments"].pop("$defs", {}))
    whole: dict[str, Any] = {"oneOf": choices} if len(choices) > 1 else dict(choices[0])
    if definitions:
        whole["$defs"] = definitions
    return whole


def _local_schema(schema: Any, prefix: str) -> Any:
    """The schema with its definitions renamed, so that those of several tools can stand side by side."""
    if isinstance(schema, list):
        return [_local_schema(item, prefix) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str) and value.startswith("#/$defs/"):
            made[key] = f"#/$defs/{prefix}_{value[8:]}"
        elif key == "$defs" and isinstance(value, dict):
            made[key] = {f"{prefix}_{name}": _local_schema(item, prefix) for name, item in value.items()}
        else:
            made[key] = _local_schema(value, prefix)
    return made


# --- messages for a model that knows text only -------------------------------------------


def fold(
    messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...], answer: ToolDef | None = None
) -> tuple[ChatMessage, ...]:
    """Return the transcript in system, user and assistant messages of text, the tools described in the first.

    Args:
        messages: A valid transcript.
        tools: What is offered; nothing is described where empty.
        answer: The form that an answer has to have, where it has one.
    """
    system, rest = _split_system(messages)
    if tools:
        listed = "\n".join(json.dumps(_told(tool), ensure_ascii=False) for tool in tools)
        system = (system or _default_system(tools)) + _TOOL_PROMPT.format(tools=listed)
    if answer is not None:
        system = f"{system}\n\n{_form(answer)}".strip()
    made: list[ChatMessage] = [ChatMessage("system", system)] if system else []
    results: list[str] = []
    for message in rest:
        text = as_text(message.content)
        if message.role == "tool":
            results.append(f"<tool_response>\n{text}\n</tool_response>")
            continue
        if results:
            made.append(ChatMessage("user", "\n".join(results)))
            results = []
        if message.tool_calls:
            written = [text] if text else []
            for call in message.tool_calls:
                body = f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}'
                written.append(f"<tool_call>\n{body}\n</tool_call>")
            text = "\n".join(written)
        made.append(ChatMessage(message.role, text))
    if results:
        made.append(ChatMessage("user", "\n".join(results)))
    return tuple(made)


def _default_system(tools: tuple[ToolDef, ...]) -> str:
    # a small model needs to be told what the tools are for before it reads their schemas
    tasks = [tool.description.split(".")[0].split("\n")[0].strip() for tool in tools]
    return _DEFAULT_SYSTEM.format(tasks="; ".join(task[:1].lower() + task[1:] for task in tasks))


# The grammar enforces these; telling a model of them only makes the prompt longer.
_UNTOLD = frozenset(("title", "pattern", "additionalProperties"))


def _told(tool: ToolDef) -> dict[str, Any]:
    return replace(tool, parameters=_lean(tool.parameters, schema=True)).to_openai()


def _lean(value: Any, *, schema: bool) -> Any:
    """A schema without what the grammar enforces; walked by position, since a parameter may be called ``title``."""
    if isinstance(value, list):
        return [_lean(item, schema=schema) for item in value]
    if not isinstance(value, dict):
        return value
    named = ("properties", "$defs")
    return {
        key: {name: _lean(item, schema=True) for name, item in item.items()}
        if schema and key in named and isinstance(item, dict)
        else _lean(item, schema=schema and key not in ("enum", "const", "default", "examples"))
        for key, item in value.items()
        if not (schema and key in _UNTOLD)
    }


def _form(answer: ToolDef) -> str:
    return _ANSWER_FORM.format(schema=json.dumps(_lean(answer.parameters, schema=True), ensure_ascii=False))


def fold_result(messages: tuple[ChatMessage, ...], answer: ToolDef | None = None) -> tuple[ChatMessage, ...]:
    """Return the transcript so that a small model answers the last question with the results it has.

    Earlier calls and their results are left out: their answers hold what matters.

    Args:
        messages: A valid transcript that ends with tool results.
        answer: The form that the answer has to have, where it has one.
    """
    system, rest = _split_system(messages)
    asked = max((i for i, message in enumerate(rest) if message.role == "user"), default=-1)
    wanted = _USE_RESULT if answer is None else _form(answer)
    made = [ChatMessage("system", f"{system}\n{wanted}".strip())]
    made += [
        ChatMessage(message.role, as_text(message.content))
        for message in rest[: max(asked, 0)]
        if message.role in ("user", "assistant") and not message.tool_calls
    ]
    results = [
        as_text(message.content) for message in rest[asked + 1 :] if message.role == "tool" and not _is_error(message)
    ]
    question = as_text(rest[asked].content) if asked >= 0 else ""
    lines = "\n".join(f"Tool result: {result}" for result in results)
    made.append(ChatMessage("user", f"Question: {question}\n{lines}"))
    return tuple(made)


def _split_system(messages: tuple[ChatMessage, ...]) -> tuple[str, list[ChatMessage]]:
    system = "\n\n".join(text_of(message.content) for message in messages if message.role == "system")
    return system, [message for message in messages if message.role != "system"]


def _has_result(messages: tuple[ChatMessage, ...]) -> bool:
    """Whether the last batch gave at least one good result."""
    for message in reversed(messages):
        if message.role != "tool":
            return False
        if not _is_error(message):
            return True
    return False


def _is_error(message: ChatMessage) -> bool:
    return text_of(message.content).startswith('{"error":')
