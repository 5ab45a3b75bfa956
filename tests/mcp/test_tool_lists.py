"""Which tools are offered, under which names, and what is said of those that are not."""

from __future__ import annotations

import pytest

from toolturn.mcp import McpServers, McpTool, Problem, mcp_servers

from .support import bad, content, observe, one, run


def listed(servers: McpServers) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The names of the tools and the problems of servers that are started for it."""

    async def main() -> tuple[tuple[str, ...], tuple[Problem, ...]]:
        async with servers:
            return servers.tools.names, servers.problems

    return run(main())


def texts(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]


# --- lists ------------------------------------------------------------------------------


def test_all_pages_are_asked_for() -> None:
    assert listed(one(bad("pages"))) == (("tool0", "tool1", "tool2"), ())


def test_a_page_that_leads_back_to_itself_ends_the_list() -> None:
    names, problems = listed(one(bad("same-page")))
    assert names == ("echo", "other")
    assert texts(problems) == ["box: its list of tools leads back to where it was; what came until then is used"]


def test_a_list_without_an_end_is_cut() -> None:
    names, problems = listed(one(bad("endless-pages")))
    assert names == ("echo", "other")
    assert texts(problems) == ["box: its list of tools has more than 200 pages; the first ones are used"]


def test_a_tool_that_can_not_be_used_costs_no_other() -> None:
    names, problems = listed(one(bad("odd-tools")))
    assert names == ("no-schema", "null-schema", "untyped", "odd-hints", "odd_name_with_blanks")
    told = texts(problems)
    assert "it refers to https://example.org/s.json, which is outside of it, so it is left out" in told.pop(4)
    assert told == [
        "box: entry 1 of its list has no name",
        "box: entry 2 of its list has no name",
        "box: the schema of its tool 'list-schema' is no object",
        "box: the schema of its tool 'array' is not that of an object",
        "box: the schema of tool 'deep' is nested too deeply, so it is left out",
    ]


def test_a_tool_that_only_runs_as_a_task_is_left_out_and_named() -> None:
    names, problems = listed(one(bad("task")))
    assert names == ("echo", "other")
    assert texts(problems) == ["box: its tool 'research' only runs as a task, so it is left out"]


def test_a_tool_without_a_description_has_one_all_the_same() -> None:
    async def main() -> None:
        async with one(bad("odd-tools")) as servers:
            assert {d.name: d.description for d in servers.tools.definitions}["untyped"] == "untyped of the server box"
            assert {d.name: d.parameters for d in servers.tools.definitions}["no-schema"] == {"type": "object"}

    run(main())


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("no-list", "it offers no tools"),
        ("refuses-list", "it does not tell its tools: come back later"),
        ("dies-on-list", "its process ended with code 4"),
    ],
)
def test_a_server_without_a_list_is_named(way: str, text: str) -> None:
    names, [problem] = listed(one(bad(way)))
    assert (names, problem.text) == ((), text)


# --- filters ----------------------------------------------------------------------------


def test_allowed_and_denied_tools_are_names_or_patterns_and_those_that_miss_are_named() -> None:
    names, problems = listed(one(bad("hints", allow=("s*", "raed"), deny=("send", "delete_*"))))
    assert names == ("set",)
    assert [problem.kind for problem in problems] == ["filter", "filter"]
    assert texts(problems) == [
        "box: 'delete_*' in its allow or deny list matches no tool",
        "box: 'raed' in its allow or deny list matches no tool",
    ]


def test_a_list_that_allows_nothing_offers_nothing() -> None:
    assert listed(one(bad("hints", allow=()))) == ((), ())


# --- names ------------------------------------------------------------------------------

TWO = {"mail": bad("fine"), "chat": bad("fine"), "box": bad("hints")}


def test_only_names_that_two_servers_have_get_a_prefix() -> None:
    names, problems = listed(mcp_servers(TWO))
    assert names == ("mail__echo", "mail__other", "chat__echo", "chat__other", "read", "set", "send")
    assert problems == ()


def test_each_name_gets_a_prefix_by_choice() -> None:
    names, _ = listed(mcp_servers({"box": bad("hints")}, names="prefixed"))
    assert names == ("box__read", "box__set", "box__send")


def test_two_tools_of_one_name_are_an_error_by_choice() -> None:
    with pytest.raises(ValueError, match="the tool name 'echo' is used by chat and mail"):
        listed(mcp_servers(TWO, names="plain"))


def test_a_name_that_another_set_has_gets_a_prefix() -> None:
    names, _ = listed(mcp_servers({"box": bad("hints")}, reserved=["Read", "other"]))
    assert names == ("box__read", "set", "send")
    with pytest.raises(ValueError, match="the tool name 'read' is used by box and another tool set"):
        listed(mcp_servers({"box": bad("hints")}, reserved=["read"], names="plain"))


def test_a_long_name_is_cut_and_its_tool_is_still_called() -> None:
    async def main() -> None:
        async with mcp_servers({"x" * 80: bad("fine")}, names="prefixed") as servers:
            name = servers.tools.names[0]
            assert len(name) <= 64
            assert content(await observe(servers.tools, name)) == "hi"

    run(main())


def test_what_is_no_server_or_no_name_is_refused() -> None:
    with pytest.raises(TypeError, match="'box' must be a Stdio or an Http, not str"):
        mcp_servers({"box": "python"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="must not be empty"):
        mcp_servers({" ": bad("fine")})
    with pytest.raises(ValueError, match="names must be"):
        mcp_servers({}, names="last-wins")  # type: ignore[arg-type]


# --- hints ------------------------------------------------------------------------------


def test_hints_decide_the_effect_where_they_are_trusted() -> None:
    async def main() -> None:
        for trust, expected in ((True, ["none", "keyed", "once"]), (False, ["once", "once", "once"])):
            async with one(bad("hints", trust_hints=trust)) as servers:
                traits = servers.tools.traits
                assert [traits[name].effect for name in ("read", "set", "send")] == expected
                assert [traits[name].parallel for name in ("read", "set", "send")] == [trust, False, False]
                tool = servers.tools.get("read")
                assert isinstance(tool, McpTool)
                assert (tool.server, tool.annotations) == ("box", {"readOnlyHint": True})

    run(main())
