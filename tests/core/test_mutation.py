"""The page about the mutation score names survivors that can exist, in a form that does not depend on numbers."""

from __future__ import annotations

import pytest

from .mutation import COMMAND, PAGE, SOURCES, Change, explained, folded, function_of, shown

PAGE_OF_TWO = """
```diff
@@ machine.Turn.begin @@
-     self.seconds   = 0.0
+     self.seconds = None
+     self.seconds = 1.0
```
Prose between them, - with a dash.
```diff
@@ rules.judge @@
- accepted,
+
```
"""
TWO = {
    Change("machine.Turn.begin", "self.seconds = 0.0", "self.seconds = None"),
    Change("machine.Turn.begin", "self.seconds = 0.0", "self.seconds = 1.0"),
    Change("rules.judge", "accepted,", ""),
}


def test_each_changed_line_of_a_page_is_a_change_of_the_line_above_it() -> None:
    assert explained(PAGE_OF_TWO) == TWO


def test_changes_are_shown_in_the_form_in_which_a_page_has_them() -> None:
    page = "\n".join(["```diff", *shown(TWO), "```"])
    assert explained(page) == TWO
    assert page.count("@@ machine") == page.count("- self.seconds") == 1


@pytest.mark.parametrize(
    ("mutant", "function"),
    [
        ("package.turn.machine.xǁTurnǁ_apply_tool__mutmut_12", "machine.Turn._apply_tool"),
        ("package.turn.machine.xǁTurnǁ__init____mutmut_1", "machine.Turn.__init__"),
        ("package.turn.rules.x_judge__mutmut_3", "rules.judge"),
        ("package.turn.saved.x__agrees__mutmut_3", "saved._agrees"),
    ],
)
def test_a_mutant_is_named_by_its_module_and_function(mutant: str, function: str) -> None:
    assert function_of(mutant) == function


def test_each_line_that_the_page_explains_stands_in_its_module() -> None:
    changes = explained(PAGE.read_text(encoding="utf-8"))
    assert changes
    for change in changes:
        module, *_, function = change.function.split(".")
        source = folded([(SOURCES / f"{module}.py").read_text(encoding="utf-8")])
        assert f"def {function}(" in source, f"{PAGE.name} is not current; {COMMAND} tells what survives"
        assert change.before in source, f"{PAGE.name} is not current; {COMMAND} tells what survives"
        assert change.before != change.after
