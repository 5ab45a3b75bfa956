"""What a server says when it does not reply, as one of our model errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Literal

from ..errors import (
    ModelAuthenticationError,
    ModelContextError,
    ModelError,
    ModelOverloadedError,
    ModelProtocolError,
    ModelRateLimitError,
    ModelRequestError,
    ModelStreamError,
    ModelTimeoutError,
    ModelUnavailableError,
)

_MAX_WORDS = 500
_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|context_length_exceeded|too many (input )?tokens"
    r"|prompt is too long|input is too long|exceeds? the (model'?s )?(maximum|max|available)[^.]{0,40}(token|context)"
    r"|reduce the length|maximum (number of )?(input )?tokens|token limit|string_above_max_length",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[ _](quota|balance|credit|fund)|exceeded your current quota|billing", re.IGNORECASE
)
_IMAGES = re.compile(r"image|multi-?modal|vision|content[^.]{0,60}\b(string|text|types?)\b", re.IGNORECASE)
_BOUND = re.compile(
    r"max_(?:completion_|output_|new_)?tokens\b.{0,200}?(?:too (?:large|big|high)|at most|less than or equal|<=|"
    r"maximum|valid range|exceed|limited)",
    re.IGNORECASE | re.DOTALL,
)
_ROOM = re.compile(r"\bin the completion\b|length of the messages or completion", re.IGNORECASE)
_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
_WORDS: Mapping[str, int] = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "invalid_request_error": 400,
    "server_error": 500,
    "api_error": 500,
}


def failure_of(status: int, headers: Mapping[str, str], body: bytes, server: str, key: str | None = None) -> ModelError:
    """Return the error that a reply of HTTP is.

    Args:
        status: Its status.
        headers: Its headers, names in lower case.
        body: Its body.
        server: Who replied, for people.
        key: The key that was sent, which must not appear in the text.
    """
    words, code = _said(body)
    more: dict[str, Any] = {
        "status": status,
        "request_id": next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        "retry_after": retry_after(headers),
    }
    if words is None and (status in (404, 405, 501) or 300 <= status < 400):
        where = f" to {headers['location']:.200}" if 300 <= status < 400 and "location" in headers else ""
        text = f"{server} replied HTTP {status}{where}: this is not the address of a model server"
        return ModelProtocolError(_hidden(text, key), **more)
    kind, what = _kind(status, f"{words or ''} {code}")
    said = f": {words}" if words else ""
    return kind(_hidden(f"{server} {what} (HTTP {status}){said}", key), **more)


def tells_of_broken_call(body: bytes) -> bool:
    """Return whether a refusal blames what the model wrote as a call, not what it was sent.

    Groq checks calls itself and replies so (https://console.groq.com/docs/tool-use); asked again, a model may do
    better.

    Args:
        body: The body of a reply with status 400.
    """
    return _said(body)[1] == "tool_use_failed"


def tells_of_images(status: int, body: bytes) -> bool:
    """Return whether a refusal blames images or files in the request, as a server does whose model takes none.

    Each says so in words of its own: https://github.com/ggml-org/llama.cpp/issues/13566,
    https://github.com/vercel/ai/issues/2837, https://github.com/JohnnyZ93/oai-compatible-copilot/issues/229.

    Args:
        status: The status of the reply.
        body: Its body.
    """
    if status in (400, 404, 415, 422, 500, 501):
        return _IMAGES.search(" ".join(filter(None, _said(body)))) is not None
    return status == 413  # too large as a whole


def tells_of_bound(status: int, body: bytes) -> Literal["model", "room", ""]:
    """Return what a refusal that blames the bound of the reply compares it with; empty for any other refusal.

    Each says so in words of its own: https://github.com/ChatGPTNextWeb/NextChat/issues/3195,
    https://github.com/claude-code-best/claude-code/issues/272, https://github.com/Gitlawb/openclaude/issues/331.

    Args:
        status: The status of the reply.
        body: Its body.

    Returns:
        ``model`` where it is more than the model can write, ``room`` where these messages leave less in its window.
    """
    if status not in (400, 416, 422):
        return ""
    words = _said(body)[0] or ""
    if _ROOM.search(words):
        return "room"
    if _BOUND.search(words):
        return "room" if _CONTEXT.search(words) else "model"
    return ""


def failure_in_stream(
    error: Any, server: str, partial: str, key: str | None = None, *, begun: bool = False
) -> ModelError:
    """Return the error that a stream, or a reply with HTTP 200, tells of.

    Args:
        error: The object under ``error``, or what stands in its place.
        server: Who replied, for people.
        partial: The text that had arrived.
        key: The key that was sent, which must not appear in the text.
        begun: The model had begun to write, so it is not the request that is refused.
    """
    words = _words_of(error) or "no reason given"
    status = _status_of(error)
    kind, what = (ModelStreamError, "broke off its reply") if status is None else _kind(status, words)
    if begun and issubclass(kind, ModelRequestError):
        kind, what = ModelStreamError, "broke off its reply"
    if partial:
        kind = ModelStreamError  # whatever the cause, what was handed on can not be taken back
    return kind(_hidden(f"{server} {what}: {words}", key), status=status, partial=partial)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a server wants to be asked again, or None.

    Args:
        headers: With ``retry-after`` in seconds or as a date, or ``retry-after-ms``.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < 10**6:
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return None


# llama.cpp refuses tools so (https://github.com/ggml-org/llama.cpp/blob/master/common/chat.cpp): asked again it will
# say the same
_UNABLE = re.compile(r"--jinja|does not support tool|tools? (?:is|are) not supported", re.IGNORECASE)


def _kind(status: int, words: str) -> tuple[type[ModelError], str]:
    if status in (401, 403):
        return ModelAuthenticationError, "refused the key"
    if _NO_CREDIT.search(words) and status in (402, 403, 429):
        return ModelRequestError, "wants to be paid first"
    if status == 429:
        return ModelRateLimitError, "was asked too often"
    if status in (408, 504, 524):
        return ModelTimeoutError, "did not answer in time"
    if status >= 500 and _UNABLE.search(words):
        return ModelRequestError, "refused the request"
    if status >= 500:
        return ModelOverloadedError, "can not serve now"
    if status == 404:
        return ModelUnavailableError, "does not have what was asked for"
    if status in (400, 413, 422) and _CONTEXT.search(words):
        return ModelContextError, "has too small a window for these messages"
    return ModelRequestError, "refused the request"


def _said(body: bytes) -> tuple[str | None, str]:
    """A server's words and its code; None where it does not speak as a model server does."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None, ""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return None, ""
    error = data.get("error", data)
    code = error.get("code") or error.get("type") if isinstance(error, dict) else ""
    return _words_of(error), str(code or "")


def _words_of(error: Any, depth: int = 0) -> str | None:
    if isinstance(error, str):
        return error.strip()[:_MAX_WORDS] or None
    if isinstance(error, list) and error and depth < 4:
        return _words_of(error[0], depth + 1)
    if isinstance(error, dict) and depth < 4:
        for name in ("message", "msg", "detail", "error", "error_description", "type"):
            if name in error and (words := _words_of(error[name], depth + 1)):
                return words
    return None


def _status_of(error: Any) -> int | None:
    if isinstance(error, dict):
        for name in ("code", "status", "http_status", "status_code", "type"):
            value = error.get(name)
            if isinstance(value, str):
                value = _WORDS.get(value.lower(), int(value) if value.isdecimal() and len(value) == 3 else None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _hidden(text: str, key: str | None) -> str:
    # a shorter one, as local servers are given, would only tear words
    return text.replace(key, "…") if key and len(key) >= 8 else text
