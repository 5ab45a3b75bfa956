"""What the tests of transports share: each rule holds for all three of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from toolturn.models.transport import HttpRequest, Timeouts, Transport
from toolturn.models.transports.asyncio_http import AsyncioTransport
from toolturn.models.transports.httpx2 import Httpx2Transport

from .h11_transport import H11Transport

Make = Callable[..., Transport]
KEY = "sk-s3cret"
HIDDEN = "hunter2"
QUICK = Timeouts(connect=5.0, first_byte=5.0, between_bytes=5.0)

every_transport = pytest.mark.parametrize(
    "make", [AsyncioTransport, Httpx2Transport, H11Transport], ids=["asyncio", "httpx2", "h11"]
)
ours = pytest.mark.parametrize("make", [AsyncioTransport, Httpx2Transport], ids=["asyncio", "httpx2"])


def post(url: str, body: bytes = b'{"a": 1}', headers: Mapping[str, str] | None = None) -> HttpRequest:
    return HttpRequest("POST", url, {"authorization": f"Bearer {KEY}", **(headers or {})}, body)


async def whole(transport: Transport, request: HttpRequest, timeouts: Timeouts = QUICK) -> bytes:
    async with transport.send(request, timeouts) as reply:
        return await reply.read()
