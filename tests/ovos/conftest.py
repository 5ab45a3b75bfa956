"""These tests need the packages of OpenVoiceOS; ``make test`` runs them in an environment that has them."""

from __future__ import annotations

import os
import tempfile
import warnings
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("ovos_plugin_manager") else ["test_*.py"]

if not collect_ignore_glob:
    # Nobody's own configuration, personas and logs are read or written.
    _home = tempfile.TemporaryDirectory(prefix="toolturn-ovos-")
    for _name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        os.environ[_name] = _home.name
    with warnings.catch_warnings():  # what these packages use that will go one day is theirs to know
        warnings.simplefilter("ignore")
        import ovos_plugin_manager.templates.agent_tools
        import ovos_plugin_manager.templates.agents  # noqa: F401
