"""What is installed is found by name, imported only by name, and fails alone."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolturn import ModelUnavailableError
from toolturn.models import model_named
from toolturn.naming import any_model, any_tools, source_of
from toolturn.plugins import (
    PluginError,
    find_plugin,
    model_plugin,
    plugin_model,
    plugin_persona,
    plugin_tools,
    plugins,
)
from toolturn.testing import ScriptedModel

from .packages import TOOLS, install, metadata

MODELS = """
from toolturn.testing import ScriptedModel

def model(name, **config):
    return ScriptedModel([f"I am {name!r} with {sorted(config)}"])
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in the path; what was imported from it is forgotten again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


# --- listing -------------------------------------------------------------------------------


def test_listing_tells_what_each_package_brings_and_imports_none_of_it(there: Path) -> None:
    install(there, "a-pack", "raise RuntimeError", toolboxes={"box": "tools"}, models={"brain": "model"}, version="2.3")
    install(there, "b-pack", "raise RuntimeError", personas={"somebody": "PERSONA"})
    found = [plugin for plugin in plugins() if plugin.package in ("a-pack", "b-pack")]
    assert [(p.kind, p.name, p.package, p.version, p.target) for p in found] == [
        ("toolboxes", "box", "a-pack", "2.3", "a_pack:tools"),
        ("models", "brain", "a-pack", "2.3", "a_pack:model"),
        ("personas", "somebody", "b-pack", "1.0", "b_pack:PERSONA"),
    ]
    assert not {"a_pack", "b_pack"} & set(sys.modules)


def test_only_the_plugin_that_is_named_is_imported(there: Path) -> None:
    install(there, "good-pack", TOOLS, toolboxes={"good": "tools"})
    install(there, "other-pack", TOOLS, toolboxes={"other": "tools"})
    assert plugin_tools("good").names == ("hello",)
    assert "good_pack" in sys.modules
    assert "other_pack" not in sys.modules


@pytest.mark.parametrize("text", ["[toolturn.toolboxes\nbox", "no section at all", "[toolturn.toolboxes]\nbox"])
def test_metadata_that_can_not_be_read_hides_no_other_package(there: Path, text: str) -> None:
    metadata(there, "broken-pack", text)
    install(there, "good-pack", TOOLS, toolboxes={"good": "tools"})
    assert plugin_tools("good").names == ("hello",)


def test_a_package_without_a_version_is_listed(there: Path) -> None:
    info = there / "odd_pack-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-pack\n")
    (info / "entry_points.txt").write_text("[toolturn.toolboxes]\nodd = odd_pack:tools\n")
    assert [plugin.version for plugin in plugins("toolboxes") if plugin.name == "odd"] == [""]


# --- finding -------------------------------------------------------------------------------


def test_a_name_that_two_packages_bring_is_refused_with_both_and_taken_with_the_package(there: Path) -> None:
    install(there, "one-pack", TOOLS, toolboxes={"box": "tools"})
    install(there, "two-pack", TOOLS, toolboxes={"box": "tools"})
    with pytest.raises(PluginError) as caught:
        find_plugin("toolboxes", "box")
    assert str(caught.value) == (
        "there are several toolbox plug-ins 'box', of one-pack (one_pack:tools) and two-pack (two_pack:tools); "
        "write 'one-pack:box' or 'two-pack:box'"
    )
    assert find_plugin("toolboxes", "two-pack:box").package == "two-pack"
    with pytest.raises(ValueError, match="several toolbox plug-ins"):
        any_tools(["box"])
    assert any_tools(["one-pack:box"]).names == ("hello",)


def test_an_unknown_name_is_told_with_the_nearest_one(there: Path) -> None:
    install(there, "a-pack", TOOLS, toolboxes={"weather": "tools"})
    with pytest.raises(PluginError, match="there is no toolbox plug-in 'wether'; did you mean 'weather'"):
        find_plugin("toolboxes", "wether")


def test_an_error_can_be_pickled(there: Path) -> None:
    install(there, "bad-pack", "import nothing_of_this_name", toolboxes={"bad": "tools"})
    with pytest.raises(PluginError) as caught:
        plugin_tools("bad")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.kind, again.name, again.package) == (
        str(caught.value),
        "toolboxes",
        "bad",
        "bad-pack",
    )


