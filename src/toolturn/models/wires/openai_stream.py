"""A streamed reply of OpenAI's chat completions, put together into the body it would have been."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from ...model import Delta
from .openai_reply import REASONING_FIELDS


class _Call:
    """A call while its fragments arrive."""

    __slots__ = ("arguments", "id", "more", "name", "numbered")

    def __init__(self) -> None:
        self.id: Any = None
        self.name = ""
        self.arguments: list[str] = []
        self.more: dict[str, Any] = {}
        self.numbered = False

    def is_complete(self) -> bool:
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True

    def body(self) -> dict[str, Any]:
        function = {"name": self.name or None, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function, **self.more}


class Assembler:
    """Takes the chunks of one stream and makes one body of them.

    Servers differ in how they tell parallel calls apart, so: a new index, another id, or a name after complete
    arguments opens a call; without an index the id, or else a name, opens one and arguments continue the last.

    Args:
        names: The wire's names of the tools; a name cut in two is joined only where that gives one of them.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = names
        self._text: list[str] = []
        self._parts: list[Any] = []
        self._thoughts: list[str] = []
        self._details: list[Any] = []
        self._calls: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}
        self._legacy: _Call | None = None
        self._message: dict[str, Any] = {}
        self._body: dict[str, Any] = {}
        self._usage: Any = None
        self._refusal: list[str] = []
        self._logprobs: list[Any] = []
        self.finish_reason: str | None = None
        self.begun = False

    @property
    def has_content(self) -> bool:
        """Whether more than the beginning of a reply has arrived."""
        return bool(self._text or self._thoughts or self._calls or self.finish_reason)

    @property
    def partial(self) -> str:
        """The text that has arrived."""
        return "".join(self._text)

    def feed(self, chunk: Any) -> list[Delta]:
        """Take a chunk and return what of it people may see.

        Args:
            chunk: The parsed chunk; what is no object is passed over.
        """
        shown: list[Delta] = []
        if not isinstance(chunk, dict):
            return shown
        self._body.update(chunk)
        if (usage := chunk.get("usage")) is not None:
            self._usage = usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._choice(choice, shown)
        return shown

    def _choice(self, choice: Mapping[str, Any], shown: list[Delta]) -> None:
        self.begun = True
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self.finish_reason = reason
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            self._logprobs += logprobs["content"]
        # a whole message in a stream is what some servers send as the last, or the only, chunk
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
            if not isinstance(delta, dict) or self._text or self._calls:
                return
        thought = False
        for name, value in delta.items():
            if value is None:
                continue
            if name == "content":
                self._content(value, shown)
            elif name in REASONING_FIELDS:
                if not thought and value and isinstance(value, str):
                    thought = True  # some tell it under two names at once
                    self._thoughts.append(value)
                    shown.append(Delta(value, "reasoning"))
            elif name == "tool_calls":
                for call in value if isinstance(value, list) else [value]:
                    if isinstance(call, dict):
                        self._fragment(call)
            elif name == "function_call":
                if isinstance(value, dict) and (value.get("name") or value.get("arguments")):
                    if self._legacy is None:
                        self._legacy = self._open()
                    self._add(self._legacy, value)
            elif name == "reasoning_details":
                if isinstance(value, list):
                    self._details += value
            elif name == "refusal":
                if isinstance(value, str):
                    self._refusal.append(value)
            else:
                self._message[name] = value

    def _content(self, content: Any, shown: list[Delta]) -> None:
        if isinstance(content, (int, float)):
            content = json.dumps(content)
        if isinstance(content, str):
            if content:
                self._text.append(content)
                shown.append(Delta(content))
        elif isinstance(content, list):
            for part in content:
                if not isinstance(part, dict):
                    continue
                if part.get("type") in ("thinking", "reasoning"):
                    inner = part.get("thinking", part.get("text"))
                    for piece in inner if isinstance(inner, list) else [inner]:
                        text = piece.get("text") if isinstance(piece, dict) else piece
                        if isinstance(text, str) and text:
                            self._thoughts.append(text)
                            shown.append(Delta(text, "reasoning"))
                elif isinstance(text := part.get("text"), str):
                    self._content(text, shown)
                else:
                    self._parts.append(part)

    # --- calls -----------------------------------------------------------------------

    def _fragment(self, fragment: Mapping[str, Any]) -> None:
        function = next(
            (fragment[key] for key in ("function", "custom") if isinstance(fragment.get(key), dict)), fragment
        )
        index = fragment.get("index")
        call_id = fragment.get("id")
        name = function.get("name")
        has_id = call_id is not None and call_id != ""
        has_name = isinstance(name, str) and name != ""
        if isinstance(index, (int, str)) and not isinstance(index, bool):
            call = self._by_index.get(index)
            if call is None:
                # an unnumbered beginning may be continued under its number
                last = self._calls[-1] if self._calls else None
                if last is None or last.numbered or not has_id or last.id != call_id:
                    last = self._open()
                call = self._by_index[index] = last
                call.numbered = True
            elif self._is_another(call, call_id if has_id else None, name if has_name else None):
                call = self._by_index[index] = self._open()
                call.numbered = True
        else:
            call = self._unnumbered(call_id if has_id else None, name if has_name else None)
        if has_id and call.id is None:
            call.id = call_id
        self._add(call, function)
        for key, value in fragment.items():
            if (
                key not in ("index", "id", "type", "function", "custom", "name", "arguments", "input")
                and value is not None
            ):
                call.more[key] = value

    def _open(self) -> _Call:
        call = _Call()
        self._calls.append(call)
        return call

    def _unnumbered(self, call_id: Any, name: str | None) -> _Call:
        if call_id is not None:
            for call in self._calls:
                if call.id == call_id:
                    return call
        last = self._calls[-1] if self._calls else None
        if last is None or (call_id is not None and last.id is not None):
            return self._open()
        if name is not None and last.name and last.is_complete():
            return self._open()
        return last

    @staticmethod
    def _is_another(call: _Call, call_id: Any, name: str | None) -> bool:
        if call_id is not None and call.id is not None:
            return bool(call.id != call_id)
        return name is not None and bool(call.name) and call.is_complete()

    def _add(self, call: _Call, function: Mapping[str, Any]) -> None:
        name = function.get("name")
        if isinstance(name, str) and name and name != call.name:
            if not call.name:
                call.name = name
            elif call.name not in self._names and call.name + name in self._names:
                call.name += name
        arguments = function.get("arguments", function.get("input"))
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif isinstance(arguments, (dict, list)):  # parsed already, by servers that mean well
            call.arguments.append(json.dumps(arguments))

    # --- the whole -------------------------------------------------------------------

    def body(self) -> dict[str, Any]:
        """Return the body that the reply would have been without streaming."""
        text: Any = "".join(self._text)
        message: dict[str, Any] = {"role": "assistant", **self._message}
        message["content"] = [{"type": "text", "text": text}, *self._parts] if self._parts else text
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._details:
            message["reasoning_details"] = _joined(self._details)
        if refusal := "".join(self._refusal):
            message["refusal"] = refusal
        if self._calls:
            message["tool_calls"] = [call.body() for call in self._calls]
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        return {**self._body, "object": "chat.completion", "choices": [choice], "usage": self._usage}


def _joined(details: list[Any]) -> list[Any]:
    """Pieces of thoughts put together, since servers want a block back whole, with its signature."""
    whole: list[Any] = []
    for piece in details:
        last = whole[-1] if whole else None
        if not isinstance(piece, dict) or not isinstance(last, dict) or not _continues(last, piece):
            whole.append(dict(piece) if isinstance(piece, dict) else piece)
            continue
        for name, value in piece.items():
            if name in ("text", "summary") and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value
    return whole


def _continues(last: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    if piece.get("type") not in ("reasoning.text", "reasoning.summary") or last.get("signature"):
        return False
    return (
        piece["type"] == last.get("type")
        and piece.get("index") == last.get("index")
        and piece.get("id") in (None, last.get("id"))
    )
