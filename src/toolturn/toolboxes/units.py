"""The toolbox ``units``: conversion between units of measurement."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import Field

from ..errors import ToolError
from ..tools import ToolSet, tool
from .arithmetic import number_text

UNITS: tuple[str, ...] = (
    "millimeter",
    "centimeter",
    "meter",
    "kilometer",
    "inch",
    "foot",
    "yard",
    "mile",
    "gram",
    "kilogram",
    "ounce",
    "pound",
    "milliliter",
    "liter",
    "cup",
    "pint",
    "gallon",
    "celsius",
    "fahrenheit",
    "kelvin",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "year",
    "kilometer per hour",
    "mile per hour",
    "square meter",
    "square foot",
    "hectare",
    "acre",
    "megabyte",
    "gigabyte",
)
"""The units a model is shown: whole words, because a small one takes "m" for a mile, and no more than it can bear."""

_MAX_CHARS = 60
_MAX_WORDS = 6
_SIGNIFICANT = 6
# The registry remembers whatever it has read and forgets nothing, about 1.5 kB each time.
_MAX_USES = 20_000

# What people write where the registry knows another name, or reads something else: its "fl oz" is a femtoliter
# times an ounce, its C and F are coulomb and farad, its Gal is an acceleration.
_CALLED = {
    "degree_Celsius": "c, centigrade",
    "degree_Fahrenheit": "f",
    "kelvin": "k",
    "foot": "ft., ', ′",
    "inch": 'in., ", ″',
    "yard": "yd.",
    "kilometer": "kms",
    "gallon": "gal, gals, us gallon, us gallons",
    "imperial_gallon": "uk gallon, uk gallons",
    "imperial_pint": "uk pint, uk pints",
    "fluid_ounce": "fl oz, fl. oz, fl. oz., fluid oz, us fluid ounce, us fluid ounces",
    "metric_ton": "tonne, tonnes",
    "kilogram": "kilo, kilos, kgs",
    "pound": "lb., lbs.",
    "ounce": "oz.",
    "kilocalorie": "food calorie, food calories",
    "kilometer_per_hour": "kmh, kmph, km/hr, kilometers an hour, kilometres an hour",
    "mile_per_hour": "mi/hr, miles an hour",
    "mile / gallon": "mpg",
    "foot ** 2": "sqft, sq ft, sq. ft, sq. ft.",
    "meter ** 2": "sqm, sq m, sq. m",
    "kilometer ** 2": "sqkm, sq km, sq. km",
    "mile ** 2": "sqmi, sq mi, sq. mi, sq. mi.",
    "kilobyte": "kb",
    "megabyte": "mb",
    "gigabyte": "gb",
    "terabyte": "tb",
}
_ALIASES = {name: unit for unit, called in _CALLED.items() for name in called.split(", ")}
# These mean it only in the case they are written in.
_CASED = {
    "Cal": "kilocalorie",
    "kb": "kilobit",
    "Kb": "kilobit",
    "Mb": "megabit",
    "Gb": "gigabit",
    "Tb": "terabit",
    "Pt": "pint",
    "PT": "pint",
}

# The registry evaluates what it parses, so it is only given names, products, quotients and small powers.
_NAME = r"[^\W\d_]\w*"
_POWER = r"(?:\s?(?:\^|\*\*)\s?-?[1-4]|[²³])?"
_UNIT = re.compile(rf"(?:1\s?/\s?)?{_NAME}{_POWER}(?:(?:\s?[*/·⋅]\s?|\s){_NAME}{_POWER})*|[%°‰]")
_BETWEEN = re.compile(r"[\s*/·⋅]+")
_DEGREES = re.compile(r"\A(?:degrees?|deg\.?|°|º)\s?(?=(?:c|f|k|celsius|centigrade|fahrenheit|kelvins?)\Z)")
_HYPHEN = re.compile(r"_|(?<=[^\W\d])-(?=[^\W\d])")
_BARE_POWER = re.compile(r"([^\W\d_]+)([23])(?!\w)")

_KINDS = {
    "length": "meter",
    "area": "meter ** 2",
    "volume": "meter ** 3",
    "mass": "kilogram",
    "time": "second",
    "temperature": "kelvin",
    "speed": "meter / second",
    "acceleration": "meter / second ** 2",
    "force": "newton",
    "energy": "joule",
    "power": "watt",
    "pressure": "pascal",
    "frequency": "hertz",
    "angle": "radian",
    "rotation speed": "radian / second",
    "amount of data": "bit",
    "data rate": "bit / second",
    "electric current": "ampere",
    "electric voltage": "volt",
    "plain number": "percent",
}


class _Registry:
    """Pint's registry behind a lock: it fills its caches while it reads, and takes half a second to make."""

    def __init__(self) -> None:
        try:
            from pint import UnitRegistry
        except ImportError:
            raise ToolError("the unit converter is not installed: pip install 'toolturn[toolboxes]'") from None
        self.uses = 0
        self._registry: Any = UnitRegistry()
        self._kinds = {self._base(unit): kind for kind, unit in _KINDS.items()}
        known = {name.replace("_", " ") for name in self._registry if len(name) > 2 and name.islower()}
        self._names = [*UNITS, *sorted(known.difference(UNITS))]

    def convert(self, value: float, from_unit: str, to_unit: str) -> tuple[str, float, str]:
        """The value in the other unit, between the names of the two units."""
        source, base = self._unit("from_unit", from_unit)
        target, wanted = self._unit("to_unit", to_unit)
        # Not the dimension: an angle, a byte and a percent have none, and rpm is no hertz.
        if base != wanted:
            raise ToolError(
                f"to_unit: {_shown(target)} ({self._kind(wanted)}) can not be made of {_shown(source)} "
                f"({self._kind(base)}); use two units of one kind, such as kilogram and pound"
            )
        result = self._magnitude(value, source, target)
        if self._kinds.get(base) == "temperature":
            # Offsets leave noise beside zero, which rounding to significant digits would show.
            result = round(result, 9)
            if "delta" not in str(source) and self._magnitude(value, source, base) < -1e-9:
                raise ToolError(f"value: {number_text(value)} {_shown(source)} is below absolute zero; use more")
        elif value and not result:
            raise ToolError("value: the result is too small; use a larger number, such as 10")
        if not math.isfinite(result):
            raise ToolError("value: the result is too large; use a smaller number, such as 10")
        return _shown(source), result, _shown(target)

    def _magnitude(self, value: float, source: Any, target: Any) -> float:
        try:
            return float(self._registry.Quantity(value, source).to(target).magnitude)
        except Exception:  # noqa: BLE001 - logarithms, offsets and overflow each have an exception of their own
            raise ToolError(
                f"value: {number_text(value)} {_shown(source)} can not be given in {_shown(target)}; "
                "use another number or other units"
            ) from None

    def _base(self, unit: Any) -> Any:
        return self._registry.get_base_units(unit)[1]

    def _kind(self, base: Any) -> str:
        return self._kinds.get(base) or _shown(base)

    def _unit(self, field: str, text: str) -> tuple[Any, Any]:
        """The unit that a text names, and the base unit that tells its kind."""
        if len(text) > _MAX_CHARS:
            raise ToolError(f"{field}: the name is too long; use one unit such as kilometer")
        name = " ".join(_HYPHEN.sub(" ", text).split())
        if name[:1].isdigit() and not name.replace(" ", "").startswith("1/"):
            raise ToolError(f'{field}: {_quoted(text)} holds a number; put that in "value" and only the unit here')
        for reading in _readings(name):
            if found := self._parsed(reading):
                return found
        near = get_close_matches(name.lower(), self._names, 3, 0.7)
        hint = f"did you mean {' or '.join(near)}?" if near else "use a full name such as kilometer or pound"
        raise ToolError(f"{field}: the unit {_quoted(text)} is not known; {hint}")

    def _parsed(self, text: str) -> tuple[Any, Any] | None:
        if not _UNIT.fullmatch(text) or len(_BETWEEN.split(text)) > _MAX_WORDS:
            return None
        for read in (self._registry.parse_units, self._in_any_case):
            # Besides its own errors the registry raises assertions and those of Python's tokenizer.
            with suppress(Exception):
                unit = read(text)
                return unit, self._base(unit)
        return None

    def _in_any_case(self, text: str) -> Any:
        # Only where one unit has the name: GAL is a gallon or a galileo.
        ((prefix, unit, _),) = self._registry.parse_unit_name(text, case_sensitive=False)
        return self._registry.Unit(prefix + unit)


