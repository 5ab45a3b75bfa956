"""Any model of toolturn as a brain of OpenVoiceOS."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Literal

from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine
from ovos_utils.log import LOG

from ..background import background
from ..errors import ModelProtocolError, ModelUnavailableError
from ..messages import ChatMessage, ChatResponse
from ..model import ChatModel, Delta, ModelSettings
from ..models.ingest import ingest, seen_ids
from ..models.ingest.reasons import known_reason
from ..naming import EMBEDDED, any_model
from ..personas.brains import Brained, brain_of
from ..personas.checking import Finding
from ..personas.keys import OWN_BRAIN
from ..splitter import SentenceSplitter
from ..transcript import repair
from .bridge import iterate
from .messages import chat_messages, message_of
from .overridden import definitions_of
from .turns import with_prompt


class ToolturnBrain(ChatEngine):  # type: ignore[misc]
    """A model of toolturn as a ChatEngine, which calls tools and streams.

    The engines of toolturn ask the model itself, so that their turns stream too.

    Args:
        config: Its section: ``model`` (such as ``local``, ``ollama:qwen3`` or ``http://127.0.0.1:8080/v1#name``),
            ``key``, ``system_prompt``, ``temperature``, ``max_tokens``, ``stop``, ``seed``, ``extra``.
        model: The model itself, instead of its name.

    Raises:
        ValueError: A value of the section is of the wrong kind or out of its range.
    """

    supports_tools = True

    def __init__(self, config: dict[str, Any] | None = None, model: ChatModel | None = None) -> None:
        super().__init__(config)
        self._lock = threading.Lock()
        self._model = model
        teller = _Teller()
        known = brain_of(OWN_BRAIN, {"model": EMBEDDED, **self.config}, "$", teller)
        problems = [finding for finding in teller.found if finding.level == "problem"]
        # a name that can not be used is said when the model is wanted: who builds all handlers at once goes on
        if wrong := [str(each) for each in problems if each.place != "$.model"]:
            raise ValueError(f"{OWN_BRAIN}: {'; '.join(wrong)}")
        for finding in teller.found:
            LOG.warning(f"{OWN_BRAIN}: {finding}")
        self._known = known
        self._problem = str(problems[0]) if problems else ""

    @property
    def system_prompt(self) -> str:
        """A system message before each conversation."""
        return "" if self._known is None else (self._known.system_prompt or "").strip()

    @property
    def settings(self) -> ModelSettings:
        """How the model replies."""
        return ModelSettings() if self._known is None else self._known.settings

    @property
    def model(self) -> ChatModel:
        """The model; made at first use, once however many threads ask.

        Raises:
            ModelError: There is none of its name, or its key is missing.
            ImportError: What it needs is not installed; the text says how to install it.
        """
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = self._made()
        return self._model

    def _made(self) -> ChatModel:
        known: Brained | None = self._known
        if known is None:
            raise ModelUnavailableError(f"{OWN_BRAIN}: {self._problem}")
        return any_model(known.model, **known.options)

    @property
    def is_plain(self) -> bool:
        """Whether the model itself may be asked: no subclass has changed what happens before and after."""
        return type(self).continue_chat is ToolturnBrain.continue_chat

    def continue_chat(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> AgentMessage:
        """Return the model's reply, with the calls it asks for.

        Args:
            messages: The conversation, oldest first; it is not changed.
            session_id: Not used.
            lang: Not used.
            units: Not used.
            tools: ToolBoxes, specifications in OpenAI's form, or a list of both.

        Raises:
            ModelError: The model could not be asked, or its reply was cut off within a call.
        """
        history, definitions = self._history(messages), definitions_of(tools)
        reply = background.run(self.model.complete(history, definitions, settings=self.settings))
        return message_of(_usable(ingest(reply, definitions, seen_ids(history))))

    def stream_tokens(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
    ) -> Iterator[str]:
        """Yield the reply in pieces, as the model makes them.

        Args:
            messages: The conversation, oldest first; it is not changed.
            session_id: Not used.
            lang: Not used.
            units: Not used.
        """
        history, model, settings = self._history(messages), self.model, self.settings
        yield from iterate(lambda: _texts(model, history, settings))

    def stream_sentences(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
    ) -> Iterator[str]:
        """Yield the reply sentence by sentence, each as soon as its end is proven.

        Args:
            messages: The conversation, oldest first; it is not changed.
            session_id: Not used.
            lang: A BCP 47 tag.
            units: Not used.
        """
        splitter = SentenceSplitter(lang)
        for text in self.stream_tokens(messages, session_id, lang, units):
            yield from splitter.feed(text)
        yield from splitter.flush()

    def close(self) -> None:
        """Give back what the model holds."""
        with self._lock:
            model, self._model = self._model, None
        if model is not None:
            background.run(model.aclose())

    shutdown = close

    def _history(self, messages: list[AgentMessage]) -> tuple[ChatMessage, ...]:
        return tuple(with_prompt(self.system_prompt, list(repair(chat_messages(messages)).messages)))


async def _texts(model: ChatModel, history: tuple[ChatMessage, ...], settings: ModelSettings) -> AsyncGenerator[str]:
    if not model.capabilities.streaming:
        yield ingest(await model.complete(history, settings=settings), (), ()).content
        return
    said = False
    async for item in model.stream(history, settings=settings):
        if isinstance(item, Delta):
            if item.kind == "text" and item.text:
                said = True
                yield item.text
        elif not said and item.content:
            yield item.content


def _usable(reply: ChatResponse) -> ChatResponse:
    """A reply whose calls may be run: OpenVoiceOS's message has no place for why it ended."""
    if reply.tool_calls and (reason := known_reason(reply.finish_reason)) is not None:
        raise ModelProtocolError(f"the model's reply ended ({reason}) before its calls were whole; none was handed on")
    return reply


class _Teller:
    """Gathers what is wrong with the section."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.environ: Mapping[str, str] = os.environ

    def tell(self, level: Literal["problem", "warning", "note"], place: str, text: str) -> None:
        self.found.append(Finding(level, place, text))
