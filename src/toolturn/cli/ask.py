"""``toolturn ask`` and ``toolturn resume``: one turn from the command line."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

from toolturn import (
    ChatMessage,
    ModelError,
    Performer,
    ToolLoopApprovalRequired,
    ToolLoopError,
    ToolLoopResult,
    ToolSet,
    Turn,
    TurnContext,
    codec,
    drive,
)
from toolturn.answers import AnswerForm, answer_form
from toolturn.loop import reopened
from toolturn.personas.opening import with_system
from toolturn.transcript import check

from . import saved
from .approving import Asking, at_terminal, decisions, waiting_as_data, waiting_as_text
from .choose import (
    Chosen,
    absolute,
    bounded,
    chosen,
    files_options,
    model_option,
    noting,
    on_limit_option,
    persona_option,
    read_text,
    tools_option,
)
from .mcp_option import mcp_option, with_mcp
from .show import Screen, harmless, printing_aside

_INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}
if hasattr(signal, "SIGHUP"):  # the terminal was closed
    _INTERRUPTED[signal.SIGHUP] = 129


@dataclass(frozen=True, slots=True)
class _Job:
    """A turn that is ready to be driven.

    Args:
        turn: The turn.
        with_: What it is had with.
        tools: All its tools.
        kept: What is saved with it, so that it can be continued.
        as_json: Print one document.
        quiet: Show the answer only.
        path: The file it came from.
        answer: How it has to end.
    """

    turn: Turn
    with_: Chosen
    tools: ToolSet
    kept: saved.SavedTurn
    as_json: bool
    quiet: bool
    path: Path | None = None
    answer: AnswerForm | None = None


_quiet = click.option("-q", "--quiet", is_flag=True, help="Show the answer only.")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document with the whole audit.")


@click.command()
@click.argument("question", required=False)
@persona_option
@model_option
@tools_option
@files_options
@mcp_option
@click.option("--max-iterations", type=click.IntRange(min=1), help="Model calls.  [default: 8]")
@click.option("--max-tool-calls", type=click.IntRange(min=0), help="Tool calls.  [default: 16]")
@on_limit_option
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for the whole turn.")
@click.option("--system", help="The system message.")
@click.option("--messages", "messages_file", help="A JSON list of messages to start with; '-' reads standard input.")
@click.option("--schema", "schema_file", metavar="FILE", help="A JSON Schema that the answer has to be an object of.")
@_quiet
@_as_json
def ask(
    question: str | None,
    persona: str | None,
    model_name: str | None,
    tool_names: tuple[str, ...],
    files: tuple[str, ...],
    write_files: tuple[str, ...],
    mcp: tuple[str, ...],
    max_iterations: int | None,
    max_tool_calls: int | None,
    on_limit: Literal["answer", "raise"],
    timeout: float | None,
    system: str | None,
    messages_file: str | None,
    schema_file: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Ask a model one question that it may use tools for.

    The answer goes to standard output, what happens on the way to standard error. A turn that fails or is
    interrupted is saved, and 'toolturn resume' continues it. Where a tool wants approval you are asked; without a
    terminal the turn is saved instead. Without a question, or with '-' for it, it is read from standard input.

    Exit codes: 0 an answer, 1 none, 2 wrong usage, 130 interrupted.
    """
    schema = None if schema_file is None else _schema(schema_file)
    messages = _messages(question, messages_file)
    note = noting(quiet or as_json)
    made = chosen(persona, model_name, tool_names, system, files, write_files)
    _tell(made, note)
    name = model_name if persona else made.model_name
    kept = saved.SavedTurn("", name, tool_names, "", mcp, made.persona, absolute(files), absolute(write_files), schema)
    with with_mcp(mcp, made.tools, note, made.servers, made.server_names) as tools:
        form, tools = _form(schema, tools, made)
        turn = Turn()
        turn.begin(
            with_system(made.system, messages),
            tools.definitions,
            tools.traits,
            turn_id=saved_id(),
            limits=bounded(made.limits, max_iterations, max_tool_calls, timeout),
            on_limit=on_limit,
            tool_errors="report",
            nudges=1,
            required="" if form is None else form.tool,
            typed=form is not None,
        )
        _run(_Job(turn, made, tools, kept, as_json, quiet, answer=form))


def _schema(file: str) -> dict[str, Any]:
    try:
        schema = json.loads(read_text(file))
    except ValueError as exc:
        raise click.ClickException(f"{file}: this is no JSON: {exc}") from None
    if not isinstance(schema, dict):
        raise click.ClickException(f"{file}: a JSON Schema is an object")
    return schema


