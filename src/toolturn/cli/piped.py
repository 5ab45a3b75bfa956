"""Lines of a conversation from a program or a file: standard input that is no terminal."""

from __future__ import annotations

import asyncio
import codecs
import os
import threading

import click


class PipedLines:
    """The lines of a file descriptor, read in a thread so that the event loop goes on.

    It must be made while the event loop runs.

    Args:
        descriptor: Where they come from.

    Attributes:
        interactive: Whether somebody types them.
    """

    interactive = False

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | BaseException] = asyncio.Queue()
        # a daemon that reads the descriptor itself: one that held the lock of sys.stdin would hang or abort the end
        threading.Thread(target=self._read, name="toolturn-stdin", daemon=True).start()

    async def read(self, prompt: str) -> str:
        """Return the next line; no prompt is shown.

        Raises:
            EOFError: There is none.
            KeyboardInterrupt: Ctrl-C came while it was waited for.
        """
        item = await self._lines.get()
        if isinstance(item, str):
            return item
        if isinstance(item, EOFError):
            self._lines.put_nowait(item)
        raise item

    async def answer(self, question: str) -> str:
        """Return the next line as the answer to a question, which is shown on standard error.

        Raises:
            EOFError: There is none.
        """
        click.echo(question, err=True)
        return await self.read(question)

    def interrupt(self) -> None:
        """End the waiting for a line by KeyboardInterrupt."""
        self._lines.put_nowait(KeyboardInterrupt())

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        while True:
            try:
                data = os.read(self._descriptor, 65536)
            except OSError:
                data = b""
            *lines, rest = (rest + decoder.decode(data, final=not data)).split("\n")
            self._tell(*(line.removesuffix("\r") for line in lines))
            if not data:
                self._tell(*([rest] if rest else []), EOFError())
                return

    def _tell(self, *items: str | BaseException) -> None:
        try:
            for item in items:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, item)
        except RuntimeError:  # the loop is closed: nobody listens any more
            return
