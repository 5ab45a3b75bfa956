"""The parts of an address that a transport needs, checked once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from ...errors import ModelRequestError
from ...frozen import frozen


@frozen
class Address:
    """Where a request goes.

    Args:
        secure: Whether by TLS.
        host: Name or number of the host, without the brackets of IPv6.
        port: The port.
        target: Path and query.
        place: Host and port for people: all that an error may tell of an address, since the rest may hold a key.
        local: Whether it is this machine, which no proxy can reach for us.
    """

    secure: bool
    host: str
    port: int
    target: str
    place: str
    local: bool


@lru_cache(maxsize=256)
def address_of(url: str) -> Address:
    """Take an address apart.

    Args:
        url: The whole address, ``http://`` or ``https://``.

    Raises:
        ModelRequestError: It is none that can be asked.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if host and not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError:
        # neither its text nor the exception's: an address may hold a key
        host = port = parts = None
    if parts is None or parts.scheme not in ("http", "https") or not host or _UNFIT_IN_URL.search(url):
        raise ModelRequestError("the model's address is not usable: it has the form http://host:port/path or https://…")
    if parts.username is not None or parts.password is not None:
        raise ModelRequestError(f"the address of {host} holds a user name: send it in a header instead")
    secure = parts.scheme == "https"
    port = port or (443 if secure else 80)
    shown = f"[{host}]" if ":" in host else host
    target = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    return Address(secure, host, port, target, f"{shown}:{port}", _is_local(host))


_SAFE = "!#$%&'()*+,/:;=?@[]~"
_UNFIT_IN_URL = re.compile(r"[\x00-\x20\x7f]")


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ip_address(host)
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse what would break the head of a request: most often a key with a line break from its file.

    Args:
        headers: Names and values.

    Raises:
        ModelRequestError: A header can not be sent; the text names it and never holds its value.
    """
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ModelRequestError("the name of a header holds a character that none may hold")
        if not _VALUE.fullmatch(value):
            raise ModelRequestError(
                f"the header {name} holds a character that none may hold, such as a line break at the end of a key"
            )
