"""Models of servers and of plug-ins by name: ``openai:gpt-…``, ``http://127.0.0.1:8080/v1#model``, ``plugin:…``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from ..errors import ModelAuthenticationError, ModelUnavailableError
from ..model import ChatModel
from ..plugins import PluginError, model_plugin, plugin_model, plugins
from .servers import SERVERS, UNKNOWN, Server, chat_url, is_loopback, server_at, server_named

OWN_KEY = "TOOLTURN_API_KEY"
"""The variable of a key for a server that no entry of the table knows; no other key is ever sent there."""

_BASE_VARIABLES = {"openai": "OPENAI_BASE_URL", "azure": "AZURE_OPENAI_ENDPOINT", "ollama": "OLLAMA_HOST"}


def model_named(name: str, *, environ: Mapping[str, str] | None = None, attempts: int = 5, **options: Any) -> ChatModel:
    """Return the model of a name.

    Args:
        name: ``server:model`` with a server of the table, an address with the model behind ``#``, or ``plugin:model``
            with a plug-in of the group ``toolturn.models``.
        environ: Where keys and addresses are looked up; the process's environment where None.
        attempts: How often a server is asked at most where it can not serve.
        options: Further arguments of :class:`~toolturn.models.wires.openai_chat.OpenAIChat`, or of the plug-in.

    Raises:
        ModelUnavailableError: There is no such model or server, its address is none, or the plug-in can not be used.
        ModelAuthenticationError: Its key is missing.
        ImportError: What it needs is not installed; the text says how to install it.
    """
    environ = os.environ if environ is None else environ
    found = where(name, environ)
    if found is None:
        return _of_plugin(name, options)
    server, base_url, model = found
    from .wires.openai_chat import OpenAIChat
    from .wrappers.retrying import Retrying

    key = options.pop("api_key", None) or key_of(server, environ)
    try:
        chat_url(base_url)
        if key is None and server.keys and not is_loopback(urlsplit(base_url)):
            raise ModelAuthenticationError(f"{server.name} needs a key: set {server.keys[0]}")
        made = OpenAIChat(model, base_url=base_url, api_key=key, server=server, **options)
    except ValueError as exc:
        raise ModelUnavailableError(str(exc)) from None
    return made if attempts == 1 else Retrying(made, attempts=attempts)


def _of_plugin(name: str, options: Mapping[str, Any]) -> ChatModel:
    try:
        plugin = model_plugin(name)
        if plugin is not None:
            return plugin_model(*plugin, options)
    except PluginError as exc:
        raise ModelUnavailableError(str(exc)) from exc
    raise ModelUnavailableError(f"{name!r:.200} names no model of a server; write for example ollama:qwen3")


def where(name: str, environ: Mapping[str, str]) -> tuple[Server, str, str] | None:
    """Return server, address and model that a name means, or None where it names no server.

    Args:
        name: As for :func:`model_named`.
        environ: Where addresses are looked up.

    Raises:
        ModelUnavailableError: There is no such server, or the model is missing.
    """
    if name.startswith(("http://", "https://")):
        base_url, _, model = name.partition("#")
        if not model:
            raise ModelUnavailableError(f"write the model's name behind the address: {base_url}#model")
        return server_at(base_url), base_url, model
    prefix, colon, model = name.partition(":")
    server = server_named(prefix) if colon else None
    if server is None:
        if colon and prefix.isalnum() and len(prefix) > 1 and not os.path.exists(name) and not _is_plugin(name):
            names = sorted([*(entry.name for entry in SERVERS), *(plugin.name for plugin in plugins("models"))])
            near = get_close_matches(prefix.lower(), names, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
            raise ModelUnavailableError(f"there is no server {prefix!r}; {meant}")
        return None
    if not model.strip():
        raise ModelUnavailableError(f"write the model's name behind the colon: {prefix}:model")
    return server, base_url_of(server, environ), model.strip()


def _is_plugin(name: str) -> bool:
    try:
        return model_plugin(name) is not None
    except PluginError:  # there are several: whoever wants it is told
        return True


def base_url_of(server: Server, environ: Mapping[str, str]) -> str:
    """Return the address of a known server, which a variable may move.

    Args:
        server: The entry of the table.
        environ: Where the variable is looked up.

    Raises:
        ModelUnavailableError: Each customer has an address of their own, and none is set.
    """
    variable = _BASE_VARIABLES.get(server.name)
    given = environ.get(variable, "").strip() if variable else ""
    if server.name == "azure":
        if not given:
            raise ModelUnavailableError(f"azure has an address of your own: set {variable}")
        return given if "/openai" in given else f"{given.rstrip('/')}/openai/v1"
    if server.name == "ollama" and given:
        address = given if "://" in given else f"http://{given}"
        parts = urlsplit(address)
        # the server's own variable says where it listens: everywhere is reached at the loopback address
        host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else parts.hostname
        shown = f"[{host}]" if host and ":" in host else host
        return f"{parts.scheme}://{shown}:{parts.port or 11434}/v1"
    return given or server.base_url


def key_of(server: Server, environ: Mapping[str, str]) -> str | None:
    """Return the key of a server, or None where none is set.

    Args:
        server: The entry of the table.
        environ: Where it is looked up.
    """
    names = server.keys or ((OWN_KEY,) if server is UNKNOWN or server.local else ())
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)
