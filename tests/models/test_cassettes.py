"""Recorded traffic of model providers means to our wire what it says, and we ask as it was asked.

Skipped where the recordings are not at hand; see :mod:`tests.models.cassettes`.
"""

from __future__ import annotations

import pytest

from toolturn.messages import ChatResponse

from .cassette_replies import EXPLAINED as REPLIES_EXPLAINED
from .cassette_requests import EXPLAINED as REQUESTS_EXPLAINED
from .cassettes import (
    CUTS,
    KEY,
    PAGE,
    Cut,
    Exchange,
    differences_of_reply,
    differences_of_request,
    exchanges,
    find,
    page,
    played,
    reading,
)

pytestmark = pytest.mark.skipif(find() is None, reason="the recordings are not here (TOOLTURN_CASSETTES)")
ALL = exchanges()
STREAMS = [one for one in ALL if one.streams]


def name_of(exchange: Exchange) -> str:
    return exchange.name


@pytest.mark.parametrize("exchange", ALL, ids=name_of)
def test_a_recorded_reply_says_what_plain_code_reads_in_it(exchange: Exchange) -> None:
    assert [found for found in differences_of_reply(exchange) if found not in REPLIES_EXPLAINED] == []


@pytest.mark.parametrize("exchange", ALL, ids=name_of)
def test_only_what_is_explained_is_mended(exchange: Exchange) -> None:
    outcome = played(exchange).outcome
    if isinstance(outcome, ChatResponse):
        mends = {"id made", "no arguments"} & set(differences_of_reply(exchange))
        assert len(outcome.repairs) == len(mends), outcome.repairs


@pytest.mark.parametrize("exchange", STREAMS, ids=name_of)
def test_what_people_see_of_a_stream_is_its_text_and_its_thoughts(exchange: Exchange) -> None:
    shown = played(exchange)
    said = reading(exchange)
    assert "".join(delta.text for delta in shown.deltas if delta.kind == "text") == said.text
    assert "".join(delta.text for delta in shown.deltas if delta.kind == "reasoning") == said.reasoning


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("exchange", STREAMS, ids=name_of)
def test_a_stream_in_any_pieces_is_the_same(exchange: Exchange, cut: Cut) -> None:
    whole = played(exchange)
    cut_up = played(exchange, cut)
    assert cut_up.pieces > 1 or len(exchange.body) <= 4096
    if isinstance(whole.outcome, ChatResponse):
        assert cut_up.outcome == whole.outcome
    else:
        assert type(cut_up.outcome) is type(whole.outcome)
        assert str(cut_up.outcome) == str(whole.outcome)
    for kind in ("text", "reasoning"):
        seen = ["".join(one.text for one in some.deltas if one.kind == kind) for some in (whole, cut_up)]
        assert seen[0] == seen[1]


@pytest.mark.parametrize("exchange", ALL, ids=name_of)
def test_a_recorded_request_is_made_again_but_for_what_is_explained(exchange: Exchange) -> None:
    assert [found for found in differences_of_request(exchange) if found not in REQUESTS_EXPLAINED] == []


@pytest.mark.parametrize("exchange", ALL, ids=name_of)
def test_the_key_stands_in_the_header_that_the_server_reads_and_nowhere_else(exchange: Exchange) -> None:
    request = played(exchange).request
    where = "api-key" if exchange.provider == "azure" else "authorization"
    holders = [name for name, value in request.headers.items() if KEY in value]
    assert holders == ([] if exchange.url.startswith("http:") else [where])
    assert KEY.encode() not in request.body
    assert KEY not in request.url


def test_the_recordings_are_all_there() -> None:
    assert len(ALL) >= 118
    assert len(STREAMS) >= 27
    assert len({one.provider for one in ALL}) >= 13


def test_every_explanation_is_needed() -> None:
    assert {kind for one in ALL for kind in differences_of_reply(one)} == set(REPLIES_EXPLAINED)
    assert {kind for one in ALL for kind in differences_of_request(one)} == set(REQUESTS_EXPLAINED)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "python -m tests.models.cassettes"
