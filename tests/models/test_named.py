"""A model's name says where it is; a key goes to its own server and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from toolturn.errors import ModelAuthenticationError, ModelUnavailableError
from toolturn.models.named import OWN_KEY, model_named, where
from toolturn.models.servers import SERVERS, UNKNOWN, Wishes, changed, chat_url, server_at, server_named
from toolturn.models.wires.openai_chat import OpenAIChat
from toolturn.models.wrappers.retrying import Retrying


def made(name: str, environ: dict[str, str] | None = None, **options: Any) -> OpenAIChat:
    model = model_named(name, environ=environ or {}, attempts=1, **options)
    assert isinstance(model, OpenAIChat)
    return model


def key_sent(model: OpenAIChat) -> str | None:
    return model._headers.get("authorization")


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/chat/completions/", "https://api.openai.com/v1/chat/completions"),
        ("https://host/openai/v1", "https://host/openai/v1/chat/completions"),
        ("https://host/api", "https://host/api/chat/completions"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
        ("https://host/openai/v1?api-version=1", "https://host/openai/v1/chat/completions?api-version=1"),
        (" https://host/v1 ", "https://host/v1/chat/completions"),
    ],
)
def test_an_address_may_be_written_with_or_without_its_end(base: str, url: str) -> None:
    assert chat_url(base) == url


@pytest.mark.parametrize(
    "base",
    [
        "",
        "host",
        "ftp://host",
        "http://",
        "http://host:port/v1",
        "localhost:8080",
        "http://h:99999/v1",
        "http://[::1/v1",
    ],
)
def test_what_is_no_address_is_refused_with_an_example(base: str) -> None:
    with pytest.raises(ValueError, match="is no address of a server; write for example"):
        chat_url(base)


def test_every_server_of_the_table_is_found_by_name_and_by_address() -> None:
    for server in SERVERS:
        assert server_named(server.name.upper()) is server
        if server.base_url:
            assert server_at(server.base_url) is server


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://API.Mistral.AI/v1", "mistral"),
        ("http://localhost:11434/v1", "ollama"),
        ("https://notapi.mistral.ai.evil.example/v1", ""),
        ("http://127.0.0.1:9999/v1", ""),
    ],
)
def test_a_server_is_known_by_its_address(url: str, name: str) -> None:
    assert server_at(url).name == name


def test_a_key_is_taken_from_its_servers_variable() -> None:
    model = made("groq:llama", {"GROQ_API_KEY": " gk ", "OPENAI_API_KEY": "ok"})
    assert key_sent(model) == "Bearer gk"
    assert model.url == "https://api.groq.com/openai/v1/chat/completions"


def test_a_missing_key_is_told_with_the_variable() -> None:
    with pytest.raises(ModelAuthenticationError, match="groq needs a key: set GROQ_API_KEY"):
        made("groq:llama")


def test_no_known_servers_key_goes_to_an_unknown_server() -> None:
    model = made("https://host.example/v1#m", {"OPENAI_API_KEY": "ok"})
    assert key_sent(model) is None
    assert key_sent(made("https://host.example/v1#m", {OWN_KEY: "mine"})) == "Bearer mine"


def test_a_key_does_not_travel_in_clear_text_to_another_machine_unless_asked() -> None:
    with pytest.raises(ModelUnavailableError, match=r"would travel in clear text to host\.example"):
        made("http://host.example/v1#m", {OWN_KEY: "mine"})
    assert key_sent(made("http://host.example/v1#m", {OWN_KEY: "mine"}, send_key_in_clear=True)) == "Bearer mine"
    assert key_sent(made("http://127.0.0.1:8080/v1#m", {OWN_KEY: "mine"})) == "Bearer mine"


def test_the_key_is_in_no_text_about_the_model() -> None:
    assert "sk-1" not in repr(made("openai:gpt-5", {"OPENAI_API_KEY": "sk-1"}))


def test_azure_takes_its_key_in_its_own_header_at_an_address_of_your_own() -> None:
    with pytest.raises(ModelUnavailableError, match="set AZURE_OPENAI_ENDPOINT"):
        made("azure:gpt-5", {"AZURE_OPENAI_API_KEY": "k"})
    model = made("azure:gpt-5", {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/"})
    assert model.url == "https://me.openai.azure.com/openai/v1/chat/completions"
    assert (model._headers["api-key"], key_sent(model)) == ("k", None)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box:8000", "http://box:8000/v1"),
        ("http://box", "http://box:11434/v1"),
        ("[::1]:1", "http://[::1]:1/v1"),
    ],
)
def test_ollamas_own_variable_says_where_it_is(host: str, url: str) -> None:
    found = where("ollama:qwen3:8b", {"OLLAMA_HOST": host})
    assert found is not None
    assert found[1:] == (url, "qwen3:8b")


def test_openais_own_variable_moves_it() -> None:
    environ = {"OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_API_KEY": "k"}
    assert made("openai:m", environ).url == "http://localhost:1/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nosuch:model", "there is no server 'nosuch'; there are: anthropic"),
        ("openai:", "write the model's name behind the colon"),
        ("http://127.0.0.1:8080/v1", "write the model's name behind the address"),
        ("model.gguf", "names no model of a server"),
        ("olama:qwen3", "there is no server 'olama'; did you mean 'ollama'"),
        ("http://127.0.0.1:99999/v1#m", "is no address of a server"),
        ("http://[::1/v1#m", "is no address of a server"),
    ],
)
def test_a_name_that_means_no_model_is_told_what_to_write(name: str, words: str) -> None:
    with pytest.raises(ModelUnavailableError, match=words):
        made(name)


def test_a_path_with_a_drive_letter_names_no_server() -> None:
    assert where("C:\\models\\a.gguf", {}) is None


def test_models_of_servers_are_asked_again_when_they_can_not_serve() -> None:
    model = model_named("ollama:m", environ={})
    assert isinstance(model, Retrying)
    assert isinstance(model.model, OpenAIChat)


def test_wishes_can_be_corrected_by_name() -> None:
    assert made("ollama:m", wishes={"ids": "nine"}).wishes.ids == "nine"
    with pytest.raises(ModelUnavailableError, match="unknown wish in \\['colour'\\]; there are: beside_calls"):
        made("ollama:m", wishes={"colour": "red"})
    assert changed(Wishes(), None) == Wishes()


def test_of_an_unknown_server_the_least_is_assumed() -> None:
    assert server_at("https://host.example/v1") is UNKNOWN
    # signed thoughts are what it gave itself
    assert UNKNOWN.wishes == Wishes(parallel_calls=False, choice_none=False, echo=("reasoning_details",))
