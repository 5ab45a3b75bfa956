"""Lines of a conversation from somebody at a terminal: edited, completed, and remembered."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import DummyHistory, FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.shortcuts import CompleteStyle


class TypedLines:
    """Lines that are typed at the terminal.

    Args:
        history: Where they are remembered, readable by their owner alone; where that can not be written they are
            forgotten in the end.
        words: What Tab completes at the beginning of a line.

    Attributes:
        interactive: Whether somebody types them.
    """

    interactive = True

    def __init__(self, history: Path, words: Sequence[str]) -> None:
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        output = _output()
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=keys,
            output=output,
        )
        self._answers: PromptSession[str] = PromptSession(history=DummyHistory(), output=output)

    async def read(self, prompt: str) -> str:
        """Return the next line; Escape and Enter begin another one in the same message.

        Args:
            prompt: What stands before it.

        Raises:
            EOFError: Ctrl-D was typed, or the terminal is gone.
            KeyboardInterrupt: Ctrl-C was typed.
        """
        return await self._session.prompt_async(prompt, handle_sigint=False)

    async def answer(self, question: str) -> str:
        """Return the answer to a question; it is not remembered.

        Raises:
            EOFError: Ctrl-D was typed, or the terminal is gone.
            KeyboardInterrupt: Ctrl-C was typed.
        """
        return await self._answers.prompt_async(question, handle_sigint=False)

    def interrupt(self) -> None:
        """End the waiting for a line by KeyboardInterrupt."""
        for app in (self._session.app, self._answers.app):
            if app.is_running and not app.is_done:
                app.exit(exception=KeyboardInterrupt)


def answers() -> Callable[[str], Awaitable[str]]:
    """Return what puts a question to whoever sits at the terminal; its answer is not remembered.

    Awaiting an answer raises EOFError for Ctrl-D or where the terminal is gone, KeyboardInterrupt for Ctrl-C.
    """
    session: PromptSession[str] = PromptSession(history=DummyHistory(), output=_output())

    async def answer(question: str) -> str:
        return await session.prompt_async(question, handle_sigint=False)

    return answer


def _output() -> Output:
    # standard output may be a file while somebody sits at the terminal
    return create_output(always_prefer_tty=True)


class _Remembered(FileHistory):
    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the conversation
            super().store_string(string)


def _history(path: Path) -> History:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return _Remembered(path)
