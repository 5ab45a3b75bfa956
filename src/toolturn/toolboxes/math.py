"""The toolbox ``math``: a calculator that is exact where it can be and bounded everywhere."""

from __future__ import annotations

import ast
import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated, Any, NoReturn, TypeAlias

from pydantic import Field

from ..errors import ToolError
from ..tools import ToolSet, tool

Number: TypeAlias = int | Fraction | float
"""What is calculated with: whole numbers and fractions exactly, everything else as floating point."""

MAX_CHARS = 1000
MAX_OPERATIONS = 150
MAX_DEPTH = 40
MAX_DIGITS = 2000

# What is passed on between two operations may be larger than what is shown, so that 1000! / 998! works.
_MAX_BITS = 16_000
# Above it a fraction goes on as floating point; whole numbers have no such way out because they are shown exactly.
_MAX_FRACTION_BITS = 2_000
_MAX_FACTORIAL = 1_500
_MAX_EXPONENT = 400
_MAX_PLACES = 30
_MAX_SIGNS = 3
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


def _refuse(what: str) -> NoReturn:
    raise ToolError(f"expression: {what}")


def _too_large() -> NoReturn:
    _refuse("the numbers become too large; use smaller ones")


def _too_small() -> NoReturn:
    _refuse("the numbers become too small; use larger ones")


def _quoted(text: str) -> str:
    text = text.replace('"', "'")
    return f'"{text}"' if len(text) <= 20 else f'"{text[:19]}…"'


# ---- the operations: each one is bounded before it starts, or so small that it is enough to look at what it gave


def _settled(value: Any) -> Number:
    """The value in its simplest form; refused where it is none or too large to go on with."""
    if isinstance(value, complex):
        _refuse("the result is not a real number; use even roots of positive numbers only")
    if isinstance(value, Fraction):
        if value.denominator == 1:
            value = value.numerator
        elif max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_FRACTION_BITS:
            rounded = float(value)
            return rounded or _too_small()
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            _too_large()
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        _too_large()
    number: Number = value
    return number


def _add(left: Number, right: Number) -> Number:
    total = left + right
    if isinstance(total, float) and abs(total) < _NOISE * abs(float(right)):
        return 0
    return _settled(total)


def _subtract(left: Number, right: Number) -> Number:
    return _add(left, -right)


def _multiply(left: Number, right: Number) -> Number:
    return _settled(left * right)


def _divide(left: Number, right: Number) -> Number:
    if right == 0:
        _refuse("division by zero; divide by another number")
    if isinstance(left, float) or isinstance(right, float):
        return _settled(left / right)
    return _settled(Fraction(left, right))