# --- failing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nothing_of_this_name", "can not be imported: ModuleNotFoundError: No module named 'nothing_of_this"),
        ("raise ValueError('out of order')", "can not be imported: ValueError: out of order"),
        ("import sys\nsys.exit(3)", "can not be imported: SystemExit: 3"),
        ("def tools(:", "can not be imported: SyntaxError"),
        ("x = 1", "can not be imported: AttributeError"),
        ("tools = 5", "is no function but int"),
        ("def tools(**config): raise OSError('no disk')", "failed: OSError: no disk"),
        ("def tools(**config): return 5", "gave no set of tools: TypeError"),
        ("def tools(**config): return [print]", "gave no set of tools: TypeError"),
        ("def tools(**config): return None", "gave no set of tools but nothing"),
        ("def tools(**config):\n    yield 1 / 0", "gave no set of tools: ZeroDivisionError"),
        ("def tools(*, sides): return []", "does not take its configuration: missing a required"),
    ],
)
def test_a_plugin_that_fails_is_named_with_its_package_and_the_cause(there: Path, code: str, words: str) -> None:
    install(there, "bad-pack", code, toolboxes={"bad": "tools"})
    install(there, "good-pack", TOOLS, toolboxes={"good": "tools"})
    with pytest.raises(PluginError) as caught:
        plugin_tools("bad")
    assert str(caught.value).startswith("the toolbox plug-in 'bad' of the package bad-pack ")
    assert words in str(caught.value)
    assert (caught.value.name, caught.value.package) == ("bad", "bad-pack")
    assert plugin_tools("good").names == ("hello",), "the others go on"


def test_a_keyword_nobody_knows_is_told(there: Path) -> None:
    install(there, "a-pack", "def tools(*, sides=6): return []", toolboxes={"box": "tools"})
    assert len(plugin_tools("box", {"sides": 4})) == 0
    with pytest.raises(PluginError, match="got an unexpected keyword argument 'side'"):
        plugin_tools("box", {"side": 4})


# --- models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("brain:some:thing", "some:thing"),
        ("brain:", ""),
        ("brain", ""),
        ("a-pack:brain:x", "x"),
        ("a-pack:brain", ""),
    ],
)
def test_a_model_is_named_by_its_plugin_and_what_stands_behind(there: Path, name: str, rest: str) -> None:
    install(there, "a-pack", MODELS, models={"brain": "model"})
    found = model_plugin(name)
    assert found is not None
    assert (found[0].full_name, found[1]) == ("a-pack:brain", rest)
    assert source_of(name) == "plugin"
    for made in (model_named(name), any_model(name)):
        assert isinstance(made, ScriptedModel)


def test_options_of_a_model_go_to_its_plugin(there: Path) -> None:
    install(there, "a-pack", "def model(name, *, depth=1): raise KeyError(depth)", models={"brain": "model"})
    with pytest.raises(ModelUnavailableError, match="failed: KeyError: 7") as caught:
        model_named("brain:x", depth=7)
    assert isinstance(caught.value.__cause__, PluginError)


def test_a_server_of_the_table_comes_before_a_plugin_of_its_name(there: Path) -> None:
    install(there, "a-pack", MODELS, models={"ollama": "model"})
    assert source_of("ollama:qwen3") == "server"
    assert source_of("a-pack:ollama:qwen3") == "plugin"


def test_what_is_no_model_is_refused(there: Path) -> None:
    install(there, "a-pack", "def model(name): return print", models={"brain": "model"})
    with pytest.raises(ModelUnavailableError, match="gave no ChatModel but builtin_function_or_method"):
        model_named("brain:x")


def test_a_name_near_to_a_plugin_is_told(there: Path) -> None:
    install(there, "a-pack", MODELS, models={"parrot": "model"})
    with pytest.raises(ModelUnavailableError, match="did you mean 'parrot'"):
        model_named("parot:x")


def test_a_model_of_two_packages_is_refused_with_both(there: Path) -> None:
    install(there, "a-pack", MODELS, models={"brain": "model"})
    install(there, "b-pack", MODELS, models={"brain": "model"})
    with pytest.raises(ModelUnavailableError, match=r"of a-pack .* and b-pack"):
        model_named("brain:x")
    assert isinstance(model_named("b-pack:brain:x"), ScriptedModel)


