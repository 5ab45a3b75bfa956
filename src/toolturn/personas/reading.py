"""A persona document into a persona, with everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ..limits import Limits
from ..plugins import PluginError, find_plugin, plugin_persona, plugins, unknown
from .brains import Brained, brain_of
from .checking import Finding, below, check_engine, check_section, names_in, number_of, value_of
from .document import read_file
from .keys import BRAINS, ENGINE, ENGINES, MCP_TOOLBOXES, MEMORY, MEMORY_KEYS, PERSONA, REACT, SAME_TOOLBOX, keys_of
from .persona import Box, Brain, Persona, PersonaError, Reading
from .servers import servers_of

DEFAULT_ITERATIONS = 10
DEFAULT_TOOL_CALLS = 64
DEFAULT_REPEATS = 3
DEFAULT_RESULT_BYTES = 16 * 1024
DEFAULT_TOOL_SECONDS = 30.0


def read_persona(source: str | Path | Mapping[str, Any], *, environ: Mapping[str, str] | None = None) -> Reading:
    """Read a persona and say everything that is wrong with it; nothing of it is loaded or started.

    Args:
        source: The path of a persona file, the name of a persona plug-in, or what stands in such a file.
        environ: Where variables are looked up; the process's environment where None.
    """
    shown = "persona" if isinstance(source, Mapping) else str(source)
    findings: list[Finding] = []
    if isinstance(source, str) and not _is_path(source):
        try:
            source = plugin_persona(source)
        except PluginError as exc:
            text = str(exc) if exc.package else f"there is no such file, and {exc}"
            return Reading(shown, None, (Finding("problem", "$", text),))
    document: Mapping[str, Any] | None = None
    if isinstance(source, Mapping):
        document = source
    else:
        document, findings = read_file(source)
    if document is None:
        return Reading(shown, None, tuple(findings))
    reader = _Reader(document, os.environ if environ is None else environ, findings)
    persona = reader.read()
    found = tuple(dict.fromkeys(reader.found))
    broken = any(finding.level == "problem" for finding in found)
    return Reading(shown, None if broken else persona, found)


def load_persona(source: str | Path | Mapping[str, Any], *, environ: Mapping[str, str] | None = None) -> Persona:
    """Return the persona of a file, a plug-in or a document.

    Args:
        source: As for :func:`read_persona`.
        environ: As for :func:`read_persona`.

    Raises:
        PersonaError: It can not be used; ``findings`` holds what is wrong, each with its place.
    """
    reading = read_persona(source, environ=environ)
    if reading.persona is None:
        first, *more = reading.problems
        rest = f" (and {len(more)} more: toolturn persona check)" if more else ""
        raise PersonaError(f"{reading.source}: {first}{rest}", reading.findings)
    return reading.persona


def _is_path(source: str) -> bool:
    return source.endswith(".json") or os.sep in source or source.startswith("~") or os.path.exists(source)


class _Reader:
    """Reads one document and gathers what is wrong with it.

    Args:
        document: What stands in the file.
        environ: Where variables are looked up.
        found: What is known to be wrong already; more is added to it.
    """

    def __init__(self, document: Mapping[str, Any], environ: Mapping[str, str], found: list[Finding]) -> None:
        self.document = document
        self.environ = environ
        self.found = found

    def tell(self, level: Literal["problem", "warning", "note"], place: str, text: str) -> None:
        """Add a finding."""
        self.found.append(Finding(level, place, text))

    def read(self) -> Persona | None:
        """Return the persona, or None where there is none to speak of."""
        handlers = names_in(self.document.get("handlers") or self.document.get("solvers"))
        handler = self._handler(handlers)
        engine: Any = None
        if handler is not None and handler in ENGINES:
            engine = {} if self.document.get(handler) is None else self.document[handler]
        place = below("$", handler or "")
        if engine is not None and not isinstance(engine, Mapping):
            self.tell("problem", place, f"the section of {handler} must be an object")
            engine = {}
        named: list[str] = []
        if engine is not None:
            brain_id = value_of(engine, "brain", ENGINE)
            named = [*([brain_id] if isinstance(brain_id, str) else []), *_boxes_of(engine)]
        self._top(handlers, named, place if engine is not None else None)
        if handler is None:
            return None
        if engine is None:  # the brain alone
            brain = brain_of(handler, self._section(self.document, handler, "$"), place, self)
            return None if brain is None else self._persona(brain, self._system([], brain.system_prompt))
        return self._with_engine(handler, engine, place)

    # --- the top ---------------------------------------------------------------------

    def _top(self, handlers: list[str], named: list[str], engine: str | None) -> None:
        memory = self.document.get("memory_module")
        sections = [*handlers, *ENGINES, MEMORY, *([memory] if isinstance(memory, str) else [])]
        if handlers and not any(name in ENGINES or name in BRAINS for name in handlers):
            named = [*named, *self.document]  # of an engine that is not known everything may be a section
        misplaced = [
            key
            for key, value in self.document.items()
            if isinstance(value, Mapping)
            and key not in sections
            and key not in PERSONA.known
            and (key in named or keys_of(key) is not None)
        ]
        self.found += check_section(self.document, PERSONA, sections=[*sections, *misplaced])
        for key in misplaced:
            where = "the section of an engine" if engine is None else f"{engine}: OpenVoiceOS reads it only there"
            self.tell("warning", below("$", key), f"the section of {key} belongs into {where}")
            keys = keys_of(key)
            if keys is not None and engine is None:
                self.found += check_section(self.document[key], keys, below("$", key))
        for key in ENGINES:
            if key in self.document and key not in handlers:
                self.tell("warning", below("$", key), f'this section is not used: "handlers" does not list {key}')
        if not isinstance(memory, (str, type(None))):
            self.tell("problem", "$.memory_module", "memory_module must be a text or null")
        if isinstance(memory, str) and memory != MEMORY:
            self.tell("note", "$.memory_module", f"{memory} is of OpenVoiceOS; here a conversation is kept as a whole")
        section = self.document.get(MEMORY)
        if isinstance(section, Mapping):
            self.found += check_section(section, MEMORY_KEYS, below("$", MEMORY))

    def _handler(self, handlers: list[str]) -> str | None:
        key = "handlers" if self.document.get("handlers") else "solvers" if self.document.get("solvers") else None
        if key is None:
            known = ", ".join(ENGINES)
            self.tell("problem", "$.handlers", f'"handlers" is missing: a list with the id of an engine ({known})')
            return None
        if key == "solvers":
            self.tell("note", "$.solvers", "solvers is the old name of handlers")
        usable = [name for name in handlers if name in ENGINES or name in BRAINS]
        for index, name in enumerate(handlers):
            where = below(below("$", key), index)
            if not usable:
                self.tell("problem", where, unknown("engine", name, [*ENGINES, *BRAINS]))
            elif name != usable[0]:
                self.tell("note", where, f"{name} is not used here; OpenVoiceOS asks it where the one before fails")
        return usable[0] if usable else None

    # --- the engine ------------------------------------------------------------------

    def _with_engine(self, handler: str, engine: Mapping[str, Any], place: str) -> Persona | None:
        self.found += check_engine(engine, place, skip=BRAINS)
        brain = self._brain(engine, place)
        limits = self._limits(engine, place)
        own = value_of(engine, "system_prompt", ENGINE)
        if isinstance(own, str) and own.strip() and handler.startswith("ovos-"):
            text = f"{handler} of ovos-agentic-loop does not read it; toolturn does"
            self.tell("note", below(place, "system_prompt"), text)
        boxes, servers = self._boxes(engine, place)
        if number_of(value_of(engine, "max_iterations", ENGINE)) == 0:
            self.tell("note", below(place, "max_iterations"), "with 0 the model is asked once, without tools")
            boxes, servers = (), {}
        if brain is None or limits is None:
            return None
        return self._persona(
            brain,
            self._system([own], brain.system_prompt),
            dialect=ENGINES[handler],
            boxes=boxes,
            servers=servers,
            limits=limits,
            concurrency=_given(engine, "parallel_tools", 4),
            language=value_of(engine, "lang", ENGINE),
            clashes=engine.get("tool_names") or "first",
            attempts=_given(engine, "brain_attempts", 2),
            react=_react(engine),
        )

    def _brain(self, engine: Mapping[str, Any], place: str) -> Brained | None:
        name, where = value_of(engine, "brain", ENGINE), below(place, "brain")
        if name in (None, ""):
            self.tell("problem", where, f"brain is missing: the id of a brain, such as {' or '.join(BRAINS)}")
            return None
        if not isinstance(name, str):
            return None  # was told
        if name not in BRAINS:
            self.tell("problem", where, unknown("brain", name, BRAINS))
            return None
        section, at = self._placed(engine, place, name)
        return brain_of(name, section, at, self)

    def _persona(self, brain: Brained, system: str | None, **more: Any) -> Persona | None:
        if any(finding.level == "problem" for finding in self.found):
            return None  # what is wrong was told; a value of the wrong kind must not be used
        name = value_of(self.document, "name", PERSONA)
        return Persona(
            name, Brain(brain.model, brain.options, brain.place), system_prompt=system, settings=brain.settings, **more
        )

    def _limits(self, engine: Mapping[str, Any], place: str) -> Limits | None:
        try:
            return Limits(
                max(1, _given(engine, "max_iterations", DEFAULT_ITERATIONS)),
                _given(engine, "max_tool_calls", DEFAULT_TOOL_CALLS),
                _given(engine, "timeout", None),
                _given(engine, "max_result_bytes", DEFAULT_RESULT_BYTES, open_=True),
                _given(engine, "max_turn_tokens", None),
                repeats=_given(engine, "max_repeats", DEFAULT_REPEATS, open_=True),
            )
        except (TypeError, ValueError) as exc:
            if not any(finding.level == "problem" for finding in self.found):
                self.tell("problem", place, str(exc))
            return None

    def _system(self, engine: list[Any], brain: str | None) -> str | None:
        memory = self.document.get(MEMORY)
        first = value_of(memory, "system_prompt", MEMORY_KEYS) if isinstance(memory, Mapping) else None
        given = [text.strip() for text in (first, *engine, brain) if isinstance(text, str) and text.strip()]
        distinct = list(dict.fromkeys(given))
        if len(distinct) > 1:
            self.tell(
                "note", "$", "there are several system prompts: they become one, in the order memory, engine, brain"
            )
        return "\n\n".join(distinct) or None

    # --- sections --------------------------------------------------------------------

    def _placed(self, engine: Mapping[str, Any], place: str, name: str) -> tuple[Mapping[str, Any], str]:
        """A section of the engine; one that stands at the top by mistake is taken too."""
        if name in engine or not isinstance(self.document.get(name), Mapping):
            return self._section(engine, name, place), below(place, name)
        return self._section(self.document, name, "$"), below("$", name)

    def _section(self, parent: Mapping[str, Any], name: str, place: str) -> Mapping[str, Any]:
        section = parent.get(name)
        if section is None:
            return {}
        if not isinstance(section, Mapping):
            self.tell("problem", below(place, name), f"the section of {name} must be an object")
            return {}
        return section

    # --- toolboxes -------------------------------------------------------------------

    def _boxes(self, engine: Mapping[str, Any], place: str) -> tuple[tuple[Box, ...], dict[str, Any]]:
        boxes: list[Box] = []
        servers: dict[str, Any] = {}
        seconds = _given(engine, "tool_timeout", DEFAULT_TOOL_SECONDS, open_=True)
        for index, name in enumerate(names := _boxes_of(engine)):
            where = below(below(place, "toolboxes"), index)
            if name in names[:index]:
                self.tell("warning", where, f"{name} is listed twice; once is enough")
                continue
            section, at = self._placed(engine, place, name)
            if section.get("enabled") is False:
                self.tell("note", below(at, "enabled"), f"{name} is left out")
                continue
            if name in MCP_TOOLBOXES:
                found, wrong = servers_of(section, at, self.environ, reserved=servers)
                servers |= found
                self.found += wrong
                continue
            kind = self._kind(name, where)
            if kind is None:
                continue
            if kind == "files" and name not in engine and not section:
                self.tell("problem", below(at, "folders"), "folders is missing: the files toolbox needs a section")
            bound = number_of(section.get("timeout", seconds)) if kind != "plugin" else seconds
            config = {
                key: value for key, value in section.items() if kind == "plugin" or key not in ("timeout", "enabled")
            }
            boxes.append(
                Box(name, name if kind == "ovos" else SAME_TOOLBOX.get(name, name), kind, config, where, bound)
            )
        return tuple(boxes), servers

    def _kind(self, name: str, where: str) -> Literal["own", "files", "plugin", "ovos"] | None:
        from ..toolboxes import TOOLBOXES

        theirs = _of_ovos()
        if name in theirs:
            return "ovos"
        same = SAME_TOOLBOX.get(name, name)
        if same == "files":
            return "files"
        box = same.partition(".")[0]
        if box in TOOLBOXES:
            if name.startswith("ovos-"):
                self.tell(
                    "note", where, f"{name} is of OpenVoiceOS, which is not installed here; {same} takes its place"
                )
            return "own"
        try:
            find_plugin("toolboxes", name)
        except PluginError as exc:
            there = [plugin.name for plugin in plugins("toolboxes")]
            several = name in there or ":" in name
            known = [*TOOLBOXES, "files", *MCP_TOOLBOXES, *SAME_TOOLBOX, *there, *theirs]
            text = str(exc) if several else unknown("toolbox", name, known)
            if name.startswith("ovos-") and not theirs:
                text = f"the toolbox {name} is of OpenVoiceOS, which is not installed here (known: {', '.join(known)})"
            self.tell("problem", where, text)
            return None
        return "plugin"


def _boxes_of(engine: Mapping[str, Any]) -> list[str]:
    return names_in(value_of(engine, "toolboxes", ENGINE))


def _react(engine: Mapping[str, Any]) -> dict[str, Any]:
    react = engine.get("react")
    given = react if isinstance(react, Mapping) else {}
    options = {key: value_of(given, key, REACT) for key in REACT.known}
    options["language"] = options["language"] or value_of(engine, "lang", ENGINE)
    return {key: number_of(value) if key == "hold" else value for key, value in options.items() if value is not None}


def _given(section: Mapping[str, Any], key: str, default: Any, *, open_: bool = False) -> Any:
    """A number of a section; null is no bound where that can be, and the default elsewhere."""
    if open_ and key in section and section[key] is None:
        return None
    value = value_of(section, key, ENGINE)
    return default if value is None else number_of(value)


def _of_ovos() -> frozenset[str]:
    """The toolboxes of OpenVoiceOS, where that is installed."""
    from importlib.util import find_spec

    if find_spec("ovos_plugin_manager") is None:
        return frozenset()
    from ..plugins import entries_of

    return frozenset(
        entry.name for entry in entries_of("opm.agents.toolbox") if not entry.value.startswith("toolturn.")
    ) - {*MCP_TOOLBOXES}
