"""An arithmetic expression as people and models write it, into a syntax tree."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

from .arithmetic import (
    CONSTANTS,
    FUNCTIONS,
    MAX_DEPTH,
    MAX_EXPONENT,
    MAX_OPERATIONS,
    MAX_SIGNS,
    Number,
    quoted,
    refuse,
    settled,
    too_large,
)

MAX_CHARS = 1000

# No name that can be read from an expression begins with an underscore.
PERCENT = "_percent"
_WORDS = {"x": "*", "times": "*", "plus": "+", "minus": "-", "mod": "%"}
EXAMPLE = 'for example "12 * (3 + 4)"'

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
        return self.function is not None and FUNCTIONS[self.function].most > 1


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
            refuse(f"it ends where a number is missing; write {EXAMPLE}")
        if self._open:
            refuse('a ")" is missing; close every parenthesis')
        return " ".join(self._out)

    def _before_operand(self) -> None:
        text, at = self.text, self._at
        grouped = None if self._open and self._open[-1].separates else _GROUPED.match(text, at)
        if found := grouped or _NUMBER.match(text, at):
            if _OTHER_BASE.match(text, at):
                refuse("numbers are written in base ten, for example 255")
            self._put_operand(str(len(self.numbers)), len(found[0]))
            self.numbers.append(_literal(found[1].replace(",", ""), found[2]))
        elif found := _NAME.match(text, at):
            self._name(found[0])
        elif text[at] == "(":
            self._enter(_Open(len(self._out)))
            self._at += 1
        elif text[at] in "+-":
            self._signs += 1
            if self._signs > MAX_SIGNS:
                refuse(f"there are too many signs in a row; write {EXAMPLE}")
            self._count()
            self._out.append(text[at])
            self._at += 1
        elif text[at] == ")" or text[at] == "," or text[at] == "!" or _OPERATOR.match(text, at):
            refuse(f"a number is missing before {quoted(text[at])}; write {EXAMPLE}")
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
                refuse('"!!" is not known; write for example 5! or factorial(5)')
            self._wrap("factorial")
        elif char == "%" and self._means_percent():
            self._wrap(PERCENT)
            self._percent = True
        elif found := _OPERATOR.match(text, at):
            self._put_operator("**" if found[0] == "^" else found[0], len(found[0]))
        elif found := _NAME.match(text, at):
            word = found[0]
            if word == "of" and self._percent:
                self._put_operator("*", 2)
            elif word in _WORDS:
                self._put_operator(_WORDS[word], len(word))
            elif word in FUNCTIONS or word in CONSTANTS:
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
            refuse(f"it is too long; use at most {MAX_OPERATIONS} operations")

    def _name(self, name: str) -> None:
        if name in CONSTANTS:
            self._put_operand(name, len(name))
            return
        if name not in FUNCTIONS:
            self._unknown_name(name)
        self._at += len(name)
        while self.text.startswith(" ", self._at):
            self._at += 1
        if not self.text.startswith("(", self._at):
            refuse(f"{name} needs parentheses, for example {name}({', '.join(['16', '4'][: FUNCTIONS[name].least])})")
        self._at += 1
        self._out.append(name)
        self._enter(_Open(len(self._out) - 1, name))

    def _enter(self, opened: _Open) -> None:
        self._count()
        self._open.append(opened)
        if len(self._open) > MAX_DEPTH:
            refuse(f"it is nested too deeply; use at most {MAX_DEPTH} parentheses in each other")
        self._out.append("(")
        self._signs = 0

    def _leave(self) -> None:
        if not self._open:
            refuse('there is a ")" without its "("; close only what is open')
        opened = self._open.pop()
        if opened.function is not None:
            bounds = FUNCTIONS[opened.function]
            if not bounds.least <= opened.arguments <= bounds.most:
                takes = {1: "one number", 2: "one or two numbers"}.get(bounds.most, f"{bounds.least} numbers or more")
                refuse(f"{opened.function}() takes {takes}, not {opened.arguments}")
            if opened.tight and opened.loose:
                refuse(f'"1,234" can mean two things in {opened.function}(); write 1234, or 1, 234')
        self._out.append(")")
        self._operand = opened.start
        self._percent = False
        self._at += 1

    def _comma(self) -> None:
        opened = self._open[-1] if self._open else None
        if opened is None or not opened.separates:
            refuse('"," is not used here; write 1.5 with a point, and 1234 without a comma')
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
            refuse('"%" must be followed by an operator; write for example "15% of 240"')
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
                refuse('"%" can mean two things here; write 15% without a blank, or mod for a remainder')
            return True
        if attached and after[0] == " ":
            refuse('"%" can mean two things here; write "15% of 240", or "17 mod 5" for a remainder')
        return False

    def _missing_operator(self, found: str) -> NoReturn:
        refuse(f"an operator is missing before {quoted(found)}; write for example 2 * 3")

    def _unknown_name(self, name: str) -> NoReturn:
        refuse(f"{quoted(name)} is not known; use numbers, + - * / ^ ( ) and functions such as sqrt(16)")

    def _unknown_character(self) -> NoReturn:
        refuse(f"{quoted(self.text[self._at])} is not allowed; use numbers and + - * / ^ ( ), {EXAMPLE}")


def _literal(digits: str, exponent: str | None) -> Number:
    value = Fraction(digits if digits[0] != "." else f"0{digits}")
    if exponent is not None:
        if len(exponent) > 5 or abs(int(exponent)) > MAX_EXPONENT:
            too_large()
        value *= Fraction(10) ** int(exponent)
    return settled(value)


def parse(expression: str) -> ast.expr:
    """Return the syntax tree of an expression; its constants are numbers, exact ones where they can be.

    Args:
        expression: What was written.

    Raises:
        ToolError: It is no expression, or would take too much work.
    """
    text = _ROOT.sub(r"sqrt(\1)", expression).translate(_SPELLINGS).lower().strip(" ").rstrip("=? ")
    if not text:
        refuse(f"it is empty; write {EXAMPLE}")
    reader = _Reader(text)
    root = ast.parse(reader.read(), mode="eval").body
    nodes = list(ast.walk(root))
    percents: set[int] = set()
    # Children come before their parents in this order.
    for node in reversed(nodes):
        if isinstance(node, ast.Constant):
            node.value = reader.numbers[node.value]  # type: ignore[index,assignment]
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == PERCENT:
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
