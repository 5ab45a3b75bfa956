"""How a library is put to the test: the interface of an adapter, on one page.

An adapter is one module, in :mod:`toolturn.conformance.adapters` or anywhere (``toolturn conform --adapter my.py``)::

    REQUIREMENTS = ("some-library>=1",)   # what pip installs; () for the current environment
    DISTRIBUTION = "some-library"         # whose version the table shows
    TYPED = ("some_library", "openai")    # packages whose exceptions a user of the library is told to catch
    CAN = ("max_tool_calls", "timeout")   # limits it can be given, beside the number of model calls

    async def run(task):
        ...                               # one turn, through the library's own public interface
        return task.answered(text)        # or task.failed(exception, ...)

It runs in a process of its own, in an environment that the command makes with ``venv`` and ``pip``; toolturn is not
there. The tools are plain functions with annotations and a docstring: hand them to the library in its usual way. Leave
the library's settings as a user finds them, except for those the task names. Be fair: where the library documents a
way to get at the messages of a failed turn, use it. What it returns without raising counts as its answer.

This module and the adapters are loaded where toolturn is not installed: they import nothing but the standard library
and, within ``run``, the library under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What an adapter reports; made by :meth:`Task.answered` and :meth:`Task.failed`.

    Args:
        answer: The text of the answer; None after a failure.
        error: What was raised.
        kind: ``authentication``, ``rate_limit``, ``context``, ``limit`` or ``other``.
        results: The results of tools in the transcript that the library hands out; None where it hands out none.
    """

    answer: str | None
    error: BaseException | None = None
    kind: str = "other"
    results: int | None = None


@dataclass(frozen=True)
class Task:
    """One turn.

    Args:
        base_url: The server, with ``/v1``; it speaks chat completions.
        model: The name of the model.
        key: The key.
        stream: Whether replies are to be streamed.
        prompt: What the user says.
        tools: The tools: functions with annotated parameters and a docstring.
        max_iterations: Model calls at most.
        max_tool_calls: Tool calls at most, where the library has such a limit.
        timeout: Seconds to wait for the server, where the library takes that.
    """

    base_url: str
    model: str
    key: str
    stream: bool
    prompt: str
    tools: tuple[Callable[..., Any], ...]
    max_iterations: int
    max_tool_calls: int
    timeout: float

    def answered(self, text: Any) -> Outcome:
        """Report the answer.

        Args:
            text: The text; None counts as an empty one.
        """
        return Outcome(text if isinstance(text, str) else "" if text is None else repr(text))

    def failed(self, error: BaseException, kind: str | None = None, results: int | None = None) -> Outcome:
        """Report a failure; an exception that ``run`` does not catch is reported in the same way.

        Args:
            error: What was raised.
            kind: What a caller can tell from it; found by its HTTP status where None.
            results: The results of tools in the transcript that came with it; None where none came.
        """
        return Outcome(None, error, kind or kind_of(error), results)


def kind_of(error: BaseException) -> str:
    """Return what a caller can tell from an error by the status and the words it carries.

    Args:
        error: The error; those it was raised from are looked at as well.
    """
    for each in _chain(error):
        status = getattr(each, "status_code", None)
        if status in (401, 403):
            return "authentication"
        if status == 429:
            return "rate_limit"
        if status == 400 and "context" in str(each):
            return "context"
    return "other"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
