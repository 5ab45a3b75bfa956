"""``toolturn conform`` and ``toolturn probe``: what a library, a server or a model does when things go wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

import click

from toolturn.conformance.rows import Fault, Mode

_INTERRUPTED = 130


@click.command()
@click.option(
    "--adapter", "adapters", multiple=True, help="A library by name, or the path of an adapter.  [default: toolturn]"
)
@click.option("--row", "wanted", multiple=True, help="Only rows whose name begins with this.")
@click.option(
    "--mode", type=click.Choice(["plain", "stream"]), help="Only plain or only streamed requests.  [default: both]"
)
@click.option("--failures", is_flag=True, help="Show only rows that somebody failed.")
@click.option("--markdown", is_flag=True, help="Print a table of markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--list", "listing", is_flag=True, help="List the rows with what goes wrong and what is demanded.")
@click.option("--server", help="Instead: look at a real server at this address, such as http://127.0.0.1:8080/v1.")
@click.option("--model", help="The model to ask that server for.")
@click.option("--key", envvar="TOOLTURN_API_KEY", help="Its key; better in the variable TOOLTURN_API_KEY.")
def conform(
    adapters: tuple[str, ...],
    wanted: tuple[str, ...],
    mode: Mode | None,
    failures: bool,
    markdown: bool,
    as_json: bool,
    listing: bool,
    server: str | None,
    model: str | None,
    key: str | None,
) -> None:
    """Play faults to libraries, or say what a real server does wrong.

    A scripted server on loopback plays each row of the fault lab to each adapter; every request it receives is
    checked as the strictest provider would. The environment of an adapter is made on first use and kept in the cache
    folder, which TOOLTURN_CACHE moves.

    Exit codes: 0 all passed, 1 something did not, 2 wrong usage.
    """
    if server is not None:
        if model is None:
            raise click.UsageError("--server needs --model")
        _server(server, model, key, as_json)
        return
    rows = _rows(wanted)
    if listing:
        _list(rows, as_json)
        return
    _adapters(adapters or ("toolturn",), rows, mode, failures=failures, markdown=markdown, as_json=as_json)


def _rows(wanted: Sequence[str]) -> list[Fault]:
    from toolturn.conformance.faults import ROWS

    rows = [row for row in ROWS if not wanted or any(row.name.startswith(start) for start in wanted)]
    if not rows:
        raise click.BadParameter(f"no row begins with {' or '.join(wanted)}", param_hint="--row")
    return rows


def _list(rows: Sequence[Fault], as_json: bool) -> None:
    if as_json:
        listed = [
            {"row": row.name, "says": row.says, "modes": list(row.modes), "criterion": row.criterion} for row in rows
        ]
        click.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    for row in rows:
        click.echo(click.style(row.name, bold=True))
        click.echo(click.wrap_text(row.says, 110, "    ", "    "))
        click.echo(click.wrap_text(f"Demanded: {row.criterion}.", 110, "    ", "    "))


def _adapters(
    names: Sequence[str], rows: Sequence[Fault], mode: Mode | None, *, failures: bool, markdown: bool, as_json: bool
) -> None:
    try:
        from toolturn.conformance import run, table
        from toolturn.conformance.environments import LabError
    except ImportError as exc:
        raise click.ClickException(str(exc)) from None

    show = sys.stderr.isatty()
    turns = len(names) * sum(len(row.modes) if mode is None else mode in row.modes for row in rows)
    done = 0

    def told(result: run.Result) -> None:
        nonlocal done
        done += 1
        if show:
            line = f"{done}/{turns} {result.adapter} {result.row}"
            click.echo(f"\r{line[:79]:<79}\r" if done < turns else f"\r{'':<79}\r", err=True, nl=False)

    modes: tuple[Mode, ...] = ("plain", "stream") if mode is None else (mode,)
    try:
        results = run.conform(names, rows, modes=modes, report=lambda text: click.echo(text, err=True), told=told)
    except LabError as exc:
        raise click.ClickException(str(exc)) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None
    if as_json:
        click.echo(table.as_json(results))
    elif markdown:
        click.echo(table.as_markdown(results, rows))
    else:
        click.echo(table.as_text(results, failures_only=failures))
    if any(result.verdict is not None and not result.verdict.passed for result in results):
        raise click.exceptions.Exit(1)


def _server(url: str, model: str, key: str | None, as_json: bool) -> None:
    from toolturn.conformance.real_server import Check, check_server

    def told(check: Check) -> None:
        if not as_json:
            sign = click.style("✓", fg="green") if check.ok else click.style("✗", fg="red")
            click.echo(f"{sign} {check.name}: {check.says}")

    try:
        checks = check_server(url, model, key, told)
    except ValueError as exc:
        raise click.ClickException(str(exc)) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None
    if as_json:
        listed = [{"check": check.name, "ok": check.ok, "says": check.says} for check in checks]
        click.echo(json.dumps(listed, indent=1, ensure_ascii=False))
    if not all(check.ok for check in checks):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def probe(model: str, as_json: bool) -> None:
    """Say in ten lines what a model can do.

    MODEL is any name that 'toolturn ask --model' takes. The model is asked about a dozen short questions.

    Exit codes: 0 it was asked, 1 it can not be reached, 2 wrong usage.
    """
    from toolturn.conformance.probe import Finding
    from toolturn.conformance.probe import probe as probed
    from toolturn.errors import ModelError

    from .choose import model_named

    chosen = model_named(model)

    def told(finding: Finding) -> None:
        if not as_json:
            click.echo(f"{finding.name:<14}  {finding.says}")

    try:
        findings = asyncio.run(probed(chosen, told))
    except ModelError as exc:
        raise click.ClickException(str(exc)) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None
    if as_json:
        click.echo(json.dumps({finding.name: finding.says for finding in findings}, indent=1, ensure_ascii=False))
