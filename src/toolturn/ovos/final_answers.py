"""A brain that marks its answer although no tools are offered: the marks are not for the user."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from ..dialects.react_keys import keys_of
from ..dialects.react_text import Reply, ReplyReader
from ..messages import ChatMessage, ChatResponse, ToolDef, text_of
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from ..models.ingest.names import KnownTools

_MARKS = ("final", "thought", "action")
_CALLED = re.compile(r"\s*[\w.-]{1,100}\([{\"')]")


class FinalAnswers(ChatModel):
    """Gives the answer alone of a reply that begins with ``FINAL_ANSWER:`` or a thought; other text is left as it is.

    A call with its input is no answer at all.

    Args:
        model: A model that is asked for text.
        language: Of the key words that are read beside the English ones.
    """

    def __init__(self, model: ChatModel, language: str) -> None:
        self._model = model
        self._keys = keys_of(language)

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        response = await self._model.complete(messages, tools, settings=settings)
        text = text_of(response.content)
        if self._begins(text, whole=True):
            reader = self._reader()
            reader.feed(text)
            response = self._answer(response, reader.close()[0])
        return response

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        head = ""
        begins: bool | None = None
        reader = self._reader()
        async with aclosing(self._model.stream(messages, tools, settings=settings)) as stream:  # type: ignore[type-var]
            async for item in stream:
                if isinstance(item, Delta) and item.kind == "text" and begins is not False:
                    if begins is None:
                        head += item.text
                        begins = self._begins(head)
                        item = replace(item, text=head)
                    if begins:
                        for delta in reader.feed(item.text):
                            yield delta
                    elif begins is False:
                        yield item
                elif isinstance(item, ChatResponse) and begins is not False:
                    text = text_of(item.content)
                    if begins is None and not self._begins(text, whole=True):
                        if head:
                            yield Delta(head)
                        yield item
                        return
                    reader.feed(text if begins is None else "")
                    reply, rest = reader.close()
                    for delta in rest:
                        yield delta
                    yield self._answer(item, reply)
                else:
                    yield item

    async def aclose(self) -> None:
        await self._model.aclose()

    def _reader(self) -> ReplyReader:
        return ReplyReader(KnownTools(()), keys=self._keys, hold=0, calls=False)

    def _begins(self, text: str, *, whole: bool = False) -> bool | None:
        """Whether a reply begins with a mark; None as long as that is not known."""
        line, ended, _ = text.lstrip().partition("\n")
        key = self._keys.key(line)
        if key is not None and (key.kind in _MARKS or ended or whole):
            return key.kind in _MARKS
        if whole or ended:
            return False
        return None if not line or self._keys.may_begin(line) else False

    def _answer(self, response: ChatResponse, reply: Reply) -> ChatResponse:
        if reply.text:
            return replace(response, content=reply.text)
        keys = [key for key in map(self._keys.key, text_of(response.content).splitlines()) if key is not None]
        kinds = [key.kind for key in keys]
        called = any(key.kind == "action" and _CALLED.match(key.rest) for key in keys)
        if called or "input" in kinds or ("action" in kinds and kinds[0] == "thought"):
            return replace(response, content="")
        return response
