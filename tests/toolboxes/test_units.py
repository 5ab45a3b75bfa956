"""The unit converter: what it understands, what it says, and what it refuses."""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import ToolSet
from toolturn.toolboxes import units as box
from toolturn.toolboxes.units import UNITS, convert, units_toolbox

from . import call, outcome, processor_seconds, refusal

TOOLS = units_toolbox()


def schema(tools: ToolSet) -> Any:
    return tools.definitions[0].parameters["properties"]


@pytest.mark.parametrize(
    ("value", "from_unit", "to_unit", "says"),
    [
        (10, "kilometer", "mile", "10 kilometer = 6.21 mile"),
        (70, "kilogram", "pound", "70 kilogram = 154.32 pound"),
        (100, "fahrenheit", "celsius", "100 fahrenheit = 37.78 celsius"),
        (12, "inch", "centimeter", "12 inch = 30.48 centimeter"),
        (5, "gallon", "liter", "5 gallon = 18.93 liter"),
        (25, "celsius", "fahrenheit", "25 celsius = 77 fahrenheit"),
        (3, "meter", "foot", "3 meter = 9.84 foot"),
        (1, "day", "minute", "1 day = 1440 minute"),
        (60, "mile per hour", "kilometer per hour", "60 mile per hour = 96.56 kilometer per hour"),
        (5, "gigabyte", "megabyte", "5 gigabyte = 5000 megabyte"),
        (1, "square foot", "square meter", "1 square foot = 0.092903 square meter"),
        (1, "kilowatt hour", "joule", "1 kilowatt hour = 3600000 joule"),
        (-5.5, "meter", "foot", "-5.5 meter = -18.04 foot"),
        (0, "meter", "foot", "0 meter = 0 foot"),
    ],
)
def test_a_quantity_in_another_unit(value: float, from_unit: str, to_unit: str, says: str) -> None:
    assert call(TOOLS, "convert_units", value=value, from_unit=from_unit, to_unit=to_unit) == says


@pytest.mark.parametrize(
    ("value", "from_unit", "to_unit", "says"),
    [
        (0, "celsius", "kelvin", "0 celsius = 273.15 kelvin"),
        (32, "fahrenheit", "celsius", "32 fahrenheit = 0 celsius"),
        (-40, "celsius", "fahrenheit", "-40 celsius = -40 fahrenheit"),
        (-459.67, "fahrenheit", "kelvin", "-459.67 fahrenheit = 0 kelvin"),
        (10, "delta_degC", "delta_degF", "10 delta degree Celsius = 18 delta degree Fahrenheit"),
    ],
)
def test_temperatures_have_their_offsets_and_differences_have_none(
    value: float, from_unit: str, to_unit: str, says: str
) -> None:
    assert convert(value, from_unit, to_unit) == says


@pytest.mark.parametrize(
    ("names", "unit"),
    [
        (["km", "KM", "Km", "kms", "kilometers", "Kilometres", "kilometre"], "kilometer"),
        (["mi", "miles", "Mile"], "mile"),
        (["ft", "feet", "Feet", "ft.", "'", "′"], "foot"),
        (["in", "inches", "in.", '"', "″"], "inch"),
        (["m", "METER", "metre", "meters "], "meter"),
        (["µm", "μm", "micrometer"], "micrometer"),
        (["nautical mile", "nautical_mile", "Nautical Miles", "nmi"], "nautical mile"),
        (["light year", "light-year", "ly"], "light year"),
        (["lb", "LB", "lbs", "lbs.", "pounds"], "pound"),
        (["oz", "oz.", "Ounces"], "ounce"),
        (["kg", "KG", "Kg", "kilos", "kilograms"], "kilogram"),
        (["tonne", "metric ton", "metric tons", "t"], "metric ton"),
        (["ton", "tons", "short ton"], "short ton"),
        (["gal", "GAL", "Gal", "gallons", "US gallons"], "gallon"),
        (["l", "L", "litres", "Liter"], "liter"),
        (["ml", "mL", "milliliters"], "milliliter"),
        (["fl oz", "fl. oz.", "fluid ounces", "fluid_ounce"], "fluid ounce"),
        (["tbsp", "tablespoons"], "tablespoon"),
        (["m^2", "m2", "m²", "sq m", "square meters", "m**2", "Square Metre"], "square meter"),
        (["ft^3", "cubic feet", "ft³", "cubic foot"], "cubic foot"),
        (["°C", "C", "c", "degC", "deg C", "degrees Celsius", "Celsius", "centigrade"], "celsius"),
        (["°F", "F", "f", "degF", "degrees fahrenheit", "Fahrenheit"], "fahrenheit"),
        (["K", "k", "Kelvin", "kelvins"], "kelvin"),
        (["mph", "MPH", "miles per hour", "mile/hour", "mi/h"], "mile per hour"),
        (["km/h", "KM/H", "kph", "kmh", "km/hr", "kilometers per hour", "km per hour"], "kilometer per hour"),
        (["m/s", "meters per second", "m s^-1", "m·s^-1"], "meter per second"),
        (["min", "mins", "minutes"], "minute"),
        (["h", "hr", "hours"], "hour"),
        (["KB", "kB", "kilobytes"], "kilobyte"),
        (["MB", "mb", "megabytes"], "megabyte"),
        (["Mb", "megabits"], "megabit"),
        (["Cal", "kcal", "food calories"], "kilocalorie"),
        (["kWh", "kilowatt hours", "kilowatt-hour", "KWH"], "kilowatt hour"),
        (["mpg", "miles per gallon"], "mile per gallon"),
        (["%", "percent"], "percent"),
        (["1/s", "1 / second"], "1 per second"),
    ],
)
def test_a_unit_goes_by_many_names(names: list[str], unit: str) -> None:
    for name in names:
        assert convert(0, name, name).endswith(f" {unit}"), name


