"""What goes wrong on the way, each in one sentence that says where and what to do; never a header or a path."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from ...errors import (
    ModelError,
    ModelProtocolError,
    ModelStreamError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from .address import Address

_REDIRECTS = (301, 302, 303, 307, 308)


def unreachable(address: Address, exc: BaseException, proxy: str | None = None) -> ModelError:
    """Tell why there is no connection.

    Args:
        address: Where the request was to go.
        exc: What the library or the system said; the causes behind it are looked at too.
        proxy: Name of the variable or setting whose proxy was used, where one was.
    """
    place = address.place
    through = f" through the proxy that {proxy} names" if proxy else ""
    known = list(_causes(exc))
    for cause in known:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return untrusted(address, cause.verify_message)
    for cause in known:
        if isinstance(cause, ssl.SSLError):
            return no_tls(address)
        if isinstance(cause, socket.gaierror):
            what = f"the proxy that {proxy} names" if proxy else repr(address.host)
            return ModelUnavailableError(f"there is no host {what}: check the address and the network")
        if isinstance(cause, OSError):
            # several addresses of one host that all refuse are told by asyncio in one OSError without a number
            if isinstance(cause, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(cause):
                if proxy:
                    return ModelUnavailableError(f"nothing listens where the proxy is that {proxy} names")
                return ModelUnavailableError(f"nothing listens at {place}: is the model's server running there?")
            if cause.errno in (errno.EMFILE, errno.ENFILE):
                return ModelUnavailableError(f"no connection to {place}: this machine allows no more open files")
            if isinstance(cause, ConnectionError):
                return ModelUnavailableError(f"{place} closed the connection while it was made{through}")
            if cause.errno is not None and cause.strerror:
                why = cause.strerror
                return ModelUnavailableError(f"no connection to {place}{through} ({why}): check address and network")
    return ModelUnavailableError(f"no connection to {place}{through}: check address and network")


def _causes(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def untrusted(address: Address, why: str) -> ModelError:
    """A certificate that is not trusted."""
    return ModelUnavailableError(
        f"the certificate of {address.place} is not trusted ({why.rstrip('.')}): "
        "SSL_CERT_FILE can name the file of an authority of your own"
    )


def no_tls(address: Address) -> ModelError:
    """The other side can not, or will not, speak TLS with us over HTTP/1.1."""
    return ModelUnavailableError(
        f"{address.place} does not speak HTTP/1.1 over TLS: is it http:// instead of https://, or another port?"
    )


def refused_by_proxy(address: Address, proxy: str | None, status: int | None) -> ModelError:
    """A proxy that makes no connection."""
    said = f" (it said {status})" if status else ""
    return ModelUnavailableError(
        f"the proxy that {proxy or 'the environment'} names makes no connection to {address.place}{said}"
    )


def no_connection_in_time(address: Address, seconds: float) -> ModelError:
    """The time for connecting is over."""
    return ModelTimeoutError(f"no connection to {address.place} within {seconds:g} s (the timeout for connecting)")


def no_reply_in_time(address: Address, seconds: float) -> ModelError:
    """The time for the first byte is over."""
    return ModelTimeoutError(f"no reply of {address.place} within {seconds:g} s (the timeout for the first byte)")


def no_more_in_time(address: Address, seconds: float) -> ModelError:
    """The time between two pieces is over."""
    return ModelTimeoutError(
        f"{address.place} sent nothing for {seconds:g} s in the middle of its reply (the timeout between bytes)"
    )


def no_reply(address: Address) -> ModelError:
    """Connected and sent, but closed without a reply.

    Not ModelUnavailableError: that one says that nothing was done, and nobody knows that here.
    """
    return ModelStreamError(
        f"{address.place} closed the connection before it replied; whether it worked on the request is not known"
    )


def broken_off(address: Address) -> ModelError:
    """The body ends before its end."""
    return ModelStreamError(f"{address.place} broke off in the middle of its reply")


def no_http(address: Address) -> ModelError:
    """What listens there is something else."""
    hint = "" if address.secure else ", or https:// instead of http://"
    return ModelProtocolError(f"what listens at {address.place} does not speak HTTP/1.1: is it another port{hint}?")


def endless_head(address: Address) -> ModelError:
    """More headers than any server needs."""
    return ModelProtocolError(f"the head of the reply of {address.place} is longer than any server's should be")


def too_large(address: Address, max_bytes: int) -> ModelError:
    """The body is larger than allowed."""
    return ModelProtocolError(f"the reply of {address.place} is larger than the {max_bytes} bytes that are allowed")


def check_head(address: Address, status: int, headers: Mapping[str, str], max_bytes: int) -> None:
    """Refuse a reply by its head, as every transport does.

    Args:
        address: Who replies.
        status: The status.
        headers: The headers, names in lower case.
        max_bytes: How large a body may be.

    Raises:
        ModelProtocolError: A redirect, which would hand the key to an address nobody chose; a compressed body,
            which nobody asked for; a body that announces to be too large.
    """
    if status in _REDIRECTS:
        raise ModelProtocolError(
            f"{address.place} redirects to {_shown(headers.get('location', ''))}, which is not followed since the key "
            "would go along: use that address if it is right",
            status=status,
        )
    coded = headers.get("content-encoding", "").lower() not in ("", "identity")
    if coded or headers.get("transfer-encoding", "").lower() not in ("", "chunked", "identity"):
        raise ModelProtocolError(f"{address.place} compressed its reply although it was asked not to", status=status)
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > max_bytes:
        raise too_large(address, max_bytes)


def _shown(location: str) -> str:
    """An address without what may be secret in it."""
    try:
        parts = urlsplit(location)
        host = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}" if parts.hostname else ""
    except ValueError:
        return "an address that is none"
    return ascii(f"{host}{parts.path}"[:200])[1:-1] or "no address"
