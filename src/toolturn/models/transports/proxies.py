"""Which proxy a request goes through: what the environment says, as everywhere else in Python."""

from __future__ import annotations

import os
import sys

from ...frozen import frozen
from .address import Address


@frozen
class Proxy:
    """A proxy and where it was named.

    Args:
        url: Its address; may hold a password.
        named_by: The variable, or ``the system``.
    """

    url: str
    named_by: str


def proxy_for(address: Address) -> Proxy | None:
    """Return the proxy for an address, or None.

    ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` count, in lower case too, and on Windows and macOS
    the system's settings. This machine itself is never asked through a proxy: that would reach the proxy's own
    loopback at best, and models that run locally are what most of those addresses are.

    Args:
        address: Where the request goes.
    """
    if address.local or not (
        sys.platform in ("win32", "darwin") or any(name[-6:].lower() == "_proxy" for name in os.environ)
    ):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    scheme = "https" if address.secure else "http"
    for kind in (scheme, "all"):
        if url := proxies.get(kind):
            if proxy_bypass(address.host) or proxy_bypass(address.place):
                return None
            return Proxy(url if "://" in url else f"http://{url}", _named_by(kind))
    return None


def _named_by(kind: str) -> str:
    for name in (f"{kind}_proxy", f"{kind.upper()}_PROXY"):
        if os.environ.get(name):
            return name
    return "the system"
