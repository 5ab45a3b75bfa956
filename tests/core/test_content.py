"""Content in parts: its text for who reads only text, its bound, and what counts as a part."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, FilePart, ImagePart, TextPart, ToolCall, ToolDef
from toolturn.content import as_text, bounded, content_of, data_of, may_hold_parts, part_of, placeholder
from toolturn.dialects.grammar import fold, fold_result
from toolturn.messages import text_of

PNG = ImagePart("data:image/png;base64,iVBORw0KGgo=")
NAMED = "[image image/png, 8 bytes]"


@given(st.binary(max_size=20), st.booleans())
def test_the_size_of_an_address_with_data_is_that_of_its_data(data: bytes, padded: bool) -> None:
    text = b64encode(data).decode()
    assert data_of(f"data:a/b;base64,{text if padded else text.rstrip('=')}") == ("a/b", len(data))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("data:,a%20b", ("text/plain", 3)),
        ("data:;base64,AAAA", ("text/plain", 3)),
        ("DATA:Image/PNG;charset=x;BASE64,AAAA", ("image/png", 3)),
        ("data:image/png;base64", None),
        ("https://x.org/data:,", None),
        ("", None),
    ],
)
def test_an_address_is_read_as_it_may_be_written(url: str, expected: Any) -> None:
    assert data_of(url) == expected


def test_an_image_is_named_by_kind_and_size_and_a_link_by_its_address() -> None:
    assert placeholder(PNG) == NAMED
    assert placeholder(PNG, "too large") == "[image image/png, 8 bytes, too large]"
    assert placeholder(ImagePart("https://x.org/a.png")) == "[image https://x.org/a.png]"
    assert len(placeholder(FilePart("https://x.org/" + "a" * 10_000, "n" * 10_000))) < 1100
    assert placeholder(FilePart("data:audio/wav;base64,AAAA")) == "[audio audio/wav, 3 bytes]"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", "text"),
        (None, ""),
        ([], ""),
        ([PNG], NAMED),
        ([TextPart("a"), TextPart("b")], "ab"),
        ([TextPart("a"), PNG, PNG, TextPart("b")], f"a\n{NAMED}\n{NAMED}\nb"),
        ([TextPart("a\n"), PNG, TextPart("\nb")], f"a\n{NAMED}\nb"),
        ([TextPart(""), PNG, TextPart("")], NAMED),
        ([{"type": "image_url", "image_url": {"url": PNG.url}}, {"type": "text", "text": "a"}], f"{NAMED}\na"),
        ([{"type": "refusal", "refusal": "no"}, "a", 7, None], "a"),
    ],
)
def test_the_text_of_content_names_what_is_no_text_on_lines_of_its_own(content: Any, expected: str) -> None:
    assert as_text(content) == expected


def test_a_model_that_reads_text_only_is_told_of_images() -> None:
    messages = (
        ChatMessage("user", [TextPart("look"), PNG]),
        ChatMessage("assistant", "", [ToolCall("1", "draw", "{}")]),
        ChatMessage("tool", [TextPart("a map"), PNG], None, "1"),
    )
    folded = fold(messages, (ToolDef("draw", "Draws.", {"type": "object"}),))
    assert folded[1].content == f"look\n{NAMED}"
    assert folded[3].content == f"<tool_response>\na map\n{NAMED}\n</tool_response>"
    assert fold_result(messages)[1].content == f"Question: look\n{NAMED}\nTool result: a map\n{NAMED}"


_parts = st.builds(TextPart, st.text(max_size=300)) | st.sampled_from([PNG, FilePart("https://x.org/a")])


@given(st.text(max_size=600) | st.lists(_parts, max_size=5), st.integers(256, 600))
def test_bounded_content_is_short_enough_and_loses_no_image(content: Any, limit: int) -> None:
    made = bounded(content, limit)
    assert len(text_of(made).encode()) <= limit
    if isinstance(content, str):
        assert isinstance(made, str)
        return
    assert [part for part in made if not isinstance(part, TextPart)] == [
        p for p in content if not isinstance(p, TextPart)
    ]
    if len(text_of(content).encode("utf-8", "replace")) <= limit:
        assert text_of(made) == text_of(content).encode("utf-8", "replace").decode()
        assert len(made) == len(content)
    assert bounded(content, None) == bounded(content, 10**6)


@pytest.mark.parametrize("value", [None, 7, b"x", {"a": 1}, [7], [PNG, "x"], [ImagePart(None)], {PNG}], ids=repr)  # type: ignore[arg-type]
def test_what_is_no_content_is_none(value: Any) -> None:
    assert content_of(value) is None


@pytest.mark.parametrize("value", [{}, {"type": "image_url"}, {"type": "text", "text": 7}, {"type": "file", "file": 1}])
def test_a_dictionary_that_only_begins_like_a_part_is_none(value: dict[str, Any]) -> None:
    assert part_of(value) is None


def test_which_types_may_hold_a_part_is_known_before() -> None:
    assert may_hold_parts(ImagePart | None)
    assert may_hold_parts(dict[str, list[FilePart]])
    assert not may_hold_parts(dict[str, list[TextPart]])
    assert not may_hold_parts(Any)
