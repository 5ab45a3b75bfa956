"""A conversation under way: each question one bounded turn, which Ctrl-C stops and no error ends the talk."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

import click

from toolturn import (
    Approval,
    ChatMessage,
    ChatModel,
    Limits,
    ModelContextError,
    ModelError,
    ToolCall,
    ToolCallRecord,
    ToolContext,
    ToolLoopError,
    ToolLoopModelError,
    ToolLoopResult,
    ToolSet,
    Turn,
    TurnContext,
    Usage,
    codec,
    run_tool_loop,
)
from toolturn.content import as_text
from toolturn.drive import end_tasks
from toolturn.limits import OnLimit
from toolturn.model import ModelSettings

from .approving import DENIED, asked, decided
from .show import Screen, harmless, printing_aside
from .talk import Talk

_LEAST_SECONDS = 0.001


class Lines(Protocol):
    """Where the user's lines come from.

    Attributes:
        interactive: Whether somebody types them at a terminal.
    """

    interactive: bool

    async def read(self, prompt: str) -> str:
        """Return the next line.

        Raises:
            EOFError: There is none.
            KeyboardInterrupt: Ctrl-C came instead.
        """

    async def answer(self, question: str) -> str:
        """Return the answer to a question that came up within a turn; raises what ``read`` does."""

    def interrupt(self) -> None:
        """End the waiting for a line by KeyboardInterrupt."""


class _Spent:
    """What one question has cost so far; it may take two turns."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.iterations = 0
        self.seconds = 0.0
        self.usage = Usage()
        self.records: tuple[ToolCallRecord, ...] = ()
        self.left_out = 0
        self.exit: ToolLoopResult | ToolLoopError | None = None

    def add(self, turn: Turn) -> None:
        self.iterations += turn.iterations
        self.seconds += turn.seconds
        self.usage += turn.usage
        self.records += turn.records
        self.exit = turn.exit


