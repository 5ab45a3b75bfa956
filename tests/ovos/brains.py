"""Brains that play a script, as other packages would bring them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ovos_plugin_manager.templates.agent_tools import ToolBox
from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine, MessageRole, ToolCall

A = MessageRole.ASSISTANT


def user(text: str) -> AgentMessage:
    return AgentMessage(MessageRole.USER, text)


def calling(*calls: tuple[Any, Any, Any], content: Any = "") -> AgentMessage:
    return AgentMessage(A, content, tool_calls=[ToolCall(*call) for call in calls])


@dataclass
class Asked:
    """What a brain was asked."""

    messages: list[Any]
    tools: Any
    known: dict[str, Any] = field(default_factory=dict)


class ScriptedBrain(ChatEngine):  # type: ignore[misc]
    """Plays replies: messages, texts, exceptions to raise, or functions of what was asked."""

    supports_tools = True

    def __init__(self, replies: Iterable[Any] = (), config: Any = None) -> None:
        super().__init__(config)
        self.replies = list(replies)
        self.asked: list[Asked] = []

    def continue_chat(
        self,
        messages: Any,
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> Any:
        known = {"session_id": session_id, "lang": lang, "units": units}
        self.asked.append(Asked(list(messages), tools, known))
        ToolBox.normalize_tools(tools)
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Callable):  # type: ignore[arg-type]
            reply = reply(self.asked[-1])
        return AgentMessage(A, reply) if isinstance(reply, str) else reply


class WritingBrain(ScriptedBrain):
    """A brain that only writes."""

    supports_tools = False
