"""What OpenVoiceOS finds of toolturn, and what is said where another package has the same name."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from ovos_plugin_manager.agents import find_chat_plugins, load_chat_plugin
from ovos_plugin_manager.persona import find_toolbox_plugins

from toolturn.ovos import (
    AgenticLoopEngine,
    NativeToolCallEngine,
    NativeToolCallEnginePlugin,
    NotLoadable,
    ReActLoopEngine,
    ReActLoopEnginePlugin,
    ToolturnBrain,
    clashes,
)
from toolturn.ovos.entry_points import CHAT, load


def test_the_plugin_manager_finds_the_engines_the_brain_and_the_toolboxes() -> None:
    assert load_chat_plugin("toolturn-native-toolcall-loop") is NativeToolCallEnginePlugin
    assert load_chat_plugin("toolturn-react-loop") is ReActLoopEnginePlugin
    assert load_chat_plugin("toolturn-brain") is ToolturnBrain
    assert "ovos-native-toolcall-loop" in find_chat_plugins()
    assert {"toolturn-clock", "toolturn-math", "toolturn-units"} <= find_toolbox_plugins().keys()


def test_an_engine_is_what_its_name_says() -> None:
    assert issubclass(NativeToolCallEnginePlugin, NativeToolCallEngine)
    assert issubclass(NativeToolCallEngine, ReActLoopEngine)
    assert issubclass(ReActLoopEngine, AgenticLoopEngine)
    assert NativeToolCallEngine.supports_tools is False


def test_where_two_packages_bring_the_same_name_that_is_said_with_the_one_that_is_ours_alone(tmp_path: Path) -> None:
    brought = [entry.dist.name for entry in entry_points(group=CHAT, name="ovos-native-toolcall-loop") if entry.dist]
    if len(brought) < 2:
        pytest.skip("no other package brings it here")
    (told,) = clashes()
    assert "'ovos-native-toolcall-loop' is brought by toolturn and by ovos-agentic-loop" in told
    assert "'toolturn-native-toolcall-loop'" in told


def test_what_is_not_installed_or_broken_is_named_and_takes_nothing_else_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "broken_brain-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-brain\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[opm.agents.chat]\nbroken-brain = no_such_module:X\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NotLoadable, match="of broken-brain can not be imported: ModuleNotFoundError"):
        load(CHAT, "broken-brain", "brain")
    with pytest.raises(NotLoadable, match="'toolturn-brian' is not installed; did you mean 'toolturn-brain'"):
        load(CHAT, "toolturn-brian", "brain")
    assert load(CHAT, "toolturn-brain", "brain") is ToolturnBrain


def test_without_openvoiceos_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['ovos_plugin_manager'] = None\n"
        "import toolturn.ovos as ovos\n"
        "assert isinstance(ovos.clashes(), list)\n"
        "try:\n    ovos.NativeToolCallEngine\nexcept ImportError as exc:\n    print(exc)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "toolturn.ovos.NativeToolCallEngine needs the extra 'ovos': pip install 'toolturn[ovos]'\n"
