"""What a server says when it does not reply is a typed error with its words, and never holds the key."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.errors import (
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
from toolturn.models.failures import failure_in_stream, failure_of, retry_after


def failure(status: int, body: Any = None, headers: dict[str, str] | None = None, key: str | None = None) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return failure_of(status, headers or {}, data, "the server", key)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, said("bad tool schema"), ModelRequestError),
        (400, said("x", code="context_length_exceeded"), ModelContextError),
        (400, said("This model's maximum context length is 8192 tokens."), ModelContextError),
        (400, said("prompt is too long: 210000 tokens > 200000 maximum"), ModelContextError),
        (413, said("input is too long for the requested model"), ModelContextError),
        (401, said("Incorrect API key"), ModelAuthenticationError),
        (403, said("not your model"), ModelAuthenticationError),
        (402, said("Insufficient Balance"), ModelRequestError),
        (404, said("The model `x` does not exist"), ModelUnavailableError),
        (408, said("slow"), ModelTimeoutError),
        (422, {"detail": [{"loc": ["body"], "msg": "Extra inputs are not permitted"}]}, ModelRequestError),
        (429, said("Rate limit reached"), ModelRateLimitError),
        (429, said("You exceeded your current quota", code="insufficient_quota"), ModelRequestError),
        (500, said("boom"), ModelOverloadedError),
        (502, b"<html>Bad gateway</html>", ModelOverloadedError),
        (503, b"", ModelOverloadedError),
        (504, b"", ModelTimeoutError),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelOverloadedError),
        (404, b"<html>Not found</html>", ModelProtocolError),
        (405, b"", ModelProtocolError),
        (301, b"", ModelProtocolError),
    ],
)
def test_each_status_is_one_kind_of_error(status: int, body: Any, kind: type[ModelError]) -> None:
    error = failure(status, body)
    assert type(error) is kind
    assert error.status == status


@pytest.mark.parametrize(
    "body",
    [
        said("no such tool"),
        {"error": "no such tool"},
        {"message": "no such tool"},
        {"detail": "no such tool"},
        {"detail": [{"msg": "no such tool"}]},
        [{"error": {"message": "no such tool", "status": "INVALID_ARGUMENT"}}],
        {"object": "error", "message": {"detail": [{"msg": "no such tool"}]}},
    ],
    ids=str,
)
def test_the_servers_words_are_found_in_every_form(body: Any) -> None:
    assert "no such tool" in str(failure(400, body))


def test_the_error_names_the_request_for_the_servers_support() -> None:
    assert failure(500, said("x"), {"x-request-id": "req_7"}).request_id == "req_7"


def test_where_a_server_redirects_to_is_told() -> None:
    assert "https://there/v1" in str(failure(308, b"", {"location": "https://there/v1"}))


def test_a_key_that_the_server_repeats_is_not_in_the_text() -> None:
    assert "sk-secret" not in str(failure(401, said("Incorrect API key provided: sk-secret"), key="sk-secret"))
    assert "sk-secret" not in str(failure_in_stream("bad sk-secret", "the server", "", "sk-secret"))


def test_long_words_are_cut() -> None:
    assert len(str(failure(400, said("x" * 10_000)))) < 700


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_a_wait_is_read_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_wait_is_read_from_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    seconds = retry_after({"retry-after": soon})
    assert seconds is not None
    assert 25 < seconds <= 30
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 502, "message": "worker limit"}, ModelOverloadedError),
        ({"code": "rate_limit_exceeded", "message": "worker limit"}, ModelRateLimitError),
        ({"type": "overloaded_error", "message": "worker limit"}, ModelOverloadedError),
        ({"message": "worker limit"}, ModelStreamError),
        ("worker limit", ModelStreamError),
    ],
)
def test_an_error_inside_a_reply_is_of_its_kind(error: Any, kind: type[ModelError]) -> None:
    made = failure_in_stream(error, "the server", "")
    assert type(made) is kind
    assert "worker limit" in str(made)


def test_after_some_text_an_error_is_a_broken_stream_that_keeps_the_text() -> None:
    made = failure_in_stream({"code": 429, "message": "slow down"}, "the server", "Par")
    assert type(made) is ModelStreamError
    assert made.partial == "Par"


@pytest.mark.parametrize("words", ["the call does not match", "Token limit reached"])
def test_what_breaks_a_reply_off_that_had_begun_is_not_the_request(words: str) -> None:
    error = {"code": "tool_use_failed", "message": words, "status_code": 400}
    made = failure_in_stream(error, "the server", "", begun=True)
    assert type(made) is ModelStreamError
    assert made.status == 400
    assert words in str(made)
    assert isinstance(failure_in_stream(error, "the server", ""), ModelRequestError)
    assert isinstance(failure_in_stream({"code": 503, "message": words}, "s", "", begun=True), ModelOverloadedError)


@given(st.binary(), st.integers(201, 599))
def test_any_reply_is_some_error(body: bytes, status: int) -> None:
    assert isinstance(failure(status, body), ModelError)
