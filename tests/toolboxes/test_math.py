"""The calculator: what it understands, what it says, and that nothing makes it work for long."""

from __future__ import annotations

import ast
import asyncio
import inspect
import math
import re
import sys
import threading
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolturn import ToolError
from toolturn.toolboxes.arithmetic import FUNCTIONS, MAX_DEPTH, MAX_DIGITS, MAX_OPERATIONS, number_text
from toolturn.toolboxes.expressions import MAX_CHARS
from toolturn.toolboxes.math import calculate, math_toolbox

from . import admits, call, outcome, processor_seconds, refusal

TOOLS = math_toolbox()
MOST_SECONDS = 0.5
"""A hostile expression ends in far less; the rest is for slow machines."""


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("17 * 24", "408"),
        ("1234 + 5678", "6912"),
        ("15 / 100 * 240", "36"),
        ("1000 / 8", "125"),
        ("(3 + 4) * 12", "84"),
        ("7 * 12.50", "87.5"),
        ("99 ^ 2", "9801"),
        ("99 ** 2", "9801"),
        ("2048 - 777", "1271"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("17 % 5", "2"),
        ("5.5 % 2", "1.5"),
        ("-2 ^ 2", "-4"),
        ("2 ^ -2", "0.25"),
        ("2 ^ 3 ^ 2", "512"),
        ("5 - -3", "8"),
        (".5 + 1.", "1.5"),
        ("007", "7"),
        ("2e3", "2000"),
        ("50 - 12.75 - 8.40", "28.85"),
    ],
)
def test_arithmetic(expression: str, result: str) -> None:
    assert call(TOOLS, "calculator", expression=expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("0.1 + 0.2", "0.3"),
        ("0.1 + 0.2 - 0.3", "0"),
        ("1.1 * 1.1", "1.21"),
        ("1 / 3 * 3", "1"),
        ("1 / 3", "0.333333333333"),
        ("2 / 3", "0.666666666667"),
        ("10 ** 29 / 10", "1" + "0" * 28),
        ("2 ^ 200", str(2**200)),
        ("1234567890123.45", "1234567890123.45"),
        ("1 / 7 * 1e20", "14285714285714285714.29"),
        ("1e-20", "1e-20"),
        ("1.05 ^ 365", "54211841.5778"),
        ("1.0001 ^ 100000", "22015.4560485"),
        ("sqrt(2) ^ 2", "2"),
        ("exp(100)", "2.68811714182e+43"),
        ("sin(pi)", "0"),
        ("cos(pi / 2)", "0"),
        ("sin(1) - sin(1)", "0"),
    ],
)
def test_numbers_are_exact_where_they_can_be_and_have_no_noise_where_they_can_not(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("sqrt(1764)", "42"),
        ("sqrt(2.25)", "1.5"),
        ("sqrt(10 ^ 600) / 10 ^ 299", "10"),
        ("cbrt(27)", "3"),
        ("abs(-5)", "5"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.675, 2)", "2.68"),
        ("round(sqrt(2), 3)", "1.414"),
        ("round(1234, -2)", "1200"),
        ("floor(-2.5)", "-3"),
        ("ceil(2.1)", "3"),
        ("min(3, 1, 2)", "1"),
        ("max(1, 2.5)", "2.5"),
        ("sum(12, 45, 88)", "145"),
        ("mean(4, 8, 15)", "9"),
        ("exp(1)", "2.71828182846"),
        ("ln(e)", "1"),
        ("log(100)", "4.60517018599"),
        ("log(8, 2)", "3"),
        ("log(1000, 10)", "3"),
        ("log10(1000)", "3"),
        ("log2(2 ^ 2000)", "2000"),
        ("sin(radians(30))", "0.5"),
        ("tan(pi / 4)", "1"),
        ("degrees(acos(0.5))", "60"),
        ("asin(1) + atan(0)", "1.57079632679"),
        ("tau / pi", "2"),
        ("factorial(5)", "120"),
        ("factorial(1000) / factorial(998)", "999000"),
        ("gcd(1071, 462)", "21"),
        ("lcm(4, 6, 10)", "60"),
        ("SQRT(16) + Pi - PI", "4"),
        ("max((1 + 2), sqrt(max(4, 16)))", "4"),
    ],
)
def test_functions(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("15%", "0.15"),
        ("15% of 240", "36"),
        ("15 % of 240", "36"),
        ("15% * 240", "36"),
        ("240 * 15%", "36"),
        ("(10 + 5)% of 200", "30"),
        ("10 + 15% of 240", "46"),
        ("max(5%, 3%)", "0.05"),
        # what is added to an amount is a part of this amount, as on every pocket calculator
        ("240 + 15%", "276"),
        ("240 - 15%", "204"),
        ("240 - +15%", "204"),
        ("100 - 20% - 10%", "72"),
        ("2 * 3 + 10%", "6.6"),
        # without an amount there is nothing to be a part of
        ("5% + 3% + 2%", "0.1"),
        ("-5% + 3%", "-0.02"),
        ("10%-3", "-2.9"),
        # with a number behind it the sign asks for a remainder
        ("17%5", "2"),
        ("17 % (2 + 3)", "2"),
        ("17 mod 5", "2"),
    ],
)
def test_percents(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("7 × 12 ÷ 4 − 1", "20"),
        ("5² + 2³", "33"),
        ("√16 + √(9)", "7"),
        ("2 * π", "6.28318530718"),
        ("17 x 24", "408"),
        ("17x24", "408"),
        ("6 times 7 plus 2 minus 1", "43"),
        ("96 / 3 =", "32"),
        ("96 / 3 = ?", "32"),
        ("5!", "120"),
        ("(2 + 3)! / 2", "60"),
        ("1,234 + 1", "1235"),
        ("1,234,567.5 * 2", "2469135"),
        ("(1,000 + 1)", "1001"),
        ("sqrt(1,764)", "42"),
        ("max(100,200)", "200"),
        ("max(1,234)", "234"),
        ("\t1\n+\u00a01 ", "2"),
    ],
)
def test_what_people_write_is_understood(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("10 % -3", "can mean two things"),
        ("15% 240", "can mean two things"),
        ("max(1,234, 5)", "can mean two things"),
        ("gcd(1,071, 462)", "can mean two things"),
        ("gcd(1,071,462)", "can mean two things"),
        ("1.234,56", "1.5 with a point"),
        ("1,5", "1.5 with a point"),
        ("2(3 + 4)", "operator is missing"),
        ("2pi", "operator is missing"),
        ("(1)(2)", "operator is missing"),
        ("1 2", "operator is missing"),
        ("15%%", "followed by an operator"),
        ("5!!", "is not known"),
        ("0x10", "base ten"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(expression: str, says: str) -> None:
    assert says in refusal(calculate, expression)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "it is empty"),
        (" = ", "it is empty"),
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ^ -1", "zero has no negative power"),
        ("sqrt(-1)", "sqrt() takes no negative number"),
        ("(-8) ^ (1 / 3)", "not a real number"),
        ("log(0)", "above 0"),
        ("log(2, 1)", "above 0"),
        ("asin(2)", "asin() is not defined for 2"),
        ("tan(pi / 2)", "tan() is not defined"),
        ("factorial(-1)", "no negative number"),
        ("factorial(2.5)", "whole numbers only"),
        ("gcd(2.5, 5)", "whole numbers only"),
        ("exp(1000)", "too large"),
        ("exp(700) * exp(700)", "too large"),
        ("1e400 + 0.5 * exp(1)", "too large"),
        ("1 / 10 ^ 3000", "too small"),
        ("2 ^ -2000", "too small"),
        ("10 ^ 2000", f"more than {MAX_DIGITS} digits"),
        ("2 +", "a number is missing"),
        ("()", "a number is missing"),
        ("max()", "a number is missing"),
        ("* 2", "a number is missing"),
        ("(1", 'a ")" is missing'),
        ("1)", 'without its "("'),
        ("sqrt 16", "sqrt needs parentheses, for example sqrt(16)"),
        ("gcd 16", "gcd needs parentheses, for example gcd(16, 4)"),
        ("min(3)", "min() takes 2 numbers or more, not 1"),
        ("round(1, 2, 3)", "round() takes one or two numbers, not 3"),
        ("foo(3)", '"foo" is not known'),
        ("12 apples", '"apples" is not known'),
        ("a" * 500, "is not known"),
        ("$5", '"$" is not allowed'),
        ("½", '"½" is not allowed'),
        ("----2", "too many signs"),
    ],
)
def test_a_refusal_is_one_sentence_that_helps_to_mend_the_expression(expression: str, says: str) -> None:
    text = refusal(calculate, expression)
    assert text.startswith("expression: ")
    assert says in text


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "(1).__class__",
        "1 .real",
        "[1] * 9",
        "[x for x in 1]",
        "{1: 2}",
        "(1, 2)",
        "'a' * 9",
        '"a" * 10 ** 9',
        "f'{1}'",
        "lambda: 1",
        "1 if 1 else 2",
        "1 and 2",
        "not 1",
        "1 < 2",
        "1 == 1",
        "1 | 2",
        "~1",
        "1 << 10 ** 9",
        "x",
        "x = 1",
        "x := 1",
        "1; 2",
        "1 # 2",
        "1_000",
        "1j",
        "True",
        "None",
        "sqrt",
        "max(*(1, 2))",
        "round(number=1)",
        "_percent(5)",
        "e.real",
        "import os",
    ],
)
def test_nothing_but_arithmetic_is_evaluated(expression: str) -> None:
    assert refusal(calculate, expression).startswith("expression: ")


