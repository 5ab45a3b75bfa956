"""Any OPM ToolBox is a set of tools."""

from __future__ import annotations

import asyncio
import copy
import gc
import threading
import time
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ovos_plugin_manager")

from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput
from ovos_utils.log import LOG
from pydantic import Field, field_validator

from toolturn import ChatMessage, ChatResponse, ToolCall, run_tool_loop_sync
from toolturn.ovos.toolboxes import Toolboxes, toolset_of
from toolturn.tools import ToolContext, ToolSet


class Words(ToolArguments):  # type: ignore[misc]
    text: str
    times: int = Field(1, ge=1, le=5)

    @field_validator("text")
    @classmethod
    def _known(cls, text: str) -> str:
        if text == "KeyError":
            raise KeyError("a validator broke")
        return text


class Echoed(ToolOutput):  # type: ignore[misc]
    text: str
    times: int = 1


class Box(ToolBox):  # type: ignore[misc]
    """A toolbox of one tool, whose function and schemas are given."""

    def __init__(
        self,
        call: Callable[..., Any] = lambda args: {"text": args.text},
        name: str = "echo",
        toolbox_id: str = "box",
        **schemas: Any,
    ) -> None:
        self.call, self.name, self.schemas = call, name, schemas
        self.discovered = 0
        super().__init__(toolbox_id=toolbox_id)

    def discover_tools(self) -> list[AgentTool]:
        self.discovered += 1
        known = {"argument_schema": Words, "output_schema": Echoed, **self.schemas}
        return [AgentTool(name=self.name, description="Echo a text.", tool_call=self.call, **known)]


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    for level in ("warning", "error"):
        monkeypatch.setattr(LOG, level, lambda text, *_: said.append(text))
    return said


def content(toolbox: Any, arguments: str = '{"text": "a"}', name: str = "echo", **options: Any) -> str:
    """What a model reads of a call in a turn."""
    tools = toolbox if isinstance(toolbox, ToolSet) else toolset_of(toolbox, **options)
    replies = iter([ChatResponse("", tool_calls=[ToolCall("c", name, arguments)]), ChatResponse("done")])

    async def model(messages: Any, tools: Any) -> ChatResponse:
        return next(replies)

    result = run_tool_loop_sync([ChatMessage("user", "go")], tools, model)
    (record,) = result.tool_calls
    text = record.message.content
    assert isinstance(text, str)
    return text


# --- arguments and results -----------------------------------------------------------------


def test_a_result_is_the_compact_json_of_its_output_model() -> None:
    assert content(Box()) == '{"text":"a","times":1}'
    assert content(
        Box(lambda args: Echoed(text=args.text * args.times, times=args.times)), '{"text":"a","times":3}'
    ) == ('{"text":"aaa","times":3}')


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{}", "text: Field required"),
        ('{"text": 5}', "text: Input should be a valid string"),
        ('{"text": "a", "times": 9}', "times: Input should be less than or equal to 5"),
        ('{"text": "KeyError"}', "KeyError: 'a validator broke'"),
        ('{"text": ', "JSON"),
    ],
)
def test_arguments_that_do_not_fit_are_told_field_by_field_and_run_nothing(arguments: str, told: str) -> None:
    ran: list[Any] = []
    text = content(Box(ran.append), arguments)
    assert "invalid_tool_arguments" in text
    assert told in text
    assert ran == []


def test_unknown_arguments_are_as_the_schema_wants_them() -> None:
    assert content(Box(), '{"text": "a", "colour": "red"}') == '{"text":"a","times":1}'


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("plain text", "plain text"),
        (None, "ok"),
        ([1, {"b": 2}], '[1,{"b":2}]'),
        (7.5, "7.5"),
        (True, "true"),
        (float("nan"), "null"),
        (Words(text="of another class"), '{"text":"of another class","times":1}'),
    ],
)
def test_what_opm_refuses_after_the_call_was_made_is_taken(given: Any, text: str) -> None:
    assert content(Box(lambda args: given)) == text


def test_a_result_without_a_json_form_is_text_all_the_same() -> None:
    assert "\\ud800" in content(Box(lambda args: Echoed(text="half \ud800")))
    assert "object" in content(Box(lambda args: [object()]))


