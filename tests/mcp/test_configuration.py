"""A server as it is typed, as it stands in the common file, and as it is written in a program."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.mcp import Http, Stdio, server_from_text, servers_from_json

# --- as it is typed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "server"),
    [
        ("python -m mcp_server_time", "time", Stdio("python", ("-m", "mcp_server_time"))),
        ("uvx mcp-server-git --repository '/a b'", "git", Stdio("uvx", ("mcp-server-git", "--repository", "/a b"))),
        (
            "npx -y @modelcontextprotocol/server-filesystem /tmp",
            "filesystem",
            Stdio("npx", ("-y", "@modelcontextprotocol/server-filesystem", "/tmp")),
        ),
        ("npx -y my-tool@latest", "my-tool", Stdio("npx", ("-y", "my-tool@latest"))),
        ("/opt/bin/weather-mcp", "weather", Stdio("/opt/bin/weather-mcp")),
        ("node /srv/notes.js", "notes", Stdio("node", ("/srv/notes.js",))),
        ("env A=b python3.12 serve.py", "serve", Stdio("env", ("A=b", "python3.12", "serve.py"))),
        ("clock=python -m mcp_server_time", "clock", Stdio("python", ("-m", "mcp_server_time"))),
        ("https://docs.example.org/mcp", "docs-example-org", Http("https://docs.example.org/mcp")),
        ("docs=http://127.0.0.1:8000/mcp?a=b", "docs", Http("http://127.0.0.1:8000/mcp?a=b")),
    ],
)
def test_a_server_is_an_address_or_a_command(text: str, name: str, server: Stdio | Http) -> None:
    assert server_from_text(text) == (name, server)


@pytest.mark.parametrize("text", ["", "  ", "python 'unclosed", "https://", "http://[::1", "https://user:word@host/"])
def test_what_is_neither_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="MCP server") as caught:
        server_from_text(text)
    assert "word" not in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_a_server_with_a_name_or_a_value_error(text: str) -> None:
    try:
        name, server = server_from_text(text)
    except ValueError:
        return
    assert name
    assert isinstance(server, (Stdio, Http))


# --- as it stands in the file -----------------------------------------------------------


def test_the_common_file_is_read() -> None:
    document = {
        "mcpServers": {
            "time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "${ZONE:-UTC}"}, "cwd": "/"},
            "docs": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${env:KEY}"}},
            "off": {"command": "x", "disabled": True},
            "slow": {"command": "x", "timeout": 120000, "start_timeout": 90, "allow": ["a*"], "autoApprove": ["a"]},
        }
    }
    servers, problems = servers_from_json(json.dumps(document), {"HOST": "h.example.org", "KEY": "k"})
    assert problems == ()
    assert servers == {
        "time": Stdio("uvx", ("mcp-server-time",), {"TZ": "UTC"}, "/"),
        "docs": Http("https://h.example.org/mcp", {"Authorization": "Bearer k"}),
        "slow": Stdio("x", timeout=120.0, start_timeout=90, allow=("a*",)),
    }


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("python", "its entry is no object"),
        ({}, "it is left out: it needs either a command or a url"),
        ({"command": "x", "url": "http://x/"}, "it is left out: it needs either a command or a url"),
        ({"type": "sse", "url": "http://x/"}, "it is left out: it wants the old transport 'sse'"),
        ({"type": "ws", "url": "http://x/"}, "it is left out: its type is none of"),
        ({"command": "x", "env": {"A": "${MISSING}"}}, "it is left out: the environment variable MISSING is not set"),
        ({"command": "x", "args": "a b"}, "it is left out: the arguments of an MCP server must be a list of texts"),
        ({"command": "x", "args": [1]}, "it is left out: the arguments of an MCP server must be a list of texts"),
        ({"command": 7}, "it is left out: the command of an MCP server must not be empty"),
        ({"command": "x", "timeout": "long"}, "it is left out: timeout must be a positive number of seconds"),
        ({"command": "x", "env": {"A": 1}}, "it is left out: the environment of an MCP server must have texts"),
        ({"url": "ftp://x/"}, "it is left out: the address of an MCP server has the form"),
        ({"url": "http://x/", "headers": {"A": "b\n"}}, "it is left out: the header A holds a character"),
        ({"command": "x", "argz": []}, "nobody knows its keys argz"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_of_it_and_the_others_are_read(entry: Any, text: str) -> None:
    servers, [problem] = servers_from_json(json.dumps({"mcpServers": {"bad": entry, "good": {"command": "y"}}}), {})
    assert servers["good"] == Stdio("y")
    assert (problem.server, problem.kind) == ("bad", "configuration")
    assert problem.text.startswith(text)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"mcpServers": 7}', "[" * 100_000])
def test_a_file_that_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is no JSON|it has no"):
        servers_from_json(text)


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_keys = ("command", "args", "env", "cwd", "url", "headers", "type", "timeout", "allow", "deny", "max_bytes", "disabled")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(_keys, _anything)))
def test_any_entry_is_a_server_or_a_problem(entry: Any) -> None:
    servers, problems = servers_from_json(json.dumps({"mcpServers": {"x": entry}}), {})
    assert servers or problems or entry.get("disabled") is True


# --- as it is written -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"start_timeout": -1},
        {"close_timeout": float("inf")},
        {"max_bytes": 10},
        {"allow": "a"},
        {"deny": [1]},
    ],
)
def test_a_bound_out_of_its_range_is_refused(options: dict[str, Any]) -> None:
    for make in (lambda: Stdio("x", **options), lambda: Http("http://x/", **options)):
        with pytest.raises(ValueError):
            make()


def test_a_configuration_is_a_value() -> None:
    server = Stdio("x", ["a"], {"KEY": "secret"})  # type: ignore[arg-type]
    assert server == Stdio("x", ("a",), {"KEY": "secret"})
    assert replace(server, timeout=5.0).timeout == 5.0
    assert pickle.loads(pickle.dumps(server)) == server
    assert "secret" not in repr(server)
    with pytest.raises(AttributeError):
        server.command = "y"  # type: ignore[misc]
