"""What @tool reads from a docstring: the text before the sections, and what it says of each parameter."""

from __future__ import annotations

from typing import Any

import pytest

from toolturn import tool


def _described(doc: str) -> tuple[str, dict[str, str | None]]:
    def act(city: str, days: int = 1, unit: str = "C") -> None: ...

    act.__doc__ = doc
    made = tool(act)
    properties: dict[str, Any] = made.parameters["properties"]
    return made.description, {name: about.get("description") for name, about in properties.items()}


NONE = {"city": None, "days": None, "unit": None}


def test_a_single_line_is_the_description() -> None:
    assert _described("Tell the weather.") == ("Tell the weather.", NONE)


def test_paragraphs_before_the_sections_belong_to_the_description() -> None:
    description, about = _described(
        """Tell the weather.

        Use it when somebody asks
        what to wear: not for the climate.

        Args:
            city: A city.
        """
    )
    assert description == "Tell the weather.\n\nUse it when somebody asks\nwhat to wear: not for the climate."
    assert about == {**NONE, "city": "A city."}


@pytest.mark.parametrize("heading", ["Args:", "Arguments:", "Parameters:", "Args"])
def test_the_google_style_is_read(heading: str) -> None:
    description, about = _described(
        f"""Tell the weather.

        {heading}
            city: A city, with its country: "Graz, AT".
            days (int, optional): How many days,
                at most seven.
                note: today is one.
            unit:
                The unit.

        Returns:
            city: never this.

        Raises:
            unit: nor this.
        """
    )
    assert description == "Tell the weather."
    assert about == {
        "city": 'A city, with its country: "Graz, AT".',
        "days": "How many days, at most seven. note: today is one.",
        "unit": "The unit.",
    }


def test_the_sphinx_style_is_read() -> None:
    description, about = _described(
        """Tell the weather.

        :param city: A city.
        :param int days: How many days,
            at most seven.
        :type days: int
        :param unit:  The unit.
        :returns: The city: never this.
        :raises ValueError: nor this.
        """
    )
    assert description == "Tell the weather."
    assert about == {"city": "A city.", "days": "How many days, at most seven.", "unit": "The unit."}


def test_what_is_said_of_no_parameter_is_no_parameter() -> None:
    _, about = _described(
        """Tell the weather.

        Args:
            country: There is none.
            **options: Nor these.
        """
    )
    assert about == NONE


def test_sections_after_the_arguments_do_not_count() -> None:
    description, about = _described(
        """Tell the weather.

        Example:
            city: Graz

        Args:
            city: A city.

        Notes:
            days: not this.
        """
    )
    assert description == "Tell the weather."
    assert about == {**NONE, "city": "A city."}


def test_a_docstring_that_begins_on_the_second_line_is_read_as_well() -> None:
    assert _described(
        """
        Tell the weather.

        Args:
            city: A city.
        """
    ) == ("Tell the weather.", {**NONE, "city": "A city."})
