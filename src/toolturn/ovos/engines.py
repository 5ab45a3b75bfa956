"""The engines: tools called natively where the brain can, by text where it can not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

from ..background import background
from ..errors import ToolLoopCancelledError
from ..messages import ChatMessage, ChatResponse, ToolDef
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from ..tools import ToolSet, TurnContext
from .brain import ToolturnBrain
from .brain_model import BrainModel, takes_tools
from .bridge import iterate
from .engine import AgenticLoopEngine
from .messages import chat_messages
from .running import RunningTurns
from .turns import EngineTurn, context_of, with_prompt

NO_BRAIN = "Error: no brain configured."


class ReActLoopEngine(AgenticLoopEngine):
    """Calls tools by text, whatever the brain can; for brains that only write.

    Args:
        config: Its section of a persona.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self._running = RunningTurns()

    def continue_chat(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> AgentMessage:
        """Run a turn and return the answer, which never has calls.

        Args:
            messages: The conversation, oldest first; it is not changed.
            session_id: Whose it is.
            lang: A BCP 47 tag.
            units: ``metric`` or ``imperial``.
            tools: Ignored: the tools are those of the toolboxes.

        Raises:
            NotLoadable: The brain can not be loaded.
            ToolLoopError: There is no answer, or the turn was stopped.
            Exception: What the brain raised.
        """
        begun = self._begin(messages, session_id, lang, units)
        if begun is None:
            return AgentMessage(MessageRole.ASSISTANT, NO_BRAIN)
        with self._running.of(session_id, begun.turn, alone=self.settings.alone):
            return AgentMessage(MessageRole.ASSISTANT, background.run(begun.answer()))

    def stream_tokens(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
    ) -> Iterator[str]:
        """Yield the answer in pieces, as they are made; closing the iterator ends the turn.

        Args:
            messages: As in :meth:`continue_chat`, like all that follow.
            session_id: Whose conversation it is.
            lang: A BCP 47 tag.
            units: ``metric`` or ``imperial``.
        """
        begun = self._begin(messages, session_id, lang, units)
        if begun is None:
            yield NO_BRAIN
            return
        with self._running.of(session_id, begun.turn, alone=self.settings.alone):
            yield from iterate(begun.tokens)

    def stream_sentences(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
    ) -> Iterator[str]:
        """Yield the answer sentence by sentence, each as soon as its end is proven; closing the iterator ends the turn.

        While nothing comes after a first sentence, such as while tools run, it yields empty text now and then, so that
        who was told to stop can do so.

        Args:
            messages: As in :meth:`continue_chat`, like all that follow.
            session_id: Whose conversation it is.
            lang: A BCP 47 tag.
            units: ``metric`` or ``imperial``.
        """
        begun = self._begin(messages, session_id, lang, units)
        if begun is None:
            yield NO_BRAIN
            return
        said: list[str] = []
        with self._running.of(session_id, begun.turn, alone=self.settings.alone):
            try:
                for sentence in iterate(begun.sentences, idle=lambda: "" if said else None):
                    # before it, an empty text would count as an answer and keep other handlers from being asked
                    said.append(sentence)
                    yield sentence
            except ToolLoopCancelledError:
                yield ""  # stopped: no other handler is to answer instead

    def stop(self, session_id: str | None = None) -> bool:
        """End the turns of a session; what runs is cancelled.

        Args:
            session_id: The session; all of them where None.

        Returns:
            Whether there was one.
        """
        return self._running.stop(session_id)

    def close(self) -> None:
        self.stop()
        super().close()

    shutdown = close

    # --- how -------------------------------------------------------------------------

    def _begin(
        self, messages: Sequence[AgentMessage], session: str, lang: str | None, units: str | None
    ) -> EngineTurn | None:
        brain = self.brain
        if brain is None:
            return None
        self._running.listen(self.bus)
        settings = self.settings
        known = chat_messages(messages)
        history = with_prompt(known, settings.system_prompt)
        tools = self.tools if settings.iterations else ToolSet()
        reply: ModelSettings | None = None
        if isinstance(brain, ToolturnBrain) and brain.is_plain:
            model: ChatModel = brain.model
            reply = brain.settings
            history = with_prompt(history, brain.system_prompt)
        else:
            attempts = 1 if hasattr(brain, "toolboxes") else settings.attempts  # its tools would run again
            model = self._brain_model(
                brain,
                tools,
                given=list(messages),
                known=known,
                session=session,
                language=lang,
                units=units,
                attempts=attempts,
            )
        model = self._chat_model(model, tools)
        if not settings.iterations:
            model = _WithoutCalls(model)
        return EngineTurn(history, tools, model, settings, reply, self._context(session, lang, units))

    def _context(self, session: str, lang: str | None, units: str | None) -> TurnContext:
        return context_of(session, lang or self.lang, units)

    def _brain_model(self, brain: Any, tools: ToolSet, **known: Any) -> BrainModel:
        return BrainModel(brain, None, **known)

    def _chat_model(self, model: ChatModel, tools: ToolSet) -> ChatModel:
        """The model that calls tools: here by text, whatever it can."""
        return self._by_text(model) if tools else model

    def _by_text(self, model: ChatModel) -> ChatModel:
        from ..dialects.react import ReActTools

        made: ChatModel = ReActTools(model, **self.settings.react)
        return made


class NativeToolCallEngine(ReActLoopEngine):
    """Has the brain call tools by itself where it can, and by text where it can not.

    Args:
        config: Its section of a persona.
    """

    def _brain_model(self, brain: Any, tools: ToolSet, **known: Any) -> BrainModel:
        native = takes_tools(brain) and self.settings.iterations > 0
        return BrainModel(brain, self._offered(tools) if native else None, **known)

    def _chat_model(self, model: ChatModel, tools: ToolSet) -> ChatModel:
        return model if model.capabilities.tools or not tools else self._by_text(model)


class ReActLoopEnginePlugin(ReActLoopEngine):
    """The entry point ``toolturn-react-loop``."""


class NativeToolCallEnginePlugin(NativeToolCallEngine):
    """The entry points ``ovos-native-toolcall-loop`` and ``toolturn-native-toolcall-loop``."""


class _WithoutCalls(ChatModel):
    """A model whose calls are dropped: it is asked once, for text."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._model.capabilities, tools=False, tool_choice_none=False)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        return _text_of(await self._model.complete(messages, (), settings=settings))

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        async for item in self._model.stream(messages, (), settings=settings):
            yield item if isinstance(item, Delta) else _text_of(item)


def _text_of(response: ChatResponse) -> ChatResponse:
    return replace(response, tool_calls=None, finish_reason=None) if response.tool_calls else response
