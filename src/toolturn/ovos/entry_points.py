"""What OpenVoiceOS finds of us and of others by entry points; nothing here needs OpenVoiceOS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from typing import Any

from ..plugins import entries_of

CHAT = "opm.agents.chat"
TOOLBOX = "opm.agents.toolbox"


def clashes() -> list[str]:
    """Return one sentence for each name of ours that another installed package brings too.

    Where two packages bring the same name, OpenVoiceOS takes the one it happens to find last. Each engine of ours has a
    second name that begins with ``toolturn-`` and is ours alone.
    """
    told = []
    for group in (CHAT, TOOLBOX):
        by_name: dict[str, list[EntryPoint]] = {}
        for entry in entries_of(group):
            by_name.setdefault(entry.name, []).append(entry)
        for name, found in sorted(by_name.items()):
            others = sorted({_package(entry) for entry in found if not _is_ours(entry)})
            ours = [entry for entry in found if _is_ours(entry)]
            if ours and others:
                instead = _other_name(ours[0], entries_of(group))
                hint = f"; write {instead!r} for toolturn's" if instead else ""
                told.append(f"{name!r} is brought by toolturn and by {' and '.join(others)}{hint}")
    return told


def outdated() -> list[str]:
    """Return one sentence if the installed persona service is too old to ask chat engines, which ours are.

    It says nothing of a handler that it does not know, and a later handler answers each question.
    """
    try:
        installed_version = version("ovos-persona")
    except PackageNotFoundError:
        return []
    numbers = [int(part) for part in re.findall(r"\d+", installed_version)[:2]]
    if numbers >= [0, 8]:
        return []
    newer = "0.8 and later do: pip install --pre --upgrade ovos-persona"
    return [f"ovos-persona {installed_version} does not ask engines such as toolturn's; {newer}"]


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith("toolturn.")


def _other_name(entry: EntryPoint, entries: Iterable[EntryPoint]) -> str | None:
    names = [each.name for each in entries if each.value == entry.value and each.name != entry.name]
    return next((name for name in names if name.startswith("toolturn-")), None)


def _package(entry: EntryPoint) -> str:
    return getattr(entry.dist, "name", None) or entry.value.partition(":")[0]


class NotLoadable(RuntimeError):
    """A plug-in that the configuration names is not installed or can not be used; what it raised is chained.

    Args:
        text: One sentence for people.
        name: The plug-in.
    """

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return NotLoadable, (str(self), self.name)


def load(group: str, name: str, what: str) -> Any:
    """Return what the plug-in of a name stands for; no other plug-in is imported.

    Args:
        group: The group of entry points.
        name: The plug-in's name in it.
        what: What it is, for people.

    Raises:
        NotLoadable: It is not installed, or can not be imported; the text names those that are installed.
    """
    found = [entry for entry in entries_of(group) if entry.name == name]
    if not found:
        names = installed(group)
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise NotLoadable(f"the {what} {name!r} is not installed; {hint}installed: {', '.join(names) or 'none'}", name)
    entry = found[-1]  # as OpenVoiceOS does
    try:
        return entry.load()
    except (Exception, SystemExit) as exc:
        why = f"can not be imported: {type(exc).__name__}: {exc}; installed: {', '.join(installed(group))}"
        raise NotLoadable(f"the {what} {name!r} of {_package(entry)} {why}", name) from exc


def installed(group: str) -> list[str]:
    """Return the names of a group of entry points; nothing is imported.

    Args:
        group: The group.
    """
    return sorted({entry.name for entry in entries_of(group)})
