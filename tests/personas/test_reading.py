"""A persona document into a persona, and everything that is wrong with it."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import Limits, ModelSettings
from toolturn.mcp import Http, Stdio
from toolturn.personas import PersonaError, Reading, load_persona, read_persona
from toolturn.personas.keys import BRAINS, ENGINE, ENGINES, MCP, MEMORY, PERSONA

from .documents import ENGINE as LOOP
from .documents import OPENAI, OWN, openai, persona

NONE: dict[str, str] = {}


@pytest.fixture(scope="module", autouse=True)
def _without_openvoiceos() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolturn.personas.reading._of_ovos", frozenset)
        yield


def read(document: Any) -> Reading:
    return read_persona(document, environ=NONE)


def told(document: Any, level: str = "") -> list[str]:
    return [str(finding) for finding in read(document).findings if finding.level.startswith(level)]


# --- what it becomes -----------------------------------------------------------------------


def test_a_persona_of_a_model_alone() -> None:
    reading = read(persona())
    known = reading.persona
    assert known is not None
    assert reading.findings == ()
    assert (known.name, known.brain.model, known.dialect, known.boxes, known.servers) == (
        "Ada",
        "ollama:qwen3",
        "native",
        (),
        {},
    )
    assert known.limits == Limits(10, 64, result_bytes=16 * 1024, repeats=3)
    assert (known.system_prompt, known.settings) == (None, ModelSettings())


@pytest.mark.parametrize(("handler", "dialect"), list(ENGINES.items()))
def test_each_engine_is_understood(handler: str, dialect: str) -> None:
    assert load_persona(persona(handler=handler), environ=NONE).dialect == dialect


def test_limits_stand_in_the_section_of_the_engine() -> None:
    given = {
        "max_iterations": 3,
        "max_tool_calls": 5,
        "timeout": 20,
        "max_turn_tokens": 1000,
        "max_result_bytes": None,
        "max_repeats": None,
        "parallel_tools": 2,
    }
    known = load_persona(persona(given), environ=NONE)
    assert known.limits == Limits(3, 5, 20, None, 1000)
    assert known.concurrency == 2


def test_a_number_may_stand_there_as_text_and_a_warning_says_so() -> None:
    reading = read(persona({"max_iterations": "4", "timeout": "2.5"}))
    assert reading.persona is not None
    assert (reading.persona.limits.iterations, reading.persona.limits.deadline) == (4, 2.5)
    assert [finding.level for finding in reading.findings] == ["warning", "warning"]


def test_without_iterations_there_are_no_tools() -> None:
    known = load_persona(persona({"max_iterations": 0, "toolboxes": ["math"]}), environ=NONE)
    assert (known.limits.iterations, known.boxes) == (1, ())


def test_the_brain_of_openvoiceos_becomes_a_model_of_its_server() -> None:
    brain = {
        "api_url": "http://127.0.0.1:8080/v1",
        "key": "sk-x",
        "model": "qwen3",
        "max_tokens": 300,
        "temperature": 0.5,
        "top_p": 0.2,
        "stop_token": "END",
        "extra_params": {"seed": 4, "top_k": 3, "temperature": None},
        "system_prompt": "Be kind.",
        "allow_system_prompts": True,
    }
    known = load_persona(openai(brain), environ=NONE)
    assert known.brain.model == "http://127.0.0.1:8080/v1#qwen3"
    assert known.brain.options == {"api_key": "sk-x"}
    assert known.settings == ModelSettings(None, 300, ("END",), extra={"top_p": 0.2, "seed": 4, "top_k": 3})
    assert known.system_prompt == "Be kind."
    assert "sk-x" not in repr(known)


def test_its_address_and_model_have_the_defaults_that_they_have_there() -> None:
    assert load_persona(openai({}), environ=NONE).brain.model == "https://api.openai.com/v1#gpt-4o-mini"


def test_a_brain_can_be_the_handler_itself() -> None:
    known = load_persona({"name": "x", "handlers": [OWN], OWN: {"model": "ollama:qwen3"}}, environ=NONE)
    assert (known.brain.model, known.boxes) == ("ollama:qwen3", ())


def test_options_of_a_brain_of_our_own() -> None:
    brain = {"model": "groq:some", "key": "k", "temperature": 1, "stop": ["a", "b"], "seed": 3, "extra": {"top_k": 4}}
    known = load_persona(persona({OWN: brain}), environ=NONE)
    assert known.brain.options == {"api_key": "k"}
    assert known.settings == ModelSettings(1, None, ("a", "b"), None, 3, {"top_k": 4})
    local = load_persona(persona({OWN: {"model": "local", "context": 4096}}), environ=NONE)
    assert (local.brain.model, local.brain.options) == ("local", {"context": 4096})


def test_system_prompts_of_memory_engine_and_brain_become_one() -> None:
    memory: Any = {MEMORY: {"system_prompt": "A."}}
    document = persona({"system_prompt": "B.", OWN: {"model": "ollama:x", "system_prompt": "A."}}, **memory)
    reading = read(document)
    assert reading.persona is not None
    assert reading.persona.system_prompt == "A.\n\nB."
    assert [finding.level for finding in reading.findings] == ["note"]


def test_ids_of_openvoiceos_mean_the_toolboxes_that_do_the_same() -> None:
    boxes = ["ovos-math-tools", "toolturn-clock", "units", "math.calculator"]
    reading = read(persona({"toolboxes": boxes, "tool_timeout": 9}))
    assert reading.persona is not None
    assert [(box.name, box.toolbox, box.kind, box.timeout) for box in reading.persona.boxes] == [
        ("ovos-math-tools", "math", "own", 9),
        ("toolturn-clock", "clock", "own", 9),
        ("units", "units", "own", 9),
        ("math.calculator", "math.calculator", "own", 9),
    ]


def test_files_are_there_only_where_the_persona_lists_them() -> None:
    section = {"folders": ["/tmp"]}
    assert load_persona(persona({"files": section}), environ=NONE).boxes == ()
    (box,) = load_persona(persona({"toolboxes": ["toolturn-files"], "toolturn-files": section}), environ=NONE).boxes
    assert (box.kind, box.config) == ("files", section)


def test_a_toolbox_can_be_switched_off() -> None:
    document = persona({"toolboxes": ["math", "clock"], "math": {"enabled": False}})
    assert [box.name for box in load_persona(document, environ=NONE).boxes] == ["clock"]


# --- MCP -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ovos-mcp-toolbox", "toolturn-mcp", "mcp"])
def test_an_mcp_server_is_described_as_in_openvoiceos(name: str) -> None:
    section = {"transport": "stdio", "command": "python", "args": ["-m", "mcp_server_time"], "env": {"A": "b"}}
    known = load_persona(persona({"toolboxes": [name], name: section | {"timeout": 7}}), environ=NONE)
    assert known.servers == {"time": Stdio("python", ("-m", "mcp_server_time"), {"A": "b"}, timeout=7)}


def test_one_over_http_has_a_url() -> None:
    section = {"transport": "http", "url": "https://example.org/mcp"}
    known = load_persona(persona({"toolboxes": ["mcp"], "mcp": section}), environ=NONE)
    assert known.servers == {"example-org": Http("https://example.org/mcp")}


def test_several_servers_stand_in_one_section() -> None:
    section = {"mcpServers": {"a": {"command": "x"}, "b": {"url": "http://127.0.0.1:1/mcp"}, "c": {"disabled": True}}}
    assert list(load_persona(persona({"toolboxes": ["mcp"], "mcp": section}), environ=NONE).servers) == ["a", "b"]
    typed = {"servers": ["python -m mcp_server_time", "time=python -m mcp_server_time"]}
    known = load_persona(persona({"toolboxes": ["mcp"], "mcp": typed}), environ=NONE)
    assert list(known.servers) == ["time", "time2"]


def test_servers_of_two_sections_get_names_of_their_own() -> None:
    section = {"command": "python", "args": ["-m", "mcp_server_time"]}
    document = persona({"toolboxes": ["mcp", "ovos-mcp-toolbox"], "mcp": section, "ovos-mcp-toolbox": section})
    assert list(load_persona(document, environ=NONE).servers) == ["time", "time2"]


def test_variables_are_replaced_in_the_section_of_a_server() -> None:
    section = {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    document = persona({"toolboxes": ["mcp"], "mcp": section})
    known = read_persona(document, environ={"TOKEN": "t"}).persona
    assert known is not None
    assert isinstance(known.servers["example-org"], Http)
    assert known.servers["example-org"].headers == {"Authorization": "Bearer t"}
    assert told(document, "problem") == [f'$["{LOOP}"].mcp: the environment variable TOKEN is not set']


# --- what is wrong -------------------------------------------------------------------------

AT = f'$["{LOOP}"]'
PROBLEMS: list[tuple[Any, str]] = [
    ({"name": "x"}, r'\$\.handlers: "handlers" is missing'),
    ({"name": "x", "chat_module": "y"}, r"\$\.chat_module: chat_module is not read here: .*handlers"),
    ({"handlers": [LOOP], LOOP: {}}, r"\$\.name: name is missing"),
    ({"name": " ", "handlers": [LOOP], LOOP: {}}, r"\$\.name: name must not be empty"),
    ({"name": "x", "handlers": "y"}, r"\$\.handlers: handlers must be a list of texts"),
    ({"name": "x", "handlers": ["ovos-react-lop"]}, r"\$\.handlers\[0\]: there is no engine .*'ovos-react-loop'"),
    ({"name": "x", "handlers": ["ovos-plan-execute-loop"]}, r"there is no engine 'ovos-plan-execute-loop'"),
    ({"name": "x", "handlers": [LOOP], LOOP: 5}, r"the section of .* must be an object"),
    ({"name": "x", "handlers": [LOOP]}, r"\.brain: brain is missing"),
    ({"name": "x", "handlers": [LOOP], LOOP: None}, r"\.brain: brain is missing"),
    (persona({"timeout": 10**400}), r"timeout must be a number"),
    (persona({"brain": "ovos-openai-chat"}), r"\.brain: there is no brain 'ovos-openai-chat'"),
    (persona({"brain": 5}), r"\.brain: brain must be a text"),
    (persona({OWN: {}}), r"\.model: model is missing"),
    (persona({OWN: {"model": "olama:x"}}), r"\.model: there is no server 'olama'; did you mean 'ollama'"),
    (persona({OWN: {"model": "ollama:"}}), r"write the model's name behind the colon"),
    (persona({OWN: {"model": "http://127.0.0.1:80/v1"}}), r"write the model's name behind the address"),
    (persona({OWN: {"model": "local", "temperature": "warm"}}), r"temperature must be a number"),
    (persona({OWN: {"model": "local", "temperature": True}}), r"temperature must be a number"),
    (openai({"api_url": "localhost:8080"}), r"\.api_url: 'localhost:8080' is no address of a server"),
    (openai({"api_url": "http://x/v1#m"}), r"\.api_url: .* is no address"),
    (openai({"api_url": 5}), r"api_url must be a text"),
    (openai({"max_tokens": 0}), r"max_tokens must be at least 1"),
    (persona({"max_iterations": -1}), r"max_iterations must be at least 0"),
    (persona({"max_iterations": "many"}), r"max_iterations must be a whole number"),
    (persona({"max_iterations": 2.5}), r"max_iterations must be a whole number"),
    (persona({"timeout": 0}), r"timeout must be at least"),
    (persona({"tool_names": "last"}), r"tool_names must be one of first, prefix"),
    (persona({"toolboxes": 5}), r"toolboxes must be a text or a list of texts"),
    (persona({"toolboxes": ["maths"]}), r"\.toolboxes\[0\]: there is no toolbox 'maths'; did you mean 'math'"),
    (persona({"toolboxes": ["ovos-shell-tools"]}), r"ovos-shell-tools is of OpenVoiceOS, which is not installed here"),
    (persona({"toolboxes": ["files"]}), r"folders is missing"),
    (persona({"toolboxes": ["mcp"]}), r"\.mcp: it needs a command or a url"),
    (persona({"toolboxes": ["mcp"], "mcp": {"transport": "sse", "url": "http://x/s"}}), r"old transport 'sse'"),
    (persona({"toolboxes": ["mcp"], "mcp": {"command": "x", "url": "http://x"}}), r"either a command or a url"),
    (persona({"toolboxes": ["mcp"], "mcp": {"mcpServers": {"a": 5}}}), r"\.a: the section of a server must be an"),
    (persona({"toolboxes": ["mcp"], "mcp": {"servers": 5}}), r"\.servers: servers must be an object"),
    (persona({"toolboxes": ["mcp"], "mcp": {"file": "/nowhere.json"}}), r"\.file: it can not be used: No such file"),
    (persona({"react": 5}), r"react must be an object"),
    (persona({}, memory_module=5), r"memory_module must be a text or null"),
]


@pytest.mark.parametrize(("document", "words"), PROBLEMS)
def test_a_problem_is_named_with_its_place_and_keeps_the_persona_from_use(document: Any, words: str) -> None:
    reading = read(document)
    assert reading.persona is None
    assert re.search(words, "\n".join(str(finding) for finding in reading.findings))


WARNINGS: list[tuple[Any, str]] = [
    (openai({"api_key": "k"}), r"\.api_key: api_key is not the name of the key; it is key"),
    (openai({"persona": "be kind"}), r"\.persona: persona is not the name of the key; it is system_prompt"),
    (openai({"api_key": "k", "key": "l"}), r"it is key, which is there too and counts"),
    (openai({"temprature": 1}), r"\.temprature: there is no key 'temprature'; did you mean 'temperature'\?"),
    (
        openai({"api_url": "http://127.0.0.1:1/v1/chat/completions"}),
        r"\.api_url: /chat/completions is put behind it by OpenVoiceOS: write http://127\.0\.0\.1:1/v1",
    ),
    (openai({"extra_params": {"stream": True}}), r"\.extra_params\.stream: stream is not used"),
    (persona({"files": {"folders": ["/tmp"]}}), r'this section is not used: "toolboxes" does not list files'),
    (persona({"toolturn-brian": {}}), r"this section is not used: nothing names it; did you mean 'toolturn-brain'"),
    (persona() | {"my-engine": {}}, r"\[\"my-engine\"\]: this section is not used: nothing names it"),
    (persona({"max_iteration": 4}), r"did you mean 'max_iterations'"),
    (persona({"model": "x"}), r"\.model: model is not read here: it belongs into the section of the brain"),
    (persona({"tools": ["math"]}), r"\.tools: tools is not the name of the key; it is toolboxes"),
    (persona({"toolboxes": ["math", "math"]}), r"\.toolboxes\[1\]: math is listed twice"),
    (persona({OPENAI: {"key": "k"}}), r"this section is not used: brain is 'toolturn-brain'"),
    (persona({}, max_iterations=4), r"\$\.max_iterations: .*belongs into the section of an engine"),
    (persona({}, sovlers=[]), r"\$\.sovlers: there is no key 'sovlers'; did you mean 'solvers'\?"),
    (persona() | {"ovos-react-loop": {}}, r'this section is not used: "handlers" does not list ovos-react-loop'),
    (persona({OWN: {"model": "local", "key": "k"}}), r"\.key: key is not used: it is for models of servers"),
    (persona({OWN: {"model": "groq:x", "threads": 2}}), r"threads is not used: it is for the embedded model"),
    (persona({"react": {"promt": "x"}}), r"\.react\.promt: there is no key 'promt'; did you mean 'prompt'"),
    (persona({"toolboxes": ["mcp"], "mcp": {"command": "x", "cmd": 1}}), r"\.mcp\.cmd: there is no key"),
]


@pytest.mark.parametrize(("document", "words"), WARNINGS)
def test_what_is_most_likely_a_mistake_is_a_warning(document: Any, words: str) -> None:
    reading = read(document)
    assert reading.persona is not None, reading.findings
    assert any(finding.level == "warning" and re.search(words, str(finding)) for finding in reading.findings)


def test_keys_under_an_old_name_are_used_all_the_same() -> None:
    known = load_persona(openai({"api_key": "k", "base_url": "http://127.0.0.1:1/v1", "persona": "P."}), environ=NONE)
    assert (known.brain.options, known.system_prompt) == ({"api_key": "k"}, "P.")
    assert known.brain.model.startswith("http://127.0.0.1:1/v1#")
    assert [box.name for box in load_persona(persona({"tools": ["math"]}), environ=NONE).boxes] == ["math"]


def test_an_address_with_the_whole_path_is_used_without_it() -> None:
    known = load_persona(openai({"api_url": "http://127.0.0.1:1/v1/chat/completions/", "model": "m"}), environ=NONE)
    assert known.brain.model == "http://127.0.0.1:1/v1#m"


def test_a_section_at_the_top_that_belongs_into_the_engine_is_used_and_told() -> None:
    document = persona({"toolboxes": ["mcp"]}, mcp={"command": "x"})
    document[OWN] = document[LOOP].pop(OWN)
    reading = read(document)
    assert reading.persona is not None
    assert (reading.persona.brain.model, list(reading.persona.servers)) == ("ollama:qwen3", ["x"])
    assert [str(finding) for finding in reading.findings if finding.level == "warning"] == [
        f"$.mcp: the section of mcp belongs into {AT}: OpenVoiceOS reads it only there",
        f'$["{OWN}"]: the section of {OWN} belongs into {AT}: OpenVoiceOS reads it only there',
    ]


def test_every_problem_is_told_at_once() -> None:
    document = persona({"max_iterations": -1, "toolboxes": ["maths"], OWN: {"model": "olama:x"}}, memory_module=4)
    assert len(told(document, "problem")) == 4


NOTES: list[tuple[Any, str]] = [
    (persona({}, handlers=None, solvers=[LOOP]), r"\$\.solvers: solvers is the old name of handlers"),
    (persona({}, handlers=[LOOP, "ovos-solver-failure-plugin"]), r"ovos-solver-failure-plugin is not used here"),
    (persona({"system_prompt": "x"}, handler="ovos-react-loop"), r"does not read it; toolturn does"),
    (persona({"toolboxes": ["ovos-clock-tools"]}), r"ovos-clock-tools is of OpenVoiceOS.*; clock takes its place"),
    (persona({"max_iterations": 0}), r"the model is asked once, without tools"),
    (persona({}, memory_module="my-memory"), r"my-memory is of OpenVoiceOS"),
]


@pytest.mark.parametrize(("document", "words"), NOTES)
def test_what_is_good_to_know_is_a_note(document: Any, words: str) -> None:
    if document.get("handlers", 1) is None:
        del document["handlers"]
    reading = read(document)
    assert reading.persona is not None, reading.findings
    assert {finding.level for finding in reading.findings} == {"note"}
    assert re.search(words, str(reading.findings[0]))


# --- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": "x",\n  "handlers": [}', "line 2, column 16: it is no JSON: Expecting value"),
        ("", "line 1, column 1: it is no JSON"),
        ("[1]", "it must be an object"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "or too long"),
    ],
)
def test_a_file_that_is_no_json_is_told_with_line_and_column(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "persona.json"
    file.write_text(text)
    (finding,) = read_persona(file).findings
    assert finding.level == "problem"
    assert words in str(finding)


def test_one_in_another_encoding_too(tmp_path: Path) -> None:
    file = tmp_path / "persona.json"
    file.write_bytes(b'{"name":\n "\xe4"}')
    assert [str(finding) for finding in read_persona(str(file)).findings] == [
        "line 2, column 3: it is no text in UTF-8"
    ]


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "persona.json"
    file.write_text('{"name": "x"}', encoding="utf-8-sig")
    assert [finding.place for finding in read_persona(file).findings] == ["$.handlers"]


def test_a_key_that_stands_there_twice_is_told(tmp_path: Path) -> None:
    file = tmp_path / "persona.json"
    file.write_text('{"name": "x", "a-b": [{"c": 1, "c": 2}], "name": "y"}')
    twice = [str(finding) for finding in read_persona(file).findings if "twice" in finding.text]
    assert twice == [
        "$.name: name stands there twice; the last one counts",
        '$["a-b"][0].c: c stands there twice; the last one counts',
    ]


@pytest.mark.parametrize("name", ["nothing.json", "./nothing", "~nobody-of-this-name/x.json"])
def test_a_file_that_is_not_there_is_one_sentence(name: str) -> None:
    (finding,) = read_persona(name).findings
    assert finding.level == "problem"
    assert "it can not be read" in finding.text


def test_a_folder_is_no_persona(tmp_path: Path) -> None:
    assert [finding.text for finding in read_persona(tmp_path).findings] == ["it can not be read: Is a directory"]


def test_a_name_that_is_neither_a_file_nor_a_plugin_says_both() -> None:
    (finding,) = read_persona("nobody").findings
    assert finding.text.startswith("there is no such file, and there is no persona plug-in 'nobody'")


def test_loading_one_raises_its_first_problem_and_carries_all() -> None:
    with pytest.raises(PersonaError, match=r"\$\.handlers: .*\(and 1 more: toolturn persona check\)") as caught:
        load_persona({})
    assert len(caught.value.findings) == 2
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.findings) == (str(caught.value), caught.value.findings)


# --- anything ------------------------------------------------------------------------------

_KEYS = st.sampled_from(
    [*PERSONA.known, *ENGINE.known, *ENGINE.renamed, *MCP.known, *BRAINS, *ENGINES, MEMORY, "mcp", "files", "math"]
) | st.text(max_size=3)
_TEXTS = st.sampled_from([*BRAINS, *ENGINES, "mcp", "files", "math", "local", "ollama:x", "http://x/v1#m", "4"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)
_SECTION = st.dictionaries(_KEYS, _JSON, max_size=5)


@given(_SECTION, _SECTION, _SECTION, _JSON)
def test_nothing_makes_reading_raise(top: Any, engine: Any, brain: Any, boxes: Any) -> None:
    section = {"brain": OWN, OWN: {"model": "ollama:x", **brain}, "toolboxes": boxes, **engine}
    for document in (top, {"name": "x", "handlers": [LOOP], LOOP: section, **top}):
        reading = read(document)
        assert (reading.persona is None) == bool(reading.problems)
        assert all(str(finding) and finding.place.startswith("$") for finding in reading.findings)
