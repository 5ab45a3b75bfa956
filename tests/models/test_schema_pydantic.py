"""Schemas that pydantic makes of the types people put into tools."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, Json, RootModel, SecretStr

from toolturn.messages import ToolDef
from toolturn.models.schema import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    OPENAI_STRICT,
    FittedTool,
    Profile,
    fit,
    profile_named,
    restore_arguments,
)

from .schema_rules import FAULTS


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: float
    y: float


class Address(BaseModel):
    """Where somebody lives."""

    street: str = Field(description="With the number.")
    zip_code: str | None = None


class Person(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    address: Address
    friends: list[Person] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Tree(BaseModel):
    value: int
    left: Tree | None = None
    right: Tree | None = None


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: str


class Opened(BaseModel):
    model_config = ConfigDict(extra="allow")

    q: str


class Odd(BaseModel):
    """Parameters that are called like keywords."""

    title: str
    type: Literal["a", "b"]
    properties: dict[str, int]
    ref: str = Field(alias="$ref")
    default: int = 3
    items: list[str] = []
    required: bool = True


class Many(BaseModel):
    text: Annotated[str, Field(pattern=r"^\d{4}-[A-Z]+$")]
    count: Annotated[int, Field(ge=0, lt=10, multiple_of=2)]
    ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    price: Decimal
    when: dt.datetime
    day: dt.date
    clock: dt.time
    span: dt.timedelta
    data: bytes
    whatever: Any
    key: uuid.UUID
    site: AnyUrl
    path: Path
    secret: SecretStr
    payload: Json[dict[str, int]]
    counts: dict[str, int]
    by_color: dict[Color, float]
    free: dict[str, Any]
    pair: tuple[int, str]
    many: tuple[int, ...]
    chosen: set[str]
    color: Color
    level: Level
    number: Literal[1, 2]
    mixed: Literal["a", 1, None]
    maybe: int | None
    either: int | str | None = None
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    pets: list[Cat | Dog]
    place: Point
    nested: list[list[dict[str, list[Address]]]]
    nothing: None = None
    sequence: Sequence[int] = ()


class Listed(RootModel[dict[str, int]]):
    """A map as the whole request."""


MODELS: list[type[BaseModel]] = [Address, Person, Cat, Dog, Tree, Closed, Opened, Odd, Many, Listed]
TYPES = list(Many.model_fields)


def tool(model: type[BaseModel], profile: Profile) -> FittedTool:
    return fit(ToolDef("tool", "Does it.", model.model_json_schema()), profile)


def with_field(name: str, *, required: bool) -> ToolDef:
    """A tool that takes one field of ``Many``."""
    whole = Many.model_json_schema(by_alias=True)
    schema = {key: value for key, value in whole["properties"][name].items() if key != "title"}
    parameters = {
        "type": "object",
        "properties": {name: schema},
        "required": [name] if required else [],
        "$defs": whole["$defs"],
    }
    return ToolDef("tool", "", parameters)


def property_of(name: str, profile: Profile) -> Any:
    fitted = fit(with_field(name, required=True), profile)
    assert fitted.parameters is not None
    return fitted.parameters["properties"][name]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("name", FAULTS)
def test_every_provider_takes_every_model(name: str, model: type[BaseModel]) -> None:
    assert FAULTS[name](tool(model, profile_named(name))) == []


@pytest.mark.parametrize("field", TYPES)
@pytest.mark.parametrize("name", FAULTS)
def test_every_provider_takes_every_type(name: str, field: str) -> None:
    for required in (True, False):
        assert FAULTS[name](fit(with_field(field, required=required), profile_named(name))) == []


def test_titles_are_noise_and_parameters_called_title_are_not() -> None:
    for profile in (OPENAI, OPENAI_STRICT, GEMINI):
        parameters = tool(Odd, profile).parameters
        assert parameters is not None
        assert list(parameters["properties"]) == ["title", "type", "properties", "$ref", "default", "items", "required"]
        assert "title" not in parameters
        assert parameters["properties"]["title"] == {"type": "string"}
    parameters = tool(Odd, ANTHROPIC).parameters
    assert parameters is not None
    assert "_ref" not in parameters["required"]
    assert parameters["properties"]["ref"]["description"] == 'Its own name is "$ref"'


@pytest.mark.parametrize(
    ("field", "profile", "expected"),
    [
        ("color", GEMINI, {"type": "string", "enum": ["red", "blue"]}),
        ("level", GEMINI, {"type": "integer", "description": "One of 1, 2"}),
        ("level", OPENAI, {"type": "integer", "enum": [1, 2]}),
        ("number", OPENAI_STRICT, {"type": "integer", "enum": [1, 2]}),
        ("maybe", OPENAI, {"type": ["integer", "null"]}),
        ("maybe", GEMINI, {"type": "integer", "nullable": True}),
        ("either", OPENAI_STRICT, {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        ("either", GEMINI, {"anyOf": [{"type": "integer", "nullable": True}, {"type": "string"}]}),
        ("when", GEMINI, {"type": "string", "format": "date-time"}),
        ("day", GEMINI, {"type": "string", "description": "Format date"}),
        ("day", OPENAI_STRICT, {"type": "string", "format": "date"}),
        ("site", OPENAI, {"type": "string", "minLength": 1, "description": "Format uri"}),
        ("whatever", OPENAI, {}),
        ("counts", OPENAI, {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}),
        ("counts", GEMINI, {"type": "object", "description": "Any keys, each value: integer"}),
        ("free", OPENAI, {"type": "object", "properties": {}, "additionalProperties": True}),
        ("free", GEMINI, {"type": "object", "description": "Any keys"}),
        ("many", OPENAI_STRICT, {"type": "array", "items": {"type": "integer"}}),
        ("chosen", GEMINI, {"type": "array", "items": {"type": "string"}, "description": "No item twice"}),
        (
            "pair",
            GEMINI,
            {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "minItems": 2,
                "maxItems": 2,
                "description": "In this order: integer, string",
            },
        ),
        (
            "pair",
            ANTHROPIC,
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            "place",
            OPENAI,
            {
                "type": "array",
                "items": {"type": "number"},
                "minItems": 2,
                "maxItems": 2,
                "description": "In this order: number, number",
            },
        ),
        ("count", GEMINI, {"type": "integer", "minimum": 0, "maximum": 9, "description": "A multiple of 2"}),
        ("ratio", GEMINI, {"type": "number", "maximum": 1, "description": "More than 0; default 0.5"}),
        ("text", OPENAI, {"type": "string", "description": r"Matches ^\d{4}-[A-Z]+$"}),
        ("text", OPENAI_STRICT, {"type": "string", "pattern": r"^\d{4}-[A-Z]+$"}),
        (
            "mixed",
            OPENAI,
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}]},
        ),
        ("nothing", OPENAI, {"type": "null", "default": None}),
    ],
)
def test_a_type_becomes(field: str, profile: Profile, expected: dict[str, Any]) -> None:
    assert property_of(field, profile) == expected


def test_a_discriminated_union_loses_nothing_but_its_name() -> None:
    parameters = property_of("pet", OPENAI_STRICT)
    assert [branch["properties"]["kind"]["enum"] for branch in parameters["anyOf"]] == [["cat"], ["dog"]]


@pytest.mark.parametrize("field", ["whatever", "counts", "by_color", "free"])
def test_what_strict_can_not_say_is_sent_without_it(field: str) -> None:
    fitted = fit(with_field(field, required=False), OPENAI_STRICT)
    assert not fitted.strict
    assert fitted.not_strict.startswith(f"/properties/{field}")
    assert fitted.parameters == fit(with_field(field, required=False), OPENAI).parameters


def test_recursion_stays_a_reference_under_strict_and_is_cut_elsewhere() -> None:
    strict = tool(Tree, OPENAI_STRICT)
    assert strict.strict
    assert strict.parameters is not None
    assert strict.parameters["$defs"].keys() == {"Tree"}
    cut = tool(Tree, OPENAI)
    assert cut.parameters is not None
    assert "$ref" not in str(cut.parameters)
    assert "Nested in the same way" in str(cut.parameters)


def test_a_recursive_argument_is_validated_by_the_model_after_strict_nulls_are_left_out() -> None:
    class Node(BaseModel):
        value: int
        label: str = "none"
        children: list[Node] = []

    strict = tool(Node, OPENAI_STRICT)
    assert strict.strict
    written = {"value": 1, "label": None, "children": [{"value": 2, "label": "two", "children": None}]}

    arguments = restore_arguments(written, strict)

    assert arguments == {"value": 1, "children": [{"value": 2, "label": "two"}]}
    assert Node.model_validate(arguments).children[0].label == "two"


def test_a_null_the_model_allows_stays() -> None:
    strict = tool(Address, OPENAI_STRICT)
    assert restore_arguments({"street": "A 1", "zip_code": None}, strict) == {"street": "A 1", "zip_code": None}


def test_in_a_union_the_branch_that_is_meant_is_restored() -> None:
    class One(BaseModel):
        kind: Literal["one"]
        size: int = 1

    class Two(BaseModel):
        kind: Literal["two"]
        size: int | None

    class Request(BaseModel):
        parts: list[One | Two]

    strict = tool(Request, OPENAI_STRICT)
    written = {"parts": [{"kind": "one", "size": None}, {"kind": "two", "size": None}]}
    assert restore_arguments(written, strict) == {"parts": [{"kind": "one"}, {"kind": "two", "size": None}]}


def test_descriptions_and_constraints_are_read_together() -> None:
    parameters = tool(Person, GEMINI).parameters
    assert parameters is not None
    assert parameters["properties"]["name"] == {
        "type": "string",
        "description": "Not empty; at most 80 characters",
    }
    assert parameters["properties"]["address"]["properties"]["street"]["description"] == "With the number."
