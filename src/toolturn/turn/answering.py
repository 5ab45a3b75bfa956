"""Turns whose answer has a form: a validated object, or what one direct-return tool gave.

Whether an answer fits is found out by who performs the call, since only that knows the type; here is what follows of
it. A reply that does not fit is shown to the model once more with what is wrong, as long as there are iterations, and
does not enter the transcript.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import ToolLoopMalformedResponseError
from ..messages import ChatMessage, ChatResponse, text_of
from ..results import ToolCallRecord
from .limiting import refusal_at
from .rules import MIXED_DIRECT, Refusal
from .state import State


def refusal_of_answer(
    turn: State, response: ChatResponse, refusal: Refusal | None, *, fits: bool, unfit: str
) -> Refusal | None:
    """Return why a reply is refused in a turn whose answer has a form, or None.

    Args:
        turn: The turn.
        response: The reply.
        refusal: Why it would be refused in any turn.
        fits: Whether an object was read from it.
        unfit: What is wrong with the object; empty where nothing is, or where none was looked for.
    """
    if refusal is MIXED_DIRECT:
        # in any other turn the end: here the model is on its way to what is wanted, and only too early
        nudge = f"Call {turn.required} alone, when you have the results of all other tools; none of your calls was run."
        return replace(refusal, nudge=nudge)
    if refusal is not None and refusal.nudge:
        # what is wrong stands in the first sentence; what to do instead is not to answer in plain text
        wrong = refusal.nudge.partition(". ")[0]
        how = f"; to finish, call {turn.required}" if turn.required else ", or answer with the whole object"
        return replace(refusal, nudge=f"{wrong}. Call a tool with valid JSON arguments{how}.")
    if refusal is not None or response.tool_calls or fits:
        return refusal
    if turn.required:
        nudge = f"Do not answer in plain text: call the tool {turn.required} to finish."
        if unfit:
            nudge = f"{unfit}. {nudge}"
        return Refusal(ToolLoopMalformedResponseError, f"the model did not call {turn.required}", nudge=nudge)
    if unfit:
        nudge = f"Your answer does not have the form that was asked for: {unfit}. Answer again with the whole object."
        return Refusal(ToolLoopMalformedResponseError, f"the answer does not fit: {unfit}", nudge=nudge)
    return None


def ask_again(turn: State, refusal: Refusal, response: ChatResponse) -> Refusal | None:
    """Have the turn ask once more what was refused, or return the refusal that it ends with.

    Args:
        turn: The turn.
        refusal: Why the reply was refused; it has a nudge.
        response: The reply.
    """
    formed = bool(turn.required) or turn.typed
    if not formed and not turn.nudges:
        return refusal
    if turn.iterations >= turn.limits.iterations:
        if not formed:
            return refusal
        limit = refusal_at("iterations", turn.limits)
        return replace(limit, text=f"{limit.text}: {refusal.text}")
    if not formed:
        turn.nudges -= 1
    turn._nudge = refusal.nudge
    turn._draft = text_of(response.content) if formed else ""
    return None


def asked_again(turn: State) -> tuple[ChatMessage, ...]:
    """Return the messages, in front of which the transcript stands, that ask a model once more."""
    nudge = ChatMessage("user", turn._nudge)
    return (ChatMessage("assistant", turn._draft), nudge) if turn._draft.strip() else (nudge,)


def must_call(turn: State) -> str:
    """Return the tool that the next reply has to call, because no other can end the turn in it any more; or nothing."""
    if turn.limits.iterations - turn.iterations > 1 or (turn.typed and turn.on_limit == "answer"):
        return ""
    return turn.required


def not_the_end(turn: State, record: ToolCallRecord) -> ToolCallRecord:
    """Return the record of a direct-return tool that the turn does not have to end in: an observation like others."""
    if record.return_direct and record.call.name != turn.required:
        return replace(record, return_direct=False)
    return record