def _floor_divide(left: Number, right: Number) -> Number:
    if right == 0:
        _refuse("division by zero; divide by another number")
    return _settled(left // right)


def _modulo(left: Number, right: Number) -> Number:
    if right == 0:
        _refuse("the remainder of a division by zero; divide by another number")
    return _settled(left % right)


def _power(base: Number, exponent: Number) -> Number:
    if base == 0 and exponent < 0:
        _refuse("zero has no negative power; use another base")
    if isinstance(base, float) or not isinstance(exponent, int):
        return _settled(float(base) ** float(exponent))
    if base in (0, 1, -1):
        return _settled(base if exponent % 2 else base * base) if exponent else 1
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if isinstance(base, int) and exponent >= 0:
        if (bits - 1) * exponent > _MAX_BITS:
            _too_large()
        return _settled(base**exponent)
    if bits * abs(exponent) > _MAX_FRACTION_BITS:
        rounded = float(base) ** exponent
        return _settled(rounded) if rounded else _too_small()
    return _settled(Fraction(base) ** exponent)


def _percent(value: Number) -> Number:
    return _divide(value, 100)


def _whole(value: Number, function: str) -> int:
    if not isinstance(value, int):
        _refuse(f"{function}() takes whole numbers only; use for example 12")
    return value


def _sqrt(value: Number) -> Number:
    if value < 0:
        _refuse("sqrt() takes no negative number; use for example sqrt(16)")
    if not isinstance(value, float):
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root == value:
            return _settled(root)
    return math.sqrt(value)


def _round(value: Number, places: Number = 0) -> Number:
    # A half goes away from zero, as people and pocket calculators do it; the built-in one takes the even neighbour.
    if not isinstance(places, int) or abs(places) > _MAX_PLACES:
        _refuse(f"round() takes a number and at most {_MAX_PLACES} decimal places, for example round(2.345, 2)")
    scale = Fraction(10) ** places
    exact = Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(value)
    size = math.floor(abs(exact) * scale + Fraction(1, 2)) / scale
    return _settled(-size if value < 0 else size)


def _factorial(value: Number) -> Number:
    number = _whole(value, "factorial")
    if number < 0:
        _refuse("factorial() takes no negative number; use for example factorial(5)")
    if number > _MAX_FACTORIAL:
        _too_large()
    return _settled(math.factorial(number))


def _gcd(*values: Number) -> Number:
    return math.gcd(*(_whole(value, "gcd") for value in values))


def _lcm(*values: Number) -> Number:
    result: Number = 1
    for value in values:
        result = _settled(math.lcm(_whole(result, "lcm"), _whole(value, "lcm")))
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
        _refuse("a logarithm takes numbers above 0, for example log(8, 2)")
    if base in (2, 10):
        # Exact for the powers of these two, which the general way is not.
        return math.log2(value) if base == 2 else math.log10(value)
    return _settled(math.log(value, base) if base != math.e else math.log(value))


def _floating(function: Callable[[float], float], name: str) -> Callable[[Number], Number]:
    def apply(value: Number) -> Number:
        number = float(value)
        try:
            result = function(number)
        except ValueError:
            _refuse(f"{name}() is not defined for {number_text(number)}; use another number")
        return _settled(result)

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
class _Function:
    call: Callable[..., Number]
    least: int = 1
    most: int = 1


_FUNCTIONS: dict[str, _Function] = {
    "sqrt": _Function(_sqrt),
    "cbrt": _Function(_floating(math.cbrt, "cbrt")),
    "abs": _Function(abs),
    "round": _Function(_round, most=2),
    "floor": _Function(lambda value: _settled(math.floor(value))),
    "ceil": _Function(lambda value: _settled(math.ceil(value))),
    "min": _Function(min, 2, MAX_OPERATIONS),
    "max": _Function(max, 2, MAX_OPERATIONS),
    "sum": _Function(_sum, most=MAX_OPERATIONS),
    "mean": _Function(_mean, most=MAX_OPERATIONS),
    "exp": _Function(_floating(math.exp, "exp")),
    "ln": _Function(_log),
    "log": _Function(_log, most=2),
    "log10": _Function(lambda value: _log(value, 10)),
    "log2": _Function(lambda value: _log(value, 2)),
    "sin": _Function(_floating(_circular(math.sin), "sin")),
    "cos": _Function(_floating(_circular(math.cos), "cos")),
    "tan": _Function(_floating(_circular(math.tan), "tan")),
    "asin": _Function(_floating(math.asin, "asin")),
    "acos": _Function(_floating(math.acos, "acos")),
    "atan": _Function(_floating(math.atan, "atan")),
    "radians": _Function(_floating(math.radians, "radians")),
    "degrees": _Function(_floating(math.degrees, "degrees")),
    "factorial": _Function(_factorial),
    "gcd": _Function(_gcd, 2, MAX_OPERATIONS),
    "lcm": _Function(_lcm, 2, MAX_OPERATIONS),
}
_CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
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
# No name that can be read from an expression begins with an underscore.
_PERCENT = "_percent"
_WORDS = {"x": "*", "times": "*", "plus": "+", "minus": "-", "mod": "%"}
_EXAMPLE = 'for example "12 * (3 + 4)"'

_SPELLINGS = str.maketrans(
    {
        **dict.fromkeys("×·⋅∙∗", "*"),
        **dict.fromkeys("÷∕⁄", "/"),
        **dict.fromkeys("−–—‐‑", "-"),
        **dict.fromkeys("\t\n\r\f\v\u00a0\u2009\u202f", " "),
        "²": "^2",
        "³": "^3",
        "√": "sqrt",
        "π": "pi",
    }
)
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e([+-]?[0-9]+))?")
_GROUPED = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]*)?)(?:e([+-]?[0-9]+))?")
_GROUP = re.compile(r",[0-9]{3}(?![0-9])")
_ROOT = re.compile(r"√ ?([0-9][0-9.,]*)")
_NAME = re.compile(r"x(?![a-z])|log(?:10|2)(?![0-9])|[a-z]+")
_OPERATOR = re.compile(r"\*\*|//|[-+*/%^]")
_OTHER_BASE = re.compile(r"0[xbo]\w")