def _readings(name: str) -> list[str]:
    """What a name may stand for, the likeliest first."""
    lower = name.lower()
    bare = _DEGREES.sub("", lower)
    if known := _CASED.get(name) or _ALIASES.get(bare):
        return [known]
    readings = []
    for each in (name, lower) if bare == lower else (bare,):
        # A name of several words comes before a product: a light year is not light times a year.
        readings += [each.replace(" ", "_"), each, _BARE_POWER.sub(r"\1**\2", each)]
    return list(dict.fromkeys(readings))


def _shown(unit: Any) -> str:
    text = re.sub(r"(\w+) \*\* ([23])", lambda m: f"{'square' if m[2] == '2' else 'cubic'} {m[1]}", str(unit))
    text = re.sub(r"\bdegree_(\w)", lambda m: m[1].lower(), text)
    # A ton without a word before it means another mass in each country.
    text = re.sub(r"\bton\b", "short_ton", text)
    return text.replace(" / ", " per ").replace(" * ", " ").replace("_", " ")


def _quoted(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:39]}…"'


_lock = threading.Lock()
_registry: _Registry | None = None


def convert(value: float, from_unit: str, to_unit: str, *, decimals: int = 2) -> str:
    """Return a quantity in another unit as text, such as ``10 kilometer = 6.21 mile``.

    Args:
        value: The number of the first unit.
        from_unit: A name or symbol of a unit, or a product or quotient of several.
        to_unit: One of the same kind.
        decimals: Decimal places of a result that is 1 or more; below it has 6 significant digits.

    Raises:
        ToolError: A unit is not known, the two are of different kinds, or the result is no finite number.
    """
    global _registry
    if not math.isfinite(value):
        raise ToolError("value: it must be a finite number, such as 10")
    with _lock:
        if _registry is None or _registry.uses >= _MAX_USES:
            _registry = _Registry()
        _registry.uses += 1
        source, result, target = _registry.convert(value, from_unit, to_unit)
    rounded = round(result, decimals) if abs(result) >= 1 else float(f"{result:.{_SIGNIFICANT}g}")
    return f"{number_text(value)} {source} = {number_text(rounded)} {target}"


def units_toolbox(*, decimals: int = 2, shown: Sequence[str] | None = UNITS) -> ToolSet:
    """Return the tool ``convert_units``.

    Args:
        decimals: Decimal places of a result that is 1 or more; below it has 6 significant digits.
        shown: The units that the tool's schema lists, which is all a model held to the schema can use; None for any
            text. The tool itself takes every unit that pint knows, whatever is shown.
    """
    extra: dict[str, Any] = {"enum": list(shown)} if shown is not None else {}
    # Not a signature: what it lists is only known here.
    unit = Annotated[str, Field(json_schema_extra=extra)]

    def convert_units(value: float, from_unit: str, to_unit: str) -> str:
        """Convert a value from one unit to another.

        Args:
            value: The number to convert.
            from_unit: The unit the value has.
            to_unit: The unit wanted.
        """
        return convert(value, from_unit, to_unit, decimals=decimals)

    convert_units.__annotations__.update(from_unit=unit, to_unit=unit)
    return ToolSet([tool(effect="none", parallel=True)(convert_units)])
