"""A model is one interface: messages and tools in, a response out, at once or as a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .messages import ChatMessage, ChatResponse, ToolDef

ModelCallback: TypeAlias = Callable[[tuple[ChatMessage, ...], tuple[ToolDef, ...]], Awaitable[ChatResponse]]
"""Anything that can be awaited with messages and tool definitions and gives a response."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is to reply; ``None`` leaves a choice to the model.

    Args:
        temperature: 0 for the likeliest reply.
        max_tokens: Tokens of the reply at most.
        stop: Texts at which the reply ends.
        tool_choice: ``auto``, ``none``, ``required``, or the name of a tool.
        seed: Makes sampling repeatable where the model can.
        extra: Further settings in the words of the model's own interface.
        answer: The object that a reply without calls has to be, as JSON text: its name, what it is for and its
            schema. Only for models whose capabilities say so.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    tool_choice: str | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    answer: ToolDef | None = None

    def over(self, defaults: ModelSettings) -> ModelSettings:
        """Return these settings, with those of a model where a choice is left to it.

        Args:
            defaults: What holds where these say nothing.
        """
        return ModelSettings(
            defaults.temperature if self.temperature is None else self.temperature,
            defaults.max_tokens if self.max_tokens is None else self.max_tokens,
            self.stop or defaults.stop,
            defaults.tool_choice if self.tool_choice is None else self.tool_choice,
            defaults.seed if self.seed is None else self.seed,
            {**defaults.extra, **self.extra},
            defaults.answer if self.answer is None else self.answer,
        )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do.

    Args:
        streaming: ``stream`` hands text on before the reply is complete.
        tools: It calls tools by itself; without, a dialect has to.
        images: It takes images in messages.
        grammar: ``settings.extra["grammar"]`` constrains its text.
        tool_choice_none: It takes tools together with the tool choice ``none``, so that a last answer at a limit
            need not leave them out.
        answers: Whether ``settings.answer`` constrains its text: always (``beside_tools``), or only in requests
            without tools (``alone``).
        window: Tokens that a request and its reply can have together; None where that is not known.
    """

    streaming: bool = False
    tools: bool = False
    images: bool = False
    grammar: bool = False
    tool_choice_none: bool = False
    answers: Literal["", "alone", "beside_tools"] = ""
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply while it is made.

    Args:
        text: The piece.
        kind: ``text`` of the reply, or ``reasoning``.
    """

    text: str
    kind: Literal["text", "reasoning"] = "text"


StreamItem: TypeAlias = Delta | ChatResponse
"""What a stream yields: deltas, then as its last item the complete response."""


class ChatModel(ABC):
    """The one interface of a model; calling it is :meth:`complete`, so each is a :data:`ModelCallback`.

    A model holds no conversation: the messages it is given are all it knows.
    """

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the model can do; the same at every call."""

    @abstractmethod
    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        """Return the model's reply.

        Args:
            messages: The transcript, oldest first.
            tools: What the model may call; empty for a reply in text.
            settings: How to reply.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Yield the reply in pieces, then the whole of it as a :class:`ChatResponse`.

        A model that can not stream yields the response alone, which is what this default does.

        Args:
            messages: The transcript, oldest first.
            tools: What the model may call; empty for a reply in text.
            settings: How to reply.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        yield await self.complete(messages, tools, settings=settings)

    async def __call__(self, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> ChatResponse:
        return await self.complete(messages, tools)

    async def aclose(self) -> None:  # noqa: B027 - most models hold nothing
        """Give back what the model holds; it must not be used afterwards."""