HOSTILE = {
    "a tower of powers": "9**9**9",
    "a longer tower": "9**9**9**9**9**9",
    "a tower over a root": "9**0.5**9**9**9",
    "a power of a power": "((10**1000)**1000)**1000",
    "a large power": "2**10000000",
    "a power with a huge exponent": "3**(10**1000)",
    "a fraction to a huge power": "1.1**(10**1000)",
    "minus one to a huge power": "(-1)**(10**1000)",
    "a large factorial": "factorial(400000)",
    "a factorial of a factorial": "9!!!!",
    "factorials in each other": "factorial(factorial(factorial(9)))",
    "a huge exponent": "1e999999999",
    "a huge negative exponent": "1e-999999999",
    "an exponent with many digits": "1e" + "9" * 900,
    "rounding far left of the point": "round(2.5, -10**9)",
    "rounding far right of the point": "round(2.5, 10**9)",
    "many multiplications of large numbers": "*".join(["9**4000"] * 60),
    "many fractions of large numbers": "+".join(f"1/(9**4000+{i})" for i in range(30)),
    "a large quotient": "factorial(1500)/factorial(1499)" + "/7**5000*7**5000" * 20,
    "a large common multiple": "lcm(" + ",".join(f"9**4000+{i}" for i in range(30)) + ")",
    "many factorials": "+".join(["factorial(1500)"] * 45),
    "many square roots of large numbers": "+".join(["sqrt(10**4800)"] * 45),
    "common multiples of large numbers": "lcm(" + ",".join(["2**7999+1", "3**4999+2"] * 20) + ")",
    "quotients of large numbers": "+".join(["factorial(1500)/(factorial(1499)+1)"] * 25),
    "parentheses in each other": "(" * 400 + "1" + ")" * 400,
    "functions in each other": "sqrt(" * 180 + "1" + ")" * 180,
    "open parentheses": "(" * 1000,
    "closed parentheses": ")" * 1000,
    "signs": "-" * 999 + "1",
    "signs between operators": "1" + "*-+-1" * 190,
    "a long sum": "+".join(["1"] * 500),
    "a long tower": "**".join(["1"] * 300),
    "a hundred kilobytes of digits": "9" * 100_000,
    "a hundred kilobytes of a sum": "1+" * 50_000 + "1",
    "a megabyte of parentheses": "(" * 1_000_000,
    "a megabyte of commas": "1," * 500_000,
    "percents of percents": "1" + "%+1" * 330,
    "many arguments": "max(" + "1," * 490 + "1)",
    "a thousand blanks": "1" + " " * 998 + "1",
    "a number in groups": "1" + ",000" * 249,
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_expression_ends_at_once(expression: str) -> None:
    calculate("1 + 1")  # what is loaded at first use
    with processor_seconds(MOST_SECONDS):
        result, refused = outcome(calculate, expression)
    assert len(refused) < 250
    assert refused or len(result) <= MAX_DIGITS + 1


def test_an_expression_that_the_stack_has_no_room_for_is_refused() -> None:
    def deeper(frames: int) -> str:
        return deeper(frames - 1) if frames else calculate("+".join(["1"] * (MAX_OPERATIONS + 1)))

    left = sys.getrecursionlimit() - len(inspect.stack())
    assert "can not be calculated" in refusal(deeper, left - 200)


def test_the_largest_expressions_within_the_bounds_are_calculated() -> None:
    assert calculate("+".join(["1"] * (MAX_OPERATIONS + 1))) == str(MAX_OPERATIONS + 1)
    assert calculate("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH) == "1"
    assert calculate("9" * MAX_CHARS) == "9" * MAX_CHARS
    assert calculate(f"10 ^ {MAX_DIGITS - 1}") == "1" + "0" * (MAX_DIGITS - 1)
    assert "too long" in refusal(calculate, "+".join(["1"] * (MAX_OPERATIONS + 2)))
    assert "nested too deeply" in refusal(calculate, "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1))
    assert "too long" in refusal(calculate, "9" * (MAX_CHARS + 1))


RESULT = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?")
PIECES = [*"0123456789", *"+-*/%^(),.!=x ", "**", "//", "%", " of ", "e", "pi", "1e3", ",000", "×", "²", "√", "'", "_"]
PIECES += [f"{name}(" for name in FUNCTIONS]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)))
def test_whatever_is_written_a_number_or_a_refusal_comes_out_soon(expression: str) -> None:
    with processor_seconds(MOST_SECONDS):
        result, refused = outcome(calculate, expression)
    assert refused.startswith("expression: ") if refused else RESULT.fullmatch(result)


