"""The transports: the one that is used by default, and others."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..transport import Transport

__all__ = ["default_transport"]


@functools.cache
def default_transport() -> Transport:
    """Return the transport that all models of this process share.

    It serves every event loop of the process, with connections of its own in each, which are closed when
    ``asyncio.run`` ends that loop; nothing needs to be closed by hand.

    Returns:
        The transport over asyncio; the one over httpx2 where only that library is installed.

    Raises:
        ImportError: Neither is; the text names the command.
    """
    from .asyncio_http import AsyncioTransport
    from .httpx2 import Httpx2Transport

    try:
        return AsyncioTransport()
    except ImportError as exc:
        try:
            return Httpx2Transport()
        except ImportError:
            raise exc from None
