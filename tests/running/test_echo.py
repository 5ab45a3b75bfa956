"""An observation about arguments names the field and what is wrong with it, and never repeats the value."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import uuid
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, field_validator, model_validator

from toolturn import Tool, tool, tool_from_schema
from toolturn.tools.tool import ToolInvocationResult

from .support import Number, run

SECRET = "hunter2-hunter2"
LONG = 1000
"""Characters at most of an observation about one bad value."""


class Colour(enum.Enum):
    RED = "red"


class Inner(BaseModel):
    n: int


class Left(BaseModel):
    kind: Literal["left"]


class Right(BaseModel):
    kind: Literal["right"]


class Tree(BaseModel):
    n: int = 0
    children: dict[str, Tree] = {}


FIELDS: dict[str, tuple[Any, Any]] = {
    "int": (int, SECRET),
    "float": (float, SECRET),
    "bool": (bool, SECRET),
    "str": (str, [SECRET]),
    "bytes": (bytes, [SECRET]),
    "decimal": (decimal.Decimal, SECRET),
    "date": (datetime.date, SECRET),
    "datetime": (datetime.datetime, SECRET),
    "time": (datetime.time, SECRET),
    "timedelta": (datetime.timedelta, SECRET),
    "uuid": (uuid.UUID, SECRET),
    "url": (AnyUrl, SECRET),
    "ip": (ipaddress.IPv4Address, SECRET),
    "path": (pathlib.Path, [SECRET]),
    "pattern": (re.Pattern[str], "(" + SECRET),
    "literal": (Literal["red", "blue"], SECRET),
    "enum": (Colour, SECRET),
    "null": (None, SECRET),
    "optional": (int | None, SECRET),
    "union": (int | list[int], SECRET),
    "tagged union": (Annotated[Left | Right, Field(discriminator="kind")], {"kind": SECRET}),
    "list": (list[int], SECRET),
    "list item": (list[int], [1, SECRET]),
    "set": (set[int], [SECRET]),
    "tuple": (tuple[int, str], [SECRET, SECRET]),
    "dictionary value": (dict[str, int], {"a": SECRET}),
    "model": (Inner, SECRET),
    "model field": (Inner, {"n": SECRET}),
    "list of models": (list[Inner], [{"n": 1}, {"n": SECRET}]),
    "regular expression": (Annotated[str, Field(pattern="^a$")], SECRET),
    "too long": (Annotated[str, Field(max_length=3)], SECRET),
    "too short": (Annotated[str, Field(min_length=100)], SECRET),
    "too many": (Annotated[list[str], Field(max_length=1)], [SECRET, SECRET]),
    "too large": (Annotated[int, Field(le=5)], 1122334455),
    "no multiple": (Annotated[int, Field(multiple_of=7)], 1122334455),
}


def _asked(tool: Tool[Any, Any], arguments: Any) -> ToolInvocationResult:
    return run(tool.invoke(json.dumps(arguments)))


def _tool(fields: dict[str, Any], **config: Any) -> Tool[Any, Any]:
    model = type("Request", (BaseModel,), {"__annotations__": fields, "model_config": ConfigDict(**config)})  # type: ignore[typeddict-item]
    return Tool("act", "It acts.", model, None, lambda request: None)


def _checked(result: ToolInvocationResult) -> str:
    assert result.status == "invalid_arguments"
    assert not result.return_direct
    assert len(result.content) < LONG
    assert SECRET not in result.content
    assert "1122334455" not in result.content
    return str(json.loads(str(result.content))["detail"])


@pytest.mark.parametrize(("kind", "value"), FIELDS.values(), ids=FIELDS)
def test_a_bad_value_is_named_by_its_field_and_not_repeated(kind: Any, value: Any) -> None:
    assert _checked(_asked(_tool({"wanted": kind}), {"wanted": value})).startswith("wanted")


@pytest.mark.parametrize(("kind", "value"), FIELDS.values(), ids=FIELDS)
def test_a_bad_value_for_a_function_is_named_by_its_parameter_and_not_repeated(kind: Any, value: Any) -> None:
    def act(wanted: Any) -> None:
        """It acts."""

    act.__annotations__["wanted"] = kind
    assert _checked(_asked(tool(act), {"wanted": value})).startswith("wanted")


SCHEMAS: dict[str, tuple[Any, Any]] = {
    "type": ({"type": "integer"}, SECRET),
    "enum": ({"enum": ["red"]}, SECRET),
    "enum of any type": ({"enum": [1, None, "red", [1], {"a": 1}]}, SECRET),
    "const": ({"const": "red"}, SECRET),
    "pattern": ({"pattern": "^a$"}, SECRET),
    "length": ({"maxLength": 3}, SECRET),
    "maximum": ({"maximum": 3}, 1122334455),
    "multiple": ({"multipleOf": 7}, 1122334455),
    "any": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, SECRET),
    "one": ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, SECRET),
    "not": ({"not": {"type": "string"}}, SECRET),
    "nothing": (False, SECRET),
    "twice": ({"uniqueItems": True}, [SECRET, SECRET]),
    "contains": ({"contains": {"type": "integer"}}, [SECRET]),
    "item": ({"items": {"type": "integer"}}, [1, SECRET]),
    "property": ({"properties": {"a": {"type": "integer"}}}, {"a": SECRET}),
}


@pytest.mark.parametrize(("schema", "value"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_bad_value_for_a_schema_is_named_by_its_property_and_not_repeated(schema: Any, value: Any) -> None:
    made = tool_from_schema(
        "act", "It acts.", {"type": "object", "properties": {"wanted": schema}}, lambda arguments: None
    )
    assert _checked(_asked(made, {"wanted": value})).startswith("wanted")


def test_a_missing_field_is_named() -> None:
    assert _checked(_asked(_tool({"wanted": int}), {})) == "wanted: Field required"


def test_a_place_inside_a_value_is_named_step_by_step() -> None:
    detail = _checked(_asked(_tool({"wanted": list[Inner]}), {"wanted": [{"n": 1}, {"n": SECRET}]}))
    assert detail.startswith("wanted.1.n: ")


def test_a_key_that_was_not_asked_for_is_named() -> None:
    detail = _checked(_asked(_tool({"wanted": int}, extra="forbid"), {"wanted": 1, "invented": SECRET}))
    assert detail == "invented: Extra inputs are not permitted"


def test_fields_that_were_asked_for_are_named_before_keys_that_were_not() -> None:
    invented = {f"invented{number}": SECRET for number in range(50)}
    detail = _checked(_asked(_tool({"wanted": int}, extra="forbid"), {**invented, "wanted": SECRET}))
    assert detail.startswith("wanted: ")
    assert detail.endswith("and 31 more")


def test_keys_of_any_length_do_not_make_the_observation_long() -> None:
    detail = _checked(_asked(_tool({"wanted": dict[str, int]}), {"wanted": {"k" * 100_000: SECRET}}))
    assert detail.startswith("wanted.kkk")
    schema = {"type": "object", "properties": {"wanted": {"additionalProperties": {"type": "integer"}}}}
    made = tool_from_schema("act", "It acts.", schema, lambda arguments: None)
    assert _checked(_asked(made, {"wanted": {"k" * 100_000: SECRET}})).startswith("wanted.kkk")


def test_faults_however_deep_and_many_do_not_make_the_observation_long() -> None:
    value: dict[str, Any] = {"n": SECRET}
    for _ in range(25):
        value = {"n": SECRET, "children": {"k" * 60: value}}
    result = _asked(Tool("act", "It acts.", Tree, None, lambda request: None), value)
    assert result.status == "invalid_arguments"
    assert SECRET not in result.content
    assert len(result.content) < 8 * LONG


def test_what_a_validator_says_is_told_with_the_field_it_belongs_to() -> None:
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    result = _asked(Tool("act", "It acts.", Even, None, lambda request: None), {"n": 1})
    assert _checked(result) == "n: Value error, must be even"


def test_what_a_validator_says_of_the_whole_is_told_of_the_arguments() -> None:
    class Ordered(BaseModel):
        low: int
        high: int

        @model_validator(mode="after")
        def ordered(self) -> Ordered:
            if self.low > self.high:
                raise ValueError("low must not be above high")
            return self

    result = _asked(Tool("act", "It acts.", Ordered, None, lambda request: None), {"low": 2, "high": 1})
    assert _checked(result) == "arguments: Value error, low must not be above high"


def test_what_a_validator_says_at_length_is_shortened() -> None:
    class Talkative(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def talk(cls, value: int) -> int:
            raise ValueError("no " * 100_000)

    detail = _checked(_asked(Tool("act", "It acts.", Talkative, None, lambda request: None), {"n": 1}))
    assert detail.endswith("…")


TEXTS = {
    "a line feed in a string": ('{"n": "' + SECRET + '\n"}', "column"),
    "an open string": ('{"n": "' + SECRET, "column"),
    "more after the end": ('{"n": 1} ' + SECRET, "column"),
    "no JSON": (SECRET, "column"),
    "a key twice": (json.dumps({SECRET: 1})[:-1] + f', "{SECRET}": 2}}', "repeat"),
    "half a surrogate pair": ('{"n": "' + SECRET + '\\ud800"}', "surrogate"),
    "a string": (json.dumps(SECRET), "object"),
}


@pytest.mark.parametrize(("arguments", "word"), TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_object_is_described_and_not_repeated(arguments: str, word: str) -> None:
    detail = _checked(run(Tool("act", "It acts.", Number, None, lambda request: None).invoke(arguments)))
    assert word in detail
    assert not re.search(r"\b(\w+) \1\b", detail), "a word stands twice"


@given(st.text(min_size=6), st.sampled_from([int, float, bool, list[int], Literal["a"], Colour, Inner, uuid.UUID]))
def test_no_text_given_for_another_kind_is_repeated(value: str, kind: Any) -> None:
    result = _asked(_tool({"wanted": kind}), {"wanted": value})
    if result.status == "invalid_arguments":
        detail = json.loads(str(result.content))["detail"]
        usual = _asked(_tool({"wanted": kind}), {"wanted": "\x00" * 6}).content
        assert value not in detail or value in usual