def _joined(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "**"])
    return st.tuples(children, operators, children).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")


@given(st.recursive(st.integers(0, 99).map(str), _joined, max_leaves=12))
def test_arithmetic_is_that_of_exact_fractions(expression: str) -> None:
    exact = _exactly(ast.parse(expression, mode="eval").body)
    assume(exact is not None)
    if exact is not None:
        assert calculate(expression) == number_text(int(exact) if exact.denominator == 1 else exact)


_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: lambda left, right: left % right,
}


def _exactly(node: ast.expr) -> Fraction | None:
    """What the expression is worth, where that is a fraction of modest size."""
    if isinstance(node, ast.Constant):
        return Fraction(str(node.value))
    assert isinstance(node, ast.BinOp)
    left, right = _exactly(node.left), _exactly(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Pow):
        if right.denominator != 1 or abs(right) > 6 or (left == 0 and right < 0):
            return None
        return Fraction(left**right)
    if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod) and right == 0:
        return None
    made = _OPERATIONS[type(node.op)](left, right)
    # Beyond this the calculator goes on with floating point.
    return made if max(made.numerator.bit_length(), made.denominator.bit_length()) < 1000 else None


@given(st.floats(-1e300, 1e300))
def test_a_number_as_text_is_the_number(value: float) -> None:
    text = number_text(value)
    assert RESULT.fullmatch(text)
    assert math.isclose(float(text), value, rel_tol=1e-11)


