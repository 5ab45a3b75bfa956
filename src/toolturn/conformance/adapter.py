"""How a library is put to the test: the interface of an adapter, on one page.

An adapter is one module, in :mod:`toolturn.conformance.adapters` or anywhere (``toolturn conform --adapter my.py``)::

    REQUIREMENTS = ("some-library>=1",)   # what pip installs; () for the current environment
    DISTRIBUTION = "some-library"         # whose version the table shows
    TYPED = ("some_library", "openai")    # packages whose exceptions a user of the library is told to catch
    CAN = ("max_tool_calls", "timeout")   # what it offers, in the words below; other rows are not played to it

    async def run(task):
        ...                               # one turn, through the library's own public interface
        return task.answered(text)        # or task.failed(exception, ...)

It runs in a process of its own, in an environment that the command makes with ``venv`` and ``pip``; toolturn is not
there. The tools are plain functions with annotations and a docstring: hand them to the library in its usual way. Leave
the library's settings as a user finds them, except for those the task names. Be fair: where the library documents a
way to get at the messages of a failed turn, use it. What it returns without raising counts as its answer.

The words of ``CAN``:

- ``max_tool_calls``, ``timeout``: limits of those names.
- ``tokens``, ``cost`` (each token costs 0.01), ``deadline`` (seconds of the whole turn), ``per_tool`` (calls of single
  tools), ``result_bytes`` (of one result), ``repeats`` (equal calls with equal results): limits in ``task.limits``.
- ``answer``: at a limit one last call for an answer, in which tools are not allowed (``task.answer_at_limit``).
- ``go_on``: what was said and done can be had after any end, as text, and is the start of a next turn: give it as
  ``saved=`` to the outcome where ``task.keep`` is set; it comes back as ``task.saved``. Where asyncio's CancelledError
  comes, ``run`` returns ``task.cancelled(saved)``.
- ``sequential``: tools run one after the other (``task.sequential``).
- ``approval``: the tools named in ``task.approval`` are run only after a person said so: ``run`` returns
  ``task.waits(pending, saved)``, and is called again with ``task.saved`` and ``task.decisions``, perhaps in another
  process.
- ``bound_approval``: a decision holds for the call that the person saw, by name and arguments.
- ``signed``: what is saved can be signed, so that a changed one is refused (``task.secret``).
- ``events``: while a streamed turn runs, calls, results and the answer are told: ``task.seen("call", name)``,
  ``task.seen("result", name)``, ``task.seen("answer")``.
- ``answer_stream``: the text of the answer alone can be streamed: ``task.seen("text", piece)``.

This module and the adapters are loaded where toolturn is not installed: they import nothing but the standard library
and, within ``run``, the library under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What an adapter reports; made by :meth:`Task.answered` and :meth:`Task.failed`.

    Args:
        answer: The text of the answer; None after a failure.
        error: What was raised.
        kind: ``authentication``, ``rate_limit``, ``context``, ``limit`` or ``other``.
        results: The results of tools in the transcript that the library hands out; None where it hands out none.
        saved: What was kept of the conversation or the turn, as text; None where nothing was.
        pending: The calls that wait for approval, each with ``id``, ``name`` and ``arguments``.
        stopped: Whether the turn ended because it was cancelled.
    """

    answer: str | None
    error: BaseException | None = None
    kind: str = "other"
    results: int | None = None
    saved: str | None = None
    pending: tuple[dict[str, Any], ...] = ()
    stopped: bool = False


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
        limits: Further limits, by the words of ``CAN``.
        answer_at_limit: Whether a limit is to end in a last answer.
        choice_none: Whether the server takes tools together with the tool choice ``none``, where the library can be
            told.
        approval: The tools whose calls have to be approved.
        sequential: Whether tools are to run one after the other.
        grace: Seconds that a cancelled tool may take, where the library can be told.
        keep: Whether what was said and done has to come back as text.
        saved: What came back as text before.
        decisions: What was decided on the calls that wait: each has ``id``, ``name`` and ``arguments`` as they were
            seen, ``approved`` and ``reason``.
        secret: The key with which what is saved is signed; not at all where empty.
        answer_only: Whether the text of the answer has to be streamed.
        seen: Is told what happens while the turn runs.
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
    limits: Mapping[str, Any] = field(default_factory=dict)
    answer_at_limit: bool = False
    choice_none: bool = True
    approval: Sequence[str] = ()
    sequential: bool = False
    grace: float = 5.0
    keep: bool = False
    saved: str | None = None
    decisions: Sequence[Mapping[str, Any]] = ()
    secret: str = ""
    answer_only: bool = False
    seen: Callable[..., None] = lambda *what: None

    def answered(self, text: Any, saved: str | None = None) -> Outcome:
        """Report the answer.

        Args:
            text: The text; None counts as an empty one.
            saved: What was said and done, as text.
        """
        return Outcome(text if isinstance(text, str) else "" if text is None else repr(text), saved=saved)

    def failed(
        self, error: BaseException, kind: str | None = None, results: int | None = None, saved: str | None = None
    ) -> Outcome:
        """Report a failure; an exception that ``run`` does not catch is reported in the same way.

        Args:
            error: What was raised.
            kind: What a caller can tell from it; found by its HTTP status where None.
            results: The results of tools in the transcript that came with it; None where none came.
            saved: What was said and done, as text.
        """
        return Outcome(None, error, kind or kind_of(error), results, saved)

    def waits(self, pending: Iterable[Mapping[str, Any]], saved: str | None) -> Outcome:
        """Report that calls wait for approval.

        Args:
            pending: The calls, each with ``id``, ``name`` and ``arguments`` (text, or an object).
            saved: The state from which the turn goes on, as text.
        """
        return Outcome(None, saved=saved, pending=tuple(dict(each) for each in pending))

    def cancelled(self, saved: str | None) -> Outcome:
        """Report that the turn ended because it was cancelled.

        Args:
            saved: What was said and done, as text.
        """
        return Outcome(None, saved=saved, stopped=True)


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
