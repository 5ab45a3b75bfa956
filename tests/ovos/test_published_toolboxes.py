"""Any set of tools is an OPM ToolBox: for engines that call it, and on the message bus."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

pytest.importorskip("ovos_plugin_manager")

from ovos_bus_client import Message
from ovos_plugin_manager.templates.agent_tools import ToolArguments, ToolBox, ToolOutput
from ovos_utils.fakebus import FakeBus
from pydantic import BaseModel

from toolturn.errors import ToolError
from toolturn.messages import ImagePart, TextPart
from toolturn.ovos.published import toolbox_of
from toolturn.ovos.toolboxes import toolset_of
from toolturn.tools import Tool, ToolContext, ToolSet, tool, tool_from_schema


@tool(effect="none", parallel=True)
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b


@tool
async def greet(name: str, context: ToolContext) -> str:
    """Greet somebody."""
    await asyncio.sleep(0)
    return f"Hello {name}, {context.session} {context.language}"


@tool
def fail(how: str) -> str:
    """Fail."""
    if how == "tool":
        raise ToolError("the door is locked")
    if how == "exit":
        raise SystemExit(2)
    if how == "cancel":
        raise asyncio.CancelledError
    raise KeyError(how)


class Request(BaseModel):
    city: str


class Weather(BaseModel):
    city: str
    degrees: float


weather = Tool("weather", "The weather.", Request, Weather, lambda request: Weather(city=request.city, degrees=21.5))


def box(*tools: Any, config: Any = None, bus: Any = None) -> Any:
    return toolbox_of(ToolSet(tools or (add, greet, fail, weather)), "tests", config, bus)


# --- called by an engine ---------------------------------------------------------------------


def test_it_is_a_toolbox_whose_tools_have_their_own_schemas() -> None:
    made = box()
    assert isinstance(made, ToolBox)
    specs = {spec["function"]["name"]: spec["function"] for spec in ToolBox.normalize_tools([made])}
    assert list(specs) == ["add", "greet", "fail", "weather"]
    assert specs["add"]["parameters"] == add.parameters
    assert specs["add"]["description"] == add.description
    assert json.loads(json.dumps(made.tool_json_list)) == made.tool_json_list
    assert issubclass(made.get_tool("add").argument_schema, ToolArguments)


def test_a_schema_that_was_handed_out_can_be_changed_without_harm() -> None:
    made = box()
    made.tool_json_list[0]["argument_schema"].clear()
    assert made.tool_json_list[0]["argument_schema"] == add.parameters != {}


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("add", {"a": 2, "b": 3}, 5),
        ("add", {"a": 2}, 3),
        ("greet", {"name": "Ann"}, "Hello Ann, None None"),
        ("weather", {"city": "Graz"}, {"city": "Graz", "degrees": 21.5}),
    ],
)
def test_a_call_gives_the_result(name: str, arguments: dict[str, Any], result: Any) -> None:
    made = box()
    given = made.call_tool(name, arguments)
    assert isinstance(given, ToolOutput)
    assert given.model_dump() == {"result": result}
    assert made.call_tool(name, made.get_tool(name).argument_schema(**arguments)) == given
    ToolBox.validate_output(made.get_tool(name), given.model_dump())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "a: Field required"),
        ({"a": "x"}, "a: Input should be a valid integer"),
        ({"a": 1, "c": 2}, "c: Extra inputs are not permitted"),
        ({"a": object()}, "not JSON serializable"),
        ({"a": float("nan")}, "NaN"),
    ],
)
def test_arguments_that_do_not_fit_are_told_field_by_field(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="Tool input validation failed for 'add' in ToolBox 'tests'") as caught:
        box().call_tool("add", arguments)
    assert told in str(caught.value)


@pytest.mark.parametrize("arguments", [None, "text", 5, Request(city="x")])
def test_what_are_no_arguments_is_refused(arguments: Any) -> None:
    with pytest.raises(RuntimeError, match="not with its arguments"):
        box().call_tool("add", arguments)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("tool", ": the door is locked"),
        ("exit", "SystemExit: 2"),
        ("cancel", "was cancelled"),
        ("kitchen", "KeyError: 'kitchen'"),
    ],
)
def test_a_failure_is_opms_with_the_cause_in_its_text(how: str, told: str) -> None:
    with pytest.raises(RuntimeError, match="Tool execution failed for 'fail' in ToolBox 'tests'") as caught:
        box().call_tool("fail", {"how": how})
    assert told in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("name", ["nope", "", None, 5, "x" * 10_000])
def test_an_unknown_name_is_refused_with_the_names_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"Unknown tool .*known: add, greet, fail, weather") as caught:
        box().call_tool(name, {})
    assert len(str(caught.value)) < 300


def test_a_json_schema_tool_is_published_with_its_schema() -> None:
    pytest.importorskip("jsonschema_rs")
    names = ["self", "model_config", "copy", "_id", "a b", "ünï", "tool", "_request", "class"]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    made = box(tool_from_schema("odd.name", "Odd.", schema, lambda arguments: arguments))
    arguments = {name: number for number, name in enumerate(names)}
    assert made.call_tool("odd.name", arguments).result == arguments
    assert made.openai_tools[0]["function"]["parameters"] == schema
    with pytest.raises(ValueError, match="copy: "):
        made.call_tool("odd.name", {**arguments, "copy": "x"})


def test_tools_run_on_one_loop_whichever_thread_they_are_called_from() -> None:
    loops: list[Any] = []

    @tool
    async def where() -> None:
        """Say where."""
        loops.append(asyncio.get_running_loop())

    made = box(where)
    threads = [threading.Thread(target=made.call_tool, args=("where", {})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    async def within() -> None:
        await asyncio.to_thread(made.call_tool, "where", {})

    asyncio.run(within())
    assert len(loops) == 5
    assert len(set(map(id, loops))) == 1


def test_a_tool_may_call_a_published_one() -> None:
    inner = box(add)

    @tool
    async def outer(a: int) -> int:
        """Add one."""
        return int(inner.call_tool("add", {"a": a}).result)

    assert box(outer).call_tool("outer", {"a": 4}).result == 5


def test_images_of_a_result_are_named_because_opm_has_no_place_for_them() -> None:
    @tool
    def camera() -> list[Any]:
        """Look."""
        return [TextPart("the door"), ImagePart("data:image/png;base64,AAAA")]

    assert box(camera).call_tool("camera", {}).result == "the door\n[image]"


def test_a_tool_without_a_bound_has_that_of_the_section() -> None:
    @tool
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(30)
        return "late"

    with pytest.raises(RuntimeError, match=r"took longer than 0\.02 seconds"):
        box(slow, config={"timeout": 0.02}).call_tool("slow", {})


@pytest.mark.parametrize("timeout", [0, -1, "5", True, float("inf"), float("nan"), []])
def test_a_bound_that_is_none_is_refused_when_the_toolbox_is_made(timeout: Any) -> None:
    with pytest.raises(ValueError, match="tests: timeout must be"):
        box(config={"timeout": timeout})


def test_tools_that_change_are_published_as_they_are_now() -> None:
    now = ToolSet([add])
    made = toolbox_of(lambda: now, "tests")
    before = made.tools
    assert made.tools is before
    now = ToolSet([add, greet])
    assert list(made.tools) == ["add", "greet"]
    assert made.discover_tools() == list(made.tools.values())


def test_tools_that_can_not_be_had_are_no_silence() -> None:
    def broken() -> ToolSet:
        raise OSError("the disk is gone")

    made = toolbox_of(broken, "tests")  # made all the same: what is missing now may be there later
    with pytest.raises(OSError, match="the disk is gone"):
        made.tool_json_list  # noqa: B018


# --- there and back --------------------------------------------------------------------------


def test_a_published_set_comes_back_as_it_was() -> None:
    tools = ToolSet([add, greet])
    made = toolbox_of(tools, "tests")
    assert toolset_of(made) is tools
    bounded = toolset_of(made, timeout=3)
    assert [each.timeout for each in bounded] == [3, 3]
    assert toolset_of(made, timeout=3) is bounded
    assert add.timeout is None
    assert bounded.traits["add"] == tools.traits["add"]


def test_a_published_toolbox_with_a_wrapper_of_its_own_is_called_through_it() -> None:
    from toolturn.ovos.published import PublishedToolBox

    class Wrapped(PublishedToolBox):
        def call_tool(self, name: str, tool_kwargs: Any) -> Any:
            return super().call_tool(name, {"a": 41})

    again = toolset_of(Wrapped(ToolSet([add]), "tests")).get("add")
    assert again is not None
    assert asyncio.run(again.invoke('{"a": 1}')).content == '{"result":42}'


def test_the_reference_engine_runs_published_tools() -> None:
    engines = pytest.importorskip("ovos_agentic_loop.native_toolcall")
    engine = engines.NativeToolCallEngine({})
    engine.load_toolboxes([box()])
    assert engine._call_tool("add", {"a": 2}) == "result=3"
    assert "the door is locked" in engine._call_tool("fail", {"how": "tool"})
    assert "a: Field required" in engine._call_tool("add", {})


# --- on the message bus ------------------------------------------------------------------------


def asked(bus: FakeBus, topic: str, data: dict[str, Any], context: Any = None) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    bus.on(f"{topic}.response", lambda message: heard.append(message.data))
    bus.emit(Message(topic, data, context or {}))
    return heard


@pytest.mark.parametrize("rule", [True, lambda arguments: arguments["text"] == "x", lambda arguments: 1 / 0])
def test_a_call_that_wants_approval_is_not_run_where_nobody_can_be_asked(rule: Any) -> None:
    ran: list[str] = []

    @tool(approval=rule)
    def send(text: str) -> str:
        """Send a text."""
        ran.append(text)
        return "sent"

    box = toolbox_of(ToolSet([send]), "post")
    with pytest.raises(RuntimeError, match="it needs somebody's approval"):
        box.call_tool("send", {"text": "x"})
    assert ran == []


def test_a_call_that_by_its_arguments_wants_none_is_run() -> None:
    @tool(approval=lambda arguments: arguments["text"] == "x")
    def send(text: str) -> str:
        """Send a text."""
        return "sent"

    assert toolbox_of(ToolSet([send]), "post").call_tool("send", {"text": "y"}).result == "sent"


def test_it_is_discovered_on_the_message_bus() -> None:
    bus = FakeBus()
    box(bus=bus)
    (answer,) = asked(bus, "ovos.persona.tools.discover", {})
    assert answer["toolbox_id"] == "tests"
    assert {each["toolbox_id"] for each in answer["tools"]} == {"tests"}
    assert [each["name"] for each in answer["tools"]] == ["add", "greet", "fail", "weather"]
    json.dumps(answer)


def test_it_is_called_on_the_message_bus() -> None:
    bus = FakeBus()
    box(bus=bus)
    call = {"toolbox_id": "tests", "name": "weather", "kwargs": {"city": "Graz"}}
    result = {"result": {"result": {"city": "Graz", "degrees": 21.5}}, "toolbox_id": "tests"}
    assert asked(bus, "ovos.persona.tools.call", call) == [result]
    assert asked(bus, "ovos.persona.tools.tests.call", call) == [result]
    assert asked(bus, "ovos.persona.tools.call", {**call, "toolbox_id": "another"}) == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"name": "add", "kwargs": {}}, "ValueError: Tool input validation failed"),
        ({"name": "fail", "kwargs": {"how": "tool"}}, "the door is locked"),
        ({"name": "fail", "kwargs": {"how": "exit"}}, "SystemExit"),
        ({"name": "nope"}, "ValueError: Unknown tool 'nope'"),
        ({}, "ValueError: Unknown tool ''"),
        ({"name": "add", "kwargs": None}, "RuntimeError: Tool 'add' called with NoneType"),
    ],
)
def test_a_failure_on_the_message_bus_is_an_answer(data: dict[str, Any], told: str) -> None:
    bus = FakeBus()
    box(bus=bus)
    (answer,) = asked(bus, "ovos.persona.tools.call", {"toolbox_id": "tests", **data})
    assert told in answer["error"]


def test_a_tool_that_asks_for_it_is_told_the_session_and_language_of_the_message() -> None:
    bus = FakeBus()
    box(bus=bus)
    call = {"toolbox_id": "tests", "name": "greet", "kwargs": {"name": "Ann"}}
    context = {"session": {"session_id": "kitchen", "lang": "de-AT"}}
    (answer,) = asked(bus, "ovos.persona.tools.call", call, context)
    assert answer["result"] == {"result": "Hello Ann, kitchen de-AT"}
    for odd in ({"session": 5}, {"session": {"session_id": 7, "lang": []}, "lang": 3}):
        bus.emit(Message("ovos.persona.tools.call", call, odd))


def test_a_toolbox_that_was_unbound_answers_no_more() -> None:
    bus = FakeBus()
    made = box(bus=bus)
    made.unbind()
    assert asked(bus, "ovos.persona.tools.discover", {}) == []
