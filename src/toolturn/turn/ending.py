"""Why a turn ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .. import errors
from ..codec import plain, response_from_dict, response_to_dict
from ..errors import ErrorCause, ToolLoopError
from ..messages import ChatResponse


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a turn ended.

    Args:
        error: The class of the error; None for a result.
        text: The error's sentence, or the answer.
        rejected: The reply that was refused.
        cause: The exception behind it as type and text.
        exception: The exception itself, which does not outlive the process.
        limit: The limit the turn stands at.
        direct: Whether a direct-return tool gave the answer.
    """

    error: type[ToolLoopError] | None
    text: str
    rejected: ChatResponse | None = None
    cause: ErrorCause | None = None
    exception: BaseException | None = None
    limit: str | None = None
    direct: bool = False


def ending_to_dict(ending: Ending) -> dict[str, Any]:
    """Return an ending in JSON's own types."""
    return {
        "class": None if ending.error is None else ending.error.__name__,
        "text": plain(ending.text),
        "rejected": None if ending.rejected is None else response_to_dict(ending.rejected),
        "cause": None if ending.cause is None else asdict(ending.cause),
        "limit": ending.limit,
        "direct": ending.direct,
    }


def ending_from_dict(data: Mapping[str, Any]) -> Ending:
    """Return the ending that :func:`ending_to_dict` wrote."""
    return Ending(
        None if data["class"] is None else error_class(data["class"]),
        data["text"],
        None if data["rejected"] is None else response_from_dict(data["rejected"]),
        None if data["cause"] is None else ErrorCause(**data["cause"]),
        None,
        data["limit"],
        data["direct"],
    )


def error_class(name: str) -> type[ToolLoopError]:
    """Return the class of this name.

    Raises:
        TypeError: It is no ToolLoopError.
    """
    cls = getattr(errors, name, None)
    if not (isinstance(cls, type) and issubclass(cls, ToolLoopError)):
        raise TypeError(f"{name} is no ToolLoopError")
    return cls
