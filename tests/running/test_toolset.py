"""ToolSet: tools by the names a model calls them by, in order, and never two of one name."""

from __future__ import annotations

from typing import Any

import pytest

from toolturn import AsyncTool, Tool, ToolSet, run_tool_loop, tool_definitions
from toolturn.testing import ScriptedModel, calls

from .support import HELLO, Nothing, Word, counting, run


def _tool(name: str) -> Tool[Any, Any]:
    return counting(name)[0]


A, B, C = _tool("a"), _tool("b"), _tool("c")


async def _chunks(request: Nothing) -> Any:
    yield Word(word="a")


def test_a_set_of_nothing_is_empty() -> None:
    empty = ToolSet()
    assert (len(empty), list(empty), empty.items(), empty.names, empty.definitions) == (0, [], (), (), ())
    assert repr(empty) == "<ToolSet (empty)>"
    assert not empty


def test_a_set_keeps_its_order() -> None:
    tools = ToolSet([B, A, C])
    assert tools.names == ("b", "a", "c")
    assert list(tools) == [B, A, C]
    assert tools.items() == (("b", B), ("a", A), ("c", C))
    assert len(tools) == 3
    assert repr(tools) == "<ToolSet b, a, c>"


def test_a_tool_is_found_by_exactly_its_name() -> None:
    tools = ToolSet([A])
    assert tools.get("a") is A
    assert tools.get("A") is None
    assert tools.get("a ") is None


def test_a_set_contains_its_names_and_its_tools_and_nothing_else() -> None:
    tools = ToolSet([A])
    assert "a" in tools
    assert A in tools
    assert "b" not in tools
    assert B not in tools
    assert _tool("a") not in tools
    assert 7 not in tools


def test_a_mapping_gives_other_names() -> None:
    tools = ToolSet({"x": A, "y": A})
    assert tools.names == ("x", "y")
    assert [definition.name for definition in tools.definitions] == ["x", "y"]
    assert tools.get("a") is None
    assert A.name == "a"


def test_a_model_calls_a_tool_by_the_name_in_the_set() -> None:
    tool, runs = counting("a")
    result = run(run_tool_loop(HELLO, ToolSet({"x": tool}), ScriptedModel([calls(("x", "{}")), "done"])))
    assert runs == [0]
    assert result.tool_calls[0].status == "ok"


def test_a_set_may_be_made_of_a_set_and_of_a_generator() -> None:
    aliased = ToolSet({"x": A})
    assert ToolSet(aliased).names == ("x",)
    assert ToolSet(tool for tool in (A, B)).names == ("a", "b")


def test_definitions_are_made_once() -> None:
    tools = ToolSet([A, B])
    assert tools.definitions is tools.definitions
    assert tool_definitions(tools) is tools.definitions
    assert tool_definitions([A, B]) == tools.definitions


def test_traits_are_there_by_name_and_can_not_be_changed() -> None:
    tools = ToolSet({"x": A})
    assert dict(tools.traits) == {"x": A.traits}
    with pytest.raises(TypeError):
        tools.traits["x"] = B.traits  # type: ignore[index]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="duplicate tool name: a"):
        ToolSet([A, B, _tool("a")])


def test_the_same_tool_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="duplicate tool name: a"):
        ToolSet([A, A])


@pytest.mark.parametrize("name", ["", None, 7])
def test_an_alias_that_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="tool name must not be empty"):
        ToolSet({name: A})


@pytest.mark.parametrize("thing", [None, "a", lambda request: None, {"name": "a"}])
def test_what_is_no_tool_is_refused_by_its_type(thing: Any) -> None:
    with pytest.raises(TypeError, match=f"only finite Tool instances, not {type(thing).__name__}"):
        ToolSet([thing])


def test_a_streaming_tool_is_refused_with_the_way_out() -> None:
    streaming = AsyncTool("a", "It streams.", Nothing, Word, _chunks)
    with pytest.raises(TypeError, match=r"not AsyncTool \(use its as_tool\(\)\)"):
        ToolSet([streaming])  # type: ignore[list-item]
    assert ToolSet([streaming.as_tool()]).names == ("a",)


def test_two_sets_can_be_added() -> None:
    assert (ToolSet([A]) + ToolSet({"x": A})).names == ("a", "x")
    more, none = [B, C], list[Tool[Any, Any]]()
    assert (ToolSet([A]) + more).names == ("a", "b", "c")
    assert (ToolSet([A]) + none).names == ("a",)


def test_adding_leaves_both_as_they_were() -> None:
    left, right = ToolSet([A]), ToolSet([B])
    assert len(left + right) == 2
    assert (left.names, right.names) == (("a",), ("b",))


def test_adding_a_name_that_is_there_is_refused() -> None:
    with pytest.raises(ValueError, match="duplicate tool name: b"):
        ToolSet([A, B]) + ToolSet([B])


def test_namespaces_stand_before_the_names() -> None:
    tools = ToolSet.namespaced({"one": [A, B], "two": ToolSet({"x": A})})
    assert tools.names == ("one__a", "one__b", "two__x")


def test_a_namespace_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="tool namespace must not be empty"):
        ToolSet.namespaced({"": [A]})


def test_names_that_collide_over_namespaces_are_refused() -> None:
    with pytest.raises(ValueError, match="duplicate tool name: a__b__x"):
        ToolSet.namespaced({"a__b": [_tool("x")], "a": [_tool("b__x")]})


@pytest.mark.parametrize("thing", [None, "a", AsyncTool("a", "It streams.", Nothing, Word, _chunks)])
def test_what_is_no_tool_is_refused_in_a_namespace_too(thing: Any) -> None:
    with pytest.raises(TypeError, match=f"only finite Tool instances, not {type(thing).__name__}"):
        ToolSet.namespaced({"one": [thing]})


def test_a_set_can_not_be_given_new_attributes() -> None:
    with pytest.raises(AttributeError):
        ToolSet([A]).more = 1  # type: ignore[attr-defined]
