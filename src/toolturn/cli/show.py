"""A running turn on the screen: progress on standard error, the answer on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any

import click

from toolturn.content import as_text
from toolturn.events import Answer, Event, Iteration, Repaired, Text, ToolCallStarted, ToolProgress, ToolResult

_MAX_SHOWN = 2000

# What would move the cursor, set a title or ring: a terminal must not obey what a model or a tool says.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
_PICTURES |= dict.fromkeys(range(128, 160), 65533)


class Screen:
    """Shows the events of a turn.

    The answer goes to standard output, on a terminal while it is made; everything else goes to standard error.

    Args:
        model: The name of the model.
        quiet: Show the answer only.
        silent: Show nothing at all.
    """

    def __init__(self, model: str, *, quiet: bool = False, silent: bool = False) -> None:
        self._model = model
        self._quiet = quiet or silent
        self._silent = silent
        self._out: Any = sys.stdout
        self._live = sys.stdout is not None and sys.stdout.isatty() and not silent
        self._written = ""

    def note(self, text: str) -> None:
        """Show a line about what happens."""
        if not self._quiet:
            self.end_line()
            click.echo(click.style(harmless(text), dim=True), err=True)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Iteration(number=number, forced=forced):
                what = "a last answer without tools" if forced else f"call {number}"
                self.note(f"[{self._model}] {what} …")
            case Text(text=text) if self._live:
                begun = self._written and not self._written.isspace()
                self._out.write(harmless(text if begun else text.lstrip()))
                self._out.flush()
                self._written += text
            case Repaired(repair=repair):
                self.note(f"  mended: {repair.kind}: {repair.detail}")
            case ToolCallStarted(call=call):
                if not self._quiet:
                    self.end_line()
                    arguments = _short(" ".join(str(call.arguments).split()))
                    click.echo(
                        f"  {click.style('→', fg='cyan')} {click.style(_short(str(call.name)), bold=True)} {arguments}",
                        err=True,
                    )
            case ToolProgress(data=data):
                if not self._quiet:
                    click.echo(f"  {click.style('·', fg='cyan')} {_short(str(data))}", err=True)
            case ToolResult(record=record):
                if not self._quiet:
                    good = record.status == "ok"
                    sign = click.style("←" if good else "✗", fg="green" if good else "red")
                    text = _short(as_text(record.message.content)).replace("\n", "\n    ")
                    click.echo(f"  {sign} {text} {click.style(f'({record.seconds:.2f} s)', dim=True)}", err=True)
                    if record.error:
                        click.echo(f"    {click.style(_short(record.error), fg='red')}", err=True)
            case Answer(content=content):
                self._answer(content)
            case _:
                pass

    def _answer(self, content: str) -> None:
        if self._silent:
            return
        if self._live and self._written.strip() == content:
            self._out.write("\n")
            self._out.flush()
        else:
            self.end_line()
            click.echo(harmless(content) if self._live else content, file=self._out)
        self._written = ""

    def end_line(self) -> None:
        """Text that was shown turned out not to be the end: what follows begins on a line of its own."""
        if self._live and self._written:
            self._out.write("\n")
            self._out.flush()
        self._written = ""


@contextmanager
def printing_aside() -> Iterator[None]:
    """What tools print goes to standard error, unless standard output is a terminal: there is the answer alone."""
    watched = sys.stdout is None or sys.stdout.isatty()
    with nullcontext() if watched or sys.stderr is None else redirect_stdout(sys.stderr):
        yield


def harmless(text: str) -> str:
    """Return the text with pictures in place of the characters that a terminal obeys.

    Args:
        text: What a model or a tool said.
    """
    # half a surrogate pair can not be written
    return text.replace("\r\n", "\n").translate(_PICTURES).encode("utf-8", "replace").decode()


def _short(text: str) -> str:
    text = harmless(text)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text):,} characters)"
