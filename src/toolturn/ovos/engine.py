"""What every engine of ours is: its section of a persona, a brain that is loaded once, toolboxes and their tools."""

from __future__ import annotations

import inspect
import threading
import weakref
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from ovos_plugin_manager.templates.agent_tools import ToolBox
from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine
from ovos_utils.log import LOG

from ..background import background
from ..codec import dumps, plain
from ..messages import ToolCall, text_of
from ..perform import Performer
from ..results import ToolCallRecord
from ..tools import ToolSet, TurnContext
from ..turn import CallTool, ToolFailed
from .causes import cause_text
from .config import Settings, brain_named, brain_section, findings_of, settings_of, toolboxes_named
from .entry_points import CHAT, TOOLBOX, NotLoadable, installed, load
from .observations import told
from .overridden import OverriddenTools
from .specs import remember_specs
from .toolboxes import Toolboxes

CONTEXT: ContextVar[TurnContext | None] = ContextVar("toolturn_ovos_context", default=None)
"""What the tools of the turn that runs here may know."""


class AgenticLoopEngine(ChatEngine):  # type: ignore[misc]
    """A ChatEngine that has a brain and toolboxes, and something to do with them.

    Args:
        config: Its section of a persona.

    Attributes:
        toolboxes: What it was given or its section names.

    Raises:
        ValueError: A value of the section is of the wrong kind or out of its range.
        NotLoadable: Under ``strict``, a toolbox is not installed or can not be made.
    """

    supports_tools = False
    bus: Any = None

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self._lock = threading.RLock()
        self._told: set[str] = set()
        self._settings: tuple[dict[str, Any], Settings] | None = None
        self._brain: Any = None
        self.toolboxes: list[Any] = []
        self._joined: tuple[tuple[Any, ...], Settings, Toolboxes] | None = None
        self._owned: list[Any] = []  # what was made here is closed here
        if self.settings.supports_tools:
            self.supports_tools = True
        for finding in findings_of(self.config):
            self._warn(str(finding))
        self._load_toolboxes_from_config()
        self._close = weakref.finalize(self, _close_all, self._owned)

    @abstractmethod
    def continue_chat(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> AgentMessage:
        """Run a turn and return the answer.

        Args:
            messages: The conversation, oldest first.
            session_id: Whose it is.
            lang: A BCP 47 tag.
            units: ``metric`` or ``imperial``.
            tools: Read only where the section says ``supports_tools``.
        """

    @property
    def settings(self) -> Settings:
        """What the section says now."""
        known = self._settings
        if known is None or known[0] != self.config:
            self._settings = known = (dict(self.config), settings_of(self.config))
        return known[1]

    @property
    def max_iterations(self) -> int:
        """Model calls with tools in a turn."""
        return self.settings.iterations

    # --- the brain -------------------------------------------------------------------

    @property
    def brain(self) -> Any:
        """The brain; loaded at first use, once however many threads ask. None where the section names none.

        Raises:
            NotLoadable: It is not installed, or can not be made; the text names those that are installed.
        """
        if self._brain is None:
            with self._lock:
                if self._brain is None and (brain := self._load_brain()) is not None:
                    self._inject_brain_into_toolboxes(brain)
                    self._brain = brain
        return self._brain

    def set_brain(self, brain: Any) -> None:
        """Use this brain, and tell the toolboxes that want one.

        Args:
            brain: Any ChatEngine.
        """
        with self._lock:
            self._brain = brain
            self._inject_brain_into_toolboxes(brain)

    def _load_brain(self) -> Any:
        name = brain_named(self.config)
        if not name:
            return None
        made = load(CHAT, name, "brain")
        try:
            brain = made(config=brain_section(name, self.config))
        except Exception as exc:
            why = f"can not be made: {cause_text(exc)}; installed: {', '.join(installed(CHAT))}"
            raise NotLoadable(f"the brain {name!r} {why}", name) from exc
        self._owned.append(brain)
        return brain

    def _inject_brain_into_toolboxes(self, brain: Any) -> None:
        for toolbox in self.toolboxes:
            if callable(take := getattr(toolbox, "set_brain", None)):
                try:
                    take(brain)
                except Exception as exc:  # noqa: BLE001 - one toolbox takes no other down
                    self._warn(f"the toolbox {_id_of(toolbox)} did not take the brain: {cause_text(exc)}")

    # --- toolboxes -------------------------------------------------------------------

    def load_toolboxes(self, toolboxes: Iterable[Any]) -> None:
        """Use these toolboxes instead of those there were.

        Args:
            toolboxes: ToolBoxes; closing them stays with who made them.
        """
        with self._lock:
            self.toolboxes = list(toolboxes)
            if self._brain is not None:
                self._inject_brain_into_toolboxes(self._brain)

    def _load_toolboxes_from_config(self) -> None:
        for name in toolboxes_named(self.config):
            try:
                toolbox = _made(load(TOOLBOX, name, "toolbox"), self.config.get(name), self.bus)
            except Exception as exc:
                if self.settings.strict:
                    if isinstance(exc, NotLoadable):
                        raise
                    raise NotLoadable(f"the toolbox {name!r} can not be made: {cause_text(exc)}", name) from exc
                why = str(exc) if isinstance(exc, NotLoadable) else f"{name!r} can not be made: {cause_text(exc)}"
                self._warn(f"a toolbox is left out: {why}")
                continue
            self._owned.append(toolbox)
            self.toolboxes.append(toolbox)

    @property
    def tools(self) -> ToolSet:
        """The tools of the toolboxes as they are now; what a subclass overrides is used."""
        tools = self._boxes().tools
        describes, runs = self._overrides("_collect_tool_schemas"), self._overrides("_call_tool")
        if not describes and not runs:
            return tools
        schemas = self._collect_tool_schemas() if describes else None
        call = self._call_tool if runs else None
        return OverriddenTools(tools, schemas, call, self._call_tool, self.settings.tool_timeout)

    def _boxes(self) -> Toolboxes:
        settings, boxes = self.settings, tuple(self.toolboxes)
        with self._lock:
            joined = self._joined
            if joined is None or joined[0] != boxes or joined[1] is not settings:
                for toolbox in boxes:
                    remember_specs(toolbox)
                made = Toolboxes(boxes, clashes=settings.clashes, timeout=settings.tool_timeout, causes=settings.causes)
                self._joined = joined = (boxes, settings, made)
            return joined[2]

    def _offered(self, tools: ToolSet) -> list[Any]:
        """What a brain that calls tools is given: the toolboxes themselves, where they say what the tools are."""
        boxes = self.toolboxes
        listed = [name for box in boxes if isinstance(box, ToolBox) for name in box.tools]
        if tuple(listed) == tools.names and all(isinstance(box, ToolBox) for box in boxes):
            return list(boxes)
        return [definition.to_openai() for definition in tools.definitions]

    def _overrides(self, name: str) -> bool:
        """Whether a subclass, or whoever made this engine, has put something in the place of a method."""
        method = getattr(self, name)
        return getattr(method, "__func__", method) is not getattr(AgenticLoopEngine, name)

    def _collect_tool_schemas(self) -> list[dict[str, Any]]:
        """Return what the model is told of the tools; to be overridden by who wants to tell it something else."""
        schemas: list[dict[str, Any]] = []
        for toolbox in self.toolboxes:
            remember_specs(toolbox)
            with suppress(Exception):  # that it has no tools is said elsewhere
                schemas.extend(toolbox.tool_json_list)
        return schemas

    def _call_tool(self, tool_name: str, args: dict[str, Any]) -> str:
        """Run a tool and return what the model reads of it; to be overridden by who wants to run it otherwise.

        Args:
            tool_name: The tool.
            args: Its arguments.

        Returns:
            The result, or text that begins ``Error:``.
        """
        settings = self.settings
        arguments: Any = args if isinstance(args, str) else dumps(plain(args if args is not None else {}))
        most = settings.limits.result_bytes
        op = CallTool("t0.0", "", ToolCall("call", tool_name, arguments), 0, most)
        performer = Performer(_no_model, self._boxes().tools, context=CONTEXT.get())
        outcome: Any = told(background.run(performer(op)), causes=settings.causes, most=most)
        record: ToolCallRecord = outcome.record if isinstance(outcome, ToolFailed) else outcome
        return text_of(record.message.content)

    # --- the end ---------------------------------------------------------------------

    def close(self) -> None:
        """End what the engine has started: toolboxes and brain that its section names."""
        self._close()

    shutdown = close

    def _warn(self, text: str) -> None:
        with self._lock:
            if text in self._told or len(self._told) > 1000:
                return
            self._told.add(text)
        LOG.warning(f"{type(self).__name__}: {text}")


async def _no_model(messages: Any, tools: Any) -> Any:
    raise AssertionError("a single call of a tool asks no model")


def _made(cls: Any, section: Any, bus: Any) -> Any:
    config = {} if section is None else section
    try:
        taken = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return cls(config=config, bus=bus)
    knows_bus = any(each.name == "bus" or each.kind is each.VAR_KEYWORD for each in taken)
    return cls(config=config, bus=bus) if knows_bus else cls(config=config)


def _id_of(toolbox: Any) -> str:
    return getattr(toolbox, "toolbox_id", None) or type(toolbox).__name__


def _close_all(owned: list[Any]) -> None:
    while owned:
        thing = owned.pop()
        for name in ("unbind", "close", "shutdown"):
            end = getattr(thing, name, None)
            if callable(end):
                with suppress(Exception):  # the others are to be closed too
                    end()
                if name == "close":
                    break
