"""``toolturn doctor``: what is installed, which keys and servers are there, and why a model can not be reached."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from importlib.util import find_spec
from typing import Any

import click

from .show import harmless

# extra: a module that only it brings, what it is for
_EXTRAS = {
    "cli": ("prompt_toolkit", "the command line"),
    "conformance": ("h11", "the fault lab"),
    "http": ("httptools", "models behind HTTP"),
    "local": ("xllamacpp", "the embedded model"),
    "mcp": ("mcp", "tools of MCP servers"),
    "ovos": ("ovos_plugin_manager", "the engines of OpenVoiceOS"),
    "schema": ("jsonschema_rs", "tools from a JSON Schema"),
    "signing": ("itsdangerous", "signed states"),
    "toolboxes": ("simpleeval", "the built-in tools"),
}
_SECONDS = 3.0


@click.command()
@click.argument("model", required=False)
@click.option("--load-plugins", is_flag=True, help="Import each plug-in and tell which fail.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(model: str | None, load_plugins: bool, as_json: bool) -> None:
    """Tell which extras, keys, servers and plug-ins are there; with MODEL, whether it can be reached and why not.

    Keys themselves are never shown. Exit codes: 0 all is well, 1 MODEL can not be reached or a plug-in fails.
    """
    found = asyncio.run(_reached(model)) if model else asyncio.run(_all())
    if not model:
        found["plugins"] = _plugins(load_plugins)
        found["clashes"] = _clashes()
        found["ok"] = all(plugin["problem"] is None for plugin in found["plugins"])
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(found)
    sys.exit(0 if found.get("ok", True) else 1)


async def _all() -> dict[str, Any]:
    from toolturn import __version__
    from toolturn.models.servers import SERVERS

    keys = {
        server.name: next((name for name in server.keys if os.environ.get(name, "").strip()), None)
        for server in SERVERS
        if server.keys
    }
    extras = {name: find_spec(module) is not None for name, (module, _) in _EXTRAS.items()}
    local = [server for server in SERVERS if server.local] if extras["http"] else []
    answers = await asyncio.gather(*(_models_of(server.name) for server in local))
    return {
        "toolturn": __version__,
        "python": platform.python_version(),
        "extras": extras,
        "weights": _weights(),
        "keys": keys,
        "servers": {server.name: answer for server, answer in zip(local, answers, strict=True)},
    }


def _plugins(load: bool) -> list[dict[str, Any]]:
    """What is installed; whether it can be imported only where that was asked for."""
    from toolturn.plugins import PluginError, plugins

    told = []
    for plugin in plugins():
        problem = None
        if load:
            try:
                plugin.load()
            except PluginError as exc:
                problem = str(exc)
        named = {"kind": plugin.kind, "name": plugin.name, "package": plugin.package, "version": plugin.version}
        told.append({**named, "loaded": load and problem is None, "problem": problem})
    return told


def _clashes() -> list[str]:
    """Names that several packages bring, and what is too old for toolturn; each sentence says what to do."""
    from collections import Counter

    from toolturn.plugins import KINDS, PluginError, find_plugin, plugins

    told = []
    for kind in KINDS:
        for name, times in Counter(plugin.name for plugin in plugins(kind)).items():
            if times > 1:
                try:
                    find_plugin(kind, name)
                except PluginError as exc:
                    told.append(str(exc))
    from toolturn.ovos.entry_points import clashes, outdated  # they need nothing of OpenVoiceOS

    return told + clashes() + outdated()


def _weights() -> dict[str, Any]:
    from toolturn.local import WeightsError
    from toolturn.local.weights import find

    try:
        return {"path": str(find(None)), "problem": None}
    except WeightsError as exc:
        return {"path": None, "problem": str(exc)}


async def _models_of(name: str) -> dict[str, Any]:
    """What a server on this machine says of itself."""
    from toolturn.errors import ModelError
    from toolturn.models.named import base_url_of
    from toolturn.models.servers import server_named
    from toolturn.models.transport import Timeouts
    from toolturn.models.wires.openai_chat import OpenAIChat

    server = server_named(name)
    assert server is not None
    address = base_url_of(server, os.environ)
    try:
        chat = OpenAIChat("", base_url=address, timeouts=Timeouts(_SECONDS, _SECONDS, _SECONDS))
        return {"address": address, "models": list(await chat.models()), "problem": None}
    except (ModelError, ValueError) as exc:
        return {"address": address, "models": None, "problem": str(exc)}


async def _reached(name: str) -> dict[str, Any]:
    """Whether a model replies, or the first thing that stands in the way."""
    from toolturn import ChatMessage
    from toolturn.errors import ModelError
    from toolturn.model import ModelSettings
    from toolturn.models.named import model_named, where

    from .choose import model_named as any_model

    try:
        place = where(name, os.environ)
        model = any_model(name) if place is None else model_named(name, attempts=1)
        settings = ModelSettings(max_tokens=16)
        await model.complete((ChatMessage("user", "Say hello."),), settings=settings)
    except (ModelError, ImportError) as exc:
        found = {"model": name, "ok": False, "problem": str(exc)}
    except click.ClickException as exc:
        found = {"model": name, "ok": False, "problem": exc.message}
    else:
        found = {"model": name, "ok": True, "problem": None}
    return found


def _show(found: dict[str, Any]) -> None:
    if "model" in found:
        click.echo(harmless(f"{found['model']}: {'it replies' if found['ok'] else found['problem']}"))
        return
    click.echo(f"toolturn {found['toolturn']}, Python {found['python']}")
    click.echo("Extras")
    for name, there in found["extras"].items():
        state = "installed" if there else f"missing: pip install 'toolturn[{name}]'"
        click.echo(f"  {name:<11} {_EXTRAS[name][1]}: {state}")
    weights = found["weights"]
    click.echo(f"Embedded model\n  {weights['path'] or weights['problem']}")
    click.echo("Keys")
    for name, variable in found["keys"].items():
        if variable:
            click.echo(f"  {name:<17} {variable}")
    missing = [name for name, variable in found["keys"].items() if not variable]
    if missing:
        click.echo(click.wrap_text(f"none for {', '.join(missing)}", 100, "  ", "  "))
    if found["servers"]:
        click.echo("Servers on this machine")
    for name, answer in found["servers"].items():
        models = answer["models"]
        shown = answer["problem"]
        if models is not None:
            shown = f"{len(models)} model{'' if len(models) == 1 else 's'}: {', '.join(models[:8])}"
        click.echo(harmless(f"  {name:<11} {answer['address']}: {shown}"))
    if found["plugins"]:
        click.echo("Plug-ins")
    for plugin in found["plugins"]:
        state = plugin["problem"] or ("can be imported" if plugin["loaded"] else "not loaded")
        line = f"  {plugin['kind']:<10} {plugin['name']} of {plugin['package']} {plugin['version']}: {state}"
        click.echo(harmless(line))
    if found["clashes"]:
        click.echo("To know")
    for text in found["clashes"]:
        click.echo(harmless(f"  {text}"))
