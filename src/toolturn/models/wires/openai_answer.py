"""Replies of OpenAI's chat completions that are held to a schema: the field that asks for it, and the way back.

Source: https://platform.openai.com/docs/guides/structured-outputs
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ...arguments import parse_arguments
from ...errors import InvalidToolArguments
from ...messages import ChatResponse, Repair, ToolDef
from ..schema import FittedTool, fit, profile_named, restore_arguments, wire_name
from ..servers import Wishes


def fitted_answer(wanted: ToolDef, wishes: Wishes) -> FittedTool:
    """Return the form of an answer as a server takes it.

    Args:
        wanted: The name of the object, what it is for and its schema.
        wishes: What the server takes.

    Raises:
        ValueError: Its schema is none, or not that of an object.
    """
    strict = wishes.answers == "beside_tools" and wishes.schemas == "openai"
    return fit(wanted, profile_named("openai_strict" if strict else wishes.schemas), wire_name(wanted.name))


def response_format(answer: FittedTool) -> dict[str, Any]:
    """Return the field of a request that holds the reply to a schema.

    Args:
        answer: The form of the answer as the server takes it.
    """
    form: dict[str, Any] = {"name": answer.name, "schema": answer.parameters or {"type": "object"}}
    if answer.description:
        form["description"] = answer.description
    if answer.strict:
        form["strict"] = True
    return {"type": "json_schema", "json_schema": form}


def restored(response: ChatResponse, answer: FittedTool) -> ChatResponse:
    """Return a reply whose text is in the form of the schema that was wanted, where the server's is another.

    Args:
        response: The reply; one that calls, or whose text is no object, comes back as it is.
        answer: The form of the answer as the server was told of it.
    """
    if response.tool_calls or not answer.changes or not isinstance(response.content, str):
        return response
    try:
        written = parse_arguments(response.content)
    except InvalidToolArguments:
        return response
    own = restore_arguments(written, answer)
    if own == written:
        return response
    repair = Repair("answer", "the answer was put into the form of its own schema")
    return replace(
        response,
        content=json.dumps(own, ensure_ascii=False, separators=(",", ":")),
        repairs=(*response.repairs, repair),
    )
