"""A state that travels through a client: what was changed, has expired, or is somebody else's is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ToolLoopError, Turn
from toolturn.codec import error_to_json
from toolturn.signing import SignatureError, sign, verify

from .parts import asks, begun, call, error_of, reply

KEY = "a secret of a server"
OTHER = b"the secret of another"


def stopped() -> Turn:
    turn = reply(begun(), asks(call("a")))
    turn.cancel()
    return turn


STATE = stopped().to_json()


@pytest.mark.parametrize("form", [lambda: stopped(), lambda: STATE, lambda: error_of(stopped())], ids="tse")
def test_what_was_signed_comes_back(form: Any) -> None:
    text = sign(form(), KEY, expires_in=60, now=1000.0)
    assert verify(text, KEY, now=1059.9) == STATE


def test_the_json_of_an_error_can_be_signed_too() -> None:
    text = error_to_json(error_of(stopped()))
    assert verify(sign(text, KEY, expires_in=60), KEY) == text


def test_it_is_one_line_fit_for_an_address() -> None:
    text = sign(STATE, KEY, expires_in=60)
    assert text.replace("-", "").replace("_", "").replace(".", "").isalnum()


def test_it_ends() -> None:
    text = sign(STATE, KEY, expires_in=60, now=1000.0)
    with pytest.raises(SignatureError, match="expired"):
        verify(text, KEY, now=1060.0)
    with pytest.raises(SignatureError, match="expired"):
        verify(text, KEY)


def test_it_is_bound_to_whom_it_was_given() -> None:
    text = sign(STATE, KEY, expires_in=60, bound_to="ann")
    assert verify(text, KEY, bound_to="ann") == STATE
    for other in ("bob", ""):
        with pytest.raises(SignatureError, match="somebody else"):
            verify(text, KEY, bound_to=other)


def test_another_key_is_refused_and_of_several_any_may_be_right() -> None:
    text = sign(STATE, KEY, expires_in=60)
    with pytest.raises(SignatureError, match="not signed with this key"):
        verify(text, OTHER)
    assert verify(text, [OTHER, KEY]) == STATE


@given(st.integers(0, 10_000), st.characters(min_codepoint=33, max_codepoint=126))
def test_a_changed_character_is_noticed(place: int, other: str) -> None:
    text = sign(STATE, KEY, expires_in=60, now=0.0)
    place %= len(text)
    changed = text[:place] + other + text[place + 1 :]
    try:
        assert verify(changed, KEY, now=0.0) == STATE
    except SignatureError:
        assert changed != text


@given(st.text(max_size=40) | st.text(alphabet="abc.-_=", max_size=40))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(SignatureError):
        verify(text, KEY)


def test_a_payload_without_its_signature_is_refused() -> None:
    payload = base64.urlsafe_b64encode(json.dumps([STATE, "", 1e12]).encode()).decode().rstrip("=")
    for text in (payload, payload + ".", payload + "." + payload):
        with pytest.raises(SignatureError):
            verify(text, KEY)


@pytest.mark.parametrize("short", ["", "short", b"fifteen bytes..", [], ["a secret of a server", "short"]], ids=str)
def test_a_key_that_is_too_short_is_refused(short: Any) -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        verify(sign(STATE, KEY, expires_in=60), short)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_every_signature_has_an_end(seconds: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        sign(STATE, KEY, expires_in=seconds)


def test_what_is_no_state_is_not_signed() -> None:
    with pytest.raises(ValueError, match="no saved turn or error"):
        sign('{"admin": true}', KEY, expires_in=60)
    with pytest.raises(ValueError, match="carries no state"):
        sign(ToolLoopError("no", messages=(), tool_calls=(), iterations=0), KEY, expires_in=60)
