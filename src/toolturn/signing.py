"""States that travel through a client: signed, with an end, and bound to whom they were given.

A state says which calls a model made and which of them were approved; whoever can change it decides what runs. It is
signed and not encrypted: the client can read it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from . import codec
from .errors import ToolLoopError
from .turn import Turn

_SALT = "toolturn.state"
_LEAST_KEY = 16


class SignatureError(ValueError):
    """A signed state was changed, has expired, or was given to somebody else."""


def sign(
    state: ToolLoopError | Turn | str,
    key: str | bytes,
    *,
    expires_in: float,
    bound_to: str = "",
    now: float | None = None,
) -> str:
    """Return a state as one line of text that only who has the key can make.

    Args:
        state: An error that carries one, a turn, or the JSON of either.
        key: A secret of at least 16 bytes.
        expires_in: Seconds for which it is good.
        bound_to: Whom or what it is for, such as the name of a session or a user; has to be the same when it is
            verified.
        now: Seconds since the epoch; the clock's where None.

    Raises:
        ValueError: There is no state, the key is too short, or it would never be good.
        ImportError: The extra ``signing`` is not installed.
    """
    if not 0 < expires_in < math.inf:
        raise ValueError("expires_in must be a positive number of seconds")
    signed: str = _signer(key).dumps([_text_of(state), bound_to, _now(now) + expires_in])
    return signed


def verify(
    text: str,
    key: str | bytes | Sequence[str | bytes],
    *,
    bound_to: str = "",
    now: float | None = None,
) -> str:
    """Return the state that :func:`sign` was given, which ``resume`` continues.

    Args:
        text: What it returned.
        key: The same secret; of several any may be right, so that keys can be changed.
        bound_to: Whom or what it was given to.
        now: Seconds since the epoch; the clock's where None.

    Raises:
        SignatureError: It was not signed with this key, was changed, has expired, or is bound to somebody else.
        ImportError: The extra ``signing`` is not installed.
    """
    signer = _signer(key)
    from itsdangerous import BadData

    try:
        state, owner, end = signer.loads(text)
    except (BadData, ValueError, TypeError, AttributeError, RecursionError):
        raise SignatureError("this state was not signed with this key, or was changed") from None
    if owner != bound_to:
        raise SignatureError("this state was given to somebody else")
    if _now(now) >= end:
        raise SignatureError("this state has expired")
    found: str = state
    return found


def _now(now: float | None) -> float:
    return time.time() if now is None else now


def _text_of(state: ToolLoopError | Turn | str) -> str:
    if isinstance(state, Turn):
        return state.to_json()
    if isinstance(state, ToolLoopError):
        if state.state is None:
            raise ValueError("this error carries no state; there is nothing to sign")
        return state.state
    if codec.kind_of(state) not in ("turn", "error"):
        raise ValueError("this is no saved turn or error; there is nothing to sign")
    return state


def _signer(key: str | bytes | Sequence[str | bytes]) -> Any:
    try:
        from itsdangerous import URLSafeSerializer
    except ImportError:
        raise ImportError("signed states need the extra 'signing': pip install 'toolturn[signing]'") from None
    given = [key] if isinstance(key, (str, bytes)) else key
    keys = [one.encode() if isinstance(one, str) else one for one in given]
    if not keys or any(len(one) < _LEAST_KEY for one in keys):
        raise ValueError(f"a key must have at least {_LEAST_KEY} bytes")
    # the digest by name, because the library's default is older than it has to be
    import hashlib

    return URLSafeSerializer(
        keys, salt=_SALT, signer_kwargs={"digest_method": hashlib.sha256, "key_derivation": "hmac"}
    )
