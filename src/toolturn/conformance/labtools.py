"""The tools of the lab: functions that tell what they were run with, and nothing but the standard library."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

CLEANUP = "clean_up"
"""What a tool is told to have done that was cancelled, once it has cleaned up."""


def _nobody(name: str, arguments: dict[str, Any]) -> None:
    pass


report: Callable[[str, dict[str, Any]], None] = _nobody
"""Is told of each run before anything else happens; the worker puts its own here."""


def add(a: int, b: int) -> int:
    """Add two whole numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    report("add", {"a": a, "b": b})
    return a + b


def get_temp(city: str) -> str:
    """Tell the temperature in a city.

    Args:
        city: The city's name.
    """
    report("get_temp", {"city": city})
    return f"21 degrees in {city}"


def ping() -> str:
    """Tell whether the house answers."""
    report("ping", {})
    return "pong"


def set_lamp(room: str, level: int = 1) -> str:
    """Set the lamp of a room.

    Args:
        room: The room.
        level: How bright, from 0 to 10.
    """
    report("set_lamp", {"room": room, "level": level})
    return "set"


def write_file(path: str, text: str) -> str:
    """Write a text file.

    Args:
        path: The file's name.
        text: What is written.
    """
    report("write_file", {"path": path, "text": text})
    return "written"


def send_message(to: str, text: str) -> str:
    """Send a message to a person.

    Args:
        to: The person.
        text: The message.
    """
    report("send_message", {"to": to, "text": text})
    return "sent"


def list_add(items: list[str], note: str = "") -> str:
    """Add items to the shopping list.

    Args:
        items: The items.
        note: A remark.
    """
    report("list_add", {"items": items, "note": note})
    return "added"


def delete_message(message_id: int) -> str:
    """Delete a message.

    Args:
        message_id: The number of the message.
    """
    report("delete_message", {"message_id": message_id})
    return "deleted"


def boom(x: int) -> str:
    """Open the gate.

    Args:
        x: The number of the gate.
    """
    report("boom", {"x": x})
    raise RuntimeError("kaboom: can not log in with password hunter2")


def leave() -> str:
    """Close the house."""
    report("leave", {})
    sys.exit(3)


def nothing() -> None:
    """Do nothing."""
    report("nothing", {})


def blank() -> str:
    """Read the empty page."""
    report("blank", {})
    return ""


def file_name() -> str:
    """Tell the name of the newest file."""
    report("file_name", {})
    return "holiday-\ud83d.jpg"


def big() -> str:
    """Read the whole log."""
    report("big", {})
    return "a line of the log\n" * 300_000


_counted = 0


def count() -> int:
    """Tell how far the job is."""
    global _counted
    report("count", {})
    _counted += 1
    return _counted


async def wait_long() -> str:
    """Wait for the parcel."""
    report("wait_long", {})
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.05)
        report(CLEANUP, {})
    return "the parcel is there"


def block() -> str:
    """Wait for the printer."""
    report("block", {})
    time.sleep(4)  # nothing can interrupt it
    return "printed"


async def stop_here() -> str:
    """Ring the bell."""
    report("stop_here", {})
    return "rung"


def give_money(to: str, euros: int) -> str:
    """Give money to a person.

    Args:
        to: The person.
        euros: How much.
    """
    report("give_money", {"to": to, "euros": euros})
    return f"{to} got {euros} euros"


def lend_money(to: str, euros: int) -> str:
    """Lend money to a person.

    Args:
        to: The person.
        euros: How much.
    """
    report("lend_money", {"to": to, "euros": euros})
    return f"{to} owes {euros} euros"


TOOLS: tuple[Callable[..., Any], ...] = (
    add,
    get_temp,
    ping,
    set_lamp,
    write_file,
    send_message,
    list_add,
    delete_message,
    boom,
    leave,
    nothing,
    blank,
    file_name,
    big,
    count,
    wait_long,
    block,
    stop_here,
    give_money,
    lend_money,
)

REPORTED: tuple[str, ...] = (*(tool.__name__ for tool in TOOLS), CLEANUP)
"""All that is reported: the tools, and the cleanup of one that was cancelled."""
