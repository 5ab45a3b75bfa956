"""The commands of a conversation: lines that begin with ``/``."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click

from toolturn import codec
from toolturn.messages import text_of
from toolturn.model import ChatModel

from .chatting import Chat, shown_calls
from .show import harmless
from .talk import messages_in

ModelNamed = Callable[[str], tuple[ChatModel, int | None]]
"""A model and the tokens of messages it can be shown, from its name."""


class _Refused(Exception):
    """A command can not be carried out; the text says why in one sentence."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a command has to say.

    Args:
        text: For people.
        data: For programs, beside the text.
    """

    text: str
    data: Any = None


_Action = Callable[["Commands", Chat, str], Awaitable[_Said]]


class Commands:
    """Carries out the commands of a conversation.

    Args:
        model_named: Makes the model of a name.
    """

    def __init__(self, model_named: ModelNamed) -> None:
        self._model_named = model_named

    async def __call__(self, chat: Chat, line: str) -> bool:
        """Carry out a line; False where it ends the conversation.

        Args:
            chat: The conversation.
            line: The line, which begins with ``/``.
        """
        word, _, rest = line.strip().partition(" ")
        if word in _LEAVING:
            return False
        known = COMMANDS.get(word)
        try:
            if known is None:
                near = get_close_matches(word, COMMANDS, 1, 0.7)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise _Refused(f"there is no {word}{hint}; /help lists the commands, // begins a message with /")
            said = await known[2](self, chat, rest.strip())
        except _Refused as exc:
            _show(chat, word, _Said(str(exc)), ok=False)
        else:
            _show(chat, word, said)
        return True

    async def save(self, chat: Chat, rest: str) -> _Said:
        if not rest:
            raise _Refused("/save needs a file")
        try:
            path = chat.talk.save(rest)
        except ValueError as exc:
            raise _Refused(str(exc)) from None
        return _Said(f"{_counted(len(chat.talk.messages))} saved in {path}")

    async def load(self, chat: Chat, rest: str) -> _Said:
        if not rest:
            raise _Refused("/load needs a file")
        try:
            messages = messages_in(rest)
        except ValueError as exc:
            raise _Refused(str(exc)) from None
        chat.talk.replace(messages)
        return _Said(f"{_counted(len(messages))} loaded; the conversation goes on from there")

    async def tools(self, chat: Chat, rest: str) -> _Said:
        defined = chat.tools.definitions
        lines = []
        for definition in defined:
            lines.append(f"{definition.name}({', '.join(definition.parameters.get('properties', {}))})")
            lines.append(f"    {definition.description.strip().partition(chr(10))[0]}")
        return _Said("\n".join(lines) or "there are no tools", [definition.name for definition in defined])

    async def undo(self, chat: Chat, rest: str) -> _Said:
        message = chat.talk.undo()
        if message is None:
            raise _Refused("there is nothing to undo")
        return _Said(f"undone: {' '.join(text_of(message.content).split())[:200]}")

    async def audit(self, chat: Chat, rest: str) -> _Said:
        data = [codec.record_to_dict(record) for record in chat.records]
        return _Said(shown_calls(chat.records) or "the last turn called no tools", data)

    async def model(self, chat: Chat, rest: str) -> _Said:
        if rest:
            try:
                model, limit = self._model_named(rest)
            except click.ClickException as exc:
                raise _Refused(exc.message) from None
            await chat.change_model(model, rest, limit)
        return _Said(f"the model is {chat.model_name}", chat.model_name)

    async def system(self, chat: Chat, rest: str) -> _Said:
        if rest:
            chat.talk.instruct(rest)
        message = chat.talk.instruction
        text = None if message is None else text_of(message.content)
        return _Said("there is no system message" if text is None else f"the system message is: {text}", text)

    async def help(self, chat: Chat, rest: str) -> _Said:
        lines = [f"{f'{name} {argument}'.strip():<16}{text}" for name, (argument, text, _) in COMMANDS.items()]
        return _Said("\n".join([*lines, *_KEYS]), list(COMMANDS))


COMMANDS: dict[str, tuple[str, str, _Action]] = {
    "/help": ("", "what can be done here", Commands.help),
    "/tools": ("", "the tools the model may call", Commands.tools),
    "/audit": ("", "the calls of the last turn and how each ended", Commands.audit),
    "/undo": ("", "remove the last question with all that came of it", Commands.undo),
    "/save": ("FILE", "write the conversation to a file that --messages reads", Commands.save),
    "/load": ("FILE", "go on with the conversation of a file instead", Commands.load),
    "/model": ("NAME", "go on with another model; without NAME, say which it is", Commands.model),
    "/system": ("TEXT", "set the system message; without TEXT, show it", Commands.system),
}
"""What each takes, what it does, and how."""

_LEAVING = ("/quit", "/exit")

_KEYS = (
    "/quit           leave, as Ctrl-D does",
    "//…             a message that begins with /",
    "Ctrl-C stops a turn and keeps the conversation; Esc Enter begins another line of a message.",
)


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _show(chat: Chat, word: str, said: _Said, *, ok: bool = True) -> None:
    if chat.as_json:
        told = {"ok": ok, "command": word, "text": said.text}
        click.echo(json.dumps(told if said.data is None else {**told, "data": said.data}))
    else:
        click.echo(harmless(said.text), err=True)
