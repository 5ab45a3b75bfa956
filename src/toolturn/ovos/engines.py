"""The engines: tools called natively where the brain can, by text where it can not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias, cast

from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole
from ovos_utils.log import LOG

from ..background import background
from ..dialects.choose import NativeOrText, text_tools
from ..dialects.react import ReActTools
from ..errors import ToolLoopCancelledError
from ..messages import ChatMessage, ChatResponse, ToolCall, ToolDef
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from ..personas.keys import REACT
from ..results import Approval, ToolLoopResult
from ..splitter import SentenceSplitter
from ..tools import ToolContext, ToolSet, TurnContext
from ..turn import Turn
from .brain import ToolturnBrain
from .brain_model import BrainModel, takes_tools
from .bridge import iterate
from .causes import cause_text
from .engine import AgenticLoopEngine
from .final_answers import FinalAnswers
from .kept_calls import KeptCalls
from .messages import agent_call, chat_messages
from .overridden import relayed_tools
from .running import RunningTurns
from .turns import EngineTurn, Request, context_of, with_prompt

Decision: TypeAlias = Approval | bool | Awaitable[Approval | bool]

_LASTING = ("demoted", "stop")  # repairs that say what the model is asked for from then on

NO_BRAIN = "Error: no brain configured."


class ReActLoopEngine(AgenticLoopEngine):
    """Calls tools by text, whatever the brain can; for brains that only write.

    Args:
        config: Its section of a persona.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        ReActTools(BrainModel(None), **self._react("en"))  # what its section says must be of use
        self._running = RunningTurns()
        self._kept_calls = KeptCalls()
        self._dialects: dict[tuple[str, str], tuple[ChatModel, dict[str, Any], ChatModel]] = {}

    def continue_chat(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> AgentMessage:
        """Run a turn and return the answer, which has no calls but of tools that the caller gave.

        Args:
            messages: The conversation, oldest first; it is not changed.
            session_id: Whose it is.
            lang: A BCP 47 tag.
            units: ``metric`` or ``imperial``.
            tools: Ignored unless the section says ``supports_tools``: then further tools, whose calls are given back.

        Raises:
            NotLoadable: The brain can not be loaded.
            ToolLoopError: There is no answer, or the turn was stopped.
            Exception: What the brain raised.
        """
        begun = self._begin(messages, session_id, lang, units, tools if self.supports_tools else None)
        if begun is None:
            return AgentMessage(MessageRole.ASSISTANT, NO_BRAIN)
        with self._runs(begun, session_id):
            text, calls = background.run(begun.answer())
        return AgentMessage(MessageRole.ASSISTANT, text, tool_calls=list(map(agent_call, calls)) or None)

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
        if self._answers_otherwise():
            yield self.continue_chat(messages, session_id, lang, units).content
            return
        begun = self._begin(messages, session_id, lang, units)
        if begun is None:
            yield NO_BRAIN
            return
        with self._runs(begun, session_id):
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
        if self._answers_otherwise():
            splitter = SentenceSplitter(lang)
            answer = self.continue_chat(messages, session_id, lang, units).content
            yield from splitter.feed(answer) + splitter.flush()
            return
        begun = self._begin(messages, session_id, lang, units)
        if begun is None:
            yield NO_BRAIN
            return
        said: list[str] = []
        with self._runs(begun, session_id):
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

    def approve(self, call: ToolCall, arguments: Any, context: ToolContext) -> Decision:
        """Decide on a call of a tool that wants somebody's approval; to be overridden by who can ask.

        Args:
            call: The call as the model made it.
            arguments: Its arguments, as they would run.
            context: Whose turn it is.
        """
        return Approval(False, "it needs somebody's approval, and nobody can be asked here")

    def turn_ended(self, session_id: str, turn: Turn) -> None:
        """Do something with a turn that has ended; to be overridden.

        Args:
            session_id: Whose it was.
            turn: Its transcript, its calls and how it ended.
        """

    def close(self) -> None:
        self.stop()
        super().close()

    shutdown = close

    # --- how -------------------------------------------------------------------------

    def _answers_otherwise(self) -> bool:
        """Whether a subclass has an answer of its own: then that is what is spoken."""
        return type(self).continue_chat is not ReActLoopEngine.continue_chat

    @contextmanager
    def _runs(self, begun: EngineTurn, session: str) -> Iterator[None]:
        settings = self.settings
        try:
            with self._running.of(session, begun.turn, alone=settings.alone):
                yield
        finally:
            end = begun.turn.exit
            for repair in begun.turn.repairs:
                if repair.kind in _LASTING:
                    self._warn(repair.detail)
                else:
                    LOG.debug(f"mended in {repair.op}: {repair.kind}: {repair.detail}")
            if isinstance(end, ToolLoopResult):
                self._kept_calls.keep(session, end.content, begun.calls, settings.kept_turns)
            if begun.turn.phase == "ended":
                try:
                    self.turn_ended(session, begun.turn)
                except Exception as exc:  # noqa: BLE001 - the answer is there all the same
                    self._warn(f"turn_ended failed: {cause_text(exc)}")

    def _begin(
        self, messages: Iterable[Any], session: str, lang: str | None, units: str | None, given: Any = None
    ) -> EngineTurn | None:
        brain = self.brain
        if brain is None:
            return None
        self._running.listen(self.bus)
        settings = self.settings
        given_messages = list(messages)
        known = chat_messages(given_messages)
        history = with_prompt(settings.system_prompt, self._kept_calls.put_back(session, known))
        tools = self.tools if settings.iterations else ToolSet()
        relayed = relayed_tools(given, tools)
        reply: ModelSettings | None = None
        if isinstance(brain, ToolturnBrain) and brain.is_plain:
            model: ChatModel = brain.model
            reply = brain.settings
            history = with_prompt(brain.system_prompt, history)
        else:
            attempts = 1 if hasattr(brain, "toolboxes") else settings.attempts  # its tools would run again
            model = self._brain_model(
                brain,
                tools,
                relayed,
                given=given_messages,
                known=known,
                session=session,
                language=lang,
                units=units,
                attempts=attempts,
            )
        context = self._context(session, lang, units)
        tools = tools + relayed if relayed else tools
        model = self._chat_model(model, tools, context.language or "en")
        if not settings.iterations:
            model = _WithoutCalls(model)
        names = frozenset(relayed.names)
        return EngineTurn(Request(history, tools, model, settings, reply, context, self.approve, names))

    def _context(self, session: str, lang: str | None, units: str | None) -> TurnContext:
        return context_of(session, lang or self.lang, units)

    def _brain_model(self, brain: Any, tools: ToolSet, relayed: ToolSet, **known: Any) -> BrainModel:
        return BrainModel(brain, None, **known)

    def _chat_model(self, model: ChatModel, tools: ToolSet, language: str) -> ChatModel:
        """The model as one that calls tools: here by text, whatever it can."""
        return self._kept("react", ReActTools, model, language) if tools else FinalAnswers(model, language)

    def _react(self, language: str) -> dict[str, Any]:
        # other keys there were warned of
        return {
            "language": language,
            **{key: value for key, value in self.settings.react.items() if key in REACT.known},
        }

    def _kept(self, what: str, make: Any, model: ChatModel, language: str) -> ChatModel:
        """A dialect around a model; kept where the model is, since it remembers what the model's server refuses."""
        options = self._react(language)
        if isinstance(model, BrainModel):  # it lives for one turn
            return cast(ChatModel, make(model, **options))
        with self._lock:
            known = self._dialects.get((what, language))
            if known is None or known[0] is not model or known[1] != options:
                self._dialects[what, language] = known = (model, options, make(model, **options))
            return known[2]


class NativeToolCallEngine(ReActLoopEngine):
    """Has the brain call tools by itself where it can, and by text where it can not.

    Args:
        config: Its section of a persona.
    """

    _native: tuple[Any, bool] | None = None

    def _brain_model(self, brain: Any, tools: ToolSet, relayed: ToolSet, **known: Any) -> BrainModel:
        native = self._native
        if native is None or native[0] is not brain:
            self._native = native = (brain, takes_tools(brain))
        if not native[1] or not self.settings.iterations:
            return BrainModel(brain, None, **known)
        offered = self._offered(tools)
        return BrainModel(brain, offered + [each.to_openai() for each in relayed.definitions], **known)

    def _chat_model(self, model: ChatModel, tools: ToolSet, language: str) -> ChatModel:
        if isinstance(model, BrainModel):
            native = self._native is not None and self._native[1]
            return model if native else super()._chat_model(model, tools, language)
        if not tools:
            return model
        # a server that refuses tools is asked by text from then on
        return self._kept("native", NativeOrText if model.capabilities.tools else text_tools, model, language)


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
