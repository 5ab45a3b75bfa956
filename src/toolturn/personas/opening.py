"""A persona at work: its model, its tools with their MCP servers, and a turn with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..messages import ChatMessage
from ..model import ChatModel
from ..tools.context import TurnContext
from ..tools.toolset import ToolSet
from .boxes import tools_of
from .persona import Persona

if TYPE_CHECKING:
    from ..results import ToolLoopResult


@dataclass(frozen=True, slots=True)
class OpenPersona:
    """A persona whose model and tools are there.

    Args:
        persona: The persona.
        model: Its model.
        tools: Its tools, those of its MCP servers included.
        problems: One sentence for each tool that is left out and each server that does not run.
    """

    persona: Persona
    model: ChatModel
    tools: ToolSet
    problems: tuple[str, ...] = ()

    def messages(self, messages: Iterable[ChatMessage]) -> list[ChatMessage]:
        """Return messages with the system prompt before them.

        Args:
            messages: The conversation; a system message of its own at the beginning stays behind the persona's.
        """
        return with_system(self.persona.system_prompt, messages)

    async def ask(self, messages: Iterable[ChatMessage] | str, **options: Any) -> ToolLoopResult:
        """Run one turn.

        Args:
            messages: The conversation, or a question alone.
            options: Keyword arguments of :func:`toolturn.run_tool_loop`, in place of the persona's.

        Raises:
            ToolLoopError: The turn ended without an answer.
        """
        from ..loop import run_tool_loop

        given = [ChatMessage("user", messages)] if isinstance(messages, str) else messages
        return await run_tool_loop(
            self.messages(given), self.tools, self.model, **(turn_options(self.persona) | options)
        )


@asynccontextmanager
async def open_persona(persona: Persona) -> AsyncIterator[OpenPersona]:
    """Make the model and the tools of a persona, and start its MCP servers, for the time of a block.

    Args:
        persona: The persona.

    Raises:
        PersonaError: A toolbox can not be used.
        ModelError: The model is not there, or its key is missing.
        ImportError: An extra is missing; the text says how to install it.
    """
    tools, left_out = tools_of(persona)
    async with AsyncExitStack() as stack:
        model = model_of(persona)
        stack.push_async_callback(model.aclose)
        problems = list(left_out)
        if persona.servers:
            from ..mcp import mcp_servers

            servers = mcp_servers(persona.servers, names=server_names(persona), reserved=tools.names)
            running = await stack.enter_async_context(servers)
            problems += [str(problem) for problem in running.problems]
            tools = tools + running.tools
        yield OpenPersona(persona, model, tools, tuple(problems))


def model_of(persona: Persona) -> ChatModel:
    """Return the model of a persona, as one that calls tools.

    Args:
        persona: The persona.

    Raises:
        ModelError: The model is not there, or its key is missing.
        ImportError: An extra is missing; the text says how to install it.
        ValueError: An option of the text protocol can not be used.
    """
    from ..naming import calling_model, source_of

    options = dict(persona.brain.options)
    if source_of(persona.brain.model) == "server":
        options["attempts"] = persona.attempts
    return calling_model(persona.brain.model, persona.dialect, persona.react, **options)


def server_names(persona: Persona) -> Literal["auto", "prefixed"]:
    """Return how the tools of a persona's MCP servers are named.

    Args:
        persona: The persona.
    """
    return "prefixed" if persona.clashes == "prefix" else "auto"


def turn_options(persona: Persona) -> dict[str, Any]:
    """Return the keyword arguments that a turn of a persona is run with.

    Args:
        persona: The persona.
    """
    return {
        "limits": persona.limits,
        "on_limit": "answer",
        "tool_errors": "report",
        "nudges": 1,
        "concurrency": persona.concurrency,
        "settings": persona.settings,
        "context": TurnContext(language=persona.language),
    }


def with_system(prompt: str | None, messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return messages with a system prompt before them; one that is there already is put behind it, in one message.

    Args:
        prompt: The prompt; None for none.
        messages: The conversation.
    """
    given = list(messages)
    if prompt is None:
        return given
    if given and given[0].role == "system" and isinstance(given[0].content, str):
        if given[0].content == prompt or given[0].content.startswith(f"{prompt}\n\n"):
            return given
        return [replace(given[0], content=f"{prompt}\n\n{given[0].content}"), *given[1:]]
    return [ChatMessage("system", prompt), *given]
