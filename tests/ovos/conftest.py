"""These tests need the packages of OpenVoiceOS; without them they are not collected."""

from __future__ import annotations

import importlib.util
import warnings

collect_ignore_glob: list[str] = []

if importlib.util.find_spec("ovos_plugin_manager") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    # imported here once, because what it imports itself warns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ovos_plugin_manager.templates.agent_tools  # noqa: F401
