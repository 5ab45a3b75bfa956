"""The toolbox ``math``: a calculator over a maintained evaluator, with a bound on work."""

from __future__ import annotations

import ast
import threading
from typing import Annotated, Any

from pydantic import Field

from ..errors import ToolError
from ..tools import ToolSet, tool
from .arithmetic import CONSTANTS, FUNCTIONS, MAX_DIGITS, OPERATORS, number_text, percent, refuse, settled, too_large
from .expressions import EXAMPLE, MAX_CHARS, PERCENT, parse

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
    functions = {name: function.call for name, function in FUNCTIONS.items()}
    made = SimpleEval(operators=OPERATORS, functions={**functions, PERCENT: percent}, names=CONSTANTS)
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
        refuse(f"it is too long; use at most {MAX_CHARS} characters")
    try:
        value = settled(_evaluate(parse(expression)))
        # 2000 digits are 6644 bits: the digits are not made in order to be counted.
        if isinstance(value, int) and (value.bit_length() > 6650 or len(str(abs(value))) > MAX_DIGITS):
            refuse(f"the result has more than {MAX_DIGITS} digits; use smaller numbers")
        return number_text(value)
    except OverflowError:
        too_large()
    except (ArithmeticError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        # None of these is known to happen; a calculator must not show a traceback if one does.
        refuse(f"it can not be calculated; write {EXAMPLE}")


# A grammar made from it writes names that the reader knows, and writes no function without its parenthesis.
_PATTERN = rf"^([0-9+*/%^(),. -]|pi|({'|'.join(FUNCTIONS)})\(){{1,80}}$"


@tool(effect="none", parallel=True)
def calculator(expression: Annotated[str, Field(json_schema_extra={"pattern": _PATTERN})]) -> str:
    """Evaluate an arithmetic expression with + - * / ( ) and numbers."""
    # No more than this is told: a small model calls the tool with the best description for everything, and copies
    # an example instead of the user's numbers. The pattern names the functions to those who read it.
    return calculate(expression)


def math_toolbox() -> ToolSet:
    """Return the tool ``calculator``."""
    return ToolSet([calculator])