class Chat:
    """A conversation with a model.

    Args:
        model: The model.
        model_name: Its name, for people.
        tools: What it may call.
        limits: The bounds of each question.
        on_limit: What happens at one of them.
        talk: What was said before.
        as_json: Print one JSON document for each question and command, and nothing else.
        quiet: Show answers only.
        settings: How the model is to reply; another model gets none.
        concurrency: How many calls of parallel tools may run at once.
        language: What the tools are told of the user's language.

    Attributes:
        lines: Who is asked for approval; nobody where None.
        records: The calls of the last question.
        failed: Whether a question ended without an answer.
    """

    def __init__(
        self,
        model: ChatModel,
        model_name: str,
        tools: ToolSet,
        *,
        limits: Limits,
        on_limit: OnLimit = "answer",
        talk: Talk | None = None,
        as_json: bool = False,
        quiet: bool = False,
        settings: ModelSettings | None = None,
        concurrency: int = 1,
        language: str | None = None,
    ) -> None:
        self.model_name = model_name
        self.tools = tools
        self.talk = talk or Talk()
        self.as_json = as_json
        self.lines: Lines | None = None
        self.records: tuple[ToolCallRecord, ...] = ()
        self.failed = False
        self._model = model
        self._limits = limits
        self._on_limit = on_limit
        self._quiet = quiet
        self._settings = settings
        self._concurrency = concurrency
        self._context = TurnContext(language=language)
        self._loaded = False
        self._task: asyncio.Task[ToolLoopResult] | None = None
        self._stopped = False
        self._out: Any = sys.stdout
        self._screen = Screen(model_name, quiet=quiet, silent=as_json)

    async def change_model(self, model: ChatModel, name: str, limit: int | None) -> None:
        """Go on with another model.

        Args:
            model: The model.
            name: Its name, for people.
            limit: Tokens of messages it can be shown; None where that is not known.
        """
        await self._model.aclose()
        self._model, self.model_name, self._loaded, self._settings = model, name, False, None
        self._screen = Screen(name, quiet=self._quiet, silent=self.as_json)
        self.talk.shown, self.talk.limit = list(self.talk.messages), limit

    async def aclose(self) -> None:
        """Give back what the model holds."""
        await self._model.aclose()

    def interrupt(self) -> bool:
        """Stop the turn that runs; False where none does."""
        if self._task is None:
            return False
        if not self._stopped:  # what comes again finds the cleanup under way, which is bounded
            self._stopped = True
            self._task.cancel()
        return True

    async def decide(self, call: ToolCall) -> str | None:
        """Ask the user whether a call may run.

        Args:
            call: The call as the model made it.

        Returns:
            None where it may, otherwise why not.

        Raises:
            asyncio.CancelledError: Ctrl-C stopped the turn instead.
        """
        if self.lines is None:
            return DENIED
        try:
            if self.as_json:
                click.echo(json.dumps({"kind": "approval", "call": codec.call_to_dict(call)}), file=self._out)
                return await decided(self.lines.read(""))
            self._screen.end_line()
            return await asked(call, self.lines.answer)
        except asyncio.CancelledError:
            self._stopped = True
            raise

    async def _approve(self, call: ToolCall, arguments: Any, context: ToolContext) -> Approval:
        why_not = await self.decide(call)
        return Approval(True) if why_not is None else Approval(False, why_not)

    async def ask(self, text: str) -> None:
        """Take a question through its turn and show what comes of it.

        Args:
            text: The question.
        """
        before = self.talk.mark()
        self.talk.say(text)
        spent = _Spent(len(self.talk.messages) - 1)
        self._stopped = False
        self._task = task = asyncio.ensure_future(self._answer(spent))
        try:
            await asyncio.wait([task])
        finally:
            self._task = None
            await end_tasks([task])
        self.records = spent.records
        try:
            result = task.result()
        except asyncio.CancelledError:
            self._told(spent, spent.exit, "interrupted")
        except ToolLoopError as exc:
            why = str(exc)
            if isinstance(exc.__cause__, ModelContextError) and self.talk.is_question_alone():
                # left where it is, it would be in the way of each message that follows
                self.talk.go_back(before)
                why = f"{_sentence(why)} The message by itself is too long; it was taken back."
            self._told(spent, exc, why)
        except BrokenPipeError:  # nobody reads the answers any more
            raise
        except (ModelError, ImportError) as exc:  # it can not be loaded
            self._told(spent, exc, str(exc))
        except Exception as exc:  # noqa: BLE001 - whatever it is, the conversation must not be lost by it
            self._told(spent, exc, f"{type(exc).__name__}: {exc}")
        else:
            self._told(spent, result)

    async def _answer(self, spent: _Spent) -> ToolLoopResult:
        load = getattr(self._model, "load", None)
        if load is not None and not self._loaded:
            self._screen.note(f"[{self.model_name}] loading …")
            await load()
            self._loaded = True
        self._left_out(spent, self.talk.fit(), "the conversation is long")
        try:
            return await self._turn(spent, self._limits)
        except ToolLoopModelError as exc:
            if not isinstance(exc.__cause__, ModelContextError) or not (dropped := self.talk.overflowed()):
                raise
        self._left_out(spent, dropped, "the conversation does not fit into the model's window; it is asked once more")
        bounds = self._limits
        calls = max(0, bounds.tool_calls - len(spent.records))
        left = replace(bounds, iterations=max(1, bounds.iterations - spent.iterations), tool_calls=calls)
        if bounds.deadline is not None:
            left = replace(left, deadline=max(_LEAST_SECONDS, bounds.deadline - spent.seconds))
        return await self._turn(spent, left)

    def _left_out(self, spent: _Spent, dropped: int, why: str) -> None:
        spent.left_out += dropped
        if dropped:
            messages = "1 older message is" if dropped == 1 else f"{dropped} older messages are"
            self._screen.note(f"[{self.model_name}] {why}: {messages} not shown to it")

    async def _turn(self, spent: _Spent, limits: Limits) -> ToolLoopResult:
        sent = tuple(self.talk.shown)
        turn = Turn()
        try:
            with printing_aside():
                return await run_tool_loop(
                    sent,
                    self.tools,
                    self._model,
                    limits=limits,
                    on_limit=self._on_limit,
                    tool_errors="report",
                    turn=turn,
                    nudges=1,
                    emit=self._screen,
                    settings=self._settings,
                    concurrency=self._concurrency,
                    context=self._context,
                    approve=self._approve,
                )
        finally:
            # valid however it ended: calls that did not run, or were stopped, are closed
            self.talk.add(turn.messages[len(sent) :])
            spent.add(turn)

    # --- what came of it -------------------------------------------------------------

    def _told(self, spent: _Spent, end: ToolLoopResult | BaseException | None, why: str = "") -> None:
        self._screen.end_line()
        self.failed = self.failed or not isinstance(end, ToolLoopResult)
        if self.as_json:
            click.echo(json.dumps(self._document(spent, end, why)))
        elif why:
            click.echo("Stopped." if why == "interrupted" else f"Error: {harmless(_sentence(why))}", err=True)

    def _document(self, spent: _Spent, end: ToolLoopResult | BaseException | None, why: str) -> dict[str, Any]:
        told: dict[str, Any] = {"ok": isinstance(end, ToolLoopResult), "model": self.model_name}
        match end:
            case ToolLoopResult():
                told |= codec.result_to_dict(end)
            case ToolLoopError():
                told |= codec.error_to_dict(end)
                del told["state"]
            case _:
                name = "ToolLoopCancelledError" if end is None else type(end).__name__
                told |= {"kind": "error", "class": name, "message": why}
        # of the question alone: the whole conversation in each line would make its length quadratic
        return told | {
            "iterations": spent.iterations,
            "seconds": round(spent.seconds, 3),
            "left_out": spent.left_out,
            "usage": asdict(spent.usage),
            "messages": [codec.message_to_dict(message) for message in self.talk.messages[spent.start :]],
            "tool_calls": [codec.record_to_dict(record) for record in spent.records],
        }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


