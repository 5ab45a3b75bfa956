"""What is known of servers: their addresses, the variables their keys stand in, and what each wants otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

SchemaForm: TypeAlias = Literal["openai", "openai_strict", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """In what a server departs from OpenAI's chat completions.

    Args:
        beside_calls: The content of an assistant message that only calls: ``null``, ``empty`` text, or ``omit`` it.
        ids: Call ids as they are, up to 40 characters (``plain``), or ``nine`` alphanumerics.
        max_tokens: The field that bounds the reply.
        system: The role of instructions: ``system`` or ``developer``.
        required: The word for "call some tool".
        named: How one tool is demanded: OpenAI's ``object``, or only as ``required``.
        choice_none: Whether tools may stand in a request with the tool choice ``none``; some ignore the choice.
        parallel_calls: Whether ``parallel_tool_calls`` is known.
        stream_usage: Whether ``stream_options`` asks for the usage of a stream.
        answers: Whether ``response_format`` holds the reply to a schema: also beside tools, where it leaves calls
            free (``beside_tools``), only without them (``alone``), or not for certain.
        images: Whether images are taken in messages of the user; without, they are named there by kind and size.
        result_images: Whether images of tool results are shown in such a message; switched off by itself where a
            server refuses them.
        files: Whether PDF files of tool results can be shown, as OpenAI's part ``file``.
        after_results: Who may speak after the results of tools: the ``user`` too, or only the ``assistant``.
        schemas: The form of tool schemas.
        echo: Fields of its replies that it wants back in the assistant message or call.
    """

    beside_calls: Literal["null", "empty", "omit"] = "null"
    ids: Literal["plain", "nine"] = "plain"
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system: Literal["system", "developer"] = "system"
    required: str = "required"
    named: Literal["object", "required"] = "object"
    choice_none: bool = True
    parallel_calls: bool = True
    stream_usage: bool = True
    answers: Literal["", "alone", "beside_tools"] = ""
    images: bool = True
    result_images: bool = True
    files: bool = False
    after_results: Literal["user", "assistant"] = "user"
    schemas: SchemaForm = "openai"
    echo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """A known server, or a kind of server.

    Args:
        name: What stands before the colon in a model's name.
        base_url: Where it is.
        keys: Environment variables its key may stand in, the first that is set counts.
        hosts: Hosts by which an address is known to be this server's; a leading dot matches all below.
        wishes: In what it departs from the usual.
        key_header: The header the key goes into; ``authorization`` takes it as a bearer.
        local: It runs on this machine and needs no key.
    """

    name: str
    base_url: str
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    wishes: Wishes = Wishes()
    key_header: str = "authorization"
    local: bool = False


_REASONING = ("reasoning_content",)
_LOCAL = Wishes(beside_calls="empty", choice_none=False, answers="alone")

SERVERS: tuple[Server, ...] = (
    Server(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("api.openai.com", ".api.openai.com"),
        Wishes(max_tokens="max_completion_tokens", answers="beside_tools", files=True),
    ),
    Server(
        "azure",
        "",  # each customer's own
        ("AZURE_OPENAI_API_KEY",),
        (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        Wishes(max_tokens="max_completion_tokens", answers="beside_tools"),
        "api-key",
    ),
    Server(
        "anthropic-openai",
        "https://api.anthropic.com/v1",
        ("ANTHROPIC_API_KEY",),
        ("api.anthropic.com",),
        Wishes(parallel_calls=False),
    ),
    Server(
        "cerebras",
        "https://api.cerebras.ai/v1",
        ("CEREBRAS_API_KEY",),
        ("api.cerebras.ai",),
        Wishes(stream_usage=False),
    ),
    Server("deepinfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",), ("api.deepinfra.com",)),
    Server(
        "deepseek",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        ("api.deepseek.com",),
        Wishes(beside_calls="empty", parallel_calls=False, images=False, echo=_REASONING),
    ),
    Server("fireworks", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",), ("api.fireworks.ai",)),
    Server(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("generativelanguage.googleapis.com",),
        Wishes(parallel_calls=False, schemas="gemini", echo=("extra_content",)),
    ),
    Server("github", "https://models.github.ai/inference", ("GITHUB_TOKEN",), ("models.github.ai",)),
    Server("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), ("api.groq.com",)),
    Server("huggingface", "https://router.huggingface.co/v1", ("HF_TOKEN",), ("router.huggingface.co",)),
    Server(
        "mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        ("api.mistral.ai", "codestral.mistral.ai"),
        Wishes(beside_calls="empty", ids="nine", required="any", stream_usage=False, after_results="assistant"),
    ),
    Server(
        "moonshot",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        ("api.moonshot.ai", "api.moonshot.cn"),
        Wishes(beside_calls="empty", parallel_calls=False, named="required", echo=_REASONING),
    ),
    Server("nvidia", "https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",), ("integrate.api.nvidia.com",)),
    Server("ollama-cloud", "https://ollama.com/v1", ("OLLAMA_API_KEY",), ("ollama.com",), _LOCAL),
    Server(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        ("openrouter.ai",),
        Wishes(files=True, echo=("reasoning_details",)),
    ),
    Server("perplexity", "https://api.perplexity.ai", ("PERPLEXITY_API_KEY",), ("api.perplexity.ai",)),
    Server(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
        Wishes(beside_calls="empty"),
    ),
    Server("sambanova", "https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",), ("api.sambanova.ai",)),
    Server("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), ("api.together.xyz", "api.together.ai")),
    Server("xai", "https://api.x.ai/v1", ("XAI_API_KEY",), ("api.x.ai",), Wishes(beside_calls="empty")),
    Server("zai", "https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",), ("api.z.ai", "open.bigmodel.cn")),
    Server("llamacpp", "http://127.0.0.1:8080/v1", (), (), _LOCAL, local=True),
    Server("lmstudio", "http://127.0.0.1:1234/v1", (), (), _LOCAL, local=True),
    Server("ollama", "http://127.0.0.1:11434/v1", (), (), _LOCAL, local=True),
    Server("vllm", "http://127.0.0.1:8000/v1", (), (), _LOCAL, local=True),
)
"""Sources: each server's own reference of its chat completions, and reports of what it refused."""