@pytest.mark.parametrize(
    ("value", "from_unit", "to_unit", "says"),
    [
        # 2 decimals from 1 on, 6 significant digits below
        (1, "gram", "pound", "1 gram = 0.00220462 pound"),
        (1, "foot", "meter", "1 foot = 0.3048 meter"),
        (1, "millimeter", "mile", "1 millimeter = 0.000000621371 mile"),
        (1234567.891, "meter", "kilometer", "1234567.891 meter = 1234.57 kilometer"),
        (1, "light_year", "meter", "1 light year = 9.46073047258e+15 meter"),
        (1e-12, "meter", "kilometer", "1e-12 meter = 1e-15 kilometer"),
    ],
)
def test_a_result_has_the_digits_that_people_need(value: float, from_unit: str, to_unit: str, says: str) -> None:
    assert convert(value, from_unit, to_unit) == says


def test_more_decimals_can_be_had() -> None:
    exact = units_toolbox(decimals=6)
    assert call(exact, "convert_units", value=1, from_unit="mile", to_unit="kilometer") == "1 mile = 1.609344 kilometer"


@pytest.mark.parametrize(
    ("from_unit", "to_unit", "kinds"),
    [
        ("kilogram", "meter", ["kilogram (mass)", "meter (length)"]),
        ("liter", "square meter", ["liter (volume)", "square meter (area)"]),
        ("celsius", "hour", ["celsius (temperature)", "hour (time)"]),
        ("knot", "joule", ["knot (speed)", "joule (energy)"]),
        # these have no dimension, or the same one, and are not the same thing for all that
        ("byte", "radian", ["byte (amount of data)", "radian (angle)"]),
        ("percent", "bit", ["percent (plain number)", "bit (amount of data)"]),
        ("rpm", "hertz", ["(rotation speed)", "hertz (frequency)"]),
        ("mile per gallon", "liter per kilometer", ["mile per gallon (", "liter per kilometer ("]),
    ],
)
def test_units_of_two_kinds_are_refused_with_their_kinds(from_unit: str, to_unit: str, kinds: list[str]) -> None:
    text = refusal(convert, 1, from_unit, to_unit)
    assert text.startswith("to_unit: ")
    assert all(kind in text for kind in kinds)


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ("kilometr", 'the unit "kilometr" is not known; did you mean kilometer'),
        ("farenheit", "did you mean fahrenheit"),
        ("xyzzy", "use a full name such as kilometer or pound"),
        ("", "is not known"),
        ("10 km", 'put that in "value"'),
        ("5", 'put that in "value"'),
        ("liter/100km", "is not known"),
        ("USD", "is not known"),
    ],
)
def test_an_unknown_unit_is_refused_with_what_to_write_instead(unit: str, says: str) -> None:
    for position, field in enumerate(("from_unit", "to_unit")):
        units = ["meter", "meter"]
        units[position] = unit
        text = refusal(convert, 1, *units)
        assert text.startswith(f"{field}: ")
        assert says in text


@pytest.mark.parametrize(
    "unit",
    [
        "meter**999999999",
        "meter^9999999999999",
        "meter**9**9**9",
        "meter^0.5",
        "m" * 10_000,
        "m" * 60,
        "kilo" * 15,
        "m*" * 29 + "m",
        " ".join(["m"] * 30),
        "(((((m",
        "(m)",
        "m.__class__",
        "__import__('os')",
        "lambda: m",
        "'a'",
        "[m]",
        "m if m else m",
        "m == m",
        "m; m",
        "m\\",
        "2 ** 9999 m",
        "m + m",
        "-m",
        "m/0",
        "½m",
        "delta_decade",
        "Mfahrenheit",
    ],
)
def test_what_is_no_plain_unit_is_refused_at_once(unit: str) -> None:
    convert(1, "m", "m")  # what is loaded at first use
    with processor_seconds(0.5):
        assert refusal(convert, 1, unit, "meter").startswith("from_unit: ")


