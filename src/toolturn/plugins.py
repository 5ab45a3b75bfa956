"""Plug-ins: what other packages bring, found by their entry points and loaded by name only.

A package that brings something says so in its ``pyproject.toml``::

    [project.entry-points."toolturn.toolboxes"]
    dice = "toolturn_dice:tools"        # (**config) -> ToolSet, or any iterable of tools

    [project.entry-points."toolturn.models"]
    echo = "toolturn_dice:model"        # (name, **config) -> ChatModel; name is what stands behind "echo:"

    [project.entry-points."toolturn.personas"]
    gambler = "toolturn_dice:PERSONA"   # a persona as a dictionary, or the path of a persona file

That is the whole interface. ``config`` is what a persona file says in the section of that name, and empty elsewhere.
Listing reads what the installed packages say of themselves and imports none of them; what fails to be imported is a
:class:`PluginError` of that one plug-in. Where two packages bring the same name, ``package:name`` says which.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import EntryPoint, distributions, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from .model import ChatModel
    from .tools import ToolSet

Kind: TypeAlias = Literal["toolboxes", "models", "personas"]
"""What a plug-in can be; its entry point stands in the group ``toolturn.<kind>``."""

KINDS: tuple[Kind, ...] = get_args(Kind)

_ONE: Mapping[str, str] = {"toolboxes": "toolbox", "models": "model", "personas": "persona"}


class PluginError(RuntimeError):
    """A plug-in is not there, or there twice, or can not be used; what it raised is chained.

    Args:
        text: One sentence for people.
        kind: What it should be.
        name: Its name.
        package: The package it comes from, where that is known.
    """

    def __init__(self, text: str, kind: Kind, name: str, package: str | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.name = name
        self.package = package

    def __reduce__(self) -> tuple[Any, ...]:
        return PluginError, (str(self), self.kind, self.name, self.package)


@dataclass(frozen=True, slots=True)
class Plugin:
    """What an installed package says it brings; nothing of it is imported.

    Args:
        kind: What it is.
        name: What it is called in configuration.
        package: The package it comes from.
        version: That package's version.
        target: The object, as ``module:attribute``.
    """

    kind: Kind
    name: str
    package: str
    version: str
    target: str
    _entry: EntryPoint = field(repr=False, compare=False)

    @property
    def full_name(self) -> str:
        """The name that no other package's plug-in has."""
        return f"{self.package}:{self.name}"

    def load(self) -> Any:
        """Import the plug-in and return its object.

        Raises:
            PluginError: That failed; it names the plug-in, its package and the cause, which is chained.
        """
        try:
            with _printing_aside():
                return self._entry.load()
        except (Exception, SystemExit) as exc:
            raise self.error(f"can not be imported: {_cause(exc)}") from exc

    def error(self, what: str) -> PluginError:
        """Return an error that names the plug-in.

        Args:
            what: What is wrong with it, as the end of a sentence.
        """
        return PluginError(
            f"the {_ONE[self.kind]} plug-in {self.name!r} of the package {self.package} {what}",
            self.kind,
            self.name,
            self.package,
        )


# --- finding -------------------------------------------------------------------------------


def plugins(kind: Kind | None = None) -> tuple[Plugin, ...]:
    """Return what is installed, without importing any of it.

    Args:
        kind: What is wanted; everything where None.
    """
    kinds = KINDS if kind is None else (kind,)
    return tuple(
        sorted(
            (_plugin(each, entry) for each in kinds for entry in entries_of(f"toolturn.{each}")),
            key=lambda plugin: (KINDS.index(plugin.kind), plugin.name, plugin.package),
        )
    )


def find_plugin(kind: Kind, name: str) -> Plugin:
    """Return the plug-in of a name.

    Args:
        kind: What is wanted.
        name: Its name, or ``package:name``.

    Raises:
        PluginError: There is none, or several packages bring one.
    """
    there = plugins(kind)
    for wanted in ("name", "full_name"):
        found = [plugin for plugin in there if getattr(plugin, wanted) == name]
        if len(found) == 1:
            return found[0]
        if found:
            brought = " and ".join(f"{plugin.package} ({plugin.target})" for plugin in found)
            which = " or ".join(repr(full) for full in dict.fromkeys(plugin.full_name for plugin in found))
            text = f"there are several {_ONE[kind]} plug-ins {name!r}, of {brought}; write {which}"
            raise PluginError(text, kind, name)
    names = [plugin.name for plugin in there]
    raise PluginError(unknown(f"{_ONE[kind]} plug-in", name, names), kind, name)


def model_plugin(name: str) -> tuple[Plugin, str] | None:
    """Return the plug-in that a model's name means, and what is for it to understand; None where it means none.

    Args:
        name: ``plugin:rest``, ``package:plugin:rest``, or either without a rest.

    Raises:
        PluginError: Several packages bring one of that name.
    """
    first, _, rest = name.partition(":")
    second, _, later = rest.partition(":")
    there = plugins("models")
    same = [plugin for plugin in there if plugin.name == first]
    if len(same) == 1:
        return same[0], rest
    full = [plugin for plugin in there if (plugin.package, plugin.name) == (first, second)]
    if full:
        return find_plugin("models", f"{first}:{second}"), later
    return (find_plugin("models", first), rest) if same else None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence about a name that nobody knows, with the nearest one that is known.

    Args:
        what: What it should name.
        name: The name.
        known: Those that are known.
    """
    names = list(dict.fromkeys(known))
    near = get_close_matches(name.lower(), names, 1)
    if near:
        return f"there is no {what} {name!r:.100}; did you mean {near[0]!r}?"
    return f"there is no {what} {name!r:.100}" + (f" (known: {', '.join(names)})" if names else "")


def entries_of(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group, of all packages whose metadata can be read.

    Args:
        group: The group.
    """
    try:
        return entry_points(group=group)
    except Exception:  # noqa: BLE001 - the metadata of some package is broken, whatever it is about
        return _entries_one_by_one(group)


