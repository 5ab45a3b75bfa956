"""What a call gave becomes text and parts for the model: every item in order, nothing twice, no base64 in text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, ListToolsResult
from mcp_types.methods import validate_server_result

from toolturn import FilePart, ImagePart, TextPart
from toolturn.content import as_text, content_of
from toolturn.mcp.results import MAX_BINARY, result_content
from toolturn.mcp.wire import mended_page, mended_result
from toolturn.messages import Content

from .support import bad, content, observe, one, run

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
LONG = base64.b64encode(bytes(range(256)) * 20).decode()


def given_by(result: dict[str, Any], fits: bool = False, **options: Any) -> Content:
    """What is made of what a server sent."""
    return result_content(CallToolResult.model_validate(mended_result(result), by_name=False), fits, **options)


def shown(result: dict[str, Any], fits: bool = False) -> str:
    """The text of what a server sent, for a model that reads text only."""
    return as_text(given_by(result, fits))


def text(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


# --- items ------------------------------------------------------------------------------


def test_all_items_are_shown_in_order() -> None:
    items = [
        *text("a"),
        {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "b"}},
        {"type": "resource_link", "uri": "file:///y", "name": "y", "description": "the other one"},
    ]
    assert shown({"content": items, "structuredContent": {"n": 1}}) == (
        "a\n[resource file:///x]\nb\n[link to 'y', file:///y, the other one]"
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, "[image image/png, 8 bytes]"),
        ({"type": "audio", "data": LONG, "mimeType": "audio/wav"}, "[audio audio/wav, 5120 bytes]"),
        (
            {"type": "resource", "resource": {"uri": "demo://x.gz", "mimeType": "application/gzip", "blob": LONG}},
            "[file 'demo://x.gz', application/gzip, 5120 bytes]",
        ),
        (
            {"type": "resource_link", "uri": f"data:image/png;base64,{LONG}", "name": "p"},
            "[link to 'p', data of 5120 bytes]",
        ),
    ],
)
def test_what_is_no_text_is_named_with_type_and_size(item: dict[str, Any], expected: str) -> None:
    assert shown({"content": [*text("here:"), item]}) == f"here:\n{expected}"


def test_images_and_files_are_parts_between_the_texts() -> None:
    blob = {"uri": "demo://x.gz", "mimeType": "application/gzip", "blob": LONG}
    items = [
        *text("a", "b"),
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource", "resource": blob},
        *text("c"),
        {"type": "audio", "data": LONG, "mimeType": "audio/wav"},
    ]
    assert given_by({"content": items}) == [
        TextPart("a\nb"),
        ImagePart(f"data:image/png;base64,{PNG}"),
        FilePart(f"data:application/gzip;base64,{LONG}", "demo://x.gz"),
        TextPart("c"),
        FilePart(f"data:audio/wav;base64,{LONG}"),
    ]


JPEG = base64.b64encode(b"\xff\xd8\xff\xe0 and more").decode()
WEBP = base64.b64encode(b"RIFF\0\0\0\0WEBPVP8 ").decode()


@pytest.mark.parametrize(
    ("data", "kind", "url"),
    [
        (JPEG, "image/png", f"data:image/jpeg;base64,{JPEG}"),
        (WEBP, "", f"data:image/webp;base64,{WEBP}"),
        (PNG, "IMAGE/PNG; charset=binary", f"data:image/png;base64,{PNG}"),
        (PNG, "banana", f"data:image/png;base64,{PNG}"),
        (f"data:image/png;base64,{PNG}", "image/png", f"data:image/png;base64,{PNG}"),
        (f"{PNG[:5]}\n{PNG[5:].rstrip('=')}", "image/png", f"data:image/png;base64,{PNG}"),
        ("PHN2Zz4_", "image/svg+xml", "data:image/svg+xml;base64,PHN2Zz4/"),
        ("AAAA", "image/x weird", "data:application/octet-stream;base64,AAAA"),
    ],
)
def test_an_image_is_what_it_begins_as(data: str, kind: str, url: str) -> None:
    item = {"type": "image", "data": data, "mimeType": kind}
    assert given_by({"content": [item]}) == [ImagePart(url)]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "image", "data": "not base64!", "mimeType": "image/png"}, "broken: its data is no base64"),
        ({"type": "image", "data": "A", "mimeType": "image/png"}, "broken: its data is no base64"),
        ({"type": "image", "data": "é", "mimeType": "image/png"}, "broken: its data is no base64"),
        ({"type": "image", "data": "", "mimeType": "image/png"}, "0 bytes, broken: it is no such image"),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, "3 bytes, broken: it is no such image"),
        ({"type": "image", "data": "AAAA", "mimeType": "banana"}, "3 bytes, broken: it is no such image"),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": "?"}}, "of an unknown type, broken: its data"),
    ],
)
def test_a_broken_image_is_told_of_and_never_sent(item: dict[str, Any], expected: str) -> None:
    made = given_by({"content": [item]})
    assert isinstance(made, str)
    assert expected in made


def test_what_is_too_large_is_named_and_what_fits_beside_it_is_kept() -> None:
    items = [{"type": "image", "data": data, "mimeType": "image/png"} for data in (PNG, f"{PNG[:-1]}A{LONG}", PNG)]
    assert given_by({"content": items}, max_binary=100) == [
        ImagePart(f"data:image/png;base64,{PNG}"),
        TextPart("[image image/png, 5129 bytes, too large to be shown]"),
        ImagePart(f"data:image/png;base64,{PNG}"),
    ]
    assert given_by({"content": items[:1]}, max_binary=7) == "[image image/png, 8 bytes, too large to be shown]"
    assert 4 * MAX_BINARY // 3 == 5_000_000


def test_a_text_that_comes_as_bytes_is_text() -> None:
    blob = base64.b64encode("Grüße".encode()).decode()
    item = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "blob": blob}}
    assert given_by({"content": [item]}) == "[resource file:///a]\nGrüße"
    item["resource"] = {"uri": "file:///a", "mimeType": "text/plain", "blob": "/w=="}
    assert given_by({"content": [item]}) == [FilePart("data:text/plain;base64,/w==", "file:///a")]


def test_parts_reach_the_transcript_and_an_error_names_them() -> None:
    items = [*text("a plot"), {"type": "image", "data": PNG, "mimeType": "image/png"}]
    record = run(_called({"content": items}))
    assert record.message.content == [TextPart("a plot"), ImagePart(f"data:image/png;base64,{PNG}")]
    assert PNG not in str(record)
    record = run(_called({"content": items, "isError": True}))
    assert json.loads(content(record))["detail"] == "a plot\n[image image/png, 8 bytes]"


def test_text_is_what_the_server_wrote_even_if_it_sounds_like_a_failure() -> None:
    record = run(_called({"content": text("missing required parameter: owner"), "isError": False}))
    assert (content(record), record.status) == ("missing required parameter: owner", "ok")


# --- structured content -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "structured", "fits", "expected"),
    [
        ([], {"n": 1, "s": "ü"}, False, '{"n":1,"s":"ü"}'),
        (text(""), {"n": 1}, False, '{"n":1}'),
        (text("one"), {"n": 1}, False, "one"),
        (text('{\n  "n": 1\n}'), {"n": 1}, True, '{"n":1}'),
        (text("one"), {"n": 1}, True, 'one\n{"n":1}'),
        (text("the file\nas it is"), {"content": "the file\nas it is"}, True, "the file\nas it is"),
        (text('{"a": 1}', '{"a": 2}'), {"result": [{"a": 1}, {"a": 2}]}, True, '{"result":[{"a":1},{"a":2}]}'),
    ],
)
def test_structured_content_stands_for_text_that_says_the_same(
    items: list[Any], structured: Any, fits: bool, expected: str
) -> None:
    assert shown({"content": items, "structuredContent": structured}, fits) == expected


def test_structured_content_that_is_the_items_again_adds_nothing() -> None:
    items = [*text("a"), {"type": "image", "data": PNG, "mimeType": "image/png"}]
    made = given_by({"content": items, "structuredContent": {"content": items}}, fits=True)
    assert made == [TextPart("a"), ImagePart(f"data:image/png;base64,{PNG}")]


def test_binary_parts_of_structured_content_are_named_by_size() -> None:
    structured = {
        "content": [{"type": "image", "data": PNG, "mimeType": "image/png"}],
        "thumbnail": LONG,
        "address": f"data:image/png;base64,{LONG}",
    }
    told = json.loads(shown({"content": [], "structuredContent": structured}))
    assert told == {
        "content": [{"type": "image", "data": "[8 bytes]", "mimeType": "image/png"}],
        "thumbnail": "[5120 bytes]",
        "address": "[5120 bytes]",
    }


def test_structured_content_counts_where_it_keeps_the_promise_of_the_tool() -> None:
    async def main() -> None:
        async with one(bad("structured")) as servers:
            for n, expected in ((1, '{"n":1}'), ("no number", "one")):
                result = {"content": text("one" if n != 1 else '{"n": 1}'), "structuredContent": {"n": n}}
                record = await observe(servers.tools, arguments={"text": json.dumps(result)})
                assert (content(record), record.status) == (expected, "ok")
            record = await observe(servers.tools, arguments={"text": json.dumps({"content": text("bare")})})
            assert (content(record), record.status) == ("bare", "ok")

    run(main())


# --- failures ---------------------------------------------------------------------------


async def _called(result: dict[str, Any]) -> Any:
    async with one(bad(f"result:{json.dumps(result)}")) as servers:
        return await observe(servers.tools)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": text("no such city"), "structuredContent": {"code": 7}}, "no such city"),
        ({"content": [], "structuredContent": {"code": "RATE_LIMITED"}}, '{"code":"RATE_LIMITED"}'),
        ({"content": []}, "the tool echo of the MCP server box failed and did not say why"),
    ],
)
def test_a_failure_is_told_by_its_text_then_its_structure_then_its_name(result: dict[str, Any], expected: str) -> None:
    record = run(_called({**result, "isError": True}))
    assert json.loads(content(record)) == {"error": "tool_error", "detail": expected}
    assert record.status == "error"


# --- anything ---------------------------------------------------------------------------

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_types = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "video", ""]) | _json
_item = (
    st.fixed_dictionaries(
        {"type": _types},
        optional=dict.fromkeys(("text", "data", "mimeType", "uri", "name", "resource", "annotations", "_meta"), _json),
    )
    | _json
)
_keys = ("content", "structuredContent", "isError", "_meta", "task", "toolResult")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(_keys, _json) | {"content": st.lists(_item, max_size=4)}))
def test_any_result_becomes_one_of_the_protocol_and_a_text(raw: dict[str, Any]) -> None:
    mended = mended_result(raw)
    validate_server_result("tools/call", "2025-11-25", mended)
    result = CallToolResult.model_validate(mended, by_name=False)
    for fits in (False, True):
        made = result_content(result, fits)
        assert content_of(made) == made
        assert isinstance(as_text(made), str)


_schema = st.fixed_dictionaries(
    {},
    optional={"type": st.sampled_from(["object", "array", ["object", "null"]]) | _json}
    | dict.fromkeys(("properties", "required", "$schema", "$defs"), _json),
)
_odd_keys = ("annotations", "execution", "title", "description", "icons", "_meta")
_tool = (
    st.fixed_dictionaries(
        {},
        optional={"name": st.text(max_size=3) | _json, "inputSchema": _schema | _json, "outputSchema": _schema | _json}
        | dict.fromkeys(_odd_keys, _json),
    )
    | _json
)


@given(st.fixed_dictionaries({}, optional={"tools": st.lists(_tool, max_size=4) | _json, "nextCursor": _json}))
def test_any_page_becomes_one_of_the_protocol(raw: dict[str, Any]) -> None:
    left_out: list[str] = []
    page = mended_page(raw, left_out)
    validate_server_result("tools/list", "2025-11-25", page)
    validate_server_result("tools/list", "2026-07-28", page)
    ListToolsResult.model_validate(page, by_name=False)
    listed = raw.get("tools")
    assert len(page["tools"]) + len(left_out) == (len(listed) if isinstance(listed, list) else 0)
