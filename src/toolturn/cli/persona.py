"""``toolturn persona``: what is wrong with a persona file, and what the persona may do."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .show import harmless

if TYPE_CHECKING:
    from toolturn.personas.inspecting import Inspection

_COLOURS = {"problem": "red", "warning": "yellow", "note": "blue"}


@click.group()
def persona() -> None:
    """Look at persona files."""


@persona.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(file: str, as_json: bool) -> None:
    """Say everything that is wrong with a persona, with its place, and what its tools may do.

    FILE is a persona file or the name of a persona plug-in. Plug-ins that it names are imported; no server is started
    and no model is asked. Exit codes: 0 it can be used, 1 it has a problem.
    """
    from toolturn.personas.inspecting import inspect_persona

    seen = inspect_persona(file)
    if as_json:
        click.echo(json.dumps(_document(seen), indent=2, ensure_ascii=False))
    else:
        _show(seen)
    sys.exit(1 if seen.reading.problems else 0)


def _document(seen: Inspection) -> dict[str, Any]:
    known = seen.reading.persona
    told: dict[str, Any] = {
        "ok": not seen.reading.problems,
        "source": seen.reading.source,
        "findings": [asdict(finding) for finding in seen.reading.findings],
        "abilities": [asdict(ability) for ability in seen.abilities],
    }
    if known is not None:
        limits = asdict(known.limits)
        del limits["spending"]
        told |= {
            "name": known.name,
            "model": known.brain.model,
            "model_may": seen.brain,
            "dialect": known.dialect,
            "system_prompt": known.system_prompt,
            "limits": limits,
        }
    return told


def _show(seen: Inspection) -> None:
    known = seen.reading.persona
    for finding in seen.reading.findings:
        click.echo(f"{click.style(finding.level, fg=_COLOURS[finding.level])} {harmless(str(finding))}")
    if known is None:
        click.echo(f"{harmless(seen.reading.source)} can not be used.")
        return
    click.echo(f"{click.style(harmless(known.name), bold=True)} can be used.")
    click.echo(f"Model {harmless(known.brain.model)}: {harmless(seen.brain)}.")
    click.echo(f"At most {known.limits.iterations} model calls and {known.limits.tool_calls} tool calls a turn.")
    click.echo("Tools" if seen.abilities else "There are no tools.")
    for ability in seen.abilities:
        click.echo(f"  {click.style(harmless(ability.name), bold=True)}: {harmless(ability.may)}")
        if ability.tools is None:
            click.echo("    its tools are known when it runs")
        for tool in ability.tools or ():
            approval = "" if tool.approval == "never" else f", approval {tool.approval}"
            click.echo(f"    {harmless(tool.name)}: effect {tool.effect}{approval}")
