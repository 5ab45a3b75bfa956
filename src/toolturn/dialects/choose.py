"""Which way a model calls tools: by itself, held to a grammar, or by writing ReAct text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from ..errors import ModelAuthenticationError, ModelContextError, ModelError, ModelRateLimitError, ModelTimeoutError
from ..messages import ChatMessage, ChatResponse, Repair, ToolDef
from ..model import Capabilities, ChatModel, ModelSettings, StreamItem

# What servers say of a model, or of themselves, where tools are not taken:
# https://github.com/ollama/ollama/issues/11131, https://github.com/defilantech/LLMKube/issues/126,
# https://github.com/ggml-org/llama.cpp/issues/10920, https://github.com/vllm-project/vllm/issues/9986,
# https://github.com/pydantic/pydantic-ai/issues/2896
_TOOLS = r"(?:tools?\b|tool[ _-]?(?:use|calls?|calling)|function[ _-]?call(?:s|ing)?|functions?\b)"
_REFUSED = re.compile(
    rf"(?:does(?: not|n't)|do(?: not|n't)|not|never) (?:currently |yet )?support(?:ed|s)?\b[^.\n]{{0,30}}?\b{_TOOLS}"
    rf"|\b{_TOOLS}\b[`'\"]?(?: parameter| param| use)? (?:is|are) (?:currently |yet )?(?:not|un)[ -]?"
    r"(?:support|enabl|available|allowed|permitted)\w*"
    r"|support(?:s)? (?:for )?tool use|no endpoints found that support tool"
    r"|tools? param(?:eter)? requires|--enable-auto-tool-choice|enable-auto-tool-choice"
    r"|(?:unsupported|unknown|unrecognized|unexpected)[ a-z]{0,20}"
    r"(?:param(?:eter)?|argument|field|key|property)?(?:s|\(s\))?[ a-z]{0,20}[:=]?\s*[`'\"]?(?:tools|functions)\b"
    rf"|[`'\"](?:tools|functions)[`'\"] (?:is|are) (?:not|un)|{_TOOLS} (?:is|are)? ?(?:not|un)[ -]?supported"
    rf"|does not have (?:native )?{_TOOLS}",
    re.IGNORECASE,
)
_ABOUT_A_PART = re.compile(
    r"tool_choice|parallel_tool_calls|parallel|strict|schema|tools?\[\d|tools\.\d|tool[ _](?:type|name|messages?|role)"
    r"|role ['\"`]?tool|too many tools",
    re.IGNORECASE,
)
_NEVER = (ModelAuthenticationError, ModelContextError, ModelRateLimitError, ModelTimeoutError)


def text_tools(model: ChatModel, *, language: str = "en", **options: Any) -> ChatModel:
    """Return the model as one that calls tools.

    Args:
        model: Any model.
        language: Of the prompt where it is one of text.
        options: Further arguments of :class:`~toolturn.dialects.react.ReActTools`.

    Returns:
        The model itself where it calls tools; held to a grammar where it takes one; else by ReAct text.

    Raises:
        ValueError: As of ReActTools.
    """
    able = model.capabilities
    if able.tools:
        return model
    if able.grammar:
        from .grammar import GrammarTools

        return GrammarTools(model)
    from .react import ReActTools

    return ReActTools(model, language=language, **options)


def refuses_tools(error: BaseException) -> bool:
    """Return whether a model's refusal says that it takes no tools at all.

    Args:
        error: What it raised; a refusal of one tool, of a schema or of the choice of a tool is another matter.
    """
    if not isinstance(error, ModelError) or isinstance(error, _NEVER):
        return False
    said = str(error)
    if error.partial or (error.status is not None and not 400 <= error.status < 502):
        return False
    found = _REFUSED.search(said)
    return found is not None and (
        "enable-auto-tool-choice" in said or _ABOUT_A_PART.search(said.replace("--tool-call-parser", "")) is None
    )


class NativeOrText(ChatModel):
    """Offers tools natively, and by text from the moment on that the model's server refuses them.

    The refusal is remembered for the life of this object, whichever task or thread met it; every other error is
    passed on. The first reply by text says so in its repairs.

    Args:
        model: A model that should call tools.
        language: Of the prompt where tools are offered by text.
        options: Further arguments of :class:`~toolturn.dialects.react.ReActTools`.

    Raises:
        ValueError: As of ReActTools.
    """

    def __init__(self, model: ChatModel, *, language: str = "en", **options: Any) -> None:
        from .react import ReActTools

        self._native = model
        self._text = ReActTools(model, language=language, **options)
        self._demoted = not model.capabilities.tools

    @property
    def demoted(self) -> bool:
        """Whether tools are offered by text."""
        return self._demoted

    @property
    def capabilities(self) -> Capabilities:
        """Those of the model, and tools."""
        return replace(self._native.capabilities, tools=True)

    def __repr__(self) -> str:
        return f"<NativeOrText {self._native!r}>"

    async def load(self) -> None:
        """Load the model now instead of at the first request, where it can be.

        Raises:
            ModelError: It can not be loaded.
        """
        await self._text.load()

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        """Return an answer or calls.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        repair: Repair | None = None
        if not self._demoted:
            try:
                return await self._native.complete(messages, tools, settings=settings)
            except ModelError as error:
                repair = self._demote(error, messages, tools)
        response = await self._text.complete(messages, tools, settings=settings)
        return response if repair is None else replace(response, repairs=(*response.repairs, repair))

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Yield the reply in pieces, then the whole.

        Raises:
            ModelError: The model could not be asked or did not reply.
        """
        repair: Repair | None = None
        if not self._demoted:
            told = False
            try:
                native: Any = self._native.stream(messages, tools, settings=settings)
                async with aclosing(native):
                    async for item in native:
                        told = True
                        yield item
                return
            except ModelError as error:
                if told:
                    raise
                repair = self._demote(error, messages, tools)
        text: Any = self._text.stream(messages, tools, settings=settings)
        async with aclosing(text):
            async for item in text:
                if repair is not None and isinstance(item, ChatResponse):
                    item = replace(item, repairs=(*item.repairs, repair))
                yield item

    async def aclose(self) -> None:
        """Close the model below."""
        await self._native.aclose()

    def _demote(self, error: ModelError, messages: tuple[ChatMessage, ...], tools: tuple[ToolDef, ...]) -> Repair:
        """Offer tools by text from now on, if it is tools that are refused."""
        if not refuses_tools(error):
            raise error
        if not tools and not any(message.tool_calls or message.role == "tool" for message in messages):
            raise error
        self._demoted = True
        return Repair("demoted", f"tools are offered by text, since the model does not take them: {error}"[:300])
