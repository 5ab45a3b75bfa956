"""A persona at work: its model behind a real server, its toolboxes, its MCP servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn import ChatMessage, ModelAuthenticationError, ToolLoopResult
from toolturn.conformance.replies import Call, Chat, Http
from toolturn.conformance.rows import Fault
from toolturn.conformance.server import LabServer
from toolturn.personas import PersonaError, load_persona, model_of, open_persona
from toolturn.personas.boxes import may_of_box, tools_of
from toolturn.personas.inspecting import Inspection, inspect_persona
from toolturn.personas.opening import with_system

from ..plugins.packages import TOOLS, install
from .documents import OWN, openai, persona

_SUM = Chat(None, (Call("calculator", '{"expression": "17 * 24"}'),), "tool_calls")
_WRITE = Chat(None, (Call("write_file", '{"path": "notes/a.txt", "content": "x"}'),), "tool_calls")
_REFUSES = Http(400, {"error": {"message": "registry/tiny does not support tools"}})
ROWS = [
    Fault("adds", "", (_SUM, Chat("408.")), ()),
    Fault("speaks", "", (Chat(None, (Call("speaks", "{}"),), "tool_calls"), Chat("German.")), ()),
    Fault("loops", "", (_SUM, _SUM, Chat("Enough.")), ()),
    Fault("writes", "", (_WRITE, Chat("Written.")), ()),
    Fault(
        "time", "", (Chat(None, (Call("get_current_time", '{"timezone": "UTC"}'),), "tool_calls"), Chat("Late.")), ()
    ),
    Fault(
        "refuses",
        "",
        (_REFUSES, Chat('Action: calculator\nAction Input: {"expression": "17 * 24"}'), Chat("Final Answer: 408.")),
        (),
    ),
    Fault(
        "text",
        "",
        (Chat('Action: calculator\nAction Input: {"expression": "17 * 24"}'), Chat("Final Answer: 408.")),
        (),
    ),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[LabServer]:
    with LabServer(ROWS) as lab:
        yield lab


def ask(document: Any, question: str = "What is 17 * 24?") -> tuple[ToolLoopResult, tuple[str, ...]]:
    async def main() -> tuple[ToolLoopResult, tuple[str, ...]]:
        async with asyncio.timeout(50), open_persona(load_persona(document)) as opened:
            return await opened.ask(question), opened.problems

    return asyncio.run(main())


def of(lab: LabServer, row: str, engine: dict[str, Any] | None = None, **brain: Any) -> dict[str, Any]:
    return openai({"api_url": lab.base_url, "key": f"run-{row}", "model": row, **brain}, engine)


def bodies(lab: LabServer, row: str) -> list[Any]:
    return [request.body for request in lab.received(row, f"run-{row}")]


def test_it_answers_with_its_tools_its_prompt_and_its_settings(lab: LabServer) -> None:
    document = of(lab, "adds", {"toolboxes": ["ovos-math-tools"], "system_prompt": "Be short."}, max_tokens=77)
    result, problems = ask(document)
    assert (result.content, [record.status for record in result.tool_calls], problems) == ("408.", ["ok"], ())
    first = bodies(lab, "adds")[0]
    assert first["messages"][0] == {"role": "system", "content": "Be short."}
    assert first["max_tokens"] == 77
    assert [tool["function"]["name"] for tool in first["tools"]] == ["calculator"]


def test_at_its_limit_there_is_an_answer(lab: LabServer) -> None:
    result, _ = ask(of(lab, "loops", {"toolboxes": ["math"], "max_iterations": 2}))
    assert (result.content, result.iterations, result.limit) == ("Enough.", 2, "iterations")


def test_a_server_that_takes_no_tools_is_offered_them_by_text(lab: LabServer) -> None:
    result, _ = ask(of(lab, "refuses", {"toolboxes": ["math"]}))
    assert (result.content, [record.status for record in result.tool_calls]) == ("408.", ["ok"])
    assert "demoted" in [repair.kind for repair in result.repairs]


def test_an_engine_of_text_never_offers_tools_to_the_server(lab: LabServer) -> None:
    document = of(lab, "text", {"toolboxes": ["math"]})
    document["handlers"], section = ["toolturn-react-loop"], document.pop("toolturn-native-toolcall-loop")
    document["toolturn-react-loop"] = section
    result, _ = ask(document)
    assert result.content == "408."
    assert all("tools" not in body for body in bodies(lab, "text"))


def test_files_are_written_only_where_the_persona_allows_it(lab: LabServer, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    section: dict[str, Any] = {"folders": [str(tmp_path / "notes")]}
    for write, status in ((False, "unknown_tool"), (True, "ok")):
        engine = {"toolboxes": ["files"], "files": section | {"write": write}}
        document = of(lab, "writes", engine, key=f"run-writes-{write}")
        result, _ = ask(document, "Write!")
        assert [record.status for record in result.tool_calls] == [status]
        assert (tmp_path / "notes" / "a.txt").exists() is write


def test_its_mcp_servers_run_while_it_is_open(lab: LabServer) -> None:
    pytest.importorskip("mcp_server_time")
    mcp = {
        "mcpServers": {
            "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
            "none": {"command": "/x"},
        }
    }
    result, problems = ask(of(lab, "time", {"toolboxes": ["mcp"], "mcp": mcp}), "What time is it?")
    assert [record.status for record in result.tool_calls] == ["ok"]
    assert [text for text in problems if text.startswith("none: ")]


def test_its_tools_are_told_the_language(lab: LabServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
    from toolturn import ToolContext, tool

    def speaks(context: ToolContext) -> str:
        \"\"\"Say which language.\"\"\"
        return str(context.language)

    def tools():
        return [tool(speaks)]
    """
    install(tmp_path, "tongue-pack", code, toolboxes={"tongue": "tools"})
    monkeypatch.syspath_prepend(str(tmp_path))
    result, _ = ask(of(lab, "speaks", {"toolboxes": ["tongue"], "lang": "de-AT"}), "Which?")
    assert [record.message.content for record in result.tool_calls] == ["de-AT"]


