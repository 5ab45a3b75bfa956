# mypy: disable-error-code="valid-type"
"""The shapes of saved documents, checked before anything is made of one.

They are built at the first reading: a program that saves nothing pays nothing for them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from .results import ToolStatus

_LONGEST_PLACE = 200


@cache
def _shapes() -> dict[str, Any]:
    """An adapter for each kind of document."""
    from pydantic import ConfigDict, Field, FiniteFloat, NonNegativeFloat, NonNegativeInt, TypeAdapter, create_model

    strict = ConfigDict(strict=True, extra="forbid")

    def shape(name: str, /, **fields: Any) -> Any:
        # each key is the alias of a field, because a document may have keys such as "class"
        made: dict[str, Any] = {f"f{n}": (hint, Field(alias=key)) for n, (key, hint) in enumerate(fields.items())}
        model: Any = create_model(name, __config__=strict, **made)
        return model

    def shape_with(name: str, optional: dict[str, Any], /, **fields: Any) -> Any:
        made: dict[str, Any] = {f"f{n}": (hint, Field(alias=key)) for n, (key, hint) in enumerate(fields.items())}
        made |= {f"o{n}": (hint, Field(None, alias=key)) for n, (key, hint) in enumerate(optional.items())}
        model: Any = create_model(name, __config__=strict, **made)
        return model

    call = shape("call", id=Any, name=Any, arguments=Any)
    message = shape_with(
        "message",
        {"tool_calls": list[call] | None, "tool_call_id": Any, "opaque": dict[str, Any] | None},
        role=str,
        content=Any,
    )
    usage = shape("usage", input=int, output=int, cached=int, reasoning=int, cost=FiniteFloat)
    repair = shape("repair", kind=str, detail=str, op=str)
    response = shape_with(
        "response",
        {"opaque": dict[str, Any] | None},
        content=Any,
        reasoning=Any,
        tool_calls=Any,
        finish_reason=Any,
        raw=Any,
        usage=usage | None,
        repairs=list[repair],
    )
    record = shape(
        "record",
        op=str,
        call=call,
        message=message,
        return_direct=bool,
        status=ToolStatus,
        started=float,
        seconds=float,
        error=str | None,
        usage=usage | None,
        loop_key=str | None,
    )
    limits = shape(
        "limits",
        iterations=int,
        tool_calls=int,
        deadline=float | None,
        result_bytes=int | None,
        tokens=int | None,
        cost=float | None,
        per_tool=dict[str, int],
        repeats=int | None,
    )
    approval = shape("approval", approved=bool, reason=str, digest=str | None)
    cause = shape("cause", type=str, text=str)
    ending = shape(
        "ending",
        **{"class": str | None},
        text=str,
        rejected=response | None,
        cause=cause | None,
        limit=str | None,
        direct=bool,
    )
    repeats = shape("repeats", counts=dict[str, NonNegativeInt], last=list[str])
    turn = shape(
        "turn",
        v=int,
        kind=str,
        turn_id=str,
        phase=Literal["new", "model", "approval", "tools", "forced", "ended"],
        limits=limits,
        on_limit=Literal["raise", "answer"],
        tool_errors=Literal["raise", "report"],
        iterations=NonNegativeInt,
        retries=NonNegativeInt,
        nudges=NonNegativeInt,
        nudge=str,
        draft=str,
        required=str,
        typed=bool,
        accepted=NonNegativeInt,
        seconds=NonNegativeFloat,
        usage=usage,
        last=usage | None,
        repeats=repeats,
        repairs=list[repair],
        messages=list[message],
        records=list[record],
        calls=list[call],
        outcomes=list[record | None],
        approvals=list[approval | None],
        started=list[NonNegativeInt],
        waiting=list[NonNegativeInt],
        limit=list[str | None] | None,
        ending=ending | None,
    )
    result = shape(
        "result",
        v=int,
        kind=str,
        content=str,
        return_direct=bool,
        iterations=int,
        limit=str | None,
        turn_id=str,
        usage=usage,
        repairs=list[repair],
        messages=list[message],
        tool_calls=list[record],
        value=Any,
    )
    error = shape(
        "error",
        **{"class": str},
        v=int,
        kind=str,
        message=str,
        iterations=int,
        turn_id=str,
        cause=cause | None,
        usage=usage,
        repairs=list[repair],
        rejected_response=response | None,
        messages=list[message],
        tool_calls=list[record],
        state=dict[str, Any] | None,
    )
    return {name: TypeAdapter(made) for name, made in (("turn", turn), ("result", result), ("error", error))}


def fault_of(kind: str, data: dict[str, Any]) -> str | None:
    """Return what is wrong with a document, or None.

    Args:
        kind: What it has to be; a kind that is not known is not checked.
        data: The document.
    """
    from pydantic import ValidationError

    shape = _shapes().get(kind)
    if shape is None:
        return None
    try:
        shape.validate_python(data)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:_LONGEST_PLACE]  # a key of the document may be anything
        return f"{''.join(c if c.isprintable() else '?' for c in place)}: {first['msg']}"
    return None