def test_a_result_that_is_not_what_was_promised_is_said_with_the_field() -> None:
    text = content(Box(lambda args: {"words": 1}))
    assert "the call was made, but its result is not what it should be: text: Field required" in text


def test_a_coroutine_function_is_awaited() -> None:
    async def call(args: Any) -> Any:
        await asyncio.sleep(0)
        return {"text": args.text}

    async def bad(args: Any) -> Any:
        raise KeyError("later")

    assert content(Box(call)) == '{"text":"a","times":1}'
    assert "KeyError: 'later'" in content(Box(bad))


def test_the_text_of_an_adapted_protocol_stands_once_and_its_failure_is_one() -> None:
    class Adapted(ToolOutput):  # type: ignore[misc]
        content: str = ""
        is_error: bool = False
        raw: list[dict[str, Any]] = Field(default_factory=list)

    block = {"type": "text", "text": "22 degrees"}
    good = Box(lambda args: Adapted(content="22 degrees", raw=[block]), output_schema=Adapted)
    assert content(good) == "22 degrees"
    image = {"type": "image", "data": "A" * 5000}
    assert content(Box(lambda args: Adapted(content="", raw=[image]), output_schema=Adapted)) == "[image]"
    bad = Box(lambda args: {"content": "no such city", "is_error": True}, output_schema=Adapted)
    assert content(bad) == '{"error": "tool_error", "detail": "no such city"}'


# --- failures --------------------------------------------------------------------------------


def failing(exc: BaseException) -> Callable[[Any], Any]:
    def call(args: Any) -> Any:
        raise exc

    return call


