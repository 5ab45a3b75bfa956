"""Images and files of tool results: shown where a server takes them, named where it does not, never spelled out."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ChatMessage, ChatModel, FilePart, ImagePart, TextPart, ToolCall
from toolturn.messages import Content, ContentPart
from toolturn.models import servers
from toolturn.models.servers import SERVERS, Wishes, server_named
from toolturn.models.wires.openai_chat import OpenAIChat
from toolturn.models.wires.openai_request import EMPTY_RESULT, SHOWN, Encoder

PLAIN = Wishes()
FILES = Wishes(files=True)
TEXT_ONLY = Wishes(images=False)
STRICT_TURNS = Wishes(after_results="assistant")

USER = ChatMessage("user", "go")
PNG = ImagePart("data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n").decode())
PDF = FilePart("data:application/pdf;base64," + b64encode(b"%PDF-1.7").decode(), "a.pdf")


def asking(*names: str) -> ChatMessage:
    return ChatMessage("assistant", "", [ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, 1)])


def result(content: Content, number: int = 1) -> ChatMessage:
    return ChatMessage("tool", content, None, f"c{number}")


def sent(*messages: ChatMessage, wishes: Wishes = PLAIN) -> list[Any]:
    pieces = Encoder(wishes, "https://here", {"do it": "do_it"}).encode(messages)[0]
    return [json.loads(piece) for piece in pieces]


def roles(made: list[Any]) -> list[str]:
    return [message["role"] for message in made]


def words(made: Any) -> list[str]:
    """All that is text in a request."""
    if isinstance(made, dict):
        shown = made.get("type") in ("image_url", "file")
        return [] if shown else [word for value in made.values() for word in words(value)]
    if isinstance(made, list):
        return [word for value in made for word in words(value)]
    return [made] if isinstance(made, str) else []


def test_a_result_is_text_that_says_where_its_image_is_and_the_image_follows_in_a_message_of_the_user() -> None:
    made = sent(USER, asking("draw"), result([TextPart("a map"), PNG, TextPart("of Graz")]))
    assert roles(made) == ["user", "assistant", "tool", "user"]
    assert made[2]["content"] == ("a map\n[image image/png, 8 bytes, shown in the next message of the user]\nof Graz")
    assert made[3]["content"] == [
        {"type": "text", "text": SHOWN},
        {"type": "text", "text": "draw, call c1:"},
        {"type": "image_url", "image_url": {"url": PNG.url}},
    ]


def test_the_images_of_a_batch_come_in_one_message_after_its_last_result_each_behind_its_call() -> None:
    link = ImagePart("https://example.org/a.png")
    batch = [asking("draw", "say", "do it"), result([PNG, link]), result("hi", 2), result([PNG], 3)]
    made = sent(USER, *batch, ChatMessage("assistant", "Nice."))
    assert roles(made) == ["user", "assistant", "tool", "tool", "tool", "user", "assistant"]
    told = [part.get("text") or part["image_url"]["url"] for part in made[5]["content"]]
    assert told == [SHOWN, "draw, call c1:", PNG.url, link.url, "do_it, call c3:", PNG.url]


def test_ids_and_names_are_those_the_server_knows() -> None:
    call = ToolCall("call:1", "do it", "{}")
    made = sent(ChatMessage("assistant", "", [call]), ChatMessage("tool", [PNG], None, "call:1"))
    assert made[2]["content"][1]["text"] == f"do_it, call {made[1]['tool_call_id']}:"
    assert made[1]["tool_call_id"] == made[0]["tool_calls"][0]["id"]


def test_each_request_begins_with_the_whole_of_the_one_before() -> None:
    encoder = Encoder(PLAIN, "https://here", {})
    messages = [USER]
    before: list[bytes] = []
    for number in range(1, 6):
        call = ToolCall(f"c{number}", "draw", "{}")
        messages += [ChatMessage("assistant", "", [call]), result([TextPart("x"), PNG], number)]
        pieces = list(encoder.encode(tuple(messages))[0])
        assert pieces[: len(before)] == before
        assert pieces == list(Encoder(PLAIN, "https://here", {}).encode(tuple(messages))[0])
        before = pieces


def test_an_image_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolturn.models.wires import openai_request

    encoded: list[Any] = []
    to_bytes = openai_request.to_bytes

    def counted(value: Any) -> bytes:
        if isinstance(value, dict) and value.get("type") == "image_url":
            encoded.append(value)
        return to_bytes(value)

    monkeypatch.setattr(openai_request, "to_bytes", counted)
    encoder = Encoder(PLAIN, "https://here", {})
    messages = [USER, asking("draw"), result([PNG])]
    for _ in range(5):
        encoder.encode(tuple(messages))
        messages.append(ChatMessage("assistant", "again"))
        encoder.encode(tuple(messages))
    assert len(encoded) == 1


def test_the_transcript_stays_what_it_was() -> None:
    parts: list[ContentPart] = [TextPart("a map"), PNG]
    message = result(parts)
    sent(USER, asking("draw"), message)
    assert message.content is parts
    assert parts == [TextPart("a map"), PNG]


def test_a_result_that_is_an_image_alone_is_told_of() -> None:
    made = sent(asking("draw"), result([PNG]))
    assert made[1]["content"] == "[image image/png, 8 bytes, shown in the next message of the user]"
    assert sent(asking("draw"), result([]))[1]["content"] == EMPTY_RESULT


def test_a_server_without_images_reads_what_they_are_in_results_and_in_words_of_the_user() -> None:
    look = ChatMessage("user", [TextPart("look"), PNG])
    made = sent(look, asking("draw"), result([TextPart("a map"), PNG]), wishes=TEXT_ONLY)
    assert [message["content"] for message in made] == [
        "look\n[image image/png, 8 bytes]",
        None,
        "a map\n[image image/png, 8 bytes, can not be shown]",
    ]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (ImagePart("data:image/svg+xml;base64,AAAA"), "[image image/svg+xml, 3 bytes, can not be shown]"),
        (ImagePart("data:,x"), "[image text/plain, 1 bytes, can not be shown]"),
        (ImagePart("file:///etc/passwd"), "[image file:///etc/passwd, can not be shown]"),
        (FilePart("data:audio/wav;base64,AAAAAA=="), "[audio audio/wav, 4 bytes, can not be shown]"),
        (FilePart("https://x.org/a.pdf", "a.pdf"), "[file 'a.pdf', https://x.org/a.pdf, can not be shown]"),
        (FilePart("data:text/csv,a%2Cb", "t.csv"), "[file 't.csv', text/csv, 3 bytes, can not be shown]"),
    ],
    ids=repr,
)
def test_what_a_server_would_refuse_is_named(part: ContentPart, named: str) -> None:
    made = sent(asking("draw"), result([part]), wishes=FILES)
    assert [message.get("content") for message in made] == [None, named]


def test_a_pdf_is_shown_where_the_server_takes_files() -> None:
    made = sent(asking("draw"), result([PDF]), wishes=FILES)
    assert made[2]["content"][-1] == {"type": "file", "file": {"file_data": PDF.url, "filename": "a.pdf"}}
    assert sent(asking("draw"), result([PDF]))[1]["content"] == (
        "[file 'a.pdf', application/pdf, 8 bytes, can not be shown]"
    )


# --- servers on which the assistant speaks after results ---------------------------------


def test_where_only_the_assistant_may_speak_after_results_it_does() -> None:
    batch = [asking("draw", "say"), result([PNG]), result("hi", 2)]
    assert roles(sent(USER, *batch, wishes=STRICT_TURNS)) == ["user", "assistant", "tool", "tool", "assistant", "user"]
    stopped = [asking("say"), result("cancelled"), ChatMessage("user", "go on")]
    made = sent(*stopped, wishes=STRICT_TURNS)
    assert roles(made) == ["assistant", "tool", "assistant", "user"]
    assert not made[2].get("tool_calls")
    assert roles(sent(*stopped)) == ["assistant", "tool", "user"]


def test_it_does_so_in_a_growing_transcript_too() -> None:
    encoder = Encoder(STRICT_TURNS, "https://here", {})
    messages = [
        USER,
        asking("say"),
        result("x"),
        USER,
        asking("draw"),
        result([PNG]),
        USER,
        ChatMessage("assistant", "a"),
    ]
    for end in range(1, len(messages) + 1):
        made = [json.loads(piece) for piece in encoder.encode(tuple(messages[:end]))[0]]
        assert made == sent(*messages[:end], wishes=STRICT_TURNS)
        said = roles(made)
        assert ("tool", "user") not in itertools.pairwise(said)


# --- which server takes what --------------------------------------------------------------


def model_of(name: str, **options: Any) -> ChatModel:
    server = server_named(name)
    assert server is not None
    return OpenAIChat("m", base_url=server.base_url, **options)


def test_what_a_server_takes_is_known_and_can_be_corrected() -> None:
    assert model_of("openai").capabilities.images
    assert not model_of("deepseek").capabilities.images
    assert not model_of("openai", wishes={"images": False}).capabilities.images
    assert {server.name for server in SERVERS if server.wishes.files} == {"openai", "openrouter"}
    assert {server.name for server in SERVERS if server.wishes.after_results == "assistant"} == {"mistral"}
    assert servers.UNKNOWN.wishes.images


# --- anything ------------------------------------------------------------------------------

_urls = st.sampled_from(
    [
        PNG.url,
        PDF.url,
        "https://x.org/a.png",
        "data:image/gif;base64,R0lGOD==",
        "data:x",
        "",
        "data:a/b;base64,%%",
        "\ud800",
    ]
)
_parts = (
    st.builds(TextPart, st.text(max_size=20))
    | st.builds(ImagePart, _urls)
    | st.builds(FilePart, _urls, st.text(max_size=5))
)
_contents = st.text(max_size=20) | st.lists(_parts, max_size=4)
_wishes = st.sampled_from([PLAIN, FILES, TEXT_ONLY, STRICT_TURNS])


@given(st.lists(st.lists(_contents, min_size=1, max_size=3), max_size=3), _wishes)
def test_any_results_are_text_and_nothing_is_lost_and_no_base64_is_text(
    batches: list[list[Any]], wishes: Wishes
) -> None:
    messages = [USER]
    encoder = Encoder(wishes, "https://here", {})
    for batch in batches:
        messages.append(asking(*["draw"] * len(batch)))
        messages += [result(content, number) for number, content in enumerate(batch, 1)]
        made = [json.loads(piece) for piece in encoder.encode(tuple(messages))[0]]
        assert made == sent(*messages, wishes=wishes)
        assert all(isinstance(message["content"], str) for message in made if message["role"] == "tool")
        given = [part for message in messages if isinstance(message.content, list) for part in message.content]
        wanted = sum(not isinstance(part, TextPart) for part in given)
        text = "\n".join(words(made))
        shown = sum(len(message["content"]) for message in made if isinstance(message["content"], list))
        shown -= sum(word == SHOWN or word.startswith("draw, call") for word in words(made))
        assert text.count("shown in the next message") == shown
        assert shown + text.count("can not be shown]") == wanted
        assert PNG.url.partition(",")[2] not in text
        assert PDF.url.partition(",")[2] not in text
