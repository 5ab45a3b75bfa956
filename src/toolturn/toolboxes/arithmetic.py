"""What can be calculated: operations and functions that are exact where they can be and bounded everywhere."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from ..errors import ToolError

Number: TypeAlias = int | Fraction | float
"""What is calculated with: whole numbers and fractions exactly, everything else as floating point."""

MAX_OPERATIONS = 150
MAX_DEPTH = 40
MAX_DIGITS = 2000

# What is passed on between two operations may be larger than what is shown, so that 1000! / 998! works.
_MAX_BITS = 16_000
# Above it a fraction goes on as floating point; whole numbers have no such way out because they are shown exactly.
_MAX_FRACTION_BITS = 2_000
_MAX_FACTORIAL = 1_500
MAX_EXPONENT = 400
_MAX_PLACES = 30
MAX_SIGNS = 3
# Two numbers that differ by less than this share of them are one number that was written down in two ways.
_NOISE = 1e-15


def number_text(value: Number, digits: int = 12) -> str:
    """Return a number as a person writes it: no noise at its end, no exponent where it can be done without.

    Args:
        value: A finite number.
        digits: Significant digits of what is no whole number; more where that many do not reach the point.
    """
    if isinstance(value, int):
        return str(value)
    exact = isinstance(value, Fraction)
    number = _decimal(value, digits)
    if number == 0:
        return "0"
    # Floating point holds 15 digits; a longer row of them would be made up.
    most = MAX_DIGITS if exact else 15
    whole = number.adjusted() + 1
    if whole > most or whole < -8:
        return f"{number.normalize():e}"
    if whole > digits:
        number = _decimal(value, min(whole + 2, most))
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value: Fraction | float, digits: int) -> Decimal:
    context = Context(prec=digits)
    if isinstance(value, Fraction):
        return context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return context.create_decimal_from_float(value)


def refuse(what: str) -> NoReturn:
    """Tell the model what it has to mend in its expression.

    Args:
        what: The rest of a sentence about it.

    Raises:
        ToolError: Always.
    """
    raise ToolError(f"expression: {what}")


def too_large() -> NoReturn:
    """Refuse what takes too much work, or gives too large a number.

    Raises:
        ToolError: Always.
    """
    refuse("the numbers become too large; use smaller ones")


def _too_small() -> NoReturn:
    refuse("the numbers become too small; use larger ones")


def quoted(text: str) -> str:
    """Return a piece of an expression as it may stand in a sentence, shortened.

    Args:
        text: The piece.
    """
    text = text.replace('"', "'")
    return f'"{text}"' if len(text) <= 20 else f'"{text[:19]}…"'


# ---- the operations: each one is bounded before it starts, or so small that it is enough to look at what it gave


def settled(value: Any) -> Number:
    """Return a value in its simplest form.

    Args:
        value: What an operation gave.

    Raises:
        ToolError: It is no finite real number, or too large to go on with.
    """
    if isinstance(value, complex):
        refuse("the result is not a real number; use even roots of positive numbers only")
    if isinstance(value, Fraction):
        if value.denominator == 1:
            value = value.numerator
        elif max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_FRACTION_BITS:
            rounded = float(value)
            return rounded or _too_small()
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            too_large()
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        too_large()
    number: Number = value
    return number


def _add(left: Number, right: Number) -> Number:
    total = left + right
    if isinstance(total, float) and abs(total) < _NOISE * abs(float(right)):
        return 0
    return settled(total)


def _subtract(left: Number, right: Number) -> Number:
    return _add(left, -right)


def _multiply(left: Number, right: Number) -> Number:
    return settled(left * right)


def _divide(left: Number, right: Number) -> Number:
    if right == 0:
        refuse("division by zero; divide by another number")
    if isinstance(left, float) or isinstance(right, float):
        return settled(left / right)
    return settled(Fraction(left, right))


def _floor_divide(left: Number, right: Number) -> Number:
    if right == 0:
        refuse("division by zero; divide by another number")
    return settled(left // right)


def _modulo(left: Number, right: Number) -> Number:
    if right == 0:
        refuse("the remainder of a division by zero; divide by another number")
    return settled(left % right)


def _power(base: Number, exponent: Number) -> Number:
    if base == 0 and exponent < 0:
        refuse("zero has no negative power; use another base")
    if isinstance(base, float) or not isinstance(exponent, int):
        return settled(float(base) ** float(exponent))
    if base in (0, 1, -1):
        return settled(base if exponent % 2 else base * base) if exponent else 1
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if isinstance(base, int) and exponent >= 0:
        if (bits - 1) * exponent > _MAX_BITS:
            too_large()
        return settled(base**exponent)
    if bits * abs(exponent) > _MAX_FRACTION_BITS:
        rounded = float(base) ** exponent
        return settled(rounded) if rounded else _too_small()
    return settled(Fraction(base) ** exponent)


def percent(value: Number) -> Number:
    """Return a hundredth of a number.

    Args:
        value: The number before the percent sign.
    """
    return _divide(value, 100)


def _whole(value: Number, function: str) -> int:
    if not isinstance(value, int):
        refuse(f"{function}() takes whole numbers only; use for example 12")
    return value


def _sqrt(value: Number) -> Number:
    if value < 0:
        refuse("sqrt() takes no negative number; use for example sqrt(16)")
    if not isinstance(value, float):
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root == value:
            return settled(root)
    return math.sqrt(value)


def _round(value: Number, places: Number = 0) -> Number:
    # A half goes away from zero, as people and pocket calculators do it; the built-in one takes the even neighbour.
    if not isinstance(places, int) or abs(places) > _MAX_PLACES:
        refuse(f"round() takes a number and at most {_MAX_PLACES} decimal places, for example round(2.345, 2)")
    scale = Fraction(10) ** places
    exact = Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(value)
    size = math.floor(abs(exact) * scale + Fraction(1, 2)) / scale
    return settled(-size if value < 0 else size)


def _factorial(value: Number) -> Number:
    number = _whole(value, "factorial")
    if number < 0:
        refuse("factorial() takes no negative number; use for example factorial(5)")
    if number > _MAX_FACTORIAL:
        too_large()
    return settled(math.factorial(number))


def _gcd(*values: Number) -> Number:
    return math.gcd(*(_whole(value, "gcd") for value in values))


def _lcm(*values: Number) -> Number:
    result: Number = 1
    for value in values:
        result = settled(math.lcm(_whole(result, "lcm"), _whole(value, "lcm")))
    return result


def _sum(*values: Number) -> Number:
    total: Number = 0
    for value in values:
        total = _add(total, value)
    return total


def _mean(*values: Number) -> Number:
    return _divide(_sum(*values), len(values))


def _log(value: Number, base: Number = math.e) -> Number:
    if value <= 0 or base <= 0 or base == 1:
        refuse("a logarithm takes numbers above 0, for example log(8, 2)")
    if base in (2, 10):
        # Exact for the powers of these two, which the general way is not.
        return math.log2(value) if base == 2 else math.log10(value)
    return settled(math.log(value, base) if base != math.e else math.log(value))


def _floating(function: Callable[[float], float], name: str) -> Callable[[Number], Number]:
    def apply(value: Number) -> Number:
        number = float(value)
        try:
            result = function(number)
        except ValueError:
            refuse(f"{name}() is not defined for {number_text(number)}; use another number")
        return settled(result)

    return apply


def _circular(function: Callable[[float], float]) -> Callable[[float], float]:
    def apply(number: float) -> float:
        result = function(number)
        # pi is rounded, so sin(pi) misses zero by as much.
        if abs(number) > 1 and abs(result) < _NOISE * abs(number):
            return 0.0
        if abs(result) > 1e15:
            raise ValueError
        return result

    return apply


@dataclass(frozen=True, slots=True)
class Function:
    """A function of expressions.

    Args:
        call: What calculates it.
        least: Arguments it needs.
        most: Arguments it takes.
    """

    call: Callable[..., Number]
    least: int = 1
    most: int = 1


FUNCTIONS: dict[str, Function] = {
    "sqrt": Function(_sqrt),
    "cbrt": Function(_floating(math.cbrt, "cbrt")),
    "abs": Function(abs),
    "round": Function(_round, most=2),
    "floor": Function(lambda value: settled(math.floor(value))),
    "ceil": Function(lambda value: settled(math.ceil(value))),
    "min": Function(min, 2, MAX_OPERATIONS),
    "max": Function(max, 2, MAX_OPERATIONS),
    "sum": Function(_sum, most=MAX_OPERATIONS),
    "mean": Function(_mean, most=MAX_OPERATIONS),
    "exp": Function(_floating(math.exp, "exp")),
    "ln": Function(_log),
    "log": Function(_log, most=2),
    "log10": Function(lambda value: _log(value, 10)),
    "log2": Function(lambda value: _log(value, 2)),
    "sin": Function(_floating(_circular(math.sin), "sin")),
    "cos": Function(_floating(_circular(math.cos), "cos")),
    "tan": Function(_floating(_circular(math.tan), "tan")),
    "asin": Function(_floating(math.asin, "asin")),
    "acos": Function(_floating(math.acos, "acos")),
    "atan": Function(_floating(math.atan, "atan")),
    "radians": Function(_floating(math.radians, "radians")),
    "degrees": Function(_floating(math.degrees, "degrees")),
    "factorial": Function(_factorial),
    "gcd": Function(_gcd, 2, MAX_OPERATIONS),
    "lcm": Function(_lcm, 2, MAX_OPERATIONS),
}
CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}
OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.USub: lambda value: -value,
    ast.UAdd: lambda value: value,
}