def _entries_one_by_one(group: str) -> Iterable[EntryPoint]:
    """The entry points of all packages that can be read; of one that is there twice the first counts."""
    seen: set[str] = set()
    for distribution in distributions():
        try:
            name = distribution.name
            found = [entry for entry in distribution.entry_points if entry.group == group]
        except Exception:  # noqa: BLE001 - this is the broken one
            continue
        if name not in seen:
            seen.add(name)
            yield from found


def _plugin(kind: Kind, entry: EntryPoint) -> Plugin:
    package, version = "an unknown package", ""
    try:
        assert entry.dist is not None
        package, version = entry.dist.name, entry.dist.version
    except Exception:  # noqa: BLE001 - what is broken in one package must not hide the others
        version = ""
    return Plugin(kind, entry.name, str(package), str(version or ""), entry.value, entry)


# --- using ---------------------------------------------------------------------------------


def plugin_tools(name: str, config: Mapping[str, Any] | None = None) -> ToolSet:
    """Return the tools of a toolbox plug-in.

    Args:
        name: Its name, or ``package:name``.
        config: Its keyword arguments.

    Raises:
        PluginError: There is none, or it can not be used.
    """
    from .tools import ToolSet

    plugin = find_plugin("toolboxes", name)
    made = called(plugin, config or {})
    if made is None:
        raise plugin.error("gave no set of tools but nothing")
    try:
        with _printing_aside():  # a generator runs only now
            return made if isinstance(made, ToolSet) else ToolSet(made)
    except (Exception, SystemExit) as exc:
        raise plugin.error(f"gave no set of tools: {_cause(exc)}") from exc


def plugin_model(plugin: Plugin, name: str, config: Mapping[str, Any] | None = None) -> ChatModel:
    """Return a model of a model plug-in.

    Args:
        plugin: The plug-in, as :func:`model_plugin` finds it.
        name: Which of its models.
        config: Its keyword arguments.

    Raises:
        PluginError: It can not be used.
    """
    from .model import ChatModel

    made = called(plugin, config or {}, name)
    if not isinstance(made, ChatModel):
        raise plugin.error(f"gave no ChatModel but {type(made).__name__}")
    return made


def plugin_persona(name: str) -> Mapping[str, Any] | Path:
    """Return the persona of a persona plug-in: what stands in it, or the path of its file.

    Args:
        name: Its name, or ``package:name``.

    Raises:
        PluginError: There is none, or it can not be used.
    """
    plugin = find_plugin("personas", name)
    made = plugin.load()
    if isinstance(made, Mapping):
        return made
    if isinstance(made, (str, os.PathLike)):
        return Path(made)
    raise plugin.error(f"is neither a dictionary nor a path but {type(made).__name__}")


def called(plugin: Plugin, config: Mapping[str, Any], *arguments: Any) -> Any:
    """Return what the function of a plug-in gives.

    Args:
        plugin: The plug-in.
        config: Its keyword arguments.
        arguments: What stands before them.

    Raises:
        PluginError: It is no function, does not know a keyword, or raised.
    """
    function = plugin.load()
    if not callable(function):
        raise plugin.error(f"is no function but {type(function).__name__}")
    if (wrong := misfit(function, config, *arguments)) is not None:
        raise plugin.error(f"does not take its configuration: {wrong}")
    try:
        with _printing_aside():
            return function(*arguments, **config)
    except (Exception, SystemExit) as exc:
        raise plugin.error(f"failed: {_cause(exc)}") from exc


@contextmanager
def _printing_aside() -> Iterator[None]:
    """What a plug-in prints goes to standard error: standard output may hold one JSON document, or an answer."""
    with nullcontext() if sys.stderr is None else redirect_stdout(sys.stderr):
        yield


def misfit(function: Callable[..., Any], config: Mapping[str, Any], *arguments: Any) -> str | None:
    """Return why a function can not be called so, or None.

    Args:
        function: The function.
        config: Its keyword arguments.
        arguments: What stands before them.
    """
    try:
        inspect.signature(function).bind(*arguments, **config)
    except TypeError as exc:
        return str(exc)
    except ValueError:  # it has no signature; calling it will tell
        return None
    return None


def settings_of(function: Callable[..., Any], skip: int = 0) -> tuple[str, ...] | None:
    """Return the keywords that a plug-in's function takes; None where it takes any.

    Args:
        function: The function.
        skip: How many of its first parameters are no keywords of its configuration.
    """
    try:
        parameters: Iterable[inspect.Parameter] = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))


def _cause(exc: BaseException) -> str:
    text = str(exc)
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