@dataclass(slots=True)
class _Open:
    """A parenthesis that is not closed yet."""

    start: int
    function: str | None = None
    arguments: int = 1
    tight: int = 0
    """Commas that may group digits as well, as in ``1,234``."""
    loose: int = 0
    """Signs that such commas do group digits: others that plainly end an argument, or a group such as ``,034``."""

    @property
    def separates(self) -> bool:
        """Whether a comma ends an argument here; elsewhere it can only group the digits of a number."""
        return self.function is not None and _FUNCTIONS[self.function].most > 1


@dataclass(slots=True)
class _Reader:
    """Reads an expression into Python's notation, each number replaced by its index.

    Everything that comes out of it can be parsed: operands and operators take turns, parentheses match, functions
    exist and have as many arguments as they take. So the model is told what is wrong in the words of a calculator.
    """

    text: str
    numbers: list[Number] = field(default_factory=list)
    _out: list[str] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _at: int = 0
    _operand: int | None = None
    """Where the operand just read begins; None while one is due."""
    _percent: bool = False
    """Whether the operand just read ends in a percent sign."""
    _signs: int = 0
    _operations: int = 0

    def read(self) -> str:
        """The expression in Python's notation."""
        while self._at < len(self.text):
            if self.text[self._at] == " ":
                self._at += 1
            elif self._operand is None:
                self._before_operand()
            else:
                self._after_operand()
        if self._operand is None:
            _refuse(f"it ends where a number is missing; write {_EXAMPLE}")
        if self._open:
            _refuse('a ")" is missing; close every parenthesis')
        return " ".join(self._out)

    def _before_operand(self) -> None:
        text, at = self.text, self._at
        grouped = None if self._open and self._open[-1].separates else _GROUPED.match(text, at)
        if found := grouped or _NUMBER.match(text, at):
            if _OTHER_BASE.match(text, at):
                _refuse("numbers are written in base ten, for example 255")
            self._put_operand(str(len(self.numbers)), len(found[0]))
            self.numbers.append(_literal(found[1].replace(",", ""), found[2]))
        elif found := _NAME.match(text, at):
            self._name(found[0])
        elif text[at] == "(":
            self._enter(_Open(len(self._out)))
            self._at += 1
        elif text[at] in "+-":
            self._signs += 1
            if self._signs > _MAX_SIGNS:
                _refuse(f"there are too many signs in a row; write {_EXAMPLE}")
            self._count()
            self._out.append(text[at])
            self._at += 1
        elif text[at] == ")" or text[at] == "," or text[at] == "!" or _OPERATOR.match(text, at):
            _refuse(f"a number is missing before {_quoted(text[at])}; write {_EXAMPLE}")
        else:
            self._unknown_character()

    def _after_operand(self) -> None:
        text, at = self.text, self._at
        char = text[at]
        if char == ")":
            self._leave()
        elif char == ",":
            self._comma()
        elif char == "!":
            if text[at - 1] == "!":
                _refuse('"!!" is not known; write for example 5! or factorial(5)')
            self._wrap("factorial")
        elif char == "%" and self._means_percent():
            self._wrap(_PERCENT)
            self._percent = True
        elif found := _OPERATOR.match(text, at):
            self._put_operator("**" if found[0] == "^" else found[0], len(found[0]))
        elif found := _NAME.match(text, at):
            word = found[0]
            if word == "of" and self._percent:
                self._put_operator("*", 2)
            elif word in _WORDS:
                self._put_operator(_WORDS[word], len(word))
            elif word in _FUNCTIONS or word in _CONSTANTS:
                self._missing_operator(word)
            else:
                self._unknown_name(word)
        elif char == "(" or _NUMBER.match(text, at):
            self._missing_operator(char)
        else:
            self._unknown_character()

    def _put_operand(self, source: str, length: int) -> None:
        self._operand = len(self._out)
        self._out.append(source)
        self._at += length
        self._signs, self._percent = 0, False

    def _put_operator(self, source: str, length: int) -> None:
        self._count()
        self._out.append(source)
        self._operand = None
        self._at += length

    def _count(self) -> None:
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            _refuse(f"it is too long; use at most {MAX_OPERATIONS} operations")

    def _name(self, name: str) -> None:
        if name in _CONSTANTS:
            self._put_operand(name, len(name))
            return
        if name not in _FUNCTIONS:
            self._unknown_name(name)
        self._at += len(name)
        while self.text.startswith(" ", self._at):
            self._at += 1
        if not self.text.startswith("(", self._at):
            _refuse(f"{name} needs parentheses, for example {name}({', '.join(['16', '4'][: _FUNCTIONS[name].least])})")
        self._at += 1
        self._out.append(name)
        self._enter(_Open(len(self._out) - 1, name))

    def _enter(self, opened: _Open) -> None:
        self._count()
        self._open.append(opened)
        if len(self._open) > MAX_DEPTH:
            _refuse(f"it is nested too deeply; use at most {MAX_DEPTH} parentheses in each other")
        self._out.append("(")
        self._signs = 0

    def _leave(self) -> None:
        if not self._open:
            _refuse('there is a ")" without its "("; close only what is open')
        opened = self._open.pop()
        if opened.function is not None:
            bounds = _FUNCTIONS[opened.function]
            if not bounds.least <= opened.arguments <= bounds.most:
                takes = {1: "one number", 2: "one or two numbers"}.get(bounds.most, f"{bounds.least} numbers or more")
                _refuse(f"{opened.function}() takes {takes}, not {opened.arguments}")
            if opened.tight and opened.loose:
                _refuse(f'"1,234" can mean two things in {opened.function}(); write 1234, or 1, 234')
        self._out.append(")")
        self._operand = opened.start
        self._percent = False
        self._at += 1

    def _comma(self) -> None:
        opened = self._open[-1] if self._open else None
        if opened is None or not opened.separates:
            _refuse('"," is not used here; write 1.5 with a point, and 1234 without a comma')
        # max(1,234, 5) reads as three numbers or as two: only one way of writing commas is taken at a time.
        if _GROUP.match(self.text, self._at) and self.text[self._at - 1].isdigit():
            opened.tight += 1
            opened.loose += self.text[self._at + 1] == "0"
        elif self.text.startswith(", ", self._at):
            opened.loose += 1
        opened.arguments += 1
        self._put_operator(",", 1)

    def _wrap(self, function: str) -> None:
        if self._percent:
            _refuse('"%" must be followed by an operator; write for example "15% of 240"')
        self._count()
        assert self._operand is not None
        self._out.insert(self._operand, f"{function}(")
        self._out.append(")")
        self._at += 1

    def _means_percent(self) -> bool:
        """Whether the sign at hand is a percent sign; otherwise it asks for a remainder."""
        before, after = self.text[self._at - 1], self.text[self._at + 1 :]
        rest = after.lstrip(" ")
        word = found[0] if (found := _NAME.match(rest)) else ""
        if not rest or rest[0] in ")*/^,!%" or word == "of" or word in _WORDS:
            return True
        attached = before != " "
        if rest[0] in "+-":
            if not attached:
                _refuse('"%" can mean two things here; write 15% without a blank, or mod for a remainder')
            return True
        if attached and after[0] == " ":
            _refuse('"%" can mean two things here; write "15% of 240", or "17 mod 5" for a remainder')
        return False

    def _missing_operator(self, found: str) -> NoReturn:
        _refuse(f"an operator is missing before {_quoted(found)}; write for example 2 * 3")

    def _unknown_name(self, name: str) -> NoReturn:
        _refuse(f"{_quoted(name)} is not known; use numbers, + - * / ^ ( ) and functions such as sqrt(16)")

    def _unknown_character(self) -> NoReturn:
        _refuse(f"{_quoted(self.text[self._at])} is not allowed; use numbers and + - * / ^ ( ), {_EXAMPLE}")


