"""The names of the contract: where they are, and that they are the same everywhere."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import toolturn
from toolturn import errors as all_errors
from toolturn import tool_calling

CONTRACT = {
    "AsyncTool",
    "ChatMessage",
    "ChatResponse",
    "ModelCallback",
    "Tool",
    "ToolCall",
    "ToolCallRecord",
    "ToolCallResult",
    "ToolDef",
    "ToolInvocationResult",
    "ToolLoopDirectReturnError",
    "ToolLoopEmptyResponseError",
    "ToolLoopError",
    "ToolLoopIterationLimitError",
    "ToolLoopMalformedResponseError",
    "ToolLoopResult",
    "ToolLoopToolCallLimitError",
    "ToolLoopTruncatedResponseError",
    "ToolSet",
    "handle_tool_call",
    "run_tool_loop",
    "tool_definitions",
}


def public_names(module: Any) -> set[str]:
    return {name for name in vars(module) if not name.startswith("_")} - {"annotations"}


def test_the_contracts_module_has_exactly_the_names_of_the_contract() -> None:
    assert set(tool_calling.__all__) == CONTRACT
    assert public_names(tool_calling) == CONTRACT
    assert tool_calling.__all__ == sorted(tool_calling.__all__)


@pytest.mark.parametrize("name", sorted(CONTRACT))
def test_each_name_is_the_same_object_in_the_package(name: str) -> None:
    assert getattr(tool_calling, name) is getattr(toolturn, name)


def test_each_public_name_of_the_package_is_there() -> None:
    assert len(set(toolturn.__all__)) == len(toolturn.__all__)
    assert set(toolturn.__all__) >= CONTRACT
    for name in toolturn.__all__:
        assert hasattr(toolturn, name)


def test_each_error_of_a_turn_is_a_runtime_error_and_can_be_imported_from_the_package() -> None:
    for name, cls in vars(all_errors).items():
        if isinstance(cls, type) and issubclass(cls, all_errors.ToolLoopError):
            assert issubclass(cls, RuntimeError)
            assert getattr(toolturn, name) is cls


@pytest.mark.parametrize("name", ["toolturn", "toolturn.tool_calling", "toolturn.turn", "toolturn.testing"])
def test_each_module_lists_only_what_it_has(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_importing_the_package_loads_nothing_that_talks_to_a_network() -> None:
    program = (
        "import sys, toolturn.tool_calling\n"
        "heavy = {'httpx', 'aiohttp', 'requests', 'urllib3', 'pyreqwest', 'http.client', 'urllib.request'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    assert ran.stdout.split() == []
