"""What the tables of streams share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..replies import Events, Reply, says
from ..rows import AFTER, Answer, Fault, Way
from ..wire import delta

FARO: Final = '{"city": "Faro"}'
BRAGA: Final = '{"city": "Braga"}'
END: Final = delta("tool_calls")


def piece(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """Return a piece of a call; what is None does not occur.

    Args:
        index: Which call it belongs to.
        id: The call's id.
        name: The tool's name.
        arguments: A part of the arguments.
        more: Anything else.
    """
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    given = {"index": index, "id": id, "type": "function" if id is not None else None, "function": function or None}
    return {key: value for key, value in given.items() if value is not None} | more


def pieces(*given: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk with pieces of calls.

    Args:
        given: The pieces.
    """
    return delta(tool_calls=list(given))


def row(name: str, text: str, items: tuple[Mapping[str, Any] | bytes, ...], ways: tuple[Way, ...], **how: Any) -> Fault:
    """Return a row whose first reply is a stream of these items.

    Args:
        name: The row's name without its prefix.
        text: What goes wrong.
        items: The chunks.
        ways: How the turn may end.
        how: How the stream ends.
    """
    return played(name, text, Events(items, **how), ways)


def played(name: str, text: str, reply: Reply, ways: tuple[Way, ...], **more: Any) -> Fault:
    """Return a row that is played for streamed requests only.

    Args:
        name: The row's name without its prefix.
        text: What goes wrong.
        reply: The first reply.
        ways: How the turn may end.
        more: Further fields of the row.
    """
    return Fault(f"stream_{name}", text, (reply, says(AFTER)), ways, ("stream",), **more)


def answers(text: str) -> tuple[Way, ...]:
    """Return the one way in which a stream of text ends well.

    Args:
        text: The text.
    """
    return (Way(Answer(text)),)