# --- toolboxes -----------------------------------------------------------------------------


def test_of_two_tools_of_one_name_the_first_is_there_and_the_other_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one-pack", "two-pack"):
        install(tmp_path, name, TOOLS, toolboxes={name[:3]: "tools"})
    monkeypatch.syspath_prepend(str(tmp_path))
    tools, left_out = tools_of(load_persona(persona({"toolboxes": ["one", "two", "math"]})))
    assert tools.names == ("calculator", "hello")
    assert [text.partition(": ")[2] for text in left_out] == ["the tool 'hello' of two is left out: one has one too"]
    both, left_out = tools_of(load_persona(persona({"toolboxes": ["one", "two"], "tool_names": "prefix"})))
    assert (both.names, left_out) == (("one__hello", "two__hello"), ())


def test_a_tool_without_a_bound_gets_the_one_of_its_section_or_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "one-pack", TOOLS, toolboxes={"one": "tools"})
    monkeypatch.syspath_prepend(str(tmp_path))
    for engine, seconds in (({}, 30.0), ({"tool_timeout": 4}, 4), ({"tool_timeout": None}, None)):
        tools, _ = tools_of(load_persona(persona({"toolboxes": ["one"], **engine})))
        assert [tool.timeout for tool in tools] == [seconds]


def test_a_toolbox_that_can_not_be_used_is_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "bad-pack", "raise ValueError('out of order')", toolboxes={"bad": "tools"})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PersonaError, match=r"\.toolboxes\[0\]: the toolbox 'bad' can not be used: .*bad-pack"):
        tools_of(load_persona(persona({"toolboxes": ["bad"]})))
    with pytest.raises(PersonaError, match="the toolbox 'files' can not be used"):
        tools_of(load_persona(persona({"toolboxes": ["files"], "files": {"folders": ["/nowhere/at/all"]}})))