def _literal(digits: str, exponent: str | None) -> Number:
    value = Fraction(digits if digits[0] != "." else f"0{digits}")
    if exponent is not None:
        if len(exponent) > 5 or abs(int(exponent)) > _MAX_EXPONENT:
            _too_large()
        value *= Fraction(10) ** int(exponent)
    return _settled(value)


def _parse(text: str) -> ast.expr:
    reader = _Reader(text)
    root = ast.parse(reader.read(), mode="eval").body
    nodes = list(ast.walk(root))
    percents: set[int] = set()
    # Children come before their parents in this order.
    for node in reversed(nodes):
        if isinstance(node, ast.Constant):
            node.value = reader.numbers[node.value]  # type: ignore[index,assignment]
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == _PERCENT:
                percents.add(id(node))
        elif isinstance(node, ast.UnaryOp):
            if id(node.operand) in percents:
                percents.add(id(node))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and id(node.right) in percents:
            if id(node.left) in percents:
                percents.add(id(node))
            else:
                # "240 + 15%" is 240 and 15% of it; nobody who writes it means 240.15.
                one = ast.Constant(1)
                node.right = ast.BinOp(one, node.op, node.right)
                node.op = ast.Mult()
    return root


_lock = threading.Lock()
_evaluator: Any = None


def _evaluate(root: ast.expr) -> Any:
    global _evaluator
    if _evaluator is None:
        with _lock:
            if _evaluator is None:
                _evaluator = _make_evaluator()
    return _evaluator.eval("", previously_parsed=root)


