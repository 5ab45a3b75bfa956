"""Toolboxes by name."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from toolturn.toolboxes import TOOLBOXES, toolbox, toolboxes

from . import call

ALL = ("calculator", "current_time", "convert_units", "add_days", "days_between", "weekday")


def test_each_toolbox_says_in_one_line_what_it_does() -> None:
    assert list(TOOLBOXES) == ["clock", "math", "units"]
    for name, box in TOOLBOXES.items():
        assert box.name == name
        assert box.description
        assert "\n" not in box.description


def test_a_toolbox_by_its_name_is_the_same_set_each_time() -> None:
    assert toolbox("math").names == ("calculator",)
    assert toolbox("math") is toolbox("math")


def test_several_toolboxes_are_one_set_in_an_order_of_its_own() -> None:
    assert toolboxes(["clock", "units", "math"]).names == ALL
    assert toolboxes(["math", "units", "clock"]).names == ALL
    assert toolboxes([]).names == ()


def test_single_tools_can_be_named_and_naming_one_twice_is_no_error() -> None:
    assert toolboxes(["math.calculator", "clock.weekday"]).names == ("calculator", "weekday")
    assert toolboxes(["clock.weekday", "clock", "clock"]).names == toolbox("clock").names


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("maths", r"no toolbox 'maths'; did you mean 'math'\? \(known: clock, math, units\)"),
        ("xyz", r"no toolbox 'xyz' \(known: clock, math, units\)"),
        ("", "no toolbox ''"),
        ("math.calculate", "no tool in the toolbox 'math' 'calculate'; did you mean 'calculator'"),
        ("math.", "no tool in the toolbox 'math' ''"),
        ("calculator", "no toolbox 'calculator'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        toolboxes([name])


def test_an_unknown_toolbox_is_refused_when_asked_for_alone_too() -> None:
    with pytest.raises(ValueError, match="did you mean 'units'"):
        toolbox("unit")


def test_one_text_is_not_taken_for_many_names() -> None:
    with pytest.raises(TypeError, match=r"use toolbox\('math'\)"):
        toolboxes("math")


def test_no_tool_has_an_effect() -> None:
    assert all(traits.effect == "none" and traits.parallel for traits in toolboxes(TOOLBOXES).traits.values())


def test_every_schema_is_closed_and_every_pattern_is_plain() -> None:
    for definition in toolboxes(TOOLBOXES).definitions:
        assert definition.parameters["additionalProperties"] is False
        assert definition.parameters["required"] == list(definition.parameters["properties"])
        for field in definition.parameters["properties"].values():
            pattern = field.get("pattern", "^$")
            assert re.fullmatch(r"\^.*\$", pattern)
            # what grammar engines without backtracking do not know
            assert not re.search(r"\(\?|\\[1-9bBAZdwsDWS]", pattern)


def test_importing_and_listing_load_no_library_of_a_tool() -> None:
    code = (
        "import sys; from toolturn.toolboxes import TOOLBOXES, toolboxes; toolboxes(TOOLBOXES).definitions; "
        "print({'pint', 'simpleeval'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_importing_the_package_loads_no_toolbox() -> None:
    code = "import sys, toolturn.toolboxes; print([m for m in sys.modules if m.startswith('toolturn.toolboxes.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_first_call_of_each_tool_warns_of_nothing() -> None:
    code = (
        "import asyncio, json; from toolturn.toolboxes import TOOLBOXES, toolboxes; tools = toolboxes(TOOLBOXES)\n"
        "def call(name, **arguments): print(asyncio.run(tools.get(name).invoke(json.dumps(arguments))).content)\n"
        "call('calculator', expression='1 + 1'); call('convert_units', value=1, from_unit='km', to_unit='m')\n"
        "call('weekday', date='2000-01-01')"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n1 kilometer = 1000 meter\n2000-01-01 is a Saturday\n", "")


@pytest.mark.parametrize(
    ("tool", "arguments", "holds"),
    [
        ("calculator", {"expression": "15% * 240"}, "36"),
        ("calculator", {"expression": "0.15 * 240"}, "36"),
        ("calculator", {"expression": "sqrt(1764)"}, "42"),
        ("calculator", {"expression": "7 * 12.50"}, "87.5"),
        ("convert_units", {"value": 10, "from_unit": "kilometer", "to_unit": "mile"}, "6.21"),
        ("convert_units", {"value": 70, "from_unit": "kilogram", "to_unit": "pound"}, "154.32"),
        ("convert_units", {"value": 5, "from_unit": "gallon", "to_unit": "liter"}, "18.93"),
        ("convert_units", {"value": 1, "from_unit": "day", "to_unit": "minute"}, "1440"),
        ("current_time", {"timezone": "Sydney"}, "Australia/Sydney"),
        ("days_between", {"start_date": "2024-01-01", "end_date": "2024-03-01"}, "60"),
        ("weekday", {"date": "2000-01-01"}, "Saturday"),
        ("add_days", {"date": "2026-11-30", "days": 90}, "2027-02-28"),
    ],
)
def test_what_users_ask_for_is_in_the_result(tool: str, arguments: dict[str, object], holds: str) -> None:
    result = call(toolboxes(TOOLBOXES), tool, **arguments)
    assert re.search(rf"(?<![\d.]){re.escape(holds)}(?!\d)", result)
