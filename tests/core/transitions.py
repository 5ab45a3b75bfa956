"""The transition table of a turn, made by running the machine: ``python -m tests.core.transitions`` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolturn import Approval, ChatResponse, Limits, ModelUnavailableError, ToolLoopError, ToolLoopResult, Turn, Usage
from toolturn.limits import OnLimit
from toolturn.transcript import closing_content
from toolturn.turn import (
    ApprovalPending,
    CallModel,
    CallTool,
    Effect,
    ModelFailed,
    Op,
    OuterLimit,
    ToolFailed,
    ToolTraits,
)
from toolturn.turn.rules import REASONS

from .parts import USER, asks, begun, call, record_of, reply, says, the_op

COMMAND = "python -m tests.core.transitions"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "transitions.md"

HEAD = f"""\
# Transitions of a turn

What the machine (`toolturn.turn.Turn`) does at each moment with whatever may happen. Every line is made by running the
machine, and a test fails when this page is not what the machine does. To write it anew:

```
{COMMAND}
```

In all lines the turn began with one user message and the model is offered `add`, `direct` (a direct-return tool), `one`
and `two` (parallel ones), `look`, `send` and `pay` (with the effects `none`, `keyed` and `once`), and `ask`, which
wants approval.

- **Phase**: where the turn stands afterwards.
- **Asks for**: the operations it hands out: model calls `m<i>`, asked again after a resume `m<i>~<n>`, approvals
  `a<i>.<k>`, tool calls `t<i>.<k>`, a last answer without tools `f<i>`.
- **Exit**: how it ended; or why the event was refused, and then nothing changes. *(rejected)*: the reply is in
  `rejected_response` and not in the transcript.
- **Transcript**: the messages as they would be handed out now: `u`ser, `a`ssistant, `t`ool. Calls that are still open
  appear closed.
