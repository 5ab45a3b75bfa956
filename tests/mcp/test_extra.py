"""What needs the extra says so in one sentence, and nothing of it is loaded by who does not use it."""

from __future__ import annotations

from ..running.support import python


def test_a_configuration_is_read_without_the_extra_and_servers_are_not_started() -> None:
    done = python(
        """
        import sys
        sys.modules["mcp"] = None
        from toolturn.mcp import Stdio, server_from_text, servers_from_json
        assert server_from_text("time=x") == ("time", Stdio("x"))
        try:
            from toolturn.mcp import mcp_servers
        except ImportError as exc:
            print(exc)
        """,
        prelude=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "MCP servers need the extra 'mcp': pip install 'toolturn[mcp]'"


def test_the_client_is_loaded_by_who_connects() -> None:
    done = python(
        """
        import sys
        import toolturn, toolturn.mcp
        print(sorted(name for name in sys.modules if name.partition(".")[0] in ("mcp", "httpx2", "anyio")))
        """,
        prelude=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]")