def _form(schema: dict[str, Any] | None, tools: ToolSet, made: Chosen) -> tuple[AnswerForm | None, ToolSet]:
    if schema is None:
        return None, tools
    try:
        return answer_form(schema, None, tools, made.model)
    except (ValueError, ImportError) as exc:
        raise click.ClickException(str(exc)) from None


def _tell(made: Chosen, note: Callable[[str], None]) -> None:
    for text in made.notes:
        note(f"[persona] {text}")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--model", "model_name", help="Another model than before.")
@click.option("--tools", "tool_names", multiple=True, help="Other toolboxes than before.")
@mcp_option
@click.option("--max-iterations", type=click.IntRange(min=1), help="Model calls, those made before included.")
@click.option("--max-tool-calls", type=click.IntRange(min=0), help="Tool calls, those made before included.")
@click.option("--on-limit", type=click.Choice(["answer", "raise"]), help="Another policy than before.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds, those used before included.")
@click.option("--approve", multiple=True, metavar="CALL", help="Let a call run that waits: its id, or a name as t1.0.")
@click.option("--deny", multiple=True, metavar="CALL[=REASON]", help="Do not let it; the model is told the reason.")
@click.option("--approve-all", is_flag=True, help="Let all calls run that wait and are not denied.")
@_quiet
@_as_json
def resume(
    file: str,
    model_name: str | None,
    tool_names: tuple[str, ...],
    mcp: tuple[str, ...],
    max_iterations: int | None,
    max_tool_calls: int | None,
    on_limit: Literal["answer", "raise"] | None,
    timeout: float | None,
    approve: tuple[str, ...],
    deny: tuple[str, ...],
    approve_all: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Continue a turn that failed or was interrupted: what has a result does not run again.

    FILE is what 'toolturn ask' saved. A turn that stands at a limit needs a raised one, one that waits for approval a
    decision about each call: at a terminal you are asked, else give --approve, --deny or --approve-all. Exit codes are
    those of 'toolturn ask'; the file is removed when there is an answer.
    """
    try:
        kept = saved.load(read_text(file))
        turn = Turn.from_json(kept.state)
    except ValueError as exc:
        raise click.ClickException(f"{file}: {exc}") from None
    waiting = turn.exit if isinstance(turn.exit, ToolLoopApprovalRequired) else None
    approvals = decisions(() if waiting is None else waiting.pending, approve, deny, approve_all)
    if waiting is not None and not approvals and (as_json or not at_terminal()):
        _refuse_undecided(file, kept, waiting, as_json)
    note = noting(quiet or as_json)
    made = chosen(
        kept.persona or None, model_name or kept.model, tool_names or kept.tools, None, kept.files, kept.write_files
    )
    _tell(made, note)
    kept = replace(kept, model=model_name or kept.model, tools=tool_names or kept.tools, mcp=mcp or kept.mcp)
    limits = bounded(turn.limits, max_iterations, max_tool_calls, timeout)
    with with_mcp(kept.mcp, made.tools, note, made.servers, made.server_names) as tools:
        form, tools = _form(kept.schema, tools, made)
        try:
            turn = reopened(turn, tools, limits=limits, on_limit=on_limit, approvals=approvals, answer=form)
        except ValueError as exc:
            raise click.ClickException(_in_options(str(exc))) from None
        _run(_Job(turn, made, tools, kept, as_json, quiet, Path(file), form))


def _in_options(text: str) -> str:
    """The library's advice in the words of the command line."""
    for field, option in (
        ("iterations", "--max-iterations"),
        ("tool_calls", "--max-tool-calls"),
        ("deadline", "--timeout"),
    ):
        text = text.replace(f"raise limits.{field} to resume", f"give a higher {option}")
    return text


def _refuse_undecided(file: str, kept: saved.SavedTurn, stopped: ToolLoopApprovalRequired, as_json: bool) -> NoReturn:
    """Say which calls wait, since nobody can be asked about them."""
    if as_json:
        told = {"model": kept.model, "saved": file, "pending": waiting_as_data(stopped.pending)}
        document = codec.error_to_dict(stopped)
        del document["state"]
        click.echo(json.dumps({"ok": False, **told, **document}))
        sys.exit(1)
    names = ", ".join(f"{record.op} ({harmless(str(record.call.name))})" for record in stopped.pending)
    what = "a call waits" if len(stopped.pending) == 1 else f"{len(stopped.pending)} calls wait"
    raise click.ClickException(f"{what} for approval: {names}; give --approve-all, or --approve or --deny with a name")


def saved_id() -> str:
    """Return a new name for a turn."""
    return os.urandom(16).hex()


def _messages(question: str | None, file: str | None) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    if file is not None:
        try:
            messages += codec.messages_from_json(read_text(file))
        except ValueError as exc:
            raise click.ClickException(f"{file}: {exc}") from None
    if (question == "-" and file != "-") or (question is None and file is None and not sys.stdin.isatty()):
        question = read_text("-").strip()
    if question:
        messages.append(ChatMessage("user", question))
    if not any(message.role != "system" for message in messages):
        raise click.UsageError("there is no question: give one, or a file with --messages")
    if faults := check(messages):
        raise click.ClickException(f"{file}: the messages are no valid transcript: {faults[0]}")
    return messages


def _run(job: _Job) -> None:
    """Drive the turn, show it, and save it when it does not end with an answer."""
    screen = Screen(job.with_.model_name, quiet=job.quiet, silent=job.as_json)
    stopped_by: list[signal.Signals] = []
    try:
        try:
            with printing_aside():
                result = asyncio.run(_drive(job, screen, stopped_by))
        finally:
            screen.end_line()
    except ToolLoopError as exc:
        _fail(job, str(exc), exc, 1)
    except (ModelError, ImportError) as exc:  # the latter where an extra is missing
        _fail(job, str(exc), None, 1)
    except (asyncio.CancelledError, KeyboardInterrupt):
        _fail(job, "interrupted", None, _INTERRUPTED[stopped_by[0] if stopped_by else signal.SIGINT])
    except OSError as exc:
        _refuse_unwritable(exc)
    else:
        if job.as_json:
            try:
                click.echo(json.dumps({"ok": True, **_told(job), **codec.result_to_dict(result)}))
            except OSError as exc:
                _refuse_unwritable(exc)
        if job.path is not None:
            job.path.unlink(missing_ok=True)


def _refuse_unwritable(exc: OSError) -> NoReturn:
    """Say that standard output takes no more, as on a full disk; a reader that has gone is told by click."""
    if exc.errno == errno.EPIPE:
        raise exc
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still waiting to be written can not be either
    raise click.ClickException(f"the answer can not be written: {exc.strerror}") from None


async def _drive(job: _Job, screen: Screen, stopped_by: list[signal.Signals]) -> ToolLoopResult:
    task = asyncio.current_task()
    assert task is not None

    def stop(number: signal.Signals) -> None:
        if not stopped_by:  # what comes again finds the cleanup under way, which is bounded
            stopped_by.append(number)
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in _INTERRUPTED:
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # on Windows; there asyncio.run turns Ctrl-C into a cancel
            break
    made = job.with_
    load = getattr(made.model, "load", None)
    if load is not None:
        screen.note(f"[{made.model_name}] loading …")
        await load()
    approve = None if job.as_json or not at_terminal() else Asking(screen.end_line)
    context = TurnContext(language=made.language)
    perform = Performer(
        made.model, job.tools, context=context, settings=made.settings, approve=approve, answer=job.answer
    )
    return await drive(job.turn, perform, screen, concurrency=made.concurrency)


def _fail(job: _Job, why: str, error: ToolLoopError | None, code: int) -> None:
    job.turn.cancel(why)
    pending = error.pending if isinstance(error, ToolLoopApprovalRequired) else ()
    path: Path | None = None
    try:
        path = saved.save(job.turn, replace(job.kept, why=why), job.path)
    except OSError as exc:
        click.echo(f"The turn could not be saved: {exc}", err=True)
    if job.as_json:
        end = error or job.turn.exit
        assert isinstance(end, ToolLoopError)
        document = codec.error_to_dict(end)
        del document["state"]
        told: dict[str, Any] = {"ok": False, **_told(job), "saved": None if path is None else str(path)}
        if pending:
            told["pending"] = waiting_as_data(pending)
        click.echo(json.dumps({**told, **document}))
    else:
        text = harmless(why if why.endswith((".", "?", "!")) else f"{why}.")
        click.echo(f"Error: {text}", err=True)
        if pending:
            click.echo(waiting_as_text(pending), err=True)
    if path is not None:
        click.echo(_how_to_go_on(path, bool(pending)), err=True)
    sys.exit(code)


def _how_to_go_on(path: Path, waits: bool) -> str:
    command = f"toolturn resume {_quoted(path)}"
    if not waits:
        return f"The turn is saved; '{command}' continues it."
    return (
        f"The turn is saved; '{command}' asks at a terminal, with --approve-all it lets them run; "
        "--approve CALL and --deny CALL=REASON decide about one."
    )


def _told(job: _Job) -> dict[str, Any]:
    return {"model": job.with_.model_name, "tools": _names(job.tools), "seconds": round(job.turn.seconds, 3)}


def _names(tools: ToolSet) -> Sequence[str]:
    return list(tools.names)


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
