"""The commands by name; each is imported only when it is called, so that help is quick."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

# name: (module, what help says of it)
_COMMANDS = {
    "ask": ("ask", "Ask a model one question that it may use tools for."),
    "chat": ("chat", "Talk with a model that may use tools."),
    "resume": ("ask", "Continue a turn that failed or was interrupted."),
    "tools": ("tools", "List toolboxes and their tools, and plug-ins."),
    "persona": ("persona", "Say what is wrong with a persona file, and what the persona may do."),
    "doctor": ("doctor", "Tell what is there and why a model can not be reached."),
    "conform": ("conform", "Play faults to libraries, or say what a real server does wrong."),
    "probe": ("conform", "Say in ten lines what a model can do."),
    "model": ("model", "Pull, list, find and remove the weights of the embedded model."),
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"{__package__}.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as exc:
            from .show import harmless

            vars(exc)["message"] = harmless(exc.message)  # it may hold what a server, a file or a plug-in said
            raise
        except KeyboardInterrupt:  # where no turn runs, as while a question is read
            click.echo("Error: interrupted.", err=True)
            ctx.exit(130)
        except ImportError as exc:
            if exc.name is not None:
                raise  # of a module; those that name a missing extra are sentences for people
            raise click.ClickException(str(exc)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from toolturn import __version__

        click.echo(f"toolturn {__version__}")
        ctx.exit()


@click.group(cls=_Lazy, epilog="Exit codes: 0 an answer, 1 none, 2 wrong usage, 130 interrupted.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def toolturn() -> None:
    """One bounded tool-calling turn with any language model."""
