"""Importing the package loads what a turn needs and nothing that talks to a network, a screen or a model."""

from __future__ import annotations

import pytest

from .support import python

HEAVY = [
    "aiohttp",
    "anthropic",
    "click",
    "google",
    "httpcore",
    "httpx",
    "httpx2",
    "jsonschema",
    "jsonschema_rs",
    "llama_cpp",
    "numpy",
    "openai",
    "pint",
    "pyreqwest",
    "requests",
    "rich",
    "simpleeval",
    "sqlite3",
    "torch",
    "urllib3",
    "xllamacpp",
    "http.client",
    "urllib.request",
    "multiprocessing",
    "concurrent.futures.process",
    "toolturn.cli",
    "toolturn.local",
    "toolturn.toolboxes",
    "toolturn.testing",
]

MODULES = ["toolturn", "toolturn.tool_calling", "toolturn.turn", "toolturn.loop"]


def _printed(code: str) -> str:
    done = python(code, prelude=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("module", MODULES)
def test_no_client_no_command_line_and_no_model_is_loaded(module: str) -> None:
    loaded = _printed(f"import sys, {module}; print(*sorted(set(sys.modules) & set({HEAVY!r})))")
    plain = _printed(f"import sys, pydantic, asyncio, uuid; print(*sorted(set(sys.modules) & set({HEAVY!r})))")
    assert set(loaded.split()) <= set(plain.split())


def test_no_pydantic_model_is_defined() -> None:
    assert (
        _printed(
            """
            import pydantic

            before = set(pydantic.BaseModel.__subclasses__())
            import toolturn
            print(len(set(pydantic.BaseModel.__subclasses__()) - before))
            """
        )
        == "0"
    )


def test_no_thread_and_no_loop_is_started() -> None:
    assert _printed(
        "import threading, toolturn; print(threading.active_count(), toolturn.background.background._loop)"
    ) == ("1 None")


def test_every_name_that_is_announced_is_there_and_no_other_import_is_needed() -> None:
    for module in MODULES:
        assert (
            _printed(
                f"""
            import importlib

            module = importlib.import_module({module!r})
            print([name for name in getattr(module, "__all__", ()) if not hasattr(module, name)])
            """
            )
            == "[]"
        )


def test_the_names_of_the_contract_are_the_same_objects_in_both_places() -> None:
    assert (
        _printed(
            """
            import toolturn, toolturn.tool_calling as contract

            print([n for n in contract.__all__ if getattr(contract, n) is not getattr(toolturn, n, None)])
            """
        )
        == "[]"
    )
