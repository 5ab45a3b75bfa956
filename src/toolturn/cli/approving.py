"""Approval: somebody decides about a call while its turn waits, or has decided before a stopped one goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import Any
from unicodedata import category

import click

from toolturn.codec import plain
from toolturn.messages import ToolCall
from toolturn.results import Approval, ToolCallRecord
from toolturn.tools import ToolContext

from .show import harmless

_YES = ("y", "yes")
_NO = ("", "n", "no")

QUESTION = "  may it run? [y/N, or why not] "
DENIED = "the user did not allow it"


async def decided(reply: Awaitable[str]) -> str | None:
    """Return what an answer means for a call.

    Only a plain yes is one. What else is answered is a reason that the model may be told; nobody there means no.

    Args:
        reply: The answer, which is still to come.

    Returns:
        None where the call may run, otherwise why not.

    Raises:
        asyncio.CancelledError: Ctrl-C stopped the turn instead.
    """
    try:
        answer = (await reply).strip()
    except EOFError:
        return DENIED
    except KeyboardInterrupt:  # within a task it would end the event loop
        raise asyncio.CancelledError from None
    if answer.lower() in _YES:
        return None
    return DENIED if answer.lower() in _NO else f"{DENIED}: {answer}"


async def asked(call: ToolCall, answer: Callable[[str], Awaitable[str]]) -> str | None:
    """Show a call to somebody, and return what they decide.

    Args:
        call: The call as the model made it.
        answer: Puts a question to them.

    Returns:
        None where the call may run, otherwise why not.

    Raises:
        asyncio.CancelledError: Ctrl-C stopped the turn instead.
    """
    # the whole of it: nobody should allow what they have not seen
    click.echo(f"  {click.style('?', fg='yellow')} {_shown(call)}", err=True)
    return await decided(answer(QUESTION))


def _shown(call: ToolCall) -> str:
    # what is not seen, or makes a terminal write from right to left, must not hide what is approved
    text = harmless(f"{call.name} {' '.join(str(call.arguments).split())}")
    return "".join(f"\\u{ord(char):04x}" if category(char) in ("Cf", "Zl", "Zp") else char for char in text)


# --- in a turn of its own ------------------------------------------------------------------


def at_terminal() -> bool:
    """Return whether somebody sits there who can be asked."""
    shown = any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
    typed = sys.stdin is not None and sys.stdin.isatty()
    return shown and typed and find_spec("prompt_toolkit") is not None


class Asking:
    """Decides about calls by asking whoever sits at the terminal.

    Args:
        before: Is called before each question, so that it begins on a line of its own.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._answer: Callable[[str], Awaitable[str]] | None = None

    async def __call__(self, call: ToolCall, arguments: Any, context: ToolContext) -> Approval:
        """Decide about one call."""
        if self._answer is None:
            from .typed import answers  # an editor is costly to import, and most turns ask nothing

            self._answer = answers()
        self._before()
        why_not = await asked(call, self._answer)
        return Approval(True) if why_not is None else Approval(False, why_not)


# --- in a turn that has stopped ------------------------------------------------------------


def names_of(record: ToolCallRecord) -> tuple[str, ...]:
    """Return the names a waiting call is known by: its operation's, the question's, and its id.

    Args:
        record: The call.
    """
    identity = (record.call.id,) if isinstance(record.call.id, str) else ()
    return (record.op, f"a{record.op[1:]}", *identity)


def waiting_as_data(pending: Sequence[ToolCallRecord]) -> list[dict[str, Any]]:
    """Return calls that wait, in JSON's own types.

    Args:
        pending: The calls.
    """
    return [
        {"op": record.op, **{key: plain(getattr(record.call, key)) for key in ("id", "name", "arguments")}}
        for record in pending
    ]


def waiting_as_text(pending: Sequence[ToolCallRecord]) -> str:
    """Return calls that wait, a line for each.

    Args:
        pending: The calls.
    """
    return "\n".join(f"  {click.style('?', fg='yellow')} {record.op}  {_shown(record.call)}" for record in pending)


def decisions(
    pending: Sequence[ToolCallRecord], approve: Sequence[str], deny: Sequence[str], approve_all: bool
) -> dict[str, Approval]:
    """Return what was decided on the command line.

    Args:
        pending: The calls that wait.
        approve: Names of calls that may run.
        deny: Names of calls that may not, each with ``=`` and a reason behind it where there is one.
        approve_all: All may run that are not denied.

    Returns:
        The decisions by the names of the calls' operations.

    Raises:
        click.UsageError: No call waits under a name, or two decisions are made about one.
    """
    made: dict[str, Approval] = {}

    def take(option: str, name: str, approval: Approval) -> None:
        found = [record.op for record in pending if name in names_of(record)]
        if not found:
            there = ", ".join(f"{record.op} ({harmless(str(record.call.name))})" for record in pending)
            told = f"these wait: {there}" if there else "none waits"
            raise click.UsageError(f"{option}: no call waits as {name!r}; {told}")
        if found[0] in made:
            raise click.UsageError(f"{option}: about {name} something was decided already")
        made[found[0]] = approval

    known = {name for record in pending for name in names_of(record)}
    for name in approve:
        take("--approve", name, Approval(True))
    for text in deny:
        # an id may hold the sign itself
        cuts = [place for place, char in enumerate(text) if char == "="]
        cut = next((place for place in cuts if text[:place] in known), cuts[0] if cuts else len(text))
        name, reason = (text, "") if text in known else (text[:cut], text[cut + 1 :].strip())
        take("--deny", name, Approval(False, f"{DENIED}: {reason}" if reason else DENIED))
    if approve_all:
        if not pending:
            raise click.UsageError("--approve-all: no call waits for approval")
        for record in pending:
            made.setdefault(record.op, Approval(True))
    return made