# --- what it may do ------------------------------------------------------------------------


def levels(seen: Inspection) -> list[str]:
    return [finding.level for finding in seen.reading.findings]


def test_what_the_tools_may_do_is_said_before_any_of_them_runs(tmp_path: Path) -> None:
    notes, more = tmp_path / "notes", tmp_path / "more"
    notes.mkdir()
    more.mkdir()
    seen = inspect_persona(
        persona(
            {
                "toolboxes": ["clock", "files", "mcp"],
                "files": {"folders": {"n": str(notes), "m": str(more)}, "write": ["m"], "approval": True},
                "mcp": {
                    "mcpServers": {"a": {"command": "run me", "args": ["x y"]}, "b": {"url": "https://b.org/m?k=s"}}
                },
            }
        )
    )
    assert levels(seen) == []
    told = {ability.name: ability.may for ability in seen.abilities}
    assert told == {
        "clock": "reads this machine's clock",
        "files": f"reads files in {notes} and reads and writes files in {more}",
        "a": "starts the program 'run me' 'x y', which may do whatever you may",
        "b": "talks to b.org:443",
    }
    assert seen.brain == "sends the conversation to 127.0.0.1:11434"
    by_name = {ability.name: ability.tools for ability in seen.abilities}
    assert by_name["a"] is None
    writing = [tool for tool in by_name["files"] or () if tool.name == "write_file"]
    assert [(tool.effect, tool.approval) for tool in writing] == [("once", "always")]


@pytest.mark.parametrize(
    ("folders", "write", "told"),
    [
        ("/a", False, "reads files in /a"),
        (["/a", "/b"], True, "reads and writes files in /a, /b"),
        (["/a", "/b"], ["b"], "reads files in /a and reads and writes files in /b"),
        (None, False, "reads files"),
        (5, True, "reads files"),
    ],
)
def test_what_files_may_be_used_is_said_for_each_form_of_the_section(folders: Any, write: Any, told: str) -> None:
    document = persona({"toolboxes": ["files"], "files": {"folders": folders, "write": write}})
    (box,) = load_persona(document).boxes
    assert may_of_box(box) == told


def test_what_only_this_machine_lacks_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    seen = inspect_persona(persona({OWN: {"model": "groq:x"}}))
    assert levels(seen) == ["warning"]
    assert "set GROQ_API_KEY" in seen.reading.findings[0].text
    with pytest.raises(ModelAuthenticationError):
        model_of(load_persona(persona({OWN: {"model": "groq:x"}})))


def test_a_key_that_would_travel_in_clear_text_is_a_problem_unless_it_may() -> None:
    brain = {"api_url": "http://192.0.2.1:8080/v1", "key": "k"}
    seen = inspect_persona(openai(brain))
    assert levels(seen) == ["problem"]
    assert "would travel in clear text" in seen.reading.findings[0].text
    assert levels(inspect_persona(openai(brain | {"send_key_in_clear": True}))) == []


def test_a_placeholder_that_a_prompt_lacks_is_a_problem() -> None:
    document = persona({"react": {"prompt": "no tools here"}}, handler="toolturn-react-loop")
    assert levels(inspect_persona(document)) == ["problem"]


# --- the system message --------------------------------------------------------------------


def test_the_system_prompt_stands_once_before_the_conversation() -> None:
    user, system = ChatMessage("user", "Hi"), ChatMessage("system", "P")
    assert with_system(None, [user]) == [user]
    assert with_system("P", [user]) == [system, user]
    assert with_system("P", [system, user]) == [system, user]
    assert with_system("P", [ChatMessage("system", "Q"), user]) == [ChatMessage("system", "P\n\nQ"), user]
    assert with_system("P", with_system("P", [ChatMessage("system", "Q"), user])) == [
        ChatMessage("system", "P\n\nQ"),
        user,
    ]