UNKNOWN = Server("", "", (), (), Wishes(parallel_calls=False, choice_none=False, echo=("reasoning_details",)))
"""What is assumed of a server that no entry matches: the least that all are known to take.

Blocks of thoughts with their signatures go back to the server that gave them: where a model thought before it called,
some refuse what follows without them.
"""


def server_named(name: str) -> Server | None:
    """Return the server of that name, or None.

    Args:
        name: As before the colon of a model's name; its case does not matter.
    """
    return next((server for server in SERVERS if server.name == name.lower()), None)


def server_at(url: str) -> Server:
    """Return the server that an address is known to be, or :data:`UNKNOWN`.

    Args:
        url: A base URL.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return UNKNOWN
    for server in SERVERS:
        for known in server.hosts:
            if host == known or (known.startswith(".") and host.endswith(known)):
                return server
        if server.local and is_loopback(parts) and port == urlsplit(server.base_url).port:
            return server
    return UNKNOWN


def is_loopback(parts: SplitResult) -> bool:
    """Return whether an address is this machine's own.

    Args:
        parts: The address, split.
    """
    host = (parts.hostname or "").lower()
    return host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")


def changed(wishes: Wishes, changes: Mapping[str, Any] | None) -> Wishes:
    """Return wishes with some of them replaced.

    Args:
        wishes: What is known.
        changes: New values by name.

    Raises:
        ValueError: There is no wish of that name.
    """
    try:
        return replace(wishes, **changes) if changes else wishes
    except TypeError:
        known = ", ".join(Wishes.__slots__)
        raise ValueError(f"unknown wish in {sorted(changes or ())}; there are: {known}") from None


def chat_url(base_url: str, path: str = "/chat/completions") -> str:
    """Return the address of the chat completions below a base URL.

    Args:
        base_url: With or without ``/v1``, or the whole address of the chat completions; a query stays.
        path: What is wanted below it.

    Raises:
        ValueError: It is no address of HTTP.
    """
    try:
        parts = urlsplit(base_url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:  # of a port that is none, too
        text = f"{base_url!r:.200} is no address of a server; write for example http://127.0.0.1:8080/v1"
        raise ValueError(text) from None
    below = parts.path.rstrip("/").removesuffix("/chat/completions")
    if not below and not parts.path.rstrip("/"):
        below = "/v1"
    return parts._replace(path=below + path, fragment="").geturl()