- **Audit**: how each call ended. `not_executed` is what an open one appears as.
- **Iterations**: model calls so far, rejected replies included, last answers excluded.
"""

DEAR = Usage(70, 30, cost=100.0)

TRAITS = {
    "add": ToolTraits(),
    "direct": ToolTraits(return_direct=True),
    "one": ToolTraits(parallel=True),
    "two": ToolTraits(parallel=True),
    "look": ToolTraits(effect="none"),
    "send": ToolTraits(effect="keyed"),
    "pay": ToolTraits(effect="once"),
    "ask": ToolTraits(approval=True),
}


@dataclass(frozen=True)
class Row:
    """Something that may happen at a moment.

    Args:
        event: What happens, in words.
        before: Makes a turn that stands at the moment.
        happens: Does it; gives another turn where it makes one.
    """

    event: str
    before: Callable[[], Turn]
    happens: Callable[[Turn], object]


# --- moments -------------------------------------------------------------------------


def waits_for_the_model(**options: Any) -> Turn:
    return begun(TRAITS, **options)


def waits_for_tools(*names: str, usage: Usage | None = None, **options: Any) -> Turn:
    calls = [call(chr(ord("a") + place), name) for place, name in enumerate(names or ("add", "add"))]
    return reply(waits_for_the_model(**options), asks(*calls, usage=usage))


def after_one_batch(**options: Any) -> Turn:
    turn = waits_for_tools("add", **options)
    op = the_op(turn)
    turn.apply(op, record_of(op))
    return turn


def at_the_last_iteration(**options: Any) -> Turn:
    return waits_for_tools("add", limits=Limits(iterations=1), **options)


def forced_by_iterations() -> Turn:
    turn = at_the_last_iteration(on_limit="answer")
    good(turn)
    turn.ops()
    return turn


def forced_by_the_budget() -> Turn:
    turn = waits_for_the_model(limits=Limits(tool_calls=1, deadline=10.0), on_limit="answer")
    return reply(turn, asks(call("a"), call("b")))


def with_a_deadline() -> Turn:
    return waits_for_the_model(limits=Limits(deadline=10.0))


def ended(turn: Turn, *steps: Callable[[Turn], object]) -> Turn:
    for step in steps:
        step(turn)
    assert turn.ops() == ()
    return turn


# --- events --------------------------------------------------------------------------


def replies(response: ChatResponse) -> Callable[[Turn], object]:
    return lambda turn: turn.apply(the_op(turn), response)


def tells(status: Any = "ok", direct: bool = False) -> Callable[[Turn], object]:
    def happens(turn: Turn) -> None:
        op = turn.ops()[0]
        turn.apply(op, record_of(op, "done", status, direct))

    return happens


good = tells()


def fails(turn: Turn) -> None:
    op = turn.ops()[0]
    turn.apply(op, ToolFailed(record_of(op, "failed", "error"), ValueError("out of order")))


def the_model_fails(turn: Turn) -> None:
    turn.apply(the_op(turn), ModelFailed(ModelUnavailableError("nobody there")))


def stopped(status: Any) -> Callable[[Turn], object]:
    """The first call is stopped together with the turn."""

    def happens(turn: Turn) -> None:
        op = turn.ops()[0]
        turn.cancel()
        turn.apply(op, record_of(op, closing_content(status), status))

    return happens


def late(turn: Turn) -> None:
    op = turn.ops()[0]
    turn.cancel()
    turn.apply(op, record_of(op, "late"))


def cancel(turn: Turn) -> None:
    turn.cancel()


def cancel_and_expire(turn: Turn) -> None:
    turn.cancel()
    turn.expire()


def time_is_up(turn: Turn) -> None:
    turn.tick(10.0)


def reopen(**changes: Any) -> Callable[[Turn], object]:
    def happens(turn: Turn) -> None:
        limits = replace(turn.limits, **changes) if changes else None
        turn.reopen(turn.definitions, turn.traits, limits=limits)

    return happens


def approve(decision: bool) -> Callable[[Turn], object]:
    return lambda turn: turn.reopen(turn.definitions, turn.traits, approvals={"b": decision})


def through_json(turn: Turn) -> Turn:
    copied = Turn.from_json(turn.to_json(), turn.definitions, turn.traits)
    assert copied == turn
    copied.reopen(turn.definitions, turn.traits)
    return copied


def applies(op: Op, outcome: Any) -> Callable[[Turn], object]:
    return lambda turn: turn.apply(op, outcome)


# --- the table -----------------------------------------------------------------------


def new_rows() -> Iterator[Row]:
    yield Row("nothing", Turn, lambda turn: None)
    yield Row("`begin`", Turn, lambda turn: turn.begin([USER], (), TRAITS))
    yield Row("an outcome comes", Turn, applies(CallModel("m1", "", (), ()), says("Hi.")))
    yield Row("`reopen`", Turn, reopen())


def model_rows() -> Iterator[Row]:
    model = waits_for_the_model
    yield Row("`begin`", model, lambda turn: turn.begin([USER], (), {}))
    yield Row("text", model, replies(says("Hi.")))
    yield Row("text and an empty call list", model, replies(ChatResponse("Hi.", None, [], "stop")))
    yield Row("calls", model, replies(asks(call("a"), call("b"))))
    yield Row("calls under `stop` and beside text", model, replies(asks(call("a"), content="So.", finish="stop")))
    yield Row("calls under an unknown reason", model, replies(asks(call("a"), finish="whatever")))
    yield Row("calls of parallel tools", model, replies(asks(call("a", "one"), call("b", "two"))))
    batch = asks(call("a", "one"), call("b", "add"), call("c", "two"))
    yield Row("calls of parallel tools around another", model, replies(batch))
    yield Row("a direct-return call alone", model, replies(asks(call("a", "direct"))))
    yield Row("an unknown tool", model, replies(asks(call("a", "nope"))))
    for reason in REASONS:
        yield Row(f"calls under `{reason}`", model, replies(asks(call("a"), finish=reason)))
        yield Row(f"text under `{reason}`", model, replies(says("Hi.", reason)))
    yield Row("text under `tool_calls`, without calls", model, replies(says("Hi.", "tool_calls")))
    not_a_call: Any = {"id": "a"}
    yield Row("something among the calls that is none", model, replies(asks(not_a_call)))
    yield Row("a call with a blank id", model, replies(asks(call(" "))))
    number: Any = 7
    yield Row("a call with a number as id", model, replies(asks(call(number))))
    yield Row("two calls with the same id", model, replies(asks(call("a"), call("a"))))
    yield Row("a call with the id of an earlier batch", after_one_batch, replies(asks(call("a"))))
    yield Row("a direct-return call beside another", model, replies(asks(call("a", "direct"), call("b"))))
    for policy in ("raise", "answer"):
        limits = Limits(tool_calls=1)
        yield Row(
            f"calls over the budget, `on_limit={policy}`",
            lambda policy=policy, limits=limits: model(limits=limits, on_limit=policy),  # type: ignore[misc]
            replies(asks(call("a"), call("b"))),
        )
    own = Limits(per_tool={"add": 1})
    for policy in ("raise", "answer"):
        yield Row(
            f"calls over the budget of their tool, `on_limit={policy}`",
            lambda policy=policy: model(limits=own, on_limit=policy),  # type: ignore[misc]
            replies(asks(call("a"), call("b"))),
        )
    for policy in ("raise", "answer"):
        for bound, limits in (("tokens", Limits(tokens=100)), ("cost", Limits(cost=100.0))):
            moment = lambda policy=policy, limits=limits: model(limits=limits, on_limit=policy)  # noqa: E731
            yield Row(
                f"calls that use up the {bound}, `on_limit={policy}`", moment, replies(asks(call("a"), usage=DEAR))
            )
    tokens = Limits(tokens=100)
    yield Row("text that uses up the tokens", lambda: model(limits=tokens), replies(says("Hi.", usage=DEAR)))
    yield Row("a reply cut off by the tokens", lambda: model(limits=tokens), replies(says("Hi", "length", usage=DEAR)))
    yield Row("calls of which the model tells no usage", lambda: model(limits=tokens), replies(asks(call("a"))))
    yield Row(
        "the turn around has used up its tokens", model, lambda turn: turn.apply(the_op(turn), OuterLimit("tokens"))
    )
    yield Row("neither calls nor text", model, replies(says(" ")))
    yield Row("the model fails", model, the_model_fails)
    yield Row("`cancel`", model, cancel)
    yield Row("the time is up", with_a_deadline, time_is_up)
    yield Row("`expire`", with_a_deadline, lambda turn: turn.expire())
    yield Row("saved as JSON and reopened", model, through_json)
    yield Row("the outcome of another operation", model, applies(CallModel("m2", "turn", (), ()), says("Hi.")))


def tool_rows() -> Iterator[Row]:
    tools = waits_for_tools
    yield Row("a result; others are open", tools, good)
    yield Row("the last result", tools, lambda turn: (good(turn), good(turn)))
    for status in ("unknown_tool", "invalid_arguments", "refused", "timeout"):
        yield Row(f"`{status}`; others are open", tools, tells(status))
    yield Row("a tool fails, `tool_errors=raise`", tools, fails)
    yield Row("a tool fails, `tool_errors=report`", lambda: tools(tool_errors="report"), fails)
    yield Row("a direct result", lambda: tools("direct"), tells(direct=True))
    yield Row("an invalid direct call", lambda: tools("direct"), tells("invalid_arguments"))
    yield Row("the second of two parallel results", lambda: tools("one", "two"), second_first)
    yield Row("the last result of the last iteration, `on_limit=raise`", at_the_last_iteration, good)
    last = "the last result of the last iteration, `on_limit=answer`"
    yield Row(last, lambda: at_the_last_iteration(on_limit="answer"), good)
    half = Limits(tokens=100)
    used = "the last result, and less is left than two calls take, `on_limit="
    yield Row(used + "raise`", lambda: tools("add", limits=half, usage=Usage(40, 20)), good)
    yield Row(used + "answer`", lambda: tools("add", limits=half, usage=Usage(40, 20), on_limit="answer"), good)
    yield Row("the same result for the third time, `repeats=2`, `on_limit=raise`", lambda: stuck("raise"), good)
    yield Row("the same result for the third time, `repeats=2`, `on_limit=answer`", lambda: stuck("answer"), good)
    yield Row("a result of a turn inside that uses up the tokens", lambda: tools(limits=half, usage=Usage(1)), dear)
    yield Row("`cancel`", tools, cancel)
    yield Row("`cancel`, and the call that ran is stopped", tools, stopped("cancelled"))
    yield Row("`cancel`, and the call that ran is left behind", tools, stopped("outcome_unknown"))
    yield Row("`cancel`, and the call that ran ends all the same", tools, late)
    yield Row("the time is up", lambda: tools(limits=Limits(deadline=10.0)), time_is_up)
    yield Row("saved as JSON and reopened", lambda: ended_half(tools()), through_json)


def stuck(on_limit: OnLimit) -> Turn:
    turn = waits_for_the_model(limits=Limits(repeats=2), on_limit=on_limit)
    for number in range(2):
        good(reply(turn, asks(call(str(number)))))
    return reply(turn, asks(call("c")))


def dear(turn: Turn) -> None:
    op = turn.ops()[0]
    turn.apply(op, replace(record_of(op), usage=DEAR))


def approval_rows() -> Iterator[Row]:
    def asks_for(*names: str, **options: Any) -> Callable[[], Turn]:
        return lambda: waits_for_tools(*(names or ("add", "ask", "ask")), **options)

    asking = asks_for()
    yield Row("nothing", asking, lambda turn: None)
    yield Row("yes; others are open", asking, answers(True))
    yield Row("yes to all", asking, answers(True, True))
    yield Row("yes and no", asking, answers(True, False))
    yield Row("no to all; another call is open", asking, answers(False, False))
    yield Row("no to the only call", asks_for("ask"), answers(False))
    yield Row("nobody can be asked; others are open", asking, answers(None))
    yield Row("nobody can be asked of any", asking, answers(None, None))
    yield Row("nobody can be asked of one", asking, answers(True, None))
    other = Approval(True, digest="of another call")
    yield Row("an approval of another call", asking, lambda turn: turn.apply(the_op(turn), other))
    yield Row("the result of a call that waits", asks_for("ask"), early)
    yield Row("`cancel`", asking, cancel)
    yield Row("the time is up", asks_for("ask", limits=Limits(deadline=10.0)), time_is_up)
    yield Row("saved as JSON and reopened", lambda: answered_once(asking()), through_json)


def answers(*given: bool | None) -> Callable[[Turn], object]:
    def happens(turn: Turn) -> None:
        for one in given:
            turn.apply(the_op(turn), ApprovalPending() if one is None else Approval(one))

    return happens


def answered_once(turn: Turn) -> Turn:
    answers(True)(turn)
    return turn


def early(turn: Turn) -> None:
    op = CallTool("t1.0", "turn", turn.messages[1].tool_calls[0], 0, None)  # type: ignore[index]
    turn.apply(op, record_of(op))


def second_first(turn: Turn) -> None:
    op = turn.ops()[1]
    turn.apply(op, record_of(op))


def ended_half(turn: Turn) -> Turn:
    good(turn)
    return turn


def forced_rows() -> Iterator[Row]:
    for name, forced in (("iterations", forced_by_iterations), ("budget", forced_by_the_budget)):
        yield Row(f"text ({name})", forced, replies(says("So far.")))
        yield Row(f"text and calls ({name})", forced, replies(asks(call("z"), content="So far.")))
        yield Row(f"calls alone ({name})", forced, replies(asks(call("z"))))
        yield Row(f"neither ({name})", forced, replies(says("")))
    for reason in REASONS:
        yield Row(f"text under `{reason}`", forced_by_iterations, replies(says("So far.", reason)))
    yield Row("the model fails", forced_by_iterations, the_model_fails)
    yield Row("`cancel`", forced_by_iterations, cancel)
    yield Row("the time is up", forced_by_the_budget, time_is_up)
    yield Row("saved as JSON and reopened", forced_by_the_budget, through_json)


def ended_rows() -> Iterator[Row]:
    def answer() -> Turn:
        return ended(waits_for_the_model(), replies(says("Hi.")))

    yield Row("answered; `cancel` or `expire`", answer, cancel_and_expire)
    yield Row("answered; another outcome comes", answer, applies(CallModel("m1", "turn", (), ()), says("Again.")))
    yield Row("answered; `reopen`", answer, reopen())
    yield Row("cancelled before the reply; `reopen`", lambda: ended(waits_for_the_model(), cancel), reopen())
    yield Row("the model failed; `reopen`", lambda: ended(waits_for_the_model(), the_model_fails), reopen())

    def rejected() -> Turn:
        return ended(waits_for_the_model(), replies(says("cut", "length")))

    yield Row("a reply was rejected; `reopen`", rejected, reopen())
    yield Row("a reply was rejected twice; `reopen`", lambda: ended(rejected(), reopen(), replies(says(""))), reopen())
    one = Limits(iterations=1)
    last = "a reply was rejected at the last iteration; `reopen`"
    yield Row(last, lambda: ended(waits_for_the_model(limits=one), replies(says(""))), reopen())

    def used_up() -> Turn:
        return ended(at_the_last_iteration(), good)

    yield Row("iterations used up; `reopen`", used_up, reopen())
    yield Row("iterations used up; `reopen` with more", used_up, reopen(iterations=2))

    def over() -> Turn:
        return ended(waits_for_the_model(limits=Limits(tool_calls=1)), replies(asks(call("a"), call("b"))))

    yield Row("over the budget; `reopen`", over, reopen())
    yield Row("over the budget; `reopen` with more", over, reopen(tool_calls=2))

    def own() -> Turn:
        limits = Limits(per_tool={"add": 1})
        return ended(waits_for_the_model(limits=limits), replies(asks(call("a"), call("b"))))

    yield Row("over the budget of a tool; `reopen`", own, reopen())
    yield Row("over the budget of a tool; `reopen` with more", own, reopen(per_tool={"add": 2}))

    def dear_calls() -> Turn:
        return ended(waits_for_the_model(limits=Limits(tokens=100)), replies(asks(call("a"), usage=DEAR)))

    yield Row("out of tokens; `reopen`", dear_calls, reopen())
    yield Row("out of tokens; `reopen` with more", dear_calls, reopen(tokens=101))

    def unasked() -> Turn:
        return ended(waits_for_tools("add", "ask"), answers(None))

    yield Row("approval is required; `reopen`", unasked, reopen())
    yield Row("approval is required; `reopen` with a yes", unasked, approve(True))
    yield Row("approval is required; `reopen` with a no", unasked, approve(False))

    def too_late() -> Turn:
        return ended(with_a_deadline(), time_is_up)

    yield Row("out of time; `reopen`", too_late, reopen())
    yield Row("out of time; `reopen` with more", too_late, reopen(deadline=20.0))
    yield Row("a tool failed; `reopen`", lambda: ended(waits_for_tools(), fails), reopen())
    yield Row("the last tool failed; `reopen`", lambda: ended(waits_for_tools("add"), fails), reopen())
    yield Row("cancelled, all calls open; `reopen`", lambda: ended(waits_for_tools(), cancel), reopen())
    effects: dict[str, Effect] = {"look": "none", "send": "keyed", "pay": "once"}
    for status in ("cancelled", "outcome_unknown"):
        for name, effect in effects.items():
            yield Row(
                f"a call of a tool with effect `{effect}` was `{status}`; `reopen`",
                lambda name=name, status=status: ended(waits_for_tools(name, "add"), stopped(status)),  # type: ignore[misc]
                reopen(),
            )
    ran_on = "cancelled, and the last call ended all the same; `reopen`"
    yield Row(ran_on, lambda: ended(waits_for_tools("add"), late), reopen())
    yield Row("a last answer was cancelled; `reopen`", lambda: ended(forced_by_the_budget(), cancel), reopen())
    raised = "a last answer was cancelled; `reopen` with a larger budget"
    yield Row(raised, lambda: ended(forced_by_the_budget(), cancel), reopen(tool_calls=2))
    out = "a last answer ran out of time; `reopen` with more"
    yield Row(out, lambda: ended(forced_by_the_budget(), time_is_up), reopen(deadline=20.0))
    unusable = "a last answer was unusable; `reopen` with more iterations"
    yield Row(unusable, lambda: ended(forced_by_iterations(), replies(says(""))), reopen(iterations=2))


SECTIONS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "new": ("The turn has not begun", new_rows),
    "model": ("It waits for the model's reply", model_rows),
    "approval": ("It waits for approvals, before anything of the batch runs", approval_rows),
    "tools": ("It waits for the outcomes of calls", tool_rows),
    "forced": ("It waits for a last answer, in which no tools are offered", forced_rows),
    "ended": ("It has ended", ended_rows),
}


def columns(row: Row) -> list[str]:
    """What the machine does, as the cells of a line."""
    turn = row.before()
    shown = ""
    try:
        after = row.happens(turn)
        turn = after if isinstance(after, Turn) else turn
    except (ValueError, TypeError) as exc:
        shown = f"refused: {type(exc).__name__}: {exc}"
    ops = ", ".join(f"`{op.id}`" for op in turn.ops())
    end = turn.exit
    if shown:
        pass  # nothing has changed
    elif isinstance(end, ToolLoopResult):
        by_limit = f", limit `{end.limit}`" if end.limit else ""
        shown = f"{'direct return' if end.return_direct else 'answer'} {end.content!r}{by_limit}"
    elif isinstance(end, ToolLoopError):
        shown = f"`{type(end).__name__}`" + (" *(rejected)*" if end.rejected_response is not None else "")
    transcript = " ".join(message.role[0] for message in turn.messages)
    audit = ", ".join(f"`{record.status}`" for record in turn.records)
    return [row.event, turn.phase, ops, shown, transcript, audit, str(turn.iterations)]


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for phase, (title, rows) in SECTIONS.items():
        lines.append(f"## `{phase}`: {title}\n")
        lines.append("| What happens | Phase | Asks for | Exit | Transcript | Audit | Iterations |")
        lines.append("|---|---|---|---|---|---|---|")
        for row in rows():
            assert row.before().phase == phase, row.event
            lines.append(f"| {' | '.join(columns(row))} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
