"""Calls that a person has to approve: nothing before that, a decision days later in another process, a denial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..replies import Call, asks, call, says
from ..rows import AFTER, STILL, Act, Answer, Decision, Failure, Fault, Refused, Run, Waits, Way, goes_on, ran

_GIVE: Final = call("give_money", {"to": "annabel", "euros": 1234})
_GAVE: Final = ran("give_money", to="annabel", euros=1234)
_GIVEN: Final = "annabel got 1234 euros"
_LEND: Final = call("lend_money", {"to": "bertram", "euros": 20})
_LENT: Final = ran("lend_money", to="bertram", euros=20)
_SEND: Final = call("send_message", {"to": "annabel", "text": "I paid you."})
_SENT: Final = ran("send_message", to="annabel", text="I paid you.")
_TEMP: Final = call("get_temp", {"city": "Faro"})
_TEMP_RAN: Final = ran("get_temp", city="Faro")
_YES: Final = Decision(True)
_NO: Final = Decision(False, "the month's money is spent")


def _decided(decisions: Mapping[str, Decision], *runs: Run, fresh: bool = False, **more: Any) -> Act:
    """The decisions come, perhaps in a new process, and the turn goes on to its answer."""
    return Act((says(AFTER),), (Way(Answer(AFTER), runs),), decisions, fresh, **more)


def _row(
    name: str, text: str, calls: tuple[Call, ...], waits: tuple[str, ...], *acts: Act, needs: tuple[str, ...] = ()
) -> Fault:
    return Fault(
        f"approval_{name}",
        text,
        (asks(*calls),),
        (Way(Waits(waits)),),
        needs=("approval", *needs),
        approval=("give_money", "lend_money"),
        requests=1,
        acts=acts,
    )


def _refused(**more: Any) -> Act:
    return Act((says(AFTER),), (Way(Refused()),), {"give_money": _YES}, requests=0, **more)


ROWS: Final = (
    _row(
        "given",
        "A call needs approval, which is given in another process.",
        (_GIVE,),
        ("give_money",),
        _decided({"give_money": _YES}, _GAVE, tells=(_GIVEN,), fresh=True),
    ),
    _row(
        "given_here",
        "A call needs approval, which is given in the same process.",
        (_GIVE,),
        ("give_money",),
        _decided({"give_money": _YES}, _GAVE, tells=(_GIVEN,)),
    ),
    _row(
        "denied",
        "A call needs approval, which is denied in another process: it does not run, and the model is told why.",
        (_GIVE,),
        ("give_money",),
        _decided({"give_money": _NO}, tells=(_NO.reason,), fresh=True),
    ),
    _row(
        "one_of_two",
        "Two calls of a batch need approval: in another process one is given, the other is denied.",
        (_GIVE, _LEND),
        ("give_money", "lend_money"),
        _decided({"give_money": _YES, "lend_money": _NO}, _GAVE, tells=(_GIVEN, _NO.reason), fresh=True),
    ),
    _row(
        "both",
        "Two calls of a batch need approval, and both get it.",
        (_GIVE, _LEND),
        ("give_money", "lend_money"),
        _decided({"give_money": _YES, "lend_money": _YES}, _GAVE, _LENT, tells=(_GIVEN, "bertram owes 20 euros")),
    ),
    Fault(
        "approval_beside_another",
        "A call that needs approval stands beside one that needs none: that one runs once, before or after.",
        (asks(_TEMP, _GIVE),),
        (Way(Waits(("give_money",))), Way(Waits(("give_money",)), (_TEMP_RAN,))),
        needs=("approval",),
        approval=("give_money",),
        requests=1,
        acts=(
            Act(
                (says(AFTER),),
                (Way(Answer(AFTER), (_TEMP_RAN, _GAVE)), Way(Answer(AFTER), (_GAVE,))),
                {"give_money": _YES},
                tells=("21 degrees in Faro", _GIVEN),
            ),
        ),
    ),
    _row(
        "holds_the_batch",
        "A message that says it was paid follows a payment that needs approval: it does not go out before.",
        (_GIVE, _SEND),
        ("give_money",),
        _decided({"give_money": _YES}, _GAVE, _SENT, tells=(_GIVEN,)),
    ),
    _row(
        "another_amount",
        "What was saved is changed before it comes back: the approved call has another amount.",
        (_GIVE,),
        ("give_money",),
        _refused(altered=("1234", "9876")),
        needs=("bound_approval",),
    ),
    _row(
        "another_person",
        "What was saved is changed before it comes back: the approved call is for somebody else.",
        (_GIVE,),
        ("give_money",),
        _refused(altered=("annabel", "mallory")),
        needs=("bound_approval",),
    ),
    _row(
        "another_tool",
        "What was saved is changed before it comes back: the approved call is of another tool.",
        (_GIVE,),
        ("give_money",),
        _refused(altered=("give_money", "lend_money")),
        needs=("bound_approval",),
    ),
    _row(
        "signed",
        "What was saved is signed and comes back as it was.",
        (_GIVE,),
        ("give_money",),
        _decided({"give_money": _YES}, _GAVE, tells=(_GIVEN,)),
        needs=("signed",),
    ),
    _row(
        "signed_and_changed",
        "What was saved is signed, and a character of it is changed before it comes back.",
        (_GIVE,),
        ("give_money",),
        _refused(altered=("", "")),
        needs=("signed",),
    ),
    _row(
        "then_something_else",
        "Nobody decides and the user says something more: the call does not run; that it has to be decided will do.",
        (_GIVE,),
        ("give_money",),
        replace(goes_on(), ways=(Way(Answer(STILL)), Way(Failure()))),
        needs=("go_on",),
    ),
)
