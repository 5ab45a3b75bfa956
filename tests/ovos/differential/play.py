"""Plays sessions with one of the two engines and writes what came of them, one JSON a line.

python -m tests.ovos.differential.play reference sessions.jsonl outcomes.jsonl
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

with warnings.catch_warnings():  # what these packages use that will go one day is theirs to know
    warnings.simplefilter("ignore")
    from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput
    from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine, MessageRole, ToolCall
    from ovos_utils.log import LOG

from pydantic import BaseModel, Field

OVER = "The script is over."
RAISED = {"RuntimeError": RuntimeError, "ValueError": ValueError, "ConnectionError": ConnectionError}


# --- tools -----------------------------------------------------------------------------


class Echo(ToolArguments):  # type: ignore[misc]
    text: str
    times: int = 1


class Add(ToolArguments):  # type: ignore[misc]
    a: int
    b: int


class Query(BaseModel):
    word: str
    most: int = 5


class Find(ToolArguments):  # type: ignore[misc]
    query: Query
    where: list[str] = Field(default_factory=list)


class Nothing(ToolArguments):  # type: ignore[misc]
    pass


class Text(ToolOutput):  # type: ignore[misc]
    text: str


class Total(ToolOutput):  # type: ignore[misc]
    total: int
    note: str | None = None


def _fail(_: Any) -> Any:
    raise KeyError("out of paper")


def _leave(_: Any) -> Any:
    raise SystemExit(3)


BEHAVIOURS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "echo": (Echo, Text, lambda given: Text(text=given.text * given.times)),
    "add": (Add, Total, lambda given: {"total": given.a + given.b}),
    "find": (Find, Text, lambda given: {"text": f"{given.query.word} {given.query.most} {given.where}"}),
    "clock": (Nothing, Text, lambda given: Text(text="ten past three")),
    "fail": (Nothing, Text, _fail),
    "leave": (Nothing, Text, _leave),
    "nothing": (Nothing, Text, lambda given: None),
    "plain": (Nothing, Text, lambda given: "a plain text"),
    "wrong": (Nothing, Text, lambda given: {"total": 1}),
    "huge": (Nothing, Text, lambda given: {"text": "x" * 20_000}),
}


class Box(ToolBox):  # type: ignore[misc]
    """Some of the tools; each run is written down with what it gave, as text and as JSON."""

    def __init__(self, name: str, tools: list[dict[str, str]], ran: list[Any]) -> None:
        self._described = tools
        self._ran = ran
        super().__init__(name)

    def discover_tools(self) -> list[AgentTool]:
        return [self._tool(each["name"], each["does"]) for each in self._described]

    def _tool(self, name: str, does: str) -> AgentTool:
        arguments, output, handler = BEHAVIOURS[does]

        def run(given: Any) -> Any:
            written: dict[str, Any] = {"box": self.toolbox_id, "tool": name, "arguments": given.model_dump()}
            self._ran.append(written)
            result = handler(given)
            with suppress(ValueError):  # one that is not what the tool promised
                made = output.model_validate(result.model_dump() if isinstance(result, BaseModel) else result)
                written |= {"text": str(made), "json": made.model_dump_json()}
            return result

        return AgentTool(name, f"the tool {name}", arguments, output, run)


# --- brains ----------------------------------------------------------------------------


class Brain(ChatEngine):  # type: ignore[misc]
    """Plays a script and writes down what it was asked."""

    supports_tools = True

    def __init__(self, script: list[dict[str, Any]]) -> None:
        super().__init__({})
        self._script = list(script)
        self.asked: list[dict[str, Any]] = []

    def continue_chat(
        self,
        messages: Any,
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> Any:
        known = {"session_id": session_id, "lang": lang, "units": units}
        self.asked.append({"messages": [_written(each) for each in messages], "tools": _names(tools), "known": known})
        reply: dict[str, Any] = self._script.pop(0) if self._script else {"content": OVER}
        if "raises" in reply:
            raise RAISED[reply["raises"][0]](reply["raises"][1])
        if "returns" in reply:
            return reply["returns"]
        return AgentMessage(MessageRole.ASSISTANT, reply["content"], tool_calls=_calls(reply.get("calls")))


class Writer(Brain):
    """A brain that only writes."""

    supports_tools = False


def _calls(given: list[dict[str, Any]] | None) -> Any:
    if given is None:
        return None
    made: list[Any] = []
    for each in given:
        fields = {key: each[key] for key in ("id", "name", "arguments")}
        made.append(fields if each.get("as") == "dict" else ToolCall(**fields))
    return made


def _written(message: AgentMessage) -> dict[str, Any]:
    calls = message.tool_calls
    return {
        "role": getattr(message.role, "value", message.role),
        "content": message.content,
        "calls": None if calls is None else [_call(each) for each in calls],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }


def _call(call: Any) -> dict[str, Any]:
    fields = call if isinstance(call, dict) else vars(call)
    return {key: fields[key] for key in ("id", "name", "arguments")}


def _names(tools: Any) -> list[str] | None:
    if tools is None:
        return None
    names: list[str] = []
    for each in tools:
        names += list(each.tools) if isinstance(each, ToolBox) else [each["function"]["name"]]
    return names


# --- sessions --------------------------------------------------------------------------


def play(session: dict[str, Any], engines: dict[str, Any]) -> dict[str, Any]:
    """Return what came of a session.

    Args:
        session: As :mod:`tests.ovos.differential.sessions` makes it.
        engines: ``native`` and ``react``, the classes that are tried.
    """
    ran: list[Any] = []
    brain = None if session["brain"] is None else (Writer if session["brain"] == "text" else Brain)(session["script"])
    came: dict[str, Any] = {"answer": None, "pieces": [], "raised": None}
    try:
        engine = engines[session["engine"]](session["config"])
        engine.load_toolboxes([Box(f"box{n}", tools, ran) for n, tools in enumerate(session["toolboxes"])])
        if brain is not None:
            engine.set_brain(brain)
        _ask(engine, session, came)
    except (Exception, SystemExit) as exc:  # it is what came of it
        came["raised"] = [type(exc).__name__, str(exc)]
    return came | {"asked": [] if brain is None else brain.asked, "ran": ran}


def _ask(engine: Any, session: Any, came: dict[str, Any]) -> None:
    known: dict[str, Any] = session["known"]
    given: list[dict[str, Any]] = session["messages"]
    messages = [
        AgentMessage(
            MessageRole(each["role"]),
            each["content"],
            tool_calls=_calls(each.get("calls")),
            tool_call_id=each.get("tool_call_id"),
            name=each.get("name"),
        )
        for each in given
    ]
    entry = session["entry"]
    if entry == "continue_chat":
        more = {} if session["given_tools"] is None else {"tools": session["given_tools"]}
        came["answer"] = _written(engine.continue_chat(messages, **known, **more))
    elif entry == "get_response":
        came["pieces"].append(engine.get_response(messages[-1].content, **known))
    else:
        for piece in getattr(engine, entry)(messages, **known):
            came["pieces"].append(piece)


def main() -> None:
    which, source, target = sys.argv[1:4]
    LOG.set_level("CRITICAL")
    if which == "reference":
        from ovos_agentic_loop.native_toolcall import NativeToolCallEngine as Native
        from ovos_agentic_loop.react import ReActLoopEngine as ReAct
    else:
        from toolturn.ovos import NativeToolCallEngine as Native
        from toolturn.ovos import ReActLoopEngine as ReAct
    engines = {"native": Native, "react": ReAct}
    with Path(source).open(encoding="utf-8") as sessions, Path(target).open("w", encoding="utf-8") as outcomes:
        for line in sessions:
            outcomes.write(json.dumps(play(json.loads(line), engines)) + "\n")


if __name__ == "__main__":
    main()