@pytest.mark.parametrize(
    ("exc", "told"),
    [
        (KeyError("kitchen"), "KeyError: 'kitchen'"),
        (ValueError(""), '"ValueError"'),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError"),
        (StopIteration("x"), "StopIteration: x"),
        (RuntimeError("x" * 5000), "…"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
)
def test_the_cause_of_a_failure_is_told_and_logged(exc: BaseException, told: str, warnings: list[str]) -> None:
    text = content(Box(failing(exc)))
    assert "tool_error" in text
    assert told in text or told in text.encode().decode("unicode_escape")
    assert len(text) < 700
    assert len(warnings) == 1
    assert "'echo' of the toolbox box failed" in warnings[0]


def test_the_text_of_an_exception_can_be_kept_from_the_model(warnings: list[str]) -> None:
    text = content(Box(failing(KeyError("password 1234"))), causes=False)
    assert "1234" not in text
    assert "KeyError" in text
    assert "1234" in warnings[0]


class Guarded(Box):
    """A toolbox with a wrapper of its own around calls."""

    def call_tool(self, name: str, tool_kwargs: Any) -> Any:
        if tool_kwargs == {"text": "forbidden"}:
            raise PermissionError("not here")
        return super().call_tool(name, tool_kwargs)


def test_a_wrapper_of_the_toolbox_is_kept_and_what_opm_hides_is_told(warnings: list[str]) -> None:
    assert content(Guarded()) == '{"text":"a","times":1}'
    assert "PermissionError: not here" in content(Guarded(), '{"text": "forbidden"}')
    assert "KeyError: 'kitchen'" in content(Guarded(failing(KeyError("kitchen"))))
    assert "text: Field required" in content(Guarded(), "{}")
    assert "its result is not what it should be: text: Field required" in content(Guarded(lambda args: {}))
    assert "unexpected type: str" in content(Guarded(lambda args: "text"))


def test_a_wrapper_that_was_put_on_one_object_is_kept_too() -> None:
    box = Box()
    box.call_tool = lambda name, kwargs: Echoed(text="wrapped")
    assert content(box) == '{"text":"wrapped","times":1}'


def test_a_call_that_takes_too_long_is_given_up(warnings: list[str]) -> None:
    release = threading.Event()
    try:
        box = Box(lambda args: release.wait(30))
        began = time.monotonic()
        tools = toolset_of(box, timeout=0.05)
        tool = tools.get("echo")
        assert tool is not None
        with pytest.raises(TimeoutError):
            asyncio.run(tool.execute(tool.validate('{"text": "a"}'), grace=0.05))
        assert time.monotonic() - began < 10
    finally:
        release.set()


def test_calls_run_beside_the_event_loop() -> None:
    here: list[int] = []
    content(Box(lambda args: here.append(threading.get_ident())))
    assert here != [threading.get_ident()]


def test_a_tool_that_asks_for_it_is_told_the_context() -> None:
    def call(args: Any, context: ToolContext | None = None) -> Any:
        assert context is not None
        return f"{context.session} {context.language}"

    tool = toolset_of(Box(call)).get("echo")
    assert tool is not None
    context = ToolContext(session="kitchen", language="de-AT")
    assert asyncio.run(tool.execute(tool.validate('{"text": "a"}'), context=context)) == "kitchen de-AT"


# --- one conversion ----------------------------------------------------------------------------


def test_a_toolbox_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box()
    tools = toolset_of(box)
    assert toolset_of(box) is tools
    assert toolset_of(box).definitions is tools.definitions
    box.refresh_tools()  # the same tools anew, as whenever somebody asks on the message bus
    assert toolset_of(box) is tools


def test_a_toolbox_whose_tools_change_is_converted_again_and_calls_what_is_there_now() -> None:
    box = Box()
    tools = toolset_of(box)
    box.call = lambda args: "newer"
    box.refresh_tools()
    assert content(tools) == "newer"
    box.name = "other"
    box.refresh_tools()
    assert toolset_of(box).names == ("other",)
    assert "does not have this tool any more" in content(tools)


def test_options_have_sets_of_their_own_and_not_without_end() -> None:
    box = Box()
    assert toolset_of(box, timeout=1) is toolset_of(box, timeout=1)
    assert toolset_of(box, timeout=1) is not toolset_of(box, timeout=2)
    for number in range(1, 50):
        toolset_of(box, timeout=number)
    assert len(vars(box)["_toolturn_tools"][1].sets) <= 8
    tool = toolset_of(box, effect="none", parallel=True, approval=True).get("echo")
    assert tool is not None
    assert tool.traits.effect == "none"
    assert tool.traits.parallel
    assert tool.approval is True


def test_an_unknown_name_never_makes_a_toolbox_look_for_tools() -> None:
    box = Box()
    assert "unknown_tool" in content(box, name="made_up")
    assert box.discovered == 1


def test_what_is_kept_dies_with_the_toolbox_and_does_not_go_into_its_copies() -> None:
    box = Box()
    toolset_of(box)
    other = copy.copy(box)
    other.call = lambda args: "of the copy"
    other.refresh_tools()
    assert toolset_of(other) is not toolset_of(box)
    assert content(other) == "of the copy"
    deep = copy.deepcopy(box)
    assert toolset_of(deep) is not toolset_of(box)
    gone = weakref.ref(box)
    del box, other, deep
    gc.collect()
    assert gone() is None


def test_threads_that_come_at_once_get_one_set() -> None:
    box, start, found = Box(), threading.Barrier(8), []

    def work() -> None:
        start.wait(10)
        found.append(toolset_of(box))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len({id(tools) for tools in found}) == 1


def test_a_toolbox_that_could_not_discover_when_it_was_made_is_asked_once_more_and_aloud(warnings: list[str]) -> None:
    class Late(Box):
        ready = False

        def discover_tools(self) -> list[AgentTool]:
            if not self.ready:
                raise ConnectionError("the server is not there")
            return super().discover_tools()

    box = Late()
    assert toolset_of(box).names == ()
    assert toolset_of(box).names == ()
    assert warnings == ["the toolbox box has no tools: ConnectionError: the server is not there"]
    later = Late()
    later.ready = True
    assert toolset_of(later).names == ("echo",)


def test_one_bad_tool_is_left_out_with_its_name(warnings: list[str]) -> None:
    class Two(Box):
        def discover_tools(self) -> list[AgentTool]:
            (good,) = super().discover_tools()
            bad = AgentTool("bad", "", 5, Echoed, self.call)
            nameless = AgentTool("", "", Words, Echoed, self.call)
            return [bad, nameless, good]

    assert toolset_of(Two()).names == ("echo",)
    assert len(warnings) == 2
    assert "'bad' of the toolbox box is left out" in warnings[0]


def test_a_tool_without_a_description_says_where_it_is_from() -> None:
    box = Box()
    box.tools["echo"].description = " "
    assert toolset_of(box).definitions[0].description == "echo of box"


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": "5"}, {"effect": "twice"}])
def test_options_out_of_their_range_are_refused(options: Any) -> None:
    with pytest.raises(ValueError):
        toolset_of(Box(), **options)


# --- objects that only have the methods --------------------------------------------------------


class Duck:
    toolbox_id = "duck"
    __slots__ = ()

    @property
    def tool_json_list(self) -> list[dict[str, Any]]:
        return [{"name": "quack", "description": "Quack.", "argument_schema": {"type": "object", "properties": {}}}]

    def get_tool(self, name: str) -> Any:
        raise AssertionError("nobody needs to look")

    def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        return {"called": name, **arguments}


def test_an_object_with_the_methods_of_a_toolbox_is_one() -> None:
    assert content(Duck(), '{"a": 1}', "quack") == '{"called":"quack","a":1}'


def test_an_object_that_only_discovers_is_asked_once() -> None:
    box = Box()

    class Discovering:
        asked = 0

        def discover_tools(self) -> list[AgentTool]:
            self.asked += 1
            return list(box.tools.values())

        def call_tool(self, name: str, arguments: Any) -> Any:
            return box.call_tool(name, arguments)

    other = Discovering()
    assert content(other) == '{"text":"a","times":1}'
    assert content(other, "{}").startswith('{"error": "invalid_tool_arguments"')
    assert other.asked == 1


def test_tools_as_a_list_are_taken() -> None:
    box = Box()
    other = SimpleNamespace(tools=list(box.tools.values()), call_tool=box.call_tool)
    assert content(other) == '{"text":"a","times":1}'


@pytest.mark.parametrize("thing", [None, 5, "box", object(), SimpleNamespace(tools=3)])
def test_what_is_no_toolbox_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="is no toolbox"):
        toolset_of(thing)


# --- several toolboxes -------------------------------------------------------------------------


def test_of_tools_of_one_name_the_first_is_there(warnings: list[str]) -> None:
    boxes = Toolboxes([Box(lambda args: "one", toolbox_id="one"), Box(lambda args: "two", toolbox_id="two")])
    tools = boxes.tools
    assert tools.names == ("echo",)
    assert boxes.tools is tools
    assert content(tools) == "one"
    assert warnings == ["the tool 'echo' of two is left out: one has one of this name"]


def test_tools_of_one_name_can_have_the_toolbox_before_it() -> None:
    boxes = Toolboxes(
        [Box(lambda args, n=n: str(n), toolbox_id="a.b") for n in range(2)] + [Box(name="other")], clashes="prefix"
    )
    names = boxes.tools.names
    assert len(names) == 3
    assert "other" in names
    assert all(name.replace("_", "").isalnum() for name in names)
    assert {content(boxes.tools, name=name) for name in names[:2]} == {"0", "1"}


def test_several_toolboxes_follow_a_change_of_one() -> None:
    first, second = Box(name="one"), Box(name="two")
    boxes = Toolboxes([first, second])
    assert boxes.tools.names == ("one", "two")
    second.name = "three"
    second.refresh_tools()
    assert boxes.tools.names == ("one", "three")


def test_a_toolbox_that_can_not_be_read_takes_no_other_down(warnings: list[str]) -> None:
    class Broken:
        toolbox_id = "broken"

        @property
        def tools(self) -> Any:
            raise OSError("the disk is gone")

    boxes = Toolboxes([Broken(), Box()])
    assert boxes.tools.names == ("echo",)
    assert boxes.tools.names == ("echo",)
    assert warnings == ["the toolbox broken has no tools: OSError: the disk is gone"]


def test_clashes_are_decided_in_one_of_two_ways() -> None:
    with pytest.raises(ValueError, match="'first' or 'prefix'"):
        Toolboxes([], clashes="last")  # type: ignore[arg-type]


def test_the_real_toolboxes_of_the_agentic_loop_are_tools() -> None:
    loop = pytest.importorskip("ovos_agentic_loop.tools.math")
    clock = pytest.importorskip("ovos_agentic_loop.tools.clock")
    boxes = Toolboxes([loop.MathToolBox(), clock.ClockToolBox()])
    assert len(boxes.tools) == 5
    assert '"result":391.0' in content(boxes.tools, '{"expression": "17*23"}', "evaluate_expression")
    assert '"timezone"' in content(boxes.tools, "{}", "get_current_datetime")
