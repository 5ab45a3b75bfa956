"""While a reply arrives, people see its text and nothing else of it; at the end they have seen all of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.models.ingest.streamed import ShownText


def shown(*pieces: str, tools: bool = True) -> tuple[str, str]:
    """The text and the thoughts that are shown before the reply ends."""
    filtered = ShownText(tools=tools)
    deltas = [delta for piece in pieces for delta in filtered.feed(piece)]
    text = "".join(delta.text for delta in deltas if delta.kind == "text")
    return text, "".join(delta.text for delta in deltas if delta.kind == "reasoning")


def whole(content: str, *pieces: str, tools: bool = True) -> str:
    filtered = ShownText(tools=tools)
    deltas = [delta for piece in pieces for delta in filtered.feed(piece)] + filtered.rest(content)
    return "".join(delta.text for delta in deltas if delta.kind == "text")


def test_plain_text_is_shown_at_once() -> None:
    filtered = ShownText(tools=True)
    assert [delta.text for piece in ("Hel", "lo ", "you") for delta in filtered.feed(piece)] == ["Hel", "lo ", "you"]


def test_a_marker_that_is_cut_into_pieces_is_never_shown() -> None:
    assert shown("hello <\uff5cDS", "ML\uff5ctool_ca", "lls>...") == ("hello ", "")
    assert shown("hello <tool_", 'call>{"name": "a"}') == ("hello ", "")
    assert shown("hello [TOOL", '_CALLS][{"name"') == ("hello ", "")


def test_what_only_began_like_a_marker_is_shown() -> None:
    assert shown("1 <", " 2") == ("1 < 2", "")
    assert shown("a <to", "p> b") == ("a <top> b", "")


def test_thoughts_are_told_apart_wherever_they_are_cut() -> None:
    assert shown("<thi", "nk>Hm", ".</th", "ink>\n\nYes.") == ("Yes.", "Hm.")


def test_text_after_thoughts_may_hold_further_thoughts() -> None:
    assert shown("<think>a</think>b<think>c</think>d") == ("bd", "ac")


def test_what_seemed_a_call_and_was_none_is_shown_at_the_end() -> None:
    text = "Write <tool_call> to call."
    assert shown(text)[0] == "Write "
    assert whole(text, text) == text


def test_what_was_a_call_is_never_shown() -> None:
    assert whole("Let me see.", 'Let me see.<tool_call>{"name": "a"}</tool_call>') == "Let me see."


@pytest.mark.parametrize("start", ['{"name"', " [{", "```json\n{", "\n{"])
def test_json_alone_is_held_until_the_end_where_tools_were_offered(start: str) -> None:
    text = start + ' "x": 1, "and so on": 2'
    assert shown(text) == ("", "")
    assert whole(text, text) == text.lstrip()
    assert shown(text, tools=False)[0] == text.lstrip()


def test_a_block_of_code_in_another_language_is_shown() -> None:
    assert shown("```py", "thon\nprint()\n```") == ("```python\nprint()\n```", "")


def test_tokens_that_end_a_message_are_not_shown() -> None:
    assert shown("Yes.<|eot", "_id|>") == ("Yes.", "")


@given(st.text(alphabet="ab<>/|[]{}` \ntool_call", max_size=60), st.lists(st.integers(0, 60), max_size=6).map(sorted))
def test_cutting_a_text_anywhere_shows_the_same_in_the_end(text: str, cuts: list[int]) -> None:
    pieces = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
    assert whole(text, *pieces) == whole(text, text) == text.lstrip()


@given(st.text(max_size=60))
def test_nothing_of_a_text_without_markup_is_lost(text: str) -> None:
    assert whole(text, *text, tools=False) == text.lstrip()