@pytest.mark.parametrize(
    ("value", "from_unit", "to_unit", "says"),
    [
        (-300, "celsius", "kelvin", "value: -300 celsius is below absolute zero"),
        (-1, "kelvin", "celsius", "below absolute zero"),
        (1e308, "parsec", "nanometer", "too large"),
        (1e-320, "nanometer", "parsec", "too small"),
        (1e308, "celsius", "fahrenheit", "too large"),
        (math.inf, "meter", "foot", "finite number"),
        (math.nan, "meter", "foot", "finite number"),
        (1e300, "decibel", "percent", "can not be given in percent"),
    ],
)
def test_a_value_without_a_result_is_refused(value: float, from_unit: str, to_unit: str, says: str) -> None:
    text = refusal(convert, value, from_unit, to_unit)
    assert text.startswith("value: ")
    assert says in text


PIECES = [
    "kilo",
    "m",
    "meter",
    "foot",
    "degC",
    "dB",
    "lb",
    "s",
    "per",
    "square ",
    "°",
    "µ",
    "²",
    "^2",
    "**",
    "-3",
    "/",
    "*",
]


@given(
    st.floats(allow_nan=False),
    st.one_of(st.text(max_size=70), st.lists(st.sampled_from([*PIECES, " ", "(", "'"]), max_size=12).map("".join)),
    st.sampled_from(["meter", "celsius", "percent", "second"]),
)
def test_whatever_is_written_a_quantity_or_a_refusal_comes_out_soon(value: float, unit: str, other: str) -> None:
    convert(1, "m", "m")
    with processor_seconds(0.5):
        result, refused = outcome(convert, value, unit, other)
    if refused:
        assert re.match("value|from_unit|to_unit", refused)
    else:
        assert re.fullmatch(r"-?[0-9.]+(e[+-][0-9]+)? .+ = -?[0-9.]+(e[+-][0-9]+)? .+", result)


@given(st.floats(-1e6, 1e6), st.sampled_from(UNITS), st.sampled_from(UNITS))
def test_every_two_units_shown_convert_or_are_of_two_kinds(value: float, from_unit: str, to_unit: str) -> None:
    result, refused = outcome(convert, value, from_unit, to_unit)
    if refused:
        assert re.search("of one kind|absolute zero|too small", refused)
    else:
        assert result.endswith(f" {to_unit}")
        assert f" {from_unit} = " in result


def test_the_schema_shows_whole_words_to_choose_from() -> None:
    assert schema(TOOLS)["from_unit"]["enum"] == schema(TOOLS)["to_unit"]["enum"] == list(UNITS)
    assert schema(TOOLS)["value"]["type"] == "number"
    assert len(UNITS) == len(set(UNITS)) <= 50
    assert all(len(unit) > 2 for unit in UNITS)


def test_the_tool_takes_more_units_than_it_shows() -> None:
    assert "furlong" not in UNITS
    assert call(TOOLS, "convert_units", value=1, from_unit="furlong", to_unit="m") == "1 furlong = 201.17 meter"


def test_what_is_shown_can_be_chosen() -> None:
    assert schema(units_toolbox(shown=["mile", "kilometer"]))["to_unit"]["enum"] == ["mile", "kilometer"]
    assert "enum" not in schema(units_toolbox(shown=None))["to_unit"]


def test_a_number_in_quotes_is_a_number() -> None:
    assert call(TOOLS, "convert_units", value="10", from_unit="km", to_unit="mile") == "10 kilometer = 6.21 mile"


@pytest.mark.parametrize("value", ["ten", None, [1], {}, 10**400])
def test_a_value_that_is_no_number_never_reaches_the_tool(value: object) -> None:
    said = json.loads(call(TOOLS, "convert_units", value=value, from_unit="km", to_unit="mile"))
    assert said["error"] == "invalid_tool_arguments"
    assert said["detail"].startswith("value: ")


def test_the_tool_may_be_repeated_and_run_beside_others() -> None:
    assert TOOLS.names == ("convert_units",)
    assert TOOLS.traits["convert_units"].effect == "none"
    assert TOOLS.traits["convert_units"].parallel


def test_threads_may_ask_for_the_first_conversion_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = box._Registry.__init__

    def counted(self: Any) -> None:
        made.append(1)
        original(self)

    monkeypatch.setattr(box, "_registry", None)
    monkeypatch.setattr(box._Registry, "__init__", counted)
    results: list[str] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        results.extend(convert(10, "kilometer", "mile") for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["10 kilometer = 6.21 mile"] * 160
    assert made == [1]


def test_what_the_registry_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    convert(1, "m", "m")
    before = box._registry
    monkeypatch.setattr(box, "_MAX_USES", 0)
    assert convert(1, "m", "m") == "1 meter = 1 meter"
    assert box._registry is not before


def test_without_the_extra_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "_registry", None)
    monkeypatch.setitem(sys.modules, "pint", None)
    assert "pip install 'toolturn[toolboxes]'" in refusal(convert, 1, "m", "m")
