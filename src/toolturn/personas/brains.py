"""The brain of a persona: which model its section means, and how that is to reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ..errors import ModelError
from ..model import ModelSettings
from ..plugins import PluginError, model_plugin
from .checking import Finding, below, check_section, number_of, value_of
from .keys import BRAINS, OVOS_BRAIN, Keys

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o-mini"
_CHAT = "/chat/completions"

# what toolturn says itself in each request
_OURS = ("messages", "model", "stream", "stream_options", "tools", "tool_choice", "functions")
_SERVER = ("key", "wishes", "send_key_in_clear")
_EMBEDDED = ("context", "threads")
_SAMPLING = ("top_p", "frequency_penalty", "presence_penalty")


class Teller(Protocol):
    """Who gathers what is wrong.

    Attributes:
        found: What is known to be wrong.
        environ: Where variables are looked up.
    """

    found: list[Finding]
    environ: Mapping[str, str]

    def tell(self, level: Literal["problem", "warning", "note"], place: str, text: str) -> None:
        """Add a finding."""


@dataclass(frozen=True, slots=True)
class Brained:
    """What the section of a brain means.

    Args:
        model: The name of the model.
        settings: How it is to reply.
        system_prompt: The brain's own system message.
        options: Further arguments of what makes the model.
        place: Where the section stands.
    """

    model: str
    settings: ModelSettings
    system_prompt: str | None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    place: str = "$"


def brain_of(name: str, section: Mapping[str, Any], place: str, teller: Teller) -> Brained | None:
    """Return what the section of a brain means; None where there is a problem.

    Args:
        name: The id of the brain.
        section: Its section.
        place: Where that stands.
        teller: Is told what is wrong.
    """
    keys = BRAINS[name]
    before = len(teller.found)
    made = _of_ovos(section, place, keys, teller) if name == OVOS_BRAIN else _own(section, place, keys, teller)
    if made is None or any(finding.level == "problem" for finding in teller.found[before:]):
        return None
    model, options = made
    stop, extra = ("stop_token", "extra_params") if name == OVOS_BRAIN else ("stop", "extra")
    settings = _settings(section, keys, value_of(section, stop, keys), value_of(section, extra, keys), place, teller)
    return Brained(model, settings, value_of(section, "system_prompt", keys), options, place)


def _of_ovos(section: Mapping[str, Any], place: str, keys: Keys, teller: Teller) -> tuple[str, dict[str, Any]] | None:
    from ..models.servers import chat_url

    teller.found += check_section(section, keys, place)
    url = value_of(section, "api_url", keys) or DEFAULT_URL
    key, model = value_of(section, "key", keys), value_of(section, "model", keys) or DEFAULT_MODEL
    if not isinstance(url, str) or not isinstance(model, str):
        return None  # was told
    where = below(place, "api_url")
    try:
        if "#" in url:
            raise ValueError(f"{url!r:.200} is no address of a server; the model stands in a key of its own")
        chat_url(url)
    except ValueError as exc:
        teller.tell("problem", where, str(exc))
        return None
    short = url.strip().rstrip("/")
    if short.endswith(_CHAT):
        short = short.removesuffix(_CHAT)
        teller.tell("warning", where, f"{_CHAT} is put behind it by OpenVoiceOS: write {short}")
    options: dict[str, Any] = {"api_key": key} if key else {}
    if section.get("send_key_in_clear"):
        options["send_key_in_clear"] = True
    return f"{short}#{model.strip()}", options


def _own(section: Mapping[str, Any], place: str, keys: Keys, teller: Teller) -> tuple[str, dict[str, Any]] | None:
    from ..naming import source_of

    name = value_of(section, "model", keys)
    if not isinstance(name, str) or not name.strip():
        teller.found += check_section(section, keys, place)
        return None
    name = name.strip()
    try:
        source = source_of(name, teller.environ)
    except ModelError as exc:
        teller.found += check_section(section, keys, place)
        teller.tell("problem", below(place, "model"), str(exc))
        return None
    if source == "plugin":
        return _of_plugin(name, section, place, keys, teller)
    teller.found += check_section(section, keys, place)
    for key in _EMBEDDED if source == "server" else _SERVER:
        if value_of(section, key, keys) is not None:
            of = "the embedded model" if key in _EMBEDDED else "models of servers"
            teller.tell("warning", below(place, key), f"{key} is not used: it is for {of}")
    wanted = _SERVER if source == "server" else _EMBEDDED
    given = {
        key: number_of(value_of(section, key, keys)) if key in keys.least else value_of(section, key, keys)
        for key in wanted
    }
    options = {("api_key" if key == "key" else key): value for key, value in given.items() if value is not None}
    return name, options


def _of_plugin(
    name: str, section: Mapping[str, Any], place: str, keys: Keys, teller: Teller
) -> tuple[str, dict[str, Any]] | None:
    """A plug-in gets what is not about the reply; whether it knows all of that it says itself when it is made."""
    ours = keys.known.keys() - {*_SERVER, *_EMBEDDED}
    config = {key: value for key, value in section.items() if key not in ours}
    try:
        found = model_plugin(name)
    except PluginError as exc:
        teller.tell("problem", below(place, "model"), str(exc))
        return None
    assert found is not None
    teller.found += check_section({key: section[key] for key in section if key in ours}, keys, place)
    return name, config


def _settings(
    section: Mapping[str, Any], keys: Keys, stop: Any, extra: Any, place: str, teller: Teller
) -> ModelSettings:
    given = {key: number_of(section.get(key)) for key in ("temperature", "max_tokens", "seed", *_SAMPLING)}
    more = {key: given.pop(key) for key in _SAMPLING}
    more = {key: value for key, value in more.items() if value is not None}
    for key, value in (extra if isinstance(extra, Mapping) else {}).items():
        if key in _OURS:
            name = "extra_params" if "extra_params" in section else "extra"
            teller.tell("warning", below(below(place, name), key), f"{key} is not used: toolturn says it itself")
        elif value is None:  # takes a key out of the request
            more.pop(key, None)
            if key in given:
                given[key] = None
        else:
            more[key] = value
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    return ModelSettings(stop=tuple(text for text in stops if text), extra=more, **given)
