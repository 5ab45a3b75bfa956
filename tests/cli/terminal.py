"""A program in a real pseudo terminal, typed to and read from with a bound on the waiting."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

BOUND = 30.0
"""Seconds after which a test gives up."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>()][0-9A-B]?|\r")

# An editor that can be typed to switches pastes in brackets on; what it draws of its prompt is not to be relied on.
_READY = "\x1b[?2004h"
PROMPT = "[prompt]"

ENTER = "\r"
UP = "\x1b[A"
LEFT = "\x1b[D"
CTRL_C = "\x03"
CTRL_D = "\x04"
TAB = "\t"
ESCAPE = "\x1b"


class Terminal:
    """A context manager around a program that believes it is alone at a terminal.

    Args:
        command: The program.
        env: Its environment.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        import pty

        self._main, side = pty.openpty()
        self.screen = ""
        self._read_to = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # a session of its own, with the terminal as the controlling one: so that Ctrl-C becomes a signal
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CONTROLLED, *command],
            stdin=side,
            stdout=side,
            stderr=side,
            env={**env, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            start_new_session=True,
        )
        os.close(side)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(BOUND)
        if self._main >= 0:
            self.hang_up()

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._main, keys.encode())

    def hang_up(self) -> None:
        """Take the terminal away."""
        os.close(self._main)
        self._main = -1

    def wait_for(self, text: str) -> str:
        """Wait until a text appears after what was waited for before, and return all up to it."""
        ends = time.monotonic() + BOUND
        while (found := self.screen.find(text, self._read_to)) < 0:
            assert self._more(ends - time.monotonic()), f"no {text!r} after {self.screen[self._read_to :]!r}"
        before = self.screen[self._read_to : found]
        self._read_to = found + len(text)
        return before

    def end(self) -> int:
        """Wait for the end of the program and return its exit code."""
        ends = time.monotonic() + BOUND
        while self._more(ends - time.monotonic()):
            pass
        return self.process.wait(max(0.0, ends - time.monotonic()))

    def _more(self, seconds: float) -> bool:
        if not select.select([self._main], [], [], max(0.0, seconds))[0]:
            return False
        data = b""
        with contextlib.suppress(OSError):  # a terminal whose other side is closed gives an error, not an end
            data = os.read(self._main, 65536)
        text = (self.screen + self._decoder.decode(data)).replace(_READY, PROMPT)
        self.screen = _ESCAPES.sub("", text)
        return bool(data)


_CONTROLLED = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
