"""@tool: the signature of a function is the schema, its docstring the description, its parameters the arguments."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolturn import Tool, ToolContext, tool
from toolturn.tools.function import FunctionTool

from .support import record_of, run


def content_of(made: Tool[Any, Any], **arguments: Any) -> str:
    record = record_of([made], made.name, json.dumps(arguments))
    assert record.status == "ok", record
    return str(record.message.content)


def detail_of(made: Tool[Any, Any], **arguments: Any) -> str:
    record = record_of([made], made.name, json.dumps(arguments))
    assert record.status == "invalid_arguments", record
    return str(json.loads(str(record.message.content))["detail"])


class Place(BaseModel):
    city: str
    country: str = "AT"


@tool
def forecast(
    place: Place,
    days: int = 1,
    unit: Literal["C", "F"] = "C",
    tags: list[str] | None = None,
    *,
    weights: dict[str, float],
) -> str:
    """Tell the weather."""
    assert isinstance(place, Place)
    return f"{place.city} {place.country} {days!r} {unit} {tags} {weights}"


def test_the_name_is_that_of_the_function_and_the_description_that_of_its_docstring() -> None:
    assert isinstance(forecast, FunctionTool)
    assert (forecast.name, forecast.description) == ("forecast", "Tell the weather.")
    assert repr(forecast) == "<FunctionTool forecast>"
    assert forecast.__doc__ == "Tell the weather."


def test_the_parameters_are_those_of_the_signature() -> None:
    schema = forecast.parameters
    assert list(schema["properties"]) == ["place", "days", "unit", "tags", "weights"]
    assert schema["required"] == ["place", "weights"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["days"] == {"type": "integer", "default": 1, "title": "days"}
    assert schema["properties"]["unit"]["enum"] == ["C", "F"]
    assert schema["properties"]["place"]["$ref"] == "#/$defs/Place"
    assert schema["properties"]["weights"]["additionalProperties"] == {"type": "number"}
    assert schema["$defs"]["Place"]["required"] == ["city"]


def test_arguments_arrive_validated_and_converted() -> None:
    assert content_of(forecast, place={"city": "Graz"}, days="2", weights={"a": 1}) == "Graz AT 2 C None {'a': 1.0}"


def test_what_is_left_out_has_its_default() -> None:
    assert content_of(forecast, place={"city": "Graz"}, weights={}) == "Graz AT 1 C None {}"


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ({"weights": {}}, "place: Field required"),
        ({"place": {}, "weights": {}}, "place.city: Field required"),
        ({"place": {"city": "Graz"}, "weights": {}, "unit": "K"}, "unit: Input should be 'C' or 'F'"),
        ({"place": {"city": "Graz"}, "weights": {}, "day": 1}, "day: Extra inputs are not permitted"),
        ({"place": {"city": "Graz"}, "weights": {}, "p0": 1}, "p0: Extra inputs are not permitted"),
    ],
)
def test_bad_arguments_are_told_by_the_names_of_the_parameters(arguments: Any, detail: str) -> None:
    assert detail_of(forecast, **arguments) == detail


def test_calling_the_tool_calls_the_function() -> None:
    @tool
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    assert double(4) == 8
    assert double(n=4) == 8


def test_an_async_function_is_awaited_by_who_calls_it() -> None:
    @tool
    async def double(n: int) -> int:
        """Double a number."""
        await asyncio.sleep(0)
        return 2 * n

    assert run(double(4)) == 8
    assert content_of(double, n=4) == "8"


def test_the_decorator_takes_a_name_a_description_and_the_options_of_a_tool() -> None:
    @tool(name="twice", description="Twice as much.", effect="none", parallel=True, timeout=3, return_direct=True)
    def double(n: int) -> int:
        return 2 * n

    assert (double.name, double.description, double.timeout) == ("twice", "Twice as much.", 3)
    assert (double.traits.effect, double.traits.parallel, double.traits.return_direct) == ("none", True, True)


def test_the_decorator_may_be_called_without_anything() -> None:
    @tool()
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    assert content_of(double, n=4) == "8"


def test_a_renderer_makes_the_text() -> None:
    @tool(render_result=lambda result: f"it is {result}")
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    assert content_of(double, n=4) == "it is 8"


def test_a_function_without_a_docstring_is_refused_by_its_name() -> None:
    def nameless(n: int) -> int:
        return n

    with pytest.raises(ValueError, match="tool 'nameless' needs a description: give the function a docstring"):
        tool(nameless)


def test_a_docstring_of_sections_alone_is_no_description() -> None:
    def act(n: int) -> int:
        """Args:
        n: A number.
        """
        return n

    with pytest.raises(ValueError, match="tool 'act' needs a description"):
        tool(act)


def test_a_lambda_is_no_name_for_a_model_but_may_be_given_one() -> None:
    made: Any = tool(name="double", description="Double a number.")(lambda n: 2 * n)
    assert content_of(made, n=4) == "8"


def test_any_parameter_of_any_number_is_refused() -> None:
    def positional(*numbers: int) -> None:
        """It acts."""

    def keywords(**options: int) -> None:
        """It acts."""

    def only(n: int, /) -> None:
        """It acts."""

    for function, name in ((positional, "numbers"), (keywords, "options"), (only, "n")):
        with pytest.raises(TypeError, match=f"tool '{function.__name__}': the parameter '{name}' can not be given"):
            tool(function)


def test_names_that_pydantic_keeps_for_itself_are_parameters_like_all_others() -> None:
    @tool
    def act(
        model_config: int,
        copy: int,
        schema: int,
        json: int,
        model_dump: int,
        model_fields: int,
        validate: int,
        construct: int,
        dict: int,
        _private: int,
        __dunder__: int,
        p1: int,
        p0: int,
        class_: int,
        request: int,
        self: int,
        cls: int,
        name: int,
    ) -> list[int]:
        """It acts."""
        return [
            model_config,
            copy,
            schema,
            json,
            model_dump,
            model_fields,
            validate,
            construct,
            dict,
            _private,
            __dunder__,
            p1,
            p0,
            class_,
            request,
            self,
            cls,
            name,
        ]

    names = list(act.parameters["properties"])
    assert names[:3] == ["model_config", "copy", "schema"]
    assert content_of(act, **{name: place for place, name in enumerate(names)}) == json.dumps(
        list(range(18)), separators=(",", ":")
    )
    assert detail_of(act, **dict.fromkeys(names[1:], 1)) == "model_config: Field required"


def test_parameters_without_annotations_take_anything() -> None:
    @tool
    def act(anything, more=None):  # type: ignore[no-untyped-def]
        """It acts."""
        return [anything, more]

    assert content_of(act, anything={"a": 1}) == '[{"a":1},null]'


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    @tool
    def act() -> str:
        """It acts."""
        return "done"

    assert act.parameters["properties"] == {}
    assert content_of(act) == "done"
    assert detail_of(act, n=1) == "n: Extra inputs are not permitted"


def test_a_default_that_can_change_is_not_shared_between_calls() -> None:
    @tool
    def act(names: list[str] = []) -> list[str]:  # noqa: B006
        """It acts."""
        names.append("a")
        return names

    assert content_of(act) == '["a"]'
    assert content_of(act) == '["a"]'


def test_bounds_and_descriptions_of_an_annotation_are_kept() -> None:
    @tool
    def act(n: Annotated[int, Field(ge=1, description="How many.")], m: Annotated[int, Field(le=9)] = 5) -> str:
        """It acts."""
        return f"{n} {m}"

    properties = act.parameters["properties"]
    assert properties["n"] == {"type": "integer", "minimum": 1, "description": "How many.", "title": "n"}
    assert properties["m"]["maximum"] == 9
    assert properties["m"]["default"] == 5
    assert content_of(act, n=1) == "1 5"
    assert detail_of(act, n=0) == "n: Input should be greater than or equal to 1"


def test_the_docstring_wins_over_the_description_of_an_annotation() -> None:
    @tool
    def act(n: Annotated[int, Field(description="From the annotation.")]) -> None:
        """It acts.

        Args:
            n: From the docstring.
        """

    assert act.parameters["properties"]["n"]["description"] == "From the docstring."


def test_a_field_as_a_default_is_what_pydantic_makes_of_it() -> None:
    @tool
    def act(n: int = Field(5, ge=2, description="How many.")) -> str:
        """It acts."""
        return f"{n}"

    assert act.parameters["properties"]["n"]["description"] == "How many."
    assert content_of(act) == "5"
    assert detail_of(act, n=1) == "n: Input should be greater than or equal to 2"


def test_a_context_parameter_is_given_and_not_shown_wherever_it_stands_and_whatever_it_is_called() -> None:
    @tool
    def first(context: ToolContext, n: int) -> str:
        """It acts."""
        return f"{context.op} {n}"

    @tool
    async def last(n: int, *, where: ToolContext) -> str:
        """It acts."""
        return f"{where.op} {n}"

    for made in (first, last):
        assert list(made.parameters["properties"]) == ["n"]
        assert content_of(made, n=1) == "t1.0 1"


@pytest.mark.parametrize("name", ["request", "self", "known"])
def test_a_context_parameter_may_have_any_name(name: str) -> None:
    space: dict[str, Any] = {"ToolContext": ToolContext}
    for word in ("def", "async def"):
        exec(f"{word} act(n: int, {name}: ToolContext) -> str:\n    'It acts.'\n    return {name}.op", space)
        assert content_of(tool(space["act"]), n=1) == "t1.0"


def test_a_context_parameter_may_be_left_out_outside_of_a_turn() -> None:
    @tool
    def act(context: ToolContext | None = None) -> str:
        """It acts."""
        return "outside" if context is None else context.op

    assert act() == "outside"
    assert act.parameters["properties"] == {}
    assert content_of(act) == "t1.0"


class Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance

    def add(self, amount: int) -> int:
        """Add to the balance."""
        self.balance += amount
        return self.balance

    async def take(self, amount: int, context: ToolContext) -> int:
        """Take from the balance."""
        self.balance -= amount
        return self.balance

    @staticmethod
    def rate(percent: float) -> float:
        """Change the rate."""
        return percent

    @classmethod
    def new(cls, balance: int) -> int:
        """Open an account."""
        return cls(balance).balance


def test_methods_are_tools() -> None:
    account = Account(5)
    assert content_of(tool(account.add), amount=2) == "7"
    assert content_of(tool(account.take), amount=3) == "4"
    assert content_of(tool(Account.rate), percent=1.5) == "1.5"
    assert content_of(tool(Account.new), balance=9) == "9"
    assert account.balance == 4


def _scaled(n: int, factor: int = 1, *, context: ToolContext) -> str:
    """Scale a number.

    Args:
        n: The number.
    """
    return f"{context.op} {n * factor}"


async def _ascaled(n: int, factor: int) -> int:
    """Scale a number."""
    return n * factor


def test_partials_are_tools_and_what_they_fix_the_model_may_change_at_most() -> None:
    made: Any = tool(name="scaled", description="Scale a number.")(partial(_scaled, factor=3))
    assert content_of(made, n=2) == "t1.0 6"
    assert made.parameters["properties"]["n"]["description"] == "The number."
    awaited: Any = tool(name="scaled", description="Scale a number.")(partial(_ascaled, factor=3))
    assert content_of(awaited, n=2) == "6"


def test_a_partial_is_described_by_the_function_it_calls() -> None:
    made: Any = tool(name="scaled")(partial(_scaled, factor=3))
    assert made.description == "Scale a number."


def test_a_parameter_that_a_partial_gave_by_place_is_not_shown() -> None:
    made: Any = tool(name="scaled", description="Scale a number.")(partial(_ascaled, 2))
    assert list(made.parameters["properties"]) == ["factor"]
    assert content_of(made, factor=5) == "10"


def test_an_object_that_can_be_called_is_a_tool_when_it_is_given_a_name() -> None:
    class Doubler:
        """Not about the call."""

        def __call__(self, n: int) -> int:
            """Double a number."""
            return 2 * n

    made: Any = tool(name="double", description="Double a number.")(Doubler())
    assert content_of(made, n=4) == "8"


def test_an_object_is_described_by_its_call_or_else_by_its_class() -> None:
    class Described:
        """Double a number.

        Args:
            n: The number.
        """

        def __call__(self, n: int) -> int:
            return 2 * n

    class Told(Described):
        def __call__(self, n: int) -> int:
            """Double a number, twice."""
            return 4 * n

    made: Any = tool(name="double")(Described())
    assert made.description == "Double a number."
    assert made.parameters["properties"]["n"]["description"] == "The number."
    told: Any = tool(name="double")(Told())
    assert told.description == "Double a number, twice."


def test_a_plain_function_that_returns_an_awaitable_is_awaited() -> None:
    async def later(n: int) -> int:
        return 2 * n

    @tool
    def double(n: int) -> Any:
        """Double a number."""
        return later(n)

    assert content_of(double, n=4) == "8"
