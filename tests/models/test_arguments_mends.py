"""Argument text that is no strict JSON: mended where it has one meaning, refused everywhere else."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import sys
import time
from collections import UserDict
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ToolCall
from toolturn.arguments import (
    MAX_ARGUMENT_CHARS,
    MAX_DEPTH,
    arguments_of,
    keep_arguments,
    mend_arguments,
    parse_arguments,
    read_json_at,
    whole_characters,
)
from toolturn.errors import InvalidToolArguments

SECRET = "s3cret"


def mended(value: Any) -> tuple[Any, list[str]]:
    found, repairs = mend_arguments(value)
    assert {repair.kind for repair in repairs} <= {"arguments"}
    return found, [repair.detail for repair in repairs]


def refused(value: Any) -> str:
    with pytest.raises(InvalidToolArguments) as caught:
        mend_arguments(value)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 200
    return str(caught.value)


@pytest.mark.parametrize("text", ["{}", ' {"a": 1}\n', '{"a":{"b":[1.5,"é",null,true]}}'])
def test_strict_json_is_read_without_a_mend(text: str) -> None:
    assert mended(text) == (json.loads(text), [])


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (None, "missing arguments were read as none"),
        ("", "blank arguments were read as none"),
        (" \n\t", "blank arguments were read as none"),
        ("null", "null was read as no arguments"),
        (" null ", "null was read as no arguments"),
    ],
)
def test_nothing_is_an_empty_object(value: Any, note: str) -> None:
    assert mended(value) == ({}, [note])


def test_quoted_nothing_is_an_empty_object_too() -> None:
    for text in ('"null"', '""', '"  "'):
        found, notes = mended(text)
        assert found == {}
        assert notes[0] == "a JSON string was decoded again"


@pytest.mark.parametrize("text", ['{"t":"a\nb"}', '{"t":"a\tb"}', '{"t":"a\r\n\x01b"}', '{"t\n":1}'])
def test_control_characters_in_strings_are_kept(text: str) -> None:
    assert mended(text) == (json.loads(text, strict=False), ["control characters in a string were accepted"])


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        '```json {"a": 1} ```',
        '```{"a": 1}```',
        'Here you go:\n```json\n{"a": 1}\n```',
        '```json\n{"a": 1}\n```\nLet\'s see.',
        '  ```JSON\r\n{"a": 1}\r\n```  ',
        '```json\n{"a": 1}',
        "```python\n{'a': 1}\n```",
        '```json\n{"a": 1,}\n```',
    ],
)
def test_one_fenced_object_is_taken_out(text: str) -> None:
    found, notes = mended(text)
    assert found == {"a": 1}
    assert "a fenced object was taken out of its fence" in notes


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```',
        '{"b": 2}\n```json\n{"a": 1}\n```',
        '```json\n{"a": 1}\n```\n[3]',
        '{"text": "```json\n{"a": 1}\n```"}',
        '{"text": "see ```json {\\"a\\": 1} ``` and',
        '"see ```json {} ```',
        "```json\n```",
        "```",
        "```json\nno object\n```",
        "```json\n[1]\n```",
    ],
)
def test_a_fence_that_is_not_the_only_thing_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1,}', {"a": 1}),
        ('{"a":1 , \n}', {"a": 1}),
        ('{"a":[1,2,],"b":{"c":3,},}', {"a": [1, 2], "b": {"c": 3}}),
        ('{"a":",}",}', {"a": ",}"}),
        ('{"a":"\\",]",}', {"a": '",]'}),
        ('{"a":"x\ny",}', {"a": "x\ny"}),
    ],
)
def test_a_comma_before_a_closing_bracket_is_removed(text: str, value: Any) -> None:
    assert mended(text) == (value, ["a comma before a closing bracket was removed"])


@pytest.mark.parametrize("text", ["{,}", '{"a":1,,}', '{"a":[,]}', '{,"a":1}', '{"a":,}', '{"a":1},', ",", "[,]"])
def test_other_commas_are_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'x', 'b': True, 'c': None, 'd': False}", {"a": "x", "b": True, "c": None, "d": False}),
        ("{'a': \"it's\"}", {"a": "it's"}),
        ("{'a': 'say \"hi\"'}", {"a": 'say "hi"'}),
        ('{"on": True}', {"on": True}),
        ("{'a': [1, -2, 3.5, 1e3,], 'b': {'c': ()},}", {"a": [1, -2, 3.5, 1000.0], "b": {"c": []}}),
        ("{'at': (3, 4), 'one': (5,)}", {"at": [3, 4], "one": [5]}),
        ("{'t': '''two\nlines'''}", {"t": "two\nlines"}),
        ("{'t': '{[(,'}", {"t": "{[(,"}),
        ("{'name': 'True', 'x': 'None'}", {"name": "True", "x": "None"}),
        ("{'é': '日本'}", {"é": "日本"}),
    ],
)
def test_a_python_literal_is_read(text: str, value: Any) -> None:
    assert mended(text) == (value, ["a Python literal was read as JSON"])


@pytest.mark.parametrize(
    "text",
    [
        "{'path': 'C:\\x41'}",  # a backslash means something else in each language
        "{'a': 'it\\'s'}",
        "{'a': it's}",
        "{'a': 1, 'a': 2}",
        "{1: 'a'}",
        "{'a'}",
        "{'a': {1, 2}}",
        "{'a': b'x'}",
        "{'a': f'{x}'}",
        "{'a': 'b' 'c'}",
        "{'a': (1)}",
        "{'a': 1 + 2}",
        "{'a': 1_000}",
        "{'a': 0x10}",
        "{'a': nan}",
        "{'a': float('nan')}",
        "{'a': open('x')}",
        "{'a': true}",
        "{'a': ...}",
        "dict(a=1)",
        "{a: 1}",
        "['a']",
        "'a'",
        "True",
        "()",
        "{'a': 1",
        "{'a': 'x}",
        "__import__('os').getcwd()",
        "{'a': -True}",
        "{'a': 1j}",
    ],
)
def test_what_is_no_plain_python_literal_of_a_dict_is_refused(text: str) -> None:
    refused(text)


def test_python_none_is_nothing_and_python_text_is_decoded_again() -> None:
    assert mended("None")[0] == {}
    assert mended("'{\"a\": 1}'")[0] == {"a": 1}


@pytest.mark.parametrize(
    "text", ['{"q":"x"}{"q":"x"}', '{"q":"x"}\n{"q": "x"}', '{"q":"x"}' * 5, '{"a":1,"b":2}{"b":2,"a":1}', "{}{}"]
)
def test_copies_of_one_object_are_one(text: str) -> None:
    found, notes = mended(text)
    assert found == json.JSONDecoder().raw_decode(text)[0]
    assert notes == ["copies of one object were read as one"]


@pytest.mark.parametrize(
    "text",
    [
        '{"to":"ann"}{"to":"bob"}',
        '{}{"q":"x"}',
        '{"q":"x"}{}',
        '{"a":1}{"a":1.0}',
        '{"a":1}{"a":true}',
        '{"a":0}{"a":false}',
        '{"a":1}{"a":1}{"a":2}',
    ],
)
def test_different_objects_are_refused_with_what_to_do(text: str) -> None:
    assert refused(text) == "arguments are several different objects; make one call for each"


@pytest.mark.parametrize(
    "text", ['{"a":1}{"a":1', '{"a":1}x', '{"a":1}[]', '{"a":1},{"a":1}', "[1][1]", '{"a":1}' * 101]
)
def test_half_copies_and_other_rests_are_refused(text: str) -> None:
    assert "Extra data" in refused(text) or text.startswith("[")


def test_a_json_string_is_decoded_again_three_times_at_most() -> None:
    text = '{"room":"attic"}'
    for layers in range(4):
        assert mended(text) == ({"room": "attic"}, ["a JSON string was decoded again"] * layers)
        text = json.dumps(text)
    refused(text)


def test_what_stands_in_a_json_string_is_mended_too() -> None:
    assert mended(json.dumps("{'a': 1}"))[0] == {"a": 1}
    assert mended(json.dumps('{"a": 1,}'))[0] == {"a": 1}
    refused(json.dumps("just text"))
    refused(json.dumps('{"a":1,"a":2}'))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":NaN}',
        '{"a":1,"a":2}',
        '{"a":-Infinity,}',
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        "{'a': " + "9" * 5000 + "}",
        '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
        "{'a':" * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
        '{"a":"' + "x" * MAX_ARGUMENT_CHARS + '"}',
        '[{"a":1}]',
        "[]",
        "7",
        "true",
        f'{{"a": {SECRET}}}',
        f"{SECRET}",
        '{"path":"a.txt","text":"unfin',
        '{"a":1',
    ],
)
def test_what_is_refused_strictly_for_safety_or_has_no_meaning_stays_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("text", ['{"a":"unfin', '{"a":1', '{"a":', "{", '{"a":[1,2', '"{\\"a'])
def test_text_that_ends_too_early_is_said_to_be_cut_off(text: str) -> None:
    assert refused(text).endswith("the text seems to be cut off")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"label":"ok \\ud83d end"}', {"label": "ok \ufffd end"}),
        ('{"a":"\ud83d\ude00"}', {"a": "\U0001f600"}),
        ('{"\\udc00":["\\ud800\\ud800"]}', {"\ufffd": ["\ufffd\ufffd"]}),
        ('{"a":"\\ud83d\\ude00 \\ud83d"}', {"a": "\U0001f600 \ufffd"}),
    ],
)
def test_half_a_surrogate_pair_is_replaced(text: str, value: Any) -> None:
    found, notes = mended(text)
    assert found == value
    assert notes == ["half a surrogate pair was replaced by U+FFFD"]
    json.dumps(found, ensure_ascii=False).encode()


def test_keys_that_become_equal_by_a_replacement_are_repeated_keys() -> None:
    assert refused('{"\\ud800":1,"\\ud801":2}') == "arguments must not repeat a key"


@pytest.mark.parametrize("value", [{"a": 1}, UserDict({"a": 1}), {}])
def test_a_mapping_is_taken_as_it_is(value: Any) -> None:
    assert mended(value) == (dict(value), [])


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    "value",
    [7, 1.5, True, [], [{"a": 1}], b"{}", object(), {"a": {1, 2}}, {"a": float("nan")}, {"a": object()}, cyclic()],
)
def test_other_forms_are_refused(value: Any) -> None:
    refused(value)


def test_the_order_of_keys_and_blanks_in_values_are_kept() -> None:
    found, _ = mended('{"z": "    x = 1\\n", "a": " ",}')
    assert list(found.items()) == [("z", "    x = 1\n"), ("a", " ")]


N = MAX_ARGUMENT_CHARS - 1_000
BOMBS: dict[str, Callable[[], str]] = {
    "commas": lambda: '{"a":[' + "1," * (N // 2) + "]}",
    "only commas": lambda: "," * N,
    "commas and blanks": lambda: "[" + ", " * (N // 2),
    "commas and many blanks": lambda: '{"a":1' + (" " * 999 + ",") * (N // 1000) + "}",
    "escaped quotes": lambda: '"\\' * (N // 2),
    "an escaped end": lambda: '{"a' + '\\"' * (N // 2) + "\\",
    "backslashes": lambda: "\\" * N,
    "copies": lambda: "{}" * (N // 2),
    "unlike copies": lambda: '{"a":1}{"a": 1}' * (N // 15),
    "two large copies": lambda: 2 * ('{"a":"' + "x" * (N // 2 - 10) + '"}'),
    "deep brackets": lambda: "[" * N,
    "deep objects": lambda: '{"a":' * (N // 5),
    "deep in a string": lambda: json.dumps(json.dumps("[" * (N // 10))),
    "single quotes": lambda: "'" * N,
    "triple quotes": lambda: "{'a':'''" + "'" * N,
    "fences": lambda: "```" * (N // 3),
    "open fences": lambda: "```json\n{" * (N // 9),
    "blanks": lambda: "{" + " " * N + "x",
    "digits": lambda: '{"a":' + "9" * N + "}",
    "signs": lambda: "{'a':" + "-" * N + "1}",
    "round brackets": lambda: "(" * N,
    "surrogates": lambda: '{"a":"' + "\ud800" * N + '"}',
    "spread surrogates": lambda: '{"a":"' + "\ud800x" * (N // 2) + '"}',
    "quotes in quotes": lambda: '"' + '\\"' * (N // 2) + '"',
    "repeated keys": lambda: "{" + '"a":1,' * (N // 6) + '"a":1}',
    "newlines": lambda: '{"a":"' + "\n" * N + '",}',
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_megabyte_of_anything_takes_a_moment(bomb: Callable[[], str]) -> None:
    text = bomb()
    start = time.process_time()
    with contextlib.suppress(InvalidToolArguments):
        mend_arguments(text)
    assert time.process_time() - start < 3.0  # a fraction of it on an idle machine; quadratic time would be minutes


@pytest.mark.parametrize("levels", [100, 5_000, 100_000])
@pytest.mark.parametrize("piece", ['{"a":', "[", "{'a':", "(", "```{", '{"a":"[', "-"])
def test_no_depth_exhausts_the_stack(piece: str, levels: int) -> None:
    refused(piece * levels)


def test_a_stack_that_is_nearly_full_is_no_reason_for_another_exception() -> None:
    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    limit = sys.getrecursionlimit()
    text = '{"a":' + "[" * 60 + "]" * 60 + ",}"
    sys.setrecursionlimit(used + 45)
    try:
        outcome: Any = mend_arguments(text)[0]
    except InvalidToolArguments as exc:
        outcome = exc
    finally:
        sys.setrecursionlimit(limit)
    assert isinstance(outcome, (dict, InvalidToolArguments))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=4)
almost_json = st.text(alphabet="{}[]()\"':,\\`0123456789.eE+-ntrufalsTFN \n\ud800é", max_size=40)


@given(st.text() | almost_json | st.binary() | json_values)
def test_nothing_raises_anything_but_invalid_arguments(value: Any) -> None:
    with contextlib.suppress(InvalidToolArguments):
        found, _ = mend_arguments(value)
        assert parse_arguments(json.dumps(found)) == found


def is_nothing(text: str) -> bool:
    """Whether a text says in some way that there are no arguments."""
    for word in ("```json", "```", "null", "None"):
        text = text.replace(word, "")
    return not text.strip("\\\"'` {}\t\r\n") and not text.strip("".join(chr(code) for code in range(33)) + "\\\"'`{}")


@given(st.text() | almost_json)
def test_text_never_becomes_an_empty_object(text: str) -> None:
    try:
        found, _ = mend_arguments(text)
    except InvalidToolArguments:
        return
    if found == {} and text.strip():
        assert is_nothing(text)


@given(objects, st.integers(0, 3), st.booleans())
def test_every_object_survives_its_wrappings(value: dict[str, Any], layers: int, fenced: bool) -> None:
    text = json.dumps(value)
    for _ in range(layers):
        text = json.dumps(text)
    if fenced:
        text = f"```json\n{text}\n```"
    assert mend_arguments(text)[0] == value


plain_words = st.text(alphabet="abc '{}[]:,é", max_size=6).filter(lambda word: "'" not in word)
literals = st.dictionaries(
    plain_words,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**6), 10**6) | plain_words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_words, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


@given(literals)
def test_every_plain_python_literal_is_read(value: dict[str, Any]) -> None:
    assert mend_arguments(repr(value))[0] == value


@given(objects)
def test_two_copies_are_one_and_two_different_objects_are_none(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert mend_arguments(text + text)[0] == value
    with pytest.raises(InvalidToolArguments):
        mend_arguments(text + json.dumps({**value, "one more key": 1}))


# --- parsed once -----------------------------------------------------------------------------


def test_kept_arguments_are_handed_out_once_and_then_parsed() -> None:
    call = ToolCall("a", "b", '{"n":1}')
    kept = {"n": 1}
    keep_arguments(call, kept)
    assert arguments_of(call) is kept
    again = arguments_of(call)
    assert again == kept
    assert again is not kept
    assert arguments_of(ToolCall("a", "b", '{"n":2}')) == {"n": 2}


def test_arguments_of_a_call_are_as_strict_as_its_text() -> None:
    with pytest.raises(InvalidToolArguments):
        arguments_of(ToolCall("a", "b", '{"n":1,}'))


def test_an_empty_object_is_kept_as_well() -> None:
    call = ToolCall("a", "b", "{}")
    kept: dict[str, Any] = {}
    keep_arguments(call, kept)
    assert arguments_of(call) is kept


def test_what_is_kept_takes_no_part_in_anything_a_dataclass_does() -> None:
    call, other = ToolCall("a", "b", "{}"), ToolCall("a", "b", "{}")
    kept = {"kept": 1}
    keep_arguments(call, kept)
    assert call == other
    assert hash(call) == hash(other)
    assert "kept" not in repr(call)
    assert [field.name for field in fields(ToolCall)] == ["id", "name", "arguments"]
    for copied in (copy.copy(call), copy.deepcopy(call), pickle.loads(pickle.dumps(call)), replace(call, id="c")):
        assert arguments_of(copied) == {}
    assert arguments_of(call) is kept


# --- the small readers -------------------------------------------------------------------------


def test_json_is_read_where_it_begins() -> None:
    assert read_json_at('x{"a":"}"}y', 1) == ({"a": "}"}, 10)
    assert read_json_at("[1] ", 0) == ([1], 3)
    for text in ("", "x", '{"a":', '{"a":NaN}', '{"a":1,"a":2}', "[" * 100_000, "7", '"a"'):
        assert read_json_at(text, 0) == (None, 0)


def test_whole_text_is_the_same_object() -> None:
    for text in ("", "plain", "é\U0001f600"):
        assert whole_characters(text) is text
    assert whole_characters("\ud83d\ude00\ud83d!") == "\U0001f600\ufffd!"
