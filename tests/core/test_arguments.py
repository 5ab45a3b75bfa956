"""Argument text into an object, strictly: what is checked is what runs."""

from __future__ import annotations

import datetime
import json
import sys
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolturn.arguments import MAX_ARGUMENT_CHARS, MAX_DEPTH, describe_faults, parse_arguments
from toolturn.errors import InvalidToolArguments

SECRET = "s3cret"

objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(objects, st.booleans())
def test_every_json_object_is_read_as_it_is(value: dict[str, Any], ascii_only: bool) -> None:
    assert parse_arguments(json.dumps(value, ensure_ascii=ascii_only)) == value


@given(st.text() | st.text(alphabet='{}[]",:0123456789e.-\\u NaIfity"', max_size=40))
def test_no_text_raises_anything_but_invalid_arguments(text: str) -> None:
    try:
        value = parse_arguments(text)
    except InvalidToolArguments as exc:
        refusal = str(exc)
    else:
        assert type(value) is dict
        return
    assert refusal
    assert "\n" not in refusal


def refused(text: Any) -> str:
    with pytest.raises(InvalidToolArguments) as caught:
        parse_arguments(text)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("value", [None, 7, {}, {"a": 1}, b"{}", ["{}"]])
def test_what_is_no_text_is_refused(value: Any) -> None:
    assert refused(value) == "arguments must be JSON text"


@pytest.mark.parametrize("text", ["", " ", "{", f'{{"a": {SECRET}}}', f"{SECRET}", '{"a":1} {"b":2}', "{'a':1}", "{,}"])
def test_what_is_no_json_is_refused_and_the_place_named(text: str) -> None:
    message = refused(text)
    assert message.startswith("arguments must be valid JSON: ")
    assert "line 1 column" in message


@pytest.mark.parametrize("text", ["null", "[]", "7", '"{}"', "true", '[{"a":1}]'])
def test_what_is_no_object_is_refused(text: str) -> None:
    assert refused(text) == "arguments must be a JSON object"


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"a":1,"\\u0061":1}', '{"x":[{"b":1,"b":1}]}'])
def test_a_repeated_key_is_refused(text: str) -> None:
    assert refused(text) == "arguments must not repeat a key"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(word: str) -> None:
    assert refused(f'{{"a":[{word}]}}') == "arguments must not contain NaN or Infinity"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400 + ".0"])
def test_a_number_beyond_all_floats_is_refused(number: str) -> None:
    assert refused(f'{{"a":{number}}}') == "arguments contain a number that is too large"


def test_a_number_of_too_many_digits_is_refused() -> None:
    assert refused('{"a":' + "9" * 5000 + "}") == "arguments contain a number with too many digits"
    assert parse_arguments('{"a":' + "9" * 4000 + "}") == {"a": int("9" * 4000)}


def deep(levels: int) -> str:
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def test_deep_nesting_is_refused_at_its_bound() -> None:
    parse_arguments(deep(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 1000, 100_000):
        assert refused(deep(levels)) == f"arguments must not be nested deeper than {MAX_DEPTH} levels"
    assert refused("[" * 100_000) == f"arguments must not be nested deeper than {MAX_DEPTH} levels"


def test_a_stack_that_is_nearly_full_is_no_reason_for_another_exception() -> None:
    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(used + 40)
    try:
        outcome: Any = parse_arguments(deep(MAX_DEPTH - 4))
    except InvalidToolArguments as exc:
        outcome = str(exc)
    finally:
        sys.setrecursionlimit(limit)
    assert outcome == "arguments are nested too deeply" or list(outcome) == ["a"]


def test_many_brackets_are_no_deep_nesting() -> None:
    wide = json.dumps({"rows": [{"cells": []}] * 200})
    assert parse_arguments(wide)["rows"][199] == {"cells": []}
    quoted = json.dumps({"text": '[{"\\' * 100})
    assert parse_arguments(quoted)["text"].count("[") == 100


def test_long_arguments_are_refused_at_their_bound() -> None:
    frame = len('{"a":""}')
    fits = '{"a":"' + "x" * (MAX_ARGUMENT_CHARS - frame) + '"}'
    assert len(parse_arguments(fits)["a"]) == MAX_ARGUMENT_CHARS - frame
    assert "must not be longer than 1,000,000 characters" in refused(fits.replace("x", "xx", 1))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"\\ud800"}',
        '{"a":"\\uDFFF"}',
        '{"\\ud800":1}',
        '{"a":[{"b":"\\ud800"}]}',
        '{"a":"\ud800"}',
        '{"\ud800":1}',
    ],
)
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(text: str) -> None:
    assert "half of a surrogate pair" in refused(text)


def test_a_whole_surrogate_pair_is_text() -> None:
    assert parse_arguments('{"a":"\\ud83d\\ude00","\\uD83D\\uDE00":["😀",{"ü":null}]}') == {
        "a": "😀",
        "😀": ["😀", {"ü": None}],
    }


# --- what a model is told of the faults ----------------------------------------------


class Small(BaseModel):
    kind: Literal["small"]


class Large(BaseModel):
    kind: Literal["large"]


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    item: str = Field(min_length=3)
    quantity: int = Field(ge=1)
    when: datetime.date | None = None
    size: Annotated[Small | Large, Field(discriminator="kind")] | None = None


def faults(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(fields)
    return describe_faults(caught.value)


def test_each_fault_names_its_field_and_what_is_wrong() -> None:
    text = faults(item="x", quantity=0)
    assert text.startswith("item: String should have at least 3 characters; quantity: Input should be greater")


def test_a_missing_field_is_named() -> None:
    assert "quantity: Field required" in faults(item="bread")


@pytest.mark.parametrize(
    "fields",
    [
        {"item": [SECRET], "quantity": 1},
        {"item": "bread", "quantity": SECRET},
        {"item": "bread", "quantity": 1, "when": SECRET},
        {"item": "bread", "quantity": 1, "size": {"kind": SECRET}},
        {"item": "bread", "quantity": 1, "more": SECRET},
    ],
    ids=["wrong type", "no number", "no date", "no such kind", "made up"],
)
def test_the_values_themselves_are_left_out(fields: dict[str, Any]) -> None:
    assert SECRET not in faults(**fields)


def test_declared_fields_come_before_keys_the_model_made_up() -> None:
    text = faults(**{f"made_up_{n}": 1 for n in range(30)})
    assert text.startswith("item: Field required; quantity: Field required; made_up_0: ")
    assert text.endswith("; and 12 more")


class Basket(BaseModel):
    first: Order
    owner: str


def test_keys_made_up_deep_inside_do_not_crowd_out_a_missing_field() -> None:
    order = {"item": "bread", "quantity": 1, **{f"made_up_{n}": 1 for n in range(30)}}
    with pytest.raises(ValidationError) as caught:
        Basket.model_validate({"first": order})
    assert describe_faults(caught.value).startswith("owner: Field required; first.made_up_0: ")


def test_long_names_and_messages_are_cut() -> None:
    text = faults(item="bread", quantity=1, **{"n" * 500: 1})
    assert len(text) < 300
    assert "…" in text


def test_a_fault_of_the_whole_is_told_as_one_of_the_arguments() -> None:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(7)
    assert describe_faults(caught.value).startswith("arguments: ")
