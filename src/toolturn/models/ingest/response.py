"""One reply, mended where what it means is certain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from ...arguments import keep_arguments, mend_arguments, parse_arguments, whole_characters
from ...codec import dumps, plain
from ...errors import InvalidToolArguments, ModelProtocolError
from ...messages import ChatResponse, Repair, ToolCall, ToolDef, Usage
from .calls import calls_of
from .content import mentions_thoughts, said, thought_of, without_thoughts
from .fit import as_text, fit_arguments, may_need_fitting
from .ids import fresh_id, id_of
from .names import KnownTools, cut_name, known_tools
from .reasons import announces_calls, known_reason, reason_of, rules_know
from .tame import tamed
from .usage import usage_of

_MALFORMED = "malformed_function_call"


def ingest(
    response: ChatResponse,
    tools: Sequence[ToolDef],
    seen_ids: Collection[str],
    *,
    strict: bool = False,
) -> ChatResponse:
    """Return a reply in which every field has its declared form and what a model got wrong is mended.

    It never fails for what stands in the reply, and gives the same for the same. A reply that was cut off, filtered
    or refused is handed on with its calls as they are, so that the turn refuses it. Arguments that can not be read
    stay as they are: the tool answers them with an observation.

    Args:
        response: What a model or a callback gave; its fields may hold anything.
        tools: What the model was offered.
        seen_ids: The ids of the calls of the transcript so far.
        strict: Refuse what would have to be mended; forms such as null for no text are not counted.

    Returns:
        The same object where nothing was to be done; else a copy, with one repair for each mend.

    Raises:
        ModelProtocolError: Under ``strict``, with what would have been mended.
    """
    known = known_tools(tools)
    try:
        if _is_good(response, known, seen_ids):
            return response
        reply = _Reply(response, known, seen_ids)
    except Exception:  # noqa: BLE001 - an object of someone's own, at whose every touch anything may happen
        reply = _Reply(tamed(response), known, seen_ids)
    if strict and reply.repairs and reply.usable:
        what = "; ".join(f"{repair.kind}: {repair.detail}" for repair in reply.repairs[:10])
        raise ModelProtocolError(f"the model's reply is not as it has to be: {what}")
    return reply.settled()


def _is_good(response: ChatResponse, known: KnownTools, seen: Collection[str]) -> bool:
    """Whether nothing has to be done, found out at the least cost; in doubt it says no."""
    content = response.content
    calls = response.tool_calls
    reasoning = response.reasoning
    if (
        type(content) is not str
        or response.finish_reason not in ("stop", "tool_calls", None)
        or not (reasoning is None or (type(reasoning) is str and whole_characters(reasoning) is reasoning))
        or type(response.repairs) is not tuple
        or not _is_usage(response.usage)
        or (content and ("<" in content or "[T" in content or "◁" in content))
        or whole_characters(content) is not content
    ):
        return False
    if calls is None:
        return "{" not in content
    if type(calls) is not list or not calls:
        return False
    by_name = known.by_name
    ids: set[str] = set()
    for call in calls:
        if type(call) is not ToolCall:
            return False
        call_id, name, arguments = call.id, call.name, call.arguments
        if (
            type(call_id) is not str
            or type(name) is not str
            or not call_id.isascii()
            or not call_id.strip()
            or call_id in seen
            or call_id in ids
            or name not in by_name
        ):
            return False
        try:
            parsed = parse_arguments(arguments)
        except InvalidToolArguments:
            return False
        if may_need_fitting(parsed) and fit_arguments(parsed, by_name[name].parameters)[0] is not parsed:
            return False
        ids.add(call_id)
        keep_arguments(call, parsed)
    return True


def _is_nothing(call: ToolCall) -> bool:
    """Whether a call is a fragment without id, name and arguments."""
    parts: tuple[Any, ...] = (call.id, call.name, call.arguments)
    return all(part is None or (isinstance(part, str) and not part.strip()) or part == {} for part in parts)


def _json_of(given: Any) -> str:
    """What can not be arguments, as text that the transcript can hold."""
    try:
        return str.__str__(given) if isinstance(given, str) else dumps(plain(given))
    except Exception:  # noqa: BLE001 - a foreign object may fail in any way
        return dumps(f"<{type(given).__name__}>")


def _are_repairs(repairs: Any) -> bool:
    return type(repairs) is tuple and all(isinstance(repair, Repair) for repair in repairs)


def _is_usage(usage: Any) -> bool:
    return usage is None or (
        type(usage) is Usage
        and type(usage.input) is int
        and type(usage.output) is int
        and type(usage.cached) is int
        and type(usage.reasoning) is int
    )


class _Reply:
    """The fields of one reply while they are mended.

    Attributes:
        repairs: What was mended here.
        usable: Whether the turn may run anything of it.
    """

    def __init__(self, response: ChatResponse, known: KnownTools, seen: Collection[str]) -> None:
        self._response = response
        self._known = known
        self._seen = seen
        self.repairs: list[Repair] = []
        self._before = response.repairs if _are_repairs(response.repairs) else ()
        self._usage = response.usage if _is_usage(response.usage) else usage_of(response.usage)
        self._reason = self._take_reason()
        content = said(response.content)
        self._text = self._whole("content", "".join(content.text), response.content)
        thoughts = [thought_of(response.reasoning), *content.thoughts]
        if content.refused and known_reason(self._reason) is None:
            self._note("reason", "a part of the content says that the model refused")
            self._reason = "refusal"
        self._calls: Any = response.tool_calls
        self.usable = known_reason(self._reason) is None
        if self.usable:
            thoughts.append(self._take_thoughts())
            self._take_calls(content.calls)
        self._reasoning = self._settled_reasoning(thoughts)

    def _note(self, kind: str, detail: str) -> None:
        self.repairs.append(Repair(kind, detail))

    def _whole(self, kind: str, text: str, given: Any) -> str:
        whole = whole_characters(text)
        if whole is not text:
            self._note(kind, "half a surrogate pair was replaced by U+FFFD")
            return whole
        return given if type(given) is str else text

    # --- the reason -----------------------------------------------------------------

    def _take_reason(self) -> Any:
        given = self._response.finish_reason
        reason = reason_of(given)
        known = known_reason(reason)
        if known is not None and not rules_know(reason):
            self._note("reason", f"another word for {known} was read as that")
            return known
        return given if reason == given and type(given) is str else reason

    # --- the text -------------------------------------------------------------------

    def _take_thoughts(self) -> str:
        text, thoughts = without_thoughts(self._text)
        if text is not self._text:
            self._note("reasoning", "marked thoughts were taken out of the content")
            self._text = text
        return thoughts

    def _settled_reasoning(self, thoughts: list[str]) -> str | None:
        given = self._response.reasoning
        if given is None and not any(thoughts):
            return None
        joined = "\n".join(thought for thought in thoughts if thought)
        if not joined and type(given) is not str:
            return None
        return self._whole("reasoning", joined, given if joined == given else None)

    # --- the calls ------------------------------------------------------------------

    def _take_calls(self, parts: list[Any]) -> None:
        calls = calls_of(self._response.tool_calls)
        if not calls and parts:
            calls = calls_of(parts)
        lifted = False
        if not calls and any(mark in self._text for mark in "<[{") and not mentions_thoughts(self._text):
            from .leaked import begins_with_markup, cut_calls, lift_calls  # many patterns, which few replies need

            found = lift_calls(self._text, self._known)
            if found is not None:
                lifted = True
                calls, self._text = found
                many = f"{len(calls)} calls were" if len(calls) > 1 else "a call was"
                self._note("leak", f"{many} lifted out of the content")
            elif begins_with_markup(self._text):  # no answer, and no call that may run
                self._note("leak", "the content begins as a call that can not be read or is not declared")
                self._reason, self.usable = _MALFORMED, False
                return
            elif not self._known.by_name and (rest := cut_calls(self._text)) is not None:
                self._note("leak", "a call was cut out of the content: no tools were offered")
                self._text = rest
        if not calls:
            self._calls = self._given_or(calls)
            self._settle_announcement()
            return
        if not all(isinstance(call, ToolCall) for call in calls):
            self._calls = self._given_or(calls)  # the rules refuse it
            return
        kept = [call for call in calls if not _is_nothing(call)]
        if len(kept) != len(calls):
            self._note("call", "an empty call was dropped")
        names = [self._name(place, call.name) for place, call in enumerate(kept, 1)]
        if None in names:
            self._note("reason", "a call has no name: the reply is malformed")
            self._reason, self.usable, self._calls = _MALFORMED, False, self._given_or(kept)
            return
        self._calls = self._given_or(self._mended(kept, names, lifted=lifted))
        if not kept:
            self._settle_announcement()

    def _settle_announcement(self) -> None:
        if self._reason != "tool_calls" and announces_calls(self._reason):
            self._reason = "tool_calls"  # announced but absent, in the rules' own word

    def _name(self, place: int, given: Any) -> str | None:
        if not isinstance(given, str):
            return None
        name = given if type(given) is str else str.__str__(given)
        found = self._known.resolve(name)
        if found is None:
            found = whole_characters(cut_name(name))
            if not found:
                return None
        if found == name:
            return name
        what = "read as that of a declared tool" if found in self._known.by_name else "cleaned"
        self._note("name", f"call {place}: the name was {what}")
        return found

    def _mended(self, calls: list[ToolCall], names: Sequence[str | None], *, lifted: bool) -> list[ToolCall]:
        mended: list[ToolCall] = []
        taken: set[str] = set()
        ids = [id_of(call.id) for call in calls]
        good = {call_id for call_id, _ in ids if call_id is not None}
        for place, (call, name, (call_id, fault)) in enumerate(zip(calls, names, ids, strict=True), 1):
            assert name is not None
            arguments, parsed = self._arguments(place, call, name)
            if call_id is not None and (call_id in taken or call_id in self._seen):
                fault = "its id was that of another call"
                call_id = None
            if call_id is None:
                call_id = fresh_id(name, arguments, place, good, taken, self._seen)
            if fault and not (lifted and call.id is None):
                self._note("id", f"call {place}: {fault}")
            taken.add(call_id)
            if call_id is not call.id or name is not call.name or arguments is not call.arguments:
                call = replace(call, id=call_id, name=name, arguments=arguments)
            if parsed is not None:
                keep_arguments(call, parsed)
            mended.append(call)
        return mended

    def _given_or(self, calls: list[Any] | None) -> list[Any] | None:
        """The list that was given where it holds the same, since that list stays the one that is read."""
        given = self._response.tool_calls
        if calls is not None and type(given) is list and len(given) == len(calls) and all(map(is_, given, calls)):
            return given
        return calls

    def _arguments(self, place: int, call: ToolCall, name: str) -> tuple[str, dict[str, Any] | None]:
        given: Any = call.arguments
        try:
            parsed, repairs = mend_arguments(given)
        except InvalidToolArguments:
            return (given if type(given) is str else _json_of(given)), None
        for repair in repairs:
            self._note(repair.kind, f"call {place}: {repair.detail}")
        fitted: tuple[str, ...] = ()
        if may_need_fitting(parsed):
            parsed, fitted = fit_arguments(parsed, self._known.parameters(name))
        for note in fitted:
            self._note("arguments", f"call {place}: {note}")
        if repairs or fitted or type(given) is not str:
            return as_text(parsed), parsed
        return given, parsed

    # --- the whole ------------------------------------------------------------------

    def settled(self) -> ChatResponse:
        """Return the reply: the given one where nothing is different."""
        given = self._response
        fields: dict[str, Any] = {
            "content": self._text,
            "reasoning": self._reasoning,
            "tool_calls": self._calls,
            "finish_reason": self._reason,
            "usage": self._usage,
            "repairs": (*self._before, *self.repairs) if self.repairs else self._before,
        }
        changed = {key: value for key, value in fields.items() if value is not getattr(given, key)}
        return replace(given, **changed) if changed else given
