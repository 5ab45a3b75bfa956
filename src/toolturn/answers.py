"""What a turn has to end in: an answer that is a validated object, or the result of one direct-return tool.

An object is had in one of two ways, whichever the model has. Where it can hold its text to a schema, the answer is
that text (``settings.answer``: a provider's structured output, or a grammar). Every other model is offered one more
tool, which takes the object and ends the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any

from .arguments import describe_faults, mend_arguments
from .codec import dumps
from .errors import InvalidToolArguments
from .messages import ChatResponse, Repair, ToolDef, text_of
from .model import ChatModel, ModelSettings
from .tools.json_schema import check_against, validator_of
from .tools.tool import Tool
from .tools.toolset import ToolSet
from .turn import CallModel, Unfit, Valued
from .turn.rules import refusal_of

FINAL_TOOL = "final_answer"
"""The name of the tool that takes the answer; where the user has one of this name, a number is put after it."""


class AnswerType:
    """The type of an answer: what a model is told of it, and its validation.

    Args:
        wanted: A pydantic model, a dataclass or a TypedDict: any type whose JSON is an object.

    Raises:
        TypeError: Its JSON is no object, or pydantic knows no schema of it.
    """

    def __init__(self, wanted: Any) -> None:
        from pydantic import PydanticUserError, TypeAdapter

        shown = getattr(wanted, "__name__", None) or repr(wanted)
        if isinstance(wanted, (FunctionType, MethodType)):
            raise TypeError(f"answer_type {shown} is a function, not a type")
        try:
            self._adapter: Any = TypeAdapter(wanted)
            schema = self._adapter.json_schema()
        except PydanticUserError as exc:
            why = str(exc).partition("\n")[0]
            raise TypeError(f"answer_type {shown} has no JSON Schema: {why}") from None
        if schema.get("type", "object") != "object" or not schema.keys() & {"properties", "$ref", "type"}:
            raise TypeError(f"answer_type {shown} must be a type whose JSON is an object, such as a pydantic model")
        about = schema.get("description") or f"The answer as {shown}."
        self.definition = ToolDef(shown, about, schema)

    def validate(self, value: dict[str, Any]) -> Any:
        """Return the object that a dictionary of JSON's own types holds.

        Args:
            value: What the model wrote, parsed.

        Raises:
            InvalidToolArguments: It does not fit; the text tells the model what to mend.
        """
        from pydantic import ValidationError

        try:
            # as JSON: a strict type takes a date, a member of an enumeration or a tuple in no other way
            return self._adapter.validate_json(dumps(value))
        except ValidationError as exc:
            raise InvalidToolArguments(describe_faults(exc)) from None

    def read(self, text: str) -> tuple[Any, tuple[Repair, ...]]:
        """Return the object that a model's text holds, and what was mended in the text.

        Args:
            text: The reply.

        Raises:
            InvalidToolArguments: It does not fit; the text tells the model what to mend.
        """
        value, repairs = mend_arguments(text)
        return self.validate(value), repairs

    def text(self, value: Any) -> str:
        """Return an object as compact JSON.

        Args:
            value: What :meth:`validate` gave.
        """
        data: bytes = self._adapter.dump_json(value, by_alias=True)
        return data.decode()


class SchemaAnswer(AnswerType):
    """An answer whose form is a JSON Schema; its object is a dictionary.

    Args:
        schema: The schema of an object; references must stay within it.

    Raises:
        ValueError: The schema is not valid, or not that of an object.
        ImportError: The extra ``schema`` is not installed.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._validator = validator_of("the answer", schema)
        name, about = schema.get("title"), schema.get("description")
        name = name if isinstance(name, str) and name else "Answer"
        about = about if isinstance(about, str) and about else f"The answer as {name}."
        self.definition = ToolDef(name, about, schema)

    def validate(self, value: dict[str, Any]) -> Any:
        check_against(self._validator, self.definition.parameters, value)
        return value

    def text(self, value: Any) -> str:
        return dumps(value)