def test_a_package_may_be_called_like_its_plugin(there: Path) -> None:
    install(there, "brain", MODELS, models={"brain": "model"})
    install(there, "other", MODELS, models={"brain": "model"})
    found = model_plugin("brain:brain:x")
    assert found is not None
    assert (found[0].package, found[1]) == ("brain", "x")
    assert isinstance(plugin_model(*found), ScriptedModel)


# --- personas and tools --------------------------------------------------------------------


def test_a_persona_is_a_dictionary_or_a_path(there: Path) -> None:
    code = "PERSONA = {'name': 'x'}\nFILE = '/some/file.json'\nWRONG = 5"
    install(there, "a-pack", code, personas={"one": "PERSONA", "two": "FILE", "three": "WRONG"})
    assert plugin_persona("one") == {"name": "x"}
    assert plugin_persona("two") == Path("/some/file.json")
    with pytest.raises(PluginError, match="is neither a dictionary nor a path but int"):
        plugin_persona("three")


def test_builtin_toolboxes_and_plugins_stand_in_one_set(there: Path) -> None:
    install(there, "a-pack", TOOLS, toolboxes={"greeter": "tools", "two.parts": "tools"})
    assert any_tools(["greeter", "math"]).names == ("calculator", "hello")
    assert any_tools(["greeter.hello"]).names == ("hello",)
    assert any_tools(["a-pack:greeter.hello"]).names == ("hello",)
    assert any_tools(["two.parts"]).names == ("hello",)
    with pytest.raises(ValueError, match="there is no tool in the toolbox 'greeter' 'helo'; did you mean 'hello'"):
        any_tools(["greeter.helo"])
    with pytest.raises(ValueError, match="has a tool 'hello', and so has another one before it"):
        any_tools(["greeter", "two.parts"])


Run = Callable[..., Any]


def test_the_command_line_lists_plugins_and_loads_the_named_ones(there: Path, run: Run) -> None:
    install(there, "good-pack", TOOLS, toolboxes={"good": "tools"})
    install(there, "bad-pack", "raise ValueError('out of order')", toolboxes={"bad": "tools"})
    listed = run("tools")
    assert "good: a plug-in of good-pack 1.0" in listed.stdout
    assert "bad: a plug-in of bad-pack 1.0" in listed.stdout
    assert json.loads(run("tools", "--json").stdout)["good"] == {"package": "good-pack", "version": "1.0"}
    assert "hello(name)" in run("tools", "good").stdout
    failed = run("tools", "bad")
    assert failed.returncode == 2
    assert "the toolbox plug-in 'bad' of the package bad-pack can not be imported: ValueError" in failed.stderr


def test_the_doctor_tries_plugins_only_where_that_is_asked_for(there: Path, run: Run) -> None:
    install(there, "good-pack", TOOLS, toolboxes={"good": "tools"})
    install(there, "twin-pack", TOOLS, toolboxes={"good": "tools"})
    install(there, "bad-pack", "raise ValueError('out of order')", models={"bad": "model"})
    looked = json.loads(run("doctor", "--json").stdout)
    assert {(p["name"], p["loaded"], p["problem"]) for p in looked["plugins"]} == {
        ("good", False, None),
        ("bad", False, None),
    }
    assert "write 'good-pack:good' or 'twin-pack:good'" in looked["clashes"][0]
    tried = run("doctor", "--load-plugins")
    assert tried.returncode == 1
    assert "toolboxes  good of good-pack 1.0: can be imported" in tried.stdout
    assert "bad-pack can not be imported: ValueError: out of order" in tried.stdout


def test_what_a_plugin_prints_does_not_come_between_a_document_on_standard_output(there: Path, run: Run) -> None:
    loud = TOOLS.replace("def tools(", "print('imported')\n\ndef tools(").replace(
        "return [", "print('asked'); return ["
    )
    install(there, "loud-pack", loud, toolboxes={"loud": "tools"})
    done = run("tools", "loud", "--json")
    assert list(json.loads(done.stdout)) == ["loud"]
    assert done.stderr.split() == ["imported", "asked"]
