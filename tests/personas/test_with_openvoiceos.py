"""Toolboxes of OpenVoiceOS in a persona, where that is installed."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():  # what these packages use that will go one day is theirs to know
    warnings.simplefilter("ignore")
    pytest.importorskip("ovos_plugin_manager.templates.agent_tools")
    pytest.importorskip("ovos_agentic_loop")

from toolturn.personas import load_persona, read_persona
from toolturn.personas.boxes import tools_of

from .documents import persona


@pytest.mark.filterwarnings("ignore")
def test_its_own_toolboxes_are_used_where_they_are_installed() -> None:
    known = load_persona(persona({"toolboxes": ["ovos-math-tools", "toolturn-math"]}))
    assert [box.kind for box in known.boxes] == ["ovos", "own"]
    tools, left_out = tools_of(known)
    assert {"calculator", "evaluate_expression"} <= set(tools.names)
    assert left_out == ()


def test_a_toolbox_it_does_not_have_is_told_with_the_nearest_one() -> None:
    (finding,) = read_persona(persona({"toolboxes": ["ovos-filesytem-tools"]})).findings
    assert "did you mean 'ovos-filesystem-tools'?" in finding.text