def test_the_schema_admits_what_the_reader_knows_and_keeps_words_out() -> None:
    known = [
        "12 * (3 + 4)",
        "15% * 240",
        "99^2",
        "2 * pi",
        "1,234.5 / 2",
        *(f"{name}(1, 2)" for name in FUNCTIONS),
    ]
    assert all(admits(TOOLS, "calculator", "expression", known))
    unknown = ["", "seventeen times two", "sqrt 16", "import os", "1 = 1", "a.b", "9" * 200]
    assert not any(admits(TOOLS, "calculator", "expression", unknown))


def test_the_tool_may_be_repeated_and_run_beside_others() -> None:
    calculator = TOOLS.get("calculator")
    assert calculator is not None
    assert calculator.traits.effect == "none"
    assert calculator.traits.parallel


def test_a_refusal_is_what_the_model_is_told() -> None:
    calculator = TOOLS.get("calculator")
    assert calculator is not None
    with pytest.raises(ToolError, match="division by zero"):
        asyncio.run(calculator.invoke('{"expression": "1 / 0"}'))


def test_threads_may_calculate_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolturn.toolboxes.math._evaluator", None)
    results: list[str] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        results.extend(calculate(f"{number} * 2") for _ in range(50))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(str(number * 2) for number in range(8) for _ in range(50))


def test_without_the_extra_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolturn.toolboxes.math._evaluator", None)
    monkeypatch.setitem(sys.modules, "simpleeval", None)
    assert "pip install 'toolturn[toolboxes]'" in refusal(calculate, "1 + 1")
