"""Approval asked in place: somebody decides about a call while its turn waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

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