def _make_evaluator() -> Any:
    try:
        from simpleeval import SimpleEval
    except ImportError:
        raise ToolError("the calculator is not installed: pip install 'toolturn[toolboxes]'") from None
    functions = {name: function.call for name, function in _FUNCTIONS.items()}
    made = SimpleEval(operators=_OPERATORS, functions={**functions, _PERCENT: _percent}, names=_CONSTANTS)
    # What the reader can not write is not evaluated either.
    kept = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant)
    made.nodes = {kind: handler for kind, handler in made.nodes.items() if kind in kept}
    return made


def calculate(expression: str) -> str:
    """Return the value of an arithmetic expression as text.

    Args:
        expression: Numbers, ``+ - * / // % ^ **``, parentheses, ``pi``, ``e`` and functions. ``15% of 240``, ``5!``,
            ``1,234`` and ``×`` are understood; ``240 + 15%`` is 240 and 15 percent of it.

    Returns:
        A whole number with all its digits, everything else with 12 significant ones.

    Raises:
        ToolError: It is no expression, has no finite real value, or would take too much work.
    """
    if len(expression) > MAX_CHARS:
        _refuse(f"it is too long; use at most {MAX_CHARS} characters")
    text = _ROOT.sub(r"sqrt(\1)", expression).translate(_SPELLINGS).lower().strip(" ").rstrip("=? ")
    if not text:
        _refuse(f"it is empty; write {_EXAMPLE}")
    try:
        value = _settled(_evaluate(_parse(text)))
        # 2000 digits are 6644 bits: the digits are not made in order to be counted.
        if isinstance(value, int) and (value.bit_length() > 6650 or len(str(abs(value))) > MAX_DIGITS):
            _refuse(f"the result has more than {MAX_DIGITS} digits; use smaller numbers")
        return number_text(value)
    except OverflowError:
        _too_large()
    except (ArithmeticError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        # None of these is known to happen; a calculator must not show a traceback if one does.
        _refuse(f"it can not be calculated; write {_EXAMPLE}")


# A grammar made from it writes names that the reader knows, and writes no function without its parenthesis.
_PATTERN = rf"^([0-9+*/%^(),. -]|pi|({'|'.join(_FUNCTIONS)})\(){{1,80}}$"


@tool(effect="none", parallel=True)
def calculator(expression: Annotated[str, Field(json_schema_extra={"pattern": _PATTERN})]) -> str:
    """Evaluate an arithmetic expression with + - * / ( ) and numbers."""
    # No more than this is told: a small model calls the tool with the best description for everything, and copies
    # an example instead of the user's numbers. The pattern names the functions to those who read it.
    return calculate(expression)


def math_toolbox() -> ToolSet:
    """Return the tool ``calculator``."""
    return ToolSet([calculator])
