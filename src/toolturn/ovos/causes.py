"""Exceptions as text for a model: short, and with the field where there is one."""

from __future__ import annotations

from pydantic import ValidationError

from ..arguments import describe_faults

_MAX_CAUSE = 500


def cause_text(exc: BaseException) -> str:
    """Return the class of an exception and the beginning of its text.

    Args:
        exc: The exception.
    """
    try:
        text = str(exc).strip()
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure
        text = ""
    if len(text) > _MAX_CAUSE:
        text = text[: _MAX_CAUSE - 1] + "…"
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def faults_text(exc: BaseException) -> str:
    """Return what pydantic found, field by field and without the values, or the text of another exception.

    Args:
        exc: The exception.
    """
    return describe_faults(exc) if isinstance(exc, ValidationError) else cause_text(exc)