async def converse(chat: Chat, lines: Lines, obey: Obey) -> int:
    """Take line after line until there is none, and return the exit code of the program.

    Args:
        chat: The conversation.
        lines: Where the lines come from.
        obey: Carries out a command, which begins with ``/``; False ends the conversation.
    """
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not chat.interrupt():
            lines.interrupt()

    chat.lines = lines
    give_back = _on_interrupt(loop, stop)
    try:
        interrupts = 0
        while True:
            try:
                line = await lines.read("> ")
            except EOFError:
                return int(chat.failed and not lines.interactive)
            except KeyboardInterrupt:
                interrupts += 1
                if not lines.interactive:
                    return 130
                if interrupts == 2:
                    return 0
                click.echo("Ctrl-C again, or Ctrl-D, leaves.", err=True)
                continue
            interrupts = 0
            if not line.strip():
                continue
            if line.startswith("/") and not line.startswith("//"):
                if not await obey(chat, line):
                    return int(chat.failed and not lines.interactive)
            else:
                await chat.ask(line.removeprefix("/"))
    finally:
        give_back()
        await chat.aclose()


def _on_interrupt(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Callable[[], object]:
    """Call ``stop`` at each Ctrl-C until what is returned is called."""
    try:
        loop.add_signal_handler(signal.SIGINT, stop)
    except NotImplementedError:  # on Windows; there the loop is woken by any signal
        before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(stop))
        return lambda: signal.signal(signal.SIGINT, before)
    return lambda: loop.remove_signal_handler(signal.SIGINT)


class Obey(Protocol):
    """Carries out a command."""

    async def __call__(self, chat: Chat, line: str) -> bool:
        """Return False where the conversation is to end."""


def shown_calls(records: Sequence[ToolCallRecord]) -> str:
    """Return the calls of a turn in lines for people.

    Args:
        records: The audit.
    """
    lines = []
    for record in records:
        took = f"{record.seconds:.2f} s" if record.started else "never ran"
        lines.append(f"{record.op}  {record.status}  {took}  {record.call.name} {record.call.arguments}")
        lines.append(f"      {_first_line(record.message)}")
        if record.error:
            lines.append(f"      {record.error}")
    return "\n".join(lines)


def _first_line(message: ChatMessage) -> str:
    first, _, more = as_text(message.content).partition("\n")
    return f"{first[:200]}…" if more or len(first) > 200 else first