class AnswerTool(Tool[Any, Any]):
    """The tool that takes a typed answer, and does nothing else."""

    def __init__(self, name: str, answer: AnswerType) -> None:
        self._answer = answer
        about = answer.definition.description
        super().__init__(
            name,
            f"Finish with the final answer, once you have all that it needs. {about}",
            dict,
            None,
            lambda value: value,
            return_direct=True,
            effect="none",
            run_in_thread=False,
        )
        self._parameters = answer.definition.parameters

    def _check_models(self, name: str, request_model: Any, result_model: Any) -> None:
        """The type of the answer is the only model."""

    def _request(self, arguments: dict[str, Any]) -> Any:
        return self._answer.validate(arguments)

    def _checked(self, result: Any) -> Any:
        return result

    def _text(self, result: Any) -> str:
        return self._answer.text(result)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How a turn has to end.

    Args:
        tool: The direct-return tool it ends in; empty where the model's text itself is the object.
        type: The type of the answer; None where a tool of the user's gives it.
        beside_tools: Whether the model's text can be held to the type while tools are offered.
        alone: Whether it can in a request without tools.
        definitions: What the model is told of the one tool of a last answer.
    """

    tool: str = ""
    type: AnswerType | None = None
    beside_tools: bool = False
    alone: bool = False
    definitions: tuple[ToolDef, ...] = ()

    @property
    def typed(self) -> bool:
        """Whether the answer is of a type, and so can be had without running a tool."""
        return self.type is not None

    def request(
        self, op: CallModel, settings: ModelSettings, offered: tuple[ToolDef, ...]
    ) -> tuple[tuple[ToolDef, ...], ModelSettings]:
        """Return the tools and settings of a request.

        Args:
            op: The model call.
            settings: How to reply otherwise.
            offered: The tools that would be offered.
        """
        kind = self.type
        if kind is not None and (self.beside_tools or (self.alone and (op.forced or not offered))):
            choice = settings.tool_choice
            if op.forced:
                offered = offered if self.beside_tools else ()
                choice = "none" if offered else None
            return offered, replace(settings, tool_choice=choice, answer=kind.definition)
        if op.forced:
            return self.definitions, replace(settings, tool_choice=self.tool)
        if op.required or (len(op.tools) == 1 and self.tool):
            return offered, replace(settings, tool_choice=self.tool)
        return offered, settings

    def offered(self, op: CallModel) -> tuple[ToolDef, ...]:
        """Return the tools of a request to a model that takes no settings: where one has to be called, it alone.

        Args:
            op: The model call.
        """
        if op.forced:
            return self.definitions
        return tuple(tool for tool in op.tools if tool.name == op.required) if op.required else op.tools

    def read(self, op: CallModel, response: ChatResponse) -> ChatResponse | Valued | Unfit:
        """Return a reply with the object it holds, or with why that does not fit; others as they are.

        Args:
            op: The model call.
            response: The reply.
        """
        kind = self.type
        if kind is None or refusal_of(response.finish_reason) is not None:
            return response
        text = text_of(response.content)
        if response.tool_calls:
            if not op.forced or not self.tool:
                return response
            # the call of a last answer: the tool does nothing, so that what it takes is the answer
            call = next((call for call in response.tool_calls if getattr(call, "name", None) == self.tool), None)
            if call is None:
                return response
            text = call.arguments if isinstance(call.arguments, str) else ""
        if not text.strip():
            return response
        if text.strip() == "null":
            return Unfit(response, "null is no object")
        try:
            value, repairs = kind.read(text)
            if repairs or text is not response.content:
                text = kind.text(value)
        except InvalidToolArguments as exc:
            if self.tool and not op.forced and not text.lstrip().startswith(("{", "```")):
                return response  # text beside the tool that was to be called: no object was tried
            return Unfit(response, str(exc).replace("arguments", "the answer", 1))
        except Exception as exc:  # noqa: BLE001 - a validator of the user's may raise anything
            return Unfit(response, f"{type(exc).__name__} while it was checked")
        return Valued(replace(response, content=text, tool_calls=None, repairs=response.repairs + repairs), value)


def answer_form(
    answer_type: Any, require_tool: str | None, tools: ToolSet, model: ChatModel | Callable[..., Any]
) -> tuple[AnswerForm, ToolSet]:
    """Return how a turn has to end, and the tools with the one it may need for that.

    Args:
        answer_type: The type of the answer, or its JSON Schema as a dictionary, or None.
        require_tool: The name of a direct-return tool, or None.
        tools: The tools of the turn.
        model: The model.

    Raises:
        ValueError: Both are given, or the tool is none of the direct-return tools.
        TypeError: The type's JSON is no object.
        ImportError: A JSON Schema needs the extra ``schema``.
    """
    if require_tool is not None:
        if answer_type is not None:
            raise ValueError("answer_type and require_tool exclude each other: a turn ends in one of them")
        tool = tools.get(require_tool)
        if tool is None:
            raise ValueError(f"require_tool names {require_tool!r}, which is none of the tools")
        if not tool.return_direct:
            raise ValueError(f"require_tool names {require_tool!r}, which is no direct-return tool")
        return AnswerForm(require_tool), tools
    kind = SchemaAnswer(answer_type) if isinstance(answer_type, dict) else AnswerType(answer_type)
    able = model.capabilities.answers if isinstance(model, ChatModel) else ""
    if able == "beside_tools" or (able == "alone" and not len(tools)):
        return AnswerForm("", kind, beside_tools=able == "beside_tools", alone=True), tools
    name, number = FINAL_TOOL, 1
    while name in tools:
        number += 1
        name = f"{FINAL_TOOL}_{number}"
    final = ToolSet([AnswerTool(name, kind)])
    return AnswerForm(name, kind, alone=able == "alone", definitions=final.definitions), tools + final
