"""``toolturn tools``: what the toolboxes hold."""

from __future__ import annotations

import json
from typing import Any

import click

from .choose import tools_named
from .show import harmless


@click.command()
@click.argument("names", nargs=-1)
@click.option("--schemas", is_flag=True, help="Show the JSON Schema of each tool's arguments.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def tools(names: tuple[str, ...], schemas: bool, as_json: bool) -> None:
    """List the built-in toolboxes and their tools; NAMES shows only these toolboxes.

    Plug-ins are listed too, and imported only where NAMES has theirs.
    """
    from toolturn.plugins import plugins
    from toolturn.toolboxes import TOOLBOXES

    others = () if names else plugins("toolboxes")

    wanted = names or tuple(TOOLBOXES)
    boxes = {name: tools_named([name], "NAMES") for name in wanted}
    if as_json:
        document: dict[str, Any] = {
            name: [{"name": d.name, "description": d.description, "parameters": d.parameters} for d in box.definitions]
            for name, box in boxes.items()
        }
        # of those that were not named nothing is imported, so their tools are not known
        for plugin in others:
            name = plugin.full_name if plugin.name in document else plugin.name
            document[name] = {"package": plugin.package, "version": plugin.version}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for number, (name, box) in enumerate(boxes.items()):
        if number:
            click.echo()
        click.echo(click.style(name, bold=True))
        for definition in box.definitions:
            arguments = ", ".join(definition.parameters.get("properties", {}))
            click.echo(harmless(f"  {definition.name}({arguments})"))
            click.echo(
                click.wrap_text(harmless(definition.description), 100, "      ", "      ", preserve_paragraphs=True)
            )
            if schemas:
                schema = json.dumps(definition.parameters, indent=2, ensure_ascii=False)
                click.echo(harmless("\n".join(f"      {line}" for line in schema.split("\n"))))
    for plugin in others:
        click.echo()
        click.echo(f"{click.style(plugin.name, bold=True)}: a plug-in of {plugin.package} {plugin.version}".rstrip())
        click.echo(f"  'toolturn tools {plugin.name}' loads it and lists its tools")
